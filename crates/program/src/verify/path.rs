//! The worst that a program can cost, found from its ends backward.

use super::cost::{Counts, Prices};
use super::structure::{Body, Structure, next};
use super::{Dearest, Fact};
use crate::{Code, Instruction};

/// A program whose costs are known instruction by instruction.
pub struct Graph<'a> {
    pub code: &'a Code,
    pub structure: &'a Structure,
    pub facts: &'a [Fact],
    pub costs: &'a [Counts],
}

/// Most instructions of a path that is written down.
const MAX_PATH: usize = 1 << 20;

impl Graph<'_> {
    /// The most that each item can happen in one run. Not all need happen in the same run.
    pub fn most(&self) -> Counts {
        let mut still = vec![Counts::NONE; self.code.len()];
        for body in self.callees_first() {
            for &index in body.order.iter().rev() {
                let after = self.after(index).fold(Counts::NONE, |most, next| most.most(&still[next]));
                let called = self.callee(index).map_or(Counts::NONE, |callee| still[callee]);
                still[index] = self.costs[index].plus(&called).plus(&after);
            }
        }
        still[0]
    }

    /// The path that costs most at these prices.
    pub fn dearest(&self, prices: &Prices) -> Dearest {
        let mut still = vec![0; self.code.len()];
        // Where the dearest way goes on.
        let mut ways: Vec<Option<usize>> = vec![None; self.code.len()];
        for body in self.callees_first() {
            for &index in body.order.iter().rev() {
                // Of two that cost the same, the first.
                let way = self.after(index).reduce(|a, b| if still[b] > still[a] { b } else { a });
                let called = self.callee(index).map_or(0, |callee| still[callee]);
                let own = prices.total(&self.costs[index]).saturating_add(called);
                still[index] = own.saturating_add(way.map_or(0, |way| still[way]));
                ways[index] = way;
            }
        }
        let path = self.follow(&ways);
        let counts = path.iter().fold(Counts::NONE, |sum, &index| sum.plus(&self.costs[index]));
        Dearest { price: still[0], counts, path }
    }

    fn follow(&self, ways: &[Option<usize>]) -> Vec<usize> {
        let (mut path, mut resume) = (Vec::new(), Vec::new());
        let mut at = Some(0);
        while let Some(index) = at.filter(|_| path.len() < MAX_PATH) {
            path.push(index);
            at = match self.callee(index) {
                Some(callee) => {
                    resume.push(ways[index]);
                    Some(callee)
                }
                None => ways[index],
            };
            while at.is_none()
                && let Some(back) = resume.pop()
            {
                at = back;
            }
        }
        path
    }

    /// Functions, none before those that it calls.
    fn callees_first(&self) -> impl Iterator<Item = &Body> {
        let mut bodies: Vec<&Body> = self.structure.functions().iter().collect();
        bodies.sort_by_key(|body| body.frames);
        bodies.into_iter()
    }

    fn callee(&self, index: usize) -> Option<usize> {
        let calls = matches!(self.code.instructions()[index], Instruction::CallLocal { .. });
        self.code.target(index).filter(|_| calls)
    }

    /// What follows an instruction on some path.
    fn after(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let fact = &self.facts[index];
        let branches = matches!(self.code.instructions()[index], Instruction::Branch { .. });
        let [falls, jumps] = next(self.code, index);
        let taken = [falls.filter(|_| !branches || fact.falls), jumps.filter(|_| !branches || fact.jumps)];
        taken.into_iter().flatten().filter(|&next| self.facts[next].reached)
    }
}
