//! Combines tests to a program. Each block of tests has a list of open ends; combining two blocks closes
//! some.

use crate::program::{MATCH, MISS, Program};
use crate::question::{Load, Question, Relation, Step, Test, Width};
use crate::window::Window;

/// Most tests of an expression.
pub(crate) const MAX_TESTS: usize = 48 * 1024;

/// Consecutive tests, and their exits.
#[derive(Debug)]
pub(crate) struct Block {
    start: u16,
    yes: Vec<End>,
    no: Vec<End>,
}

/// An open end: the test's number and its result.
type End = (u16, bool);

/// A question with its known answer.
type Fact = (Question, bool);

/// Most facts kept for a test: those of the first tests on the path, which ask for protocols.
const MAX_FACTS: usize = 12;
/// Most consecutive tests that are skipped.
const MAX_STEPS: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Builder {
    tests: Vec<Test>,
    steps: Vec<Step>,
}

impl Builder {
    /// Whether the program exceeds its limit, so that parsing must stop. One primitive has at most a few
    /// dozen tests: a check after each keeps numbers below [`MISS`].
    pub fn is_full(&self) -> bool {
        self.tests.len() > MAX_TESTS
    }

    /// A block of one test.
    pub fn test(&mut self, question: Question) -> Block {
        let number = self.tests.len() as u16;
        self.tests.push(Test { question, yes: MATCH, no: MISS });
        Block { start: number, yes: vec![(number, true)], no: vec![(number, false)] }
    }

    /// A block that compares with a constant. Fields after an IPv4 header without options, the usual case,
    /// have a fixed position.
    pub fn compare(&mut self, load: Load, mask: u32, relation: Relation, value: u32) -> Block {
        let question = |load| Question::Compare { load, mask, relation, value };
        let Load::Behind { header, at, width } = load else { return self.test(question(load)) };
        let length = Load::Frame { at: header, width: Width::Byte };
        let plain = Question::Compare { load: length, mask: 0x0f, relation: Relation::Equal, value: 5 };
        let plain = self.test(plain);
        let fixed = self.test(question(Load::Frame { at: at.wrapping_add(20), width }));
        let behind = self.test(question(load));
        self.choose(&plain, fixed, behind)
    }

    /// A block that compares two arithmetic expressions.
    pub fn arithmetic(&mut self, left: &[Step], relation: Relation, right: &[Step]) -> Block {
        let start = self.steps.len() as u32;
        let middle = start + left.len() as u32;
        let end = middle + right.len() as u32;
        self.steps.extend(left);
        self.steps.extend(right);
        self.test(Question::Arithmetic { start, middle, end, relation })
    }

    /// Conjunction; `right` was built after `left`.
    pub fn and(&mut self, left: Block, right: Block) -> Block {
        self.close(&left.yes, right.start);
        Block { start: left.start, yes: right.yes, no: joined(left.no, right.no) }
    }

    /// Conjunction with what was built before, if anything was.
    pub fn and_after(&mut self, left: Option<Block>, right: Block) -> Block {
        match left {
            Some(left) => self.and(left, right),
            None => right,
        }
    }

    /// Disjunction; `right` was built after `left`.
    pub fn or(&mut self, left: Block, right: Block) -> Block {
        self.close(&left.no, right.start);
        Block { start: left.start, yes: joined(left.yes, right.yes), no: right.no }
    }

    /// `yes` if `condition` holds, else `no`: built in this order.
    fn choose(&mut self, condition: &Block, yes: Block, no: Block) -> Block {
        self.close(&condition.yes, yes.start);
        self.close(&condition.no, no.start);
        Block { start: condition.start, yes: joined(yes.yes, no.yes), no: joined(yes.no, no.no) }
    }

    /// Negation.
    pub fn not(block: Block) -> Block {
        Block { start: block.start, yes: block.no, no: block.yes }
    }

    /// The program of a block that contains every test.
    pub fn finish(mut self, block: &Block) -> Program {
        self.close(&block.yes, MATCH);
        self.close(&block.no, MISS);
        self.shorten();
        Program {
            first: if self.tests.is_empty() { MATCH } else { 0 },
            windows: Window::of(&self.tests),
            tests: self.tests.into(),
            steps: self.steps.into(),
        }
    }

    fn close(&mut self, ends: &[End], target: u16) {
        for &(number, answer) in ends {
            let test = &mut self.tests[usize::from(number)];
            *if answer { &mut test.yes } else { &mut test.no } = target;
        }
    }

    /// Skips tests whose answer follows from earlier ones: `ip` is not tested after `ip6` was found. A test
    /// is only reached from lower numbers, so all facts are known when its turn comes.
    fn shorten(&mut self) {
        let mut known: Vec<Option<Vec<Fact>>> = vec![None; self.tests.len()];
        if let Some(first) = known.first_mut() {
            *first = Some(Vec::new());
        }
        for number in 0..self.tests.len() {
            // None: unreachable.
            let Some(facts) = known[number].take() else { continue };
            let test = self.tests[number];
            for answer in [true, false] {
                let mut facts = facts.clone();
                if facts.len() < MAX_FACTS {
                    facts.push((test.question, answer));
                }
                let target = self.past_known(&facts, if answer { test.yes } else { test.no });
                let test = &mut self.tests[number];
                *if answer { &mut test.yes } else { &mut test.no } = target;
                match known.get_mut(usize::from(target)) {
                    Some(Some(common)) => common.retain(|fact| facts.contains(fact)),
                    Some(none) => *none = Some(facts),
                    None => {}
                }
            }
        }
    }

    /// The first test from `target` on whose answer does not follow from the facts, within a limit.
    fn past_known(&self, facts: &[Fact], mut target: u16) -> u16 {
        for _ in 0..MAX_STEPS {
            let Some(next) = self.tests.get(usize::from(target)) else { break };
            let implied =
                facts.iter().rev().find_map(|&(question, answer)| implied(question, answer, next.question));
            match implied {
                Some(known) => target = if known { next.yes } else { next.no },
                None => break,
            }
        }
        target
    }
}

/// Concatenates two lists; the order does not matter.
fn joined(mut a: Vec<End>, mut b: Vec<End>) -> Vec<End> {
    if a.len() < b.len() {
        std::mem::swap(&mut a, &mut b);
    }
    a.extend(b);
    a
}

/// The answer to `next` if it follows from `answer` to `question`.
fn implied(question: Question, answer: bool, next: Question) -> Option<bool> {
    if question == next {
        return Some(answer);
    }
    let (
        Question::Compare { load, mask, relation: Relation::Equal, value },
        Question::Compare { load: next_load, mask: next_mask, relation: Relation::Equal, value: next_value },
    ) = (question, next)
    else {
        return None;
    };
    (answer && load == next_load && mask == next_mask && value != next_value).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::PacketMetadata;

    fn byte(builder: &mut Builder, at: u32, value: u32) -> Block {
        builder.compare(Load::Frame { at, width: Width::Byte }, u32::MAX, Relation::Equal, value)
    }

    #[test]
    fn blocks_join_as_truth_tables_say() {
        // (a and not b) or c
        let mut builder = Builder::default();
        let a = byte(&mut builder, 0, 1);
        let b = Builder::not(byte(&mut builder, 1, 1));
        let both = builder.and(a, b);
        let c = byte(&mut builder, 2, 1);
        let all = builder.or(both, c);
        let program = builder.finish(&all);
        for bits in 0..8u8 {
            let frame = [bits & 1, bits >> 1 & 1, bits >> 2];
            let wanted = (frame[0] == 1 && frame[1] != 1) || frame[2] == 1;
            assert_eq!(program.matches(&frame, PacketMetadata::default()), wanted, "{frame:?}");
        }
    }

    #[test]
    fn what_is_known_is_not_asked_again() {
        // a = 1 and a != 2, or a = 1: the first answer decides.
        let mut builder = Builder::default();
        let one = byte(&mut builder, 0, 1);
        let two = Builder::not(byte(&mut builder, 0, 2));
        let both = builder.and(one, two);
        let again = byte(&mut builder, 0, 1);
        let all = builder.or(both, again);
        let program = builder.finish(&all);
        assert_eq!((program.tests[0].yes, program.tests[0].no), (MATCH, MISS));
    }

    #[test]
    fn what_was_known_long_before_is_not_asked_again() {
        // (a = 1 and b = 2) or (a = 3 and b = 4) or (a = 1 and b = 5): after a = 1 and b ≠ 2 comes b = 5.
        let mut builder = Builder::default();
        let mut all: Option<Block> = None;
        for (a, b) in [(1, 2), (3, 4), (1, 5)] {
            let a = byte(&mut builder, 0, a);
            let b = byte(&mut builder, 1, b);
            let both = builder.and(a, b);
            all = Some(match all {
                Some(before) => builder.or(before, both),
                None => both,
            });
        }
        let program = builder.finish(&all.unwrap());
        assert_eq!((program.tests[1].no, program.tests[0].no), (5, 2));
        for (a, b) in (0..6).flat_map(|a| (0..6).map(move |b| (a, b))) {
            assert_eq!(
                program.matches(&[a, b], PacketMetadata::default()),
                matches!((a, b), (1, 2) | (3, 4) | (1, 5)),
                "{a} {b}"
            );
        }
    }
}
