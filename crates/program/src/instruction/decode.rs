//! Decodes instructions. Whatever RFC 9669 doesn't define is refused: unknown opcodes and registers, and
//! non-zero unused fields.

use super::{Arithmetic, Atomic, ByteOrder, Condition, Instruction, Operand, Register, Size, Width};
use thiserror::Error;

/// An instruction that can't be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("instruction {slot}: {fault}")]
pub struct DecodeError {
    /// Its number in slots of 8 bytes.
    pub slot: usize,
    /// Its fault.
    pub fault: DecodeFault,
}

/// Error in the bytes of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeFault {
    /// Truncated.
    #[error("the program ends within it; it needs {0} bytes")]
    Truncated(usize),
    /// Unknown opcode.
    #[error("opcode {0:#04x} is none of RFC 9669's; compile with -mcpu=v4 or lower")]
    Opcode(u8),
    /// Unknown register.
    #[error("there is no register r{0}; r10 is the last")]
    Register(u8),
    /// A field that is unused in this instruction is not zero.
    #[error("opcode {opcode:#04x} does not use its field {field}, which must be 0 and is {value}")]
    Reserved {
        /// The instruction's opcode.
        opcode: u8,
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// The field selects an operation, and its value is unknown.
    #[error("opcode {opcode:#04x} has no operation for {field} {value}")]
    Selector {
        /// The instruction's opcode.
        opcode: u8,
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// Loads of classic BPF.
    #[error("opcode {0:#04x} is a packet load of classic BPF; read the packet through data and data_end")]
    Legacy(u8),
    /// A map given by a file descriptor, which only the kernel knows.
    #[error("it names a map by a file descriptor of the kernel; load the object file instead")]
    MapDescriptor,
}

/// The fields of a slot.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub opcode: u8,
    pub dst: u8,
    pub src: u8,
    pub offset: i16,
    pub immediate: i32,
}

const CLASS: u8 = 0x07;
/// The right operand is a register.
pub(super) const SOURCE: u8 = 0x08;
const CODE: u8 = 0xf0;

impl Instruction {
    /// Decodes the instruction at the beginning of `bytes`, which is at slot `slot` of its program.
    ///
    /// # Errors
    /// If it is not one of RFC 9669's (see [`DecodeFault`]).
    pub fn decode(bytes: &[u8], slot: usize) -> Result<Self, DecodeError> {
        decode(bytes).map_err(|fault| DecodeError { slot, fault })
    }
}

fn decode(bytes: &[u8]) -> Result<Instruction, DecodeFault> {
    let fields = Fields::read(bytes).ok_or(DecodeFault::Truncated(8))?;
    match fields.opcode & CLASS {
        0x0 => wide(fields, Fields::read(bytes.get(8..).unwrap_or(&[]))),
        0x1 => load(fields),
        0x2 | 0x3 => store(fields),
        0x4 => arithmetic(fields, Width::W32),
        0x5 => jump(fields, Width::W64),
        0x6 => jump(fields, Width::W32),
        _ => arithmetic(fields, Width::W64),
    }
}

impl Fields {
    fn read(bytes: &[u8]) -> Option<Self> {
        let slot: &[u8; 8] = bytes.first_chunk()?;
        Some(Self {
            opcode: slot[0],
            dst: slot[1] & 0xf,
            src: slot[1] >> 4,
            offset: i16::from_le_bytes([slot[2], slot[3]]),
            immediate: i32::from_le_bytes([slot[4], slot[5], slot[6], slot[7]]),
        })
    }

    fn dst(self) -> Result<Register, DecodeFault> {
        Register::new(self.dst).ok_or(DecodeFault::Register(self.dst))
    }

    fn src(self) -> Result<Register, DecodeFault> {
        Register::new(self.src).ok_or(DecodeFault::Register(self.src))
    }

    /// The right operand, by the source bit; the other field must be zero.
    fn operand(self) -> Result<Operand, DecodeFault> {
        if self.opcode & SOURCE == 0 {
            self.no_src()?;
            Ok(Operand::Immediate(self.immediate))
        } else {
            self.no_immediate()?;
            Ok(Operand::Register(self.src()?))
        }
    }

    fn no_dst(self) -> Result<(), DecodeFault> {
        self.zero("dst_reg", i64::from(self.dst))
    }

    fn no_src(self) -> Result<(), DecodeFault> {
        self.zero("src_reg", i64::from(self.src))
    }

    fn no_offset(self) -> Result<(), DecodeFault> {
        self.zero("offset", i64::from(self.offset))
    }

    fn no_immediate(self) -> Result<(), DecodeFault> {
        self.zero("imm", i64::from(self.immediate))
    }

    fn zero(self, field: &'static str, value: i64) -> Result<(), DecodeFault> {
        if value == 0 { Ok(()) } else { Err(DecodeFault::Reserved { opcode: self.opcode, field, value }) }
    }

    fn no_such(self, field: &'static str, value: i64) -> DecodeFault {
        DecodeFault::Selector { opcode: self.opcode, field, value }
    }
}

fn arithmetic(fields: Fields, width: Width) -> Result<Instruction, DecodeFault> {
    let (code, offset) = (fields.opcode & CODE, fields.offset);
    match code {
        0x80 => return negate(fields, width),
        0xb0 if offset != 0 => return move_extended(fields, width),
        0xd0 => return swap(fields),
        0xe0 | 0xf0 => return Err(DecodeFault::Opcode(fields.opcode)),
        _ => {}
    }
    let Some(operation) = Arithmetic::from_code((code, offset)) else {
        return Err(match code {
            0x30 | 0x90 => fields.no_such("offset", i64::from(offset)),
            _ => fields.no_offset().err().unwrap_or(DecodeFault::Opcode(fields.opcode)),
        });
    };
    Ok(Instruction::Arithmetic { width, operation, dst: fields.dst()?, source: fields.operand()? })
}

fn negate(fields: Fields, width: Width) -> Result<Instruction, DecodeFault> {
    if fields.opcode & SOURCE != 0 {
        return Err(DecodeFault::Opcode(fields.opcode));
    }
    fields.no_src()?;
    fields.no_offset()?;
    fields.no_immediate()?;
    Ok(Instruction::Negate { width, dst: fields.dst()? })
}

fn move_extended(fields: Fields, width: Width) -> Result<Instruction, DecodeFault> {
    let from = match (fields.offset, width) {
        (8, _) => Size::Byte,
        (16, _) => Size::Half,
        (32, Width::W64) => Size::Word,
        (other, _) => return Err(fields.no_such("offset", i64::from(other))),
    };
    if fields.opcode & SOURCE == 0 {
        return Err(fields.no_such("offset", i64::from(fields.offset)));
    }
    fields.no_immediate()?;
    Ok(Instruction::MoveExtended { width, from, dst: fields.dst()?, src: fields.src()? })
}

fn swap(fields: Fields) -> Result<Instruction, DecodeFault> {
    let order = ByteOrder::from_code(fields.opcode).ok_or(DecodeFault::Opcode(fields.opcode))?;
    fields.no_src()?;
    fields.no_offset()?;
    let size = match fields.immediate {
        16 => Size::Half,
        32 => Size::Word,
        64 => Size::Double,
        other => return Err(fields.no_such("imm", i64::from(other))),
    };
    Ok(Instruction::Swap { order, size, dst: fields.dst()? })
}

fn jump(fields: Fields, width: Width) -> Result<Instruction, DecodeFault> {
    let code = fields.opcode & CODE;
    if matches!(code, 0x00 | 0x80 | 0x90) {
        return transfer(fields, width);
    }
    let condition = Condition::from_code(code).ok_or(DecodeFault::Opcode(fields.opcode))?;
    let (dst, source) = (fields.dst()?, fields.operand()?);
    Ok(Instruction::Branch { width, condition, dst, source, offset: fields.offset })
}

/// Unconditional jumps, calls and returns.
fn transfer(fields: Fields, width: Width) -> Result<Instruction, DecodeFault> {
    let (code, immediate) = (fields.opcode & CODE, fields.immediate);
    if fields.opcode & SOURCE != 0 || (code != 0x00 && width == Width::W32) {
        return Err(DecodeFault::Opcode(fields.opcode));
    }
    fields.no_dst()?;
    if code != 0x80 {
        fields.no_src()?;
    }
    let is_short = code == 0x00 && width == Width::W64;
    if !is_short {
        fields.no_offset()?;
    }
    if is_short || code == 0x90 {
        fields.no_immediate()?;
    }
    match (code, fields.src) {
        (0x00, _) if is_short => Ok(Instruction::Jump { offset: fields.offset }),
        (0x00, _) => Ok(Instruction::JumpLong { offset: immediate }),
        (0x90, _) => Ok(Instruction::Exit),
        (_, 0) => Ok(Instruction::Call { helper: immediate as u32 }),
        (_, 1) => Ok(Instruction::CallLocal { offset: immediate }),
        (_, 2) => Ok(Instruction::CallKernel { id: immediate }),
        (_, other) => Err(fields.no_such("src_reg", i64::from(other))),
    }
}

fn size(opcode: u8) -> Size {
    match opcode & 0x18 {
        0x00 => Size::Word,
        0x08 => Size::Half,
        0x10 => Size::Byte,
        _ => Size::Double,
    }
}

fn load(fields: Fields) -> Result<Instruction, DecodeFault> {
    let size = size(fields.opcode);
    let extended = match (fields.opcode & 0xe0, size) {
        (0x60, _) => false,
        (0x80, Size::Byte | Size::Half | Size::Word) => true,
        _ => return Err(DecodeFault::Opcode(fields.opcode)),
    };
    fields.no_immediate()?;
    let (dst, base, offset) = (fields.dst()?, fields.src()?, fields.offset);
    Ok(match extended {
        false => Instruction::Load { size, dst, base, offset },
        true => Instruction::LoadExtended { size, dst, base, offset },
    })
}

fn store(fields: Fields) -> Result<Instruction, DecodeFault> {
    let from_register = fields.opcode & CLASS == 0x3;
    let size = size(fields.opcode);
    match (fields.opcode & 0xe0, from_register, size) {
        (0x60, true, _) => fields.no_immediate()?,
        (0x60, false, _) => fields.no_src()?,
        (0xc0, true, Size::Word) => return atomic(fields, Width::W32),
        (0xc0, true, Size::Double) => return atomic(fields, Width::W64),
        _ => return Err(DecodeFault::Opcode(fields.opcode)),
    }
    let source = match from_register {
        true => Operand::Register(fields.src()?),
        false => Operand::Immediate(fields.immediate),
    };
    Ok(Instruction::Store { size, base: fields.dst()?, offset: fields.offset, source })
}

fn atomic(fields: Fields, width: Width) -> Result<Instruction, DecodeFault> {
    let immediate = fields.immediate;
    let operation =
        Atomic::from_code(immediate).ok_or_else(|| fields.no_such("imm", i64::from(immediate)))?;
    let (base, offset, src) = (fields.dst()?, fields.offset, fields.src()?);
    Ok(Instruction::Atomic { width, operation, base, offset, src })
}

fn wide(fields: Fields, second: Option<Fields>) -> Result<Instruction, DecodeFault> {
    match fields.opcode & 0xe0 {
        0x00 if fields.opcode == 0x18 => {}
        0x20 | 0x40 if fields.opcode & 0x18 != 0x18 => return Err(DecodeFault::Legacy(fields.opcode)),
        _ => return Err(DecodeFault::Opcode(fields.opcode)),
    }
    let second = second.ok_or(DecodeFault::Truncated(16))?;
    fields.no_offset()?;
    for (field, value) in
        [("next opcode", second.opcode), ("next dst_reg", second.dst), ("next src_reg", second.src)]
    {
        fields.zero(field, i64::from(value))?;
    }
    fields.zero("next offset", i64::from(second.offset))?;
    let (dst, low, high) = (fields.dst()?, fields.immediate as u32, second.immediate as u32);
    if matches!(fields.src, 4 | 5) {
        fields.zero("next_imm", i64::from(second.immediate))?;
    }
    match fields.src {
        0 => Ok(Instruction::LoadWide { dst, value: u64::from(high) << 32 | u64::from(low) }),
        1 | 2 => Err(DecodeFault::MapDescriptor),
        5 => Ok(Instruction::LoadMap { dst, map: low }),
        6 => Ok(Instruction::LoadMapValue { dst, map: low, offset: high }),
        4 => {
            let offset = fields.immediate.checked_sub(1);
            let offset = offset.ok_or(fields.no_such("imm", i64::from(fields.immediate)))?;
            Ok(Instruction::LoadFunction { dst, offset })
        }
        other => Err(fields.no_such("src_reg", i64::from(other))),
    }
}
