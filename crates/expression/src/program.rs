//! Compiled form of an expression: tests on a frame, each with the next test after a yes and after a no.
//! These have higher numbers, so every evaluation ends; nothing is allocated, and no input can cause a panic.

use crate::question::{Load, PacketMetadata, Question, Step, Test};
use crate::window::{self, Window};

/// A test number that means a match.
pub(crate) const MATCH: u16 = u16::MAX;
/// A test number that means no match.
pub(crate) const MISS: u16 = u16::MAX - 1;
/// Most values on the stack of an arithmetic expression.
pub(crate) const MAX_STACK: usize = 16;

/// A compiled expression. Without tests it matches everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub tests: Box<[Test]>,
    /// The number of the first test, or [`MATCH`].
    pub first: u16,
    /// For each test its fastest form, if it has one.
    pub windows: Box<[Window]>,
    pub steps: Box<[Step]>,
}

impl Default for Program {
    /// Without tests.
    fn default() -> Self {
        Self { tests: Box::default(), first: MATCH, windows: Box::default(), steps: Box::default() }
    }
}

impl Program {
    pub fn matches(&self, frame: &[u8], known: PacketMetadata) -> bool {
        let mut next = self.run(self.first, frame);
        while next < MISS {
            next = self.run(self.next(next, frame, known), frame);
        }
        next == MATCH
    }

    /// Whether it matches, if windows decide that alone. Without calls, so that a caller needs few registers.
    #[inline(always)]
    pub fn by_windows(&self, frame: &[u8]) -> Option<bool> {
        let end = self.run(self.first, frame);
        (end >= MISS).then_some(end == MATCH)
    }

    /// Follows windows from a test to the first one that they do not answer, or to the end.
    #[inline(always)]
    fn run(&self, mut next: u16, frame: &[u8]) -> u16 {
        while let Some(window) = self.windows.get(usize::from(next)) {
            let at = window.at as usize;
            let Some(&bytes) = frame.get(at..at + window::WIDTH).and_then(<[u8]>::first_chunk) else { break };
            next = if window.holds(bytes) { window.yes } else { window.no };
        }
        next
    }

    /// Where a test leads.
    #[inline(never)]
    fn next(&self, number: u16, frame: &[u8], known: PacketMetadata) -> u16 {
        let Some(test) = self.tests.get(usize::from(number)) else { return MISS };
        if self.answer(test.question, frame, known) { test.yes } else { test.no }
    }

    /// Whether a test or a step reads the mark.
    pub fn reads_mark(&self) -> bool {
        let asks = |test: &Test| matches!(test.question, Question::Compare { load: Load::Mark, .. });
        let reads = |step: &Step| matches!(step, Step::Read(Load::Mark) | Step::ReadIndexed(Load::Mark));
        self.tests.iter().any(asks) || self.steps.iter().any(reads)
    }

    #[inline]
    fn answer(&self, question: Question, frame: &[u8], known: PacketMetadata) -> bool {
        match question {
            Question::Compare { load, mask, relation, value } => {
                load.read(frame, known, 0).is_some_and(|found| relation.holds(found & mask, value))
            }
            Question::Arithmetic { start, middle, end, relation } => {
                let left = self.compute(start, middle, frame, known);
                let right = self.compute(middle, end, frame, known);
                left.zip(right).is_some_and(|(left, right)| relation.holds(left, right))
            }
        }
    }

    /// The value of some steps: none if they read beyond the frame's end or divide by zero.
    fn compute(&self, start: u32, end: u32, frame: &[u8], known: PacketMetadata) -> Option<u32> {
        let mut stack = [0u32; MAX_STACK];
        let mut held = 0;
        for step in self.steps.get(start as usize..end as usize)? {
            let value = match *step {
                Step::Constant(value) => value,
                Step::Read(load) => load.read(frame, known, 0)?,
                Step::ReadIndexed(load) => {
                    held -= 1;
                    load.read(frame, known, *stack.get(held)?)?
                }
                Step::Combine(operator) => {
                    held -= 2;
                    operator.apply(*stack.get(held)?, *stack.get(held + 1)?)?
                }
            };
            *stack.get_mut(held)? = value;
            held += 1;
        }
        Some(stack[0])
    }
}
