//! Numbers with partially known bits.
//!
//! The operations are those of H. Vishwanathan, M. Shachnai, S. Narayana, S. Nagarakatte, "Sound, Precise,
//! and Fast Abstract Interpretation with Tristate Numbers", CGO 2022.

/// Knowledge about each bit of a number: `value` where `unknown` is 0; where it is 1, `value` is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    pub value: u64,
    pub unknown: u64,
}

impl Bits {
    pub const ANY: Self = Self { value: 0, unknown: u64::MAX };

    pub const fn constant(value: u64) -> Self {
        Self { value, unknown: 0 }
    }

    /// The common upper bits of the numbers from `min` to `max`.
    pub const fn range(min: u64, max: u64) -> Self {
        let unknown = match (min ^ max).leading_zeros() {
            0 => u64::MAX,
            64 => 0,
            same => u64::MAX >> same,
        };
        Self { value: min & !unknown, unknown }
    }

    /// The largest possible number.
    pub const fn max(self) -> u64 {
        self.value | self.unknown
    }

    pub const fn add(self, other: Self) -> Self {
        let sum = self.value.wrapping_add(other.value);
        let carried = sum.wrapping_add(self.unknown.wrapping_add(other.unknown)) ^ sum;
        let unknown = carried | self.unknown | other.unknown;
        Self { value: sum & !unknown, unknown }
    }

    pub const fn sub(self, other: Self) -> Self {
        let difference = self.value.wrapping_sub(other.value);
        let most = difference.wrapping_add(self.unknown);
        let least = difference.wrapping_sub(other.unknown);
        let unknown = (most ^ least) | self.unknown | other.unknown;
        Self { value: difference & !unknown, unknown }
    }

    pub const fn mul(self, other: Self) -> Self {
        let (mut left, mut right) = (self, other);
        let mut doubt = Self::constant(0);
        while left.max() != 0 {
            if left.value & 1 == 1 {
                doubt = doubt.add(Self { value: 0, unknown: right.unknown });
            } else if left.unknown & 1 == 1 {
                doubt = doubt.add(Self { value: 0, unknown: right.max() });
            }
            left = left.shift_right(1);
            right = right.shift_left(1);
        }
        Self::constant(self.value.wrapping_mul(other.value)).add(doubt)
    }

    pub const fn and(self, other: Self) -> Self {
        let value = self.value & other.value;
        Self { value, unknown: self.max() & other.max() & !value }
    }

    pub const fn or(self, other: Self) -> Self {
        let value = self.value | other.value;
        Self { value, unknown: (self.unknown | other.unknown) & !value }
    }

    pub const fn xor(self, other: Self) -> Self {
        let unknown = self.unknown | other.unknown;
        Self { value: (self.value ^ other.value) & !unknown, unknown }
    }

    pub const fn shift_left(self, by: u32) -> Self {
        Self { value: self.value << by, unknown: self.unknown << by }
    }

    pub const fn shift_right(self, by: u32) -> Self {
        Self { value: self.value >> by, unknown: self.unknown >> by }
    }

    pub const fn shift_right_signed(self, by: u32) -> Self {
        Self { value: (self.value as i64 >> by) as u64, unknown: (self.unknown as i64 >> by) as u64 }
    }

    /// Its lower 32 bits, zero-extended.
    pub const fn low_half(self) -> Self {
        const LOW: u64 = u32::MAX as u64;
        Self { value: self.value & LOW, unknown: self.unknown & LOW }
    }

    /// Its lower 32 bits, with unknown bits above.
    pub const fn low_only(self) -> Self {
        let low = self.low_half();
        Self { value: low.value, unknown: low.unknown | !(u32::MAX as u64) }
    }

    /// The intersection; none if they contradict each other.
    pub const fn meet(self, other: Self) -> Option<Self> {
        if (self.value ^ other.value) & !self.unknown & !other.unknown != 0 {
            return None;
        }
        let unknown = self.unknown & other.unknown;
        Some(Self { value: (self.value | other.value) & !unknown, unknown })
    }

    /// A superset of both.
    pub const fn join(self, other: Self) -> Self {
        let unknown = self.unknown | other.unknown | (self.value ^ other.value);
        Self { value: self.value & !unknown, unknown }
    }

    /// Whether it is a superset of `other`.
    pub const fn contains(self, other: Self) -> bool {
        other.unknown & !self.unknown == 0 && other.value & !self.unknown == self.value
    }
}
