//! Effects of instructions on a state.

use super::FURTHEST;
use super::access::{Mode, instruction_bytes};
use super::error::{Rejection, Result};
use super::explore::Explorer;
use super::scalar::Scalar;
use super::state::{Flow, Knowledge};
use super::value::{Id, MapOrigin, PendingRecord, Value};
use crate::memory::FRAME_SIZE;
use crate::{Arithmetic, Instruction, MapKind, Operand, Register, Size, Width};

impl Explorer<'_> {
    /// Executes an instruction on a state.
    pub fn step(&mut self, index: usize, state: &mut Knowledge) -> Result<Flow> {
        let instruction = self.program.code.instructions()[index];
        let (dst, value) = match instruction {
            Instruction::Arithmetic { width, operation: Arithmetic::Mov, dst, source } => {
                (dst, self.copied(state, width, source)?)
            }
            Instruction::Arithmetic { width, operation, dst, source } => {
                (dst, self.computed(state, width, operation, (dst, source))?)
            }
            Instruction::MoveExtended { width, from, dst, src } => {
                (dst, Value::number(self.number(state, src)?.extend(from, width)))
            }
            Instruction::Negate { width, dst } => {
                let scalar = self.number(state, dst)?;
                (dst, Value::number(Scalar::constant(0).apply(Arithmetic::Sub, width, scalar)))
            }
            Instruction::Swap { order, size, dst } => {
                (dst, Value::number(self.number(state, dst)?.swap(order, size)))
            }
            Instruction::LoadWide { dst, value } => (dst, Value::constant(value)),
            Instruction::LoadMap { dst, map } => {
                self.map(map)?;
                (dst, Value::Handle { map: MapOrigin::Map(map as u16) })
            }
            Instruction::LoadMapValue { dst, map, offset } => (dst, self.map_value(map, offset)?),
            Instruction::LoadFunction { dst, .. } => {
                (dst, Value::Function { entry: self.target(index) as u32 })
            }
            Instruction::Load { size, dst, base, offset } => {
                let wanted = instruction_bytes(base, offset, size, Mode::Read);
                (dst, self.load(index, state, size, wanted)?)
            }
            Instruction::LoadExtended { size, dst, base, offset } => {
                let wanted = instruction_bytes(base, offset, size, Mode::Read);
                (dst, self.load_extended(index, state, size, wanted)?)
            }
            Instruction::Store { .. } => return self.store(index, state, instruction),
            Instruction::Atomic { .. } => return self.change(index, state, instruction),
            Instruction::Jump { .. } | Instruction::JumpLong { .. } => return Ok(Flow::Jump),
            Instruction::Branch { .. } => return self.branch(state, instruction),
            Instruction::Call { helper } => return self.call(index, state, helper),
            Instruction::CallKernel { .. } => return Err(Rejection::KernelFunction),
            Instruction::CallLocal { .. } => return Ok(Flow::Enter),
            Instruction::Exit => {
                leave(state)?;
                self.all_given_back(state)?;
                return Ok(Flow::Exit);
            }
        };
        state.set(dst, value);
        Ok(Flow::Next)
    }

    fn number(&self, state: &Knowledge, register: Register) -> Result<Scalar> {
        let value = self.readable(state, register)?;
        value.as_scalar().ok_or(Rejection::PointerArithmetic { register, what: value.what() })
    }

    fn copied(&mut self, state: &mut Knowledge, width: Width, source: Operand) -> Result<Value> {
        let value = self.readable_operand(state, source)?;
        Ok(match (value, source) {
            (Value::Number { scalar, .. }, _) if width == Width::W32 && scalar.max > u64::from(u32::MAX) => {
                Value::number(scalar.low_half())
            }
            (pointer, _) if width == Width::W32 && pointer.as_scalar().is_none() => {
                Value::number(Scalar::of_size(Size::Word))
            }
            // Nothing is truncated: a 32-bit copy is equivalent to a 64-bit one.
            (_, Operand::Register(src)) => state.link(src, || self.fresh()),
            (number, Operand::Immediate(_)) => number,
        })
    }

    fn computed(
        &mut self,
        state: &mut Knowledge,
        width: Width,
        operation: Arithmetic,
        (dst, source): (Register, Operand),
    ) -> Result<Value> {
        let (left, right) = (self.readable(state, dst)?, self.readable_operand(state, source)?);
        let sums = matches!(operation, Arithmetic::Add | Arithmetic::Sub);
        Ok(match (left, right) {
            (Value::Number { scalar: left, .. }, Value::Number { scalar: right, .. }) => {
                Value::number(left.apply(operation, width, right))
            }
            // The lower half of an address, and a difference of addresses, are mere numbers.
            _ if sums && width == Width::W32 => Value::number(Scalar::of_size(Size::Word)),
            (pointer, Value::Number { scalar, .. }) if sums => {
                self.shift(state, dst, pointer, operation, scalar)?
            }
            (Value::Number { scalar, .. }, pointer) if operation == Arithmetic::Add => {
                let Operand::Register(register) = source else { return Ok(pointer) };
                self.shift(state, register, pointer, operation, scalar)?
            }
            // Compilers write sums like this if the address is a multiple of more than the number's maximum.
            (pointer, Value::Number { scalar, .. })
                if operation == Arithmetic::Or && width == Width::W64 && is_disjoint(&pointer, &scalar) =>
            {
                self.shift(state, dst, pointer, Arithmetic::Add, scalar)?
            }
            (left, right) if operation == Arithmetic::Sub && left.is_pointer() && right.is_pointer() => {
                Value::ANY
            }
            (left, right) => {
                let (register, value) = match source {
                    Operand::Register(register) if !left.is_pointer() => (register, right),
                    _ => (dst, left),
                };
                return Err(Rejection::PointerArithmetic { register, what: value.what() });
            }
        })
    }

    /// Moves a pointer by a number.
    fn shift(
        &mut self,
        state: &mut Knowledge,
        register: Register,
        pointer: Value,
        operation: Arithmetic,
        by: Scalar,
    ) -> Result<Value> {
        let moved = |fixed: i64| {
            let by = by.as_constant().map(|by| by as i64).filter(|by| by.unsigned_abs() <= FURTHEST as u64);
            let by = by.ok_or(Rejection::PointerRange { register })?;
            let to = if operation == Arithmetic::Add { fixed + by } else { fixed - by };
            Some(to).filter(|to| to.abs() <= FURTHEST).ok_or(Rejection::PointerRange { register })
        };
        let sum = |offset: Scalar| offset.apply(operation, Width::W64, by);
        Ok(match pointer {
            Value::Context { offset } => Value::Context { offset: moved(offset)? },
            Value::Packet { origin, fixed } if by.as_constant().is_some() => {
                Value::Packet { origin, fixed: moved(fixed)? }
            }
            Value::Packet { origin, fixed } => {
                let fresh = self.fresh();
                state.move_origin(origin, operation, by, fresh);
                Value::Packet { origin: fresh, fixed }
            }
            Value::Stack { frame, offset } => Value::Stack { frame, offset: sum(offset) },
            Value::State { size, offset } => Value::State { size, offset: sum(offset) },
            Value::Map { map, nullable: true, .. } => return Err(self.maybe_null(register, map)?),
            Value::Map { map, object, offset, nullable } => {
                Value::Map { map, object, offset: sum(offset), nullable }
            }
            Value::Stale | Value::Released => pointer,
            other => return Err(Rejection::PointerArithmetic { register, what: other.what() }),
        })
    }

    /// Checks that a program that ends here leaves no record behind.
    pub fn all_given_back(&self, state: &Knowledge) -> Result<()> {
        match state.open.first().filter(|_| state.depth() == 0) {
            Some(&PendingRecord { map, at, .. }) => {
                let map = self.map(u32::from(map))?.name.clone();
                Err(Rejection::Unreleased { map, reserved: self.program.code.slot(at) })
            }
            None => Ok(()),
        }
    }

    fn map_value(&self, map: u32, offset: u32) -> Result<Value> {
        let spec = self.map(map)?;
        if spec.kind != MapKind::Array || offset >= spec.value_size {
            return Err(Rejection::NoMapValue { map: spec.name.clone(), offset });
        }
        let offset = Scalar::constant(u64::from(offset));
        let object = Id::MAX - map;
        Ok(Value::Map { map: MapOrigin::Map(map as u16), object, offset, nullable: false })
    }
}

/// Whether setting the number's bits in the address is the same as adding it. Frames begin at multiples of
/// their size, the state at 0, and values at multiples of 8.
fn is_disjoint(pointer: &Value, number: &Scalar) -> bool {
    let (offset, aligned) = match pointer {
        Value::Stack { offset, .. } => (offset, FRAME_SIZE as u64),
        Value::State { offset, .. } => (offset, u64::from(crate::ProgramState::MAX)),
        Value::Map { offset, nullable: false, .. } => (offset, 8),
        _ => return false,
    };
    number.max < aligned && offset.bits.max() & number.bits.max() == 0
}

/// Checks a return value.
fn leave(state: &Knowledge) -> Result<()> {
    let returned = state.register(Register::R0);
    let depth = state.depth() as u8;
    match returned {
        Value::Unset if depth == 0 => Err(Rejection::Unwritten { register: Register::R0 }),
        Value::Stack { frame, .. } if frame == depth && depth > 0 => Err(Rejection::ReturnsLocal),
        value if value.is_pointer() && depth == 0 => Err(Rejection::Returns { what: value.what() }),
        _ => Ok(()),
    }
}
