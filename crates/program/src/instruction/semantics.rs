//! Semantics of operations as pure functions, for the interpreter, for constant folding, and as the reference
//! for the compiler.

use super::{Arithmetic, Atomic, ByteOrder, Condition, Size, Width};

/// Defines the results of operations for operands of one width.
macro_rules! of_width {
    ($name:ident: $unsigned:ty, $signed:ty) => {
        const fn $name(self, dst: $unsigned, src: $unsigned) -> $unsigned {
            let amount = src & (<$unsigned>::BITS as $unsigned - 1);
            match self {
                Self::Add => dst.wrapping_add(src),
                Self::Sub => dst.wrapping_sub(src),
                Self::Mul => dst.wrapping_mul(src),
                Self::Div | Self::SignedDiv if src == 0 => 0,
                Self::Div => dst / src,
                Self::SignedDiv => (dst as $signed).wrapping_div(src as $signed) as $unsigned,
                Self::Or => dst | src,
                Self::And => dst & src,
                Self::ShiftLeft => dst << amount,
                Self::ShiftRight => dst >> amount,
                Self::Mod | Self::SignedMod if src == 0 => dst,
                Self::Mod => dst % src,
                Self::SignedMod => (dst as $signed).wrapping_rem(src as $signed) as $unsigned,
                Self::Xor => dst ^ src,
                Self::Mov => src,
                Self::ShiftRightSigned => (dst as $signed >> amount) as $unsigned,
            }
        }
    };
}

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

    of_width!(wide: u64, i64);
    of_width!(narrow: u32, i32);
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
        let (src, r0) = (width.size().cut(src), width.size().cut(r0));
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

impl ByteOrder {
    /// The low bytes of `value` in this order, on a little-endian machine, zero-extended.
    pub const fn apply(self, size: Size, value: u64) -> u64 {
        match self {
            Self::Little => size.cut(value),
            Self::Big | Self::Swapped => value.swap_bytes() >> size.upper_bits(),
        }
    }
}

impl Size {
    /// Bits of a register above the low bytes.
    const fn upper_bits(self) -> usize {
        64 - self.bytes() * 8
    }

    /// The low bytes of `value`, zero-extended.
    pub const fn cut(self, value: u64) -> u64 {
        value & u64::MAX >> self.upper_bits()
    }

    /// The low bytes of `value`, sign-extended.
    pub const fn extend(self, value: u64) -> u64 {
        ((value << self.upper_bits()) as i64 >> self.upper_bits()) as u64
    }
}
