//! Maps whose values are numbers: of programs, of other maps, or of ports with a program.

use super::{Map, MapKind, MapSpec};
use crate::{ExitKind, Size};
use std::sync::Arc;

/// Entry of a map of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The first four bytes: a port, or a queue size.
    pub first: u32,
    /// Number of the program that runs there, from 1; 0 for none.
    pub exit: u8,
}

impl MapSpec {
    /// Whether its values have room for a program.
    pub fn has_exits(&self) -> bool {
        ExitKind::of_map(self.kind).is_some() && self.value_size == 8
    }

    /// A value with these first four bytes, and this program of [`MapSpec::exits`]. None if there is no such
    /// program.
    pub fn leading(&self, first: u32, exit: Option<&str>) -> Option<[u8; 8]> {
        let place = |name: &str| self.exits.iter().position(|exit| **exit == *name && !name.is_empty());
        let number = exit.map_or(Some(0), |name| Some(place(name)? as u64 + 1))?;
        Some((u64::from(first) | number << 32).to_le_bytes())
    }

    /// Whether the numbers in a map of maps are those of maps with the same names before and now.
    pub(super) fn means_the_same(&self, before: &[Arc<Map>], now: &[Self]) -> bool {
        let mut numbers = self.inner.iter().flat_map(|inner| inner.maps.iter()).map(|&map| map as usize);
        let name_before = |map: usize| before.get(map).map(|map| &map.spec.name);
        numbers.all(|map| name_before(map) == now.get(map).map(|spec| &spec.name))
    }

    /// Whether a value names no program (0 or negative, as in the kernel) or a permitted one.
    pub(super) fn leads_on(&self, value: &[u8]) -> bool {
        let number = value.last_chunk().map_or(0, |&last| i32::from_le_bytes(last));
        let named = |place: usize| self.exits.get(place).is_some_and(|name| !name.is_empty());
        number <= 0 || named(number as usize - 1)
    }
}

impl Map {
    /// Name of the program that runs for a target.
    pub fn exit_of(&self, target: Target) -> Option<&str> {
        let place = usize::from(target.exit).checked_sub(1)?;
        self.spec.exits.get(place).map(AsRef::as_ref)
    }

    /// For a map of targets: the target of this key.
    pub fn target(&self, key: u32) -> Option<Target> {
        if self.spec.kind.is_numbered_targets() && key >= self.spec.max_entries {
            return None;
        }
        let entry = self.entry(&key.to_le_bytes())?;
        let value = self.values.load(self.place(entry, 0), Size::Double);
        let named = if self.spec.has_exits() { (value >> 32) as i32 } else { 0 };
        Some(Target { first: value as u32, exit: named.clamp(0, u8::MAX.into()) as u8 })
    }

    /// For a program array: number of the program in this entry, 0 for none.
    pub fn program(&self, index: u32) -> u32 {
        if index >= self.spec.max_entries || self.spec.kind != MapKind::ProgArray {
            return 0;
        }
        self.values.load(self.place(index, 0), Size::Word) as u32
    }

    /// For a map of maps: index of the map with this key in the object.
    pub fn held(&self, key: &[u8]) -> Option<u16> {
        let entry = self.entry(key).filter(|_| self.spec.kind.is_of_maps())?;
        let number = self.values.load(self.place(entry, 0), Size::Word) as u32;
        number.checked_sub(1)?.try_into().ok()
    }

    /// Sets the first values of a hash map of maps or a map of targets, whose keys are indices.
    pub(super) fn fill_by_number(&self) {
        for (key, first) in self.spec.initial.chunks_exact(self.spec.value_size.max(1) as usize).enumerate() {
            // 0 is no map, but a port.
            if self.spec.kind.is_targets() || *first != [0; 4] {
                // Invalid ones are left out: wrong key length, or no room.
                let fill = |_: usize, value: &mut [u8]| value.copy_from_slice(first);
                self.write(&(key as u32).to_le_bytes(), 0, 0, fill).ok();
            }
        }
    }
}
