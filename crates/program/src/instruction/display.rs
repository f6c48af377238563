//! Instructions as text, in the notation of the kernel's verifier and of llvm-objdump.

use super::{Atomic, Instruction, Operand, Register, Size, Width};
use std::fmt::{Display, Formatter, Result, from_fn};

impl Display for Register {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "r{}", self.0)
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::Arithmetic { width, operation, dst, source } => {
                write!(f, "{} {} {}", named(width, dst), operation.symbol(), operand(width, source))
            }
            Self::MoveExtended { width, from, dst, src } => {
                write!(f, "{} = (s{}){}", named(width, dst), from.bytes() * 8, named(width, src))
            }
            Self::Negate { width, dst } => write!(f, "{0} = -{0}", named(width, dst)),
            Self::Swap { order, size, dst } => {
                write!(f, "{dst} = {}{} {dst}", order.symbol(), size.bytes() * 8)
            }
            Self::LoadWide { dst, value } => write!(f, "{dst} = {value:#x} ll"),
            Self::LoadMap { dst, map } => write!(f, "{dst} = map[{map}] ll"),
            Self::LoadMapValue { dst, map, offset } => write!(f, "{dst} = map[{map}][0]+{offset} ll"),
            Self::LoadFunction { dst, offset } => write!(f, "{dst} = pc{offset:+} ll"),
            Self::Load { size, dst, base, offset } => {
                write!(f, "{dst} = {}", memory('u', size, base, offset))
            }
            Self::LoadExtended { size, dst, base, offset } => {
                write!(f, "{dst} = {}", memory('s', size, base, offset))
            }
            Self::Store { size, base, offset, source } => {
                write!(f, "{} = {}", memory('u', size, base, offset), operand(Width::W64, source))
            }
            Self::Atomic { width, operation, base, offset, src } => {
                atomic(f, width, operation, place(base, offset), src)
            }
            Self::Jump { offset } => write!(f, "goto {offset:+}"),
            Self::JumpLong { offset } => write!(f, "gotol {offset:+}"),
            Self::Branch { width, condition, dst, source, offset } => {
                let (left, right) = (named(width, dst), operand(width, source));
                write!(f, "if {left} {} {right} goto {offset:+}", condition.symbol())
            }
            Self::Call { helper } => write!(f, "call {helper}"),
            Self::CallKernel { id } => write!(f, "call kernel {id}"),
            Self::CallLocal { offset } => write!(f, "call pc{offset:+}"),
            Self::Exit => f.write_str("exit"),
        }
    }
}

fn atomic(
    f: &mut Formatter<'_>,
    width: Width,
    operation: Atomic,
    place: impl Display,
    src: Register,
) -> Result {
    let (symbol, bits) = (operation.symbol(), width.size().bytes() * 8);
    match operation {
        Atomic::Exchange => write!(f, "{src} = {symbol}_{bits}({place}, {src})"),
        Atomic::CompareExchange => write!(f, "r0 = {symbol}_{bits}({place}, r0, {src})"),
        fetch if fetch.fetches() => write!(f, "{src} = {symbol}((u{bits} *)({place}), {src})"),
        _ => write!(f, "lock *(u{bits} *)({place}) {symbol} {src}"),
    }
}

/// A register's name in an operation of this width: `w3` or `r3`.
fn named(width: Width, register: Register) -> impl Display {
    from_fn(move |f| write!(f, "{}{}", if width == Width::W32 { 'w' } else { 'r' }, register.0))
}

fn operand(width: Width, operand: Operand) -> impl Display {
    from_fn(move |f| match operand {
        Operand::Register(register) => named(width, register).fmt(f),
        Operand::Immediate(value) => write!(f, "{value}"),
    })
}

/// `r1 + 4`.
fn place(base: Register, offset: i16) -> impl Display {
    let sign = if offset < 0 { '-' } else { '+' };
    from_fn(move |f| write!(f, "{base} {sign} {}", offset.unsigned_abs()))
}

/// `*(u32 *)(r1 + 4)`.
fn memory(sign: char, size: Size, base: Register, offset: i16) -> impl Display {
    from_fn(move |f| write!(f, "*({sign}{} *)({})", size.bytes() * 8, place(base, offset)))
}
