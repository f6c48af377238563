//! `longwire run --virtual`: exact times, captures, sources, and refusals.

#[path = "../support/mod.rs"]
mod support;

mod captures;
mod processors;
mod sources;

use support::{Folder, Frame, frame, json, longwire, pcap, repository, row, stderr, stdout};

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

/// Two ports for sources, a and b.
const SOURCE_PORTS: &str = "\
[[port]]
name = \"a\"
driver = \"source\"
addresses = \"10.0.1.1\"
[[port]]
name = \"b\"
driver = \"source\"
addresses = \"10.0.1.2\"
";

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
    let cases: [(&[&str], &[&str]); 10] = [
        (&[&scenario, "--input", "c=x.pcap"], &["no port \"c\"; it has a, b"]),
        (&[&scenario, "--input", "x.pcap"], &["PORT=FILE"]),
        (&[&scenario, "--input", "a=/nowhere.pcap"], &["/nowhere.pcap", "No such file"]),
        (&[&scenario, "--input", &format!("a={text}")], &["text.pcap", "no pcap or pcapng"]),
        (&[&scenario, "--input", &input, "--output", &input.replace("a=", "b=")], &["named twice"]),
        (&[&scenario, "--output", "b=/tmp/one.pcapng", "--log", "/tmp/../tmp/one.pcapng"], &["named twice"]),
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
fn what_links_make_and_consume_is_accounted_for() {
    let folder = Folder::new("accounted");
    let source = |name: &str, how: &str| {
        format!("[[source]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\nfor = \"100 ms\"\n{how}\n")
    };
    let links = "[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\n\
        filter = [\"steer sky if greater 500\"]\nduplicate = \"100 %\"\n\
        background = { kind = \"cbr\", rate = \"800 kbit/s\", size = \"1000 B\" }\n\
        [[link]]\nname = \"sky\"\nfrom = \"a\"\nto = \"b\"\n\
        bit-error = { kind = \"per-packet\", probability = \"100 %\" }\n";
    let small = source("small", "rate = \"160 kbit/s\"\nsize = \"200 B\"");
    let large = source("large", "rate = \"400 kbit/s\"\nsize = \"1000 B\"");
    let scenario = folder.write("s.toml", format!("{SOURCE_PORTS}{links}{small}{large}"));
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
