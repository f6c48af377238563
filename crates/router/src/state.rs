//! The state shared by minimal and full IP, and their counters.

use crate::before::Before;
use crate::classify::Why;
use crate::control::Control;
use crate::fib::Fib;
use crate::neighbour::Neighbours;
use crate::next_hop::NextHop;
use crate::police::Police;
use crate::ports::Ports;
use longwire_block::{CONSUMED, DropReason, KEPT, OUTBOX, Outbox, REFUSED};
use longwire_packet::{Handle, Pool};

/// Places in the outbox that are left for packets that wait: what is made must not take them.
const RESERVED: usize = OUTBOX / 4 + longwire_packet::BATCH;

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes out of this port.
    Out(u16),
    /// It waits for a neighbour.
    Kept,
    /// It was for the router, or others were made of it.
    Consumed,
    Dropped(DropReason),
}

impl Fate {
    /// How it is written in `Meta::out_port`.
    #[inline]
    pub const fn code(self) -> u16 {
        match self {
            Self::Out(port) => port,
            Self::Kept => KEPT,
            Self::Consumed => CONSUMED,
            Self::Dropped(reason) => REFUSED + reason as u16,
        }
    }
}

/// Packets, segments of a train one each: received + made = forwarded + consumed + dropped + kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub received: u64,
    pub made: u64,
    pub forwarded: u64,
    pub consumed: u64,
    pub dropped: u64,
    pub errors: u64,
    /// Not made for want of room.
    pub unmade: u64,
    pub exceptions: [u64; Why::ALL.len()],
}

impl Counts {
    #[inline]
    pub fn note(&mut self, fate: Fate, segments: u16) {
        let counter = match fate {
            Fate::Out(_) => &mut self.forwarded,
            Fate::Consumed => &mut self.consumed,
            Fate::Dropped(_) => &mut self.dropped,
            Fate::Kept => return,
        };
        *counter += u64::from(segments);
    }
}

/// A router without its classifier.
#[derive(Debug)]
pub(crate) struct Core {
    pub ports: Ports,
    pub fib: Fib,
    pub neighbours: Neighbours,
    pub police: Police,
    pub counts: Counts,
    /// The control plane beside it.
    pub control: Option<Box<Control>>,
    /// The next hop of the current packet by its program's installation, if any.
    pub bound: Option<NextHop>,
    /// The original headers of rewritten packets.
    pub before: Before,
    /// The identification of the next IPv4 packet that is made.
    pub id: u16,
    /// Makes flows choose among next hops in another way than at other routers.
    pub seed: u64,
}

impl Core {
    /// Whether one more packet may be made.
    pub fn may_make(out: &Outbox) -> bool {
        out.room() > RESERVED
    }

    /// A new packet of `len` bytes, none if there is no room. It is counted as made. Its port of entry is
    /// the one at `place`.
    pub fn make(&mut self, pool: &mut Pool, place: u16, len: usize, out: &mut Outbox) -> Option<Handle> {
        let handle = if Self::may_make(out) { pool.alloc(len) } else { None };
        let Some(handle) = handle else {
            self.counts.unmade += 1;
            return None;
        };
        pool.meta_mut(handle).in_port = place;
        pool.meta_mut(handle).arrival = out.time().0;
        out.count_made(1);
        self.counts.made += 1;
        Some(handle)
    }

    /// Gives out a packet that is not of the batch.
    pub fn settle(&mut self, pool: &mut Pool, handle: Handle, fate: Fate, out: &mut Outbox) {
        self.counts.note(fate, pool.meta(handle).segments);
        if fate != Fate::Kept {
            out.put(pool, handle, fate.code());
        }
    }
}
