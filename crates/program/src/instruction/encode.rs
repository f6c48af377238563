//! Encodes instructions: the inverse of decoding.

use super::{
    Arithmetic, Atomic, ByteOrder, Condition, Instruction, Narrow, Operand, Register, Size, SwapWidth, Width,
};

const REGISTER: u8 = 0x08;

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

    fn first_slot(&self) -> Slot {
        match *self {
            Self::Arithmetic { width, operation, dst, source } => {
                let (code, offset) = arithmetic(operation);
                Slot::new(code | arithmetic_class(width), dst).offset(offset).operand(source)
            }
            Self::MoveExtended { width, from, dst, src } => {
                let offset = match from {
                    Narrow::S8 => 8,
                    Narrow::S16 => 16,
                    Narrow::S32 => 32,
                };
                let slot = Slot::new(0xb0 | arithmetic_class(width), dst).offset(offset);
                slot.operand(Operand::Register(src))
            }
            Self::Negate { width, dst } => Slot::new(0x80 | arithmetic_class(width), dst),
            Self::Swap { order, width, dst } => swap(order, width, dst),
            Self::LoadWide { dst, value } => Slot::new(0x18, dst).immediate(value as u32 as i32),
            Self::LoadMap { dst, map } => Slot::new(0x18, dst).selector(5).immediate(map as i32),
            Self::LoadMapValue { dst, map, .. } => Slot::new(0x18, dst).selector(6).immediate(map as i32),
            Self::LoadFunction { dst, offset } => {
                Slot::new(0x18, dst).selector(4).immediate(offset.wrapping_add(1))
            }
            Self::Load { size, dst, base, offset } => {
                Slot::new(0x61 | size_bits(size), dst).selector(base.0).offset(offset)
            }
            Self::LoadExtended { size, dst, base, offset } => {
                Slot::new(0x81 | size_bits(size), dst).selector(base.0).offset(offset)
            }
            Self::Store { size, base, offset, source } => match source {
                Operand::Register(src) => {
                    Slot::new(0x63 | size_bits(size), base).selector(src.0).offset(offset)
                }
                Operand::Immediate(value) => {
                    Slot::new(0x62 | size_bits(size), base).offset(offset).immediate(value)
                }
            },
            Self::Atomic { width, operation, base, offset, src } => {
                let opcode = if width == Width::W32 { 0xc3 } else { 0xdb };
                Slot::new(opcode, base).selector(src.0).offset(offset).immediate(atomic(operation))
            }
            Self::Branch { width, condition, dst, source, offset } => {
                let class = if width == Width::W32 { 0x06 } else { 0x05 };
                Slot::new(condition_code(condition) | class, dst).offset(offset).operand(source)
            }
            Self::Jump { offset } => Slot::new(0x05, Register::R0).offset(offset),
            Self::JumpLong { offset } => Slot::new(0x06, Register::R0).immediate(offset),
            Self::Call { helper } => Slot::new(0x85, Register::R0).immediate(helper as i32),
            Self::CallLocal { offset } => Slot::new(0x85, Register::R0).selector(1).immediate(offset),
            Self::CallKernel { id } => Slot::new(0x85, Register::R0).selector(2).immediate(id),
            Self::Exit => Slot::new(0x95, Register::R0),
        }
    }
}

struct Slot {
    opcode: u8,
    dst: u8,
    src: u8,
    offset: i16,
    immediate: i32,
}

impl Slot {
    fn new(opcode: u8, dst: Register) -> Self {
        Self { opcode, dst: dst.0, src: 0, offset: 0, immediate: 0 }
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

    fn operand(self, operand: Operand) -> Self {
        match operand {
            Operand::Register(src) => Self { opcode: self.opcode | REGISTER, src: src.0, ..self },
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

/// The code in its place in the opcode, and the offset.
fn arithmetic(operation: Arithmetic) -> (u8, i16) {
    match operation {
        Arithmetic::Add => (0x00, 0),
        Arithmetic::Sub => (0x10, 0),
        Arithmetic::Mul => (0x20, 0),
        Arithmetic::Div => (0x30, 0),
        Arithmetic::SignedDiv => (0x30, 1),
        Arithmetic::Or => (0x40, 0),
        Arithmetic::And => (0x50, 0),
        Arithmetic::ShiftLeft => (0x60, 0),
        Arithmetic::ShiftRight => (0x70, 0),
        Arithmetic::Mod => (0x90, 0),
        Arithmetic::SignedMod => (0x90, 1),
        Arithmetic::Xor => (0xa0, 0),
        Arithmetic::Mov => (0xb0, 0),
        Arithmetic::ShiftRightSigned => (0xc0, 0),
    }
}

fn swap(order: ByteOrder, width: SwapWidth, dst: Register) -> Slot {
    let opcode = match order {
        ByteOrder::Little => 0xd4,
        ByteOrder::Big => 0xdc,
        ByteOrder::Swapped => 0xd7,
    };
    let bits = match width {
        SwapWidth::B16 => 16,
        SwapWidth::B32 => 32,
        SwapWidth::B64 => 64,
    };
    Slot::new(opcode, dst).immediate(bits)
}

fn size_bits(size: Size) -> u8 {
    match size {
        Size::Word => 0x00,
        Size::Half => 0x08,
        Size::Byte => 0x10,
        Size::Double => 0x18,
    }
}

fn atomic(operation: Atomic) -> i32 {
    match operation {
        Atomic::Add => 0x00,
        Atomic::Or => 0x40,
        Atomic::And => 0x50,
        Atomic::Xor => 0xa0,
        Atomic::FetchAdd => 0x01,
        Atomic::FetchOr => 0x41,
        Atomic::FetchAnd => 0x51,
        Atomic::FetchXor => 0xa1,
        Atomic::Exchange => 0xe1,
        Atomic::CompareExchange => 0xf1,
    }
}

fn condition_code(condition: Condition) -> u8 {
    match condition {
        Condition::Equal => 0x10,
        Condition::Greater => 0x20,
        Condition::GreaterEqual => 0x30,
        Condition::BitsSet => 0x40,
        Condition::NotEqual => 0x50,
        Condition::SignedGreater => 0x60,
        Condition::SignedGreaterEqual => 0x70,
        Condition::Less => 0xa0,
        Condition::LessEqual => 0xb0,
        Condition::SignedLess => 0xc0,
        Condition::SignedLessEqual => 0xd0,
    }
}
