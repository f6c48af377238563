//! Maps: memory shared by packets, workers and the control half, of a size fixed when a program is loaded.
//!
//! Values are in [`Words`] at fixed offsets, so that an address held by a program stays valid whatever
//! happens to the entry: a removed entry's value stays until the entry is reused, as late as possible.
//! Nothing is allocated after [`Maps::new`].
//!
//! Lookups take no lock. Helpers that write or remove a value take turns; a worker waits a bounded time for
//! its turn, then the helper fails with -EBUSY, as the kernel's may. The control half's [`Map::get`] and
//! [`Map::set`] are atomic with respect to each other and to helpers. Programs write through addresses word
//! by word; to read several such words consistently, read on the worker, between two batches.
//!
//! Unlike in the kernel, updating a hash map's existing key writes its value in place: an address taken
//! before sees the new value.

mod error;
mod kind;
mod lock;
mod numbers;
mod prefixes;
pub(crate) mod ring;
mod spec;
mod table;

pub use error::{MapError, MapFault};
pub use kind::MapKind;
pub use numbers::Target;
pub use ring::{Record, RingStats};
pub use spec::{Inner, MapSpec};

use crate::words::Words;
use prefixes::{Prefix, Prefixes};
pub(crate) use ring::MAX_RECORD;
use ring::Rings;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use table::Table;

/// Flags of an update (linux/bpf.h).
pub const NO_EXIST: u64 = 1;
/// Update only an existing key.
pub const EXIST: u64 = 2;

/// Update under the lock within the value (BPF_F_LOCK).
const LOCK: u64 = 4;

/// How often a worker polls for its turn.
const PATIENCE: u32 = 256;
/// How often a reader tries before it takes a turn itself.
const TRIES: u32 = 64;

/// Reason why a map refuses an operation. The numbers are those of errno(3), which programs receive negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[repr(i32)]
pub enum Refusal {
    /// The map is constant (EPERM).
    #[error("the map holds constants, which the program was verified with; install it anew with others")]
    Constant = 1,
    /// The key does not exist (ENOENT).
    #[error("the key is not in the map")]
    NotFound = 2,
    /// The map is full, or the index is out of range (E2BIG).
    #[error("the map is full, or has no entry of this number")]
    TooBig = 7,
    /// There is another writer (EBUSY).
    #[error("the map is being written")]
    Busy = 16,
    /// The key exists already (EEXIST).
    #[error("the key is in the map already")]
    Exists = 17,
    /// There is no room for another prefix (ENOSPC).
    #[error("the map is full")]
    NoSpace = 28,
    /// A map of maps can't hold that map (EOPNOTSUPP).
    #[error(
        "it holds numbers of the program's maps from 1 on, of those that are like the one that it declares"
    )]
    Unlike = 95,
    /// A value names an invalid program (EBADF).
    #[error(
        "the last four bytes name no program that runs there: 0, or the number, from 1, of one that was \
         named in exits when it was installed"
    )]
    NoExit = 9,
    /// Invalid arguments (EINVAL).
    #[error("the map can't do this, or a length or flag is wrong")]
    Invalid = 22,
}

impl Refusal {
    /// What a helper returns.
    pub const fn code(self) -> u64 {
        -(self as i32 as i64) as u64
    }
}

/// The maps of an object, shared by all programs loaded from it together.
#[derive(Debug)]
pub struct Maps {
    maps: Box<[Arc<Map>]>,
}

impl Maps {
    /// Creates all maps, empty except for data sections. `workers` is the number of values in per-CPU maps;
    /// `seed` is that of the hashes, which senders of packets should not know.
    ///
    /// # Errors
    /// The map and its invalid field.
    pub fn new(specs: &[MapSpec], workers: u32, seed: u64) -> Result<Self, MapError> {
        Self::in_place_of(None, specs, workers, seed)
    }

    /// As [`Maps::new`] for a program that replaces another with the maps `before`: maps with the same name
    /// and declaration are shared, with their contents.
    ///
    /// # Errors
    /// As [`Maps::new`].
    pub fn in_place_of(
        before: Option<&Self>,
        specs: &[MapSpec],
        workers: u32,
        seed: u64,
    ) -> Result<Self, MapError> {
        let mut maps = Vec::with_capacity(specs.len());
        let known = |spec: &MapSpec| {
            let copies = if spec.kind.is_per_worker() { workers.max(1) } else { 1 };
            let alike = |map: &&Arc<Map>| map.spec == *spec && map.copies == copies;
            let before = before.filter(|before| spec.means_the_same(&before.maps, specs))?;
            before.maps.iter().find(alike).cloned()
        };
        let mut bytes = 0;
        for spec in specs {
            spec.check()?;
            bytes += spec.memory(workers);
            if bytes > MapSpec::MAX_MEMORY {
                let fault = MapFault::Memory { bytes, workers, limit: MapSpec::MAX_MEMORY };
                return Err(spec.error(fault));
            }
            let made = || Arc::new(Map::new(spec, workers, seed.wrapping_add(maps.len() as u64)));
            maps.push(known(spec).unwrap_or_else(made));
        }
        Ok(Self { maps: maps.into() })
    }

    /// All maps, in the object's order.
    pub fn all(&self) -> &[Arc<Map>] {
        &self.maps
    }

    /// The map with this index in the object.
    pub fn at(&self, index: u32) -> Option<&Map> {
        self.maps.get(index as usize).map(AsRef::as_ref)
    }

    /// The map of this name.
    pub fn named(&self, name: &str) -> Option<&Map> {
        self.maps.iter().find(|map| *map.spec.name == *name).map(AsRef::as_ref)
    }

    /// Whether this very map is among these.
    pub fn has(&self, map: &Arc<Map>) -> bool {
        self.maps.iter().any(|own| Arc::ptr_eq(own, map))
    }
}

/// A map.
#[derive(Debug)]
pub struct Map {
    spec: MapSpec,
    copies: u32,
    stride: usize,
    values: Words,
    table: Option<Table>,
    /// For a map of prefixes: the prefix lengths in its table.
    prefixes: Option<Prefixes>,
    /// For a map of records: its rings.
    rings: Option<Rings>,
    /// Odd during a write; whoever makes it odd has the turn.
    turn: AtomicU64,
}

impl Map {
    fn new(spec: &MapSpec, workers: u32, seed: u64) -> Self {
        let copies = if spec.kind.is_per_worker() { workers.max(1) } else { 1 };
        let stride = spec.stride();
        let (values, rings) = match spec.ring_capacity() {
            Some(bytes) => (Words::new(spec.memory(workers) as usize), Some(Rings::new(copies, bytes))),
            None => (Words::new(stride * copies as usize * spec.max_entries as usize), None),
        };
        let table = (!spec.kind.is_array() && rings.is_none())
            .then(|| Table::new(spec.key_size as usize, spec.max_entries, spec.kind.is_lru(), seed));
        if spec.kind.is_array() {
            for (number, value) in spec.initial.chunks(spec.value_size.max(1) as usize).enumerate() {
                values.write(number * stride, value);
            }
        }
        let prefixes = (spec.kind == MapKind::LpmTrie).then(|| Prefixes::new(spec.key_size));
        let turn = AtomicU64::new(0);
        let map = Self { spec: spec.clone(), copies, stride, values, table, prefixes, rings, turn };
        if spec.kind == MapKind::HashOfMaps || spec.kind.is_targets() {
            map.fill_by_number();
        }
        map
    }

    /// Its declaration.
    pub fn spec(&self) -> &MapSpec {
        &self.spec
    }

    /// Memory of its values. Value k of worker w begins at byte (k·copies + w)·stride, where copies is
    /// [`Map::copies`] and stride is [`MapSpec::stride`].
    pub fn values(&self) -> &Words {
        &self.values
    }

    /// Number of values per entry: one, or one for each worker.
    pub fn copies(&self) -> u32 {
        self.copies
    }

    /// Number of keys: all of an array, none of a ring.
    pub fn len(&self) -> u32 {
        let all = if self.rings.is_some() { 0 } else { self.spec.max_entries };
        self.table.as_ref().map_or(all, Table::len)
    }

    /// Whether it has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Offset of this worker's value of a key in bytes. None if the key is missing, or its length is wrong.
    pub fn lookup(&self, key: &[u8], worker: u32) -> Option<u32> {
        let entry = self.entry(key)?;
        if let Some(table) = &self.table {
            table.touch(entry);
        }
        Some(self.place(entry, worker) as u32)
    }

    /// Writes a value as a program's helper does: `read` fills each piece of up to 64 bytes from its offset
    /// in the new value on.
    ///
    /// # Errors
    /// `Busy` if another writer did not finish in time; else as [`Map::set`].
    pub fn update(
        &self,
        key: &[u8],
        worker: u32,
        flags: u64,
        read: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), Refusal> {
        let _turn = self.take_turn(PATIENCE).ok_or(Refusal::Busy)?;
        self.write(key, worker, flags, read)
    }

    /// Removes a key, as a program's helper does.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for arrays; `Busy` if another writer did not finish in time.
    pub fn delete(&self, key: &[u8]) -> Result<(), Refusal> {
        let table = self.table.as_ref().filter(|_| self.is_key(key)).ok_or(Refusal::Invalid)?;
        let prefix = self.prefix(key)?;
        let key = prefix.as_ref().map_or(key, Prefix::key);
        let _turn = self.take_turn(PATIENCE).ok_or(Refusal::Busy)?;
        if !table.remove(key) {
            return Err(Refusal::NotFound);
        }
        if let (Some(prefixes), Some(prefix)) = (&self.prefixes, &prefix) {
            prefixes.removed(prefix);
        }
        Ok(())
    }

    /// For the control half: reads a worker's value of a key atomically.
    pub fn get(&self, key: &[u8], worker: u32) -> Option<Vec<u8>> {
        self.whole(|| self.entry(key).map(|entry| self.value(entry, worker)))
    }

    /// For the control half: writes a worker's value of a key atomically. Flags are 0, [`NO_EXIST`] or
    /// [`EXIST`]. Other workers' values of a new key are zero.
    ///
    /// # Errors
    /// `Constant` for constants, `Invalid` for wrong lengths or flags, `Exists` and `NotFound` by the flags,
    /// `TooBig` when it is full, `Unlike` and `NoExit` for invalid values.
    pub fn set(&self, key: &[u8], worker: u32, value: &[u8], flags: u64) -> Result<(), Refusal> {
        if self.spec.is_constant() {
            return Err(Refusal::Constant);
        }
        let unwritten = self.rings.is_some() || self.spec.kind == MapKind::XskMap;
        if value.len() != self.spec.value_size as usize || unwritten {
            return Err(Refusal::Invalid);
        }
        let number = value.try_into().map(u32::from_le_bytes);
        if self.spec.kind.is_of_maps() && !number.is_ok_and(|number| self.spec.holds(number)) {
            return Err(Refusal::Unlike);
        }
        if self.spec.has_exits() && !self.spec.leads_on(value) {
            return Err(Refusal::NoExit);
        }
        let flags = if self.spec.lock.is_some() { flags | LOCK } else { flags };
        let _turn = self.wait_turn();
        self.write(key, worker, flags, |at, piece| piece.copy_from_slice(&value[at..at + piece.len()]))
    }

    /// For the control half: every key with its value of each worker, in order of the keys' bytes; arrays by
    /// index. Each entry is read atomically. Keys added or removed meanwhile may be missing or included.
    pub fn dump(&self) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
        self.first(usize::MAX)
    }

    /// The first `most` of these. Needs memory only for one entry more, however large the map is.
    pub fn first(&self, most: usize) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
        let values = |entry| (0..self.copies).map(|worker| self.value(entry, worker)).collect();
        match &self.table {
            None => {
                let entry = |i: u32| (i.to_le_bytes().to_vec(), self.whole(|| values(i)));
                (0..self.len()).take(most).map(entry).collect()
            }
            Some(table) => {
                let at = |slot| {
                    let mut key = vec![0; self.spec.key_size as usize];
                    table.at(slot, &mut key).map(|entry| (key, values(entry)))
                };
                let mut least = BinaryHeap::new();
                for entry in (0..table.slots()).filter_map(|slot| self.whole(|| at(slot))) {
                    least.push(entry);
                    if least.len() > most {
                        least.pop();
                    }
                }
                least.into_sorted_vec()
            }
        }
    }

    fn is_key(&self, key: &[u8]) -> bool {
        key.len() == self.spec.key_size as usize
    }

    /// The normalized key of a map of prefixes; none for other maps.
    fn prefix(&self, key: &[u8]) -> Result<Option<Prefix>, Refusal> {
        match &self.prefixes {
            Some(_) => Prefix::new(key).map(Some).ok_or(Refusal::Invalid),
            None => Ok(None),
        }
    }

    fn entry(&self, key: &[u8]) -> Option<u32> {
        match (&self.table, &self.prefixes) {
            (Some(_), _) if !self.is_key(key) => None,
            (Some(table), Some(prefixes)) => prefixes.longest(table, key),
            (Some(table), None) => table.find(key),
            (None, _) => Some(u32::from_le_bytes(key.try_into().ok()?)).filter(|&i| i < self.len()),
        }
    }

    /// Offset of a worker's value. Workers beyond the last share its value.
    fn place(&self, entry: u32, worker: u32) -> usize {
        let copy = worker.min(self.copies - 1) as usize;
        (entry as usize * self.copies as usize + copy) * self.stride
    }

    /// Writes a value. The caller must have the turn.
    fn write(
        &self,
        key: &[u8],
        worker: u32,
        flags: u64,
        mut read: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), Refusal> {
        if flags & !LOCK > EXIST || !self.is_key(key) {
            return Err(Refusal::Invalid);
        }
        let prefix = self.prefix(key)?;
        let key = prefix.as_ref().map_or(key, Prefix::key);
        let found = match (&self.table, &prefix) {
            (Some(table), Some(_)) => table.find(key),
            _ => self.entry(key),
        };
        match (found, &self.table) {
            // In the kernel's order: an array's index is checked before a missing lock is detected.
            (None, None) => Err(Refusal::TooBig),
            (Some(_), None) if flags & NO_EXIST != 0 => Err(Refusal::Exists),
            _ if flags & LOCK != 0 && self.spec.lock.is_none() => Err(Refusal::Invalid),
            (Some(_), _) if flags & NO_EXIST != 0 => Err(Refusal::Exists),
            (Some(entry), table) => {
                if let Some(table) = table {
                    table.touch(entry);
                }
                let (place, locks) = (self.place(entry, worker), flags & LOCK != 0);
                if locks && !self.set_lock(place, true) {
                    return Err(Refusal::Busy);
                }
                self.fill(entry, worker, &mut read);
                if locks {
                    self.set_lock(place, false);
                }
                Ok(())
            }
            (None, Some(_)) if flags & EXIST != 0 => Err(Refusal::NotFound),
            (None, Some(_)) if self.is_beyond(key) => Err(Refusal::TooBig),
            (None, Some(table)) => {
                let fill = |entry| {
                    self.clear_others(entry, worker);
                    self.fill(entry, worker, &mut read);
                };
                let full = if prefix.is_some() { Refusal::NoSpace } else { Refusal::TooBig };
                table.insert(key, fill).ok_or(full)?;
                if let (Some(prefixes), Some(prefix)) = (&self.prefixes, &prefix) {
                    prefixes.added(prefix);
                }
                Ok(())
            }
        }
    }

    /// Keys of targets are below their number.
    fn is_beyond(&self, key: &[u8]) -> bool {
        let number = key.try_into().map(u32::from_le_bytes);
        self.spec.kind.is_numbered_targets() && number.is_ok_and(|n| n >= self.spec.max_entries)
    }

    /// Clears an entry's values of all workers but this one.
    fn clear_others(&self, entry: u32, worker: u32) {
        let (own, all) = (self.place(entry, worker), (0..self.copies).map(|other| self.place(entry, other)));
        all.filter(|&place| place != own).for_each(|place| self.values.clear(place, self.stride));
    }

    fn fill(&self, entry: u32, worker: u32, read: &mut impl FnMut(usize, &mut [u8])) {
        let (base, size) = (self.place(entry, worker), self.spec.value_size as usize);
        let mut piece = [0; 64];
        for at in (0..size).step_by(64) {
            let piece = &mut piece[..(size - at).min(64)];
            read(at, piece);
            self.write_beside_lock(base, at, piece);
        }
    }

    fn value(&self, entry: u32, worker: u32) -> Vec<u8> {
        let mut value = vec![0; self.spec.value_size as usize];
        self.values.read(self.place(entry, worker), &mut value);
        if let Some(at) = self.spec.lock {
            value[at as usize..][..4].fill(0);
        }
        value
    }

    /// Result of `read` without a concurrent write.
    fn whole<T>(&self, read: impl Fn() -> T) -> T {
        for _ in 0..TRIES {
            let before = self.turn.load(Ordering::Acquire);
            let got = read();
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.turn.load(Ordering::Relaxed) == before {
                return got;
            }
            std::hint::spin_loop();
        }
        let _turn = self.wait_turn();
        read()
    }

    fn take_turn(&self, patience: u32) -> Option<Turn<'_>> {
        for _ in 0..patience {
            let seen = self.turn.load(Ordering::Relaxed);
            let free = seen.is_multiple_of(2);
            let taken =
                |to| self.turn.compare_exchange(seen, to, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if free && taken(seen + 1) {
                // Readers that see any write after this must also see the odd number.
                fence(Ordering::Release);
                return Some(Turn(&self.turn));
            }
            std::hint::spin_loop();
        }
        None
    }

    fn wait_turn(&self) -> Turn<'_> {
        loop {
            if let Some(turn) = self.take_turn(PATIENCE) {
                return turn;
            }
            std::thread::yield_now();
        }
    }
}

/// The right to write a map, until dropped.
struct Turn<'a>(&'a AtomicU64);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
