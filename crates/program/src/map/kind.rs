//! The kinds of maps, with their numbers and names in the kernel.

use crate::Helper;

macro_rules! kinds {
    ($($(#[$help:meta])+ $variant:ident $number:literal;)+) => {
        /// The kinds of maps supported here.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum MapKind { $($(#[$help])+ $variant),+ }

        impl MapKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its number in the kernel.
            pub const fn number(self) -> u32 {
                match self { $(Self::$variant => $number),+ }
            }
        }
    };
}

kinds! {
    /// Values by hash, with memory preallocated.
    Hash 1;
    /// Values by index, all existing and initially zero.
    Array 2;
    /// As `Hash`, with one value for each worker.
    PerCpuHash 5;
    /// As `Array`, with one value for each worker.
    PerCpuArray 6;
    /// As `Hash`; when it is full, a key that was not used recently is evicted.
    LruHash 9;
    /// As `LruHash`, with one value for each worker.
    LruPerCpuHash 10;
    /// Ports by index, for redirection. Read-only for programs.
    DevMap 14;
    /// Ports by any 32-bit key, for redirection. Read-only for programs.
    DevMapHash 25;
    /// Processors by index, for redirection. A packet redirected to one is passed on its own processor.
    CpuMap 16;
    /// Values by prefix: a lookup finds the longest matching one.
    LpmTrie 11;
    /// Sockets by index, for redirection. There are none here, so it is always empty.
    XskMap 17;
    /// Programs by index, for tail calls: set at installation, by number in the object from 1.
    ProgArray 3;
    /// Maps by index: other maps of the object, by number from 1. Read-only for programs.
    ArrayOfMaps 12;
    /// Maps by key, as `ArrayOfMaps`.
    HashOfMaps 13;
    /// Records from programs to a control process, in the order of their reservation.
    RingBuf 27;
    /// As `RingBuf`, with a ring for each worker, and packet bytes after the program's data.
    PerfEventArray 4;
}

/// Names of enum bpf_map_type of linux/bpf.h by number, without `BPF_MAP_TYPE_`, in lower case.
const NAMES: &str = "\
    unspec hash array prog_array perf_event_array percpu_hash percpu_array stack_trace cgroup_array \
    lru_hash lru_percpu_hash lpm_trie array_of_maps hash_of_maps devmap sockmap cpumap xskmap sockhash \
    cgroup_storage reuseport_sockarray percpu_cgroup_storage queue stack sk_storage devmap_hash \
    struct_ops ringbuf inode_storage task_storage bloom_filter user_ringbuf";

/// The kernel's name of a kind of maps, for messages.
pub(super) fn kind_name(number: u32) -> &'static str {
    NAMES.split(' ').nth(number as usize).unwrap_or("unknown to Linux")
}

impl MapKind {
    /// The kind with this kernel number, if supported.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.number() == number)
    }

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        kind_name(self.number())
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
        assert_eq!(kind_name(27), "ringbuf");
        assert_eq!(
            MapFault::Kind(31).to_string(),
            "maps of type user_ringbuf (31) can't be used here; let the control half write an array or hash \
             map, which programs read"
        );
    }
}
