//! Maps of programs: shown and changed.

use super::fields;
use super::{Answer, bytes, wrong};
use longwire_control::{MapChange, SetError};
use longwire_program::map::{Refusal, RingStats};
use longwire_program::{Map, Shape, ShapeError, Types};
use longwire_router::Forwarder;
use longwire_scenario::digits;
use longwire_units::counted;
use serde_json::{Value, json};

/// Most entries of a map shown at once: as many as any shipped forwarder has.
const MOST_ENTRIES: usize = 65_536;

/// The entries of a program's map, or one entry.
///
/// # Errors
/// If there is no such map, or it has no such key.
pub fn shown(forwarder: &Forwarder, (name, key): (&str, Option<&str>), by_fields: bool) -> Answer {
    let fid = forwarder.fid().0;
    let map = named(forwarder, name)?;
    if let Some(key) = key {
        let found = key_of(forwarder, map, key)?;
        let values: Vec<_> = (0..map.copies()).filter_map(|copy| map.get(&found, copy)).collect();
        if values.is_empty() {
            return Err(wrong("key", format!("map {name} has no such key")));
        }
        let mut shown = json!({ "fid": fid, "map": name, "key": key, "value": all_digits(&values) });
        let shapes = Shapes::of(forwarder, map);
        let fields =
            || shapes.map(|shapes| shapes.shown(&found, &values)).or_else(|| led_fields(map, &found));
        if let Some(fields) = by_fields.then(fields).flatten() {
            shown["fields"] = fields;
        }
        return Ok(shown);
    }
    Ok(contents(forwarder, map, MOST_ENTRIES, by_fields))
}

/// The maps of a program with their properties.
pub fn all(forwarder: &Forwarder) -> Value {
    forwarder.maps().all().iter().map(|map| described(map)).collect()
}

/// The first `most` entries of a program's map, and the number of the others.
pub fn contents(forwarder: &Forwarder, map: &Map, most: usize, by_fields: bool) -> Value {
    let shapes = Shapes::of(forwarder, map);
    let entries = map.first(most);
    // With room for more, these were all: the number may have changed meanwhile.
    let left_out = if entries.len() < most { 0 } else { (map.len() as usize).saturating_sub(most) };
    let shown = entries.iter().map(|(key, values)| {
        let mut entry = json!({ "key": digits(key), "value": all_digits(values) });
        let fields =
            || shapes.as_ref().map(|shapes| shapes.shown(key, values)).or_else(|| led_fields(map, key));
        if let Some(fields) = by_fields.then(fields).flatten() {
            entry["fields"] = fields;
        }
        entry
    });
    json!({
        "fid": forwarder.fid().0,
        "map": map.spec().name,
        "entries": shown.collect::<Vec<_>>(),
        "more": left_out > 0,
        "left-out": left_out,
    })
}

/// The values of keys, null for missing ones.
///
/// # Errors
/// If there is no such map, or its keys have another length.
pub fn values(forwarder: &Forwarder, name: &str, keys: &[String]) -> Answer {
    let map = named(forwarder, name)?;
    let value = |key: &String| Ok(map.get(&key_of(forwarder, map, key)?, 0).map(|value| digits(&value)));
    let values: Vec<Option<String>> = keys.iter().map(value).collect::<Result<_, SetError>>()?;
    Ok(json!({ "fid": forwarder.fid().0, "map": name, "values": values }))
}

/// Removes entries, ignoring missing ones, then writes others, in the given order.
///
/// # Errors
/// If there is no such map, keys or values have another length, an index is out of range, the map is full, it
/// holds constants, or its entries can't be removed; changes before the wrong one have been made.
pub fn write(forwarder: &Forwarder, name: &str, change: &MapChange) -> Answer {
    let map = named(forwarder, name)?;
    if map.spec().kind.is_array() && !change.remove.is_empty() {
        let why = format!("{name} is an array, whose entries can't be removed: write zeros instead");
        return Err(wrong("map", why));
    }
    for key in &change.remove {
        removed(map, map.delete(&key_of(forwarder, map, key)?))?;
    }
    change.write.iter().try_for_each(|(key, value)| write_one(forwarder, map, (key, value)))?;
    let fid = forwarder.fid().0;
    Ok(json!({ "fid": fid, "map": name, "removed": change.remove.len(), "written": change.write.len() }))
}

/// Removes all entries, or zeroes them if they can't be removed.
///
/// # Errors
/// If there is no such map, or it holds constants.
pub fn clear(forwarder: &Forwarder, name: &str) -> Answer {
    let map = named(forwarder, name)?;
    if map.spec().is_constant() {
        return Err(wrong("map", format!("{name}: {}", Refusal::Constant)));
    }
    let zeros = vec![0; map.spec().value_size as usize];
    for (key, _) in map.dump() {
        let done = if map.spec().kind.is_array() {
            (0..map.copies()).try_for_each(|copy| map.set(&key, copy, &zeros, 0))
        } else {
            map.delete(&key)
        };
        removed(map, done)?;
    }
    Ok(json!({ "fid": forwarder.fid().0, "map": name }))
}

/// An entry that was not used for long may have been evicted.
fn removed(map: &Map, done: Result<(), Refusal>) -> Result<(), SetError> {
    match done {
        Ok(()) | Err(Refusal::NotFound) => Ok(()),
        Err(error) => Err(wrong("map", format!("{}: {error}", map.spec().name))),
    }
}

fn write_one(forwarder: &Forwarder, map: &Map, (key, value): (&str, &str)) -> Result<(), SetError> {
    let (name, wanted) = (&map.spec().name, map.spec().value_size);
    if map.spec().is_constant() {
        return Err(wrong("map", format!("{name}: {}", Refusal::Constant)));
    }
    let key = key_of(forwarder, map, key)?;
    let value = match value.split_once(':').filter(|_| is_led(map, value)) {
        Some((first, exit)) => led(map, first.trim(), exit.trim())?,
        None => bytes_of("value", value, Shapes::value(forwarder, map))?,
    };
    if value.len() != wanted as usize {
        let size = counted(value.len() as u64, "byte");
        return Err(wrong("value", format!("it is {size}, and values of map {name} are {wanted}")));
    }
    map.set(&key, 0, &value, 0).map_err(|error| match error {
        Refusal::TooBig => {
            let most = map.spec().max_entries;
            wrong("map", format!("{name} is full: it has {most} entries; remove one with --delete"))
        }
        error => wrong("map", format!("{name}: {error}")),
    })
}

/// Whether a value is a number and the name of a program: `1:stamp`.
fn is_led(map: &Map, text: &str) -> bool {
    map.spec().has_exits() && text.starts_with(|first: char| first.is_ascii_digit())
}

/// The bytes of such a value; `1:` has no program.
fn led(map: &Map, first: &str, exit: &str) -> Result<Vec<u8>, SetError> {
    let spec = map.spec();
    let number = first.parse().map_err(|_| {
        wrong(
            "value",
            format!("\"{}\" is not a number: write NUMBER:PROGRAM, such as 1:stamp", first.escape_debug()),
        )
    })?;
    let value = spec.leading(number, Some(exit).filter(|exit| !exit.is_empty())).ok_or_else(|| {
        let known: Vec<&str> =
            spec.exits.iter().map(AsRef::as_ref).filter(|name: &&str| !name.is_empty()).collect();
        let known =
            if known.is_empty() { "none; name some with --exit".to_owned() } else { known.join(", ") };
        wrong(
            "value",
            format!("map {} can't lead to program \"{}\"; there are {known}", spec.name, exit.escape_debug()),
        )
    })?;
    Ok(value.to_vec())
}

/// An entry of a map whose values have room for a program, if the object has no types: `1:stamp`, or `1`
/// without a program.
fn led_fields(map: &Map, key: &[u8]) -> Option<Value> {
    let number = key.try_into().map(u32::from_le_bytes).ok().filter(|_| map.spec().has_exits())?;
    let target = map.target(number)?;
    let value = match map.exit_of(target) {
        Some(exit) => format!("{}:{exit}", target.first),
        None => target.first.to_string(),
    };
    Some(json!({ "key": number, "value": value }))
}

/// A map's properties, and the counters of a ring's records.
fn described(map: &Map) -> Value {
    let spec = map.spec();
    if let Some(stats) = map.ring_stats() {
        return ring(map, &stats);
    }
    json!({
        "name": spec.name,
        "kind": spec.kind.name(),
        "key": spec.key_size,
        "value": spec.value_size,
        "max-entries": spec.max_entries,
        "entries": map.len(),
        "constant": spec.is_constant(),
    })
}

/// The settings of a ring, and the counters of its records.
pub fn ring(map: &Map, stats: &RingStats) -> Value {
    json!({
        "name": map.spec().name,
        "kind": map.spec().kind.name(),
        "bytes": stats.capacity,
        "waiting": stats.waiting,
        "taken": stats.taken,
        "lost": stats.lost,
    })
}

pub(crate) fn named<'f>(forwarder: &'f Forwarder, name: &str) -> Result<&'f Map, SetError> {
    forwarder.maps().named(name).ok_or_else(|| {
        let known: Vec<&str> = forwarder.maps().all().iter().map(|map| &*map.spec().name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        wrong("map", format!("the program has no map \"{}\"; it has {known}", name.escape_debug()))
    })
}

/// Types of a map's keys and values, if its object has types that can be shown.
struct Shapes {
    key: Shape,
    value: Shape,
}

impl Shapes {
    fn of(forwarder: &Forwarder, map: &Map) -> Option<Self> {
        let key = Self::key(forwarder, map).ok().or_else(|| {
            // Arrays are indexed by number, even without types.
            let number = Shape::Number { size: 4, signed: false, network: false };
            map.spec().kind.is_array().then_some(number)
        })?;
        Some(Self { key, value: Self::value(forwarder, map).ok()? })
    }

    fn key(forwarder: &Forwarder, map: &Map) -> Result<Shape, ShapeError> {
        types(forwarder).key(place(forwarder, map), map.spec())
    }

    fn value(forwarder: &Forwarder, map: &Map) -> Result<Shape, ShapeError> {
        types(forwarder).value(place(forwarder, map), map.spec())
    }

    /// An entry by its fields; several values are a list.
    fn shown(&self, key: &[u8], values: &[Vec<u8>]) -> Value {
        let value = |value: &Vec<u8>| fields::shown(&self.value, value);
        let values = match values {
            [only] => value(only),
            several => several.iter().map(value).collect(),
        };
        json!({ "key": fields::shown(&self.key, key), "value": values })
    }
}

fn types(forwarder: &Forwarder) -> &Types {
    &forwarder.verified().program().types
}

fn place(forwarder: &Forwarder, map: &Map) -> usize {
    let mut all = forwarder.maps().all().iter();
    all.position(|one| std::ptr::eq(&raw const **one, map)).unwrap_or(usize::MAX)
}

/// A type of a program's object by name.
///
/// # Errors
/// If there is none, or its values can't be shown.
pub fn named_type(forwarder: &Forwarder, name: &str) -> Result<Shape, SetError> {
    types(forwarder).named(name).map_err(|error| wrong("type", error.to_string()))
}

/// Bytes from digits, or from fields if the type is known.
fn bytes_of(what: &str, text: &str, shape: Result<Shape, ShapeError>) -> Result<Vec<u8>, SetError> {
    match shape {
        Ok(shape) => fields::read(&shape, text).map_err(|fault| wrong(what, fault.to_string())),
        Err(error) if text.trim_start().starts_with(['{', '[', '"']) => {
            Err(wrong(what, format!("{error}: write hexadecimal digits")))
        }
        Err(_) => bytes(what, text),
    }
}

/// A valid key of the map: of its length, and for an array within range.
fn key_of(forwarder: &Forwarder, map: &Map, text: &str) -> Result<Vec<u8>, SetError> {
    let spec = map.spec();
    if spec.kind.is_ring() {
        let why = format!(
            "{} is a ring, which has no keys: longwire forwarder events takes its records out",
            spec.name
        );
        return Err(wrong("map", why));
    }
    let key = bytes_of("key", text, Shapes::key(forwarder, map))?;
    let by_number = spec.kind.is_array();
    if key.len() != spec.key_size as usize {
        let hint = if by_number { ": the entry's number, lowest byte first" } else { "" };
        let (name, got, wanted) = (&spec.name, counted(key.len() as u64, "byte"), spec.key_size);
        return Err(wrong("key", format!("it is {got}, and keys of map {name} are {wanted}{hint}")));
    }
    let number = <[u8; 4]>::try_from(&*key).map(u32::from_le_bytes);
    match number {
        Ok(number) if by_number && number >= spec.max_entries => {
            let last = spec.max_entries - 1;
            let why =
                format!("it is number {number}, and map {} has 0 to {last}, lowest byte first", spec.name);
            Err(wrong("key", why))
        }
        _ => Ok(key),
    }
}

/// The values of a key: the worker's, then those of processor threads, if they have separate values.
fn all_digits(values: &[Vec<u8>]) -> String {
    values.iter().map(|value| digits(value)).collect::<Vec<_>>().join(" ")
}
