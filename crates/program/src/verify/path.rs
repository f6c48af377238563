//! The worst-case cost of a program, computed backward from its ends.
//!
//! An instruction in loops has several goals: the function's end, or the head of one of its loops. The
//! maximum for each is kept separately. A loop costs its worst round times the number of returns to its head,
//! and then its worst exit.
//!
//! After a tail call another program may run, with one tail call less remaining: so programs' costs are
//! computed for no tail call, for one, and so on, until nothing changes or the limit is reached.

use super::structure::Body;
use super::{Callback, MAX_NESTED, VerifiedProgram, WorstPath};
use crate::{Counts, Instruction, MAX_TAIL_CALLS, Prices};
use std::collections::{BTreeMap, BTreeSet};

/// Most instructions of a reported path.
const MAX_PATH: usize = 1 << 20;

/// A quantity summed backward.
trait Sum: Copy + PartialEq {
    const NONE: Self;
    /// The sum of this and `after`.
    fn and(self, after: Self) -> Self;
    fn times(self, count: u32) -> Self;
    fn worst(self, other: Self) -> Self;
    /// This, if the path continues with this instruction.
    fn by(self, _next: usize) -> Self {
        self
    }
}

impl Sum for Counts {
    const NONE: Self = Self::NONE;

    fn and(self, after: Self) -> Self {
        self.plus(&after)
    }

    fn times(self, count: u32) -> Self {
        self.repeated(count)
    }

    fn worst(self, other: Self) -> Self {
        self.most(&other)
    }
}

/// The worst-case path from an instruction.
#[derive(Clone, Copy, PartialEq)]
struct PricedPath {
    price: u64,
    counts: Counts,
    /// Its next instruction.
    next: Option<usize>,
}

impl Sum for PricedPath {
    const NONE: Self = Self { price: 0, counts: Counts::NONE, next: None };

    fn and(self, after: Self) -> Self {
        let price = self.price.saturating_add(after.price);
        Self { price, counts: self.counts.plus(&after.counts), next: after.next }
    }

    fn times(self, count: u32) -> Self {
        let price = self.price.saturating_mul(count.into());
        Self { price, counts: self.counts.repeated(count), ..self }
    }

    /// Of two with equal costs, the first.
    fn worst(self, other: Self) -> Self {
        if other.price > self.price { other } else { self }
    }

    fn by(self, next: usize) -> Self {
        Self { next: Some(next), ..self }
    }
}

/// For each instruction the maximum remaining cost: to the end of its function, and back to the head of its
/// first, second, … loop from outside.
struct RemainingCosts<T> {
    all: Vec<Option<T>>,
    /// Number of goals of each instruction.
    goals: usize,
}

impl<T: Copy> RemainingCosts<T> {
    fn of(&self, index: usize, goal: usize) -> Option<T> {
        self.all[index * self.goals + goal]
    }
}

impl VerifiedProgram {
    /// Maximum count of each operation in a run. They need not occur in the same run.
    pub(super) fn maximum(&self) -> Counts {
        let own = |index: usize| self.explored.costs[index];
        self.entered(&self.sums(own, self.levels(own).last()), 0, 0).unwrap_or(Counts::NONE)
    }

    /// The maximum price per packet, and its path.
    pub fn worst_path(&self, prices: &Prices) -> WorstPath {
        let own = |index: usize| {
            let counts = self.explored.costs[index];
            PricedPath { price: prices.total(&counts), counts, next: None }
        };
        let levels = self.levels(own);
        let still = self.sums(own, levels.last());
        let PricedPath { price, counts, .. } = self.entered(&still, 0, 0).unwrap_or(PricedPath::NONE);
        let (path, loops) = (Vec::new(), Vec::new());
        let mut follower = Follower { verified: self, still, loops, path };
        let (mut start, mut below) = (0, &levels[..]);
        // Each level is recomputed when it is reached: all at once would take too much memory for a large
        // program.
        while let Some(next) = follower.follow(start) {
            below = below.split_last().map_or(&[][..], |(_, below)| below);
            (start, follower.still) = (next, self.sums(own, below.last()));
        }
        WorstPath { price, counts, path: follower.path }
    }

    /// Maximum cost of each target of a tail call, with no further tail call, with one, and so on.
    fn levels<T: Sum>(&self, own: impl Fn(usize) -> T + Copy) -> Vec<Level<T>> {
        let programs: BTreeSet<usize> = self.explored.tail_calls.values().flatten().copied().collect();
        let mut levels: Vec<Level<T>> = Vec::new();
        while !programs.is_empty() && levels.len() < usize::from(MAX_TAIL_CALLS) {
            let still = self.sums(own, levels.last());
            let cost = |&start: &usize| Some((start, self.entered(&still, start, 0)?));
            let level = programs.iter().filter_map(cost).collect();
            if levels.last() == Some(&level) {
                break;
            }
            levels.push(level);
        }
        levels
    }

    /// Sums backward from the ends, with the costs of tail calls' targets, if any.
    fn sums<T: Sum>(&self, own: impl Fn(usize) -> T, below: Option<&Level<T>>) -> RemainingCosts<T> {
        let goals = 1 + self.structure.loops.deepest();
        let mut still = RemainingCosts { all: vec![None; self.program.code.len() * goals], goals };
        for body in self.callees_first() {
            for &index in body.order.iter().rev() {
                let after = self.onward(&still, index, below);
                let called = self
                    .callee(index)
                    .and_then(|(callee, times)| Some(self.entered(&still, callee, 0)?.times(times)));
                let own = own(index).and(called.unwrap_or(T::NONE));
                for (goal, after) in after.into_iter().enumerate().take(goals) {
                    still.all[index * goals + goal] = after.map(|after| own.and(after));
                }
            }
        }
        still
    }

    /// Maximum after an instruction, for each goal.
    fn onward<T: Sum>(
        &self,
        still: &RemainingCosts<T>,
        index: usize,
        below: Option<&Level<T>>,
    ) -> [Option<T>; MAX_NESTED + 1] {
        let loops = &self.structure.loops;
        let mut most = [None; MAX_NESTED + 1];
        let mut add = |goal: usize, sum: Option<T>| {
            let old: Option<T> = most[goal];
            most[goal] = match (old, sum) {
                (Some(old), Some(sum)) => Some(old.worst(sum)),
                (old, sum) => old.or(sum),
            };
        };
        for &program in self.explored.tail_calls.get(&index).into_iter().flatten() {
            add(0, below.and_then(|below| below.get(&program)).map(|sum| sum.by(program)));
        }
        let mut ends = true;
        for next in self.after(index) {
            ends = false;
            if let Some(closed) = loops.closed(index, next) {
                add(loops.all[closed].depth, Some(T::NONE.by(next)));
                continue;
            }
            // An entered loop is left again on the way to any goal.
            let shared = loops.depth(next) - usize::from(loops.headed(next).is_some());
            for goal in 0..=shared {
                add(goal, self.entered(still, next, goal).map(|sum| sum.by(next)));
            }
        }
        if ends {
            add(0, Some(T::NONE));
        }
        most
    }

    /// Maximum from an instruction to the goal: for a loop's head, with all rounds of the loop.
    fn entered<T: Sum>(&self, still: &RemainingCosts<T>, index: usize, goal: usize) -> Option<T> {
        let out = still.of(index, goal)?;
        let loops = &self.structure.loops;
        let Some(number) = loops.headed(index) else { return Some(out) };
        let round = still.of(index, loops.all[number].depth);
        Some(round.map_or(out, |round| round.times(self.explored.rounds[number].saturating_sub(1)).and(out)))
    }

    /// Functions, callees first.
    fn callees_first(&self) -> impl Iterator<Item = &Body> {
        let mut bodies: Vec<&Body> = self.structure.functions.iter().collect();
        bodies.sort_by_key(|body| body.frames);
        bodies.into_iter()
    }

    /// The function that an instruction calls, directly or by a helper, and how often.
    fn callee(&self, index: usize) -> Option<(usize, u32)> {
        match self.program.code.instructions()[index] {
            Instruction::CallLocal { .. } => self.program.code.target(index).map(|target| (target, 1)),
            _ => self.explored.facts[index].call?.callback.map(|Callback { entry, rounds }| (entry, rounds)),
        }
    }

    /// Possible successors of an instruction.
    fn after(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let fact = &self.explored.facts[index];
        let branches = matches!(self.program.code.instructions()[index], Instruction::Branch { .. });
        let [falls, jumps] = self.program.code.successors(index);
        let taken = [falls.filter(|_| !branches || fact.falls), jumps.filter(|_| !branches || fact.jumps)];
        taken.into_iter().flatten().filter(|&next| self.explored.facts[next].reached)
    }
}

/// Costs of programs, by first instruction.
type Level<T> = BTreeMap<usize, T>;

/// Follows the worst-case path forward.
struct Follower<'a> {
    verified: &'a VerifiedProgram,
    still: RemainingCosts<PricedPath>,
    /// The loops around it, with the remaining rounds, and the goal after the last.
    loops: Vec<(u32, usize)>,
    path: Vec<usize>,
}

impl Follower<'_> {
    /// Follows it from a program's first instruction to its end, or to a tail call: returns the target then.
    fn follow(&mut self, start: usize) -> Option<usize> {
        let mut resume = Vec::new();
        self.loops.clear();
        let mut at = Some((start, self.enter(start, 0)));
        while let Some((index, goal)) = at.filter(|_| self.path.len() < MAX_PATH) {
            self.path.push(index);
            let next = self.still.of(index, goal).and_then(|still| still.next);
            let programs = self.verified.explored.tail_calls.get(&index);
            if let Some(program) = next.filter(|next| programs.is_some_and(|all| all.contains(next))) {
                return Some(program);
            }
            at = match self.verified.callee(index) {
                Some((callee, times @ 1..)) => {
                    resume.push((index, goal, callee, times - 1));
                    Some((callee, self.enter(callee, 0)))
                }
                _ => self.onward(index, goal),
            };
            while at.is_none()
                && let Some((index, goal, callee, times)) = resume.pop()
            {
                at = if times > 0 {
                    resume.push((index, goal, callee, times - 1));
                    Some((callee, self.enter(callee, 0)))
                } else {
                    self.onward(index, goal)
                };
            }
        }
        None
    }

    /// The goal after an instruction is reached on the way to `goal`, other than by a backward jump.
    fn enter(&mut self, index: usize, goal: usize) -> usize {
        let loops = &self.verified.structure.loops;
        let Some(number) = loops.headed(index) else { return goal };
        let depth = loops.all[number].depth;
        let again = self.verified.explored.rounds[number].saturating_sub(1);
        let rounds = if self.still.of(index, depth).is_some() { again } else { 0 };
        self.loops.push((rounds, goal));
        self.turn(depth)
    }

    /// The goal of the next round of the innermost loop, or of its exit.
    fn turn(&mut self, depth: usize) -> usize {
        match self.loops.last_mut() {
            Some((0, _)) | None => self.loops.pop().map_or(0, |(_, goal)| goal),
            Some((rounds, _)) => {
                *rounds -= 1;
                depth
            }
        }
    }

    fn onward(&mut self, index: usize, goal: usize) -> Option<(usize, usize)> {
        let next = self.still.of(index, goal)?.next?;
        let loops = &self.verified.structure.loops;
        let goal = match loops.closed(index, next) {
            Some(number) => self.turn(loops.all[number].depth),
            None => self.enter(next, goal),
        };
        Some((next, goal))
    }
}
