//! Traffic sources: their models, what is measured of them, and what changes them.

use super::support::{Folder, Frame, frame, json, longwire, pcap, read_pcap, repository, row, stdout};
use super::{BEGIN, SOURCE_PORTS};

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
        "{SOURCE_PORTS}[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\ndelay = \"1 ms\"\n\
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
fn a_source_changes_at_its_time() {
    let folder = Folder::new("changes");
    let text = with_model(
        "rate = \"8 Mbit/s\"\nfor = \"2 s\"\n[[at]]\ntime = \"1 s\"\nsource = \"s\"\nrate = \"16 Mbit/s\"",
    );
    let scenario = folder.write("s.toml", &text);
    let check = stdout(&longwire(&["check", &scenario]));
    assert!(check.contains("at 1 s  s: model cbr, rate 16 Mbit/s"), "{check}");
    for workers in ["", "\n[engine]\nworkers = 2\n"] {
        let scenario = folder.write("w.toml", format!("{text}{workers}"));
        let report = json(&longwire(&["run", &scenario, "--virtual", "--json"]), 0);
        // A frame per millisecond at 0 to 1000 ms, then one every half: 1001 + 1999 before 2 s.
        assert_eq!(row(&report, "source s")["measured"], 3000);
        // However often workers hand them over.
        let accounted = row(&report, "packets accounted for");
        assert_eq!((&accounted["expected"], &accounted["measured"]), (&3000.into(), &3000.into()));
    }
}
