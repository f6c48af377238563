//! A task of a sweep.

use longwire_run::comparison::StartSetting;

/// A task of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its number, from 0.
    pub number: u64,
    /// The settings of the axes, in the file's order.
    pub settings: Vec<StartSetting>,
    /// Its seed.
    pub seed: u64,
}
