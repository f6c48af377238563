//! Constants of an object that can be set before its programs are linked, as with libbpf: `const volatile`
//! variables that are whole numbers, or arrays of them.

use super::file::File;
use super::maps::{ObjectMaps, variables};
use super::{Object, ObjectError};
use crate::MapSpec;
use crate::btf::{Btf, Numbers};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Location of a constant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constant {
    /// The number of its section's map.
    map: u32,
    offset: usize,
    /// Bytes of each of its numbers: 1, 2, 4 or 8.
    size: usize,
    /// How many there are, 1 to [`MOST_NUMBERS`].
    count: usize,
    signed: bool,
}

/// Most numbers of a constant that can be set, because all are listed.
const MOST_NUMBERS: u32 = 256;

/// The constants that can be set, by name. Compilers may have inlined those that are not volatile.
pub(super) fn found(
    file: &File<'_>,
    declared: &ObjectMaps,
    specs: &[MapSpec],
    btf: Option<&Btf<'_>>,
) -> BTreeMap<Box<str>, Constant> {
    let mut constants = BTreeMap::new();
    let Some(btf) = btf else { return constants };
    for (&section, map) in &declared.by_section {
        let Ok(map) = *map else { continue };
        if !specs[map as usize].is_constant() {
            continue;
        }
        for (name, type_id, offset) in variables(file, section, Some(btf)) {
            let numbers = btf.volatile_numbers(type_id).filter(|numbers| {
                matches!(numbers.size, 1 | 2 | 4 | 8) && (1..=MOST_NUMBERS).contains(&numbers.count)
            });
            let Some(Numbers { size, count, signed }) = numbers else { continue };
            let (offset, size, count) = (offset as usize, size as usize, count as usize);
            let constant = Constant { map, offset, size, count, signed };
            if constant.bytes(specs).is_some() {
                constants.insert(name, constant);
            }
        }
    }
    constants
}

impl Constant {
    /// Its current bytes; none if some are beyond its section's data.
    fn bytes<'s>(&self, specs: &'s [MapSpec]) -> Option<&'s [u8]> {
        let initial = &specs.get(self.map as usize)?.initial;
        initial.get(self.offset..self.offset.checked_add(self.size * self.count)?)
    }

    fn numbers(&self, specs: &[MapSpec]) -> Box<[i128]> {
        let number = |bytes: &[u8]| {
            let negative = self.signed && bytes.last().is_some_and(|high| high >> 7 == 1);
            let mut wide = if negative { [0xff; 16] } else { [0; 16] };
            wide[..bytes.len()].copy_from_slice(bytes);
            i128::from_le_bytes(wide)
        };
        self.bytes(specs).unwrap_or_default().chunks_exact(self.size).map(number).collect()
    }
}

impl Object<'_> {
    /// Names of the constants that can be set, in order.
    pub fn constants(&self) -> impl Iterator<Item = &str> {
        self.constants.keys().map(AsRef::as_ref)
    }

    /// The constants that can be set, with their current numbers.
    pub(super) fn constant_values(&self) -> BTreeMap<Box<str>, Box<[i128]>> {
        let values = self.constants.iter().map(|(name, one)| (name.clone(), one.numbers(&self.specs)));
        values.collect()
    }

    /// Sets a constant: one number, or as many as its array has, for programs linked after this.
    ///
    /// # Errors
    /// If there is no such constant, or the numbers are invalid.
    pub fn set_constant(&mut self, name: &str, numbers: &[i128]) -> Result<(), ObjectError> {
        let Some(&Constant { map, offset, size, count, .. }) = self.constants.get(name) else {
            let known: Vec<&str> = self.constants().collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            return Err(ObjectError::NoConstant { name: name.into(), known });
        };
        if numbers.len() != count {
            return Err(ObjectError::ConstantCount { name: name.into(), count, given: numbers.len() });
        }
        let (low, high) = (-(1 << (size * 8 - 1)), (1 << (size * 8)) - 1);
        if let Some(&value) = numbers.iter().find(|number| !(low..=high).contains(*number)) {
            return Err(ObjectError::ConstantRange { name: name.into(), value, low, high });
        }
        let spec = &mut Arc::make_mut(&mut self.specs)[map as usize];
        for (place, number) in spec.initial[offset..].chunks_exact_mut(size).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes()[..size]);
        }
        Ok(())
    }
}
