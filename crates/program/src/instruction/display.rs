//! Instructions as text, in the notation of the kernel's verifier and of llvm-objdump.

use super::{
    Arithmetic, Atomic, ByteOrder, Condition, Instruction, Narrow, Operand, Register, Size, SwapWidth, Width,
};
use std::fmt::{Display, Formatter, Result};

impl Display for Register {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "r{}", self.0)
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::Arithmetic { width, operation, dst, source } => {
                write!(f, "{} {} {}", Named(width, dst), operation.symbol(), NamedOperand(width, source))
            }
            Self::MoveExtended { width, from, dst, src } => {
                write!(f, "{} = ({}){}", Named(width, dst), from.name(), Named(width, src))
            }
            Self::Negate { width, dst } => write!(f, "{0} = -{0}", Named(width, dst)),
            Self::Swap { order, width, dst } => {
                write!(f, "{dst} = {}{} {dst}", order.name(), width.bits())
            }
            Self::LoadWide { dst, value } => write!(f, "{dst} = {value:#x} ll"),
            Self::LoadMap { dst, map } => write!(f, "{dst} = map[{map}] ll"),
            Self::LoadMapValue { dst, map, offset } => write!(f, "{dst} = map[{map}][0]+{offset} ll"),
            Self::LoadFunction { dst, offset } => write!(f, "{dst} = pc{offset:+} ll"),
            Self::Load { size, dst, base, offset } => {
                write!(f, "{dst} = {}", Memory('u', size, base, offset))
            }
            Self::LoadExtended { size, dst, base, offset } => {
                write!(f, "{dst} = {}", Memory('s', size, base, offset))
            }
            Self::Store { size, base, offset, source } => {
                write!(f, "{} = {}", Memory('u', size, base, offset), NamedOperand(Width::W64, source))
            }
            Self::Atomic { width, operation, base, offset, src } => {
                atomic(f, width, operation, Place(base, offset), src)
            }
            Self::Jump { offset } => write!(f, "goto {offset:+}"),
            Self::JumpLong { offset } => write!(f, "gotol {offset:+}"),
            Self::Branch { width, condition, dst, source, offset } => {
                let (left, right) = (Named(width, dst), NamedOperand(width, source));
                write!(f, "if {left} {} {right} goto {offset:+}", condition.symbol())
            }
            Self::Call { helper } => write!(f, "call {helper}"),
            Self::CallKernel { id } => write!(f, "call kernel {id}"),
            Self::CallLocal { offset } => write!(f, "call pc{offset:+}"),
            Self::Exit => f.write_str("exit"),
        }
    }
}

fn atomic(f: &mut Formatter<'_>, width: Width, operation: Atomic, place: Place, src: Register) -> Result {
    let bits = if width == Width::W32 { 32 } else { 64 };
    match operation {
        Atomic::Exchange => write!(f, "{src} = xchg_{bits}({place}, {src})"),
        Atomic::CompareExchange => write!(f, "r0 = cmpxchg_{bits}({place}, r0, {src})"),
        fetch if fetch.fetches() => {
            write!(f, "{src} = atomic_fetch_{}((u{bits} *)({place}), {src})", fetch.name())
        }
        plain => write!(f, "lock *(u{bits} *)({place}) {} {src}", plain.name()),
    }
}

/// A register's name in an operation of this width: `w3` or `r3`.
struct Named(Width, Register);

impl Display for Named {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}{}", if self.0 == Width::W32 { 'w' } else { 'r' }, self.1.0)
    }
}

struct NamedOperand(Width, Operand);

impl Display for NamedOperand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.1 {
            Operand::Register(register) => Named(self.0, register).fmt(f),
            Operand::Immediate(value) => write!(f, "{value}"),
        }
    }
}

/// `r1 + 4`.
#[derive(Clone, Copy)]
struct Place(Register, i16);

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let sign = if self.1 < 0 { '-' } else { '+' };
        write!(f, "{} {sign} {}", self.0, self.1.unsigned_abs())
    }
}

/// `*(u32 *)(r1 + 4)`.
struct Memory(char, Size, Register, i16);

impl Display for Memory {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "*({}{} *)({})", self.0, self.1.bytes() * 8, Place(self.2, self.3))
    }
}

impl Arithmetic {
    /// Every operation.
    pub const ALL: &'static [Self] = &[
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::SignedDiv,
        Self::Or,
        Self::And,
        Self::ShiftLeft,
        Self::ShiftRight,
        Self::Mod,
        Self::SignedMod,
        Self::Xor,
        Self::Mov,
        Self::ShiftRightSigned,
    ];

    /// Its notation between operands, such as `+=`.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+=",
            Self::Sub => "-=",
            Self::Mul => "*=",
            Self::Div => "/=",
            Self::SignedDiv => "s/=",
            Self::Or => "|=",
            Self::And => "&=",
            Self::ShiftLeft => "<<=",
            Self::ShiftRight => ">>=",
            Self::Mod => "%=",
            Self::SignedMod => "s%=",
            Self::Xor => "^=",
            Self::Mov => "=",
            Self::ShiftRightSigned => "s>>=",
        }
    }
}

impl Condition {
    /// Every condition.
    pub const ALL: &'static [Self] = &[
        Self::Equal,
        Self::NotEqual,
        Self::BitsSet,
        Self::Greater,
        Self::GreaterEqual,
        Self::Less,
        Self::LessEqual,
        Self::SignedGreater,
        Self::SignedGreaterEqual,
        Self::SignedLess,
        Self::SignedLessEqual,
    ];

    /// Its notation between operands, such as `s>=`.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::BitsSet => "&",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::SignedGreater => "s>",
            Self::SignedGreaterEqual => "s>=",
            Self::SignedLess => "s<",
            Self::SignedLessEqual => "s<=",
        }
    }
}

impl Atomic {
    /// Its notation: an operator for those that fetch nothing, a word for the others.
    const fn name(self) -> &'static str {
        match self {
            Self::Add => "+=",
            Self::Or => "|=",
            Self::And => "&=",
            Self::Xor => "^=",
            Self::FetchAdd => "add",
            Self::FetchOr => "or",
            Self::FetchAnd => "and",
            Self::FetchXor => "xor",
            Self::Exchange => "xchg",
            Self::CompareExchange => "cmpxchg",
        }
    }
}

impl Narrow {
    const fn name(self) -> &'static str {
        match self {
            Self::S8 => "s8",
            Self::S16 => "s16",
            Self::S32 => "s32",
        }
    }
}

impl ByteOrder {
    const fn name(self) -> &'static str {
        match self {
            Self::Little => "le",
            Self::Big => "be",
            Self::Swapped => "bswap",
        }
    }
}

impl SwapWidth {
    const fn bits(self) -> u32 {
        match self {
            Self::B16 => 16,
            Self::B32 => 32,
            Self::B64 => 64,
        }
    }
}
