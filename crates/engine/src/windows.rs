//! Simulated time with several workers: they advance in windows no longer than the least time that a packet needs to
//! cross between them, and what crosses is merged by (time, source's place in the plan, sequence), so that every
//! decision is the one a single worker would make.
//!
//! A link whose packets go on to another worker's link is served ahead by the length of a window (`lead`): its delay is
//! at least that long, so all that decides about those packets has happened, and they reach the other worker before
//! the window in which they arrive.

use crate::events::Hope;
use crate::intake::{COPIES, PIECES, order_key};
use crate::pump::Arrivals;
use crate::walk::Next;
use crate::worker::Worker;
use longwire_block::path::UNDECIDED;
use longwire_block::{DropReason, FLOOD};
use longwire_packet::{Handle, Meta};
use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest window, so that not too much input is taken in at once.
pub(crate) const LONGEST: Nanos = Nanos::from_millis(10);

/// A packet that waits for its turn: time, place, sequence; which of those that are alike in these, as a packet and its copy are;
/// handle.
type Held = Reverse<(u64, u32, u64, u64, u32)>;

/// What a worker needs for simulated runs with others.
pub(crate) struct Windows {
    /// How long a window is at most.
    longest: Nanos,
    meeting: Arc<Meeting>,
    /// Packets that arrive at links here.
    staged: BinaryHeap<Held>,
    /// Packets for ports here.
    outgoing: BinaryHeap<Held>,
    /// How many there have been of both.
    held: u64,
    /// Place and number of the packet that is on its way at this moment, and how many packets have come of it so far: pieces and copies that
    /// leave at one time are numbered in the order in which a single worker would send them.
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

    /// Gives a packet that goes on to a port, or to another worker, its number among those that come of one: one that it has let go, too, which
    /// came from elsewhere. What comes of a packet that is not a copy itself
    /// leaves room for what may come of each at another worker at the same moment; a third one comes into it at a port only.
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
    workers: usize,
    present: AtomicUsize,
    round: AtomicUsize,
    /// Each worker's next event, and the next change of its links if it holds packets.
    next: Vec<AtomicU64>,
    change: Vec<AtomicU64>,
    /// What each hopes for when nothing else is left.
    hopes: Vec<Mutex<Hope>>,
    /// Set when one of them can't go on.
    failed: AtomicUsize,
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

    fn hope(&self) -> Hope {
        let each = self.hopes.iter().map(|hope| *hope.lock().unwrap_or_else(PoisonError::into_inner));
        each.reduce(Hope::with).unwrap_or_default()
    }
}

fn earliest(times: &[AtomicU64]) -> Nanos {
    Nanos(times.iter().map(|time| time.load(Ordering::SeqCst)).min().unwrap_or(u64::MAX))
}

impl Worker {
    /// Runs in windows until nothing is left to happen, or `until` is reached, and answers when the run ended; nothing if a pool was full.
    pub(crate) fn run_windows(&mut self, until: Nanos) -> Option<Nanos> {
        let windows = self.windows.as_ref()?;
        let (meeting, longest) = (Arc::clone(&windows.meeting), windows.longest);
        self.emulation.end_at(until);
        loop {
            let own = self.index as usize;
            let change = if self.pool.live() > 0 { self.schedules.links.next() } else { Nanos::NEVER };
            meeting.change[own].store(change.0, Ordering::SeqCst);
            meeting.next[own].store(self.bound(until).0, Ordering::SeqCst);
            self.meet(&meeting);
            let (next, change) = (earliest(&meeting.next), earliest(&meeting.change));
            let failed = meeting.failed.load(Ordering::SeqCst) > 0;
            self.meet(&meeting);
            if failed {
                return None;
            }
            let hoping = next > until;
            let start = if hoping { self.hope_together(&meeting) } else { next.min(change) };
            if start > until {
                return Some(self.end_together(&meeting, until));
            }
            if !hoping {
                self.schedules.links.stir();
            }
            // What is hoped for is tried one by one: the next may be given up.
            let end = (start + if hoping { Nanos(1) } else { longest }).min(until + Nanos(1));
            self.take_in(end);
            self.meet(&meeting);
            self.stage_from_rings();
            self.pump(Arrivals::Staged, start, Nanos(end.0 - 1));
            self.meet(&meeting);
            self.stage_from_rings();
            self.put_out_before(end);
            if self.lost_anything() {
                meeting.failed.store(1, Ordering::SeqCst);
            }
        }
    }

    /// The next change that is waited for if nothing but changes is left to happen anywhere.
    fn hope_together(&mut self, meeting: &Meeting) -> Nanos {
        let own = self.hope();
        *meeting.hopes[self.index as usize].lock().unwrap_or_else(PoisonError::into_inner) = own;
        self.meet(meeting);
        let all = meeting.hope();
        self.meet(meeting);
        all.time()
    }

    /// When the run ends for all workers: when it was to, or at the last event.
    fn end_together(&mut self, meeting: &Meeting, until: Nanos) -> Nanos {
        meeting.next[self.index as usize].store(self.end(until).0, Ordering::SeqCst);
        self.meet(meeting);
        Nanos(meeting.next.iter().map(|time| time.load(Ordering::SeqCst)).max().unwrap_or(until.0))
    }

    /// Waits until all workers are here, emptying the rings meanwhile so that nobody waits for room in one.
    fn meet(&mut self, meeting: &Meeting) {
        let round = meeting.round.load(Ordering::SeqCst);
        if meeting.present.fetch_add(1, Ordering::SeqCst) + 1 == meeting.workers {
            meeting.present.store(0, Ordering::SeqCst);
            meeting.round.store(round + 1, Ordering::SeqCst);
            return;
        }
        while meeting.round.load(Ordering::SeqCst) == round {
            self.stage_from_rings();
            std::thread::yield_now();
        }
    }

    /// A time before which nothing happens here.
    fn bound(&mut self, until: Nanos) -> Nanos {
        let held = self.windows.iter().flat_map(|windows| [windows.staged.peek(), windows.outgoing.peek()]);
        let held = held.flatten().map(|Reverse((time, ..))| *time).min().unwrap_or(u64::MAX);
        self.next_frame(until).min(self.emulation.wheel.bound()).min(self.nodes.turns.next).min(Nanos(held))
    }

    /// When the next frame comes in by a port here, or a node that does not wait for its turn wants to be told the time.
    pub(crate) fn next_arrival(&mut self) -> Nanos {
        self.ports.next_arrival().min(self.nodes.next_out_of_turn())
    }

    /// Takes in what arrives by ports before `end`, in the order of time, and sends it to where its link is.
    fn take_in(&mut self, end: Nanos) {
        loop {
            let next = self.next_frame(Nanos(end.0 - 1));
            if next >= end {
                return;
            }
            self.emulation.seen = self.emulation.seen.max(next);
            self.ingest(next, Nanos::ZERO);
            let mut ready = std::mem::take(&mut self.intake.ready);
            ready.drain(..).for_each(|handle| self.route(handle));
            self.intake.ready = ready;
        }
    }

    /// Stages a packet that arrives at a link here, or waits for its turn at a node here; anything else goes where `enter` sends it.
    fn route(&mut self, handle: Handle) {
        let meta = self.pool.meta(handle);
        let worker = match self.map.paths.link(meta.path) {
            Some(link) => Some(link.worker()),
            None if meta.path == UNDECIDED => Some(self.map.homes[usize::from(meta.in_port)].worker),
            None => None,
        };
        if worker == Some(self.index) {
            self.stage(handle);
        } else {
            self.walk(Next::Enter, handle);
        }
    }

    fn stage(&mut self, handle: Handle) {
        let (time, place, seq) = order_key(&self.pool, handle);
        if let Some(windows) = &mut self.windows {
            windows.held += 1;
            windows.staged.push(Reverse((time, place, seq, windows.held, handle.0)));
        }
    }

    /// Stages everything that other workers have handed over.
    pub(crate) fn stage_from_rings(&mut self) {
        self.drain_rings(Self::route);
    }

    /// Keeps a packet for a port here until its window is over.
    pub(crate) fn hold_back(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        if let Some(windows) = &mut self.windows {
            windows.number(meta);
            windows.held += 1;
            windows.outgoing.push(Reverse((meta.leave(), meta.place, meta.seq, windows.held, handle.0)));
        }
    }

    /// Whether links here hold packets that are more than background traffic, or will: what has left them waits for its port.
    pub(crate) fn links_hold_packets(&self) -> bool {
        let outgoing = self.windows.as_ref().map_or(0, |windows| windows.outgoing.len());
        self.real_packets() > outgoing as u64
    }

    /// The first packet that is staged, and when it arrives, in which place.
    pub(crate) fn first_staged(&self) -> Option<((u64, u32), Handle)> {
        let Reverse((time, place, .., handle)) = self.windows.as_ref()?.staged.peek()?;
        Some(((*time, *place), Handle(*handle)))
    }

    /// Lets the first packet that is staged enter.
    pub(crate) fn enter_staged(&mut self) {
        let first = self.windows.as_mut().and_then(|windows| windows.staged.pop());
        if let Some(Reverse((_, place, seq, _, handle))) = first {
            self.follow(Some((place, seq)));
            self.enter(Handle(handle));
            self.follow(None);
        }
    }

    /// Notes which packet is on its way, in windows.
    pub(crate) fn follow(&mut self, packet: Option<(u32, u64)>) {
        if let Some(windows) = &mut self.windows {
            windows.follow(packet);
        }
    }

    /// Sends a packet on that has left a link ahead of its time: it is not there yet, but all that decides about it is known.
    pub(crate) fn go_ahead(&mut self, handle: Handle) {
        let out_port = self.pool.meta(handle).out_port;
        if self.advance(handle) {
            self.route(handle);
        } else if let Some(far) = self.map.joints.far_side(out_port) {
            self.come_in(handle, far);
            self.route(handle);
        } else if out_port == FLOOD {
            self.fork(handle, Self::route);
        } else {
            self.egress(handle);
        }
    }

    /// Sends what leaves before `end`, in order.
    fn put_out_before(&mut self, end: Nanos) {
        while let Some(windows) = &mut self.windows
            && let Some(&Reverse((time, .., handle))) = windows.outgoing.peek()
            && time < end.0
        {
            windows.outgoing.pop();
            let home = self.map.homes[usize::from(self.pool.meta(Handle(handle)).out_port)];
            self.put_out(home.slot as usize, Handle(handle));
        }
        self.flush_ports();
    }

    /// Drops what still waited when the run was stopped.
    pub(crate) fn drop_held_back(&mut self) {
        let Some(windows) = &mut self.windows else { return };
        let held = windows.staged.drain().chain(windows.outgoing.drain());
        let held: Vec<_> = held.map(|Reverse((.., handle))| Handle(handle)).collect();
        held.into_iter().for_each(|handle| self.drop(handle, DropReason::Stopped));
    }

    /// Whether the pool was full: a simulated run ends then, because its trace would depend on the pool.
    pub(crate) fn lost_anything(&self) -> bool {
        self.books.flow.drops[DropReason::PoolFull as usize] > 0 || self.ports.lost_anything()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_packet::Pool;

    /// What comes of a packet, and at another worker of what has come of it, has the order in which one worker sees to it: depth first.
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
