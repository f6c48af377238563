//! Records that are reserved in a state of a program and not given back.

use super::value::Id;

/// A record that was reserved and not given back. Its values are [`Value::Map`] with its ring and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    pub object: Id,
    pub map: u16,
    /// How many bytes it has.
    pub size: u32,
    /// The instruction that has reserved it.
    pub at: usize,
}

/// Two states' records that become one when the states are joined.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    pub mine: Id,
    pub theirs: Id,
    pub joined: Open,
}

impl Open {
    /// Whether they differ in nothing but their names.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.map, self.size, self.at) == (other.map, other.size, other.at)
    }
}
