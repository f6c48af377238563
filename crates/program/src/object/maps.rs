//! Maps declared by an object: those of `.maps`, and one for each data section.

use super::ObjectError;
use super::file::{File, Section};
use crate::btf::{Btf, MapTypes, ValueType};
use crate::map::{MapError, MapFault};
use crate::memory::MAX_MAPS;
use crate::{Inner, MapKind, MapSpec};
use std::collections::BTreeMap;

pub(super) const MAPS: &str = ".maps";
/// Section of maps declared before BTF.
pub(super) const LEGACY: &str = "maps";

/// BPF_F_NO_PREALLOC, BPF_F_NO_COMMON_LRU and BPF_F_MMAPABLE, which have no effect here.
const IGNORED_FLAGS: u32 = 1 | 1 << 1 | 1 << 10;
/// BPF_F_RDONLY_PROG.
const READ_ONLY: u32 = 1 << 7;

/// The maps of an object, with indices for relocations.
#[derive(Debug, Default)]
pub(super) struct ObjectMaps {
    /// The valid ones.
    pub specs: Vec<MapSpec>,
    /// Types of their keys and values.
    pub types: Vec<MapTypes>,
    /// By offset in `.maps`: an index in `specs`, or the error.
    pub by_offset: BTreeMap<u64, Result<u32, MapError>>,
    /// By offset in `.maps`: the relative offset of their `values` in bytes.
    pub values: BTreeMap<u64, u64>,
    /// By index of a data section.
    pub by_section: BTreeMap<usize, Result<u32, MapError>>,
}

/// Collects all maps.
pub(super) fn declared(file: &File<'_>, btf: Option<&Btf<'_>>) -> Result<ObjectMaps, ObjectError> {
    let mut declared = ObjectMaps::default();
    if let Some((index, section)) = file.section(MAPS) {
        let btf = btf.ok_or(ObjectError::MapsWithoutTypes)?;
        let here = file.symbols.iter().filter(|s| s.section == Some(index) && s.value < section.size);
        let offsets: BTreeMap<&str, u64> = here.map(|symbol| (symbol.name, symbol.value)).collect();
        let variables = btf.variables(MAPS);
        if variables.len() > MAX_MAPS {
            return Err(ObjectError::TooManyMaps(variables.len()));
        }
        for variable in variables {
            let offset = offsets.get(variable.name).copied();
            let offset = offset.ok_or_else(|| ObjectError::MapWithoutSymbol(variable.name.into()))?;
            let spec = definition(btf, variable.name, variable.type_id);
            let place = spec.and_then(|(spec, types)| declared.add(spec, types));
            declared.by_offset.insert(offset, place);
            let values = btf.members(variable.type_id).into_iter().find(|member| member.name == "values");
            declared.values.extend(values.map(|values| (offset, u64::from(values.offset & 0xff_ffff) / 8)));
        }
    }
    for (index, section) in file.sections.iter().enumerate() {
        if is_data(section.name) && section.size > 0 {
            let types = || MapTypes { key: 0, value: ValueType::Variables(variables(file, index, btf)) };
            let place = data(section).and_then(|spec| declared.add(spec, types()));
            declared.by_section.insert(index, place);
        }
        if declared.specs.len() > MAX_MAPS {
            return Err(ObjectError::TooManyMaps(declared.specs.len()));
        }
    }
    Ok(declared)
}

impl ObjectMaps {
    fn add(&mut self, spec: MapSpec, types: MapTypes) -> Result<u32, MapError> {
        spec.check()?;
        self.specs.push(spec);
        self.types.push(types);
        Ok(self.specs.len() as u32 - 1)
    }
}

/// Whether a section of this name has a program's variables.
fn is_data(name: &str) -> bool {
    [".data", ".rodata", ".bss"]
        .iter()
        .any(|kind| name.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// The variables of a data section: name, type, and offset by symbol. Of sections with one name only the
/// first has any: the types name them by section, and hostile files have hundreds of such sections.
pub(super) fn variables(file: &File<'_>, section: usize, btf: Option<&Btf<'_>>) -> Vec<(Box<str>, u32, u32)> {
    let name = file.sections[section].name;
    let is_first = file.section(name).is_some_and(|(first, _)| first == section);
    let Some(btf) = btf.filter(|_| is_first) else { return Vec::new() };
    let offsets = file.offsets(section);
    let known = btf.variables(name).into_iter().filter_map(|variable| {
        let offset = u32::try_from(*offsets.get(variable.name)?).ok()?;
        Some((variable.name.into(), variable.type_id, offset))
    });
    known.collect()
}

/// A data section is an array of one value.
fn data(section: &Section<'_>) -> Result<MapSpec, MapError> {
    let name: Box<str> = section.name.into();
    let value_size = u32::try_from(section.size).unwrap_or(u32::MAX);
    if value_size > MapSpec::MAX_VALUE {
        let (field, wanted) = ("the section's size", "at most 1048576 bytes");
        return Err(MapError { name, fault: MapFault::Field { field, value: value_size, wanted } });
    }
    Ok(MapSpec {
        read_only: section.name.starts_with(".rodata"),
        initial: section.data.into(),
        ..MapSpec::new(name, MapKind::Array, 4, value_size, 1)
    })
}

/// Parses a map from the type of its variable.
fn definition(btf: &Btf<'_>, name: &str, type_id: u32) -> Result<(MapSpec, MapTypes), MapError> {
    let (spec, types, values) = declaration(btf, name, type_id)?;
    let inner = match values {
        Some(id) if spec.kind.is_of_maps() => Some(inner(btf, &format!("{name}.inner"), id)?),
        _ => None,
    };
    Ok((MapSpec { inner, ..spec }, types))
}

/// Declaration of the maps in a map of maps. The matching maps are determined later.
fn inner(btf: &Btf<'_>, name: &str, type_id: u32) -> Result<Inner, MapError> {
    // Its own values are not followed: a type may contain itself.
    let (mut spec, ..) = declaration(btf, name, type_id)?;
    // Others may have more: assume the maximum where it matters.
    spec.max_entries = MapSpec::MAX_ENTRIES;
    // Other types are refused with the map that declares them.
    if spec.kind.is_held() {
        spec.check()?;
    }
    Ok(Inner { spec: Box::new(spec), maps: Box::default() })
}

/// Parses a map without its inner maps, of which it returns the type: numbers are lengths of arrays that
/// members point to (`__uint`), types are targets of members (`__type`).
fn declaration(
    btf: &Btf<'_>,
    name: &str,
    type_id: u32,
) -> Result<(MapSpec, MapTypes, Option<u32>), MapError> {
    let fail = |fault| MapError { name: name.into(), fault };
    let (mut kind, mut key_size, mut value_size, mut entries, mut flags) = (0, 0, 0, 0, 0);
    let (mut lock, mut values) = (None, None);
    let (mut key, mut value) = (0, 0);
    for member in btf.members(type_id) {
        let pointee = btf.pointee(member.type_id);
        let number = || pointee.and_then(|id| btf.elements(id)).unwrap_or(0);
        let size = || pointee.and_then(|id| btf.size(id)).unwrap_or(0);
        match member.name {
            "type" => kind = number(),
            "key_size" => key_size = number(),
            "value_size" => value_size = number(),
            "max_entries" => entries = number(),
            "map_flags" => flags = number(),
            "key" => (key_size, key) = (size(), pointee.unwrap_or(0)),
            "value" => {
                (value_size, value) = (size(), pointee.unwrap_or(0));
                lock = pointee.and_then(|id| btf.lock(id));
            }
            "values" => values = btf.element(member.type_id).and_then(|id| btf.pointee(id)),
            // Pinning, NUMA node: no effect here.
            _ => {}
        }
    }
    let found = MapKind::from_number(kind).ok_or_else(|| fail(MapFault::Kind(kind)))?;
    if flags & !(IGNORED_FLAGS | READ_ONLY) != 0 {
        return Err(fail(MapFault::Flags(flags)));
    }
    // Numbers of its contents, whose types have no size.
    let numbers = found == MapKind::ProgArray || found.is_of_maps();
    let types = MapTypes { key, value: ValueType::One(value) };
    let value_size = if numbers && value_size == 0 { 4 } else { value_size };
    let spec = MapSpec {
        read_only: flags & READ_ONLY != 0,
        lock,
        ..MapSpec::new(name, found, key_size, value_size, MapSpec::rounded(found, entries))
    };
    Ok((spec, types, values))
}
