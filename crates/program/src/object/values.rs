//! What maps hold from the beginning: programs of program arrays, as `.values` of their declarations name them, or as who installs says.

use super::file::{File, Reference, Symbol};
use super::maps::{Declared, MAPS};
use super::{Object, ObjectError};
use crate::map::{MapError, MapFault};
use crate::{MapKind, MapSpec};
use std::sync::Arc;

/// Bytes of a value as it is declared: a pointer.
const POINTER: u64 = 8;
/// Bytes of a value as maps hold it: the number of a program in its object, from 1; 0 if there is none.
const NUMBER: usize = 4;

/// Fills maps with what relocations of `.maps` say. `program` gives the number of the program that begins at a place of a section.
pub(super) fn fill(file: &File<'_>, declared: &mut Declared, program: impl Fn(usize, u64) -> Option<u32>) {
    let Some((_, section)) = file.section(MAPS) else { return };
    for (&offset, reference) in &section.references {
        let Some((&start, place)) = declared.by_offset.range_mut(..=offset).next_back() else { continue };
        let (Ok(map), Some(&values)) = (place.clone(), declared.values.get(&start)) else { continue };
        let spec = &mut declared.specs[map as usize];
        let found = entry(offset, start + values, spec).and_then(|entry| {
            let symbol = symbol(file, *reference);
            let number = symbol.and_then(|symbol| program(symbol.section?, symbol.value));
            let what = "no program of this object: name an XDP program in a section of its own";
            Ok((entry, number.ok_or(MapFault::Value { entry: entry as u64, what })?))
        });
        match found {
            Ok((entry, number)) => set(spec, entry, number),
            Err(fault) => *place = Err(MapError { name: spec.name.clone(), fault }),
        }
    }
}

/// The entry that is filled at this offset, of a map whose values begin at another.
fn entry(offset: u64, values: u64, spec: &MapSpec) -> Result<usize, MapFault> {
    let beyond = offset.checked_sub(values).filter(|beyond| beyond % POINTER == 0);
    let entry = beyond.map_or(u64::MAX, |beyond| beyond / POINTER);
    match spec.kind {
        MapKind::ProgArray if entry < u64::from(spec.max_entries) => Ok(entry as usize),
        MapKind::ProgArray => Err(MapFault::Value { entry, what: "beyond max_entries: make that greater" }),
        _ => Err(MapFault::Value {
            entry,
            what: "an address, which maps of this type can't hold: leave it out",
        }),
    }
}

fn symbol<'f, 'd>(file: &'f File<'d>, reference: Reference) -> Option<&'f Symbol<'d>> {
    file.symbols.get(reference.symbol)
}

fn set(spec: &mut MapSpec, entry: usize, number: u32) {
    let mut initial = std::mem::take(&mut spec.initial).into_vec();
    initial.resize(initial.len().max((entry + 1) * NUMBER), 0);
    initial[entry * NUMBER..][..NUMBER].copy_from_slice(&number.to_le_bytes());
    spec.initial = initial.into();
}

impl Object<'_> {
    /// Says which programs a program array holds, by name and in order; empty names are entries without one. Programs that are put together
    /// after that have it so. An array without `max_entries` gets as many.
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
        if spec.max_entries == 0 {
            spec.max_entries = names.len() as u32;
        }
        if names.len() > spec.max_entries as usize {
            let fault = MapFault::Value {
                entry: u64::from(spec.max_entries),
                what: "beyond its last: name fewer programs",
            };
            return Err(ObjectError::Entries(MapError { name: spec.name.clone(), fault }));
        }
        spec.initial = numbers.iter().flat_map(|number: &u32| number.to_le_bytes()).collect();
        Ok(())
    }
}
