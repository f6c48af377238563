//! The files under `scenarios/` are what their comments say.

use longwire_drivers::pcap::{self, Capture, Pcap};
use longwire_scenario::{End, Plan, Routing, load};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn example(name: &str) -> Plan {
    load(&folder().join(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// The names of the links from one host or port to another.
fn way<'p>(plan: &'p Plan, from: &str, to: &str) -> Vec<&'p str> {
    let place = |name: &str| plan.ports.iter().position(|port| &*port.name == name).unwrap() as u16;
    let links = plan.pair_route(place(from), place(to)).unwrap();
    links.iter().map(|link| &*plan.links[*link as usize].name).collect()
}

#[test]
fn all_have_plans_without_notes() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let plan = load(&path).unwrap_or_else(|error| panic!("{error}"));
            assert!(plan.notes.is_empty(), "{}", plan.notes[0]);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("# "), "{} says what it is", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen}");
}

#[test]
fn two_hosts() {
    let plan = example("two-hosts.toml");
    assert_eq!(way(&plan, "a", "b"), ["up.forward"]);
    assert_eq!(way(&plan, "b", "a"), ["up.backward"]);
    // Both directions share one profile. Both families have their rules.
    assert_eq!((plan.profiles.len(), plan.address_rules.len()), (1, 4));
    assert_eq!(plan.profiles[0].delays.least, Nanos::from_millis(20));
    let source = &plan.sources[0];
    assert_eq!((source.size(), source.rate()), (1000, Some(Rate(5_000_000))));
    assert_eq!((source.source.to_string(), source.duration), ("10.0.0.1".into(), Some(Nanos::from_secs(10))));
}

#[test]
fn dumbbell() {
    let plan = example("dumbbell.toml");
    assert_eq!(way(&plan, "s1", "r2"), ["access-s1.forward", "bottleneck.forward", "access-r2.backward"]);
    assert_eq!(way(&plan, "r3", "r1"), ["access-r3.forward", "access-r1.backward"]);
    assert_eq!((plan.segments.len(), plan.segments[0].ports.len()), (1, 6));
    assert_eq!((plan.pair_rules.len(), plan.links.len(), plan.profiles.len()), (30, 14, 2));
    assert_eq!(plan.sources.len(), 3);
}

#[test]
fn a_thousand_lines() {
    let plan = example("dsl-1000.toml");
    assert_eq!((plan.links.len(), plan.address_rules.len(), plan.profiles.len()), (2000, 2000, 2));
    let down = plan.address_rules.iter().find(|rule| rule.destination.to_string() == "10.0.3.232").unwrap();
    assert_eq!(down.source.to_string(), "198.51.100.1");
    let links: Vec<_> =
        plan.routes.links(&down.route).iter().map(|l| &*plan.links[*l as usize].name).collect();
    assert_eq!(links, ["dsl1000.backward"]);
    // Packets for which no line is chosen cross unimpaired.
    assert!(way(&plan, "server", "subscribers").is_empty());
    assert_eq!(plan.sources[999].start, Nanos::from_secs(1));
}

#[test]
fn several_hops() {
    let plan = example("multihop.toml");
    assert_eq!(plan.routing, Routing::ShortestDelay);
    assert_eq!(way(&plan, "a", "b"), ["wn.forward", "ne.forward"]);
    assert_eq!(way(&plan, "a", "d"), ["ws.forward", "se.forward"]);
    assert_eq!(way(&plan, "d", "a"), ["se.backward", "ws.backward"]);
    assert_eq!(way(&plan, "b", "a"), ["ne.backward", "wn.backward"]);
    assert!(way(&plan, "b", "d").is_empty());
}

#[test]
fn captures() {
    let plan = example("virtual-pcap.toml");
    let driven = plan.ports[0].attachment.driven().unwrap();
    let Pcap { input, output } = Pcap::of(&driven.values);
    assert_eq!((driven.driver, &*input, &*output), (&pcap::DRIVER, &Capture(None), &Capture(None)));
    assert_eq!((plan.links[0].from, plan.links[0].to), (End::Port(0), End::Port(1)));
    assert_eq!(way(&plan, "space", "ground"), ["downlink"]);
}
