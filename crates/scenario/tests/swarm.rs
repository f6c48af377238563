//! Random scenarios with random traffic, in simulated time: the trace is the same for any number of workers, nothing
//! is lost uncounted, and nothing leaves before its time.
//!
//! A failure names its seed; `LONGWIRE_SWARM_SEED=N cargo test -p longwire-scenario --test swarm` runs only that one.
#![forbid(unsafe_code)]

use longwire_block::{Dice, ParamKind, Port, Spec, Values};
use longwire_engine::{Observer, Report};
use longwire_packet::Meta;
use longwire_port::driver::source::{Flow, SourcePort};
use longwire_scenario::{Plan, TO_THE_END, build, parse};
use longwire_units::Nanos;
use std::collections::HashMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// What left by each port: when, and which bytes.
type Trace = Vec<Vec<(u64, u64)>>;

struct Tracer(Arc<Mutex<Trace>>);

impl Observer for Tracer {
    fn arrived(&mut self, _: &Meta, _: &[u8]) {}

    fn departed(&mut self, meta: &Meta, frame: &[u8]) {
        assert!(meta.leave >= meta.arrival, "a packet left before it came");
        let hash = frame.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        self.0.lock().unwrap()[usize::from(meta.out_port)].push((meta.leave, hash));
    }
}

/// A random scenario: bridges in a ring or a line, ports on them, links that `link` describes between them, traffic at random.
fn scenario(seed: u64, link: fn(&mut Dice, &mut String)) -> String {
    let mut dice = Dice::named(seed, "swarm");
    let mut text = format!("seed = {seed}\nrouting = \"shortest-delay\"\n");
    let bridges = 1 + dice.below(4);
    let ports = 2 + dice.below(4);
    for bridge in 0..bridges {
        writeln!(text, "[[bridge]]\nname = \"b{bridge}\"").unwrap();
    }
    for port in 0..ports {
        let bridge = dice.below(bridges);
        writeln!(
            text,
            "[[port]]\nname = \"p{port}\"\ndriver = \"source\"\nbridge = \"b{bridge}\"\naddresses = [\"10.0.0.{}/32\"]",
            port + 1
        )
        .unwrap();
    }
    let edges = if bridges == 1 { 0 } else { bridges - 1 + dice.below(2) };
    for edge in 0..edges {
        let (from, to) = (edge % bridges, (edge + 1) % bridges);
        if from != to {
            writeln!(text, "[[link]]\nname = \"l{edge}\"\nbetween = [\"b{from}\", \"b{to}\"]").unwrap();
            link(&mut dice, &mut text);
        }
    }
    let mut links: Vec<String> = (0..edges).map(|edge| format!("l{edge}")).collect();
    if bridges == 1 {
        links = vec!["l".into()];
        writeln!(text, "[[link]]\nname = \"l\"\nbetween = [\"p0\", \"p1\"]").unwrap();
        link(&mut dice, &mut text);
    }
    links.retain(|link| text.contains(&format!("name = \"{link}\"")));
    changes(&mut Dice::named(seed, "changes"), &links, &mut text);
    for source in 0..1 + dice.below(5) {
        let from = dice.below(ports);
        let to = (from + 1 + dice.below(ports - 1)) % ports;
        let interval = 1 + dice.below(2_000_000);
        let (packets, size) = (1 + dice.below(400), 62 + dice.below(1440));
        let (start, poisson) = (dice.below(3) * 1000, dice.below(2) == 0);
        writeln!(
            text,
            "[[source]]\nname = \"s{source}\"\nfrom = \"p{from}\"\nto = \"p{to}\"\ninterval = \"{interval} ns\"\n\
             packets = {packets}\nsize = \"{size} B\"\nstart = \"{start} ns\"\npoisson = {poisson}"
        )
        .unwrap();
    }
    text
}

fn link(dice: &mut Dice, text: &mut String) {
    if dice.below(3) > 0 {
        let decades = dice.below(6) as u32;
        writeln!(text, "rate = \"{} bit/s\"", 300_000 + dice.below(10u64.pow(decades + 4))).unwrap();
    }
    match dice.below(3) {
        0 => {}
        1 => writeln!(text, "delay = \"{} us\"", dice.below(200)).unwrap(),
        _ => writeln!(text, "delay = \"{} ms\"", dice.below(30)).unwrap(),
    }
    if dice.below(2) == 0 {
        writeln!(text, "loss = \"{} %\"", dice.below(30)).unwrap();
    }
    if dice.below(2) == 0 {
        writeln!(text, "queue = \"{} packets\"", 1 + dice.below(30)).unwrap();
    }
}

/// Random changes of the links: steps, ramps, outages, repetitions.
fn changes(dice: &mut Dice, links: &[String], text: &mut String) {
    if links.is_empty() {
        return;
    }
    // A parameter has one ramp, or other changes: what cuts a ramp short is refused.
    let mut known = HashMap::new();
    for _ in 0..dice.below(7) {
        let link = &links[dice.below(links.len() as u64) as usize];
        let most = 10u64.pow(dice.below(6) as u32 + 4);
        let (key, value) = match dice.below(5) {
            0 => ("rate", format!("{} bit/s", 300_000 + dice.below(most))),
            1 => ("rate", if dice.below(2) == 0 { "0".into() } else { "unlimited".into() }),
            2 => ("delay", format!("{} us", dice.below(20_000))),
            3 => ("loss", format!("{} %", dice.below(40))),
            _ => ("queue", format!("{} packets", 1 + dice.below(30))),
        };
        let ramp = (key == "delay" || key == "loss") && dice.below(2) == 0;
        if known.insert((link, key), ramp).is_some_and(|before| before || ramp) {
            known.insert((link, key), true);
            continue;
        }
        let way = ["", ".forward", ".backward"][dice.below(3) as usize];
        // Changes at the very moment of an arrival are among them.
        let time = dice.below(20) * dice.below(3_000);
        writeln!(text, "[[at]]\ntime = \"{time} us\"\nlink = \"{link}{way}\"\n{key} = \"{value}\"").unwrap();
        match dice.below(4) {
            0 if ramp => writeln!(text, "ramp = \"{} us\"", 1 + dice.below(9000)).unwrap(),
            1 if !ramp => writeln!(text, "every = \"{} us\"", 1000 + dice.below(9000)).unwrap(),
            2 if !ramp => writeln!(text, "every = \"{} us\"\ntimes = 3", 1 + dice.below(9000)).unwrap(),
            _ => {}
        }
    }
}

/// The plan's sources at the ports by which their packets come in.
fn ports(plan: &Plan) -> Vec<Box<dyn Port>> {
    let flow = |(id, source): (usize, &longwire_scenario::Source)| Flow {
        name: source.name.to_string(),
        id: id as u16,
        destination_mac: plan.ports[usize::from(source.out_port)].mac.0,
        source_mac: plan.ports[usize::from(source.in_port)].mac.0,
        source: SocketAddr::new(source.source, 9),
        destination: SocketAddr::new(source.destination, 9),
        model: source.model(),
        start: source.start,
        until: Nanos::NEVER,
        count: source.count.unwrap_or(u64::MAX),
    };
    let open = |(place, port): (usize, &longwire_scenario::Port)| {
        let own = plan.sources.iter().enumerate().filter(|(_, s)| usize::from(s.in_port) == place);
        let flows: Vec<_> = own.map(flow).collect();
        let port = SourcePort::new(&port.name, &flows, plan.sources.len() as u16, plan.seed).unwrap();
        Box::new(port) as Box<dyn Port>
    };
    plan.ports.iter().enumerate().map(open).collect()
}

fn run(text: &str, workers: u32) -> (Trace, Report) {
    let text = format!("{text}\n[engine]\nworkers = {workers}\npool = \"8 MiB\"\n");
    let plan = parse("swarm.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let trace = Arc::new(Mutex::new(vec![Vec::new(); plan.ports.len()]));
    let observer = |_| Some(Box::new(Tracer(Arc::clone(&trace))) as Box<dyn Observer>);
    let built = build(&plan, ports(&plan), observer).unwrap();
    let report = built.setup.simulate(TO_THE_END);
    let trace = trace.lock().unwrap().clone();
    (trace, report)
}

/// The scenario with one worker, with two and with three: how many packets left, and how many were dropped.
fn compare(seed: u64, text: &str) -> (usize, u64) {
    let (one, report) = run(text, 1);
    assert!(report.errors.is_empty(), "seed {seed}: {:?}", report.errors);
    assert!(report.is_conserved(), "seed {seed}: {report:?}");
    for workers in [2, 3] {
        let (several, other) = run(text, workers);
        assert!(other.is_conserved(), "seed {seed}, {workers} workers: {other:?}");
        for (port, (a, b)) in one.iter().zip(&several).enumerate() {
            let differs = a.iter().zip(b).position(|(x, y)| x != y);
            assert!(
                a == b,
                "seed {seed}, {workers} workers, port {port}: {} and {} departures, first difference {differs:?}\n{text}",
                a.len(),
                b.len()
            );
        }
        let plan = parse("swarm.toml", text).unwrap();
        for (a, b) in report.links.iter().zip(&other.links) {
            let place = a.place;
            let with_background =
                plan.profile(place as usize).blocks.iter().any(|(spec, _)| spec.key == "background");
            if with_background {
                // It does not end: how far a link has come with it when the run ends, nobody sees.
                let seen = |stats: &longwire_link::LinkStats| {
                    (stats.in_packets, stats.in_bytes, stats.out_packets, stats.out_bytes)
                };
                assert_eq!(
                    seen(&a.stats),
                    seen(&b.stats),
                    "seed {seed}, {workers} workers, link {place}\n{text}"
                );
            } else {
                assert_eq!(a.stats, b.stats, "seed {seed}, {workers} workers, link {place}\n{text}");
            }
        }
    }
    (one.iter().map(Vec::len).sum(), report.links.iter().map(|link| link.stats.dropped()).sum())
}

fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("LONGWIRE_SWARM_SEED") {
        Ok(seed) => vec![seed.parse().expect("LONGWIRE_SWARM_SEED is a whole number")],
        Err(_) => (0..count).collect(),
    }
}

#[test]
fn the_trace_does_not_depend_on_the_number_of_workers() {
    let (mut departures, mut dropped) = (0, 0);
    for seed in seeds(120) {
        let (left, lost) = compare(seed, &scenario(seed, link));
        (departures, dropped) = (departures + left, dropped + lost);
    }
    assert!(departures > 1000 && dropped > 100, "the swarm was idle: {departures} {dropped}");
}

/// A link of up to four blocks of the registry, of any key and kind, with random values.
fn link_of_any_kind(dice: &mut Dice, text: &mut String) {
    let registry = longwire_link::registry();
    let mut keys: Vec<&str> = registry.iter().map(|spec| spec.key).collect();
    keys.dedup();
    for _ in 0..1 + dice.below(4) {
        let key = keys.remove(dice.below(keys.len() as u64) as usize);
        // A medium's rate is not for a link alone.
        let kinds: Vec<_> = registry.iter().filter(|spec| spec.key == key && spec.kind != "shared").collect();
        let spec = kinds[dice.below(kinds.len() as u64) as usize];
        // Some values exclude each other: others, then.
        let params = (0..20).map(|_| params(dice, spec)).find(|params| {
            let pairs: Vec<_> = params.iter().map(|(name, text)| (*name, text.as_str())).collect();
            Values::read(spec, &pairs).is_ok()
        });
        let Some(params) = params else { continue };
        let params: String = params.iter().map(|(name, text)| format!(", {name} = {text:?}")).collect();
        writeln!(text, "{key} = {{ kind = \"{}\"{params} }}", spec.kind).unwrap();
    }
}

/// Random values for what a block needs, and for half of the rest.
fn params(dice: &mut Dice, spec: &Spec) -> Vec<(&'static str, String)> {
    let mut params = Vec::new();
    for param in spec.params {
        if param.default.is_some() && dice.below(2) == 0 {
            continue;
        }
        let text = match param.kind {
            // Background traffic never ends: a slow one lets others come through.
            ParamKind::Rate if spec.key == "background" => format!("{} bit/s", 10_000 + dice.below(400_000)),
            ParamKind::Rate => {
                let most = 10u64.pow(4 + dice.below(6) as u32);
                format!("{} bit/s", 300_000 + dice.below(most))
            }
            ParamKind::Time { max } => format!("{} ns", 1 + dice.below(max.0.min(20_000_000))),
            ParamKind::Probability => format!("{} %", dice.below(30)),
            ParamKind::Integer { min, max } => (min + dice.below((max - min).min(20) + 1)).to_string(),
            ParamKind::Limit => format!("{} packets", 1 + dice.below(40)),
            ParamKind::Size { min, max } => {
                format!("{} B", min.0 + dice.below((max.0 - min.0).min(3000) + 1))
            }
            ParamKind::Decimal { min, max } => {
                let millionths = min + dice.below((max - min).min(3_000_000) + 1);
                format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
            }
            ParamKind::Choice(words) => words[dice.below(words.len() as u64) as usize].into(),
            ParamKind::Parsed(grammar) => {
                // A filter of the examples steers to links that are not here.
                let known: Vec<_> = grammar.examples.iter().filter(|text| !text.contains("steer")).collect();
                known[dice.below(known.len() as u64) as usize].to_string()
            }
        };
        params.push((param.name, text));
    }
    params
}

#[test]
fn every_kind_of_block_gives_the_same_trace() {
    let (mut departures, mut dropped, mut refused) = (0, 0, 0);
    let mut kinds = HashMap::new();
    let seeds = seeds(60);
    for &seed in &seeds {
        let text = scenario(seed, link_of_any_kind);
        // What a change makes of a link of another kind may be refused; another seed has its place.
        let Ok(plan) = parse("swarm.toml", &text) else {
            refused += 1;
            continue;
        };
        let blocks = plan.profiles.iter().flat_map(|profile| &profile.blocks);
        blocks.for_each(|(spec, _)| *kinds.entry((spec.key, spec.kind)).or_insert(0) += 1);
        let (left, lost) = compare(seed, &text);
        (departures, dropped) = (departures + left, dropped + lost);
    }
    if seeds.len() == 1 {
        return;
    }
    assert!(departures > 1000 && dropped > 100, "the swarm was idle: {departures} {dropped}");
    assert!(refused * 4 < seeds.len(), "{refused} of {} scenarios were refused", seeds.len());
    let all = longwire_link::registry().into_iter().filter(|spec| spec.kind != "shared").count();
    assert!(kinds.len() * 10 >= all * 9, "{} of {all} kinds were tried", kinds.len());
}

/// Four bridges in a row, with a link to each end that crosses from worker to worker, and many changes of them.
fn chain(seed: u64) -> String {
    let mut dice = Dice::named(seed, "chain");
    let mut text = format!("seed = {seed}\n");
    for place in 0..4 {
        writeln!(
            text,
            "[[bridge]]\nname = \"b{place}\"\n[[port]]\nname = \"p{place}\"\ndriver = \"source\"\nbridge = \"b{place}\"\n\
             addresses = \"10.0.0.{}/32\"",
            place + 1
        )
        .unwrap();
    }
    let links: Vec<String> = (0..3).map(|place| format!("l{place}")).collect();
    for (place, link) in links.iter().enumerate() {
        let (rate, delay) = (2 + dice.below(30), 500 + dice.below(9_000));
        let (loss, queue) = (dice.below(9), 3 + dice.below(20));
        writeln!(
            text,
            "[[link]]\nname = \"{link}\"\nbetween = [\"b{place}\", \"b{}\"]\nrate = \"{rate} Mbit/s\"\n\
             delay = \"{delay} us\"\nloss = \"{loss} %\"\nqueue = \"{queue} packets\"",
            place + 1
        )
        .unwrap();
    }
    for _ in 0..3 {
        changes(&mut dice, &links, &mut text);
    }
    for (from, to) in [(0, 3), (3, 0), (1, 3), (2, 0), (0, 2)] {
        let (interval, size) = (20_000 + dice.below(500_000), 62 + dice.below(1440));
        writeln!(
            text,
            "[[source]]\nfrom = \"p{from}\"\nto = \"p{to}\"\ninterval = \"{interval} ns\"\nsize = \"{size} B\"\n\
             poisson = true\npackets = {}",
            60_000_000 / interval
        )
        .unwrap();
    }
    text
}

#[test]
fn changes_of_links_between_workers_come_in_their_place() {
    let (mut departures, mut dropped) = (0, 0);
    for seed in seeds(60) {
        let text = chain(seed);
        // What cuts a ramp short is refused; another seed has its place.
        if let Ok(plan) = parse("swarm.toml", &text) {
            assert!(!plan.events.is_empty());
            let (left, lost) = compare(seed, &text);
            (departures, dropped) = (departures + left, dropped + lost);
        }
    }
    assert!(departures > 10_000 && dropped > 1000, "the swarm was idle: {departures} {dropped}");
}
