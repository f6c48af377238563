//! Loops: their instructions, heads and nesting.
//!
//! A loop is entered only at its head; all backward jumps to one head form one loop. So any two loops of a
//! function are nested or disjoint.

use super::MAX_NESTED;
use super::error::{At, Rejection, Result};
use crate::Code;
use std::ops::Range;

/// A loop.
#[derive(Debug)]
pub struct Loop {
    /// Its only instruction with predecessors outside the loop.
    pub head: usize,
    /// An instruction of it that jumps back to the head.
    pub back: usize,
    /// The innermost loop around it.
    pub outer: Option<usize>,
    /// Number of loops around its instructions, including itself.
    pub depth: usize,
    /// Its instructions, including those of inner loops, in the order of the function.
    pub members: Vec<usize>,
}

/// The loops of a program.
#[derive(Debug)]
pub struct Loops {
    pub all: Vec<Loop>,
    /// For each instruction its innermost loop.
    innermost: Vec<Option<usize>>,
}

impl Loops {
    /// Empty, for a program of this many instructions.
    pub fn none(instructions: usize) -> Self {
        Self { all: Vec::new(), innermost: vec![None; instructions] }
    }

    /// Number of loops around an instruction.
    pub fn depth(&self, index: usize) -> usize {
        self.innermost[index].map_or(0, |number| self.all[number].depth)
    }

    /// The greatest depth.
    pub fn deepest(&self) -> usize {
        self.all.iter().map(|each| each.depth).max().unwrap_or(0)
    }

    /// The loop with its head here.
    pub fn headed(&self, index: usize) -> Option<usize> {
        self.innermost[index].filter(|&number| self.all[number].head == index)
    }

    /// Whether an instruction is in this loop.
    pub fn contains(&self, number: usize, index: usize) -> bool {
        let around = |&inner: &usize| self.all[inner].outer;
        std::iter::successors(self.innermost[index], around).any(|inner| inner == number)
    }

    /// The loop that this backward edge closes.
    pub fn closed(&self, from: usize, to: usize) -> Option<usize> {
        self.headed(to).filter(|&number| self.contains(number, from))
    }

    /// Whether this edge leaves a loop.
    pub fn leaves(&self, from: usize, to: usize) -> bool {
        self.innermost[from].is_some_and(|number| !self.contains(number, to))
    }

    /// Finds the loops of a function from its backward edges.
    pub fn find(
        &mut self,
        code: &Code,
        range: &Range<usize>,
        order: &[usize],
        back: &[(usize, usize)],
    ) -> Result<(), At> {
        if back.is_empty() {
            return Ok(());
        }
        let mut before = vec![Vec::new(); range.len()];
        let mut places = vec![0; range.len()];
        for (place, &index) in order.iter().enumerate() {
            places[index - range.start] = place;
            for next in code.successors(index).into_iter().flatten() {
                before[next - range.start].push(index);
            }
        }
        let mut back = back.to_vec();
        back.sort_unstable_by_key(|&(from, to)| (to, from));
        let mut seen = vec![false; range.len()];
        let (mut found, mut total) = (Vec::new(), 0);
        for ways in back.chunk_by(|a, b| a.1 == b.1) {
            let mut members = gather(range, &before, ways, &mut seen).map_err(|fault| (ways[0].0, fault))?;
            total += members.len();
            let (last, head) = ways[ways.len() - 1];
            if total > MAX_NESTED * range.len() {
                return Err((last, Rejection::Nested));
            }
            members.sort_unstable_by_key(|&index| places[index - range.start]);
            found.push(Loop { head, back: last, outer: None, depth: 0, members });
        }
        // Of two nested ones, the larger one is outside.
        found.sort_by_key(|each| std::cmp::Reverse(each.members.len()));
        for each in found {
            self.add(each)?;
        }
        Ok(())
    }

    fn add(&mut self, mut each: Loop) -> Result<(), At> {
        let number = self.all.len();
        each.outer = self.innermost[each.head];
        each.depth = 1 + self.depth(each.head);
        if each.depth > MAX_NESTED {
            return Err((each.back, Rejection::Nested));
        }
        each.members.iter().for_each(|&index| self.innermost[index] = Some(number));
        self.all.push(each);
        Ok(())
    }
}

/// The instructions of the loop with these backward edges to one head.
fn gather(
    range: &Range<usize>,
    before: &[Vec<usize>],
    ways: &[(usize, usize)],
    seen: &mut [bool],
) -> Result<Vec<usize>> {
    let head = ways[0].1;
    let mut members = vec![head];
    seen[head - range.start] = true;
    let mut wanted: Vec<usize> = ways.iter().map(|&(from, _)| from).collect();
    while let Some(index) = wanted.pop() {
        if std::mem::replace(&mut seen[index - range.start], true) {
            continue;
        }
        if index == range.start {
            return Err(Rejection::Entries);
        }
        members.push(index);
        wanted.extend(&before[index - range.start]);
    }
    members.iter().for_each(|&index| seen[index - range.start] = false);
    Ok(members)
}
