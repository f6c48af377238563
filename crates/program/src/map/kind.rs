//! The kinds of maps, with their numbers and names in the kernel.

use crate::Helper;

/// The kinds of maps supported here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MapKind {
    /// Values by hash, with memory preallocated.
    Hash,
    /// Values by index, all existing and initially zero.
    Array,
    /// As `Hash`, with one value for each worker.
    PerCpuHash,
    /// As `Array`, with one value for each worker.
    PerCpuArray,
    /// As `Hash`; when it is full, a key that was not used recently is evicted.
    LruHash,
    /// As `LruHash`, with one value for each worker.
    LruPerCpuHash,
    /// Ports by index, for redirection. Read-only for programs.
    DevMap,
    /// Ports by any 32-bit key, for redirection. Read-only for programs.
    DevMapHash,
    /// Processors by index, for redirection. A packet redirected to one is passed on its own processor.
    CpuMap,
    /// Values by prefix: a lookup finds the longest matching one.
    LpmTrie,
    /// Sockets by index, for redirection. There are none here, so it is always empty.
    XskMap,
    /// Programs by index, for tail calls: set at installation, by number in the object from 1.
    ProgArray,
    /// Maps by index: other maps of the object, by number from 1. Read-only for programs.
    ArrayOfMaps,
    /// Maps by key, as `ArrayOfMaps`.
    HashOfMaps,
    /// Records from programs to a control process, in the order of their reservation.
    RingBuf,
    /// As `RingBuf`, with a ring for each worker, and packet bytes after the program's data.
    PerfEventArray,
}

/// Names of enum bpf_map_type of linux/bpf.h by number, without `BPF_MAP_TYPE_`, in lower case.
pub(super) const NAMES: &[&str] = &[
    "unspec",
    "hash",
    "array",
    "prog_array",
    "perf_event_array",
    "percpu_hash",
    "percpu_array",
    "stack_trace",
    "cgroup_array",
    "lru_hash",
    "lru_percpu_hash",
    "lpm_trie",
    "array_of_maps",
    "hash_of_maps",
    "devmap",
    "sockmap",
    "cpumap",
    "xskmap",
    "sockhash",
    "cgroup_storage",
    "reuseport_sockarray",
    "percpu_cgroup_storage",
    "queue",
    "stack",
    "sk_storage",
    "devmap_hash",
    "struct_ops",
    "ringbuf",
    "inode_storage",
    "task_storage",
    "bloom_filter",
    "user_ringbuf",
];

impl MapKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Hash,
        Self::Array,
        Self::PerCpuHash,
        Self::PerCpuArray,
        Self::LruHash,
        Self::LruPerCpuHash,
        Self::DevMap,
        Self::DevMapHash,
        Self::CpuMap,
        Self::XskMap,
        Self::LpmTrie,
        Self::ProgArray,
        Self::ArrayOfMaps,
        Self::HashOfMaps,
        Self::RingBuf,
        Self::PerfEventArray,
    ];

    /// Its number in the kernel.
    pub const fn number(self) -> u32 {
        match self {
            Self::Hash => 1,
            Self::Array => 2,
            Self::PerCpuHash => 5,
            Self::PerCpuArray => 6,
            Self::LruHash => 9,
            Self::LruPerCpuHash => 10,
            Self::DevMap => 14,
            Self::DevMapHash => 25,
            Self::CpuMap => 16,
            Self::LpmTrie => 11,
            Self::XskMap => 17,
            Self::ProgArray => 3,
            Self::ArrayOfMaps => 12,
            Self::HashOfMaps => 13,
            Self::RingBuf => 27,
            Self::PerfEventArray => 4,
        }
    }

    /// The kind with this kernel number, if supported.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.number() == number)
    }

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        NAMES[self.number() as usize]
    }

    /// Whether each worker has its own value.
    pub const fn is_per_worker(self) -> bool {
        matches!(self, Self::PerCpuHash | Self::PerCpuArray | Self::LruPerCpuHash | Self::PerfEventArray)
    }

    /// Whether all values always exist and are found by index.
    pub const fn is_array(self) -> bool {
        matches!(self, Self::Array | Self::PerCpuArray | Self::ProgArray | Self::ArrayOfMaps)
    }

    /// Whether its values are other maps.
    pub const fn is_of_maps(self) -> bool {
        matches!(self, Self::ArrayOfMaps | Self::HashOfMaps)
    }

    /// Whether it can be in a map of maps.
    pub const fn is_held(self) -> bool {
        !self.is_targets() && !self.is_of_maps() && !self.is_ring() && !matches!(self, Self::ProgArray)
    }

    /// Whether its values can have a lock.
    pub const fn is_locked(self) -> bool {
        matches!(self, Self::Hash | Self::Array)
    }

    /// Whether it holds records from programs to a control process.
    pub const fn is_ring(self) -> bool {
        matches!(self, Self::RingBuf | Self::PerfEventArray)
    }

    /// Whether it evicts entries when full.
    pub const fn is_lru(self) -> bool {
        matches!(self, Self::LruHash | Self::LruPerCpuHash)
    }

    /// Whether it holds targets of redirection. Programs write none of these.
    pub const fn is_targets(self) -> bool {
        matches!(self, Self::DevMap | Self::DevMapHash | Self::CpuMap | Self::XskMap)
    }

    /// Whether its keys are indices of targets.
    pub(crate) const fn is_numbered_targets(self) -> bool {
        self.is_targets() && !matches!(self, Self::DevMapHash)
    }

    /// Differences from the kernel, shown to whoever installs a program with such a map.
    pub const fn remark(self) -> Option<&'static str> {
        match self {
            Self::CpuMap => Some("a packet that is redirected to a processor stays on its own and passes"),
            Self::XskMap => Some("there are no AF_XDP sockets, so it is always empty"),
            _ => None,
        }
    }

    /// Whether a helper accepts it.
    pub const fn serves(self, helper: Helper) -> bool {
        match helper {
            Helper::RedirectMap => self.is_targets(),
            Helper::TailCall => matches!(self, Self::ProgArray),
            Helper::RingOutput | Helper::RingReserve | Helper::RingQuery => matches!(self, Self::RingBuf),
            Helper::PerfOutput => matches!(self, Self::PerfEventArray),
            _ if self.is_ring() => false,
            Helper::MapLookup => !matches!(self, Self::CpuMap | Self::ProgArray),
            _ => self.is_held(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MapFault;

    #[test]
    fn kinds_have_the_kernels_numbers_and_names() {
        for &kind in MapKind::ALL {
            assert_eq!(MapKind::from_number(kind.number()), Some(kind));
        }
        assert_eq!((MapKind::DevMapHash.name(), MapKind::LruHash.name()), ("devmap_hash", "lru_hash"));
        assert_eq!(NAMES[27], "ringbuf");
        assert_eq!(
            MapFault::Kind(31).to_string(),
            "maps of type user_ringbuf (31) can't be used here; let the control half write an array or hash \
             map, which programs read"
        );
    }
}
