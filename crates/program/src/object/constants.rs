//! Constants of an object that may be set before its programs are put together, as libbpf's users do: `const volatile` variables of one whole number.

use super::file::File;
use super::maps::Declared;
use super::{Object, ObjectError};
use crate::MapSpec;
use crate::btf::Btf;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a constant lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constant {
    /// The number of its section's map.
    map: u32,
    offset: usize,
    /// 1, 2, 4 or 8.
    size: usize,
}

/// The constants that may be set, by name. Those that are not volatile may stand in the instructions already.
pub(super) fn found(
    file: &File<'_>,
    declared: &Declared,
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
        for variable in btf.variables(file.sections[section].name) {
            let mut symbols = file.symbols.iter();
            let symbol = symbols.find(|one| one.section == Some(section) && one.name == variable.name);
            let size = btf.size(variable.type_id).filter(|size| matches!(size, 1 | 2 | 4 | 8));
            if let (Some(symbol), Some(size)) = (symbol, size)
                && btf.is_volatile_number(variable.type_id)
                && let Ok(offset) = usize::try_from(symbol.value)
            {
                constants.insert(variable.name.into(), Constant { map, offset, size: size as usize });
            }
        }
    }
    constants
}

impl Object<'_> {
    /// The names of the constants that may be set, in order.
    pub fn constants(&self) -> impl Iterator<Item = &str> {
        self.constants.keys().map(AsRef::as_ref)
    }

    /// Gives a constant another value than the source does. Programs that are put together after that have it.
    ///
    /// # Errors
    /// If there is no such constant, or it can't have this value.
    pub fn set_constant(&mut self, name: &str, value: i128) -> Result<(), ObjectError> {
        let Some(&Constant { map, offset, size }) = self.constants.get(name) else {
            let known: Vec<&str> = self.constants().collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            return Err(ObjectError::NoConstant { name: name.into(), known });
        };
        let (low, high) = (-(1 << (size * 8 - 1)), (1 << (size * 8)) - 1);
        if !(low..=high).contains(&value) {
            return Err(ObjectError::ConstantRange { name: name.into(), value, low, high });
        }
        let spec = &mut Arc::make_mut(&mut self.specs)[map as usize];
        // A section's data is all of its value; what lies beyond is no constant's.
        match spec.initial.get_mut(offset..).and_then(|rest| rest.get_mut(..size)) {
            Some(bytes) => bytes.copy_from_slice(&value.to_le_bytes()[..size]),
            None => return Err(ObjectError::NoConstant { name: name.into(), known: String::new() }),
        }
        Ok(())
    }
}
