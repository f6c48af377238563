//! Records that are reserved and not released in a state.

use super::value::Id;

/// A pending record. Its values are [`Value::Map`] with its ring and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingRecord {
    pub object: Id,
    pub map: u16,
    /// Its size in bytes.
    pub size: u32,
    /// The instruction that reserved it.
    pub at: usize,
}

/// Two records that become one when their states are joined.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    pub mine: Id,
    pub theirs: Id,
    pub joined: PendingRecord,
}

impl PendingRecord {
    /// Whether they differ only in their names.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.map, self.size, self.at) == (other.map, other.size, other.at)
    }
}
