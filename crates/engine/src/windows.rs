//! Simulated time with several workers. They advance in windows no longer than the shortest time in which a
//! packet can cross between them, and crossing packets are merged by (time, source's place in the plan,
//! sequence), so that every decision is the one that a single worker would make.
//!
//! A link whose packets go on to another worker's link is served ahead by the length of a window (`lead`).
//! Its delay is at least that long, so everything that affects those packets has happened, and they reach the
//! other worker before the window of their arrival.

use crate::events::PendingChanges;
use crate::order::{COPIES, LONGEST, PIECES};
use longwire_packet::Meta;
use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A waiting packet: time, place, sequence, number among packets with the same three values (such as a packet
/// and its copy), handle.
type StagedPacket = Reverse<(u64, u32, u64, u64, u32)>;

/// State of a worker for simulated runs with others.
pub(crate) struct Windows {
    /// Longest window.
    pub longest: Nanos,
    pub barrier: Arc<WindowBarrier>,
    /// Packets that will arrive at links here.
    pub staged: BinaryHeap<StagedPacket>,
    /// Packets for ports here.
    pub outgoing: BinaryHeap<StagedPacket>,
    /// Total number of both so far.
    pub held: u64,
    /// Place and number of the packet being processed, and how many packets have resulted from it so far:
    /// pieces and copies that leave at one time are numbered in the order in which a single worker would send
    /// them.
    followed: Option<((u32, u64), u64)>,
}

impl Windows {
    pub(crate) fn new(lead: Nanos, barrier: Arc<WindowBarrier>) -> Self {
        let (staged, outgoing) = (BinaryHeap::new(), BinaryHeap::new());
        Self { longest: lead.min(LONGEST), barrier, staged, outgoing, held: 0, followed: None }
    }

    /// Sets the packet (place and number) whose results are numbered from here on; or none.
    pub(crate) fn follow(&mut self, packet: Option<(u32, u64)>) {
        self.followed = packet.map(|packet| (packet, 0));
    }

    /// Numbers a packet that goes on to a port or to another worker, among the results of the current packet.
    /// A result of an original packet leaves room for results at another worker at the same moment; a third
    /// worker is involved at a port only.
    pub(crate) fn number(&mut self, meta: &mut Meta) {
        let Some(((place, seq), count)) = &mut self.followed else { return };
        let is_copy = !seq.is_multiple_of(COPIES);
        meta.place = *place;
        meta.seq = *seq + if is_copy { *count } else { (*count + 1) * PIECES };
        *count += 1;
    }
}

/// The barrier at which workers end a window, with what they agree on there.
pub(crate) struct WindowBarrier {
    pub workers: usize,
    pub present: AtomicUsize,
    pub round: AtomicUsize,
    /// Each worker's next event, and its next change of links if it holds packets.
    pub next: Vec<AtomicU64>,
    pub change: Vec<AtomicU64>,
    /// Each worker's pending changes when nothing else is left.
    pub pending: Vec<Mutex<PendingChanges>>,
    /// Not zero once a worker can't continue.
    pub failed: AtomicUsize,
}

impl WindowBarrier {
    pub(crate) fn of(workers: usize) -> Self {
        Self {
            workers,
            present: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            next: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            change: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            pending: (0..workers).map(|_| Mutex::default()).collect(),
            failed: AtomicUsize::new(0),
        }
    }

    pub fn pending(&self) -> PendingChanges {
        let each = self.pending.iter().map(|pending| *pending.lock().unwrap_or_else(PoisonError::into_inner));
        each.reduce(PendingChanges::with).unwrap_or_default()
    }
}

pub(crate) fn earliest(times: &[AtomicU64]) -> Nanos {
    Nanos(times.iter().map(|time| time.load(Ordering::SeqCst)).min().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_packet::Pool;

    /// Results of a packet, and their results at another worker, have the order of a single worker: depth
    /// first.
    #[test]
    fn what_comes_of_what_comes_of_a_packet_precedes_the_next_that_does() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let handle = pool.insert(&[0; 60]).unwrap();
        let meta = pool.meta_mut(handle);
        let barrier = Arc::new(WindowBarrier::of(2));
        let mut windows = Windows::new(LONGEST, barrier);
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
