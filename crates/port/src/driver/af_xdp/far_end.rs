//! What must be off at both ends of the wire, so that frames are whole when they come in.
//!
//! AF_XDP sees bytes only: a checksum left to the device, a train or a VLAN tag kept beside the packet are lost to it.
//! On a real wire there are none of these. On a veth pair the other end hands over its packets as they are.

use super::error::AfXdpError;
use crate::interface::Counters;
use crate::interface::{Feature, Interface, OffloadGuard, OpenError};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The other end of a veth pair; of no meaning for other interfaces.
#[derive(Debug, Default)]
pub enum FarEnd {
    /// Look for it in this namespace; refuse if it is in another.
    #[default]
    Find,
    /// It is this one, looked up in whatever namespace it is in.
    Given(Interface),
    /// It is in another namespace, and its offloads are known to be off.
    Trusted,
}

/// Offload settings that are restored when this is dropped, and the other end if it can be asked from here.
pub(super) struct Prepared {
    pub(super) guards: Vec<OffloadGuard>,
    pub(super) found: Option<Interface>,
}

/// Turns off what AF_XDP can't carry, on the interface and on the other end.
pub(super) fn prepare(own: &Interface, far: FarEnd) -> Result<Prepared, AfXdpError> {
    let mut guards = vec![OffloadGuard::turn_off(own, &[Feature::Lro, Feature::RxVlan])?];
    if own.driver()? != "veth" {
        return Ok(Prepared { guards, found: None });
    }
    let (far, found) = match far {
        FarEnd::Trusted => return Ok(Prepared { guards, found: None }),
        FarEnd::Given(far) => (far, None),
        FarEnd::Find => {
            let far = peer(own)?.ok_or_else(|| AfXdpError::FarEnd { name: own.name().into() })?;
            (far.try_clone()?, Some(far))
        }
    };
    let features = [Feature::TxChecksum, Feature::Tso, Feature::Uso, Feature::TxVlan];
    guards.push(OffloadGuard::turn_off(&far, &features)?);
    Ok(Prepared { guards, found })
}

/// Turns off what joins frames before a generic XDP program sees them.
pub(super) fn prepare_generic(own: &Interface) -> Result<OffloadGuard, OpenError> {
    OffloadGuard::turn_off(own, &[Feature::Gro])
}

/// What the kernel loses on the way to the sockets, as its own counters tell.
pub(super) struct Lost {
    counters: Counters,
    /// The other end of a veth pair, whose frames are lost when our receive queue is full. What the near end counts
    /// the sockets count as well.
    far: Option<Interface>,
    is_veth: bool,
    before: u64,
}

impl Lost {
    /// Counts from now on; `far` is the other end of a veth pair, if it is in the calling thread's namespace.
    pub(super) fn new(own: &Interface, far: Option<Interface>) -> Result<Self, OpenError> {
        let is_veth = own.driver()? == "veth";
        let mut lost = Self { counters: Counters::open(own.name())?, far, is_veth, before: 0 };
        lost.before = lost.now(own);
        Ok(lost)
    }

    pub(super) fn since_opening(&self, own: &Interface) -> u64 {
        self.now(own).saturating_sub(self.before)
    }

    fn now(&self, own: &Interface) -> u64 {
        match (&self.far, self.is_veth) {
            (Some(far), _) => self.counters.lost(far).map_or(0, |lost| lost.sent),
            (None, true) => 0,
            (None, false) => self.counters.lost(own).map_or(0, |lost| lost.received),
        }
    }
}

/// Receive queues of an interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queues {
    pub(super) count: u32,
    /// Queues that it transmits by.
    transmit: u32,
    /// False if the driver does not say, and this is the most there can be.
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
    let Link { receive_queues, transmit_queues, .. } = Link::of(own)?;
    Ok(Queues { count: receive_queues.max(1), transmit: transmit_queues.max(1), is_exact: false })
}

impl Queues {
    /// Refuses if there is not one to receive and one to transmit for each of `ports`.
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
    let link = Link::of(own)?;
    // With a namespace's number beside it, the index is one of that namespace.
    if link.is_elsewhere || link.peer == 0 {
        return Ok(None);
    }
    let mut name = [0; libc::IFNAMSIZ];
    // SAFETY: `name` has the room that the call asks for.
    if unsafe { libc::if_indextoname(link.peer, name.as_mut_ptr()) }.is_null() {
        return Ok(None);
    }
    let name = name.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8(name).map_or(Ok(None), |name| Interface::open(&name).map(Some))
}

/// What the kernel says of a link, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Link {
    peer: u32,
    is_elsewhere: bool,
    receive_queues: u32,
    transmit_queues: u32,
}

/// `nlmsghdr` and `ifinfomsg`.
const HEAD: usize = 16 + 16;

impl Link {
    fn of(own: &Interface) -> Result<Self, OpenError> {
        let mut answer = vec![0; 1 << 16];
        let length =
            ask(own.index(), &mut answer).map_err(|e| OpenError::from_io(own.name(), "ask what it is", e))?;
        Ok(Self::parse(answer.get(..length).unwrap_or_default()))
    }

    fn parse(answer: &[u8]) -> Self {
        const PEER: u16 = 5;
        const TRANSMIT_QUEUES: u16 = 31;
        const RECEIVE_QUEUES: u16 = 32;
        const NAMESPACE: u16 = 37;
        let mut link = Self::default();
        let mut rest = answer.get(HEAD..).unwrap_or_default();
        while let Some(&[l0, l1, k0, k1]) = rest.first_chunk() {
            let length = usize::from(u16::from_ne_bytes([l0, l1]));
            let Some(value) = rest.get(4..length) else { break };
            let word = value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
            match (u16::from_ne_bytes([k0, k1]), word) {
                (PEER, Some(index)) => link.peer = index,
                (TRANSMIT_QUEUES, Some(count)) => link.transmit_queues = count,
                (RECEIVE_QUEUES, Some(count)) => link.receive_queues = count,
                (NAMESPACE, _) => link.is_elsewhere = true,
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        link
    }
}

/// Asks the kernel about a link; it has answered when the call that asks returns.
fn ask(index: u32, answer: &mut [u8]) -> io::Result<usize> {
    let mut question = [0u8; HEAD];
    question[..4].copy_from_slice(&(HEAD as u32).to_ne_bytes());
    question[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    question[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
    question[20..24].copy_from_slice(&index.to_ne_bytes());
    // SAFETY: the descriptor that socket returns is owned by nobody else; the slices are valid for their lengths.
    unsafe {
        let fd = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        let fd = socket.as_raw_fd();
        if libc::send(fd, question.as_ptr().cast(), question.len(), libc::MSG_DONTWAIT) < 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), libc::MSG_DONTWAIT) {
            length if length >= 0 => Ok(length as usize),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_needs_and_survives_the_rest() {
        let attribute = |kind: u16, word: u32| {
            [&8u16.to_ne_bytes()[..], &kind.to_ne_bytes(), &word.to_ne_bytes()].concat()
        };
        let mut answer = vec![0; HEAD];
        // A name of three bytes is padded to four.
        answer.extend([&7u16.to_ne_bytes()[..], &3u16.to_ne_bytes(), b"ab\0\0"].concat());
        answer.extend(attribute(5, 77));
        answer.extend(attribute(31, 3));
        answer.extend(attribute(32, 4));
        let link = Link { peer: 77, is_elsewhere: false, receive_queues: 4, transmit_queues: 3 };
        assert_eq!(Link::parse(&answer), link);
        answer.extend(attribute(37, 0));
        assert!(Link::parse(&answer).is_elsewhere);
        for length in 0..answer.len() {
            Link::parse(&answer[..length]);
        }
        answer.extend([0, 0, 5, 0]);
        assert_eq!(Link::parse(&answer).peer, 77);
    }

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
