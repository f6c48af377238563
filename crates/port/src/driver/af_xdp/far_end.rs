//! Offloads that must be off at both ends of the wire, so that frames arrive complete.
//!
//! AF_XDP transfers only bytes: a checksum left to the device, a train, or a VLAN tag kept beside the packet
//! is lost. A real wire has none of these, but the other end of a veth pair passes its packets on as they
//! are.

use super::error::AfXdpError;
use crate::interface::Counters;
use crate::interface::{Feature, Interface, OffloadGuard, OpenError};
use longwire_netlink::{LONGEST, Link, Socket, interface_name, link};
use std::io;

/// The other end of a veth pair; ignored for other interfaces.
#[derive(Debug, Default)]
pub enum FarEnd {
    /// Look it up in this namespace; an error if it is in another.
    #[default]
    Find,
    /// It is this one, in whatever namespace.
    Given(Interface),
    /// It is in another namespace, with its offloads off.
    Trusted,
}

/// Offload settings that are restored when this is dropped, and the other end if it is accessible.
pub(super) struct PreparedEnds {
    pub(super) guards: Vec<OffloadGuard>,
    pub(super) found: Option<Interface>,
}

/// Turns off the offloads that AF_XDP can't carry, at both ends.
pub(super) fn prepare(own: &Interface, far: FarEnd) -> Result<PreparedEnds, AfXdpError> {
    let mut guards = vec![OffloadGuard::turn_off(own, &[Feature::Lro, Feature::RxVlan])?];
    if own.driver()? != "veth" {
        return Ok(PreparedEnds { guards, found: None });
    }
    let (far, found) = match far {
        FarEnd::Trusted => return Ok(PreparedEnds { guards, found: None }),
        FarEnd::Given(far) => (far, None),
        FarEnd::Find => {
            let far = peer(own)?.ok_or_else(|| AfXdpError::FarEnd { name: own.name().into() })?;
            (far.clone(), Some(far))
        }
    };
    let features = [Feature::TxChecksum, Feature::Tso, Feature::Uso, Feature::TxVlan];
    guards.push(OffloadGuard::turn_off(&far, &features)?);
    Ok(PreparedEnds { guards, found })
}

/// Turns off offloads that merge frames before a generic XDP program sees them.
pub(super) fn prepare_generic(own: &Interface) -> Result<OffloadGuard, OpenError> {
    OffloadGuard::turn_off(own, &[Feature::Gro])
}

/// Frames that the kernel loses before the sockets, by its own counters. For a veth pair these are the other
/// end's, whose frames are lost when our receive queue is full; the sockets count the near end's losses
/// themselves.
pub(super) struct LostFrames {
    counters: Option<Counters>,
    is_far: bool,
    before: u64,
}

impl LostFrames {
    /// Starts counting; `far` is the other end of a veth pair, if it is in the calling thread's namespace.
    pub(super) fn new(own: &Interface, far: Option<&Interface>) -> Result<Self, OpenError> {
        let near = if own.driver()? == "veth" { None } else { Some(own) };
        let counters = far.or(near).map(Counters::of);
        let mut lost = Self { counters, is_far: far.is_some(), before: 0 };
        lost.before = lost.now();
        Ok(lost)
    }

    pub(super) fn since_opening(&self) -> u64 {
        self.now().saturating_sub(self.before)
    }

    fn now(&self) -> u64 {
        let lost = self.counters.as_ref().and_then(Counters::lost);
        lost.map_or(0, |lost| if self.is_far { lost.sent } else { lost.received })
    }
}

/// Receive queues of an interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queues {
    pub(super) count: u32,
    /// Transmit queues.
    transmit: u32,
    /// False if the driver does not report the number, and these are the maxima.
    pub(super) is_exact: bool,
}

pub(super) fn queues(own: &Interface) -> Result<Queues, OpenError> {
    const GCHANNELS: u32 = 0x3c;
    // struct ethtool_channels: command, four maxima, then counts: receive, transmit, other, combined.
    let mut words = [GCHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
    let exact = own.ethtool(&mut words).is_ok().then(|| words[5] + words[8]).filter(|&count| count > 0);
    if let Some(count) = exact {
        return Ok(Queues { count, transmit: words[6] + words[8], is_exact: true });
    }
    let Link { receive_queues, transmit_queues, .. } = link(own)?;
    Ok(Queues { count: receive_queues.max(1), transmit: transmit_queues.max(1), is_exact: false })
}

impl Queues {
    /// Fails without a receive and a transmit queue for each of `ports`.
    pub(super) fn suffice(&self, ports: u32, interface: &str) -> Result<(), AfXdpError> {
        let Self { count: receive, transmit, .. } = *self;
        if ports <= receive.min(transmit) {
            return Ok(());
        }
        Err(AfXdpError::Queues { name: interface.into(), ports, receive, transmit })
    }
}

/// The other end of a veth pair, if it is in the calling thread's namespace.
fn peer(own: &Interface) -> Result<Option<Interface>, OpenError> {
    let link = link(own)?;
    // If a namespace number is reported, the index belongs to that namespace.
    if link.peer_is_elsewhere || link.peer == 0 {
        return Ok(None);
    }
    interface_name(link.peer).map_or(Ok(None), |name| Interface::open(&name).map(Some))
}

/// The kernel's data on a link in the calling thread's namespace.
fn link(own: &Interface) -> Result<Link, OpenError> {
    let ask = || {
        let mut buffer = vec![0; LONGEST];
        let reply = Socket::route()?.ask(&mut link::ask(own.index()), &mut buffer)?.body;
        Link::read(reply).ok().flatten().ok_or(io::Error::from(io::ErrorKind::InvalidData))
    };
    ask().map_err(|e| OpenError::from_io(own.name(), "ask what it is", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_no_peer() {
        let lo = Interface::open("lo").unwrap();
        assert!(peer(&lo).unwrap().is_none());
        let queues = queues(&lo).unwrap();
        assert_eq!(queues.count, 1);
        queues.suffice(1, "lo").unwrap();
        let error = queues.suffice(2, "lo").unwrap_err().to_string();
        assert!(error.contains("queues = 2") && error.contains("ethtool -L lo"), "{error}");
    }
}
