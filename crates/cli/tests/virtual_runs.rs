//! `longwire run --virtual`: exact times, captures, sources, and refusals.

mod support;

use support::{Folder, Frame, frame, json, longwire, pcap, read_pcap, repository, row, stderr, stdout};

/// Two captures joined by a link without loss.
const TWO_PORTS: &str = r#"
[[port]]
name = "a"
driver = "pcap"

[[port]]
name = "b"
driver = "pcap"

[[link]]
name = "up"
between = ["a", "b"]
rate = "3 Mbit/s"
delay = "300 ms"
mtu = 1500
"#;

const BEGIN: u64 = 1_700_000_000_123_456_789;

fn frames(times: &[u64]) -> Vec<Frame> {
    let each = times.iter().zip(1u8..);
    each.map(|(&time, mark)| Frame { time: BEGIN + time, wire_len: 1000, bytes: frame(1, 2, 1000, mark) })
        .collect()
}

/// Examples with programs of the machine, and the reason why they are refused on the virtual clock.
const REAL_ONLY: [(&str, &str); 3] = [
    ("control-halves.toml", "has a control plane"),
    ("control-plane.toml", "has a control plane"),
    ("levels.toml", "is a control process"),
];

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

#[test]
fn every_example_runs() {
    let mut refused = 0;
    let paths = std::fs::read_dir(repository("scenarios")).unwrap().map(|entry| entry.unwrap().path());
    for path in paths.filter(|path| path.is_file()) {
        let scenario = path.to_str().unwrap();
        let check = longwire(&["check", scenario, "--json"]);
        assert!(matches!(check.status.code(), Some(0 | 1)), "{}", stderr(&check));
        let ran = longwire(&["run", scenario, "--virtual", "--for", "1s", "--json"]);
        if let Some((_, why)) = REAL_ONLY.iter().find(|(name, _)| path.ends_with(name)) {
            assert!(
                ran.status.code() == Some(2) && stderr(&ran).contains(why),
                "{scenario}: {}",
                stderr(&ran)
            );
            refused += 1;
            continue;
        }
        let report = json(&ran, 0);
        assert_eq!(report["mode"], "virtual", "{scenario}");
        assert_eq!(report["fidelity"]["faithful"], true);
        assert_eq!(row(&report, "packets accounted for")["pass"], true);
        let text = longwire(&["run", scenario, "--virtual", "--for", "1s"]);
        assert!(stdout(&text).contains("all accounted for"), "{}", stdout(&text));
    }
    assert_eq!(refused, REAL_ONLY.len());
}

#[test]
fn a_capture_comes_instead_of_a_ports_traffic_source() {
    let folder = Folder::new("instead");
    let input = format!("a={}", folder.write("in.pcap", pcap(&frames(&[0, 1, 2, 3]))));
    let scenario = repository("scenarios/two-hosts.toml");
    let ran = longwire(&["run", scenario.to_str().unwrap(), "--virtual", "--input", &input, "--json"]);
    assert_eq!(row(&json(&ran, 0), "link up.forward")["in_packets"], 4);
    assert!(stderr(&ran).contains("is silent: port a has an input"), "{}", stderr(&ran));
}

#[test]
fn a_capture_crosses_a_link_to_the_nanosecond() {
    let folder = Folder::new("exact");
    let scenario = folder.write("s.toml", TWO_PORTS);
    // Three that queue behind each other, one alone, two at the same time.
    let times = [0, 1_000_000, 2_000_000, 100_000_001, 200_000_000, 200_000_000];
    let input = folder.write("in.pcap", pcap(&frames(&times)));
    let given = format!("a={input}");
    let out = format!("b={}", folder.text("out.pcap"));
    let ran = longwire(&["run", &scenario, "--virtual", "--input", &given, "--output", &out, "--json"]);
    let report = json(&ran, 0);
    // 1000 bytes and 4 of the check sequence at 3 Mbit/s take 2 677 333 1/3 ns; the third is carried within a
    // busy period.
    let sent =
        |start: u64, nth: u64| BEGIN + start + nth * 1004 * 8 * 1_000_000_000 / 3_000_000 + 300_000_000;
    let expected = [
        sent(0, 1),
        sent(0, 2),
        sent(0, 3),
        sent(100_000_001, 1),
        sent(200_000_000, 1),
        sent(200_000_000, 2),
    ];
    let came: Vec<_> = read_pcap(&folder.path("out.pcap")).iter().map(|f| (f.time, f.bytes[999])).collect();
    let wanted: Vec<_> = expected.into_iter().zip(1..).collect();
    assert_eq!(came, wanted);
    let link = row(&report, "link up.forward");
    assert_eq!((&link["in_packets"], &link["out_packets"]), (&6.into(), &6.into()));
    assert_eq!(link["settings"]["rate"], "3 Mbit/s");
}

#[test]
fn all_inputs_count_from_the_earliest_first_frame() {
    let folder = Folder::new("epoch");
    let scenario = folder.write("s.toml", TWO_PORTS);
    let late = Frame { time: BEGIN + 5_000_000_000, wire_len: 100, bytes: frame(2, 1, 100, 1) };
    let a = format!("a={}", folder.write("a.pcap", pcap(&frames(&[0]))));
    let b = format!("b={}", folder.write("b.pcap", pcap(&[late])));
    let out = format!("a={}", folder.text("a-out.pcap"));
    let ran =
        longwire(&["run", &scenario, "--virtual", "--input", &a, "--input", &b, "--output", &out, "--json"]);
    json(&ran, 0);
    let came = read_pcap(&folder.path("a-out.pcap"));
    assert_eq!(came.len(), 1);
    assert_eq!(came[0].time, BEGIN + 5_000_000_000 + 104 * 8 * 1000 / 3 + 300_000_000);
}

#[test]
fn cut_and_oversized_frames_are_counted_and_named() {
    let folder = Folder::new("cut");
    let scenario = folder.write("s.toml", TWO_PORTS);
    let mut all = frames(&[0, 10_000_000, 20_000_000]);
    all[0].bytes.truncate(60);
    (all[1].wire_len, all[1].bytes) = (2000, frame(1, 2, 2000, 9));
    let input = format!("a={}", folder.write("in.pcap", pcap(&all)));
    let out = format!("b={}", folder.text("out.pcap"));
    let ran = longwire(&["run", &scenario, "--virtual", "--input", &input, "--output", &out, "--json"]);
    let report = json(&ran, 0);
    let notes = row(&report, "port a")["notes"].to_string();
    assert!(notes.contains("1 frames were cut short"), "{notes}");
    // A packet that is too long for a link is dropped there; no host has sent one that is too long for it.
    assert_eq!(row(&report, "link up.forward")["dropped"]["mtu"], 1);
    let hosts = repository("scenarios/two-hosts.toml");
    let ran = longwire(&["run", hosts.to_str().unwrap(), "--virtual", "--input", &input, "--json"]);
    let notes = row(&json(&ran, 0), "port a")["notes"].to_string();
    assert!(notes.contains("up to 2000 bytes"), "{notes}");
    let came = read_pcap(&folder.path("out.pcap"));
    // The truncated frame took the time of its whole length, and is written with it.
    assert_eq!((came[0].bytes.len(), came[0].wire_len), (60, 1000));
    assert_eq!(came[0].time, BEGIN + 1004 * 8 * 1000 / 3 + 300_000_000);
    assert_eq!(came.len(), 2);
}

#[test]
fn a_damaged_capture_gives_its_good_part_and_fails() {
    let folder = Folder::new("damaged");
    let scenario = folder.write("s.toml", TWO_PORTS);
    let mut bytes = pcap(&frames(&[0, 1_000_000]));
    bytes.truncate(bytes.len() - 10);
    let input = format!("a={}", folder.write("in.pcap", bytes));
    let report = json(&longwire(&["run", &scenario, "--virtual", "--input", &input, "--json"]), 1);
    assert_eq!(row(&report, "link up.forward")["out_packets"], 1);
    assert!(report["failures"].to_string().contains("damaged after 1 good frame"), "{}", report["failures"]);
}

#[test]
fn sources_are_measured_exactly() {
    let scenario = repository("scenarios/two-hosts.toml");
    let args = ["run", scenario.to_str().unwrap(), "--virtual", "--json"];
    let report = json(&longwire(&args), 0);
    let source = row(&report, "source a-b");
    // 5 Mbit/s for 10 s in frames of 1000 bytes; 20 ms, and 1004 bytes at 10 Mbit/s.
    assert_eq!(source["expected"], 6250);
    for point in ["delay_ns_min", "delay_ns_max"] {
        assert_eq!(source[point], 20_000_000 + 803_200, "{point}");
    }
    // 2 % of 6250 are 125, with a standard deviation of 11.
    let lost = source["lost"].as_u64().unwrap();
    assert!((70..=180).contains(&lost), "{lost}");
    assert_eq!(row(&report, "link up.forward")["dropped"]["loss"], lost);
    let again = json(&longwire(&args), 0);
    assert_eq!(report["rows"], again["rows"], "the same seed gives the same run");
}

/// 1000 packets of 1000 bytes in a second, all copied; packets cut off half-way are not delivered, however
/// fast the rest came.
#[test]
fn copies_wrong_bits_and_outages_of_a_source_show() {
    let folder = Folder::new("copies");
    let text = with_model(
        "rate = \"8 Mbit/s\"\npackets = 1000\n[[at]]\ntime = \"500500 us\"\nlink = \"l\"\nstate = \"down\"",
    );
    let copied = text.replace("delay = \"1 ms\"", "delay = \"1 ms\"\nloss = \"10 %\"\nduplicate = \"100 %\"");
    let source = |text: String| {
        let report = json(&longwire(&["run", &folder.write("s.toml", text), "--virtual", "--json"]), 0);
        let dropped = row(&report, "link l.forward")["dropped"].clone();
        (row(&report, "source s").clone(), dropped["loss"].as_u64().unwrap_or(0))
    };
    let (plain, _) = source(text.clone());
    assert_eq!((&plain["measured"], &plain["lost"], &plain["copies"]), (&501.into(), &499.into(), &0.into()));
    // 8 Mbit/s, of which 501 of 1000 packets arrive.
    assert_eq!(
        (&plain["offered_bit_per_s"], &plain["delivered_bit_per_s"]),
        (&8e6.into(), &4_008_000.0.into())
    );
    let (with_copies, lost) = source(copied);
    assert_eq!(with_copies["lost"], 499 + lost);
    assert_eq!(with_copies["copies"], with_copies["measured"]);
    // Bits flip in every packet: none can be identified.
    let corrupt = "delay = \"1 ms\"\nbit-error = { kind = \"per-packet\", probability = \"100 %\", headers = \
        \"spare\" }";
    let (wrong, _) = source(text.replace("delay = \"1 ms\"", corrupt));
    assert_eq!((&wrong["measured"], &wrong["lost"]), (&0.into(), &1000.into()));
    // Some flips hit the four bytes that identify the source.
    assert!(wrong["corrupt"].as_u64().unwrap() >= 490 && wrong["delay_ns_max"].is_null(), "{wrong}");
}

/// Two ports for sources, 1 ms apart, and a source of this model from one to the other.
fn with_model(model: &str) -> String {
    format!(
        "[[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n\
         [[port]]\nname = \"b\"\ndriver = \"source\"\naddresses = \"10.0.1.2\"\n\
         [[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\ndelay = \"1 ms\"\n\
         [[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\n{model}\n"
    )
}

#[test]
fn every_model_of_a_source_sends_its_packets() {
    let folder = Folder::new("models");
    let capture: Vec<_> = [(0, 60), (3_000_000, 1514), (10_000_000, 200)]
        .map(|(time, len)| Frame { time: BEGIN + time, wire_len: len as u32, bytes: frame(1, 2, len, 0) })
        .into();
    folder.write("in.pcap", pcap(&capture));
    // Packets of 1000 bytes in 100 s: their mean number, and five standard deviations.
    for (model, mean, most) in [
        // 100 a second.
        ("rate = \"800 kbit/s\"", 10_000, 0),
        ("poisson = true\nrate = \"800 kbit/s\"", 10_000, 500),
        ("model = \"poisson\"\ninterval = \"10 ms\"", 10_000, 500),
        // The index of dispersion is 1 + (σ²/λ)·2/θ = 17 for σ = 80, λ = 100 and θ = 8 a second: √(17·10⁴) is
        // 412.
        ("model = \"mmpp\"\nrates = \"160 kbit/s, 1.44 Mbit/s\"\ndwell = \"250 ms\"", 10_000, 5 * 412),
        // 200 a second while on; the time on in t has variance 2·a²b²/(a + b)³·t = 0.25 s².
        ("model = \"on-off\"\nrate = \"1600 kbit/s\"\non = \"10 ms\"\noff = \"10 ms\"", 10_000, 5 * 100),
        ("model = \"replay\"\nfile = \"in.pcap\"\nspeed = \"1/10\"", 3, 0),
    ] {
        let scenario = folder.write("s.toml", with_model(model) + "for = \"100 s\"");
        let args = ["run", &scenario, "--virtual", "--json"];
        let report = json(&longwire(&args), 0);
        let source = row(&report, "source s");
        let sent = source["expected"].as_u64().unwrap();
        assert!(sent.abs_diff(mean) <= most, "{model}: {sent}");
        for point in ["delay_ns_min", "delay_ns_max"] {
            assert_eq!(source[point], 1_000_000, "{model}");
        }
        assert_eq!(row(&json(&longwire(&args), 0), "source s"), source, "{model}");
    }
}

#[test]
fn a_replay_keeps_times_and_lengths() {
    let folder = Folder::new("replay");
    let list = "file = \"0 ms 100 B, 3 ms 1514 B, 10 ms 60 B\"";
    let scenario = folder.write("s.toml", with_model(&format!("model = \"replay\"\n{list}\nspeed = \"2\"")));
    let out = format!("b={}", folder.text("out.pcap"));
    json(&longwire(&["run", &scenario, "--virtual", "--for", "1s", "--output", &out, "--json"]), 0);
    let seen: Vec<_> =
        read_pcap(&folder.path("out.pcap")).iter().map(|frame| (frame.time, frame.wire_len)).collect();
    assert_eq!(seen, [(1_000_000, 100), (2_500_000, 1514), (6_000_000, 60)]);
}

#[test]
fn a_source_and_an_output_go_together() {
    let folder = Folder::new("both");
    let scenario = repository("scenarios/two-hosts.toml");
    let out = format!("b={}", folder.text("out.pcap"));
    let ran = longwire(&["run", scenario.to_str().unwrap(), "--virtual", "--output", &out, "--json"]);
    let report = json(&ran, 0);
    let written = read_pcap(&folder.path("out.pcap"));
    assert_eq!(row(&report, "source a-b")["measured"], written.len());
    assert!(written.windows(2).all(|pair| pair[0].time < pair[1].time));
}

#[test]
fn a_station_that_never_speaks_is_not_flooded() {
    let scenario = repository("scenarios/dumbbell.toml");
    let report = json(&longwire(&["run", scenario.to_str().unwrap(), "--virtual", "--json"]), 0);
    assert_eq!(report["flow"]["made"], 0);
    assert_eq!(row(&report, "link access-s1.backward")["in_packets"], 0);
}

#[test]
fn what_cant_be_run_is_refused_with_the_fix() {
    let folder = Folder::new("refused");
    let scenario = folder.write("s.toml", TWO_PORTS);
    let input = format!("a={}", folder.write("in.pcap", pcap(&frames(&[0]))));
    let text = folder.write("text.pcap", "not a capture");
    let endless = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
        address = \"10.0.0.2/24\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\ndelay = \"100 s\"\n\
        queue = \"unlimited\"\n[[source]]\nfrom = \"a\"\nto = \"b\"\nsize = \"1500 B\"\n\
        rate = \"1 Gbit/s\"\n";
    let small = folder.write("small.toml", format!("[engine]\npool = \"1 MiB\"\n{endless}"));
    let endless = folder.write("endless.toml", endless);
    let typo = folder.write("typo.toml", TWO_PORTS.replace("3 Mbit/s", "10 Mbitt"));
    let cases: [(&[&str], &[&str]); 9] = [
        (&[&scenario, "--input", "c=x.pcap"], &["no port \"c\"; it has a, b"]),
        (&[&scenario, "--input", "x.pcap"], &["PORT=FILE"]),
        (&[&scenario, "--input", "a=/nowhere.pcap"], &["/nowhere.pcap", "No such file"]),
        (&[&scenario, "--input", &format!("a={text}")], &["text.pcap", "no pcap or pcapng"]),
        (&[&scenario, "--input", &input, "--output", &input.replace("a=", "b=")], &["named twice"]),
        (&[&endless], &["never ends", "--for 10s"]),
        (&[&small, "--for", "1s"], &["packet pool was full", "engine.pool"]),
        (&[&endless, "--for", "18446744073709551615ns"], &["--for", "out of range", "100 years"]),
        (&[&typo], &["typo.toml:13:8", "\"10 Mbitt\"", "^^^^"]),
    ];
    for (args, wanted) in cases {
        let output = longwire(&[&["run", "--virtual"], args].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(wanted.iter().all(|part| said.contains(part)), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn a_handover_changes_links_at_its_times() {
    let path = repository("scenarios/handover.toml");
    let scenario = path.to_str().unwrap();
    let check = longwire(&["check", scenario]);
    let said = stdout(&check);
    assert!(said.contains("at 7.5 s  radio.forward, radio.backward: rate 0"), "{said}");
    let report = json(&longwire(&["run", scenario, "--virtual", "--for", "14s", "--json"]), 0);
    // 650 packets in 13 s; the ramp to 1 % lost a few, and there was no other loss.
    let voice = row(&report, "source voice");
    let lost = row(&report, "link radio.forward")["dropped"]["loss"].as_u64().unwrap();
    assert_eq!(voice["expected"].as_u64().unwrap(), 650);
    assert_eq!(voice["measured"].as_u64().unwrap(), 650 - lost);
    // Packets at the beginning of the 120 ms without a cell wait for the next one.
    assert!(voice["delay_ns_max"].as_u64().unwrap() > 100_000_000, "{voice}");
    // 25 ms before, 20 ms in the new cell, and 214 bytes at 50 Mbit/s.
    let least = voice["delay_ns_min"].as_u64().unwrap();
    assert!((20_000_000..20_100_000).contains(&least), "{least}");
    assert_eq!(row(&report, "link radio.forward")["settings"]["rate"], "50 Mbit/s");
    assert_eq!(row(&report, "link radio.forward")["settings"]["loss"], "0 %");
}

#[test]
fn a_source_changes_at_its_time() {
    let folder = Folder::new("changes");
    let scenario = folder.write(
        "s.toml",
        "[[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n[[port]]\nname = \"b\"\n\
         driver = \"source\"\naddresses = \"10.0.1.2\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n\
         delay = \"30 ms\"\n[[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\n\
         for = \"2 s\"\n\
         [[at]]\ntime = \"1 s\"\nsource = \"s\"\nrate = \"16 Mbit/s\"\n",
    );
    let check = stdout(&longwire(&["check", &scenario]));
    assert!(check.contains("at 1 s  s: model cbr, rate 16 Mbit/s"), "{check}");
    for workers in ["", "\n[engine]\nworkers = 2\n"] {
        let text = std::fs::read_to_string(&scenario).unwrap();
        let scenario = folder.write("w.toml", format!("{text}{workers}"));
        let report = json(&longwire(&["run", &scenario, "--virtual", "--json"]), 0);
        // A frame per millisecond at 0 to 1000 ms, then one every half: 1001 + 1999 before 2 s.
        assert_eq!(row(&report, "source s")["measured"], 3000);
        // However often workers hand them over.
        let accounted = row(&report, "packets accounted for");
        assert_eq!((&accounted["expected"], &accounted["measured"]), (&3000.into(), &3000.into()));
    }
}

#[test]
fn what_links_make_and_consume_is_accounted_for() {
    let folder = Folder::new("accounted");
    let source = |name: &str, how: &str| {
        format!("[[source]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\nfor = \"100 ms\"\n{how}\n")
    };
    let ports = "[[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n\
        [[port]]\nname = \"b\"\ndriver = \"source\"\naddresses = \"10.0.1.2\"\n";
    let links = "[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\n\
        filter = [\"steer sky if greater 500\"]\nduplicate = \"100 %\"\n\
        background = { kind = \"cbr\", rate = \"800 kbit/s\", size = \"1000 B\" }\n\
        [[link]]\nname = \"sky\"\nfrom = \"a\"\nto = \"b\"\n\
        bit-error = { kind = \"per-packet\", probability = \"100 %\" }\n";
    let small = source("small", "rate = \"160 kbit/s\"\nsize = \"200 B\"");
    let large = source("large", "rate = \"400 kbit/s\"\nsize = \"1000 B\"");
    let scenario = folder.write("s.toml", format!("{ports}{links}{small}{large}"));
    let args = ["run", &scenario, "--virtual", "--for", "999ms"];
    let report = json(&longwire(&[&args[..], &["--json"]].concat()), 0);
    // 10 small packets and as many copies; 5 large ones, steered past the copying. A background packet every
    // 10 ms, in unknown number.
    let up = row(&report, "link up");
    assert_eq!((&up["steered_packets"], &up["out_packets"]), (&5.into(), &20.into()));
    let sky = row(&report, "link sky");
    assert_eq!((&sky["corrupted_packets"], &sky["marked_packets"]), (&5.into(), &0.into()));
    let count = |name: &str| up[name].as_u64().unwrap();
    let (made, consumed, held) = (count("made_packets"), count("consumed_packets"), count("queued_packets"));
    assert!((9..=100).contains(&consumed) && made == 10 + consumed + held, "{up}");
    let accounted = row(&report, "packets accounted for");
    assert_eq!((&accounted["expected"], &accounted["pass"]), (&(15 + made).into(), &true.into()));
    assert_eq!(accounted["measured"], accounted["expected"]);
    let text = stdout(&longwire(&args));
    let line = format!(
        "packets: 15 in, 0 copied, {made} made by links; 25 out, {consumed} consumed by links, {held} held, \
         dropped: -; all accounted for"
    );
    assert!(text.contains(&line), "{text}");
}
