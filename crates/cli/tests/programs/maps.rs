//! Maps and states, shown and written by fields.

use crate::ProgramLab;
use crate::support::{longwire, repository, stderr, stdout};
use serde_json::Value;

pub fn state_is_written_and_shown_by_its_fields(lab: &ProgramLab) {
    let fid = &*lab.forwarder(&["install", "r1", "balancer", "--link", "satellite"]);
    lab.forwarder(&["set", "r1", fid, "{\"links\": 1, \"spread\": 7}", "--type", "state"]);
    // An omitted field is 0.
    let fields = serde_json::json!({ "links": 1, "seed": 0, "spread": 7 });
    let shown = lab.forwarder(&["get", "r1", fid, "--type", "state"]);
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), fields);
    assert_eq!(lab.forwarder(&["get", "r1", fid]), "01000000000000000700000000000000");
    let answer: Value =
        serde_json::from_str(&lab.forwarder(&["get", "r1", fid, "--type", "state", "--json"])).unwrap();
    let answer = &answer["rows"][0];
    assert_eq!((&answer["fields"], &answer["data"]), (&fields, &"01000000000000000700000000000000".into()));
    for (args, why) in [
        (&["set", "r1", fid, "{\"link\": 1}", "--type", "state"][..], "there is no field \"link\""),
        (&["set", "r1", fid, "{\"links\": -1}", "--type", "state"], "links"),
        (&["get", "r1", fid, "--type", "stat"], "stat"),
    ] {
        let told = lab.refused(args);
        assert!(told.contains(why), "{args:?}: {told}");
    }
    // A refused write has changed nothing.
    assert_eq!(lab.forwarder(&["get", "r1", fid]), "01000000000000000700000000000000");
    lab.forwarder(&["remove", "r1", fid]);
}

pub fn entries_name_programs(lab: &ProgramLab) {
    let object = repository("crates/program/tests/objects/exits.o").display().to_string();
    let flow = ["--protocol", "udp", "--destination-port", "4000"];
    let exits = ["--exit", "stamp", "--exit", "refuse", "--map", "ports=1:stamp,0:"];
    let install = [&["install", "r1", &object, "--function", "redirect"], &exits[..], &flow[..]].concat();
    let fid = &*lab.forwarder(&install);
    let entry = |key: &str| lab.forwarder(&["map", "r1", fid, "ports", key, "--hex"]);
    assert_eq!([entry("00000000"), entry("01000000")], ["0100000001000000", "0000000000000000"]);
    lab.forwarder(&["map", "r1", fid, "ports", "01000000", "1:refuse"]);
    assert_eq!(entry("01000000"), "0100000002000000");
    lab.forwarder(&["map", "r1", fid, "ports", "00000000", "0:"]);
    assert_eq!(entry("00000000"), "0000000000000000");
    for (wrong, why) in [
        ("1:nothing", "map ports can't lead to program \"nothing\"; there are stamp, refuse"),
        ("1:let_pass", "map ports can't lead to program \"let_pass\""),
        ("1x:stamp", "\"1x\" is not a number"),
        ("one:stamp", "hexadecimal"),
    ] {
        let told = lab.refused(&["map", "r1", fid, "ports", "00000000", wrong]);
        assert!(told.contains(why), "{wrong}: {told}");
    }
    assert_eq!(entry("00000000"), "0000000000000000");
    lab.forwarder(&["remove", "r1", fid]);
}

pub fn maps_say_what_is_wrong(lab: &ProgramLab) {
    let fid = &*lab.forwarder(&["install", "r1", "performance-monitor"]);
    let maps: Value = serde_json::from_str(&lab.forwarder(&["map", "r1", fid, "--json"])).unwrap();
    assert!(maps["rows"].as_array().unwrap().iter().any(|map| map["name"] == "protocols"), "{maps:#}");
    let wrong = |args: &[&str]| lab.refused(&[&["map", "r1", fid], args].concat());
    for (args, why) in [
        (&["none"][..], "the program has no map \"none\"; it has "),
        (&["protocols", "six"], "\"six\" is not an integer from 0 to 4294967295"),
        (&["protocols", "00010000"], "it is number 256, and map protocols has 0 to 255"),
        (&["protocols", "06000000", "00"], "is not an object with packets, bytes"),
        (&["protocols", "6", "{\"packet\": 1}"], "there is no field \"packet\"; there are packets, bytes"),
        (&["protocols", "06000000", "--delete"], "protocols is an array, whose entries can't be removed"),
    ] {
        let told = wrong(args);
        assert!(told.contains(why), "{args:?}: {told}");
    }
    let object = repository("crates/program/tests/objects/constants.o");
    let object = object.display().to_string();
    let fid = &*lab.forwarder(&["install", "r1", &object, "--function", "counted"]);
    let told = lab.refused(&["map", "r1", fid, ".rodata", "00000000", "00000000000000"]);
    assert!(told.contains("holds constants"), "{told}");
    let told = lab.refused(&["map", "r1", fid, ".rodata", "--clear"]);
    assert!(told.contains("holds constants"), "{told}");
    for (args, why) in [
        (
            &[".bss", "0500"][..],
            "it is 2 bytes, and keys of map .bss are 4: the entry's number, lowest byte first",
        ),
        (&[".bss", "0000000000"], "it is 5 bytes, and keys of map .bss are 4"),
        (&[".bss", "01000000"], "it is number 1, and map .bss has 0 to 0"),
    ] {
        let told = lab.refused(&[&["map", "r1", fid], args].concat());
        assert!(told.contains(why), "{args:?}: {told}");
    }
    // Read by programs only, and written here.
    lab.forwarder(&["map", "r1", fid, "settings", "00000000", "07000000"]);
    assert_eq!(lab.forwarder(&["map", "r1", fid, "settings", "0"]), "7");
    lab.forwarder(&["map", "r1", fid, "settings", "--clear"]);
    assert_eq!(lab.forwarder(&["map", "r1", fid, "settings", "00000000", "--hex"]), "00000000");
    let told = lab.refused(&["install", "r1", &object, "--function", "set"]);
    assert!(told.contains("constants.o: program set, instruction "), "{told}");
}

pub fn entries_are_shown_and_written_by_fields(lab: &ProgramLab, fid: &str, ends: &Value) {
    let asked = |args: &[&str]| -> Value {
        serde_json::from_str(&lab.forwarder(&[&["map", "r1", fid], args, &["--json"]].concat())).unwrap()
    };
    let all = asked(&["last"]);
    let entries = all["rows"].as_array().unwrap();
    let shown = entries.iter().find(|entry| entry["fields"]["key"] == *ends).unwrap();
    assert_eq!(shown["fields"]["value"]["kind"], "DATAGRAM", "{shown:#}");
    assert_eq!(shown["key"].as_str().map(|key| &key[..16]), Some("0a0001090a000209"), "{shown:#}");
    let one = asked(&["last", &ends.to_string()])["rows"][0].clone();
    assert_eq!(one["fields"]["value"], shown["fields"]["value"], "{one:#}");
    let variables = asked(&[".bss"])["rows"][0]["fields"]["value"].clone();
    assert_eq!(
        (&variables["seen"], &variables["latest"]["destination"]),
        (&3.into(), &"10.0.2.9".into()),
        "{variables:#}"
    );

    let key = r#"{"source": "192.0.2.1", "ports": [7, 65535]}"#;
    let value = concat!(
        r#"{"kind": "OTHER", "length": 9, "ttl": 15, "fragment": true, "name": "new", "#,
        r#""station": "02:00:00:00:00:01"}"#
    );
    lab.forwarder(&["map", "r1", fid, "last", key, value]);
    let hex = lab.forwarder(&["map", "r1", fid, "last", key, "--hex"]);
    assert_eq!(hex, "0000000000000000000000000400000009000f016e657700000000000200000000010000");
    let text = lab.forwarder(&["map", "r1", fid, "last", key]);
    assert!(text.contains(r#""station":"020000000001""#) && text.contains(r#""bytes":"0000""#), "{text}");
    lab.forwarder(&["map", "r1", fid, "last", key, "--delete"]);
    assert!(lab.refused(&["map", "r1", fid, "last", key]).contains("map last has no such key"));

    lab.forwarder(&["map", "r1", fid, "kinds", "2", "DATAGRAM"]);
    lab.forwarder(&["map", "r1", fid, "kinds", "03000000", "7"]);
    assert_eq!(
        lab.forwarder(&["map", "r1", fid, "kinds"]),
        "0 \"NOTHING\"\n1 \"NOTHING\"\n2 \"DATAGRAM\"\n3 7"
    );
    for (args, why) in [
        (&["kinds", "4", "OTHER"][..], "it is number 4, and map kinds has 0 to 3"),
        (&["kinds", "0", "ELSE"], "\"ELSE\" is none of NOTHING, DATAGRAM, OTHER, nor a number of 4 bytes"),
        (
            &["last", "{\"sources\": 1}"],
            "there is no field \"sources\"; there are source, destination, ports",
        ),
        (&["last", "{\"ports\": [1, 65536]}"], "ports[1]: 65536 is not an integer from 0 to 65535"),
        (&["last", "{\"ports\""], "it is not JSON"),
    ] {
        let told = lab.refused(&[&["map", "r1", fid], args].concat());
        assert!(told.contains(why), "{args:?}: {told}");
    }

    // State has the type that the caller names.
    let object = repository("crates/program/tests/objects/longwire.o").display().to_string();
    let spread = lab.refused(&["install", "r1", &object]);
    assert!(spread.contains("chooses among 3 links"), "{spread}");
    let state = lab.forwarder(&["install", "r1", "syn-monitor", "--state", "24 B"]);
    lab.forwarder(&["set", "r1", &state, "{\"ingress_ifindex\": 7}", "--type", "xdp_md"]);
    let told = lab.refused(&["set", "r1", &state, "{}", "--type", "states"]);
    assert!(told.contains("the object has no type \"states\""), "{told}");
    let fields: Value =
        serde_json::from_str(&lab.forwarder(&["get", "r1", &state, "--type", "xdp_md"])).unwrap();
    assert_eq!((&fields["ingress_ifindex"], &fields["egress_ifindex"]), (&7.into(), &0.into()), "{fields}");
    lab.forwarder(&["remove", "r1", &state]);
}

#[test]
fn maps_have_as_many_entries_as_an_installation_says() {
    let Some(lab) = ProgramLab::new("entries", "scenarios/programs.toml") else { return };
    let object = repository("crates/program/tests/objects/unsized.o").display().to_string();
    let only = ["--destination-port", "5006", "--protocol", "udp"];
    let install = |maps: &[&str]| {
        let args =
            [&["forwarder", "install", "r1", &object][..], &only, maps, &["--instance", &lab.name]].concat();
        longwire(&args)
    };
    let none = install(&["--map", "counts=64"]);
    assert_eq!(none.status.code(), Some(2));
    let why =
        "map cpus has no max_entries: say how many entries it has when it is installed, --map cpus=ENTRIES";
    assert!(stderr(&none).contains(why), "{}", stderr(&none));
    for (map, why) in [
        ("cpu=2", "there is no map cpu whose number of entries can be set; there are counts, cpus, others"),
        ("cpus=many", "many"),
        ("cpus=134217729", "max_entries is 134217729"),
    ] {
        let refused = install(&["--map", "counts=64", "--map", map]);
        assert!(
            refused.status.code() == Some(2) && stderr(&refused).contains(why),
            "{map}: {}",
            stderr(&refused)
        );
    }
    let done = install(&["--map", "counts=64", "--map", "cpus=2"]);
    let note = "note: map cpus: a packet that is redirected to a processor stays on its own and passes";
    assert!(done.status.success() && stderr(&done).contains(note), "{}", stderr(&done));
    let fid = stdout(&done).trim().to_owned();
    let maps: Value = serde_json::from_str(&lab.forwarder(&["map", "r1", &fid, "--json"])).unwrap();
    let sizes: Vec<_> =
        maps["rows"].as_array().unwrap().iter().map(|map| (&map["name"], &map["max-entries"])).collect();
    let wanted: Vec<(Value, Value)> =
        vec![("counts".into(), 64.into()), ("cpus".into(), 2.into()), ("others".into(), 0.into())];
    assert_eq!(sizes, wanted.iter().map(|(name, size)| (name, size)).collect::<Vec<_>>(), "{maps:#}");

    // Without a processor in the map the packet is dropped; with one it passes, and is still counted here.
    let send = || assert!(lab.bash("a", "echo > /dev/udp/10.0.2.9/5006").status.success());
    send();
    lab.until_counted(3, "dropped", 1);
    for processor in ["00000000", "01000000"] {
        lab.forwarder(&["map", "r1", &fid, "cpus", processor, "0008000000000000"]);
    }
    send();
    lab.until_counted(3, "passed", 1);
    // It came in by a's port, the first.
    assert_eq!(lab.forwarder(&["map", "r1", &fid, "counts", "0"]), "2");
}
