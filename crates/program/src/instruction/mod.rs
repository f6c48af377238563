//! The instructions of RFC 9669, one value each.
//!
//! All permanent conformance groups except `packet` (the deprecated loads of classic BPF): base32, base64,
//! divmul32, divmul64, atomic32, atomic64. Compilers' `-mcpu=v4` is within the base groups: sign-extending
//! moves and loads, signed division, unconditional byte swaps, long jumps.
//!
//! Offsets of jumps and calls count slots of eight bytes from the following instruction, as encoded;
//! [`Code`](crate::Code) resolves them.

mod decode;
mod display;
mod encode;
mod semantics;

pub use decode::{DecodeError, DecodeFault};

/// One of the registers `r0` to `r10`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(u8);

impl Register {
    /// Number of registers.
    pub const COUNT: usize = 11;
    /// Return value.
    pub const R0: Self = Self(0);
    /// The first argument: the context, when a program starts.
    pub const R1: Self = Self(1);
    /// The second argument.
    pub const R2: Self = Self(2);
    /// The third argument.
    pub const R3: Self = Self(3);
    /// The fourth argument.
    pub const R4: Self = Self(4);
    /// The fifth argument.
    pub const R5: Self = Self(5);
    /// The first of four callee-saved registers.
    pub const R6: Self = Self(6);
    /// The second of them.
    pub const R7: Self = Self(7);
    /// The end of the stack frame; nothing may write it.
    pub const FRAME: Self = Self(10);

    /// The register with this number, 0 to 10.
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < Self::COUNT { Some(Self(number)) } else { None }
    }

    /// Its number, 0 to 10.
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// As a set of registers: bit n is register n.
    pub const fn bit(self) -> u16 {
        1 << self.0
    }
}

/// Operand width. A 32-bit operation clears the upper half of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Width {
    /// The lower 32.
    W32,
    /// All 64.
    W64,
}

/// Size of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// 1 byte.
    Byte,
    /// 2 bytes.
    Half,
    /// 4 bytes.
    Word,
    /// 8 bytes.
    Double,
}

impl Size {
    /// The number of bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
            Self::Word => 4,
            Self::Double => 8,
        }
    }
}

/// Second operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A register's value.
    Register(Register),
    /// A number, sign-extended to 64 bits.
    Immediate(i32),
}

/// Operations of two operands (RFC 9669, section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// Sum, modulo 2ⁿ.
    Add,
    /// Difference, modulo 2ⁿ.
    Sub,
    /// Product, modulo 2ⁿ.
    Mul,
    /// Unsigned quotient; 0 for a divisor of 0.
    Div,
    /// Signed quotient, rounded towards 0; 0 for a divisor of 0.
    SignedDiv,
    /// Bits of either.
    Or,
    /// Bits of both.
    And,
    /// Shift to the left by the source modulo n.
    ShiftLeft,
    /// Shift to the right by the source modulo n, filled with zeros.
    ShiftRight,
    /// Unsigned remainder; the dividend for a divisor of 0.
    Mod,
    /// Signed remainder with the dividend's sign; the dividend for a divisor of 0.
    SignedMod,
    /// Bits of one of the two.
    Xor,
    /// The source itself.
    Mov,
    /// Shift to the right by the source modulo n, filled with the sign.
    ShiftRightSigned,
}

/// Width from which a move extends the sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Narrow {
    /// 8 bits.
    S8,
    /// 16 bits.
    S16,
    /// 32 bits; only to 64.
    S32,
}

/// Change of byte order (RFC 9669, section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Between the machine's order and little endian. The machine is little endian, so this only truncates.
    Little,
    /// Between the machine's order and big endian.
    Big,
    /// Always swapped.
    Swapped,
}

/// Lower bits of a register affected by a change of byte order; the others become 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SwapWidth {
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
}

/// Condition of a branch (RFC 9669, section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Have a common bit.
    BitsSet,
    /// Greater, unsigned.
    Greater,
    /// Greater or equal, unsigned.
    GreaterEqual,
    /// Less, unsigned.
    Less,
    /// Less or equal, unsigned.
    LessEqual,
    /// Greater, signed.
    SignedGreater,
    /// Greater or equal, signed.
    SignedGreaterEqual,
    /// Less, signed.
    SignedLess,
    /// Less or equal, signed.
    SignedLessEqual,
}

/// Atomic operation on memory (RFC 9669, section 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Atomic {
    /// Adds the source.
    Add,
    /// Sets bits of the source.
    Or,
    /// Keeps bits of the source.
    And,
    /// Flips bits of the source.
    Xor,
    /// Adds the source, which receives the previous value.
    FetchAdd,
    /// Sets bits of the source, which receives the previous value.
    FetchOr,
    /// Keeps bits of the source, which receives the previous value.
    FetchAnd,
    /// Flips bits of the source, which receives the previous value.
    FetchXor,
    /// Writes the source, which receives the previous value.
    Exchange,
    /// Writes the source if the value equals `r0`; `r0` receives the previous value.
    CompareExchange,
}

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// `dst = dst OPERATION source`.
    Arithmetic {
        /// Operand width.
        width: Width,
        /// Operation.
        operation: Arithmetic,
        /// Left operand and result.
        dst: Register,
        /// Right operand.
        source: Operand,
    },
    /// `dst = (sN)src`. From 32 bits only to [`Width::W64`].
    MoveExtended {
        /// Width of the result.
        width: Width,
        /// Width of the source.
        from: Narrow,
        /// Result.
        dst: Register,
        /// Source.
        src: Register,
    },
    /// `dst = -dst`.
    Negate {
        /// Operand width.
        width: Width,
        /// Operand and result.
        dst: Register,
    },
    /// Changes the byte order.
    Swap {
        /// To this order.
        order: ByteOrder,
        /// Number of bits.
        width: SwapWidth,
        /// Operand and result.
        dst: Register,
    },
    /// `dst = value`, in two slots.
    LoadWide {
        /// Result.
        dst: Register,
        /// All 64 bits.
        value: u64,
    },
    /// `dst` = a map, for helpers that take one; in two slots (RFC 9669's `map_by_idx`).
    LoadMap {
        /// Result.
        dst: Register,
        /// The map's index in the object.
        map: u32,
    },
    /// `dst` = the address of a byte of an array map's first value, in two slots (`map_val(map_by_idx)`), as
    /// for variables of `.data`, `.rodata` and `.bss`.
    LoadMapValue {
        /// Result.
        dst: Register,
        /// The map's index in the object.
        map: u32,
        /// Byte offset.
        offset: u32,
    },
    /// `dst` = the address of a function of the program, for callbacks; in two slots (`code_addr`).
    LoadFunction {
        /// Result.
        dst: Register,
        /// Slots beyond the next instruction. (Encoded as one more: counted from its own second slot.)
        offset: i32,
    },
    /// `dst = *(base + offset)`, zero-extended.
    Load {
        /// Size.
        size: Size,
        /// Result.
        dst: Register,
        /// Address.
        base: Register,
        /// Byte offset.
        offset: i16,
    },
    /// `dst = *(base + offset)`, sign-extended. Not of 8 bytes.
    LoadExtended {
        /// Size.
        size: Size,
        /// Result.
        dst: Register,
        /// Address.
        base: Register,
        /// Byte offset.
        offset: i16,
    },
    /// `*(base + offset) = source`.
    Store {
        /// Size.
        size: Size,
        /// Address.
        base: Register,
        /// Byte offset.
        offset: i16,
        /// Source.
        source: Operand,
    },
    /// An atomic operation on `*(base + offset)`.
    Atomic {
        /// On 4 bytes ([`Width::W32`]) or 8. Fetched values of 4 bytes are zero-extended.
        width: Width,
        /// Operation.
        operation: Atomic,
        /// Address.
        base: Register,
        /// Byte offset.
        offset: i16,
        /// Operand, and result of those that fetch, except for [`Atomic::CompareExchange`].
        src: Register,
    },
    /// Unconditional jump.
    Jump {
        /// Slots beyond the next instruction.
        offset: i16,
    },
    /// Unconditional long jump.
    JumpLong {
        /// Slots beyond the next instruction.
        offset: i32,
    },
    /// Conditional jump.
    Branch {
        /// Operand width.
        width: Width,
        /// Condition.
        condition: Condition,
        /// Left operand.
        dst: Register,
        /// Right operand.
        source: Operand,
        /// Slots beyond the next instruction.
        offset: i16,
    },
    /// Calls a helper by its number.
    Call {
        /// The number, see [`Helper`](crate::Helper).
        helper: u32,
    },
    /// Calls a kernel function by its BTF id. Decoded only for error messages.
    CallKernel {
        /// The id.
        id: i32,
    },
    /// Calls a function of the program.
    CallLocal {
        /// Slots beyond the next instruction.
        offset: i32,
    },
    /// Returns `r0`.
    Exit,
}

impl Instruction {
    /// Number of slots of 8 bytes: 1 or 2.
    pub const fn slots(&self) -> usize {
        match self {
            Self::LoadWide { .. }
            | Self::LoadMap { .. }
            | Self::LoadMapValue { .. }
            | Self::LoadFunction { .. } => 2,
            _ => 1,
        }
    }

    /// Jump target, or the function that it calls or names: slots beyond the next instruction.
    pub const fn jump(&self) -> Option<i32> {
        match *self {
            Self::Jump { offset } | Self::Branch { offset, .. } => Some(offset as i32),
            Self::JumpLong { offset } | Self::CallLocal { offset } | Self::LoadFunction { offset, .. } => {
                Some(offset)
            }
            _ => None,
        }
    }

    /// Whether [`Instruction::jump`] is a function, not a jump target.
    pub const fn names_function(&self) -> bool {
        matches!(self, Self::CallLocal { .. } | Self::LoadFunction { .. })
    }

    /// Whether the following instruction can run next (for a call, after its return).
    pub const fn falls_through(&self) -> bool {
        !matches!(self, Self::Jump { .. } | Self::JumpLong { .. } | Self::Exit)
    }

    /// The register that it writes. Calls write `r0`, and leave `r1` to `r5` undefined.
    pub const fn writes(&self) -> Option<Register> {
        match *self {
            Self::Arithmetic { dst, .. }
            | Self::MoveExtended { dst, .. }
            | Self::Negate { dst, .. }
            | Self::Swap { dst, .. }
            | Self::LoadWide { dst, .. }
            | Self::LoadMap { dst, .. }
            | Self::LoadMapValue { dst, .. }
            | Self::LoadFunction { dst, .. }
            | Self::Load { dst, .. }
            | Self::LoadExtended { dst, .. } => Some(dst),
            Self::Atomic { operation: Atomic::CompareExchange, .. } => Some(Register::R0),
            Self::Atomic { operation, src, .. } if operation.fetches() => Some(src),
            Self::Call { .. } | Self::CallKernel { .. } | Self::CallLocal { .. } => Some(Register::R0),
            _ => None,
        }
    }

    /// The registers that it reads, as a set ([`Register::bit`]), without the arguments of calls, which
    /// depend on the callee.
    pub const fn reads(&self) -> u16 {
        match *self {
            Self::Arithmetic { operation: Arithmetic::Mov, source, .. } => source.bit(),
            Self::Arithmetic { dst, source, .. } | Self::Branch { dst, source, .. } => {
                dst.bit() | source.bit()
            }
            Self::MoveExtended { src, .. } => src.bit(),
            Self::Negate { dst, .. } | Self::Swap { dst, .. } => dst.bit(),
            Self::Load { base, .. } | Self::LoadExtended { base, .. } => base.bit(),
            Self::Store { base, source, .. } => base.bit() | source.bit(),
            Self::Atomic { operation: Atomic::CompareExchange, base, src, .. } => {
                base.bit() | src.bit() | Register::R0.bit()
            }
            Self::Atomic { base, src, .. } => base.bit() | src.bit(),
            Self::Exit => Register::R0.bit(),
            _ => 0,
        }
    }
}

impl Operand {
    /// The register that it reads, as a set.
    const fn bit(self) -> u16 {
        match self {
            Self::Register(register) => register.bit(),
            Self::Immediate(_) => 0,
        }
    }
}
