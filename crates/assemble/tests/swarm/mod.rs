//! Random scenarios with random traffic, in simulated time. The trace and all counters are the same for any
//! number of workers and both kinds of rings between them, no loss is uncounted, and nothing leaves before
//! its time.
//!
//! A failure names its seed; `LONGWIRE_SWARM_SEED=N cargo test -p longwire-assemble --test all swarm` runs
//! only that one.

pub(super) mod draw;
pub(super) mod routers;

use crate::support::{PacketView, source_ports};
use longwire_assemble::{TO_THE_END, build, port_workers};
use longwire_block::{Dice, Spec};
use longwire_engine::Report;
use longwire_scenario::{Plan, parse};
use longwire_units::Nanos;
use std::collections::HashSet;

/// Departures by port: time and hash of the bytes.
type Trace = Vec<Vec<(u64, u64)>>;

/// The port by which a packet left, when, and its bytes.
fn look(view: &PacketView<'_>) -> Option<(u16, u64, u64)> {
    if !view.left {
        return None;
    }
    assert!(view.time >= view.meta.arrival, "a packet left before it came");
    let hash = view.frame.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Some((view.meta.out_port, view.time, hash))
}

fn read(text: &str, workers: u32) -> Option<Plan> {
    // Three workers share their rings.
    let between = if workers == 3 { "shared" } else { "private" };
    let engine = format!("[engine]\nworkers = {workers}\nbetween-workers = \"{between}\"\npool = \"8 MiB\"");
    parse("swarm.toml", &format!("{text}\n{engine}\n")).ok()
}

/// The first scenario of a seed that is accepted: some changes are refused, of objects that are gone or still
/// changing.
fn drawn(seed: u64, draw: impl Fn(u64) -> String) -> String {
    let mut ways = (0..100).map(draw);
    ways.find(|text| read(text, 1).is_some()).unwrap_or_else(|| panic!("seed {seed}: all are refused"))
}

fn run(text: &str, workers: u32, until: Nanos) -> (Trace, Report) {
    let plan = read(text, workers).unwrap();
    let seen = crate::support::Trace::of(look);
    let report = build(&plan, source_ports(&plan), |_| seen.observer()).unwrap().setup.simulate(until);
    let mut trace = vec![Vec::new(); plan.ports.len()];
    seen.take().into_iter().for_each(|(port, time, hash)| trace[usize::from(port)].push((time, hash)));
    (trace, report)
}

/// The scenario with one worker, with two and with three, complete and truncated.
#[derive(Default)]
struct Seen {
    departures: usize,
    dropped: u64,
    steered: u64,
    background: u64,
    forwarded: u64,
    unresolved: u64,
    on_two: u64,
}

impl Seen {
    fn compare(&mut self, seed: u64, text: &str) {
        let cut = Nanos(1 + Dice::named(seed, "cut").below(60_000_000));
        let report = compare(&format!("seed {seed} until {cut}"), text, cut);
        self.background += report.links.iter().map(|link| link.stats.consumed_packets).sum::<u64>();
        let report = compare(&format!("seed {seed}"), text, TO_THE_END);
        self.forwarded += report.nodes.iter().map(|node| node.stats.forwarded).sum::<u64>();
        let why = report.nodes.iter().flat_map(|node| &node.stats.exceptions);
        self.unresolved +=
            why.filter(|(name, _)| *name == "unresolved").map(|(_, packets)| packets).sum::<u64>();
        let plan = read(text, 2).unwrap();
        let workers = port_workers(&plan);
        let of_routers = plan.routers.iter().map(|router| workers[usize::from(router.ports[0].place)]);
        self.on_two += u64::from(of_routers.collect::<HashSet<_>>().len() > 1);
        self.departures += report.flow.sent as usize;
        self.dropped += report.links.iter().map(|link| link.stats.dropped()).sum::<u64>();
        self.steered += report.links.iter().map(|link| link.stats.steered_packets).sum::<u64>();
    }
}

fn compare(what: &str, text: &str, until: Nanos) -> Report {
    let (one, report) = run(text, 1, until);
    assert!(report.errors.is_empty(), "{what}: {:?}\n{text}", report.errors);
    assert!(report.is_conserved(), "{what}: {report:?}\n{text}");
    for workers in [2, 3] {
        let (several, other) = run(text, workers, until);
        assert!(other.is_conserved(), "{what}, {workers} workers: {other:?}\n{text}");
        for (port, (a, b)) in one.iter().zip(&several).enumerate() {
            let differs = a.iter().zip(b).position(|(x, y)| x != y);
            assert!(
                a == b,
                "{what}, {workers} workers, port {port}: {} and {} departures, first difference {differs:?}\n\
                 {text}",
                a.len(),
                b.len()
            );
        }
        assert_eq!(report.nodes, other.nodes, "{what}, {workers} workers\n{text}");
        for (a, b) in report.links.iter().zip(&other.links) {
            let which = format!("{what}, {workers} workers, link {}\n{text}", a.place);
            assert_eq!(a.stats, b.stats, "{which}");
            assert_eq!(format!("{:?}", a.changed), format!("{:?}", b.changed), "{which}");
        }
        let flow = |report: &Report| {
            let flow = report.flow.clone();
            (flow.taken, flow.made, flow.consumed, flow.kept, flow.sent, flow.drops)
        };
        assert_eq!(flow(&report), flow(&other), "{what}, {workers} workers\n{text}");
    }
    report
}

/// The kind that the first link of a seed's scenario always has: each kind once, in some order, before the
/// first repeats.
fn kind_of(seed: u64) -> &'static Spec {
    let mut deck = draw::kinds();
    let mut dice = Dice::named(seed / deck.len() as u64, "deck");
    for left in (1..deck.len()).rev() {
        deck.swap(left, dice.below(left as u64 + 1) as usize);
    }
    deck[seed as usize % deck.len()]
}

/// The seeds of a test: `count` of them, or the single one to be repeated, without expectations about
/// coverage.
fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("LONGWIRE_SWARM_SEED") {
        Ok(seed) => vec![seed.parse().expect("LONGWIRE_SWARM_SEED is a whole number")],
        Err(_) => (0..count).collect(),
    }
}

#[test]
fn the_trace_does_not_depend_on_the_number_of_workers() {
    let seeds = seeds(120);
    let mut seen = Seen::default();
    let (mut of_sources, mut of_media) = (0, 0);
    for &seed in &seeds {
        let text = drawn(seed, |way| draw::scenario(seed, way, &draw::plain));
        let plan = read(&text, 1).unwrap();
        of_sources += plan.events.iter().filter(|event| !event.sources.is_empty()).count();
        of_media += plan.events.iter().filter(|event| !event.media.is_empty()).count();
        seen.compare(seed, &text);
    }
    if seeds.len() > 1 {
        assert!(of_sources > 50 && of_media > 10, "{of_sources} changes of sources, {of_media} of media");
        let Seen { departures, dropped, steered, .. } = seen;
        assert!(departures > 1000 && dropped > 100, "the swarm was idle: {departures} {dropped}");
        assert!(steered > 1000, "only {steered} packets were steered");
    }
}

#[test]
fn every_kind_of_block_gives_the_same_trace() {
    let seeds = seeds(150);
    let mut seen = Seen::default();
    let mut tried = HashSet::new();
    for &seed in &seeds {
        let first = kind_of(seed);
        let make =
            |dice: &mut Dice, number: usize, text: &mut String| draw::of_any_kind(dice, number, text, first);
        let text = drawn(seed, |way| draw::scenario(seed, way, &make));
        let plan = read(&text, 1).unwrap();
        let used = plan.links.iter().flat_map(|link| &plan.profiles[link.profile as usize].blocks);
        tried.extend(used.map(|(spec, _)| (spec.key, spec.kind)));
        seen.compare(seed, &text);
    }
    if seeds.len() > 1 {
        let Seen { departures, dropped, steered, background, .. } = seen;
        assert!(departures > 1000 && dropped > 100, "the swarm was idle: {departures} {dropped}");
        assert!(
            steered > 1000 && background > 1000,
            "{steered} were steered, {background} in the background"
        );
        let missing: Vec<_> =
            draw::kinds().into_iter().filter(|spec| !tried.contains(&(spec.key, spec.kind))).collect();
        assert!(missing.is_empty(), "kinds without a trial: {missing:?}");
    }
}

#[test]
fn changes_of_links_between_workers_come_in_their_place() {
    let seeds = seeds(60);
    let mut seen = Seen::default();
    for &seed in &seeds {
        seen.compare(seed, &drawn(seed, |way| draw::chain(seed, way)));
    }
    if seeds.len() > 1 {
        let Seen { departures, dropped, .. } = seen;
        assert!(departures > 10_000 && dropped > 1000, "the swarm was idle: {departures} {dropped}");
    }
}

#[test]
fn routers_decide_the_same_on_any_worker() {
    let seeds = seeds(80);
    let mut seen = Seen::default();
    for &seed in &seeds {
        seen.compare(seed, &drawn(seed, |way| routers::ring(seed, way)));
    }
    if seeds.len() > 1 {
        let Seen { departures, dropped, forwarded, unresolved, on_two, .. } = seen;
        assert!(departures > 5000 && dropped > 1000, "the swarm was idle: {departures} {dropped}");
        assert!(forwarded > 50_000 && unresolved > 100, "{forwarded} forwarded, {unresolved} unresolved");
        assert!(on_two > 20, "routers were on several workers {on_two} times");
    }
}

/// A packet and its copy leave at the same moment, and bits of each second one are flipped, so that their
/// order is visible.
#[test]
fn a_packet_and_its_copy_leave_in_their_order() {
    let text = "seed = 1\n[[bridge]]\nname = \"b\"\n\
        [[port]]\nname = \"p0\"\ndriver = \"source\"\nbridge = \"b\"\naddresses = \"10.0.0.1/32\"\n\
        [[port]]\nname = \"p1\"\ndriver = \"source\"\nbridge = \"b\"\naddresses = \"10.0.0.2/32\"\n\
        [[link]]\nname = \"l\"\nbetween = [\"p0\", \"p1\"]\nduplicate = \"100 %\"\n\
        bit-error = { kind = \"per-packet\", probability = \"50 %\", where = \"wire\" }\n\
        [[source]]\nfrom = \"p0\"\nto = \"p1\"\ninterval = \"1 ms\"\nsize = \"100 B\"\npackets = 50\n";
    let report = compare("copies", text, TO_THE_END);
    assert_eq!((report.flow.sent, report.links[0].stats.made_packets), (100, 50));
}
