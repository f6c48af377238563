//! Declarations of maps: kind, sizes and flags, checked before anything is allocated.

use super::error::{MapError, MapFault};
use super::kind::MapKind;
use super::ring::{EVENTS, footprint};

/// A map's declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapSpec {
    /// Its name, for the control half and in messages.
    pub name: Box<str>,
    /// Its kind.
    pub kind: MapKind,
    /// Bytes of a key: 1 to [`MapSpec::MAX_KEY`]; 4 for arrays, devmaps and perf_event_arrays, 0 for
    /// ringbufs.
    pub key_size: u32,
    /// Bytes of a value: 1 to [`MapSpec::MAX_VALUE`]; 4 or 8 for devmaps, 4 for perf_event_arrays, 0 for
    /// ringbufs.
    pub value_size: u32,
    /// Most entries; of a ringbuf its bytes. 0 if the object leaves it to the loader: a map that a program
    /// uses must have at least 1 when it is installed.
    pub max_entries: u32,
    /// Whether it is read-only for programs.
    pub read_only: bool,
    /// Initial contents of the first values, if not zero: a data section's bytes, the programs of a program
    /// array, or the first entries of a map of targets, by index.
    pub initial: Box<[u8]>,
    /// For a map of maps: the declaration of its maps.
    pub inner: Option<Inner>,
    /// Offset of the lock in its values (`struct bpf_spin_lock`, 4 bytes), if any: only its helpers may
    /// access it.
    pub lock: Option<u32>,
    /// For a map of targets: the programs that its values may name, by number from 1; empty strings for
    /// programs of other maps.
    pub exits: Box<[Box<str>]>,
}

/// Declaration of the maps in a map of maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inner {
    /// Their common declaration.
    pub spec: Box<MapSpec>,
    /// Indices of the object's maps with this declaration.
    pub maps: Box<[u32]>,
}

/// Bytes before the bits of a prefix key.
pub(super) const LENGTH: usize = 4;

impl MapSpec {
    /// Most bytes of a key.
    pub const MAX_KEY: u32 = 128;
    /// Most entries.
    pub const MAX_ENTRIES: u32 = 1 << 27;
    /// Most bytes of a value.
    pub const MAX_VALUE: u32 = 1 << 20;
    /// Most bytes of all values and keys of an object's maps together.
    pub const MAX_MEMORY: u64 = 1 << 28;

    /// Bytes of a page, the unit of rings.
    const PAGE: u32 = 4096;
    /// Default number of entries of a perf_event_array.
    const WORKERS: u32 = 256;

    /// A writable map, initially zero, without inner maps and locks.
    pub fn new(
        name: impl Into<Box<str>>,
        kind: MapKind,
        key_size: u32,
        value_size: u32,
        max_entries: u32,
    ) -> Self {
        Self {
            name: name.into(),
            kind,
            key_size,
            value_size,
            max_entries,
            read_only: false,
            initial: Box::default(),
            inner: None,
            lock: None,
            exits: Box::default(),
        }
    }

    /// Checks the declaration in a program's object.
    ///
    /// # Errors
    /// The field and its valid range.
    pub fn check(&self) -> Result<(), MapError> {
        let field = |field, value| {
            move |is_wrong: bool, wanted| is_wrong.then_some(MapFault::Field { field, value, wanted })
        };
        let key = field("key_size", self.key_size);
        let value = field("value_size", self.value_size);
        let entries = field("max_entries", self.max_entries);
        let faults = if self.kind.is_ring() {
            let is_ring_buffer = self.kind == MapKind::RingBuf;
            let (size, wanted) =
                if is_ring_buffer { (0, "0 in a ringbuf") } else { (4, "4 in a map of this type") };
            let pages = self.max_entries.is_power_of_two()
                && (Self::PAGE..=Self::MAX_ENTRIES).contains(&self.max_entries);
            vec![
                key(self.key_size != size, wanted),
                value(self.value_size != size, wanted),
                entries(
                    is_ring_buffer && self.max_entries != 0 && !pages,
                    "a power of two from 4096 to 134217728 bytes",
                ),
            ]
        } else {
            let by_number = self.kind.is_array() || self.kind.is_targets();
            let prefix = self.kind == MapKind::LpmTrie;
            let numbers = self.kind == MapKind::ProgArray || self.kind.is_of_maps();
            let targets = self.kind.is_targets();
            vec![
                key(by_number && self.key_size != 4, "4 in a map of this type"),
                key(
                    prefix && !(5..=Self::MAX_KEY).contains(&self.key_size),
                    "5 to 128 in a map of this type: 4 of the length, and the bits",
                ),
                key(!(1..=Self::MAX_KEY).contains(&self.key_size), "1 to 128"),
                self.misheld().map(MapFault::Inner),
                value(numbers && self.value_size != 4, "4 in a map of this type"),
                value(targets && !matches!(self.value_size, 4 | 8), "4 or 8 in a map of this type"),
                value(!(1..=Self::MAX_VALUE).contains(&self.value_size), "1 to 1048576"),
                // Offsets in a map are 32 bits wide, and so is an entry's index.
                entries(self.max_entries > Self::MAX_ENTRIES, "1 to 134217728"),
            ]
        };
        faults.into_iter().flatten().next().map_or(Ok(()), |fault| Err(self.error(fault)))
    }

    /// This fault of it.
    pub(crate) fn error(&self, fault: MapFault) -> MapError {
        MapError { name: self.name.clone(), fault }
    }

    /// Error in its inner maps or its lock.
    fn misheld(&self) -> Option<&'static str> {
        let Some(inner) = &self.inner else {
            let lock =
                self.lock.is_some_and(|at| !self.kind.is_locked() || at % 4 != 0 || at + 4 > self.value_size);
            return match (self.kind.is_of_maps(), lock) {
                (true, _) => Some("nothing says what the maps in it are like: __array(values, struct { … })"),
                (_, true) => Some("only values of hash and array maps can have a struct bpf_spin_lock"),
                _ => None,
            };
        };
        let numbers = self.initial.as_chunks::<4>().0.iter().map(|&number| u32::from_le_bytes(number));
        if !self.kind.is_of_maps() {
            Some("only array_of_maps and hash_of_maps hold maps")
        } else if !inner.spec.kind.is_held() {
            Some("the maps in it can't be of this type: use hash, array, lru_hash or lpm_trie")
        } else if !numbers.into_iter().all(|number| self.holds(number)) {
            Some("a map in it is not like the one that it declares")
        } else {
            None
        }
    }

    /// Whether a map of maps can hold the map with this number, from 1; 0 is none.
    pub(crate) fn holds(&self, number: u32) -> bool {
        number == 0 || self.inner.as_ref().is_some_and(|inner| inner.maps.contains(&(number - 1)))
    }

    /// Whether it has the declaration of a map of maps, so that programs can't distinguish them except by
    /// contents.
    pub(crate) fn is_like(&self, inner: &Self) -> bool {
        let sizes = |spec: &Self| (spec.key_size, spec.value_size, spec.read_only, spec.lock);
        self.kind == inner.kind && sizes(self) == sizes(inner)
    }

    /// Whether an access to a value's bytes overlaps its lock.
    pub(crate) fn touches_lock(&self, first: usize, end: usize) -> bool {
        self.lock.is_some_and(|at| first < at as usize + 4 && end > at as usize)
    }

    /// Actual number of entries for a requested one. Rings have a power of two of whole pages; a
    /// perf_event_array without a number has as many entries as there can be workers, as with libbpf.
    pub(crate) fn rounded(kind: MapKind, entries: u32) -> u32 {
        match (kind, entries) {
            (MapKind::PerfEventArray, 0) => Self::WORKERS,
            (MapKind::RingBuf, 1..) => entries.max(Self::PAGE).checked_next_power_of_two().unwrap_or(entries),
            _ => entries,
        }
    }

    /// Size of each ring in bytes; none if it has no rings.
    pub(crate) fn ring_capacity(&self) -> Option<u32> {
        match self.kind {
            MapKind::RingBuf => Some(self.max_entries),
            MapKind::PerfEventArray => Some(EVENTS),
            _ => None,
        }
    }

    /// Whether it is read-only for programs.
    pub fn is_read_only(&self) -> bool {
        self.read_only || !self.kind.is_held()
    }

    /// Whether its contents are constant: those of a section `.rodata`, which nobody writes after loading,
    /// not even the control half; or a program array, whose programs were verified together. A map with
    /// BPF_F_RDONLY_PROG is not constant: the control half writes it.
    pub fn is_constant(&self) -> bool {
        self.is_constants() || self.kind == MapKind::ProgArray
    }

    fn is_constants(&self) -> bool {
        self.read_only && self.kind == MapKind::Array && self.max_entries == 1 && !self.initial.is_empty()
    }

    /// For a program array: numbers of the programs in these entries, without empty ones.
    pub(crate) fn programs(&self, from: u32, to: u32) -> impl Iterator<Item = u32> + '_ {
        let initial = if self.kind == MapKind::ProgArray { &*self.initial } else { &[] };
        let all = initial.as_chunks::<4>().0.iter().map(|&number| u32::from_le_bytes(number));
        let count = (to as usize + 1).saturating_sub(from as usize);
        all.take(self.max_entries as usize).skip(from as usize).take(count).filter(|&number| number > 0)
    }

    /// This many bytes of its value at this offset, little-endian, if they are constant.
    pub(crate) fn constant(&self, first: usize, size: usize) -> Option<u64> {
        let end = first.checked_add(size).filter(|&end| end <= self.value_size as usize && size <= 8)?;
        let byte = |at: usize| u64::from(self.initial.get(at).copied().unwrap_or(0));
        self.is_constants().then(|| (first..end).rev().fold(0, |number, at| number << 8 | byte(at)))
    }

    /// Most searches of a table in a lookup.
    pub fn searches(&self) -> u32 {
        if self.kind == MapKind::LpmTrie { lengths(self.key_size).min(self.max_entries.max(1)) } else { 1 }
    }

    /// Distance between values in bytes: their size rounded up to whole words.
    pub fn stride(&self) -> usize {
        (self.value_size as usize).next_multiple_of(8)
    }

    /// Its memory in bytes with this many workers.
    pub fn memory(&self, workers: u32) -> u64 {
        let copies = if self.kind.is_per_worker() { u64::from(workers.max(1)) } else { 1 };
        if let Some(capacity) = self.ring_capacity() {
            return copies * footprint(capacity);
        }
        // A hash map has the key, at most four slots, and an entry in the free list.
        let beside = if self.kind.is_array() { 0 } else { u64::from(self.key_size).next_multiple_of(8) + 36 };
        u64::from(self.max_entries) * (self.stride() as u64 * copies + beside)
    }
}

/// Number of possible lengths of keys of this size.
pub(super) const fn lengths(key_size: u32) -> u32 {
    key_size.saturating_sub(LENGTH as u32) * 8 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> MapSpec {
        MapSpec::new("flows", kind, key_size, value_size, max_entries)
    }

    #[test]
    fn fields_have_ranges() {
        assert_eq!(spec(MapKind::Hash, 128, 1, 1).check(), Ok(()));
        for (bad, field) in [
            (spec(MapKind::Array, 8, 8, 1), "key_size"),
            (spec(MapKind::Hash, 0, 8, 1), "key_size"),
            (spec(MapKind::LpmTrie, 4, 8, 1), "key_size"),
            (spec(MapKind::LpmTrie, 129, 8, 1), "key_size"),
            (spec(MapKind::Hash, 129, 8, 1), "key_size"),
            (spec(MapKind::Hash, 4, 0, 1), "value_size"),
            (spec(MapKind::DevMap, 4, 16, 1), "value_size"),
            (spec(MapKind::CpuMap, 4, 16, 1), "value_size"),
            (spec(MapKind::Hash, 4, 8, (1 << 27) + 1), "max_entries"),
        ] {
            assert!(bad.check().unwrap_err().to_string().contains(field), "{bad:?}");
        }
    }
}
