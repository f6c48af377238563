//! The profile library: every profile measured in virtual time against its file, and scenarios that use
//! profiles as the book describes.

use crate::support::{PacketView, simulate, source_ports};
use longwire_assemble::TO_THE_END;
use longwire_engine::Report;
use longwire_scenario::library::{SHIPPED, ShippedProfile};
use longwire_scenario::{Plan, parse, plan_of};
use std::fmt::Write;
use std::path::Path;

/// A profile's values in its file for one direction.
struct Said {
    profile: &'static str,
    /// Bits per second, down and up.
    rates: [f64; 2],
    /// Bytes counted for an IP packet of 1500 bytes: with 8 of PPP; with Ethernet's header and FCS 1518, with
    /// preamble and gap 1538; with 4 for mahimahi; (1500 + 32 + 8) / 48 cells of 53 bytes.
    counted: u64,
    /// The mean delay in ns, down and up.
    delays: [u64; 2],
    /// The greatest standard deviation of the delay, in ns.
    jitter: f64,
    /// The share of packets lost, and the mean length of a burst.
    loss: (f64, f64),
}

const fn said(
    profile: &'static str,
    rates: [f64; 2],
    counted: u64,
    delays: [u64; 2],
    jitter: f64,
    loss: (f64, f64),
) -> Said {
    Said { profile, rates, counted, delays, jitter, loss }
}

const MS: u64 = 1_000_000;
const NONE: (f64, f64) = (0.0, 1.0);

const SAID: &[Said] = &[
    said("dial-up-28k", [28_800.0; 2], 1508, [60 * MS; 2], 0.0, NONE),
    said("dial-up-56k", [53_333.0, 33_600.0], 1508, [60 * MS; 2], 0.0, NONE),
    said("isdn", [64e3; 2], 1508, [10 * MS; 2], 0.0, NONE),
    said("t1", [1.536e6; 2], 1508, [3 * MS; 2], 0.0, NONE),
    said("adsl", [6.144e6, 640e3], 33 * 53, [10 * MS; 2], 0.0, NONE),
    said("vdsl", [50e6, 10e6], 1530, [6 * MS; 2], 0.0, NONE),
    said("cable", [100e6, 10e6], 1518, [5 * MS, 10 * MS], 3e6, NONE),
    said("fibre", [500e6; 2], 1518, [4 * MS; 2], 0.0, NONE),
    said("3g", [1.5e6, 0.5e6], 1504, [60 * MS; 2], 15e6, NONE),
    said("lte", [13e6, 6e6], 1504, [30 * MS; 2], 5e6, NONE),
    said("5g", [200e6, 30e6], 1504, [12 * MS; 2], 2e6, NONE),
    said("leo", [87.25e6, 13.54e6], 1518, [25 * MS; 2], 5e6, (0.005, 10.0)),
    said("geo", [18.75e6, 2.96e6], 1518, [314 * MS; 2], 10e6, NONE),
    said("wifi-lossy", [20e6; 2], 1518, [3 * MS; 2], 1.5e6, (0.02, 3.0)),
    said("ethernet-10", [10e6; 2], 1538, [570; 2], 0.0, NONE),
    said("transatlantic", [10e9; 2], 1538, [35 * MS; 2], 0.0, NONE),
    said("data-centre", [10e9; 2], 1538, [10_000; 2], 0.0, NONE),
];

/// Transit and departure times of packets in one direction over a link between a and b that is made of
/// `link`.
fn run(link: &str, back: bool, source: &str) -> (Vec<(u64, u64)>, Report) {
    let (from, to) = if back { ("b", "a") } else { ("a", "b") };
    let mut text = String::new();
    for (name, address) in [("a", "10.0.0.1"), ("b", "10.0.0.2")] {
        writeln!(text, "[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"{address}\"")
            .unwrap();
    }
    writeln!(text, "[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n{link}").unwrap();
    writeln!(text, "[[source]]\nfrom = \"{from}\"\nto = \"{to}\"\n{source}").unwrap();
    text += "[engine]\npool = \"32 MiB\"\n";
    let plan = plan_of(&text);
    let look = |view: &PacketView<'_>| view.left.then(|| (view.time - view.meta.arrival, view.time));
    simulate(&plan, source_ports(&plan), TO_THE_END, look)
}

#[test]
fn every_profile_is_held_against_what_it_says() {
    let names = |list: &[&'static str]| list.to_vec();
    let shipped: Vec<_> = SHIPPED.iter().map(|shipped| shipped.name).collect();
    assert_eq!(names(&shipped), SAID.iter().map(|said| said.profile).collect::<Vec<_>>());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut listed: Vec<_> = shipped.iter().map(|name| format!("{name}.toml")).collect();
    listed.sort();
    assert_eq!(files, listed);
    for shipped in SHIPPED {
        let about = shipped.description().unwrap_or_else(|error| panic!("{error}"));
        assert!(shipped.text.starts_with("# ") && !about.summary.is_empty() && !about.source.is_empty());
    }
}

/// Twice the capacity is sent, so that the transmitter is never idle: packets that leave by T are those that
/// fit into T, except for one unfinished packet. Variable rates are measured over their whole minute, with
/// packets of 9000 bytes, and their mean is that of the file within 1 % (see `shipped.rs`).
#[test]
fn rates_are_as_declared() {
    for said in SAID {
        for (back, rate) in [false, true].into_iter().zip(said.rates) {
            let changes = said.counted == 1504 || said.profile == "leo";
            let more = if changes { 7500 } else { 0 };
            let counted = (said.counted + more) as f64;
            let seconds = if changes { 60.0 } else { 400.0 * 8.0 * counted / rate };
            let link = format!("profile = \"{}\"\ndelay = \"0 ms\"\nloss = \"0 %\"", said.profile);
            let (size, sent, time) = (1514 + more, (2.2 * rate) as u64, (seconds * 1e9) as u64);
            let source = format!("size = \"{size} B\"\nrate = \"{sent} bit/s\"\nfor = \"{time} ns\"");
            let (trace, _) = run(&link, back, &source);
            let left = trace.iter().filter(|(_, leave)| *leave <= time).count() as f64;
            let measured = left * counted * 8.0 / seconds;
            let most = if changes { 0.012 } else { 1.5 / 400.0 };
            assert!((measured / rate - 1.0).abs() < most, "{}, back {back}: {measured} bit/s", said.profile);
        }
    }
}

/// Without a rate a packet takes exactly its delay. The mean of 4000 has a standard error of jitter/√4000;
/// four of them are allowed.
#[test]
fn delays_are_as_declared() {
    for said in SAID {
        for (back, delay) in [false, true].into_iter().zip(said.delays) {
            let link = format!("profile = \"{}\"\nrate = \"unlimited\"\nloss = \"0 %\"", said.profile);
            let (trace, _) = run(&link, back, "size = \"200 B\"\ninterval = \"50 ms\"\npackets = 4000");
            let mean = trace.iter().map(|(took, _)| *took as f64).sum::<f64>() / trace.len() as f64;
            assert_eq!(trace.len(), 4000);
            let most = 4.0 * said.jitter / 4000f64.sqrt();
            assert!((mean - delay as f64).abs() <= most, "{}, back {back}: {mean} ns", said.profile);
        }
    }
}

/// A share of p in bursts of b: p31 = 1/b, a correlation of ρ = 1 − 1/b − p/(1 − p)/b, and a standard
/// deviation of √(p(1 − p)(1 + ρ)/(1 − ρ)/n).
#[test]
fn losses_are_as_declared() {
    for said in SAID {
        let (share, burst) = said.loss;
        let packets = if share > 0.0 { 200_000 } else { 2000 };
        let link = format!("profile = \"{}\"\nrate = \"unlimited\"\ndelay = \"0 ms\"", said.profile);
        let source = format!("size = \"200 B\"\ninterval = \"1 ms\"\npackets = {packets}");
        let (trace, report) = run(&link, false, &source);
        let lost = report.links[0].stats.dropped();
        assert_eq!(lost + trace.len() as u64, packets);
        let correlation = 1.0 - 1.0 / burst - share / (1.0 - share) / burst;
        let deviation =
            (share * (1.0 - share) * (1.0 + correlation) / (1.0 - correlation) / packets as f64).sqrt();
        let measured = lost as f64 / packets as f64;
        assert!((measured - share).abs() <= 4.0 * deviation, "{}: {measured}", said.profile);
    }
}

/// The plan of a link between a and b, with this text.
fn plan(link: &str) -> Result<Plan, String> {
    let text = format!(
        "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
         address = \"10.0.0.2/24\"\n[[link]]\n{link}\n"
    );
    parse("profiles.toml", &text).map_err(|error| error.to_string())
}

/// The first parameter of each block of a link: `rate 10 Mbit/s`.
fn blocks(plan: &Plan, link: usize) -> Vec<String> {
    let blocks = plan.profile(link).blocks.iter();
    let first = |values: &longwire_block::Values, spec: &longwire_block::Spec| {
        values.at(0).print(spec.params[0].kind)
    };
    let mut all: Vec<_> =
        blocks.map(|(spec, values)| format!("{} {}", spec.key, first(values, spec))).collect();
    all.sort();
    all
}

#[test]
fn own_keys_go_before_the_profile() {
    let link = "between = [\"a\", \"b\"]\nprofile = \"vdsl\"\ndelay = \"1 ms\"\n\
        forward = { profile = \"t1\", loss = \"1 %\" }\n\
        backward = { rate = { rate = \"2 Mbit/s\", overhead = 3 } }";
    let plan = plan(link).unwrap();
    assert_eq!(blocks(&plan, 0), ["delay 1 ms", "loss 1 %", "queue 40 packets", "rate 1.536 Mbit/s"]);
    assert_eq!(blocks(&plan, 1), ["delay 1 ms", "queue 100 ms", "rate 2 Mbit/s"]);
    let rate = plan.profile(1).blocks.iter().find(|(spec, _)| spec.key == "rate").unwrap();
    assert_eq!(
        rate.1.at(2),
        longwire_block::Value::Integer(3),
        "the profile's overhead of 12 is replaced, too"
    );
}

#[test]
fn a_simplex_link_names_its_direction() {
    for (name, rate) in
        [("adsl", "6.144 Mbit/s"), ("adsl.forward", "6.144 Mbit/s"), ("adsl.backward", "640 kbit/s")]
    {
        let plan = plan(&format!("from = \"a\"\nto = \"b\"\nprofile = \"{name}\"")).unwrap();
        assert!(blocks(&plan, 0).contains(&format!("rate {rate}")), "{name}");
    }
}

#[test]
fn mistakes_name_the_place_and_the_fix() {
    let error = plan("between = [\"a\", \"b\"]\nprofile = \"let\"").unwrap_err();
    assert!(
        error.contains("profiles.toml:9:11: link \"a-b\", profile: there is no profile \"let\""),
        "{error}"
    );
    assert!(error.contains("did you mean \"lte\"? There are dial-up-28k, "), "{error}");
    let error = plan("between = [\"a\", \"b\"]\nforward = { profile = \"zzzzzz\" }").unwrap_err();
    assert!(error.contains("there are dial-up-28k, ") && error.contains("my.toml"), "{error}");
    let error = plan("between = [\"a\", \"b\"]\nprofile = \"none.toml\"").unwrap_err();
    assert!(error.contains("\"none.toml\" can't be read"), "{error}");
}

#[test]
fn a_file_can_be_a_profile() {
    let folder = std::env::temp_dir().join(format!("longwire-profiles-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("mine.toml").display().to_string();
    let with = |text: &str| {
        std::fs::write(&file, text).unwrap();
        plan(&format!("between = [\"a\", \"b\"]\nprofile = \"{file}\""))
    };
    let plan = with("delay = \"7 ms\"\n[backward]\nrate = \"1 Mbit/s\"\n").unwrap();
    assert_eq!(
        (blocks(&plan, 0), blocks(&plan, 1)),
        (vec!["delay 7 ms".into()], vec!["delay 7 ms".into(), "rate 1 Mbit/s".into()])
    );
    for (text, wanted) in [
        ("dealy = \"7 ms\"\n", "mine.toml:1:1: profile: there is no key \"dealy\""),
        ("[forward]\nhistogram = true\n", "there is no key \"histogram\""),
        ("delay = \"7 ms\n", "not TOML"),
        ("forward = 3\n", "mine.toml:1:11: forward"),
        ("delay = \"7 parsecs\"\n", "link \"a-b\", delay"),
    ] {
        let error = with(text).unwrap_err();
        assert!(error.contains(wanted), "{text}: {error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(ShippedProfile::named("lte").is_some() && ShippedProfile::named("mine").is_none());
}
