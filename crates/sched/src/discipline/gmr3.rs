//! GMR³, group multi-resource round robin: flows of similar weights form groups, so that a heavy flow does
//! not wait longer because of many light ones.
//!
//! Group g has the flows of weights 2¹⁵⁻ᵍ up to twice that, and each of its flows has one turn in every 2ᵍ
//! slots. Among groups the earliest turn comes first; within a group flows take turns. A turn gives a flow
//! credit for dominant cost by its weight, one to two quanta, and it is served while that is positive;
//! progress on the last resource limits it as in MR³. There are 16 groups, whatever the number of flows:
//! O(1).
//!
//! Only the paper's abstract was available (grouping, O(1), fairness and a delay bounded by a constant); the
//! rest follows Stratified Round Robin (Ramabhadran & Pasquale, SIGCOMM 2003), its predecessor. Choices:
//! slots are counted by the turns that are given, not by time, so that weights need not add up to 1 and slots
//! without a turn cost nothing; the turns of a group are spread evenly over its 2ᵍ slots; new flows have
//! theirs in the next 2ᵍ; debt of a flow with an empty queue is not forgotten, but paid by the slots that
//! pass without it, and limited flows are parked as in MR³. With Q the quantum and C the largest dominant
//! cost, two flows that are backlogged throughout differ in dominant service per weight by less than (6 Q +
//! C) · (1/wᵢ + 1/wⱼ): an interval's turns are given exactly once each, so that two flows of groups g and h
//! differ by less than 3 · (2ᵍ + 2ʰ) slots' credit of Q · 2⁻¹⁵ per weight and slot, and 2ᵍ⁻¹⁵ < 2/w; each may
//! be a packet ahead or behind.

use super::ring::Ring;
use super::{Discipline, Spec};
use crate::Settings;
use crate::backlog::Backlog;

const GROUPS: usize = 16;
/// Fractional bits of slots, so that the turns of a group can be spread over them. With a quantum of 1 µs and
/// a weight of 1 virtual time reaches half of its range after 200 days.
const FRACTION: u32 = 4;

/// Flows of like weights.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    ring: Ring<0>,
    /// Flows with a turn in the current interval, and those whose turn is still to come.
    members: u32,
    left: u32,
    /// Time of the next turn, and the remainder of its division, in slots over 2⁴.
    due: u64,
    left_over: u64,
    /// Distance of turns in the current interval, and its remainder over `members`.
    stride: (u64, u64),
}

/// Group multi-resource round robin.
#[derive(Debug, Default)]
pub(crate) struct Gmr3 {
    groups: Box<[Group; GROUPS]>,
    /// Groups that have flows.
    busy: u32,
    /// Time of the last turn.
    now: u64,
    /// The group whose first flow has begun its turn, and whether a packet was taken in it.
    begun: Option<usize>,
    has_served: bool,
    /// For the current turn: its initial credit, and the part used.
    given: i64,
    used: i64,
    quantum: i64,
    /// Consecutive turns without service, and the number of flows that take turns.
    fruitless: u32,
    flows: u32,
}

impl Discipline for Gmr3 {
    const SPEC: Spec = Spec {
        name: "gmr3",
        summary: "Round robin on the dominant resource within groups of like weights.",
        source: "Wang, Liang & Li, Low Complexity Multi-Resource Fair Queueing with Bounded Delay (INFOCOM \
            2014)",
        quantum: Some(
            "ns of the dominant resource: of a processor over the number of processors, or of the port",
        ),
        constant_time: true,
        dominant: true,
        apart: true,
    };

    const LIMITED: bool = true;

    fn build(settings: &Settings) -> Self {
        Self { given: 1, quantum: settings.quantum.0 as i64, ..Self::default() }
    }

    #[inline]
    fn join(&mut self, backlog: &mut Backlog, flow: u32) {
        let time = self.now >> FRACTION;
        let place = backlog.flow_mut(flow);
        let number = group_of(place.weight);
        // 2ᵍ slots would have given it a turn's credit.
        let credit = self.quantum * i64::from(place.weight);
        place.turn.begin_anew(time, credit, number as u32);
        self.add(backlog, number, flow);
    }

    #[inline]
    fn next(&mut self, backlog: &mut Backlog) -> Option<u32> {
        loop {
            let number = self.begun.or_else(|| self.begin(backlog))?;
            let flow = self.groups[number].ring.front()?;
            let Some(slot) = backlog.head(flow) else {
                self.end(backlog, number, false);
                continue;
            };
            if backlog.flow(flow).turn.credit <= 0 {
                self.end(backlog, number, true);
                continue;
            }
            let cost = i64::from(backlog.slot(slot).cost) << scale_of(number);
            super::take_in_turn(backlog, flow, slot, !self.has_served);
            self.has_served = true;
            backlog.flow_mut(flow).turn.credit -= cost;
            self.used += cost;
            self.fruitless = 0;
            if backlog.head(flow).is_none() {
                self.end(backlog, number, false);
            }
            return Some(slot);
        }
    }

    /// Slots: each gives a flow the same for its weight. Within a turn it grows with the used credit.
    #[inline]
    fn due(&self) -> u64 {
        match self.begun {
            Some(number) => self.within_turn(number),
            None => self.first_group().map_or(self.now, |number| self.groups[number].due),
        }
    }

    /// Charges the cost of a packet beyond its estimate once it is known.
    #[inline]
    fn measured(&mut self, backlog: &mut Backlog, slot: u32, measured: u32) {
        super::charge_later(backlog, slot, measured, |weight| scale_of(group_of(weight)));
    }

    /// Moves a flow to the group of its new weight, after the others there. The value of its credit is kept;
    /// of a lower weight a part, because a flow that was parked may have missed many turns.
    fn reweighted(&mut self, backlog: &mut Backlog, flow: u32, before: u32) {
        let place = backlog.flow_mut(flow);
        let (old, new) = (group_of(before), group_of(place.weight));
        if place.turn.credit > 0 && place.weight < before {
            let credit = i128::from(place.turn.credit) * i128::from(place.weight) / i128::from(before);
            place.turn.credit = credit as i64;
        }
        if old == new {
            return;
        }
        place.turn.credit = place.turn.credit >> scale_of(old) << scale_of(new);
        if place.turn.active {
            self.take_out(backlog, old, flow);
            self.add(backlog, new, flow);
        }
    }
}

/// The group of a weight of 1 to 65 535.
#[inline]
const fn group_of(weight: u32) -> usize {
    15 - weight.ilog2() as usize
}

/// Shift of credit: a turn's credit is quantum · weight, an integer, instead of quantum · weight / 2¹⁵⁻ᵍ.
#[inline]
const fn scale_of(group: usize) -> u32 {
    15 - group as u32
}

impl Group {
    /// Begins an interval in which the current flows have their turns: the 2ᵍ slots from `due` on.
    #[inline]
    fn begin_interval(&mut self, number: usize) {
        self.members = self.ring.len();
        self.left = self.members;
        let (length, members) = (1u64 << (number as u32 + FRACTION), u64::from(self.members.max(1)));
        self.stride = if members == 1 { (length, 0) } else { (length / members, length % members) };
        self.left_over = 0;
        self.advance();
    }

    /// The next turn of the interval.
    #[inline]
    fn advance(&mut self) {
        self.due = self.due.wrapping_add(self.stride.0);
        self.left_over += self.stride.1;
        if self.left_over >= u64::from(self.members) && self.members > 0 {
            self.left_over -= u64::from(self.members);
            self.due = self.due.wrapping_add(1);
        }
    }
}

impl Gmr3 {
    /// The group with the earliest turn.
    #[inline]
    fn first_group(&self) -> Option<usize> {
        let mut first: Option<usize> = None;
        let mut busy = self.busy;
        while busy != 0 {
            let number = busy.trailing_zeros() as usize;
            busy &= busy - 1;
            let sooner =
                |other: usize| (self.groups[number].due.wrapping_sub(self.groups[other].due) as i64) < 0;
            if first.is_none_or(sooner) {
                first = Some(number);
            }
        }
        first
    }

    /// Puts a flow at the end of a group.
    #[inline]
    fn add(&mut self, backlog: &mut Backlog, number: usize, flow: u32) {
        self.groups[number].ring.push(backlog, flow);
        self.flows += 1;
        if self.busy & (1 << number) == 0 {
            self.busy |= 1 << number;
            (self.groups[number].due, self.groups[number].left) = (self.now, 0);
            self.groups[number].begin_interval(number);
        }
    }

    /// Progress of a group's current turn towards the next one.
    fn within_turn(&self, number: usize) -> u64 {
        let own = self.groups[number].stride.0;
        let others = (0..GROUPS).filter(|other| *other != number && self.busy & (1 << other) != 0);
        let span = others.map(|other| self.groups[other].due.wrapping_sub(self.now)).fold(own, u64::min);
        let part = u128::from(span) * self.used.clamp(0, self.given) as u128 / self.given as u128;
        self.now.wrapping_add(part as u64)
    }

    /// Begins the earliest turn; none if there is none, or if the port has not started that flow's last turn.
    #[inline]
    fn begin(&mut self, backlog: &mut Backlog) -> Option<usize> {
        if self.fruitless > self.flows && self.busy != 0 {
            self.skip(backlog);
        }
        let (number, flow) = loop {
            let number = self.first_group()?;
            let flow = self.groups[number].ring.front()?;
            if !super::is_ahead(backlog, flow, self.flows == 1) {
                break (number, flow);
            }
            if !super::is_with_processors(backlog, flow) {
                return None;
            }
            self.end(backlog, number, false);
            backlog.flow_mut(flow).turn.parked = true;
        };
        let place = backlog.flow_mut(flow);
        place.turn.credit += self.quantum * i64::from(place.weight);
        (self.given, self.used) = (place.turn.credit.max(1), 0);
        self.now = self.groups[number].due;
        self.has_served = false;
        self.fruitless += 1;
        self.begun = Some(number);
        Some(number)
    }

    /// Ends the turn of a group's first flow.
    #[inline]
    fn end(&mut self, backlog: &mut Backlog, number: usize, stays: bool) {
        self.begun = None;
        let (time, group) = (self.now, &mut self.groups[number]);
        if stays {
            group.ring.rotate(backlog);
        } else {
            if let Some(flow) = group.ring.pop(backlog) {
                backlog.flow_mut(flow).turn.round = time >> FRACTION;
            }
            self.flows -= 1;
        }
        group.left -= 1;
        if group.ring.len() == 0 {
            self.busy &= !(1 << number);
        } else if group.left == 0 {
            // An interval ends exactly where the last turn was due.
            group.begin_interval(number);
        } else {
            group.advance();
        }
    }

    /// If every flow is in debt, skips in one step the slots in which none can be served. These are whole
    /// intervals of a group and of all with more frequent turns, and end before others have a turn; the
    /// slowest possible group is used.
    #[cold]
    fn skip(&mut self, backlog: &mut Backlog) {
        self.fruitless = 0;
        let turns = self.groups.each_ref().map(|group| self.turns_in_debt(backlog, group));
        let busy = |number: &usize| self.busy & (1 << number) != 0;
        for slowest in (0..GROUPS).rev().filter(busy) {
            let most = |number: usize| {
                if number <= slowest {
                    turns[number] >> (slowest - number)
                } else {
                    self.groups[number].due.wrapping_sub(self.now) >> (slowest as u32 + FRACTION)
                }
            };
            let intervals = (0..GROUPS).filter(busy).map(most).min().unwrap_or(0);
            if intervals > 0 {
                return self.pass(backlog, slowest, intervals);
            }
        }
    }

    /// Number of turns for each of a group's flows that leave its credit at 0 or below.
    fn turns_in_debt(&self, backlog: &Backlog, group: &Group) -> u64 {
        let turns = |flow| {
            let place = backlog.flow(flow);
            place.turn.credit.min(0).unsigned_abs() / (self.quantum.unsigned_abs() * u64::from(place.weight))
        };
        group.ring.iter(backlog).map(turns).min().unwrap_or(u64::MAX)
    }

    /// Passes some intervals of this group: its flows, and those with more frequent turns, get the credit.
    fn pass(&mut self, backlog: &mut Backlog, slowest: usize, intervals: u64) {
        let slots = intervals.wrapping_shl(slowest as u32 + FRACTION);
        self.now = self.now.wrapping_add(slots);
        for (number, group) in self.groups.iter_mut().enumerate().take(slowest + 1) {
            group.due = group.due.wrapping_add(slots);
            let turns = (intervals << (slowest - number)) as i64;
            let mut next = group.ring.front();
            for _ in 0..group.ring.len() {
                let Some(flow) = next else { break };
                let place = backlog.flow_mut(flow);
                place.turn.credit += turns * self.quantum * i64::from(place.weight);
                next = Some(backlog.links[0][flow as usize]);
            }
        }
    }

    /// Removes a flow from its group, at any position; the others keep their order.
    fn take_out(&mut self, backlog: &mut Backlog, number: usize, flow: u32) {
        let (count, left) = (self.groups[number].ring.len(), self.groups[number].left);
        let was_first = self.groups[number].ring.front() == Some(flow);
        let mut had_turn_to_come = false;
        for place in 0..count {
            let Some(first) = self.groups[number].ring.pop(backlog) else { break };
            if first == flow {
                had_turn_to_come = place < left;
            } else {
                self.groups[number].ring.push(backlog, first);
            }
        }
        self.flows -= 1;
        if was_first && self.begun == Some(number) {
            self.begun = None;
        }
        let group = &mut self.groups[number];
        group.left -= u32::from(had_turn_to_come);
        if group.ring.len() == 0 {
            self.busy &= !(1 << number);
        } else if group.left == 0 {
            group.begin_interval(number);
        }
    }
}
