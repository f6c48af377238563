//! The report of a run about each program of its routers.

mod support;

use serde_json::{Value, json as value};
use std::process::Command;
use support::started::Started;
use support::{Folder, json, longwire, row, stderr, stdout};

/// Two routers, 10 ms apart. The first marks packets for b and drops all packets to a; the second counts the
/// bytes of flows.
const ROUTERS: &str = r#"
[[host]]
name = "a"
address = "10.0.1.9/24"

[[host]]
name = "b"
address = "10.0.2.9/24"

[[router]]
name = "west"
ports = [
    { port = "a", addresses = "10.0.1.1/24" },
    { port = "west-east", addresses = "10.9.0.1/30" },
]
routes = [{ to = "10.0.2.0/24", via = "10.9.0.2" }]

[[router]]
name = "east"
ports = [
    { port = "b", addresses = "10.0.2.1/24" },
    { port = "east-west", addresses = "10.9.0.2/30" },
]
routes = [{ to = "10.0.1.0/24", via = "10.9.0.1" }]

[[link]]
name = "line"
between = ["west-east", "east-west"]
rate = "20 Mbit/s"
delay = "10 ms"

# 46, to be written; how many were changed.
[[forwarder]]
router = "west"
program = "dscp-marker"
key = { destination = "10.0.2.9", protocol = "udp" }
data = "2e000000 01000000 0000000000000000"

# Sources send to port 9: a range of one port.
[[forwarder]]
router = "west"
program = "port-filter"
name = "closed"
key = { destination = "10.0.1.9" }
data = "01000900 00000000 00000000 00000000 00000000"

# Flows are noted from 5000 bytes on; seed; those that there was no room for.
[[forwarder]]
router = "east"
program = "heavy-hitters"
data = "8813000000000000 0700000000000000 0000000000000000"

[[source]]
name = "video"
from = "a"
to = "b"
size = "500 B"
interval = "1 ms"
packets = 100

[[source]]
name = "voice"
from = "a"
to = "b"
size = "200 B"
interval = "2 ms"
packets = 40

[[source]]
name = "back"
from = "b"
to = "a"
size = "300 B"
interval = "3 ms"
packets = 30
"#;

/// The rows of programs.
fn programs(report: &Value) -> Vec<&Value> {
    report["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "program").collect()
}

/// The requested fields of a row.
fn fields<const N: usize>(row: &Value, names: [&str; N]) -> [Value; N] {
    names.map(|name| row[name].clone())
}

const COUNTERS: [&str; 7] =
    ["packets", "passed", "transmitted", "redirected", "dropped", "aborted", "marked"];

/// An entry of `top`: a UDP flow between these last bytes of 10.0.x.9, from this port to 9, with its bytes
/// and its packets since it was noticed.
fn hitter(from: u8, to: u8, port: u16, bytes: u64, packets: u64) -> Value {
    let address = |net: u8| format!("00000000000000000000ffff0a00{net:02x}09");
    let little =
        |number: u64| number.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mapped = |net: u8| format!("::ffff:10.0.{net}.9");
    let key = value!({
        "source": mapped(from), "destination": mapped(to), "source_port": port, "destination_port": 9,
            "protocol": 17,
    });
    value!({
        "fields": { "key": key, "value": { "bytes": bytes, "packets": packets } },
        "key": format!("{}{}{port:04x}000911000000", address(from), address(to)),
        "value": little(bytes) + &little(packets),
    })
}

#[test]
fn each_program_has_a_row_with_its_state_and_maps() {
    let folder = Folder::new("program-rows");
    let scenario = folder.write("s.toml", ROUTERS);
    let report = json(&longwire(&["run", &scenario, "--virtual", "--json"]), 0);
    assert_eq!(programs(&report).len(), 3);

    // All packets from a to b: 100 and 40.
    let marker = row(&report, "program west 1 dscp-marker");
    assert_eq!(marker["measured"], 140);
    assert_eq!(fields(marker, COUNTERS), [140, 140, 0, 0, 0, 0, 0].map(Value::from));
    let of_marker = fields(marker, ["router", "fid", "program", "key", "where"]);
    let wanted = value!(["west", 1, "dscp-marker", "* > 10.0.2.9 udp", "data-path"]);
    assert_eq!(Value::from(of_marker.to_vec()), wanted);
    // Of 16 bytes the last eight count the changed packets: 140 is 0x8c.
    assert_eq!(fields(marker, ["state", "data"]), [value!(16), value!("2e000000010000008c00000000000000")]);
    assert_eq!(fields(marker, ["maps", "contents"]), [value!([]), value!([])]);

    // All packets in the other direction end here, by the first range.
    let closed = row(&report, "program west 2 closed");
    assert_eq!(fields(closed, COUNTERS), [30, 0, 0, 0, 30, 0, 0].map(Value::from));
    assert_eq!(closed["reasons"], value!({ "0": 30 }));
    assert_eq!(row(&report, "source back")["measured"], 0);

    // Both directions. A flow is noticed at the packet that reaches 5000 bytes: the 10th of 500, the 25th of
    // 200, the 17th of 300.
    let hitters = row(&report, "program east 1 heavy-hitters");
    assert_eq!(fields(hitters, COUNTERS), [170, 170, 0, 0, 0, 0, 0].map(Value::from));
    assert_eq!(hitters["data"], "881300000000000007000000000000000000000000000000");
    let described = hitters["maps"].as_array().unwrap().iter().find(|map| map["name"] == "top").unwrap();
    assert_eq!(fields(described, ["kind", "entries", "max-entries"]), [value!("hash"), 3.into(), 256.into()]);
    let top = hitters["contents"].as_array().unwrap().iter().find(|map| map["map"] == "top").unwrap();
    let flows =
        [hitter(1, 2, 49_152, 50_000, 91), hitter(1, 2, 49_153, 8000, 16), hitter(2, 1, 49_154, 9000, 14)];
    let wanted = value!({ "fid": 1, "map": "top", "entries": flows, "more": false, "left-out": 0 });
    assert_eq!(*top, wanted);

    let told = stdout(&longwire(&["run", &scenario, "--virtual"]));
    let line = told.lines().find(|line| line.starts_with("west 2 closed")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let [counters, key] = [["30", "0", "0", "0", "30", "0", "0"].as_slice(), &["*", ">", "10.0.1.9"]];
    assert_eq!(words[3..], [counters, key, &["program", "port-filter"]].concat(), "{told}");
}

#[test]
fn rows_of_programs_are_the_same_for_any_number_of_workers() {
    let folder = Folder::new("program-rows-workers");
    let ran = |workers: u32| {
        let text = format!("{ROUTERS}\n[engine]\nworkers = {workers}\n");
        json(&longwire(&["run", &folder.write("s.toml", text), "--virtual", "--json"]), 0)
    };
    let (one, two) = (ran(1), ran(2));
    assert_eq!(two["workers"].as_array().unwrap().len(), 2);
    assert_eq!(programs(&one).len(), 3);
    assert_eq!(programs(&one), programs(&two));
}

/// The routers with sources on their own ports, which need no privileges in real time either.
fn on_ports() -> String {
    let port = |text: String, name: &str, net: u8| {
        let host = format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.{net}.9/24\"");
        assert!(text.contains(&host));
        let port = format!("[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"10.0.{net}.9\"");
        text.replace(&host, &port)
    };
    port(port(ROUTERS.into(), "a", 1), "b", 2)
}

/// A command whose runs use their own folder.
fn in_folder(folder: &Folder, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.env("LONGWIRE_RUN_DIR", folder.path("run")).args(args);
    command
}

#[test]
fn a_run_in_real_time_ends_with_the_same_rows() {
    let folder = Folder::new("program-rows-real");
    let scenario = folder.write("s.toml", on_ports());
    let virtually = json(&longwire(&["run", &scenario, "--virtual", "--json"]), 0);
    let args = ["run", &scenario, "--name", "rows", "--for", "3s", "--quiet", "--json"];
    let report = json(&in_folder(&folder, &args).output().unwrap(), 0);
    // Program times are measured, but not in virtual time.
    let without_cost = |report: &Value| -> Vec<Value> {
        let rows = programs(report).into_iter().map(|row| {
            let mut row = serde_json::to_value(row).unwrap();
            assert!(row.as_object_mut().unwrap().remove("cost").is_some());
            row
        });
        rows.collect()
    };
    assert_eq!(without_cost(&report), without_cost(&virtually));
    assert!(programs(&virtually).iter().all(|row| row["cost"]["samples"] == 0));
}

#[test]
fn what_is_installed_at_the_end_has_rows() {
    let folder = Folder::new("program-rows-live");
    let scenario = folder.write("s.toml", on_ports());
    let mut command = in_folder(&folder, &["run", &scenario, "--name", "rows", "--json"]);
    let (run, _) = Started::ready(&mut command, "running as");
    let done = |args: &[&str]| {
        let output = in_folder(&folder, args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        output
    };
    done(&["forwarder", "remove", "west", "1"]);
    done(&["forwarder", "install", "west", "syn-targets", "--instance", "rows"]);
    let names = |report: &Value| {
        let names = programs(report).into_iter().map(|row| row["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let wanted = ["west 2 closed", "west 3 syn-targets", "east 1 heavy-hitters"];
    let stats = json(&done(&["ctl", "stats", "--json"]), 0);
    assert_eq!(names(&stats), wanted);
    assert!(programs(&stats).iter().all(|row| row["data"].is_null() && row["contents"].is_null()));
    done(&["ctl", "stop"]);
    let ended = run.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let report: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(names(&report), wanted);
    let targets = row(&report, "program west 3 syn-targets");
    let empty = value!([{ "fid": 3, "map": "targets", "entries": [], "more": false, "left-out": 0 }]);
    assert_eq!(fields(targets, ["data", "contents"]), [value!(""), empty]);
}
