//! The state shared by minimal and full IP, and their counters.

use crate::before::Before;
use crate::classify::FullIpReason;
use crate::control::Control;
use crate::fib::Fib;
use crate::neighbour::Neighbours;
use crate::next_hop::NextHop;
use crate::police::Police;
use crate::ports::Ports;
use longwire_block::{CONSUMED, DropReason, KEPT, OUTBOX, Outbox, REFUSED};
use longwire_packet::{Handle, Pool};
use longwire_settings::Choice;

/// Slots of the outbox reserved for waiting packets: new packets must not use them.
const RESERVED: usize = OUTBOX / 4 + longwire_packet::BATCH;

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes out of this port.
    Out(u16),
    /// It waits for a neighbour.
    Kept,
    /// It was addressed to the router, or fragmented.
    Consumed,
    Dropped(DropReason),
}

impl Fate {
    /// Its value in `Meta::out_port`.
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

/// Counters in packets; segments of a train are counted individually. received + made = forwarded + consumed
/// + dropped + kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub received: u64,
    pub made: u64,
    pub forwarded: u64,
    pub consumed: u64,
    pub dropped: u64,
    pub errors: u64,
    /// Not created because of lack of room.
    pub unmade: u64,
    pub exceptions: [u64; FullIpReason::ALL.len()],
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
    /// The current packet's next hop, if its program's installation sets one.
    pub bound: Option<NextHop>,
    /// The original first bytes of rewritten packets.
    pub before: Before,
    /// Identification of the next originated IPv4 packet.
    pub id: u16,
    /// Makes flows choose next hops differently than at other routers.
    pub seed: u64,
}

impl Core {
    /// Whether another packet may be created.
    pub fn may_make(out: &Outbox) -> bool {
        out.room() > RESERVED
    }

    /// Creates a packet of `len` bytes; none if there is no room. It is counted as made. Its ingress port is
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

    /// Outputs a packet that is not part of the batch.
    pub fn settle(&mut self, pool: &mut Pool, handle: Handle, fate: Fate, out: &mut Outbox) {
        self.counts.note(fate, pool.meta(handle).segments);
        if fate != Fate::Kept {
            out.put(pool, handle, fate.code());
        }
    }
}
