//! Programs on packets of real hosts.

use crate::ProgramLab;
use crate::maps::{entries_name_programs, maps_say_what_is_wrong, state_is_written_and_shown_by_its_fields};
use crate::support::{longwire, repository, row, stderr, stdout};
use serde_json::Value;

#[test]
fn programs_act_on_real_traffic() {
    let Some(lab) = ProgramLab::new("programs", "scenarios/programs.toml") else { return };
    let ping = lab.bash("a", "ping -c 3 -i 0.2 -W 2 10.0.2.9");
    assert!(ping.status.success(), "{}", stdout(&ping));
    // Two connections that pass and are refused by the host; one that is dropped silently on the way.
    for _ in 0..2 {
        assert!(!lab.bash("a", "echo > /dev/tcp/10.0.2.9/80").status.success());
    }
    assert!(!lab.bash("a", "timeout 0.5 bash -c 'echo > /dev/tcp/10.0.2.9/23'").status.success());
    assert_eq!(&lab.forwarder(&["get", "r1", "1"])[..8], "03000000", "three SYNs");
    let state: Value = serde_json::from_str(&lab.forwarder(&["get", "r1", "1", "--json"])).unwrap();
    let state = &state["rows"][0];
    assert_eq!(state["data"].as_str().map(|data| &data[..8]), Some("03000000"), "{state}");
    assert_eq!(lab.counted(1, "dropped"), 1);
    for _ in 0..4 {
        assert!(
            lab.bash("a", "echo > /dev/udp/10.0.2.9/5001; echo > /dev/udp/10.0.2.9/5002").status.success()
        );
    }
    assert_eq!(lab.counted(2, "packets"), 4, "only what goes to its port");
    assert_eq!(&lab.forwarder(&["get", "r1", "3"])[16..18], "04", "all of them changed");

    // Telnet passes again, and then nothing at all.
    lab.forwarder(&["remove", "r1", "2"]);
    assert!(!lab.bash("a", "timeout 5 bash -c 'echo > /dev/tcp/10.0.2.9/23'").status.success());
    assert_eq!(&lab.forwarder(&["get", "r1", "1"])[..8], "04000000");
    let all = lab.forwarder(&[
        "install",
        "r1",
        "port-filter",
        "--data",
        "ffff0000 00000000 00000000 00000000 00000000",
    ]);
    assert_eq!(all, "4");
    assert!(!lab.bash("a", "timeout 0.5 bash -c 'echo > /dev/tcp/10.0.2.9/80'").status.success());
    assert!(lab.counted(2, "dropped") >= 1);
    lab.forwarder(&["set", "r1", "4", "00000000 00000000 00000000 00000000 00000000"]);
    let refused = lab.bash("a", "timeout 5 bash -c 'echo > /dev/tcp/10.0.2.9/80'");
    assert!(stderr(&refused).contains("refused"), "{}", stderr(&refused));
    assert!(lab.bash("a", "ping -c 1 -W 2 10.0.2.9").status.success());

    // Of two networks, a is in the second.
    let counts = ["10.0.1.0/29", "10.0.0.0/8"]
        .map(|from| lab.forwarder(&["install", "r1", "syn-monitor", "--source", from]));
    assert!(!lab.bash("a", "echo > /dev/tcp/10.0.2.9/80").status.success());
    let counted = counts.each_ref().map(|fid| lab.forwarder(&["get", "r1", fid])[..8].to_owned());
    assert_eq!(counted, ["00000000", "01000000"]);
    a_program_takes_the_place_of_another(&lab, &counts[1]);
}

fn a_program_takes_the_place_of_another(lab: &ProgramLab, fid: &str) {
    let asked = |args: &[&str]| -> Value { serde_json::from_str(&lab.forwarder(args)).unwrap() };
    let kept = asked(&["replace", "r1", fid, "syn-monitor", "--json"])["rows"][0].clone();
    assert_eq!((&kept["state"], kept["fid"].to_string()), (&"kept".into(), fid.to_owned()), "{kept:#}");
    // Verified and compiled beside the router, which waited for the exchange only.
    assert!(kept["prepare_ns"].as_u64() > kept["pause_ns"].as_u64(), "{kept:#}");
    assert!(!lab.bash("a", "echo > /dev/tcp/10.0.2.9/80").status.success());
    assert_eq!(&lab.forwarder(&["get", "r1", fid])[..8], "02000000", "it went on counting");
    // Its key is kept, and a program with other maps reports so.
    let other = lab.forwarder(&["replace", "r1", fid, "performance-monitor"]);
    assert!(other.contains("maps new: ") && !other.contains("maps kept"), "{other}");
    let again = asked(&["replace", "r1", fid, "performance-monitor", "--json"])["rows"][0].clone();
    assert_eq!(again["maps"]["new"], serde_json::json!([]), "{again:#}");
    assert!(again["maps"]["kept"].as_array().is_some_and(|maps| !maps.is_empty()), "{again:#}");
    let listed = asked(&["list", "r1", "--json"]);
    let number: u64 = fid.parse().unwrap();
    let one = listed["rows"].as_array().unwrap().iter().find(|one| one["fid"] == number).unwrap();
    assert_eq!((&one["key"], &one["called"]), (&"10.0.0.0/8 > *".into(), &"syn-monitor".into()), "{one:#}");
    assert_eq!(one["program"], "performance-monitor", "the name is kept, and what it runs is said");
    let line = lab.forwarder(&["list", "r1"]);
    assert!(line.contains("syn-monitor  10.0.0.0/8 > *  program performance-monitor"), "{line}");
    assert!(one["cost"]["worst_case_ns"].as_f64() > Some(0.0), "{one:#}");
    let refused = lab.refused(&["replace", "r1", "99", "syn-monitor"]);
    assert!(refused.contains("no program 99"), "{refused}");
    let installed = asked(&["install", "r1", "syn-monitor", "--json"])["rows"][0].clone();
    assert!(installed["prepare_ns"].as_u64() > Some(0) && installed["pause_ns"].is_u64(), "{installed:#}");
}

#[test]
fn programs_act_on_real_traffic_on_processors_that_are_threads() {
    let text = std::fs::read_to_string(repository("scenarios/programs.toml")).unwrap();
    let line = "line-rate = \"100 Mbit/s\"";
    assert!(text.contains(line));
    let shared = format!("{line}\nscheduler = \"gmr3\"\nprocessors = 2\nrings = {{ requests = 4 }}");
    let Some(lab) = ProgramLab::of("threads", &text.replace(line, &shared)) else { return };
    let ping = lab.bash("a", "ping -c 3 -i 0.2 -W 10 10.0.2.9");
    assert!(ping.status.success(), "{}", stdout(&ping));
    assert!(!lab.bash("a", "echo > /dev/tcp/10.0.2.9/80").status.success());
    assert!(!lab.bash("a", "timeout 0.5 bash -c 'echo > /dev/tcp/10.0.2.9/23'").status.success());
    lab.until_counted(1, "dropped", 1);
    assert_eq!(&lab.forwarder(&["get", "r1", "1"])[..8], "02000000", "two SYNs");
    for _ in 0..4 {
        assert!(
            lab.bash("a", "echo > /dev/udp/10.0.2.9/5001; echo > /dev/udp/10.0.2.9/5002").status.success()
        );
    }
    lab.until_counted(2, "packets", 4);

    // Under load, programs are installed and removed, and a state is written.
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| lab.bash("a", "ping -f -q -s 1000 -c 2000 -w 100 10.0.2.9"));
        while !flood.is_finished() {
            let fid = lab.forwarder(&["install", "r1", "ack-monitor"]);
            lab.forwarder(&["set", "r1", "1", "00000000"]);
            lab.forwarder(&["remove", "r1", &fid]);
        }
        let flooded = flood.join().unwrap();
        assert!(flooded.status.success(), "{}", stdout(&flooded));
    });
    assert_eq!(&lab.forwarder(&["get", "r1", "1"])[..8], "00000000");
    let stats = lab.stats();
    let router = row(&stats, "router r1");
    let processors = &router["processors"];
    assert_eq!((&processors["processors"], &processors["measured"]), (&2.into(), &true.into()), "{router:#}");
    assert!(processors["all"]["out_packets"].as_u64() >= Some(4000), "{router:#}");
    assert!(processors["all"]["processor_ns"].as_u64() > Some(0), "{router:#}");
    assert_eq!(
        (&router["pass"], &row(&stats, "packets accounted for")["pass"]),
        (&true.into(), &true.into())
    );
}

/// A router with its own worker, and two links that it can send packets into.
const CHOOSING: &str = r#"
[engine]
workers = 3

[[host]]
name = "a"
address = "10.0.1.9/24"

[[host]]
name = "b"
address = "10.0.2.9/24"

[[router]]
name = "r1"
ports = [
    { port = "a", addresses = "10.0.1.1/24" },
    { port = "east", addresses = "10.0.2.1/24" },
]

[[link]]
name = "cable"
between = ["east", "b"]
rate = "200 Mbit/s"
delay = "5 ms"

[[link]]
name = "satellite"
from = "east"
to = "b"
rate = "50 Mbit/s"
delay = "40 ms"
only = "programs"
"#;

#[test]
fn links_are_chosen_while_real_traffic_passes() {
    let Some(lab) = ProgramLab::of("chosen", CHOOSING) else { return };
    let pinged = |count: &str| {
        let ping = lab.bash("a", &format!("ping -q -c {count} -i 0.05 -W 10 10.0.2.9"));
        assert!(ping.status.success(), "{}", stdout(&ping));
    };
    pinged("3");
    assert_eq!(lab.entered("cable.forward", 3, ["satellite"]), [0]);
    // Over one link, the first that is named.
    let over_one = "01000000 00000000 0000000000000000";
    let install = |link: &str, data: &str| {
        lab.forwarder(&["install", "r1", "balancer", "--link", link, "--data", data])
    };
    let fid = install("satellite", over_one);
    pinged("3");
    let [over_satellite, over_cable] = lab.entered("satellite", 3, ["satellite", "cable.forward"]);
    assert_eq!(over_satellite, 3);
    lab.forwarder(&["remove", "r1", &fid]);
    pinged("3");
    let again = lab.entered("cable.forward", over_cable + 3, ["satellite"]);
    assert_eq!(again, [3], "the usual link is taken again");

    // Programs are installed and removed while packets are in flight over both.
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| lab.bash("a", "ping -q -s 1000 -c 200 -i 0.002 -W 20 10.0.2.9"));
        while !flood.is_finished() {
            let fid = install("satellite", over_one);
            lab.forwarder(&["remove", "r1", &fid]);
        }
        let flooded = flood.join().unwrap();
        assert!(stdout(&flooded).contains(" 0% packet loss"), "{}", stdout(&flooded));
    });
    // All came back.
    lab.entered("cable.backward", 209, []);
    let stats = lab.stats();
    for name in ["router r1", "packets accounted for"] {
        assert_eq!(row(&stats, name)["pass"], true, "{stats:#}");
    }

    let none = lab.refused(&["install", "r1", "balancer", "--link", "nolink"]);
    assert!(none.contains("there are cable.forward, satellite"), "{none}");
    let elsewhere = lab.refused(&["install", "r1", "balancer", "--link", "cable.backward"]);
    assert!(elsewhere.contains("no link \"cable.backward\" that programs may name begins"), "{elsewhere}");
    what_is_installed_is_listed(&lab);
    maps_say_what_is_wrong(&lab);
    constants_are_set_and_listed(&lab);
    state_is_written_and_shown_by_its_fields(&lab);
    entries_name_programs(&lab);
}

fn what_is_installed_is_listed(lab: &ProgramLab) {
    let args =
        ["install", "r1", "syn-monitor", "--port", "east", "--via", "10.0.2.9", "--queue", "0", "--lease"];
    let done = longwire(&[&["forwarder"], &args[..], &["600 s", "--instance", &lab.name]].concat());
    assert!(stderr(&done).contains("has more than one queue"), "{}", stderr(&done));
    let fid: u64 = stdout(&done).trim().parse().unwrap();
    let listed: Value = serde_json::from_str(&lab.forwarder(&["list", "r1", "--json"])).unwrap();
    let one = listed["rows"].as_array().unwrap().iter().find(|one| one["fid"] == fid).unwrap();
    assert_eq!((&one["port"], &one["via"]), (&"east".into(), &"10.0.2.9".into()), "{one:#}");
    assert_eq!((&one["queue"], &one["lease_ns"]), (&0.into(), &600_000_000_000_u64.into()), "{one:#}");
    assert!(one["lease_left_ns"].as_u64() <= Some(600_000_000_000), "{one:#}");
    let text = lab.forwarder(&["list", "r1"]);
    assert!(text.contains("out of east  via 10.0.2.9  queue 0  lease of 600 s, "), "{text}");
    for name in ["", "a\nb", "\u{1b}[2J", &"x".repeat(65)] {
        let refused = lab.refused(&["install", "r1", "syn-monitor", "--name", name]);
        assert!(refused.contains("can't be a name"), "{refused}");
    }
    let near = lab.refused(&["install", "r1", "syn_montor"]);
    assert!(near.contains("did you mean \"syn-monitor\"?"), "{near}");
}

fn constants_are_set_and_listed(lab: &ProgramLab) {
    let object = repository("crates/program/tests/objects/constants.o").display().to_string();
    let with = |constant| ["install", "r1", &object, "--function", "counted", "--constant", constant];
    let fid = &*lab.forwarder(&with("chosen=2"));
    assert_eq!(&lab.forwarder(&["map", "r1", fid, ".rodata", "00000000", "--hex"])[..8], "02000000");
    // Lists show installation parameters, for arrays all numbers.
    let several = &*lab.forwarder(&with("steps=7,-8,9"));
    let list: Value = serde_json::from_str(&lab.forwarder(&["list", "r1", "--json"])).unwrap();
    let of = |fid: &str| {
        let list = list["rows"].as_array().unwrap();
        list.iter().find(|one| one["fid"].as_u64() == fid.parse().ok()).unwrap()["constants"].clone()
    };
    assert_eq!(of(fid), serde_json::json!({ "before": -2, "beyond": 0, "chosen": 2, "steps": [1, -2, 3] }));
    assert_eq!(of(several)["steps"], serde_json::json!([7, -8, 9]));
    let text = lab.forwarder(&["list", "r1"]);
    assert!(text.contains("before=-2  beyond=0  chosen=5  steps=7,-8,9"), "{text}");
    let told = lab.refused(&with("steps=7,8"));
    assert!(told.contains("constant steps is 3 whole numbers, not 2"), "{told}");
    let told = lab.refused(&with("pair=7,8"));
    assert!(
        told.contains("a whole number or an array of up to 256); there are before, beyond, chosen, steps"),
        "{told}"
    );
    let told = lab.refused(&with("chosen=8"));
    assert!(told.contains("of a value of map .bss, which has 0 to 63"), "{told}");
}
