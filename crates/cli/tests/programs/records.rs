//! Records that programs write to rings.

use crate::ProgramLab;
use crate::maps::entries_are_shown_and_written_by_fields;
use crate::support::guarded::Guarded;
use crate::support::repository;
use serde_json::Value;
use std::process::{Command, Stdio};

/// Waits for a line, and parses it as JSON.
pub fn next(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Value {
    serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
}

/// A lab, and an object whose programs write records.
struct Events {
    lab: ProgramLab,
    object: String,
}

impl Events {
    /// Installs one of its programs for UDP to a port.
    fn with(&self, function: &str, port: &str, more: &[&str]) -> String {
        let what = ["install", "r1", &self.object, "--function", function];
        let key = ["--destination-port", port, "--protocol", "udp"];
        self.lab.forwarder(&[&what[..], &key, more].concat())
    }

    fn send(&self, port: u16, times: u32) {
        let script = format!("for ((i = 0; i < {times}; i++)); do echo > /dev/udp/10.0.2.9/{port}; done");
        assert!(self.lab.bash("a", &script).status.success());
    }

    /// The records available now.
    fn asked(&self, args: &[&str]) -> Vec<Value> {
        let lines = self.lab.forwarder(&[&["events", "r1"], args, &["--once", "--json"]].concat());
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn records_of_programs_go_to_who_asks_for_them() {
    let Some(lab) = ProgramLab::new("events", "scenarios/programs.toml") else { return };
    let object = repository("crates/program/tests/objects/events.o").display().to_string();
    let events = Events { lab, object };
    let copied = records_come_by_their_fields(&events);
    records_without_room_are_lost(&events);

    // A program's two bytes, followed by the beginning of the packet.
    let sampled = events.with("sampled", "5005", &[]);
    events.lab.forwarder(&["map", "r1", &sampled, "kinds", "0", "OTHER"]);
    events.send(5005, 1);
    events.lab.until_counted(5, "packets", 1);
    let sample = &events.asked(&[&sampled, "samples"])[0];
    let data = sample["data"].as_str().unwrap();
    // 43 bytes of frame: Ethernet's 14, and 29.
    assert!(data.starts_with("2b00") && data.len() == 2 * (2 + 43) && data[28..32] == *"0800", "{sample:#}");
    assert_eq!(sample["worker"], 0, "{sample:#}");

    for (args, why) in [
        (&["1"][..], "the program has no ring"),
        (&[&copied, "last"], "last is not a ring but a hash: longwire forwarder map shows its entries"),
        (&[&copied, "none"], "the program has no map \"none\"; it has records, last, kinds, samples"),
        (&[&copied, "records", "--type", "happening"], "the object has no type \"happening\""),
    ] {
        let told = events.lab.refused(&[&["events", "r1"], args].concat());
        assert!(told.contains(why), "{args:?}: {told}");
    }
    let told = events.lab.refused(&["map", "r1", &copied, "records", "00"]);
    assert!(told.contains("records is a ring, which has no keys: longwire forwarder events"), "{told}");
    let told = events.lab.refused(&[
        "install",
        "r1",
        &repository("crates/program/tests/objects/forgetful.o").display().to_string(),
    ]);
    assert!(told.contains("ends here with a record of ring records"), "{told}");
}

/// Prints records as they arrive, by their fields; returns the program's number.
fn records_come_by_their_fields(events: &Events) -> String {
    let copied = events.with("copied", "5003", &[]);
    let mut reader = Command::new(env!("CARGO_BIN_EXE_longwire"));
    reader.args([
        "forwarder",
        "events",
        "r1",
        &copied,
        "records",
        "--type",
        "event",
        "--json",
        "--instance",
        &events.lab.name,
    ]);
    let mut reader = Guarded::killed(reader.stdout(Stdio::piped()).spawn().unwrap());
    events.send(5003, 1);
    let out = reader.stdout.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(out));
    let first = next(&mut lines);
    let fields = &first["fields"];
    assert_eq!((&first["event"], &first["map"]), (&"record".into(), &"records".into()), "{first:#}");
    let port = fields["ends"]["ports"][0].as_u64().unwrap();
    let ends = serde_json::json!({ "source": "10.0.1.9", "destination": "10.0.2.9", "ports": [port, 5003] });
    assert_eq!(
        (&fields["ends"], &fields["kind"], &fields["name"]),
        (&ends, &"DATAGRAM".into(), &"udp".into()),
        "{first:#}"
    );
    // 28 bytes of headers and a newline; a TTL of 64.
    assert_eq!([&fields["length"], &fields["ttl"], &fields["hops"]], [29, 0, 4], "{first:#}");
    events.send(5003, 2);
    let times = [
        first["time_ns"].as_u64(),
        next(&mut lines)["time_ns"].as_u64(),
        next(&mut lines)["time_ns"].as_u64(),
    ];
    assert!(times.is_sorted() && times[0] > Some(0), "{times:?}");
    drop(reader);
    entries_are_shown_and_written_by_fields(&events.lab, &copied, &ends);
    copied
}

fn records_without_room_are_lost(events: &Events) {
    // Each takes 36 bytes and 16 before, in words of 8: 73 fit 4096 bytes, and the others are lost.
    let reserved = events.with("reserved", "5004", &["--map", "records=4096"]);
    events.send(5004, 100);
    events.lab.until_counted(4, "packets", 100);
    assert_eq!(events.lab.counted(4, "dropped"), 27);
    let told = events.lab.forwarder(&["map", "r1", &reserved]);
    assert!(
        told.contains("records: ringbuf, 4088 of 4096 bytes wait, 0 records taken out, 27 lost"),
        "{told}"
    );
    let all = events.asked(&[&reserved, "records"]);
    let (lost, records) = all.split_last().unwrap();
    assert_eq!(*lost, serde_json::json!({ "event": "lost", "map": "records", "records": 27 }));
    assert!(
        records.len() == 73 && records.iter().all(|one| one["data"].as_str().unwrap().len() == 72),
        "{records:#?}"
    );
    events.send(5004, 1);
    events.lab.until_counted(4, "packets", 101);
    assert_eq!(events.asked(&[&reserved])[0]["fields"], Value::Null);
    let told = events.lab.forwarder(&["map", "r1", &reserved]);
    assert!(told.contains("records: ringbuf, 0 of 4096 bytes wait, 74 records taken out, 27 lost"), "{told}");
}
