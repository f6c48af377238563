//! Simulated time with several workers: they advance in windows no longer than the least time that a packet
//! needs to cross between them, and what crosses is merged by (time, source's place in the plan, sequence),
//! so that every decision is the one a single worker would make.
//!
//! A link whose packets go on to another worker's link is served ahead by the length of a window (`lead`):
//! its delay is at least that long, so all that decides about those packets has happened, and they reach the
//! other worker before the window in which they arrive.

use crate::events::Hope;
use crate::order::{COPIES, LONGEST, PIECES};
use longwire_packet::Meta;
use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A packet that waits for its turn: time, place, sequence; which of those that are alike in these, as a
/// packet and its copy are; handle.
type Held = Reverse<(u64, u32, u64, u64, u32)>;

/// What a worker needs for simulated runs with others.
pub(crate) struct Windows {
    /// How long a window is at most.
    pub longest: Nanos,
    pub meeting: Arc<Meeting>,
    /// Packets that arrive at links here.
    pub staged: BinaryHeap<Held>,
    /// Packets for ports here.
    pub outgoing: BinaryHeap<Held>,
    /// How many there have been of both.
    pub held: u64,
    /// Place and number of the packet that is on its way at this moment, and how many packets have come of it
    /// so far: pieces and copies that leave at one time are numbered in the order in which a single worker
    /// would send them.
    followed: Option<((u32, u64), u64)>,
}

impl Windows {
    pub(crate) fn new(lead: Nanos, meeting: Arc<Meeting>) -> Self {
        let (staged, outgoing) = (BinaryHeap::new(), BinaryHeap::new());
        Self { longest: lead.min(LONGEST), meeting, staged, outgoing, held: 0, followed: None }
    }

    /// From now on what goes on is what comes of the packet with this place and number; or of none.
    pub(crate) fn follow(&mut self, packet: Option<(u32, u64)>) {
        self.followed = packet.map(|packet| (packet, 0));
    }

    /// Gives a packet that goes on to a port, or to another worker, its number among those that come of one:
    /// one that it has let go, too, which came from elsewhere. What comes of a packet that is not a copy
    /// itself leaves room for what may come of each at another worker at the same moment; a third one comes
    /// into it at a port only.
    pub(crate) fn number(&mut self, meta: &mut Meta) {
        let Some(((place, seq), count)) = &mut self.followed else { return };
        let is_copy = !seq.is_multiple_of(COPIES);
        meta.place = *place;
        meta.seq = *seq + if is_copy { *count } else { (*count + 1) * PIECES };
        *count += 1;
    }
}

/// Where workers wait for each other.
pub(crate) struct Meeting {
    pub workers: usize,
    pub present: AtomicUsize,
    pub round: AtomicUsize,
    /// Each worker's next event, and the next change of its links if it holds packets.
    pub next: Vec<AtomicU64>,
    pub change: Vec<AtomicU64>,
    /// What each hopes for when nothing else is left.
    pub hopes: Vec<Mutex<Hope>>,
    /// Set when one of them can't go on.
    pub failed: AtomicUsize,
}

impl Meeting {
    pub(crate) fn of(workers: usize) -> Self {
        Self {
            workers,
            present: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            next: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            change: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            hopes: (0..workers).map(|_| Mutex::default()).collect(),
            failed: AtomicUsize::new(0),
        }
    }

    pub fn hope(&self) -> Hope {
        let each = self.hopes.iter().map(|hope| *hope.lock().unwrap_or_else(PoisonError::into_inner));
        each.reduce(Hope::with).unwrap_or_default()
    }
}

pub(crate) fn earliest(times: &[AtomicU64]) -> Nanos {
    Nanos(times.iter().map(|time| time.load(Ordering::SeqCst)).min().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_packet::Pool;

    /// What comes of a packet, and at another worker of what has come of it, has the order in which one
    /// worker sees to it: depth first.
    #[test]
    fn what_comes_of_what_comes_of_a_packet_precedes_the_next_that_does() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let handle = pool.insert(&[0; 60]).unwrap();
        let meta = pool.meta_mut(handle);
        let meeting = Arc::new(Meeting::of(2));
        let mut windows = Windows::new(LONGEST, meeting);
        let mut number = |place, seq, count: usize| {
            windows.follow(Some((place, seq)));
            let mut one = || {
                meta.place = 99;
                windows.number(meta);
                (meta.place, meta.seq)
            };
            (0..count).map(|_| one()).collect::<Vec<_>>()
        };
        let children = number(7, 5 * COPIES, 3);
        let grandchildren: Vec<_> =
            children.iter().flat_map(|&(place, seq)| number(place, seq, PIECES as usize)).collect();
        assert!(grandchildren.is_sorted_by(|one, other| one < other), "{grandchildren:?}");
        assert!(grandchildren.iter().all(|&(place, seq)| place == 7 && seq < 6 * COPIES));
    }
}
