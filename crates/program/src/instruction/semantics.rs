//! Semantics of operations as pure functions, for the interpreter, for constant folding, and as the reference
//! for the compiler.

use super::{Arithmetic, Atomic, ByteOrder, Condition, Narrow, Size, SwapWidth, Width};

impl Arithmetic {
    /// The result for these operands (RFC 9669, section 4.1). An immediate is given sign-extended to 64 bits.
    ///
    /// ```
    /// use longwire_program::{Arithmetic, Width};
    ///
    /// assert_eq!(Arithmetic::Div.apply(Width::W64, 7, 0), 0);
    /// assert_eq!(Arithmetic::Mod.apply(Width::W32, 0x1_0000_0007, 0), 7);
    /// assert_eq!(Arithmetic::SignedMod.apply(Width::W64, -13i64 as u64, 3), -1i64 as u64);
    /// ```
    pub const fn apply(self, width: Width, dst: u64, src: u64) -> u64 {
        match width {
            Width::W64 => self.wide(dst, src),
            Width::W32 => self.narrow(dst as u32, src as u32) as u64,
        }
    }

    const fn wide(self, dst: u64, src: u64) -> u64 {
        match self {
            Self::Add => dst.wrapping_add(src),
            Self::Sub => dst.wrapping_sub(src),
            Self::Mul => dst.wrapping_mul(src),
            Self::Div if src == 0 => 0,
            Self::Div => dst / src,
            Self::SignedDiv if src == 0 => 0,
            Self::SignedDiv => (dst as i64).wrapping_div(src as i64) as u64,
            Self::Or => dst | src,
            Self::And => dst & src,
            Self::ShiftLeft => dst << (src & 63),
            Self::ShiftRight => dst >> (src & 63),
            Self::Mod | Self::SignedMod if src == 0 => dst,
            Self::Mod => dst % src,
            Self::SignedMod => (dst as i64).wrapping_rem(src as i64) as u64,
            Self::Xor => dst ^ src,
            Self::Mov => src,
            Self::ShiftRightSigned => (dst as i64 >> (src & 63)) as u64,
        }
    }

    const fn narrow(self, dst: u32, src: u32) -> u32 {
        match self {
            Self::Add => dst.wrapping_add(src),
            Self::Sub => dst.wrapping_sub(src),
            Self::Mul => dst.wrapping_mul(src),
            Self::Div if src == 0 => 0,
            Self::Div => dst / src,
            Self::SignedDiv if src == 0 => 0,
            Self::SignedDiv => (dst as i32).wrapping_div(src as i32) as u32,
            Self::Or => dst | src,
            Self::And => dst & src,
            Self::ShiftLeft => dst << (src & 31),
            Self::ShiftRight => dst >> (src & 31),
            Self::Mod | Self::SignedMod if src == 0 => dst,
            Self::Mod => dst % src,
            Self::SignedMod => (dst as i32).wrapping_rem(src as i32) as u32,
            Self::Xor => dst ^ src,
            Self::Mov => src,
            Self::ShiftRightSigned => (dst as i32 >> (src & 31)) as u32,
        }
    }
}

impl Condition {
    /// Whether it holds between these operands (RFC 9669, section 4.3). An immediate is given sign-extended
    /// to 64 bits.
    pub const fn holds(self, width: Width, left: u64, right: u64) -> bool {
        // Sign-extending both keeps both orders, signed and unsigned, of 32-bit numbers.
        let (left, right) = match width {
            Width::W64 => (left, right),
            Width::W32 => (left as i32 as i64 as u64, right as i32 as i64 as u64),
        };
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::BitsSet => left & right != 0,
            Self::Greater => left > right,
            Self::GreaterEqual => left >= right,
            Self::Less => left < right,
            Self::LessEqual => left <= right,
            Self::SignedGreater => left as i64 > right as i64,
            Self::SignedGreaterEqual => left as i64 >= right as i64,
            Self::SignedLess => (left as i64) < right as i64,
            Self::SignedLessEqual => left as i64 <= right as i64,
        }
    }

    /// The negated condition; there is none for [`Condition::BitsSet`].
    pub const fn negated(self) -> Option<Self> {
        Some(match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::BitsSet => return None,
            Self::Greater => Self::LessEqual,
            Self::GreaterEqual => Self::Less,
            Self::Less => Self::GreaterEqual,
            Self::LessEqual => Self::Greater,
            Self::SignedGreater => Self::SignedLessEqual,
            Self::SignedGreaterEqual => Self::SignedLess,
            Self::SignedLess => Self::SignedGreaterEqual,
            Self::SignedLessEqual => Self::SignedGreater,
        })
    }
}

impl Atomic {
    /// Whether it returns the previous value.
    pub const fn fetches(self) -> bool {
        !matches!(self, Self::Add | Self::Or | Self::And | Self::Xor)
    }

    /// The new value after `old`; `r0` is the comparison value of [`Atomic::CompareExchange`], truncated to
    /// the width.
    pub const fn apply(self, width: Width, old: u64, src: u64, r0: u64) -> u64 {
        let (src, r0) = match width {
            Width::W64 => (src, r0),
            Width::W32 => (src as u32 as u64, r0 as u32 as u64),
        };
        match self {
            Self::Add | Self::FetchAdd => Arithmetic::Add.apply(width, old, src),
            Self::Or | Self::FetchOr => old | src,
            Self::And | Self::FetchAnd => old & src,
            Self::Xor | Self::FetchXor => old ^ src,
            Self::Exchange => src,
            Self::CompareExchange if old == r0 => src,
            Self::CompareExchange => old,
        }
    }
}

impl Narrow {
    /// `value` with its low bits sign-extended to `width`; zeros above that.
    pub const fn extend(self, width: Width, value: u64) -> u64 {
        let wide = match self {
            Self::S8 => value as i8 as i64 as u64,
            Self::S16 => value as i16 as i64 as u64,
            Self::S32 => value as i32 as i64 as u64,
        };
        match width {
            Width::W64 => wide,
            Width::W32 => wide as u32 as u64,
        }
    }
}

impl ByteOrder {
    /// The low bits of `value` in this order, on a little-endian machine, zero-extended.
    pub const fn apply(self, width: SwapWidth, value: u64) -> u64 {
        match (self, width) {
            (Self::Little, SwapWidth::B16) => value as u16 as u64,
            (Self::Little, SwapWidth::B32) => value as u32 as u64,
            (Self::Little, SwapWidth::B64) => value,
            (Self::Big | Self::Swapped, SwapWidth::B16) => (value as u16).swap_bytes() as u64,
            (Self::Big | Self::Swapped, SwapWidth::B32) => (value as u32).swap_bytes() as u64,
            (Self::Big | Self::Swapped, SwapWidth::B64) => value.swap_bytes(),
        }
    }
}

impl Size {
    /// The low bytes of `value`, zero-extended.
    pub const fn cut(self, value: u64) -> u64 {
        match self {
            Self::Byte => value as u8 as u64,
            Self::Half => value as u16 as u64,
            Self::Word => value as u32 as u64,
            Self::Double => value,
        }
    }

    /// The low bytes of `value`, sign-extended.
    pub const fn extend(self, value: u64) -> u64 {
        match self {
            Self::Byte => value as i8 as i64 as u64,
            Self::Half => value as i16 as i64 as u64,
            Self::Word => value as i32 as i64 as u64,
            Self::Double => value,
        }
    }
}
