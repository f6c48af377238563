//! Simulated time with several workers. They advance in windows no longer than the shortest time in which a
//! packet can cross between them, and crossing packets are merged by (time, source's place in the plan,
//! sequence), so that every decision is the one that a single worker would make.
//!
//! A link whose packets go on to another worker's link is served ahead by the length of a window (`lead`).
//! Its delay is at least that long, so everything that affects those packets has happened, and they reach the
//! other worker before the window of their arrival.
//!
//! Frames are received for one window ahead, too, so that they are where their links are when their window
//! begins. So workers meet once a window, unless nothing happened for as long as a window.

use crate::events::PendingChanges;
use crate::order::{COPIES, PIECES};
use longwire_packet::{AHEAD, Handle, Meta};
use longwire_units::Nanos;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A waiting packet, in the order of arrivals. Packets with the same time, place and sequence (such as a
/// packet and its copy) are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StagedPacket {
    pub time: u64,
    pub place: u32,
    pub seq: u64,
    number: u64,
    handle: u32,
}

impl StagedPacket {
    pub const fn handle(&self) -> Handle {
        Handle(self.handle)
    }
}

/// Packets that wait for the window of their time. They are sorted once, when it begins.
pub(crate) struct Staged {
    /// Those before `end`, the last one first.
    now: Vec<StagedPacket>,
    end: Nanos,
    /// All later ones, in no order.
    later: Vec<StagedPacket>,
    /// Earliest time among them; never if there are none.
    next: Nanos,
    /// Total number of packets so far.
    count: u64,
}

impl Staged {
    fn new() -> Self {
        let (now, later) = (Vec::new(), Vec::new());
        Self { now, end: Nanos::ZERO, later, next: Nanos::NEVER, count: 0 }
    }

    /// Adds a packet by its key: time, place in the plan, sequence.
    pub fn push(&mut self, (time, place, seq): (u64, u32, u64), handle: Handle) {
        self.count += 1;
        let packet = StagedPacket { time, place, seq, number: self.count, handle: handle.0 };
        if time < self.end.0 {
            let at = self.now.partition_point(|other| *other > packet);
            return self.now.insert(at, packet);
        }
        self.next = self.next.min(Nanos(time));
        self.later.push(packet);
    }

    /// Begins the window that ends before `end`.
    pub fn begin(&mut self, end: Nanos) {
        self.end = end;
        if self.next < end {
            self.now.extend(self.later.extract_if(.., |packet| packet.time < end.0));
            self.now.sort_unstable_by(|one, other| other.cmp(one));
            self.next = self.next_from(end);
        }
    }

    /// The first packet of the window.
    pub fn first(&self) -> Option<&StagedPacket> {
        self.now.last()
    }

    /// Takes the first packet of the window.
    pub fn pop(&mut self) -> Option<StagedPacket> {
        self.now.pop()
    }

    /// A packet of the window that follows soon.
    pub fn soon(&self) -> Option<Handle> {
        let at = self.now.len().checked_sub(AHEAD)?;
        Some(self.now[at].handle())
    }

    /// The earliest time from `from` on, which is no earlier than the end of the window.
    pub fn next_from(&self, from: Nanos) -> Nanos {
        if self.next >= from {
            return self.next;
        }
        let times = self.later.iter().map(|packet| packet.time).filter(|time| *time >= from.0);
        Nanos(times.min().unwrap_or(u64::MAX))
    }

    pub fn len(&self) -> usize {
        self.now.len() + self.later.len()
    }

    pub fn drain(&mut self) -> impl Iterator<Item = Handle> {
        self.next = Nanos::NEVER;
        self.now.drain(..).chain(self.later.drain(..)).map(|packet| packet.handle())
    }
}

/// State of a worker for simulated runs with others.
pub(crate) struct Windows {
    /// Longest window.
    pub longest: Nanos,
    pub barrier: Arc<WindowBarrier>,
    /// Packets that will arrive at links here.
    pub staged: Staged,
    /// Packets for ports here.
    pub outgoing: Staged,
    /// How many packets were handed over since the last meeting, and the earliest event of one.
    handed_over: (u64, Nanos),
    /// Place and number of the packet being processed, and how many packets have resulted from it so far:
    /// pieces and copies that leave at one time are numbered in the order in which a single worker would send
    /// them.
    pub followed: Option<((u32, u64), u64)>,
}

impl Windows {
    pub(crate) fn new(longest: Nanos, barrier: Arc<WindowBarrier>) -> Self {
        let (staged, outgoing, handed_over) = (Staged::new(), Staged::new(), (0, Nanos::NEVER));
        Self { longest, barrier, staged, outgoing, handed_over, followed: None }
    }

    /// Notes that a packet was handed over, with the time at which it enters a link, or leaves by a port.
    /// Those that leave in this window are put out after it in any case.
    pub(crate) fn note_handed_over(&mut self, time: Nanos) {
        let (count, earliest) = &mut self.handed_over;
        *count += 1;
        if time >= self.staged.end {
            *earliest = time.min(*earliest);
        }
    }

    /// How many packets were handed over since the last meeting, and the earliest event of one or of those
    /// that wait here, after a window that ended at `end`.
    pub(crate) fn next(&mut self, end: Nanos) -> (u64, Nanos) {
        let (count, earliest) = std::mem::replace(&mut self.handed_over, (0, Nanos::NEVER));
        (count, earliest.min(self.staged.next_from(end)).min(self.outgoing.next_from(end)))
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

/// What a worker announces at a meeting, or all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Announcement {
    /// The next event, packets handed over included.
    pub next: Nanos,
    /// The next change of links, if it holds packets.
    pub change: Nanos,
    /// Packets handed over since the last meeting.
    pub handed_over: u64,
    /// Whether it can't continue.
    pub failed: bool,
}

impl Announcement {
    pub const NOTHING: Self =
        Self { next: Nanos::NEVER, change: Nanos::NEVER, handed_over: 0, failed: false };

    fn with(self, other: Self) -> Self {
        Self {
            next: self.next.min(other.next),
            change: self.change.min(other.change),
            handed_over: self.handed_over.max(other.handed_over),
            failed: self.failed || other.failed,
        }
    }
}

/// Where a worker's announcement is read, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Notice {
    next: AtomicU64,
    change: AtomicU64,
    handed_over: AtomicU64,
    failed: AtomicBool,
}

/// A counter on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter(AtomicUsize);

/// The barrier at which workers end a window, with what they agree on there.
///
/// A worker that has announced itself waits for the others once, reads what they announced, and goes on. It
/// may announce itself again before all have read, so there are two notices for each, used in turns: a third
/// one comes after a meeting at which all have read the first.
pub(crate) struct WindowBarrier {
    present: Counter,
    round: Counter,
    notices: [Vec<Notice>; 2],
    /// Each worker's pending changes when nothing else is left.
    pending: Vec<Mutex<PendingChanges>>,
    /// Whether a worker has panicked, for which nobody waits any more.
    abandoned: AtomicBool,
    /// How often a waiting worker looks before it lets others use its processor.
    pub patience: u32,
}

/// A worker's part in the meetings: if it ends by a panic, the others' waits and runs end.
pub(crate) struct Presence(pub Option<Arc<WindowBarrier>>);

impl Drop for Presence {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(barrier) = &self.0
        {
            barrier.abandoned.store(true, Ordering::Relaxed);
        }
    }
}

/// Packets that a worker hands over in a window, if it has that many: enough to be worth a meeting, and few
/// enough for caches and rings.
const FEW: u64 = 512;
const MANY: u64 = 4 * FEW;

/// The length of the next window after one of `length` in which a worker handed over as many packets.
pub(crate) fn adapted(length: Nanos, handed_over: u64, longest: Nanos) -> Nanos {
    match handed_over {
        MANY.. => Nanos(length.0 / 2).max(Nanos(1)),
        FEW.. => length,
        _ => Nanos(length.0.saturating_mul(2)).min(longest),
    }
}

/// Looks of a worker, if each can have a processor of its own. They take about as long as a scheduler lets
/// another thread run: a worker that yields waits for that long when others compete.
const PATIENCE: u32 = 50_000;

impl WindowBarrier {
    pub(crate) fn of(workers: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            present: Counter::default(),
            round: Counter::default(),
            notices: [(); 2].map(|()| (0..workers).map(|_| Notice::default()).collect()),
            pending: (0..workers).map(|_| Mutex::default()).collect(),
            abandoned: AtomicBool::default(),
            patience: if workers <= processors { PATIENCE } else { 0 },
        }
    }

    /// The meeting that comes next. Its number is the same for all.
    pub fn next_round(&self) -> usize {
        self.round.0.load(Ordering::Relaxed)
    }

    /// Announces something to all that come to the next meeting.
    pub fn announce(&self, worker: u32, own: Announcement) {
        let notice = &self.notices[self.next_round() % 2][worker as usize];
        notice.next.store(own.next.0, Ordering::Relaxed);
        notice.change.store(own.change.0, Ordering::Relaxed);
        notice.handed_over.store(own.handed_over, Ordering::Relaxed);
        notice.failed.store(own.failed, Ordering::Relaxed);
    }

    /// Comes to a meeting. Whether all are there now; else [`has_been`](Self::has_been) tells.
    pub fn come(&self, round: usize) -> bool {
        if self.present.0.fetch_add(1, Ordering::AcqRel) + 1 < self.pending.len() {
            return false;
        }
        self.present.0.store(0, Ordering::Relaxed);
        self.round.0.store(round + 1, Ordering::Release);
        true
    }

    /// Whether a meeting has been held. What the others did before it can then be seen.
    pub fn has_been(&self, round: usize) -> bool {
        self.round.0.load(Ordering::Acquire) != round
    }

    /// Whether a worker comes to no meeting any more, so that none is held.
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// What all have announced for a meeting that has been held.
    pub fn announced(&self, round: usize) -> impl Iterator<Item = Announcement> {
        self.notices[round % 2].iter().map(|notice| Announcement {
            next: Nanos(notice.next.load(Ordering::Relaxed)),
            change: Nanos(notice.change.load(Ordering::Relaxed)),
            handed_over: notice.handed_over.load(Ordering::Relaxed),
            failed: notice.failed.load(Ordering::Relaxed),
        })
    }

    /// The announcements for a meeting, together.
    pub fn agreed(&self, round: usize) -> Announcement {
        self.announced(round).fold(Announcement::NOTHING, Announcement::with)
    }

    pub fn give_pending(&self, worker: u32, own: PendingChanges) {
        *self.pending[worker as usize].lock().unwrap_or_else(PoisonError::into_inner) = own;
    }

    pub fn pending(&self) -> PendingChanges {
        let each = self.pending.iter().map(|pending| *pending.lock().unwrap_or_else(PoisonError::into_inner));
        each.reduce(PendingChanges::with).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::LONGEST;
    use longwire_block::Dice;
    use longwire_packet::Pool;
    use std::collections::BTreeSet;

    /// As from a heap that sorts one packet at a time.
    #[test]
    fn staged_packets_come_in_the_order_of_their_windows() {
        let mut dice = Dice::named(1, "staged");
        let (mut staged, mut heap) = (Staged::new(), BTreeSet::new());
        let (mut begin, mut packets) = (0, 0);
        for _ in 0..300 {
            for _ in 0..dice.below(20) {
                let key = (begin + dice.below(100), dice.below(3) as u32, dice.below(3));
                staged.push(key, Handle(packets));
                heap.insert((key, packets));
                packets += 1;
            }
            let end = begin + dice.below(60);
            let later = heap.range(((end, 0, 0), 0)..).next().map_or(u64::MAX, |(key, _)| key.0);
            assert_eq!(staged.next_from(Nanos(end)), Nanos(later));
            staged.begin(Nanos(end));
            while let Some(packet) = staged.pop() {
                let (key, handle) = heap.pop_first().unwrap();
                assert_eq!((packet.time, packet.place, packet.seq), key);
                assert_eq!(packet.handle(), Handle(handle));
                assert!(packet.time < end);
                if dice.below(10) == 0 {
                    // A packet of this window that comes late.
                    let key = (end.saturating_sub(1).max(packet.time), 9, 9);
                    staged.push(key, Handle(packets));
                    heap.insert((key, packets));
                    packets += 1;
                }
            }
            assert!(heap.first().is_none_or(|(key, _)| key.0 >= end));
            assert_eq!(staged.len(), heap.len());
            begin = end;
        }
        assert!(packets > 2000, "{packets}");
        let left: BTreeSet<u32> = staged.drain().map(|handle| handle.0).collect();
        assert_eq!(left, heap.into_iter().map(|(_, handle)| handle).collect());
    }

    /// Workers that announce themselves again at once, while others still read, do not disturb them.
    #[test]
    fn all_workers_read_the_same_announcements() {
        const WORKERS: u32 = 3;
        let barrier = WindowBarrier::of(WORKERS as usize);
        std::thread::scope(|scope| {
            for worker in 0..WORKERS {
                let barrier = &barrier;
                scope.spawn(move || {
                    for number in 0..2000u64 {
                        // Each is the first, the last and the one that fails in turns.
                        let turn = (number + u64::from(worker)) % u64::from(WORKERS);
                        let (next, change) = (Nanos(10 * number + turn), Nanos(10 * number + 5 - turn));
                        let failed = number % 7 == u64::from(worker);
                        let own = Announcement { next, change, handed_over: number + turn, failed };
                        barrier.announce(worker, own);
                        let round = barrier.next_round();
                        if !barrier.come(round) {
                            while !barrier.has_been(round) {
                                std::thread::yield_now();
                            }
                        }
                        let all = Announcement {
                            next: Nanos(10 * number),
                            change: Nanos(10 * number + 3),
                            handed_over: number + 2,
                            failed: number % 7 < u64::from(WORKERS),
                        };
                        assert_eq!(barrier.agreed(round), all, "meeting {number}");
                    }
                });
            }
        });
    }

    #[test]
    fn windows_become_shorter_with_many_packets_and_longer_with_few() {
        let (length, longest) = (Nanos(1000), Nanos(1500));
        let next = |handed_over| adapted(length, handed_over, longest);
        assert_eq!([next(0), next(FEW), next(MANY - 1), next(MANY)], [longest, length, length, Nanos(500)]);
        assert_eq!(adapted(Nanos(1), u64::MAX, longest), Nanos(1));
    }

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
