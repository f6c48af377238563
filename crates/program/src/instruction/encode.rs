//! Encodes instructions: the inverse of decoding.

use super::decode::{Fields, SOURCE};
use super::{Instruction, Operand, Register, Size, Width};

impl Instruction {
    /// Appends its 8 or 16 bytes to `bytes` (RFC 9669, section 3, little endian).
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let slot = self.first_slot();
        bytes.extend([slot.opcode, slot.src << 4 | slot.dst]);
        bytes.extend(slot.offset.to_le_bytes());
        bytes.extend(slot.immediate.to_le_bytes());
        let next = match *self {
            Self::LoadWide { value, .. } => (value >> 32) as u32,
            Self::LoadMapValue { offset, .. } => offset,
            Self::LoadMap { .. } | Self::LoadFunction { .. } => 0,
            _ => return,
        };
        bytes.extend([0; 4]);
        bytes.extend(next.to_le_bytes());
    }

    fn first_slot(&self) -> Fields {
        match *self {
            Self::Arithmetic { width, operation, dst, source } => {
                let (code, offset) = operation.code();
                Fields::new(code | arithmetic_class(width), dst).offset(offset).with_operand(source)
            }
            Self::MoveExtended { width, from, dst, src } => {
                let slot = Fields::new(0xb0 | arithmetic_class(width), dst).offset(from.bytes() as i16 * 8);
                slot.with_operand(Operand::Register(src))
            }
            Self::Negate { width, dst } => Fields::new(0x80 | arithmetic_class(width), dst),
            Self::Swap { order, size, dst } => {
                Fields::new(order.code(), dst).immediate(size.bytes() as i32 * 8)
            }
            Self::LoadWide { dst, value } => Fields::new(0x18, dst).immediate(value as u32 as i32),
            Self::LoadMap { dst, map } => Fields::new(0x18, dst).selector(5).immediate(map as i32),
            Self::LoadMapValue { dst, map, .. } => Fields::new(0x18, dst).selector(6).immediate(map as i32),
            Self::LoadFunction { dst, offset } => {
                Fields::new(0x18, dst).selector(4).immediate(offset.wrapping_add(1))
            }
            Self::Load { size, dst, base, offset } => {
                Fields::access(0x61, size, dst, offset).selector(base.0)
            }
            Self::LoadExtended { size, dst, base, offset } => {
                Fields::access(0x81, size, dst, offset).selector(base.0)
            }
            Self::Store { size, base, offset, source } => match source {
                Operand::Register(src) => Fields::access(0x63, size, base, offset).selector(src.0),
                Operand::Immediate(value) => Fields::access(0x62, size, base, offset).immediate(value),
            },
            Self::Atomic { width, operation, base, offset, src } => {
                let opcode = if width == Width::W32 { 0xc3 } else { 0xdb };
                Fields::new(opcode, base).selector(src.0).offset(offset).immediate(operation.code())
            }
            Self::Branch { width, condition, dst, source, offset } => {
                let class = if width == Width::W32 { 0x06 } else { 0x05 };
                Fields::new(condition.code() | class, dst).offset(offset).with_operand(source)
            }
            Self::Jump { offset } => Fields::new(0x05, Register::R0).offset(offset),
            Self::JumpLong { offset } => Fields::new(0x06, Register::R0).immediate(offset),
            Self::Call { helper } => Fields::new(0x85, Register::R0).immediate(helper as i32),
            Self::CallLocal { offset } => Fields::new(0x85, Register::R0).selector(1).immediate(offset),
            Self::CallKernel { id } => Fields::new(0x85, Register::R0).selector(2).immediate(id),
            Self::Exit => Fields::new(0x95, Register::R0),
        }
    }
}

impl Fields {
    fn new(opcode: u8, dst: Register) -> Self {
        Self { opcode, dst: dst.0, src: 0, offset: 0, immediate: 0 }
    }

    /// A load or store of this size.
    fn access(opcode: u8, size: Size, dst: Register, offset: i16) -> Self {
        let size = match size {
            Size::Word => 0x00,
            Size::Half => 0x08,
            Size::Byte => 0x10,
            Size::Double => 0x18,
        };
        Self::new(opcode | size, dst).offset(offset)
    }

    fn offset(self, offset: i16) -> Self {
        Self { offset, ..self }
    }

    fn immediate(self, immediate: i32) -> Self {
        Self { immediate, ..self }
    }

    /// Writes the source register's field without the source bit, which not all instructions have.
    fn selector(self, src: u8) -> Self {
        Self { src, ..self }
    }

    fn with_operand(self, operand: Operand) -> Self {
        match operand {
            Operand::Register(src) => Self { opcode: self.opcode | SOURCE, src: src.0, ..self },
            Operand::Immediate(immediate) => Self { immediate, ..self },
        }
    }
}

fn arithmetic_class(width: Width) -> u8 {
    match width {
        Width::W32 => 0x04,
        Width::W64 => 0x07,
    }
}
