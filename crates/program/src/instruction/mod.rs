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
    /// The arguments of a call, in order.
    pub const ARGUMENTS: [Self; 5] = [Self::R1, Self::R2, Self::R3, Self::R4, Self::R5];
    /// These, as a set ([`Register::bit`]).
    pub(crate) const ARGUMENT_BITS: u16 = 0b11_1110;
    /// `r6` to `r9`, which are callee-saved, as a set.
    pub(crate) const SAVED_BITS: u16 = 0b11_1100_0000;

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

impl Width {
    /// The size of its operands.
    pub const fn size(self) -> Size {
        match self {
            Self::W32 => Size::Word,
            Self::W64 => Size::Double,
        }
    }
}

impl Size {
    /// The number of bytes.
    pub const fn bytes(self) -> usize {
        1 << self as usize
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

/// Defines an enum by its rows: variant, encoding in instructions, and notation.
macro_rules! rows {
    ($(#[$about:meta])+ $name:ident: $code:ty {
        $($(#[$help:meta])+ $variant:ident $encoding:expr, $symbol:literal;)+
    }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$help])+ $variant),+ }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its notation.
            pub const fn symbol(self) -> &'static str {
                match self { $(Self::$variant => $symbol),+ }
            }

            /// Its encoding.
            const fn code(self) -> $code {
                match self { $(Self::$variant => $encoding),+ }
            }

            fn from_code(code: $code) -> Option<Self> {
                Self::ALL.iter().copied().find(|row| row.code() == code)
            }

            pub(crate) fn from_symbol(symbol: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|row| row.symbol() == symbol)
            }
        }
    };
}

rows! {
    /// Operations of two operands (RFC 9669, section 4.1).
    ///
    /// The encoding is the operation's part of the opcode, and the offset.
    Arithmetic: (u8, i16) {
        /// Sum, modulo 2ⁿ.
        Add (0x00, 0), "+=";
        /// Difference, modulo 2ⁿ.
        Sub (0x10, 0), "-=";
        /// Product, modulo 2ⁿ.
        Mul (0x20, 0), "*=";
        /// Unsigned quotient; 0 for a divisor of 0.
        Div (0x30, 0), "/=";
        /// Signed quotient, rounded towards 0; 0 for a divisor of 0.
        SignedDiv (0x30, 1), "s/=";
        /// Bits of either.
        Or (0x40, 0), "|=";
        /// Bits of both.
        And (0x50, 0), "&=";
        /// Shift to the left by the source modulo n.
        ShiftLeft (0x60, 0), "<<=";
        /// Shift to the right by the source modulo n, filled with zeros.
        ShiftRight (0x70, 0), ">>=";
        /// Unsigned remainder; the dividend for a divisor of 0.
        Mod (0x90, 0), "%=";
        /// Signed remainder with the dividend's sign; the dividend for a divisor of 0.
        SignedMod (0x90, 1), "s%=";
        /// Bits of one of the two.
        Xor (0xa0, 0), "^=";
        /// The source itself.
        Mov (0xb0, 0), "=";
        /// Shift to the right by the source modulo n, filled with the sign.
        ShiftRightSigned (0xc0, 0), "s>>=";
    }
}

rows! {
    /// Change of byte order (RFC 9669, section 4.2).
    ///
    /// The encoding is the whole opcode.
    ByteOrder: u8 {
        /// Between the machine's order and little endian, which are the same: this only truncates.
        Little 0xd4, "le";
        /// Between the machine's order and big endian.
        Big 0xdc, "be";
        /// Always swapped.
        Swapped 0xd7, "bswap";
    }
}

rows! {
    /// Condition of a branch (RFC 9669, section 4.3).
    ///
    /// The encoding is the condition's part of the opcode.
    Condition: u8 {
        /// Equal.
        Equal 0x10, "==";
        /// Not equal.
        NotEqual 0x50, "!=";
        /// Have a common bit.
        BitsSet 0x40, "&";
        /// Greater, unsigned.
        Greater 0x20, ">";
        /// Greater or equal, unsigned.
        GreaterEqual 0x30, ">=";
        /// Less, unsigned.
        Less 0xa0, "<";
        /// Less or equal, unsigned.
        LessEqual 0xb0, "<=";
        /// Greater, signed.
        SignedGreater 0x60, "s>";
        /// Greater or equal, signed.
        SignedGreaterEqual 0x70, "s>=";
        /// Less, signed.
        SignedLess 0xc0, "s<";
        /// Less or equal, signed.
        SignedLessEqual 0xd0, "s<=";
    }
}

rows! {
    /// Atomic operation on memory (RFC 9669, section 5.3).
    ///
    /// The encoding is the immediate.
    Atomic: i32 {
        /// Adds the source.
        Add 0x00, "+=";
        /// Sets bits of the source.
        Or 0x40, "|=";
        /// Keeps bits of the source.
        And 0x50, "&=";
        /// Flips bits of the source.
        Xor 0xa0, "^=";
        /// Adds the source, which receives the previous value.
        FetchAdd 0x01, "atomic_fetch_add";
        /// Sets bits of the source, which receives the previous value.
        FetchOr 0x41, "atomic_fetch_or";
        /// Keeps bits of the source, which receives the previous value.
        FetchAnd 0x51, "atomic_fetch_and";
        /// Flips bits of the source, which receives the previous value.
        FetchXor 0xa1, "atomic_fetch_xor";
        /// Writes the source, which receives the previous value.
        Exchange 0xe1, "xchg";
        /// Writes the source if the value equals `r0`; `r0` receives the previous value.
        CompareExchange 0xf1, "cmpxchg";
    }
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
        /// Size of the source, at most 4 bytes.
        from: Size,
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
        /// The affected lower bytes, at least 2; the others become 0.
        size: Size,
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
