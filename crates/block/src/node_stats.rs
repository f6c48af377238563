//! What a router says it has done.

use serde::Serialize;

/// What a router has counted. Packets; segments of a train count one each: received + made = forwarded + consumed + dropped + kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NodeStats {
    /// Taken in.
    pub received: u64,
    /// Made: errors, answers, requests, fragments.
    pub made: u64,
    /// Given out to ports.
    pub forwarded: u64,
    /// For the router itself, or taken apart into fragments.
    pub consumed: u64,
    /// Dropped.
    pub dropped: u64,
    /// Waiting for neighbours now.
    pub kept: u64,
    /// ICMP errors made.
    pub errors: u64,
    /// Not made, though they should have been, for want of room.
    pub unmade: u64,
    /// Given to full IP, by reason, where any were.
    pub exceptions: Vec<(&'static str, u64)>,
    /// Not done because there was too much, by kind of work, where any was.
    pub policed: Vec<(&'static str, u64)>,
    /// Destinations that the route caches knew.
    pub cache_hits: u64,
    /// Destinations that they did not.
    pub cache_misses: u64,
    /// Neighbours known, those being asked for included.
    pub neighbours: u64,
    /// Neighbours being asked for.
    pub asked: u64,
    /// Bytes of the prefix tables.
    pub table_bytes: u64,
}

impl NodeStats {
    /// Packets that there were.
    pub fn come(&self) -> u64 {
        self.received + self.made
    }

    /// What became of them.
    pub fn gone(&self) -> u64 {
        self.forwarded + self.consumed + self.dropped + self.kept
    }
}
