//! Knowledge about a number in a register: signed and unsigned bounds of all 64 bits and of the lower 32, and
//! known bits.
//!
//! All four describe the same number; `settle` propagates information between them.

use super::bits::Bits;
use crate::{Arithmetic, ByteOrder, Size, Width};

/// A set of numbers. Bounds are inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scalar {
    pub bits: Bits,
    pub min: u64,
    pub max: u64,
    pub signed_min: i64,
    pub signed_max: i64,
    /// Bounds of the lower 32 bits.
    pub low_min: u32,
    pub low_max: u32,
    /// Signed bounds of the lower 32 bits.
    pub low_signed_min: i32,
    pub low_signed_max: i32,
}

impl Scalar {
    /// Any number.
    pub const ANY: Self = Self {
        bits: Bits::ANY,
        min: 0,
        max: u64::MAX,
        signed_min: i64::MIN,
        signed_max: i64::MAX,
        low_min: 0,
        low_max: u32::MAX,
        low_signed_min: i32::MIN,
        low_signed_max: i32::MAX,
    };

    pub const fn constant(value: u64) -> Self {
        Self {
            bits: Bits::constant(value),
            min: value,
            max: value,
            signed_min: value as i64,
            signed_max: value as i64,
            low_min: value as u32,
            low_max: value as u32,
            low_signed_min: value as i32,
            low_signed_max: value as i32,
        }
    }

    /// The numbers from `min` to `max`, unsigned.
    pub fn between(min: u64, max: u64) -> Self {
        Self { min, max, ..Self::ANY }.settled()
    }

    /// The numbers from `min` to `max`, signed.
    pub fn between_signed(min: i64, max: i64) -> Self {
        Self { signed_min: min, signed_max: max, ..Self::ANY }.settled()
    }

    /// The possible results of a load of this size.
    pub fn of_size(size: Size) -> Self {
        Self::between(0, size.cut(u64::MAX))
    }

    pub fn as_constant(&self) -> Option<u64> {
        (self.min == self.max).then_some(self.min)
    }

    /// Whether it is from `-limit` to `limit`.
    pub fn is_within(&self, limit: i64) -> bool {
        self.signed_min >= -limit && self.signed_max <= limit
    }

    /// Whether it is always a multiple of `size`, a power of two.
    pub fn is_aligned(&self, size: u64) -> bool {
        self.bits.max() & (size - 1) == 0
    }

    /// Propagates all bounds; none if they are contradictory.
    pub fn settle(self) -> Option<Self> {
        let tighter = self.tighten()?;
        if tighter == self { Some(self) } else { tighter.tighten() }
    }

    /// For bounds that can't contradict each other.
    fn settled(self) -> Self {
        self.settle().unwrap_or(Self::ANY)
    }

    fn tighten(mut self) -> Option<Self> {
        self.min = self.min.max(self.bits.value);
        self.max = self.max.min(self.bits.max());
        if self.min >> 63 == self.max >> 63 {
            self.signed_min = self.signed_min.max(self.min as i64);
            self.signed_max = self.signed_max.min(self.max as i64);
        }
        if self.min > self.max || self.signed_min > self.signed_max {
            return None;
        }
        if (self.signed_min < 0) == (self.signed_max < 0) {
            self.min = self.min.max(self.signed_min as u64);
            self.max = self.max.min(self.signed_max as u64);
        }
        self.low_min = self.low_min.max(self.bits.value as u32);
        self.low_max = self.low_max.min(self.bits.max() as u32);
        if self.min >> 32 == self.max >> 32 {
            self.low_min = self.low_min.max(self.min as u32);
            self.low_max = self.low_max.min(self.max as u32);
            let upper = self.min >> 32 << 32;
            self.min = self.min.max(upper | u64::from(self.low_min));
            self.max = self.max.min(upper | u64::from(self.low_max));
        }
        if self.min > self.max || self.low_min > self.low_max {
            return None;
        }
        self.tighten_low_signed()?;
        let low = Bits::range(u64::from(self.low_min), u64::from(self.low_max)).low_only();
        self.bits = self.bits.meet(Bits::range(self.min, self.max))?.meet(low)?;
        Some(self)
    }

    fn tighten_low_signed(&mut self) -> Option<()> {
        if let (Ok(min), Ok(max)) = (i32::try_from(self.signed_min), i32::try_from(self.signed_max)) {
            self.low_signed_min = self.low_signed_min.max(min);
            self.low_signed_max = self.low_signed_max.min(max);
        }
        if self.low_min >> 31 == self.low_max >> 31 {
            self.low_signed_min = self.low_signed_min.max(self.low_min as i32);
            self.low_signed_max = self.low_signed_max.min(self.low_max as i32);
        }
        if (self.low_signed_min < 0) == (self.low_signed_max < 0) {
            self.low_min = self.low_min.max(self.low_signed_min as u32);
            self.low_max = self.low_max.min(self.low_signed_max as u32);
        }
        (self.low_signed_min <= self.low_signed_max && self.low_min <= self.low_max).then_some(())
    }

    /// The intersection; none if empty.
    pub fn meet(self, other: Self) -> Option<Self> {
        Self {
            bits: self.bits.meet(other.bits)?,
            min: self.min.max(other.min),
            max: self.max.min(other.max),
            signed_min: self.signed_min.max(other.signed_min),
            signed_max: self.signed_max.min(other.signed_max),
            low_min: self.low_min.max(other.low_min),
            low_max: self.low_max.min(other.low_max),
            low_signed_min: self.low_signed_min.max(other.low_signed_min),
            low_signed_max: self.low_signed_max.min(other.low_signed_max),
        }
        .settle()
    }

    /// A superset of the union.
    pub fn join(self, other: Self) -> Self {
        Self {
            bits: self.bits.join(other.bits),
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            signed_min: self.signed_min.min(other.signed_min),
            signed_max: self.signed_max.max(other.signed_max),
            low_min: self.low_min.min(other.low_min),
            low_max: self.low_max.max(other.low_max),
            low_signed_min: self.low_signed_min.min(other.low_signed_min),
            low_signed_max: self.low_signed_max.max(other.low_signed_max),
        }
    }

    /// Whether it is a superset of `other`.
    pub fn contains(&self, other: &Self) -> bool {
        self.min <= other.min
            && self.max >= other.max
            && self.signed_min <= other.signed_min
            && self.signed_max >= other.signed_max
            && self.low_min <= other.low_min
            && self.low_max >= other.low_max
            && self.low_signed_min <= other.low_signed_min
            && self.low_signed_max >= other.low_signed_max
            && self.bits.contains(other.bits)
    }

    /// The lower 32 bits, zero-extended: operands and results of 32-bit instructions.
    pub fn low_half(self) -> Self {
        let (min, max) = (u64::from(self.low_min), u64::from(self.low_max));
        let (low_signed_min, low_signed_max) = (self.low_signed_min, self.low_signed_max);
        let bits = self.bits.low_half();
        Self { bits, min, max, low_signed_min, low_signed_max, ..Self::ANY }.settled()
    }

    /// This number with its lower 32 bits in `low`; none if impossible.
    pub fn with_low(self, low: &Self) -> Option<Self> {
        let Self { low_min, low_max, low_signed_min, low_signed_max, .. } = *low;
        let bits = low.bits.low_only();
        self.meet(Self { bits, low_min, low_max, low_signed_min, low_signed_max, ..Self::ANY })
    }

    /// The low bytes, zero-extended.
    pub fn cut(self, size: Size) -> Self {
        self.apply(Arithmetic::And, Width::W64, Self::constant(size.cut(u64::MAX)))
    }

    /// The low bytes sign-extended to the width.
    pub fn extend(self, from: Size, width: Width) -> Self {
        let (cut, most) = (self.cut(from), (from.cut(u64::MAX) >> 1) as i64);
        let wide = if cut.max <= most as u64 {
            cut
        } else if cut.min > most as u64 {
            let sign = !from.cut(u64::MAX);
            Self { min: cut.min | sign, max: cut.max | sign, ..Self::ANY }.settled()
        } else if from == Size::Word {
            Self::between_signed(self.low_signed_min.into(), self.low_signed_max.into())
        } else {
            Self::between_signed(-most - 1, most)
        };
        if width == Width::W32 { wide.low_half() } else { wide }
    }

    /// The low bytes in another order.
    pub fn swap(self, order: ByteOrder, size: Size) -> Self {
        match self.as_constant() {
            Some(value) => Self::constant(order.apply(size, value)),
            None if order == ByteOrder::Little => self.cut(size),
            None => Self::of_size(size),
        }
    }

    /// The result of an operation with this as the left operand.
    pub fn apply(self, operation: Arithmetic, width: Width, right: Self) -> Self {
        if let (Some(left), Some(right)) = (self.as_constant(), right.as_constant()) {
            return Self::constant(operation.apply(width, left, right));
        }
        if width == Width::W64 {
            return self.wide(operation, right);
        }
        // A 32-bit operation gives the lower half of the 64-bit result for zero-extended operands, except for
        // signed operations and shift amounts.
        let (left, mut right) = (self.low_half(), right.low_half());
        let is_positive = |scalar: &Self| scalar.max <= i32::MAX as u64;
        match operation {
            Arithmetic::ShiftLeft | Arithmetic::ShiftRight => {
                right = right.wide(Arithmetic::And, Self::constant(31));
            }
            Arithmetic::ShiftRightSigned if is_positive(&left) => {
                right = right.wide(Arithmetic::And, Self::constant(31));
            }
            Arithmetic::SignedDiv | Arithmetic::SignedMod if is_positive(&left) && is_positive(&right) => {}
            Arithmetic::ShiftRightSigned | Arithmetic::SignedDiv | Arithmetic::SignedMod => {
                return Self::of_size(Size::Word);
            }
            _ => {}
        }
        left.wide(operation, right).low_half()
    }

    fn wide(self, operation: Arithmetic, right: Self) -> Self {
        match operation {
            Arithmetic::Mov => right,
            Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul => self.sum(operation, right),
            Arithmetic::And => {
                let bits = self.bits.and(right.bits);
                Self { bits, max: self.max.min(right.max), ..Self::ANY }.settled()
            }
            Arithmetic::Or => {
                let bits = self.bits.or(right.bits);
                Self { bits, min: self.min.max(right.min), ..Self::ANY }.settled()
            }
            Arithmetic::Xor => Self { bits: self.bits.xor(right.bits), ..Self::ANY }.settled(),
            Arithmetic::ShiftLeft | Arithmetic::ShiftRight | Arithmetic::ShiftRightSigned => {
                self.shift(operation, right)
            }
            Arithmetic::Div | Arithmetic::Mod => self.quotient(operation, right),
            Arithmetic::SignedDiv | Arithmetic::SignedMod => {
                let plain =
                    if operation == Arithmetic::SignedDiv { Arithmetic::Div } else { Arithmetic::Mod };
                let positive = self.signed_min >= 0 && right.signed_min >= 0;
                if positive { self.quotient(plain, right) } else { Self::ANY }
            }
        }
    }

    fn sum(self, operation: Arithmetic, right: Self) -> Self {
        let (a, b, any) = (self, right, Self::ANY);
        let (bits, unsigned, signed) = match operation {
            Arithmetic::Add => (
                a.bits.add(b.bits),
                a.min.checked_add(b.min).zip(a.max.checked_add(b.max)),
                a.signed_min.checked_add(b.signed_min).zip(a.signed_max.checked_add(b.signed_max)),
            ),
            Arithmetic::Sub => (
                a.bits.sub(b.bits),
                a.min.checked_sub(b.max).zip(a.max.checked_sub(b.min)),
                a.signed_min.checked_sub(b.signed_max).zip(a.signed_max.checked_sub(b.signed_min)),
            ),
            _ => (a.bits.mul(b.bits), a.min.checked_mul(b.min).zip(a.max.checked_mul(b.max)), None),
        };
        let (min, max) = unsigned.unwrap_or((any.min, any.max));
        let (signed_min, signed_max) = signed.unwrap_or((any.signed_min, any.signed_max));
        Self { bits, min, max, signed_min, signed_max, ..any }.settled()
    }

    fn shift(self, operation: Arithmetic, right: Self) -> Self {
        let by = right.as_constant().map(|by| (by & 63) as u32);
        match (operation, by) {
            (Arithmetic::ShiftLeft, Some(by)) => {
                let bits = self.bits.shift_left(by);
                if self.max.leading_zeros() < by {
                    return Self { bits, ..Self::ANY }.settled();
                }
                Self { bits, min: self.min << by, max: self.max << by, ..Self::ANY }.settled()
            }
            (Arithmetic::ShiftLeft, None) => Self::ANY,
            (Arithmetic::ShiftRight, Some(by)) => {
                let bits = self.bits.shift_right(by);
                Self { bits, min: self.min >> by, max: self.max >> by, ..Self::ANY }.settled()
            }
            (Arithmetic::ShiftRight, None) => Self::between(0, self.max),
            (_, Some(by)) => {
                let bits = self.bits.shift_right_signed(by);
                let (signed_min, signed_max) = (self.signed_min >> by, self.signed_max >> by);
                Self { bits, signed_min, signed_max, ..Self::ANY }.settled()
            }
            (_, None) => Self::between_signed(self.signed_min.min(0), self.signed_max.max(-1)),
        }
    }

    /// A quotient by 0 is 0, a remainder by 0 the dividend.
    fn quotient(self, operation: Arithmetic, right: Self) -> Self {
        if operation == Arithmetic::Div {
            let least = right.min.max(1);
            let min = if right.min == 0 { 0 } else { self.min / right.max };
            return Self::between(min, self.max / least);
        }
        match right.min {
            0 => Self::between(0, self.max),
            least if self.max < least => self,
            _ => Self::between(0, self.max.min(right.max - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::refine::refine;
    use super::*;
    use crate::Condition;
    use proptest::prelude::*;
    use proptest::sample::select;

    /// A number that tends to be near boundaries.
    fn number() -> impl Strategy<Value = u64> {
        let edges = vec![0, 1 << 7, 1 << 8, 1 << 15, 1 << 31, 1 << 32, 1 << 63, 0x7fff_ffff_0000_0000];
        let near = (select(edges), -3i64..4).prop_map(|(edge, by): (u64, i64)| edge.wrapping_add_signed(by));
        prop_oneof![near, any::<u64>(), 0..70u64, any::<u32>().prop_map(u64::from)]
    }

    /// A set of numbers, and an element.
    fn member() -> impl Strategy<Value = (Scalar, u64)> {
        let bits = prop_oneof![Just(0), Just(u64::MAX), Just(7), Just(0xff), Just(0xffff_ffff), any::<u64>()];
        (number(), number(), number(), bits, 0..6).prop_map(|(a, b, c, unknown, shape)| {
            let mut all = [a, b, c];
            let scalar = match shape {
                0 => Scalar::constant(a),
                1 => {
                    all.sort_unstable();
                    Scalar::between(all[0], all[2])
                }
                2 => {
                    all.sort_unstable_by_key(|&n| n as i64);
                    Scalar::between_signed(all[0] as i64, all[2] as i64)
                }
                3 => {
                    all.sort_unstable_by_key(|&n| n as u32);
                    let (low_min, low_max) = (all[0] as u32, all[2] as u32);
                    Scalar { low_min, low_max, ..Scalar::ANY }.settled()
                }
                4 => {
                    let bits = Bits { value: b & !unknown, unknown };
                    all[1] = b & !unknown | c & unknown;
                    Scalar { bits, ..Scalar::ANY }.settled()
                }
                _ => Scalar::constant(a).join(Scalar::constant(b)).join(Scalar::constant(c)),
            };
            (scalar, if shape == 0 { a } else { all[1] })
        })
    }

    fn has(scalar: &Scalar, number: u64) -> bool {
        scalar.contains(&Scalar::constant(number))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn results_are_among_those_that_were_said((left, a) in member(), (right, b) in member(),
            operation in select(Arithmetic::ALL)) {
            prop_assert!(has(&left, a) && has(&right, b));
            for width in [Width::W32, Width::W64] {
                let result = left.apply(operation, width, right);
                let number = operation.apply(width, a, b);
                prop_assert!(has(&result, number), "{width:?} {a:#x} {b:#x} {number:#x} {result:x?}");
            }
        }

        #[test]
        fn whatever_holds_is_possible((left, a) in member(), (right, b) in member()) {
            for (condition, width) in Condition::ALL.iter().flat_map(|&c| [(c, Width::W32),
                (c, Width::W64)]) {
                let holds = condition.holds(width, a, b);
                let refined = refine(condition, holds, width, left, right);
                let known = refined.is_some_and(|(left, right)| has(&left, a) && has(&right, b));
                prop_assert!(known, "{condition:?} {width:?} {holds} {a:#x} {b:#x} {refined:x?}");
            }
        }

        #[test]
        fn other_changes_keep_the_number((scalar, number) in member(), (other, another) in member()) {
            for width in [Width::W32, Width::W64] {
                for from in [Size::Byte, Size::Half, Size::Word, Size::Double] {
                    prop_assert!(has(&scalar.extend(from, width), width.size().cut(from.extend(number))));
                }
            }
            for size in [Size::Half, Size::Word, Size::Double] {
                for &order in ByteOrder::ALL {
                    prop_assert!(has(&scalar.swap(order, size), order.apply(size, number)));
                }
            }
            let joined = scalar.join(other);
            prop_assert!(has(&joined, number) && has(&joined, another) && joined.contains(&scalar));
            prop_assert!(has(&joined.settled(), number));
            if number == another || has(&other, number) {
                prop_assert!(scalar.meet(other).is_some_and(|both| has(&both, number)));
            }
            prop_assert!(has(&scalar.low_half(), number & 0xffff_ffff));
        }
    }

    #[test]
    fn what_programs_do_is_known_well() {
        let byte = Scalar::of_size(Size::Byte);
        let constant = |value| Scalar::constant(value);
        // A header's length: (byte & 15) * 4, or << 2.
        let nibble = byte.apply(Arithmetic::And, Width::W32, constant(15));
        for length in [
            nibble.apply(Arithmetic::ShiftLeft, Width::W32, constant(2)),
            nibble.apply(Arithmetic::Mul, Width::W64, constant(4)),
            byte.apply(Arithmetic::ShiftLeft, Width::W32, constant(2)).apply(
                Arithmetic::And,
                Width::W32,
                constant(60),
            ),
        ] {
            assert_eq!((length.min, length.max), (0, 60));
            assert!(length.is_aligned(4) && !length.is_aligned(8));
        }
        // if (w1 < 20) not taken, w1 of unknown upper half; then w2 = w1.
        let (known, _) = refine(Condition::Less, false, Width::W32, Scalar::ANY, constant(20)).unwrap();
        assert_eq!((known.max, known.low_min), (u64::MAX, 20));
        assert_eq!(known.low_half().min, 20);
        // if (w1 s> 9) not taken, if (w1 s< 0) not taken.
        let (known, _) =
            refine(Condition::SignedGreater, false, Width::W32, Scalar::ANY, constant(9)).unwrap();
        let (known, _) = refine(Condition::SignedLess, false, Width::W32, known, constant(0)).unwrap();
        assert_eq!(known.low_half().max, 9);
        // A remainder, a quotient, a difference, a shift back and forth.
        assert_eq!(byte.apply(Arithmetic::Mod, Width::W64, constant(7)).max, 6);
        assert_eq!(byte.apply(Arithmetic::Div, Width::W64, constant(16)).max, 15);
        let less = byte.apply(Arithmetic::Sub, Width::W64, constant(5));
        assert_eq!((less.signed_min, less.signed_max), (-5, 250));
        let up = Scalar::ANY.apply(Arithmetic::ShiftLeft, Width::W64, constant(56));
        let down = up.apply(Arithmetic::ShiftRightSigned, Width::W64, constant(56));
        assert_eq!((down.signed_min, down.signed_max), (-128, 127));
        assert_eq!(refine(Condition::Greater, true, Width::W64, byte, constant(255)), None);
        assert_eq!(refine(Condition::BitsSet, true, Width::W64, nibble, constant(16)), None);
    }
}
