//! The decision of programs on a packet: what its last program's verdict means, and room for packets whose
//! programs have moved their ends.

use super::program::Fid;
use super::table::Forwarders;
use crate::above::Upward;
use crate::next_hop::NextHop;
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{Checksum, Handle, Meta, Pool};
use longwire_program::{Redirect, Verdict};

/// The decision of programs on a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ruling {
    /// Its fate, if decided.
    pub fate: Option<Fate>,
    /// Its next hop, instead of the route's.
    pub way: Option<NextHop>,
    /// The level above to which it goes.
    pub above: Option<Upward>,
    /// The packet that replaces it, because it had too little room.
    pub instead: Option<Handle>,
}

impl Ruling {
    /// The ruling on a packet that meets no program.
    pub const NONE: Self = Self { fate: None, way: None, above: None, instead: None };

    /// Resets it.
    pub fn clear(&mut self) {
        (self.fate, self.way, self.above, self.instead) = (None, None, None, None);
    }

    /// Whether it has more than a fate.
    pub const fn is_special(&self) -> bool {
        self.way.is_some() || self.above.is_some() || self.instead.is_some()
    }

    /// The ruling on a lost packet.
    pub(super) const fn lost(reason: DropReason) -> Self {
        Self { fate: Some(Fate::Dropped(reason)), ..Self::NONE }
    }
}

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
    let down = || core.ports.is_port(place).then_some(PORT_DOWN);
    core.ports.number(place).map(|_| Fate::Out(place)).or_else(down)
}

/// The fate of a packet redirected to nowhere.
#[cold]
pub(super) fn lost(table: &Forwarders, fid: Fid) -> Fate {
    if let Some(forwarder) = table.forwarder(fid) {
        forwarder.counters.redirected_nowhere();
    }
    Fate::Dropped(DropReason::Aborted)
}

/// Writes a changed packet back into its slot, or into another packet if it has grown beyond that. Returns
/// the packet that holds it; without memory its fate is decided.
pub(super) fn put_back(
    core: &mut Core,
    pool: &mut Pool,
    handle: Handle,
    frame: &[u8],
    ruling: &mut Ruling,
    out: &mut Outbox,
) -> Handle {
    let old = *pool.meta(handle);
    let mut own = handle;
    if !pool.resize(handle, frame.len()) {
        out.because_of(&old);
        let Some(longer) = core.make(pool, old.in_port, frame.len(), out) else {
            ruling.fate = Some(Fate::Dropped(DropReason::PoolFull));
            return handle;
        };
        let meta = pool.meta_mut(longer);
        (meta.place, meta.seq) = (old.place, old.seq);
        meta.take_choices(&old);
        if ruling.instead.replace(longer).is_some() {
            core.settle(pool, handle, Fate::Consumed, out);
        }
        own = longer;
    }
    let (meta, place) = pool.parts_mut(own);
    place.copy_from_slice(frame);
    // Bytes that a capture cut off are still missing.
    meta.wire_len = meta.len + (old.wire_len - old.len);
    meta.checksum = Checksum::Unknown as u8;
    own
}
