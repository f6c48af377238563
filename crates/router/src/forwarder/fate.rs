//! The fate of a packet by the verdict of its last program.

use super::program::Fid;
use super::table::Forwarders;
use crate::state::{Core, Fate};
use longwire_block::DropReason;
use longwire_packet::Meta;
use longwire_program::{Redirect, Verdict};

/// The fate of a packet by this verdict of its last program; `lost` is the fate of a redirection without a
/// destination.
#[inline]
pub(super) fn fate(core: &Core, verdict: Verdict, in_port: u16, lost: impl Fn() -> Fate) -> Option<Fate> {
    match verdict {
        Verdict::Pass => None,
        Verdict::Transmit => way_out(core, in_port.into()).or(Some(PORT_DOWN)),
        Verdict::Redirect(Redirect::Port(port)) => way_out(core, port).or_else(|| Some(lost())),
        Verdict::Redirect(Redirect::Processor(_)) => None,
        // Only the caller knows the program's links.
        Verdict::Redirect(Redirect::Link(_)) => Some(lost()),
        Verdict::Drop(_) => Some(Fate::Dropped(DropReason::Program)),
        Verdict::Aborted(_) => Some(Fate::Dropped(DropReason::Aborted)),
    }
}

/// Sends a packet into the link with a program's number, if it exists and begins where the packet is.
pub(super) fn into_link(
    core: &Core,
    (table, fid): (&Forwarders, Fid),
    number: u32,
    meta: &mut Meta,
) -> Option<Fate> {
    let link = table.forwarder(fid)?.installation.links.get(number as usize)?;
    if link.from.is_some_and(|from| from != meta.in_port) {
        return None;
    }
    meta.request_link(link.number);
    way_out(core, link.port.into())
}

const PORT_DOWN: Fate = Fate::Dropped(DropReason::PortDown);

/// Sends a packet out of the port with this number, if it is the router's; one that is down drops it.
fn way_out(core: &Core, port: u32) -> Option<Fate> {
    let place = u16::try_from(port).ok()?;
    match core.ports.number(place) {
        Some(_) => Some(Fate::Out(place)),
        None => core.ports.is_port(place).then_some(PORT_DOWN),
    }
}

/// The fate of a packet redirected to nowhere.
#[cold]
pub(super) fn lost(table: &Forwarders, fid: Fid) -> Fate {
    if let Some(forwarder) = table.forwarder(fid) {
        forwarder.redirected_nowhere();
    }
    Fate::Dropped(DropReason::Aborted)
}
