//! Neighbours: MAC addresses of next hops, by ARP (RFC 826) and neighbour discovery (RFC 4861, 7.3, reduced).
//!
//! A neighbour is *incomplete* while it is being resolved, *reachable* for a while after it has answered,
//! then *stale*: still used, but probed at its next use. One that does not answer three times is removed. RFC
//! 4861's DELAY state is left out, because a router gets no hints from transports. Addresses are 128-bit
//! numbers, as by [`crate::neighbour_key`].
//!
//! Everything is bounded: neighbours, pending requests, waiting packets.
//!
//! - Pending neighbours, and those learned from unsolicited messages, have their own shares, and do not evict
//!   neighbours that have answered.
//! - In a full table, ports above their share make room for ports below theirs: a station that answers for
//!   any number of addresses evicts no other port's neighbours.
//! - A new neighbour of a port that has its share replaces the one of this port that has not answered for
//!   longest, if that is at least twice the reachable time.

mod noted;
mod room;
mod shares;
mod slots;

use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;
use shares::Shares;
use slots::Slots;

/// Limits and times of a router's neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourLimits {
    /// Maximum number of neighbours, with 48 bytes each, and at least as much free.
    pub neighbours: usize,
    /// Maximum number of pending requests; the last quarter is for gateways.
    pub asked: usize,
    /// Packets that may wait for one neighbour.
    pub queue: u16,
    /// Packets that may wait for all neighbours together, at most [`longwire_block::OUTBOX`] / 4.
    pub kept: u64,
    /// How long a neighbour that has answered is reachable (RFC 4861, 10: 30 s).
    pub reachable: Nanos,
    /// Time between requests (RFC 4861, 10: 1 s).
    pub retransmit: Nanos,
    /// Requests before it gives up (RFC 4861, 10: 3).
    pub tries: u8,
    /// Time without an answer after which a neighbour makes room for another.
    pub forget: Nanos,
}

impl Default for NeighbourLimits {
    /// 4096 neighbours, 256 pending requests, 16 packets for each and 512 for all, RFC 4861's times, and ten
    /// minutes.
    fn default() -> Self {
        Self {
            neighbours: 4096,
            asked: 256,
            queue: 16,
            kept: 512,
            reachable: Nanos::from_secs(30),
            retransmit: Nanos::from_secs(1),
            tries: 3,
            forget: Nanos::from_secs(600),
        }
    }
}

/// The state of a next hop's resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    Known([u8; 6]),
    /// Known, but due for a probe.
    Doubtful([u8; 6]),
    Unknown,
}

impl Resolution {
    /// The MAC address, if there is one.
    pub const fn mac(self) -> Option<[u8; 6]> {
        match self {
            Self::Known(mac) | Self::Doubtful(mac) => Some(mac),
            Self::Unknown => None,
        }
    }
}

/// Kind of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerFlags {
    /// An answer to a request.
    pub solicited: bool,
    /// It replaces a different known MAC address.
    pub overrides: bool,
    /// It adds unknown neighbours.
    pub creates: bool,
}

/// Work that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DueWork {
    /// Send a request: to its MAC address if that is known.
    Ask { port: u16, address: u128, mac: Option<[u8; 6]>, is_gateway: bool },
    /// The control plane knows it; these packets waited for it.
    Noted { port: u16, mac: [u8; 6], waiting: Waiting },
    /// It did not answer; these packets waited for it.
    GivenUp { port: u16, address: u128, waiting: Waiting },
}

/// Packets that waited for a neighbour, linked through their metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    first: Handle,
}

impl Waiting {
    pub const NONE: Self = Self { first: Handle::NONE };

    /// Removes the first packet.
    pub fn pop(&mut self, pool: &Pool) -> Option<Handle> {
        let first = self.first;
        if first.is_none() {
            return None;
        }
        self.first = Handle(pool.meta(first).next);
        Some(first)
    }
}

/// A pending neighbour, and the time of the next request.
#[derive(Debug, Clone, Copy)]
struct PendingRequest {
    due: Nanos,
    port: u16,
    address: u128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum NeighbourState {
    #[default]
    Free,
    Incomplete,
    Reachable,
    Stale,
    Probe,
    Permanent,
}

impl NeighbourState {
    /// Whether a request is pending.
    fn is_asked(self) -> bool {
        matches!(self, Self::Incomplete | Self::Probe)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    address: u128,
    /// Time of its last answer, or of its creation.
    confirmed: Nanos,
    first: Handle,
    last: Handle,
    port: u16,
    waiting: u16,
    mac: [u8; 6],
    state: NeighbourState,
    tries: u8,
    /// It was learned from unsolicited messages only.
    unasked: bool,
    /// It is a gateway of routes.
    is_gateway: bool,
}

/// Most slots that a search visits.
const REACH: usize = 32;

#[derive(Debug)]
pub(crate) struct Neighbours {
    slots: Slots,
    shift: u32,
    seed: u64,
    limits: NeighbourLimits,
    used: usize,
    unasked: usize,
    held: Shares,
    /// Next slot of the search for room.
    swept: usize,
    asked: Vec<PendingRequest>,
    due: Nanos,
    kept: u64,
}

impl Neighbours {
    /// An empty table, for a router with ports at these `places`, in order. `seed` makes hash positions
    /// unpredictable.
    pub fn new(limits: NeighbourLimits, places: &[u16], seed: u64) -> Self {
        let homes = (limits.neighbours.max(1) * 2).next_power_of_two();
        Self {
            slots: Slots::new(homes + REACH),
            shift: u64::BITS - homes.trailing_zeros(),
            seed,
            limits,
            used: 0,
            unasked: 0,
            held: Shares::new(limits.neighbours, places),
            swept: 0,
            asked: Vec::with_capacity(limits.asked),
            due: Nanos::NEVER,
            kept: 0,
        }
    }

    /// The MAC address of a neighbour.
    #[inline]
    pub fn find(&self, port: u16, address: u128, now: Nanos) -> Resolution {
        self.find_until(port, address, now).0
    }

    /// The MAC address of a neighbour and the end of its validity, while [`Neighbours::revision`] is
    /// unchanged.
    #[inline]
    pub fn find_until(&self, port: u16, address: u128, now: Nanos) -> (Resolution, Nanos) {
        let Some(at) = self.place(port, address) else { return (Resolution::Unknown, Nanos::NEVER) };
        let slot = &self.slots[at];
        let until = match slot.state {
            NeighbourState::Permanent | NeighbourState::Probe => Nanos::NEVER,
            NeighbourState::Reachable => slot.confirmed + self.limits.reachable,
            NeighbourState::Stale => now,
            NeighbourState::Free | NeighbourState::Incomplete => return (Resolution::Unknown, Nanos::NEVER),
        };
        let found = if now < until { Resolution::Known(slot.mac) } else { Resolution::Doubtful(slot.mac) };
        (found, until)
    }

    /// A number that grows whenever the result of [`Neighbours::find`] may change, other than with time.
    #[inline]
    pub fn revision(&self) -> u64 {
        self.slots.changes()
    }

    /// Makes a packet wait for a neighbour. Gateways of routes are still resolved when too many requests or
    /// packets are for strangers' addresses. Returns whether to send a request now, or that there is no room.
    pub fn keep(
        &mut self,
        pool: &mut Pool,
        (port, address, is_gateway): (u16, u128, bool),
        handle: Handle,
        now: Nanos,
    ) -> Option<bool> {
        let most = if is_gateway { self.limits.asked } else { self.limits.asked / 4 * 3 };
        let is_full = self.kept >= self.limits.kept;
        if is_full && !is_gateway {
            return None;
        }
        let known = self.place(port, address);
        let at = match known {
            Some(at) => at,
            None if self.asked.len() >= most => return None,
            None => {
                let slot = Slot {
                    address,
                    port,
                    state: NeighbourState::Incomplete,
                    tries: 1,
                    confirmed: now,
                    is_gateway,
                    ..Slot::default()
                };
                let at = self.insert(slot, now)?;
                self.ask_at(port, address, now + self.limits.retransmit);
                at
            }
        };
        let slot = self.slots.change(at);
        slot.is_gateway |= is_gateway;
        if is_full || slot.waiting >= self.limits.queue {
            return None;
        }
        pool.meta_mut(handle).next = Handle::NONE.0;
        if slot.first.is_none() {
            slot.first = handle;
        } else {
            pool.meta_mut(slot.last).next = handle.0;
        }
        slot.last = handle;
        slot.waiting += 1;
        self.kept += u64::from(pool.meta(handle).segments);
        Some(known.is_none())
    }

    /// Starts probing a neighbour. False if there are too many requests: it stays doubtful.
    pub fn probe(&mut self, port: u16, address: u128, now: Nanos) -> bool {
        let Some(at) = self.place(port, address).filter(|_| self.asked.len() < self.limits.asked) else {
            return false;
        };
        let slot = self.slots.change(at);
        (slot.state, slot.tries) = (NeighbourState::Probe, 1);
        self.ask_at(port, address, now + self.limits.retransmit);
        true
    }

    /// Whether there is a pending request for the neighbour.
    pub fn is_asked(&self, port: u16, address: u128) -> bool {
        self.place(port, address).is_some_and(|at| self.slots[at].state.is_asked())
    }

    /// Stores the MAC address of a neighbour. Returns the packets that waited for it.
    pub fn learn(
        &mut self,
        port: u16,
        address: u128,
        mac: [u8; 6],
        flags: AnswerFlags,
        now: Nanos,
    ) -> Waiting {
        let Some(at) = self.place(port, address) else {
            if flags.creates && self.unasked < self.limits.neighbours / 4 {
                let slot = Slot {
                    address,
                    port,
                    mac,
                    state: NeighbourState::Stale,
                    confirmed: now,
                    unasked: true,
                    ..Slot::default()
                };
                self.unasked += usize::from(self.insert(slot, now).is_some());
            }
            return Waiting::NONE;
        };
        let slot = self.slots.change(at);
        match slot.state {
            NeighbourState::Permanent => return Waiting::NONE,
            NeighbourState::Incomplete => {}
            _ if slot.mac == mac && !flags.solicited => return Waiting::NONE,
            _ if slot.mac == mac || flags.overrides => {}
            NeighbourState::Reachable => {
                // RFC 4861, 7.2.5: a different address without override makes the known one stale.
                slot.state = NeighbourState::Stale;
                return Waiting::NONE;
            }
            _ => return Waiting::NONE,
        }
        let was_asked = slot.state.is_asked();
        slot.state = if flags.solicited { NeighbourState::Reachable } else { NeighbourState::Stale };
        (slot.mac, slot.confirmed) = (mac, now);
        if flags.solicited && slot.unasked {
            slot.unasked = false;
            self.unasked -= 1;
        }
        let waiting = self.unqueue(at);
        if was_asked {
            self.stop_asking(port, address);
        }
        waiting
    }

    /// Adds a permanent neighbour. False if there is no room, or it is being resolved.
    pub fn set(&mut self, port: u16, address: u128, mac: [u8; 6]) -> bool {
        if let Some(at) = self.place(port, address) {
            let slot = self.slots.change(at);
            if slot.state.is_asked() {
                return false;
            }
            self.unasked -= usize::from(slot.unasked);
            (slot.mac, slot.state, slot.unasked) = (mac, NeighbourState::Permanent, false);
            return true;
        }
        let new = Slot { address, port, mac, state: NeighbourState::Permanent, ..Slot::default() };
        self.insert(new, Nanos::ZERO).is_some()
    }

    /// Time of the next due work.
    #[inline]
    pub fn deadline(&self) -> Nanos {
        self.due
    }

    /// The next work due by `now`.
    pub fn next_due(&mut self, now: Nanos) -> Option<DueWork> {
        if self.due > now {
            return None;
        }
        let first = (0..self.asked.len()).min_by_key(|&at| (self.asked[at].due, at))?;
        let PendingRequest { due, port, address } = self.asked[first];
        let at = self.place(port, address);
        let mut is_asked = false;
        if let Some(at) = at {
            let slot = self.slots.change(at);
            is_asked = slot.state.is_asked();
            if is_asked && slot.tries < self.limits.tries {
                slot.tries += 1;
                let mac = (slot.state == NeighbourState::Probe).then_some(slot.mac);
                let is_gateway = slot.is_gateway;
                self.asked[first].due = due.max(now) + self.limits.retransmit;
                self.note_due();
                return Some(DueWork::Ask { port, address, mac, is_gateway });
            }
        }
        self.asked.remove(first);
        self.note_due();
        // Pending neighbours are never evicted; if one were, it must not stay due forever.
        let Some(at) = at else { return self.next_due(now) };
        let (mac, waiting) = (self.slots[at].mac, self.unqueue(at));
        if !is_asked {
            return Some(DueWork::Noted { port, mac, waiting });
        }
        self.remove(at);
        Some(DueWork::GivenUp { port, address, waiting })
    }

    /// Packets that wait; segments of a train count one each.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Ends the wait of a packet.
    pub fn release(&mut self, segments: u16) {
        self.kept -= u64::from(segments);
    }

    /// Numbers of neighbours, and of those being resolved.
    pub fn counts(&self) -> (usize, usize) {
        (self.used, self.asked.len())
    }

    fn ask_at(&mut self, port: u16, address: u128, due: Nanos) {
        self.asked.push(PendingRequest { due, port, address });
        self.due = self.due.min(due);
    }

    fn stop_asking(&mut self, port: u16, address: u128) {
        self.asked.retain(|asked| (asked.port, asked.address) != (port, address));
        self.note_due();
    }

    fn note_due(&mut self) {
        self.due = self.asked.iter().map(|asked| asked.due).min().unwrap_or(Nanos::NEVER);
    }

    fn unqueue(&mut self, at: usize) -> Waiting {
        let slot = self.slots.change(at);
        let waiting = Waiting { first: slot.first };
        (slot.first, slot.last, slot.waiting) = (Handle::NONE, Handle::NONE, 0);
        waiting
    }

    #[inline]
    fn place(&self, port: u16, address: u128) -> Option<usize> {
        let home = self.home(port, address);
        for (at, slot) in self.slots[home..home + REACH].iter().enumerate() {
            if slot.state == NeighbourState::Free {
                return None;
            }
            if slot.address == address && slot.port == port {
                return Some(home + at);
            }
        }
        None
    }

    /// Frees a slot and moves those behind it up.
    fn remove(&mut self, at: usize) {
        self.unasked -= usize::from(self.slots[at].unasked);
        self.held.give_back(self.slots[at].port);
        let mut hole = at;
        for next in at + 1..self.slots.len() {
            let slot = self.slots[next];
            if slot.state == NeighbourState::Free {
                break;
            }
            if self.home(slot.port, slot.address) <= hole {
                *self.slots.change(hole) = slot;
                hole = next;
            }
        }
        *self.slots.change(hole) = Slot::default();
        self.used -= 1;
    }

    #[inline]
    fn home(&self, port: u16, address: u128) -> usize {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let low = (address as u64 ^ self.seed).wrapping_mul(ODD);
        let high = ((address >> 64) as u64 ^ u64::from(port) ^ low.rotate_left(32)).wrapping_mul(ODD);
        ((high ^ high >> 29).wrapping_mul(ODD) >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u128 = 0xffff << 32 | 0x0a00_0001;
    const PORTS: [u16; 4] = [2, 3, 4, 5];
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const ANSWER: AnswerFlags = AnswerFlags { solicited: true, overrides: true, creates: false };
    const QUESTION: AnswerFlags = AnswerFlags { solicited: false, overrides: true, creates: true };
    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Nanos {
        Nanos(seconds * SECOND)
    }

    fn waiting(pool: &Pool, mut waiting: Waiting) -> Vec<Handle> {
        std::iter::from_fn(|| waiting.pop(pool)).collect()
    }

    #[test]
    fn what_is_known_holds_until_it_is_said_to() {
        let mut table = Neighbours::new(NeighbourLimits::default(), &PORTS, 1);
        assert_eq!(table.find_until(3, A, at(1)).0, Resolution::Unknown);
        let mut last = table.revision();
        let mut has_changed = |table: &Neighbours| std::mem::replace(&mut last, table.revision()) != last;
        table.learn(3, A, MAC, AnswerFlags { creates: true, ..ANSWER }, at(1));
        assert!(has_changed(&table));
        table.learn(3, A, MAC, ANSWER, at(1));
        assert!(has_changed(&table));
        assert_eq!(table.find_until(3, A, at(5)), (Resolution::Known(MAC), at(31)));
        assert!(!has_changed(&table));
        assert_eq!(table.find_until(3, A, at(31)), (Resolution::Doubtful(MAC), at(31)));
        assert!(table.probe(3, A, at(31)) && has_changed(&table));
        assert_eq!(table.find_until(3, A, at(31)), (Resolution::Known(MAC), Nanos::NEVER));
        (32..40).for_each(|second| while table.next_due(at(second)).is_some() {});
        assert!(has_changed(&table));
        assert_eq!(table.find_until(3, A, at(31)).0, Resolution::Unknown);
    }

    #[test]
    fn packets_wait_for_the_answer_in_order() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut table =
            Neighbours::new(NeighbourLimits { queue: 2, ..NeighbourLimits::default() }, &PORTS, 1);
        let packets: Vec<_> = (0..3).map(|_| pool.alloc(60).unwrap()).collect();
        let mut keep = |packet: usize| table.keep(&mut pool, (3, A, false), packets[packet], at(1));
        assert_eq!((keep(0), keep(1), keep(2)), (Some(true), Some(false), None));
        assert_eq!((table.kept(), table.deadline(), table.counts()), (2, at(2), (1, 1)));
        assert!(table.is_asked(3, A) && !table.is_asked(4, A));
        assert_eq!(table.find(3, A, at(1)), Resolution::Unknown);
        let answered = table.learn(3, A, MAC, ANSWER, at(1));
        assert_eq!(waiting(&pool, answered), packets[..2]);
        assert_eq!(
            (table.find(3, A, at(1)), table.find(4, A, at(1))),
            (Resolution::Known(MAC), Resolution::Unknown)
        );
        assert_eq!((table.deadline(), table.counts()), (Nanos::NEVER, (1, 0)));
    }

    #[test]
    fn who_does_not_answer_three_times_is_given_up() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut table = Neighbours::new(NeighbourLimits::default(), &PORTS, 1);
        let packet = pool.alloc(60).unwrap();
        table.keep(&mut pool, (3, A, false), packet, at(1));
        let ask = Some(DueWork::Ask { port: 3, address: A, mac: None, is_gateway: false });
        assert_eq!(table.next_due(Nanos(at(2).0 - 1)), None);
        assert_eq!((table.next_due(at(2)), table.next_due(at(2)), table.next_due(at(3))), (ask, None, ask));
        let Some(DueWork::GivenUp { waiting: packets, .. }) = table.next_due(at(4)) else { panic!() };
        assert_eq!(waiting(&pool, packets), [packet]);
        assert_eq!((table.deadline(), table.counts()), (Nanos::NEVER, (0, 0)));
    }

    #[test]
    fn a_stale_neighbour_is_used_and_asked() {
        let mut table = Neighbours::new(NeighbourLimits::default(), &PORTS, 1);
        table.learn(3, A, MAC, QUESTION, at(0));
        assert_eq!(table.find(3, A, at(0)), Resolution::Doubtful(MAC));
        assert!(table.probe(3, A, at(0)));
        assert_eq!(table.find(3, A, at(0)), Resolution::Known(MAC), "while it is asked");
        assert_eq!(
            table.next_due(at(1)),
            Some(DueWork::Ask { port: 3, address: A, mac: Some(MAC), is_gateway: false })
        );
        table.learn(3, A, MAC, ANSWER, at(1));
        assert_eq!(table.find(3, A, Nanos(at(31).0 - 1)), Resolution::Known(MAC));
        assert_eq!(table.find(3, A, at(31)), Resolution::Doubtful(MAC));
        // Without an answer it is removed.
        assert!(table.probe(3, A, at(31)));
        let ask = Some(DueWork::Ask { port: 3, address: A, mac: Some(MAC), is_gateway: false });
        assert_eq!((table.next_due(at(32)), table.next_due(at(33))), (ask, ask));
        assert!(matches!(table.next_due(at(34)), Some(DueWork::GivenUp { .. })));
        assert_eq!(table.find(3, A, at(34)), Resolution::Unknown);
    }

    #[test]
    fn another_link_address_counts_if_it_overrides() {
        let mut table = Neighbours::new(NeighbourLimits::default(), &PORTS, 1);
        table.learn(3, A, MAC, QUESTION, at(0));
        table.learn(3, A, MAC, ANSWER, at(0));
        assert_eq!(table.find(3, A, at(0)), Resolution::Known(MAC));
        table.learn(3, A, OTHER, AnswerFlags { overrides: false, ..ANSWER }, at(0));
        assert_eq!(table.find(3, A, at(0)), Resolution::Doubtful(MAC));
        table.learn(3, A, OTHER, ANSWER, at(0));
        assert_eq!(table.find(3, A, at(0)), Resolution::Known(OTHER));
        assert!(table.set(3, A, MAC));
        table.learn(3, A, OTHER, ANSWER, at(0));
        assert_eq!(table.find(3, A, at(9999)), Resolution::Known(MAC), "for good");
    }

    #[test]
    fn floods_leave_those_alone_that_have_answered() {
        let mut pool = Pool::new(4 << 20).unwrap();
        let limits = NeighbourLimits { neighbours: 64, asked: 16, ..NeighbourLimits::default() };
        let mut table = Neighbours::new(limits, &PORTS, 7);
        for address in 0..32 {
            table.learn(3, A + address, MAC, QUESTION, at(0));
            table.learn(3, A + address, MAC, ANSWER, at(0));
        }
        // From unsolicited messages, and from requests.
        (1000..3000).for_each(|n| drop(waiting(&pool, table.learn(3, A + n, OTHER, QUESTION, at(1)))));
        assert_eq!((table.counts(), table.unasked), ((48, 0), 16), "a quarter of 64 is for strangers");
        let kept = (5000..9000).filter(|&n| {
            let packet = pool.alloc(60).unwrap();
            let kept = table.keep(&mut pool, (3, A + n, n % 2 == 0), packet, at(2)).is_some();
            if !kept {
                pool.free(packet);
            }
            kept
        });
        assert_eq!(kept.count(), 16);
        assert!((0..32).all(|address| table.find(3, A + address, at(2)) == Resolution::Known(MAC)));
    }

    #[test]
    fn a_gateway_is_asked_for_though_strangers_packets_fill_the_room() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut table = Neighbours::new(NeighbourLimits { kept: 2, ..NeighbourLimits::default() }, &PORTS, 1);
        let mut keep = |address, is_gateway| {
            let packet = pool.alloc(60).unwrap();
            table.keep(&mut pool, (3, address, is_gateway), packet, at(1))
        };
        assert_eq!([1, 2, 3].map(|n| keep(A + n, false)), [Some(true), Some(true), None]);
        assert_eq!(keep(A, true), None, "the packet itself is dropped");
        assert_eq!((table.kept(), table.counts()), (2, (3, 3)));
        let ask = DueWork::Ask { port: 3, address: A, mac: None, is_gateway: true };
        assert!(std::iter::from_fn(|| table.next_due(at(2))).any(|due| due == ask));
    }

    #[test]
    fn one_port_can_not_take_all_places() {
        let limits = NeighbourLimits { neighbours: 64, ..NeighbourLimits::default() };
        let mut table = Neighbours::new(limits, &PORTS, 7);
        let learn = |table: &mut Neighbours, port, n, now| {
            table.learn(port, A + n, MAC, QUESTION, now);
            table.learn(port, A + n, MAC, ANSWER, now);
            table.find(port, A + n, now) == Resolution::Known(MAC)
        };
        // Ten at another port, then a station that answers for any address.
        assert!((0..10).all(|n| learn(&mut table, 4, n, at(0))));
        let taken = (0..5000).filter(|&n| learn(&mut table, 3, 1000 + n, at(1))).count();
        assert_eq!((taken, table.counts(), table.unasked), (54, (64, 0), 0));
        // Sixteen are a port's share: it gets them at the other's cost, and no more.
        assert!((10..16).all(|n| learn(&mut table, 4, n, at(2))));
        assert!((16..50).all(|n| !learn(&mut table, 4, n, at(2))));
        assert!((0..16).all(|n| table.find(4, A + n, at(2)) == Resolution::Known(MAC)));
        let left = (0..5000).filter(|n| table.find(3, A + 1000 + n, at(2)) == Resolution::Known(MAC)).count();
        assert_eq!((left, table.counts()), (48, (64, 0)));
        // A new neighbour replaces an unused one of the same port; none is unused right away.
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut ask = |table: &mut Neighbours, n, now| {
            let packet = pool.alloc(60).unwrap();
            let kept = table.keep(&mut pool, (4, A + n, false), packet, now);
            let mut waiting = table.learn(4, A + n, MAC, ANSWER, now);
            pool.free(waiting.pop(&pool).unwrap_or(packet));
            table.release(u16::from(kept.is_some()));
            kept.is_some()
        };
        assert!((16..24).all(|n| !ask(&mut table, n, at(59))));
        assert!((16..24).all(|n| ask(&mut table, n, at(62))));
        assert!((16..24).all(|n| table.find(4, A + n, at(62)) == Resolution::Known(MAC)));
        assert!((24..50).all(|n| !learn(&mut table, 4, n, at(62))), "who was not asked takes nobody's place");
        let left = (0..24).filter(|&n| table.forget(4, A + n)).count();
        assert_eq!((left, table.counts()), (16, (48, 0)));
        // Removal makes room.
        assert!((0..16).all(|n| learn(&mut table, 5, n, at(63))));
    }

    /// A station answers for any number of addresses of one family; then hosts of the other family at the
    /// same port are resolved.
    #[test]
    fn one_family_can_not_take_all_places() {
        const B: u128 = 0xfd00 << 112;
        for (many, few) in [(B, A), (A, B)] {
            let mut pool = Pool::new(1 << 20).unwrap();
            let limits = NeighbourLimits { neighbours: 256, ..NeighbourLimits::default() };
            let mut table = Neighbours::new(limits, &[3], 7);
            let mut ask = |table: &mut Neighbours, address, now| {
                let packet = pool.alloc(60).unwrap();
                let kept = table.keep(&mut pool, (3, address, false), packet, now);
                let mut waiting = table.learn(3, address, MAC, ANSWER, now);
                pool.free(waiting.pop(&pool).unwrap_or(packet));
                if kept.is_some() {
                    table.release(1);
                }
                kept.is_some()
            };
            // Two per second: 256 take 128 s.
            let later = |n: u64| Nanos(n * SECOND / 2);
            assert!((0..600).all(|n| ask(&mut table, many + u128::from(n), later(n))), "none is refused");
            assert_eq!(table.counts().0, 256);
            assert!(
                (0..32).all(|n| ask(&mut table, few + u128::from(n), later(600 + n))),
                "new hosts of the other family"
            );
            // The attack goes on; they are the oldest, yet most stay: the search for a victim nearly always
            // finds more of the other family.
            assert!((632..1232).all(|n| ask(&mut table, many + u128::from(n), later(n))));
            let left = (0..32).filter(|n| table.find(3, few + n, later(1232)) != Resolution::Unknown).count();
            assert!(left >= 16 && table.counts() == (256, 0), "{left}");
        }
    }
}
