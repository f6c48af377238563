//! Knowledge gained from the outcome of a branch.

use super::FURTHEST;
use super::error::Result;
use super::explore::Explorer;
use super::refine::refine;
use super::state::{Flow, Knowledge};
use super::value::Value;
use crate::{Condition, Instruction, Operand, Register, Width};

/// A comparison and its outcome.
#[derive(Clone, Copy)]
struct Outcome {
    condition: Condition,
    holds: bool,
    width: Width,
}

impl Explorer<'_> {
    pub fn branch(&mut self, state: &mut Knowledge, instruction: Instruction) -> Result<Flow> {
        let Instruction::Branch { width, condition, dst, source, .. } = instruction else {
            return Ok(Flow::Next);
        };
        self.readable(state, dst)?;
        self.readable_operand(state, source)?;
        let mut jumps = state.clone();
        let taken = Outcome { condition, holds: true, width }.assume(&mut jumps, dst, source);
        let falls = Outcome { condition, holds: false, width }.assume(state, dst, source);
        Ok(Flow::Branch { falls, jumps: taken.then_some(Box::new(jumps)) })
    }
}

impl Outcome {
    /// Assumes the outcome. False if it is impossible.
    fn assume(self, state: &mut Knowledge, dst: Register, source: Operand) -> bool {
        let (left, right) = (state.register(dst), state.operand(source));
        match (left, right) {
            (Value::Number { scalar: a, .. }, Value::Number { scalar: b, .. }) => {
                let Some((a, b)) = refine(self.condition, self.holds, self.width, a, b) else { return false };
                state.learn(dst, a);
                if let Operand::Register(register) = source {
                    state.learn(register, b);
                }
                true
            }
            _ if self.width == Width::W32 => true,
            (pointer, Value::Number { scalar, .. }) | (Value::Number { scalar, .. }, pointer)
                if scalar.as_constant() == Some(0) =>
            {
                self.against_null(state, pointer)
            }
            (Value::Packet { origin, fixed }, Value::PacketEnd) => {
                prove(state, origin, fixed, self.effective());
                true
            }
            (Value::PacketEnd, Value::Packet { origin, fixed }) => {
                prove(state, origin, fixed, self.effective().map(swapped));
                true
            }
            (Value::Packet { origin: a, fixed: fa }, Value::Packet { origin: b, fixed: fb })
                if a == b && state.is_ordered(a) =>
            {
                // Any two addresses at this distance compare like these.
                let [left, right] = [fa, fb].map(|fixed| (fixed + (1 << 40)) as u64);
                self.condition == Condition::BitsSet
                    || self.condition.holds(Width::W64, left, right) == self.holds
            }
            _ => true,
        }
    }

    /// The condition that holds.
    fn effective(self) -> Option<Condition> {
        if self.holds { Some(self.condition) } else { self.condition.negated() }
    }

    fn against_null(self, state: &mut Knowledge, pointer: Value) -> bool {
        let is_null = match self.effective() {
            Some(Condition::Equal) => true,
            Some(Condition::NotEqual) => false,
            _ => return true,
        };
        match pointer {
            // An address that was moved by an unbounded number may have become 0.
            Value::Stack { offset, .. } | Value::State { offset, .. } | Value::Map { offset, .. }
                if is_null && !offset.is_within(FURTHEST) =>
            {
                true
            }
            Value::Packet { origin, .. } if is_null && !state.is_ordered(origin) => true,
            // How far these were moved is not known any more.
            Value::Stale | Value::Released if is_null => true,
            Value::Map { object, nullable: true, .. } | Value::Held { object, .. } => {
                state.resolve(object, !is_null);
                true
            }
            _ => !is_null,
        }
    }
}

/// Bytes proven by comparing an address, on the left, with the packet's end.
fn prove(state: &mut Knowledge, origin: u32, fixed: i64, condition: Option<Condition>) {
    match condition {
        Some(Condition::Less) => state.prove(origin, fixed + 1),
        Some(Condition::LessEqual | Condition::Equal) => state.prove(origin, fixed),
        _ => {}
    }
}

/// The condition with its operands exchanged.
const fn swapped(condition: Condition) -> Condition {
    match condition {
        Condition::Greater => Condition::Less,
        Condition::GreaterEqual => Condition::LessEqual,
        Condition::Less => Condition::Greater,
        Condition::LessEqual => Condition::GreaterEqual,
        Condition::SignedGreater => Condition::SignedLess,
        Condition::SignedGreaterEqual => Condition::SignedLessEqual,
        Condition::SignedLess => Condition::SignedGreater,
        Condition::SignedLessEqual => Condition::SignedGreaterEqual,
        Condition::Equal | Condition::NotEqual | Condition::BitsSet => condition,
    }
}

#[cfg(test)]
mod tests {
    use super::super::scalar::Scalar;
    use super::super::value::MapOrigin;
    use super::*;

    /// Of two addresses of one value, each of which may be missing, the first is 0.
    fn second_if_first_is_null(offset: Scalar) -> Value {
        let value = |offset| Value::Map { map: MapOrigin::Map(0), object: 7, offset, nullable: true };
        let mut state = Knowledge::new();
        state.set(Register::R6, value(offset));
        state.set(Register::R7, value(Scalar::constant(0)));
        let outcome = Outcome { condition: Condition::Equal, holds: true, width: Width::W64 };
        assert!(outcome.assume(&mut state, Register::R6, Operand::Immediate(0)));
        state.register(Register::R7)
    }

    #[test]
    fn a_value_is_missing_only_if_its_address_was_not_moved_to_0() {
        assert_eq!(second_if_first_is_null(Scalar::constant(8)), Value::constant(0));
        assert!(matches!(second_if_first_is_null(Scalar::ANY), Value::Map { nullable: true, .. }));
    }
}
