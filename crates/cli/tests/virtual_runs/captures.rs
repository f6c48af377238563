//! Captures at ports: exact times, and frames that are cut or too long.

use super::support::{Folder, Frame, frame, json, longwire, pcap, read_pcap, repository, row, stderr};
use super::{BEGIN, TWO_PORTS, frames};

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
fn a_capture_on_a_full_disk_fails_once_and_changes_nothing_else() {
    if !std::path::Path::new("/dev/full").exists() {
        return println!("skipped: this system has no /dev/full");
    }
    let hosts = repository("scenarios/two-hosts.toml");
    let run = |more: &[&str]| {
        let of_all = ["run", hosts.to_str().unwrap(), "--virtual", "--for", "1s", "--json"];
        longwire(&[&of_all[..], more].concat())
    };
    let (whole, report) = (json(&run(&[]), 0), json(&run(&["--output", "b=/dev/full"]), 1));
    let failures = report["failures"].as_array().unwrap();
    let wanted = "port b: the capture /dev/full is incomplete: No space left on device (os error 28)";
    assert!(failures.len() == 1 && failures[0] == wanted, "{failures:?}");
    assert_eq!(row(&report, "port b")["notes"], serde_json::Value::Null);
    for key in ["flow", "fidelity", "dropped"] {
        assert_eq!(report[key], whole[key], "{key}");
    }
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
