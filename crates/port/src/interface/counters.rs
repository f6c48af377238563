//! The kernel's own counters of an interface, through one small netlink message.

use super::{Interface, OpenError, netlink};
use std::os::fd::{AsFd, OwnedFd};

/// Frames the kernel lost on an interface since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lost {
    /// On their way in: receive backlog or receive ring full.
    pub(crate) received: u64,
    /// On their way out: transmit queue full.
    pub(crate) sent: u64,
}

/// Reads counters of interfaces of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Counters {
    netlink: OwnedFd,
}

/// Offsets in `struct rtnl_link_stats64` (linux/if_link.h).
const RX_DROPPED: usize = 6 * 8;
const TX_DROPPED: usize = 7 * 8;
const RX_MISSED: usize = 15 * 8;

/// `nlmsghdr` and `if_stats_msg`.
const HEAD: usize = netlink::HEADER + 12;
const RTM_NEWSTATS: u16 = 92;
const RTM_GETSTATS: u16 = 94;
const LINK_64: u16 = 1;

impl Counters {
    /// For interfaces of the calling thread's namespace.
    pub(crate) fn open(name: &str) -> Result<Self, OpenError> {
        let netlink = netlink::socket().map_err(|e| OpenError::from_io(name, "open a netlink socket", e))?;
        Ok(Self { netlink })
    }

    /// What `interface` has lost, or none if it is gone.
    pub(crate) fn lost(&self, interface: &Interface) -> Option<Lost> {
        let mut answer = [0u8; 1024];
        let length =
            netlink::exchange(self.netlink.as_fd(), &question(interface.index()), &mut answer).ok()?;
        parse(answer.get(..length)?)
    }
}

/// Asks for the 64-bit counters of one interface.
fn question(index: u32) -> [u8; HEAD] {
    let mut message = [0; HEAD];
    netlink::head(&mut message, RTM_GETSTATS, 0);
    message[20..24].copy_from_slice(&index.to_ne_bytes());
    message[24..28].copy_from_slice(&(1u32 << (LINK_64 - 1)).to_ne_bytes());
    message
}

/// The counters in the answer, if it is one.
fn parse(answer: &[u8]) -> Option<Lost> {
    let half = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    if half(4)? != RTM_NEWSTATS || half(HEAD + 2)? != LINK_64 {
        return None;
    }
    let counters = answer.get(HEAD + 4..)?;
    let counter = |at: usize| Some(u64::from_ne_bytes(counters.get(at..at + 8)?.try_into().ok()?));
    Some(Lost { received: counter(RX_DROPPED)? + counter(RX_MISSED)?, sent: counter(TX_DROPPED)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_loopback_and_misses_the_missing() {
        let lo = Interface::open("lo").unwrap();
        let counters = Counters::open("lo").unwrap();
        assert!(counters.lost(&lo).is_some());
        let gone = Interface { control: lo.control.try_clone().unwrap(), name: "x".into(), index: 1 << 30 };
        assert_eq!(counters.lost(&gone), None);
        // The answer to the one does not disturb the next.
        assert!(counters.lost(&lo).is_some());
    }

    #[test]
    fn a_cut_answer_is_none() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[0; 64]), None);
    }
}
