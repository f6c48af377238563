//! Relative share of a flow.

use thiserror::Error;

/// A flow's weight: 1 to 65 535. A flow of weight 2 gets twice what one of weight 1 gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u32);

/// An invalid weight.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("weight = {0} is out of range; give 1 to 65535 (a flow without a share would never be served)")]
pub struct WeightError(pub i64);

impl Weight {
    /// The default weight.
    pub const ONE: Self = Self(1);
    /// The largest.
    pub const MOST: Self = Self(65_535);

    /// # Errors
    /// If it is zero, negative, or above 65 535.
    pub fn new(weight: i64) -> Result<Self, WeightError> {
        match u32::try_from(weight) {
            Ok(whole @ 1..=65_535) => Ok(Self(whole)),
            _ => Err(WeightError(weight)),
        }
    }

    /// The number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_negative_weights_are_refused() {
        for wrong in [0, -1, 65_536, i64::MIN, i64::MAX] {
            assert!(Weight::new(wrong).unwrap_err().to_string().contains(&wrong.to_string()));
        }
        assert_eq!((Weight::new(1), Weight::new(65_535)), (Ok(Weight::ONE), Ok(Weight::MOST)));
    }
}
