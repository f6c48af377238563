//! What is wrong with a map's declaration, and how to fix it.

use super::kind::NAMES;
use thiserror::Error;

/// Why there can't be such a map.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("map {name}: {fault}")]
pub struct MapError {
    /// The map.
    pub name: Box<str>,
    /// Its fault.
    pub fault: MapFault,
}

/// What is wrong with a map's declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MapFault {
    /// No such kind of map here.
    #[error("maps of type {name} ({0}) can't be used here; {fix}", name = kind_name(*.0),
        fix = kind_fix(*.0))]
    Kind(u32),
    /// A field is out of its range.
    #[error("{field} is {value}; it has to be {wanted}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What it is.
        value: u32,
        /// What it may be.
        wanted: &'static str,
    },
    /// Flags that are not known here.
    #[error(
        "map_flags {0:#x} can't be had here; leave out all but BPF_F_NO_PREALLOC, BPF_F_RDONLY_PROG and \
         BPF_F_MMAPABLE"
    )]
    Flags(u32),
    /// An entry that it has from the beginning is nothing that it can hold.
    #[error("entry {entry} is {what}")]
    Value {
        /// The entry's number.
        entry: u64,
        /// What it is, and the fix.
        what: &'static str,
    },
    /// It can't hold what it is to hold.
    #[error("{0}")]
    Inner(&'static str),
    /// Too much memory.
    #[error("with the maps before it, it takes {bytes} bytes for {workers} workers; the limit is {limit}")]
    Memory {
        /// What it takes.
        bytes: u64,
        /// For how many workers.
        workers: u32,
        /// What they may take together.
        limit: u64,
    },
}

fn kind_name(number: u32) -> &'static str {
    NAMES.get(number as usize).copied().unwrap_or("unknown to Linux")
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
