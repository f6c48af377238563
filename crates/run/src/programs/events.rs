//! Records that programs have written into their rings: taken out and formatted.

use super::{Answer, wrong};
use super::{fields, maps};
use longwire_program::map::Record;
use longwire_program::{Map, Shape};
use longwire_router::Forwarder;
use longwire_scenario::digits;
use serde_json::{Value, json};

/// Most records, and most bytes of them, taken out at once.
const MOST_RECORDS: usize = 4096;
const MOST_BYTES: usize = 1 << 20;

/// Takes records out of one or all of a program's rings, the oldest first, with fields if a type is named.
///
/// # Errors
/// If there is no such ring or type, or the program has no ring.
pub fn taken(forwarder: &Forwarder, name: Option<&str>, kind: Option<&str>) -> Answer {
    let shape = kind.map(|kind| maps::named_type(forwarder, kind)).transpose()?;
    let rings = match name {
        Some(name) => vec![maps::named(forwarder, name)?],
        None => forwarder
            .maps()
            .all()
            .iter()
            .map(AsRef::as_ref)
            .filter(|map| map.ring_stats().is_some())
            .collect(),
    };
    if let Some(other) = rings.iter().find(|map| map.ring_stats().is_none()) {
        let kind = other.spec().kind.name();
        let why = format!(
            "{} is not a ring but a {kind}: longwire forwarder map shows its entries",
            other.spec().name
        );
        return Err(wrong("map", why));
    }
    if rings.is_empty() {
        let why = "the program has no ring (a map of type ringbuf or perf_event_array)";
        return Err(wrong("map", why.into()));
    }
    let mut all = Vec::new();
    let (mut records, mut bytes) = (MOST_RECORDS, MOST_BYTES);
    for ring in &rings {
        let found = ring.take(records, bytes);
        records -= found.len();
        bytes = bytes.saturating_sub(found.iter().map(|record| record.data.len() + 16).sum());
        all.extend(found.into_iter().map(|record| (*ring, record)));
    }
    all.sort_by_key(|(_, record)| record.time);
    let stats = rings.iter().filter_map(|map| Some(maps::ring(map, &map.ring_stats()?)));
    Ok(json!({
        "fid": forwarder.fid().0,
        "records": all.iter().map(|(map, record)| one(map, record, shape.as_ref())).collect::<Vec<_>>(),
        "more": records == 0 || bytes == 0,
        "rings": stats.collect::<Vec<_>>(),
    }))
}

/// The first records of a ring, which stay there, and their size in bytes.
pub fn waiting(forwarder: &Forwarder, map: &Map, records: usize, bytes: usize) -> (Value, usize) {
    let found = map.peek(records, bytes);
    let shown = json!({
        "fid": forwarder.fid().0,
        "map": map.spec().name,
        "records": found.iter().map(|record| one(map, record, None)).collect::<Vec<_>>(),
    });
    (shown, found.iter().map(|record| record.data.len()).sum())
}

fn one(map: &Map, record: &Record, shape: Option<&Shape>) -> Value {
    let mut shown = json!({ "map": map.spec().name, "time_ns": record.time, "data": digits(&record.data) });
    if let Some(worker) = record.worker {
        shown["worker"] = worker.into();
    }
    if let Some(shape) = shape {
        shown["fields"] = fields::shown(shape, &record.data);
    }
    shown
}
