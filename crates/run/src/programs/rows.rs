//! Programs of routers in the report of a run. A row has the same fields as `forwarder list`, `get` and
//! `map`.

use super::one;
use super::{events, maps};
use longwire_report::Row;
use longwire_router::{Forwarder, Forwarders};
use longwire_scenario::{Plan, Router, digits};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Most entries of a map in a row.
const MOST_ENTRIES: usize = 1000;
/// Most bytes of a map's keys and values in a row.
const MOST_BYTES: usize = 64 << 10;
/// Most bytes of keys and values in all rows of a run.
const MOST_IN_ALL: usize = 16 << 20;

/// The programs of each router, by place in the plan; none if it did not answer.
pub type InstalledPrograms = Vec<Option<Arc<Forwarders>>>;

/// A row with counters for each program.
pub fn counted(plan: &Plan, installed: &InstalledPrograms) -> Vec<Row> {
    each(plan, installed).map(|(router, forwarder)| row(router, forwarder)).collect()
}

/// A row with state and maps for each program, when it no longer runs and they are consistent.
pub fn whole(plan: &Plan, installed: &InstalledPrograms) -> Vec<Row> {
    let mut room = MOST_IN_ALL;
    each(plan, installed)
        .map(|(router, forwarder)| with_memory(row(router, forwarder), forwarder, &mut room))
        .collect()
}

/// In the order of routers, then of numbers.
fn each<'a>(
    plan: &'a Plan,
    installed: &'a InstalledPrograms,
) -> impl Iterator<Item = (&'a Router, &'a Arc<Forwarder>)> {
    let of_router = |(router, table): (&'a Router, &'a Option<Arc<Forwarders>>)| {
        table.iter().flat_map(|table| table.all()).map(move |forwarder| (router, forwarder))
    };
    plan.routers.iter().zip(installed).flat_map(of_router)
}

fn row(router: &Router, forwarder: &Forwarder) -> Row {
    let called = &forwarder.installation().name;
    let row = Row::new(format!("{} {} {called}", router.name, forwarder.fid().0), "packets")
        .measured(forwarder.stats().packets)
        .extra("kind", "program")
        .extra("router", &*router.name);
    let listed = one(router, forwarder);
    listed.as_object().into_iter().flatten().fold(row, |row, (field, value)| {
        // Rows have their own `name`.
        row.extra(if field == "name" { "called" } else { field.as_str() }, value.clone())
    })
}

/// Adds state and maps, with as many entries as `room` allows, which is reduced accordingly.
fn with_memory(row: Row, forwarder: &Forwarder, room: &mut usize) -> Row {
    let mut contents = Vec::new();
    for map in forwarder.maps().all() {
        let spec = map.spec();
        if spec.kind.is_ring() {
            let (shown, bytes) = events::waiting(forwarder, map, MOST_ENTRIES, MOST_BYTES.min(*room));
            *room = room.saturating_sub(bytes);
            contents.push(shown);
            continue;
        }
        let entry = spec.key_size as usize + spec.value_size as usize * map.copies() as usize;
        let most = MOST_ENTRIES.min(MOST_BYTES.min(*room) / entry);
        *room -= entry * most.min(map.len() as usize);
        contents.push(maps::contents(forwarder, map, most, true));
    }
    row.extra("data", digits(&forwarder.state().get()))
        .extra("maps", maps::all(forwarder))
        .extra("contents", contents)
}

/// The program, if its name is another; its constants, the exit of packets that it passes, and its lease, as
/// far as they are set.
pub fn rest(one: &Map<String, Value>) -> String {
    let field = |name: &str| one.get(name).unwrap_or(&Value::Null);
    let mut rest = String::new();
    let mut add = |part: String| rest += &format!("  {part}");
    let called = one.get("called").unwrap_or(field("name"));
    match field("program").as_str() {
        Some(program) if !program.is_empty() && called != program => add(format!("program {program}")),
        _ => {}
    }
    for (name, numbers) in field("constants").as_object().into_iter().flatten() {
        let numbers: Vec<String> = match numbers.as_array() {
            Some(several) => several.iter().map(Value::to_string).collect(),
            None => vec![numbers.to_string()],
        };
        add(format!("{name}={}", numbers.join(",")));
    }
    match field("where").as_str() {
        None | Some("data-path") => {}
        Some(level) => add(format!("up to {level}")),
    }
    for (name, before) in [("port", "out of"), ("via", "via")] {
        if let Some(text) = field(name).as_str() {
            add(format!("{before} {text}"));
        }
    }
    if let Some(queue) = field("queue").as_u64() {
        add(format!("queue {queue}"));
    }
    for what in ["exits", "links"] {
        let named = field(what).as_array().into_iter().flatten();
        let named: Vec<&str> = named.filter_map(Value::as_str).collect();
        if !named.is_empty() {
            add(format!("{what} {}", named.join(", ")));
        }
    }
    if let (Some(length), Some(left)) = (field("lease_ns").as_u64(), field("lease_left_ns").as_u64()) {
        let seconds = |nanos: u64| nanos.div_ceil(1_000_000_000);
        add(format!("lease of {} s, {} s left", seconds(length), seconds(left)));
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_program::{MapKind, MapSpec, Program, assemble};
    use longwire_router::{Installation, RouterPrices};
    use serde_json::json;

    /// A program with an array.
    fn with_array(max_entries: u32, value_size: u32) -> Forwarder {
        let spec = MapSpec::new("m", MapKind::Array, 4, value_size, max_entries);
        let program = Program::new("p", assemble("r0 = 2\n exit").unwrap(), [spec]);
        Forwarder::prepare(program, Installation::default(), &RouterPrices::default(), 1).unwrap()
    }

    /// The number of entries that a row has of such a map, the reported number of omitted ones, and the
    /// remaining room.
    fn shown(max_entries: u32, value_size: u32, mut room: usize) -> (usize, Value, usize) {
        let forwarder = with_array(max_entries, value_size);
        let row = with_memory(Row::new("r", ""), &forwarder, &mut room);
        let contents = &row.extra["contents"][0];
        assert_eq!(contents["more"], contents["left-out"] != json!(0));
        assert_eq!(row.extra["maps"][0]["entries"], max_entries);
        (contents["entries"].as_array().unwrap().len(), contents["left-out"].clone(), room)
    }

    #[test]
    fn what_there_is_no_room_for_is_left_out_and_counted() {
        let all = MOST_IN_ALL;
        assert_eq!(shown(1000, 4, all), (1000, json!(0), all - 8000));
        assert_eq!(shown(1500, 4, all), (1000, json!(500), all - 8000));
        // Of entries with 40 000 bytes and a key, one fits 65 536.
        assert_eq!(shown(3, 40_000, all), (1, json!(2), all - 40_004));
        assert_eq!(shown(2, 70_000, all), (0, json!(2), all));
        // Little room is left by earlier maps.
        assert_eq!(shown(10, 4, 17), (2, json!(8), 1));
    }

    #[test]
    fn what_is_said_of_an_installation_follows_its_name() {
        let one = json!({ "constants": { "limit": 3, "ports": [22, 80] }, "where": "control", "queue": 1,
            "links": ["l"] });
        assert_eq!(rest(one.as_object().unwrap()), "  limit=3  ports=22,80  up to control  queue 1  links l");
        assert_eq!(rest(json!({ "where": "data-path" }).as_object().unwrap()), "");
    }
}
