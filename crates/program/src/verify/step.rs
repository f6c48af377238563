//! Effects of instructions on a state.

use super::error::Rejection;
use super::explore::Explorer;
use super::flow::Flow;
use super::limits::FURTHEST;
use super::open::PendingRecord;
use super::scalar::Scalar;
use super::state::Knowledge;
use super::value::{Id, MapOrigin, Value};
use crate::memory::FRAME_SIZE;
use crate::{Arithmetic, Instruction, MapKind, Operand, Register, Size, Width};

impl Explorer<'_> {
    /// Executes an instruction on a state.
    pub fn step(&mut self, index: usize, state: &mut Knowledge) -> Result<Flow, Rejection> {
        let instruction = self.instruction(index);
        match instruction {
            Instruction::Arithmetic { width, operation: Arithmetic::Mov, dst, source } => {
                self.copy(state, width, dst, source)?;
            }
            Instruction::Arithmetic { width, operation, dst, source } => {
                self.arithmetic(state, width, operation, dst, source)?;
            }
            Instruction::MoveExtended { width, from, dst, src } => {
                let scalar = self.number(state, src)?;
                state.set(dst, Value::number(scalar.extend(from, width)));
            }
            Instruction::Negate { width, dst } => {
                let scalar = self.number(state, dst)?;
                let negated = Scalar::constant(0).apply(Arithmetic::Sub, width, scalar);
                state.set(dst, Value::number(negated));
            }
            Instruction::Swap { order, width, dst } => {
                let scalar = self.number(state, dst)?;
                state.set(dst, Value::number(scalar.swap(order, width)));
            }
            Instruction::LoadWide { dst, value } => state.set(dst, Value::constant(value)),
            Instruction::LoadMap { dst, map } => {
                self.map(map)?;
                state.set(dst, Value::Handle { map: MapOrigin::Map(map as u16) });
            }
            Instruction::LoadMapValue { dst, map, offset } => {
                let value = self.map_value(map, offset)?;
                state.set(dst, value);
            }
            Instruction::LoadFunction { dst, .. } => {
                let entry = self.target(index) as u32;
                state.set(dst, Value::Function { entry });
            }
            Instruction::Load { .. } | Instruction::LoadExtended { .. } => {
                self.load(index, state, instruction)?;
            }
            Instruction::Store { .. } => self.store(index, state, instruction)?,
            Instruction::Atomic { .. } => self.change(index, state, instruction)?,
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
        }
        Ok(Flow::Next)
    }

    fn number(&self, state: &Knowledge, register: Register) -> Result<Scalar, Rejection> {
        let value = self.readable(state, register)?;
        value.as_scalar().ok_or(Rejection::PointerArithmetic { register, what: value.what() })
    }

    fn copy(
        &mut self,
        state: &mut Knowledge,
        width: Width,
        dst: Register,
        source: Operand,
    ) -> Result<(), Rejection> {
        let Operand::Register(src) = source else {
            let Value::Number { scalar, .. } = state.operand(source) else { return Ok(()) };
            let scalar = if width == Width::W32 { scalar.low_half() } else { scalar };
            state.set(dst, Value::number(scalar));
            return Ok(());
        };
        let value = match (width, self.readable(state, src)?) {
            (Width::W64, _) => state.link(src, || self.fresh()),
            // Nothing is truncated: the copy is equivalent to a 64-bit one.
            (Width::W32, Value::Number { scalar, .. }) if scalar.max <= u64::from(u32::MAX) => {
                state.link(src, || self.fresh())
            }
            (Width::W32, Value::Number { scalar, .. }) => Value::number(scalar.low_half()),
            (Width::W32, _) => Value::number(Scalar::of_size(Size::Word)),
        };
        state.set(dst, value);
        Ok(())
    }

    fn arithmetic(
        &mut self,
        state: &mut Knowledge,
        width: Width,
        operation: Arithmetic,
        dst: Register,
        source: Operand,
    ) -> Result<(), Rejection> {
        let left = self.readable(state, dst)?;
        let right = match source {
            Operand::Register(register) => self.readable(state, register)?,
            Operand::Immediate(_) => state.operand(source),
        };
        let sums = matches!(operation, Arithmetic::Add | Arithmetic::Sub);
        let value = match (left, right) {
            (Value::Number { scalar: left, .. }, Value::Number { scalar: right, .. }) => {
                Value::number(left.apply(operation, width, right))
            }
            // The lower half of an address, and a difference of addresses, are mere numbers.
            _ if sums && width == Width::W32 => Value::number(Scalar::of_size(Size::Word)),
            (pointer, Value::Number { scalar, .. }) if sums => {
                self.shift(state, dst, pointer, operation, scalar)?
            }
            (Value::Number { scalar, .. }, pointer) if operation == Arithmetic::Add => {
                let Operand::Register(register) = source else { return Ok(()) };
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
        };
        state.set(dst, value);
        Ok(())
    }

    /// Moves a pointer by a number.
    fn shift(
        &mut self,
        state: &mut Knowledge,
        register: Register,
        pointer: Value,
        operation: Arithmetic,
        by: Scalar,
    ) -> Result<Value, Rejection> {
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
    pub fn all_given_back(&self, state: &Knowledge) -> Result<(), Rejection> {
        match state.records().first().filter(|_| state.depth() == 0) {
            Some(&PendingRecord { map, at, .. }) => {
                let map = self.map(u32::from(map))?.name.clone();
                Err(Rejection::Unreleased { map, reserved: self.slot(at) })
            }
            None => Ok(()),
        }
    }

    fn map_value(&self, map: u32, offset: u32) -> Result<Value, Rejection> {
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
fn leave(state: &Knowledge) -> Result<(), Rejection> {
    let returned = state.register(Register::R0);
    let depth = state.depth() as u8;
    match returned {
        Value::Unset if depth == 0 => Err(Rejection::Unwritten { register: Register::R0 }),
        Value::Stack { frame, .. } if frame == depth && depth > 0 => Err(Rejection::ReturnsLocal),
        value if value.is_pointer() && depth == 0 => Err(Rejection::Returns { what: value.what() }),
        _ => Ok(()),
    }
}
