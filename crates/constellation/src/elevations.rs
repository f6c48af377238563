//! Elevations of satellites above a station, counted by degrees.

use std::collections::BTreeMap;

/// How many satellites there were at each elevation, in whole degrees, rounded down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elevations(BTreeMap<u32, u64>);

impl Elevations {
    /// Counts a satellite at an elevation in degrees, 0 to 90.
    pub(crate) fn add(&mut self, degrees: f64) {
        *self.0.entry(degrees as u32).or_default() += 1;
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// How many were at this elevation or higher.
    pub fn at_least(&self, degrees: u32) -> u64 {
        self.0.range(degrees..).map(|(_, count)| count).sum()
    }

    /// The median, in whole degrees; none if there were none.
    pub fn median(&self) -> Option<u32> {
        let half = self.total().div_ceil(2);
        self.0.keys().rev().copied().find(|degrees| self.at_least(*degrees) >= half)
    }
}

/// The satellites above one end of a path, at the start of each epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// All above its minimum elevation.
    pub in_view: Elevations,
    /// Those that served.
    pub serving: Elevations,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_hand() {
        let mut found = Elevations::default();
        assert_eq!((found.total(), found.median(), found.at_least(0)), (0, None, 0));
        for degrees in [25.0, 89.9, 45.0, 44.999, 30.2] {
            found.add(degrees);
        }
        assert_eq!(
            (found.total(), found.median(), found.at_least(45), found.at_least(90)),
            (5, Some(44), 2, 0)
        );
    }
}
