//! Relations between arithmetic expressions, such as `tcp[tcpflags] & tcp-syn != 0`.

use super::{Parser, Result};
use crate::builder::Block;
use crate::error::Fault;
use crate::names::{CONSTANTS, PROTOCOLS, named};
use crate::primitive::Protocol;
use crate::program::MAX_STACK;
use crate::question::{Load, Operator, Relation, Step, Width};

/// An arithmetic expression in postfix order, and the protocols whose bytes it reads.
#[derive(Default)]
struct Sum {
    steps: Vec<Step>,
    reads: Vec<Protocol>,
}

/// Operators, their symbols, and their precedence.
const OPERATORS: &[(&str, Operator, u8)] = &[
    ("|", Operator::Or, 1),
    ("^", Operator::ExclusiveOr, 2),
    ("&", Operator::And, 3),
    ("<<", Operator::ShiftLeft, 4),
    (">>", Operator::ShiftRight, 4),
    ("+", Operator::Add, 5),
    ("-", Operator::Subtract, 5),
    ("*", Operator::Multiply, 6),
    ("/", Operator::Divide, 6),
    ("%", Operator::Remainder, 6),
];

const RELATIONS: &[(&str, Relation)] = &[
    ("=", Relation::Equal),
    ("==", Relation::Equal),
    ("!=", Relation::Unequal),
    ("<", Relation::Less),
    ("<=", Relation::LessOrEqual),
    (">", Relation::Greater),
    (">=", Relation::GreaterOrEqual),
];

impl Parser<'_> {
    /// Whether a relation rather than a primitive follows, without consuming tokens.
    pub(super) fn is_arithmetic(&self) -> bool {
        let Some(token) = self.token() else { return false };
        match token.text {
            "len" | "-" => true,
            "mark" => self.peek_at(1).is_some_and(joins_numbers),
            "(" => {
                // After a parenthesis around primitives only `and`, `or` and another closing one can follow.
                let behind = token.closed_by.and_then(|closing| self.tokens.get(closing + 1));
                behind.is_some_and(|next| joins_numbers(next.text))
            }
            text if named(PROTOCOLS, text).is_some() => self.peek_at(1) == Some("["),
            text if named(CONSTANTS, text).is_some() => true,
            text if text.starts_with(|c: char| c.is_ascii_digit()) => {
                self.peek_at(1).is_some_and(joins_numbers) && !self.repeats_value()
            }
            _ => false,
        }
    }

    /// Parses a relation. It is false if it reads bytes that are missing, or of another protocol.
    pub(super) fn relation(&mut self) -> Result<Block> {
        let left = self.sum(0)?;
        let Some(relation) = self.peek().and_then(|text| named(RELATIONS, text)) else {
            return Err(self.unexpected("compare with = != < <= > or >="));
        };
        self.next += 1;
        let right = self.sum(0)?;
        self.check_stack(&left)?;
        self.check_stack(&right)?;
        let mut reads = left.reads;
        reads.extend(right.reads);
        let compared = |this: &mut Self| match (masked(&left.steps), right.steps.as_slice()) {
            (Some((load, mask)), &[Step::Constant(value)]) => {
                this.made.builder.compare(load, mask, relation, value)
            }
            _ => this.made.builder.arithmetic(&left.steps, relation, &right.steps),
        };
        let mut all: Option<Block> = None;
        for (index, &protocol) in reads.iter().enumerate() {
            if reads[..index].contains(&protocol) {
                continue;
            }
            if let Some(readable) = self.made.readable(protocol) {
                all = Some(self.made.builder.and_after(all, readable));
            }
        }
        let compared = compared(self);
        Ok(self.made.builder.and_after(all, compared))
    }

    /// Parses operands joined by operators with at least the precedence `least`.
    fn sum(&mut self, least: u8) -> Result<Sum> {
        let mut left = self.operand()?;
        while let Some(&(_, operator, binding)) =
            self.peek().and_then(|text| OPERATORS.iter().find(|(symbol, ..)| *symbol == text))
        {
            if binding < least {
                break;
            }
            self.next += 1;
            let at = self.next;
            let right = self.sum(binding + 1)?;
            left = self.combined(left, operator, right, at)?;
        }
        Ok(left)
    }

    /// Combines two expressions; `at` is the token where the right one begins. Constants are folded.
    fn combined(&self, mut left: Sum, operator: Operator, right: Sum, at: usize) -> Result<Sum> {
        if let [Step::Constant(value)] = right.steps[..] {
            if matches!(operator, Operator::Divide | Operator::Remainder) && value == 0 {
                return Err(self.error_at(at, Fault::Value, "divide by something else than zero"));
            }
            if matches!(operator, Operator::ShiftLeft | Operator::ShiftRight) && value > 31 {
                return Err(self.error_at(at, Fault::Value, "shift by at most 31 bits"));
            }
            if let [Step::Constant(first)] = left.steps[..]
                && let Some(result) = operator.apply(first, value)
            {
                left.steps = vec![Step::Constant(result)];
                return Ok(left);
            }
        }
        left.steps.extend(right.steps);
        left.steps.push(Step::Combine(operator));
        left.reads.extend(right.reads);
        Ok(left)
    }

    fn operand(&mut self) -> Result<Sum> {
        let at = self.next;
        let constant = |value| Sum { steps: vec![Step::Constant(value)], reads: Vec::new() };
        let text = self.peek().unwrap_or_default();
        if let Some(value) = super::value::number(text).or_else(|| named(CONSTANTS, text)) {
            self.next += 1;
            return Ok(constant(value));
        }
        match text {
            "(" => {
                self.descend()?;
                self.next += 1;
                let sum = self.sum(0)?;
                self.expect(")", "close the parenthesis")?;
                self.depth -= 1;
                Ok(sum)
            }
            "-" => {
                self.descend()?;
                self.next += 1;
                let operand = self.operand()?;
                self.depth -= 1;
                self.combined(constant(0), Operator::Subtract, operand, at)
            }
            "len" | "mark" => {
                self.next += 1;
                let load = if text == "len" { Load::Length } else { Load::Mark };
                Ok(Sum { steps: vec![Step::Read(load)], reads: Vec::new() })
            }
            _ => match named(PROTOCOLS, text) {
                Some(protocol) => self.bytes(protocol),
                None => Err(self.unexpected("write a number or bytes such as ip[2:2]")),
            },
        }
    }

    /// `PROTOCOL[index]` or `PROTOCOL[index:size]`.
    fn bytes(&mut self, protocol: Protocol) -> Result<Sum> {
        self.next += 1;
        self.descend()?;
        self.expect("[", "say which bytes")?;
        let mut index = self.sum(0)?;
        let mut width = Width::Byte;
        if self.peek() == Some(":") {
            self.next += 1;
            width = match self.peek().and_then(super::value::number) {
                Some(1) => Width::Byte,
                Some(2) => Width::Half,
                Some(4) => Width::Word,
                _ => return Err(self.error(Fault::Value, "read 1, 2 or 4 bytes")),
            };
            self.next += 1;
        }
        self.expect("]", "end the bytes")?;
        self.depth -= 1;
        if let [Step::Constant(at)] = index.steps[..] {
            index.steps = vec![Step::Read(self.made.load(protocol, at, width))];
        } else {
            index.steps.push(Step::ReadIndexed(self.made.load(protocol, 0, width)));
        }
        index.reads.push(protocol);
        Ok(index)
    }

    fn check_stack(&self, sum: &Sum) -> Result<()> {
        let (mut held, mut most) = (0usize, 0);
        for step in &sum.steps {
            match step {
                Step::Constant(_) | Step::Read(_) => held += 1,
                Step::ReadIndexed(_) => {}
                Step::Combine(_) => held -= 1,
            }
            most = most.max(held);
        }
        if most > MAX_STACK {
            let fix = format!("hold at most {MAX_STACK} values at a time: write the longer operand first");
            return Err(self.error_before(Fault::Limit, fix));
        }
        Ok(())
    }
}

/// Whether a symbol can only occur between numbers.
pub(super) fn joins_numbers(text: &str) -> bool {
    OPERATORS.iter().any(|(symbol, ..)| *symbol == text) || named(RELATIONS, text).is_some()
}

/// Bytes, or bytes under a mask.
fn masked(steps: &[Step]) -> Option<(Load, u32)> {
    match *steps {
        [Step::Read(load)] => Some((load, u32::MAX)),
        [Step::Read(load), Step::Constant(mask), Step::Combine(Operator::And)] => Some((load, mask)),
        _ => None,
    }
}
