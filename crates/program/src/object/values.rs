//! Initial contents of maps: programs of program arrays and maps of maps, from `.values` of their
//! declarations, or set at installation.

use super::file::File;
use super::maps::{MAPS, ObjectMaps};
use super::{Object, ObjectError};
use crate::map::MapFault;
use crate::{MapKind, MapSpec};
use std::sync::Arc;

/// Bytes of a declared value: a pointer.
const POINTER: u64 = 8;
/// Bytes of a stored value: number of a program or map in the object, from 1; 0 for none.
const NUMBER: usize = 4;

/// Fills maps from the relocations of `.maps`. `program` returns the number of the program at an offset of a
/// section.
pub(super) fn fill(file: &File<'_>, declared: &mut ObjectMaps, program: impl Fn(usize, u64) -> Option<u32>) {
    let Some((maps, section)) = file.section(MAPS) else { return };
    find_inner(&mut declared.specs);
    for (&offset, reference) in &section.references {
        let map_at = |at| declared.by_offset.get(&at).and_then(|place| place.clone().ok());
        let symbol = file.symbols.get(reference.symbol);
        let of_map =
            symbol.filter(|symbol| symbol.section == Some(maps)).and_then(|symbol| map_at(symbol.value));
        let of_program = symbol.and_then(|symbol| program(symbol.section?, symbol.value));
        let Some((&start, place)) = declared.by_offset.range_mut(..=offset).next_back() else { continue };
        let (Ok(map), Some(&values)) = (place.clone(), declared.values.get(&start)) else { continue };
        let spec = &mut declared.specs[map as usize];
        let found = entry(offset, start.saturating_add(values), section.data, spec).and_then(|entry| {
            let (number, what) = if spec.kind.is_of_maps() {
                let like = of_map.map(|map| map + 1).filter(|&number| spec.holds(number));
                (like, "no map of this object, or not like the one that it declares")
            } else {
                (of_program, "no program of this object: name an XDP program in a section of its own")
            };
            Ok((entry, number.ok_or(MapFault::Value { entry: entry as u64, what })?))
        });
        match found {
            Ok((entry, number)) => set(spec, entry, number),
            Err(fault) => *place = Err(spec.error(fault)),
        }
    }
}

/// Determines for each map of maps which maps it can hold.
fn find_inner(specs: &mut [MapSpec]) {
    for place in 0..specs.len() {
        let Some(mut inner) = specs[place].inner.take() else { continue };
        let like = specs.iter().zip(0..).filter(|(spec, _)| spec.is_like(&inner.spec));
        inner.maps = like.map(|(_, number)| number).collect();
        specs[place].inner = Some(inner);
    }
}

/// Index of the entry at this offset of `.maps`, in a map whose values begin at another. It is within the
/// section's bytes, so that a small file can't ask for much memory.
fn entry(offset: u64, values: u64, section: &[u8], spec: &MapSpec) -> Result<usize, MapFault> {
    let beyond = offset.checked_sub(values).filter(|beyond| beyond % POINTER == 0);
    let entry = beyond.map_or(u64::MAX, |beyond| beyond / POINTER);
    let what = if !spec.kind.is_of_maps() && spec.kind != MapKind::ProgArray {
        "an address, which maps of this type can't hold: leave it out"
    } else if spec.key_size != 4 {
        "a number, and keys of this map are none: fill it when it is installed"
    } else if offset >= section.len() as u64 {
        "beyond the bytes of section .maps: compile the object again"
    } else if entry >= u64::from(spec.max_entries) {
        "beyond max_entries: make that greater"
    } else {
        return Ok(entry as usize);
    };
    Err(MapFault::Value { entry, what })
}

fn set(spec: &mut MapSpec, entry: usize, number: u32) {
    let mut initial = std::mem::take(&mut spec.initial).into_vec();
    initial.resize(initial.len().max((entry + 1) * NUMBER), 0);
    initial[entry * NUMBER..][..NUMBER].copy_from_slice(&number.to_le_bytes());
    spec.initial = initial.into();
}

/// Sets the first `count` entries. A map without `max_entries` gets as many; `beyond` describes an entry
/// that it lacks.
pub(super) fn set_first(
    spec: &mut MapSpec,
    count: usize,
    initial: Box<[u8]>,
    beyond: &'static str,
) -> Result<(), ObjectError> {
    if spec.max_entries == 0 {
        spec.max_entries = count as u32;
    }
    if count > spec.max_entries as usize {
        let fault = MapFault::Value { entry: u64::from(spec.max_entries), what: beyond };
        return Err(ObjectError::Entries(spec.error(fault)));
    }
    spec.initial = initial;
    Ok(())
}

impl Object<'_> {
    /// Sets the programs of a program array, by name and in order; empty names are empty entries. Applies to
    /// programs linked after this. An array without `max_entries` gets as many.
    ///
    /// # Errors
    /// If there is no such program array, it has fewer entries, or there is no such program.
    pub fn set_programs(&mut self, map: &str, names: &[&str]) -> Result<(), ObjectError> {
        let place = self.specs.iter().position(|spec| *spec.name == *map);
        let place = place.filter(|&place| self.specs[place].kind == MapKind::ProgArray);
        let place = place.ok_or_else(|| ObjectError::NoProgramArray { name: map.into() })?;
        let mut numbers = Vec::with_capacity(names.len());
        for &name in names {
            let number = self.programs().position(|(program, _)| program == name);
            match number {
                _ if name.is_empty() => numbers.push(0),
                Some(number) => numbers.push(number as u32 + 1),
                None => return Err(self.no_program(name)),
            }
        }
        let spec = &mut Arc::make_mut(&mut self.specs)[place];
        let initial = numbers.iter().flat_map(|number: &u32| number.to_le_bytes()).collect();
        set_first(spec, names.len(), initial, "beyond its last: name fewer programs")
    }
}
