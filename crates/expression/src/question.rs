//! Questions of a compiled expression about a frame: source of values, arithmetic, comparison.

/// Number of bytes read, in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Byte,
    Half,
    Word,
}

/// Source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// The frame's length on the wire.
    Length,
    /// The packet's mark.
    Mark,
    /// Bytes at an offset from the frame's start.
    Frame { at: u32, width: Width },
    /// Bytes after the IPv4 header that begins at `header`: `at` is relative to the start of that header,
    /// without its length.
    Behind { header: u32, at: u32, width: Width },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    ExclusiveOr,
    ShiftLeft,
    ShiftRight,
}

/// A step of an arithmetic expression in postfix order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Constant(u32),
    Read(Load),
    /// Pops an index and reads at that additional offset.
    ReadIndexed(Load),
    Combine(Operator),
}

/// Question of a test. A test whose bytes are missing answers no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// Whether the masked value has this relation to a constant.
    Compare { load: Load, mask: u32, relation: Relation, value: u32 },
    /// Whether two arithmetic expressions have this relation: steps `start..middle` and `middle..end`.
    Arithmetic { start: u32, middle: u32, end: u32, relation: Relation },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Test {
    pub question: Question,
    pub yes: u16,
    pub no: u16,
}

/// Packet metadata besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PacketMetadata {
    pub wire_len: u32,
    pub mark: u32,
}

impl Load {
    /// Reads with the additional offset `index`; sums are modulo 2³², as in the kernel's packet filter.
    #[inline]
    pub fn read(self, frame: &[u8], known: PacketMetadata, index: u32) -> Option<u32> {
        let (at, width) = match self {
            Self::Length => return Some(known.wire_len),
            Self::Mark => return Some(known.mark),
            Self::Frame { at, width } => (at, width),
            Self::Behind { header, at, width } => (behind(frame, header, at)?, width),
        };
        let at = at.wrapping_add(index);
        match width {
            Width::Byte => byte(frame, at),
            Width::Half => half(frame, at),
            Width::Word => word(frame, at),
        }
    }
}

/// The offset `at` plus the length of the IPv4 header at `header`.
#[inline]
fn behind(frame: &[u8], header: u32, at: u32) -> Option<u32> {
    Some(at.wrapping_add((byte(frame, header)? & 0x0f) * 4))
}

#[inline]
fn byte(frame: &[u8], at: u32) -> Option<u32> {
    frame.get(at as usize).map(|&byte| u32::from(byte))
}

#[inline]
fn half(frame: &[u8], at: u32) -> Option<u32> {
    let half = frame.get(at as usize..)?.first_chunk()?;
    Some(u32::from(u16::from_be_bytes(*half)))
}

#[inline]
fn word(frame: &[u8], at: u32) -> Option<u32> {
    frame.get(at as usize..)?.first_chunk().map(|&word| u32::from_be_bytes(word))
}

impl Relation {
    #[inline]
    pub fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Unequal => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

impl Operator {
    /// The result modulo 2³²; none for a division by zero. A shift by more than 31 bits gives zero.
    pub fn apply(self, left: u32, right: u32) -> Option<u32> {
        match self {
            Self::Add => Some(left.wrapping_add(right)),
            Self::Subtract => Some(left.wrapping_sub(right)),
            Self::Multiply => Some(left.wrapping_mul(right)),
            Self::Divide => left.checked_div(right),
            Self::Remainder => left.checked_rem(right),
            Self::And => Some(left & right),
            Self::Or => Some(left | right),
            Self::ExclusiveOr => Some(left ^ right),
            Self::ShiftLeft => Some(left.checked_shl(right).unwrap_or(0)),
            Self::ShiftRight => Some(left.checked_shr(right).unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_modulo_two_to_the_32() {
        use Operator::{Add, Divide, Multiply, Remainder, ShiftLeft, ShiftRight, Subtract};
        let table = [
            (Add, u32::MAX, 2, Some(1)),
            (Subtract, 1, 2, Some(u32::MAX)),
            (Multiply, 1 << 31, 2, Some(0)),
            (Divide, 7, 2, Some(3)),
            (Divide, 7, 0, None),
            (Remainder, 7, 4, Some(3)),
            (Remainder, 7, 0, None),
            (ShiftLeft, 1, 31, Some(1 << 31)),
            (ShiftLeft, 1, 32, Some(0)),
            (ShiftRight, u32::MAX, 40, Some(0)),
        ];
        for (operator, left, right, wanted) in table {
            assert_eq!(operator.apply(left, right), wanted, "{operator:?} {left} {right}");
        }
    }

    #[test]
    fn reads_end_with_the_frame() {
        let frame = [0x45, 1, 2, 3, 4];
        let known = PacketMetadata { wire_len: 60, mark: 7 };
        let read = |at, width| Load::Frame { at, width }.read(&frame, known, 0);
        assert_eq!(read(1, Width::Word), Some(0x0102_0304));
        assert_eq!(read(2, Width::Word), None);
        assert_eq!((read(3, Width::Half), read(4, Width::Half)), (Some(0x0304), None));
        assert_eq!(
            (read(4, Width::Byte), read(5, Width::Byte), read(u32::MAX, Width::Byte)),
            (Some(4), None, None)
        );
        assert_eq!(
            (Load::Length.read(&frame, known, 9), Load::Mark.read(&[], known, 9)),
            (Some(60), Some(7))
        );
        // A header of 5 words at 0: 20 bytes minus 17 is byte 3.
        let behind = Load::Behind { header: 0, at: 0u32.wrapping_sub(17), width: Width::Byte };
        assert_eq!((behind.read(&frame, known, 0), behind.read(&frame, known, 1)), (Some(3), Some(4)));
    }
}
