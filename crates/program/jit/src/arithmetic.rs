//! Instructions that only access registers.

use crate::translate::{Translator, type_of, type_of_size};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use longwire_program::{Arithmetic, ByteOrder, Instruction, Operand, Region, Size, Width};

impl Translator<'_, '_> {
    /// Translates a computation.
    pub fn compute(&mut self, instruction: Instruction) {
        let (dst, value) = match instruction {
            Instruction::Arithmetic { width, operation, dst, source } => {
                let right = self.operand(width, source);
                let value = if operation == Arithmetic::Mov {
                    right
                } else {
                    let left = self.narrowed(width, dst);
                    self.arithmetic(operation, width, left, (right, source))
                };
                (dst, value)
            }
            Instruction::MoveExtended { width, from, dst, src } => {
                let value = self.read(src);
                let low = self.cut(value, type_of_size(from));
                let same = from == Size::Word && width == Width::W32;
                (dst, if same { low } else { self.builder.ins().sextend(type_of(width), low) })
            }
            Instruction::Negate { width, dst } => {
                let value = self.narrowed(width, dst);
                (dst, self.builder.ins().ineg(value))
            }
            Instruction::Swap { order, size, dst } => {
                let value = self.read(dst);
                let low = self.cut(value, type_of_size(size));
                (dst, if order == ByteOrder::Little { low } else { self.builder.ins().bswap(low) })
            }
            Instruction::LoadWide { dst, value } => (dst, self.constant(value)),
            Instruction::LoadMap { dst, map } => (dst, self.region(Region::Handle(map as u16))),
            Instruction::LoadFunction { dst, .. } => {
                let entry = self.source.code.target(self.index).unwrap_or(self.index);
                (dst, self.constant(Region::Code.address(entry as u32)))
            }
            Instruction::LoadMapValue { dst, map, offset } => {
                (dst, self.constant(Region::Map(map as u16).address(offset)))
            }
            _ => return,
        };
        let value = self.widened(value);
        self.write(dst, value);
    }

    fn arithmetic(
        &mut self,
        operation: Arithmetic,
        width: Width,
        left: Value,
        (right, source): (Value, Operand),
    ) -> Value {
        let ins = self.builder.ins();
        match operation {
            Arithmetic::Add => ins.iadd(left, right),
            Arithmetic::Sub => ins.isub(left, right),
            Arithmetic::Mul => ins.imul(left, right),
            Arithmetic::Or => ins.bor(left, right),
            Arithmetic::And => ins.band(left, right),
            Arithmetic::Xor => ins.bxor(left, right),
            // The generator's shifts take the amount modulo the width, too.
            Arithmetic::ShiftLeft => ins.ishl(left, right),
            Arithmetic::ShiftRight => ins.ushr(left, right),
            Arithmetic::ShiftRightSigned => ins.sshr(left, right),
            Arithmetic::Mov => right,
            Arithmetic::Div | Arithmetic::Mod | Arithmetic::SignedDiv | Arithmetic::SignedMod => match source
            {
                Operand::Immediate(0) if matches!(operation, Arithmetic::Mod | Arithmetic::SignedMod) => left,
                Operand::Immediate(0) => ins.iconst(type_of(width), 0),
                // The generator's division fails only for divisors 0 and -1.
                Operand::Immediate(value) if value != -1 => self.divide(operation, left, right),
                _ => self.divide_by_any(operation, width, left, right),
            },
        }
    }

    /// A division by neither 0 nor -1.
    fn divide(&mut self, operation: Arithmetic, left: Value, right: Value) -> Value {
        let ins = self.builder.ins();
        match operation {
            Arithmetic::Div => ins.udiv(left, right),
            Arithmetic::Mod => ins.urem(left, right),
            Arithmetic::SignedDiv => ins.sdiv(left, right),
            _ => ins.srem(left, right),
        }
    }

    /// A division by anything: by 1 for invalid divisors, and then the right result is selected.
    fn divide_by_any(&mut self, operation: Arithmetic, width: Width, left: Value, right: Value) -> Value {
        let kind = type_of(width);
        let (zero, one) = (self.builder.ins().iconst(kind, 0), self.builder.ins().iconst(kind, 1));
        let by_zero = self.builder.ins().icmp(IntCC::Equal, right, zero);
        let signed = matches!(operation, Arithmetic::SignedDiv | Arithmetic::SignedMod);
        let minus_one = self.builder.ins().bnot(zero);
        let by_minus_one = self.builder.ins().icmp(IntCC::Equal, right, minus_one);
        let unfit = if signed { self.builder.ins().bor(by_zero, by_minus_one) } else { by_zero };
        let fit = self.builder.ins().select(unfit, one, right);
        let result = self.divide(operation, left, fit);
        match operation {
            Arithmetic::Div => self.builder.ins().select(by_zero, zero, result),
            Arithmetic::SignedDiv => {
                let negated = self.builder.ins().ineg(left);
                let result = self.builder.ins().select(by_minus_one, negated, result);
                self.builder.ins().select(by_zero, zero, result)
            }
            // The remainder of a division by -1 is 0, as by 1.
            _ => self.builder.ins().select(by_zero, left, result),
        }
    }
}
