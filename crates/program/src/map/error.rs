//! Errors in map declarations, with fixes.

use super::kind::kind_name;
use thiserror::Error;

/// Reason why a map is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("map {name}: {fault}")]
pub struct MapError {
    /// The map.
    pub name: Box<str>,
    /// Its fault.
    pub fault: MapFault,
}

/// Error in a map's declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MapFault {
    /// Unknown kind of map.
    #[error("maps of type {name} ({0}) can't be used here; {fix}", name = kind_name(*.0),
        fix = kind_fix(*.0))]
    Kind(u32),
    /// A field is out of its range.
    #[error("{field} is {value}; it has to be {wanted}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// The valid range.
        wanted: &'static str,
    },
    /// Unknown flags.
    #[error(
        "map_flags {0:#x} can't be had here; leave out all but BPF_F_NO_PREALLOC, BPF_F_RDONLY_PROG and \
         BPF_F_MMAPABLE"
    )]
    Flags(u32),
    /// An initial entry is invalid.
    #[error("entry {entry} is {what}")]
    Value {
        /// The entry's number.
        entry: u64,
        /// The error, and the fix.
        what: &'static str,
    },
    /// Its inner map is invalid.
    #[error("{0}")]
    Inner(&'static str),
    /// Too much memory.
    #[error("with the maps before it, it takes {bytes} bytes for {workers} workers; the limit is {limit}")]
    Memory {
        /// The required memory.
        bytes: u64,
        /// The number of workers.
        workers: u32,
        /// The limit of all maps together.
        limit: u64,
    },
}

fn kind_fix(number: u32) -> &'static str {
    match kind_name(number) {
        "user_ringbuf" => "let the control half write an array or hash map, which programs read",
        _ => {
            "use hash, array, percpu_hash, percpu_array, lru_hash, lru_percpu_hash, lpm_trie, devmap, \
             devmap_hash, cpumap, prog_array, array_of_maps, hash_of_maps, ringbuf or perf_event_array"
        }
    }
}
