//! The kernel's own counters of an interface, through one small netlink message.

use super::Interface;
use longwire_netlink::{Message, Reply, Socket, attribute};
use std::cell::RefCell;
use std::sync::Arc;

/// Frames lost by the kernel on an interface since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LostFrames {
    /// On receipt: receive backlog or ring full.
    pub(crate) received: u64,
    /// On transmission: transmit queue full.
    pub(crate) sent: u64,
}

/// Reads the counters of an interface, in the namespace in which it was looked up.
#[derive(Debug)]
pub(crate) struct Counters {
    socket: Arc<Socket>,
    question: RefCell<Message>,
}

/// Offsets in `struct rtnl_link_stats64` (linux/if_link.h).
const RX_DROPPED: usize = 6 * 8;
const TX_DROPPED: usize = 7 * 8;
const RX_MISSED: usize = 15 * 8;

/// Bytes of `struct if_stats_msg`: family, padding, index, counter mask.
const HEADER: usize = 12;
const RTM_NEWSTATS: u16 = 92;
const RTM_GETSTATS: u16 = 94;
const LINK_64: u16 = 1;

impl Counters {
    pub(crate) fn of(interface: &Interface) -> Self {
        Self { socket: Arc::clone(&interface.control), question: question(interface.index()).into() }
    }

    /// The losses of the interface; none if it is gone. Does not allocate.
    pub(crate) fn lost(&self) -> Option<LostFrames> {
        let mut buffer = [0u8; 1024];
        parse(self.socket.ask(&mut self.question.borrow_mut(), &mut buffer).ok()?)
    }
}

/// A request for the 64-bit counters of an interface.
fn question(index: u32) -> Message {
    let mut m = Message::new(RTM_GETSTATS, 0);
    m.bytes(&[0; 4]);
    m.bytes(&index.to_ne_bytes());
    m.bytes(&(1u32 << (LINK_64 - 1)).to_ne_bytes());
    m
}

fn parse(answer: Reply<'_>) -> Option<LostFrames> {
    let counters = attribute(answer.body.get(HEADER..)?, LINK_64).filter(|_| answer.kind == RTM_NEWSTATS)?;
    let counter = |at: usize| Some(u64::from_ne_bytes(counters.get(at..at + 8)?.try_into().ok()?));
    Some(LostFrames { received: counter(RX_DROPPED)? + counter(RX_MISSED)?, sent: counter(TX_DROPPED)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_loopback_and_misses_the_missing() {
        let lo = Interface::open("lo").unwrap();
        let counters = Counters::of(&lo);
        assert!(counters.lost().is_some());
        let gone = Counters::of(&Interface { index: 1 << 30, ..lo.clone() });
        assert_eq!(gone.lost(), None);
        // A reply does not disturb the next request.
        assert!(counters.lost().is_some());
    }

    #[test]
    fn a_cut_answer_is_none() {
        let mut m = Message::part();
        m.bytes(&[0; HEADER]);
        m.attribute(LINK_64, &[1; RX_MISSED + 8]);
        let whole = m.into_bytes();
        let answer = |kind, body| parse(Reply { kind, flags: 0, sequence: 1, body });
        assert!(answer(RTM_NEWSTATS, &whole).is_some());
        assert_eq!(answer(RTM_GETSTATS, &whole), None);
        for length in 0..whole.len() {
            assert_eq!(answer(RTM_NEWSTATS, &whole[..length]), None, "{length}");
        }
    }
}
