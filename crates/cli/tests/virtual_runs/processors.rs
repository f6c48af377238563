//! Flows that share a router's processors: what is refused, and what is reported.

use super::support::{Folder, json, longwire, repository, row, stdout};

#[test]
fn why_packets_were_refused_is_reported() {
    // For flows that share processors, four limits; each is counted, and printed if it is not 0.
    let text = std::fs::read_to_string(repository("scenarios/fair-router.toml")).unwrap();
    let folder = Folder::new("refused");
    let line = "scheduler = \"gmr3\"";
    let more = |key: &str| text.replace(line, &format!("{line}\n{key}"));
    let flows = more("flow-table = 3").replace("name = \"cheap\"", "name = \"cheap{n}\"\ncount = 6");
    let sentences = [
        (
            "input_full",
            "because the ring before the scheduler was full (rings.input); they are no flow's above",
        ),
        ("queue_full", "because their flow had as many waiting as it may (flow-limit)"),
        (
            "table_full",
            "because the flow table was full of busy flows (flow-table); they are no flow's above",
        ),
        ("no_room", "because their flow had its share of the room for packets (packets)"),
    ];
    for (scenario, limits) in [
        (text.clone(), &["queue_full"][..]),
        (flows, &["queue_full", "table_full"]),
        (more("packets = 64"), &["no_room"]),
        (more("rings = { input = 1, step = \"300 ns\" }"), &["input_full", "queue_full"]),
    ] {
        let path = folder.write("router.toml", scenario);
        let args = ["run", &*path, "--virtual", "--for", "1s"];
        let report = json(&longwire(&[&args[..], &["--json"]].concat()), 0);
        let told = stdout(&longwire(&args));
        let processors = &row(&report, "router r1")["processors"];
        for (limit, sentence) in sentences {
            let count = processors[limit].as_u64().unwrap();
            assert_eq!(count > 0, limits.contains(&limit), "{limit}: {count}");
            // Thousands are set apart.
            let told = told.lines().find_map(|line| line.strip_suffix(&format!(" refused {sentence}")));
            let told = told.map(|count| count.replace('\u{a0}', ""));
            assert_eq!(told, (count > 0).then(|| count.to_string()), "{limit}");
        }
        // Packets that the scheduler never saw belong to no flow, but to the router.
        let count = |name: &str| processors[name].as_u64().unwrap();
        let at_scheduler = ["queue_full", "table_full", "no_room"].map(count).iter().sum::<u64>();
        assert_eq!(processors["all"]["refused"].as_u64(), Some(at_scheduler));
        let dropped = row(&report, "router r1")["dropped"].as_u64().unwrap();
        assert_eq!(dropped, at_scheduler + count("input_full"));
    }
}

#[test]
fn one_queue_for_all_is_first_come_first_served() {
    let text = std::fs::read_to_string(repository("scenarios/fair-router.toml")).unwrap();
    // At random times: with regular times the more frequent flow is always just in time.
    let text = text.replace("interval = ", "model = \"poisson\"\ninterval = ");
    let folder = Folder::new("first-come");
    let run = |keys: &str| {
        let keys = format!("scheduler = \"fifo\"\npackets = 512\n{keys}");
        let path = folder.write("router.toml", text.replace("scheduler = \"gmr3\"", &keys));
        let args = ["run", &*path, "--virtual", "--for", "1s"];
        let report = json(&longwire(&[&args[..], &["--json"]].concat()), 0);
        (row(&report, "router r1")["processors"].clone(), stdout(&longwire(&args)))
    };
    let (processors, told) = run("");
    assert_eq!(
        (processors["queue_full"].as_u64(), processors["no_room"].as_u64() > Some(0)),
        (Some(0), true)
    );
    assert!(told.contains(" refused because there was no room left for packets (packets)"), "{told}");
    // Of about 16 667 packets of the cheap flow and 5000 of the expensive one the same share is delivered.
    let [heavy, cheap] = [0, 1].map(|flow| {
        let count = |name: &str| processors["flows"][flow][name].as_u64().unwrap() as f64;
        count("out_packets") / (count("out_packets") + count("refused"))
    });
    assert!((heavy / cheap - 1.0).abs() < 0.1, "{heavy} {cheap}");
    // The explicit setting applies too.
    let (processors, _) = run("flow-limit = 9");
    assert!(processors["queue_full"].as_u64() > Some(0), "{processors}");
}

#[test]
fn flows_that_made_room_for_others_are_mentioned() {
    // One flow is named on each of two ports, so that one place is left for six flows that come one after the
    // other.
    let text = std::fs::read_to_string(repository("scenarios/fair-router.toml")).unwrap();
    let text = text
        .replace("scheduler = \"gmr3\"", "scheduler = \"gmr3\"\nflow-table = 3")
        .replace("name = \"cheap\"", "name = \"cheap{n}\"\ncount = 6\nstart = \"{n}0 ms\"")
        .replace("for = \"10 ms\"", "for = \"5 ms\"");
    let folder = Folder::new("room");
    let path = folder.write("router.toml", text);
    let args = ["run", &*path, "--virtual", "--for", "1s"];
    let processors =
        row(&json(&longwire(&[&args[..], &["--json"]].concat()), 0), "router r1")["processors"].clone();
    assert_eq!((processors["recycled"].as_u64(), processors["table_full"].as_u64()), (Some(5), Some(0)));
    let told = stdout(&longwire(&args));
    assert!(told.contains("5 idle flows made room for others (flow-table)"), "{told}");
}

#[test]
fn how_many_flows_there_are_is_reported() {
    let text = std::fs::read_to_string(repository("scenarios/fair-router.toml")).unwrap();
    let text = text
        .replace("name = \"cheap\"", "name = \"cheap{n}\"\ncount = 70")
        .replace("interval = \"600 ns\"", "interval = \"100 us\"");
    let folder = Folder::new("many");
    let path = folder.write("router.toml", text);
    let args = ["run", &*path, "--virtual", "--for", "1s"];
    let report = json(&longwire(&[&args[..], &["--json"]].concat()), 0);
    let processors = &row(&report, "router r1")["processors"];
    // One is named; of the others 64 are listed.
    assert_eq!(processors["flows"].as_array().unwrap().len(), 65, "{processors:#}");
    assert_eq!((&processors["flows_known"], &processors["flows_left_out"]), (&71.into(), &6.into()));
    let told = stdout(&longwire(&args));
    assert!(told.contains("(24 of 71 flows; --json has 65)"), "{told}");
}
