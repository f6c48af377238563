//! Cost of the engine's stages, blocks and cache misses: scenarios with and without them alternate.

use super::drive::{Cost, Course, links, links_of_two, ports};
use super::{drivers, picoseconds};
use crate::{BenchError, Sample, Settings, blocks, stop_after};
use longwire_prices::{
    APART_COUNTS, BLOCK_COUNTS, EnginePrices, FLIGHT_COUNTS, LINK_COUNTS, Price, WAITS, block_price_at,
};
use longwire_units::Nanos;
use std::collections::BTreeMap;
use std::time::Duration;

/// Links that represent one: few enough for the near caches.
const FEW: u32 = 8;
const RATE: &str = "rate = \"100 Gbit/s\"\n";
/// A delay so short that hardly any packets are in flight.
const SHORT: &str = "delay = \"10 us\"\n";
/// Number of links such that as many packets in flight have one each.
const APART_ON: u64 = 100_000;
/// Length of a chain of links.
const CHAIN: u32 = 4;
/// Limit of links in quick mode.
const QUICK_LINKS: u64 = 10_000;
const QUICK_FLIGHT: u64 = 10_000;

/// The engine's prices on this machine, except those of real ports, and the cost per packet of the `others`,
/// measured in the same rounds.
///
/// # Errors
/// If the bench is stopped, or memory is lacking.
pub(crate) fn engine(
    settings: &Settings<'_>,
    others: &[Course],
) -> Result<(EnginePrices, Vec<Sample>), BenchError> {
    let mut prices = EnginePrices::default();
    drivers::memory(settings, &mut prices)?;
    let flights = flights(settings)?;
    let (blocks, bases) = with_blocks()?;
    let all: Vec<Course> = [stages(settings)?, flights, blocks, others.to_vec()].concat();
    let rounds = Rounds::of(settings, &all)?;
    price_stages(&rounds, &mut prices);
    price_misses(settings, &rounds, &mut prices);
    for (block, base) in &bases {
        prices.set(block, rounds.price([block, base], |[with, without]| with - without));
    }
    lateness(settings, &mut prices)?;
    Ok((prices, others.iter().map(|course| rounds.sample(&course.name)).collect()))
}

/// Nanoseconds per packet of each course, by round, as if the processor had always been as fast as in most of
/// them: its speed changes between courses, and prices are their differences.
struct Rounds(BTreeMap<String, Vec<f64>>);

impl Rounds {
    fn of(settings: &Settings<'_>, courses: &[Course]) -> Result<Self, BenchError> {
        let mut rounds = BTreeMap::<String, Vec<Cost>>::new();
        for _ in 0..settings.runs(7) {
            for course in courses {
                rounds.entry(course.name.clone()).or_default().push(course.cost(settings)?);
            }
        }
        Ok(Self::at_one_speed(&rounds))
    }

    fn at_one_speed(rounds: &BTreeMap<String, Vec<Cost>>) -> Self {
        let usual = rounds.values().flatten().map(|cost| cost.bare).collect::<Sample>().median();
        let scaled = |costs: &Vec<Cost>| costs.iter().map(|cost| cost.packet * usual / cost.bare).collect();
        Self(rounds.iter().map(|(name, costs)| (name.clone(), scaled(costs))).collect())
    }

    fn sample(&self, name: &str) -> Sample {
        self.0.get(name).into_iter().flatten().copied().collect()
    }

    /// A price computed from the costs of some courses in each round.
    fn price<const N: usize>(&self, of: [&str; N], price: impl Fn([f64; N]) -> f64) -> Price {
        let rounds = self.0.values().map(Vec::len).min().unwrap_or(0);
        let cost = |name: &str, round: usize| self.0.get(name).and_then(|costs| costs.get(round)).copied();
        let each = (0..rounds).map(|round| price(of.map(|name| cost(name, round).unwrap_or_default())));
        priced(&each.collect())
    }
}

/// A price from measurements in nanoseconds, at least 0.
fn priced(sample: &Sample) -> Price {
    let [median, least, most] = [sample.median(), sample.least(), sample.most()].map(picoseconds);
    Price { median, least, most }
}

fn price_stages(rounds: &Rounds, prices: &mut EnginePrices) {
    let memory = |bytes: u64| {
        let each = |what: &str| {
            prices.price(&format!("memory-{what}")) + bytes * prices.price(&format!("memory-{what}-byte"))
        };
        (each("receive") + each("transmit")) as f64 / 1e3
    };
    let (short, long) = (memory(super::drive::FRAME as u64), memory(drivers::LONG as u64));
    let mut list = vec![
        ("packet".to_owned(), rounds.price(["none"], |[none]| none - short)),
        ("bridge".into(), rounds.price(["bridge", "none"], |[bridge, none]| bridge - none)),
        ("in-order".into(), rounds.price(["in-order", "link-rate-delay"], |[order, link]| order - link)),
        ("router".into(), rounds.price(["router", "none"], |[router, none]| router - none)),
        ("hand-over".into(), rounds.price(["hand-over", "none"], |[over, none]| over - none)),
    ];
    for kind in ["link", "link-rate", "link-delay", "link-rate-delay"] {
        list.push((kind.into(), rounds.price([kind, "none"], |[link, none]| link - none)));
    }
    let chain = ["chain", "in-order", "link-rate-delay", "none", "bridge"];
    let further = |[chain, order, link, none, bridge]: [f64; 5]| {
        (chain - order - (bridge - none)) / f64::from(CHAIN - 1) - (link - none)
    };
    list.push(("further-link".into(), rounds.price(chain, further)));
    let turn = ["routers", "router", "none", "link", "in-order", "link-rate-delay"];
    let turn = rounds.price(turn, |[routers, router, none, link, order, timed]| {
        routers - router - (router - none) - (link - none) - (order - timed)
    });
    list.push(("turn".into(), turn));
    let byte = rounds.price(["hand-over, long", "hand-over"], |[over, under]| {
        (over - long - (under - short)) / (drivers::LONG - super::drive::FRAME) as f64
    });
    list.push(("hand-over-byte".into(), byte));
    // The price is that of a frame of length 0.
    let bytes = byte.median * super::drive::FRAME as u64;
    list.iter_mut()
        .filter(|(name, _)| name == "hand-over")
        .for_each(|(_, price)| *price = less(*price, bytes));
    list.iter().for_each(|(name, price)| prices.set(name, *price));
}

/// Prices cache misses: with many links, and for packets that are touched again much later.
fn price_misses(settings: &Settings<'_>, rounds: &Rounds, prices: &mut EnginePrices) {
    for (kind, base) in [("links", "link"), ("timed-links", "link-rate-delay")] {
        for count in LINK_COUNTS {
            // The lines not measured cost as much as those measured.
            let looked_at = if settings.quick { count.min(QUICK_LINKS) } else { count };
            let name = format!("{kind}-{looked_at}");
            prices.set(&format!("{kind}-{count}"), rounds.price([&name, base], |[many, few]| many - few));
        }
    }
    let jitter = block_price_at("block-delay-jitter", FEW.into());
    for count in FLIGHT_COUNTS {
        let looked_at = if settings.quick { count.min(QUICK_FLIGHT) } else { count };
        for (kind, base) in [("in-flight", "link-rate-delay"), ("in-flight-varied", jitter.as_str())] {
            let name = format!("{kind}-{looked_at}");
            prices.set(&format!("{kind}-{count}"), rounds.price([&name, base], |[far, near]| far - near));
        }
    }
    let near = format!("timed-links-{}", apart_on(settings));
    for count in APART_COUNTS {
        let looked_at = if settings.quick { count.min(QUICK_FLIGHT) } else { count };
        let [apart, together] = ["apart", "in-flight"].map(|kind| format!("{kind}-{looked_at}"));
        // Packets' own misses have their own price.
        let price = rounds
            .price([&apart, &near, &together, "link-rate-delay"], |[apart, near, together, few]| {
                apart - near - (together - few)
            });
        prices.set(&format!("apart-{count}"), price);
    }
}

/// Number of links on which packets in flight have one each.
fn apart_on(settings: &Settings<'_>) -> u64 {
    if settings.quick { QUICK_LINKS } else { APART_ON }
}

fn less(price: Price, picoseconds: u64) -> Price {
    let [median, least, most] =
        [price.median, price.least, price.most].map(|number| number.saturating_sub(picoseconds));
    Price { median, least, most }
}

/// Scenarios with one stage each.
fn stages(settings: &Settings<'_>) -> Result<Vec<Course>, BenchError> {
    let (spin, both) = (ports(SPIN), format!("{RATE}{SHORT}"));
    let of = |name: &str, text: String| Course::new(name, &format!("{spin}{text}"));
    let change = "[[at]]\ntime = \"1000 s\"\nlink = \"l1\"\ndelay = \"10 us\"\n";
    let more: String =
        (0..2).map(|n| format!("[[port]]\nname = \"more{n}\"\ndriver = \"memory\"\n")).collect();
    let pipeline = |name: &str| {
        let engine = "workers = 2\nmapping = \"pipeline\"\ncpus = [0, 1]\n";
        Course::new(name, &(ports(engine) + &links(FEW, "")))
    };
    let mut courses = vec![
        of("none", String::new())?,
        of("bridge", more)?,
        of("link", links(FEW, ""))?,
        of("link-rate", links(FEW, RATE))?,
        of("link-delay", links(FEW, SHORT))?,
        of("link-rate-delay", links(FEW, &both))?,
        of("in-order", links(FEW, &both) + change)?,
        of("chain", chain(&both))?,
        routed(of("router", router())?),
        routed(of("routers", routers())?),
        pipeline("hand-over")?,
        Course { frame_bytes: drivers::LONG, ..pipeline("hand-over, long")? },
    ];
    for count in LINK_COUNTS.into_iter().filter(|count| !settings.quick || *count <= QUICK_LINKS) {
        let count = count as u32;
        courses.push(of(&format!("links-{count}"), links(count, ""))?.shuffled(count));
        courses.push(of(&format!("timed-links-{count}"), links(count, &both))?.shuffled(count));
    }
    Ok(courses)
}

/// Pins the worker to the first processor.
const SPIN: &str = "cpus = [0]\n";

/// A chain of links.
pub(crate) fn chain(keys: &str) -> String {
    let mut text: String = (1..CHAIN).map(|n| format!("[[bridge]]\nname = \"x{n}\"\n")).collect();
    for n in 0..CHAIN {
        let from = if n == 0 { "a".into() } else { format!("x{n}") };
        let to = if n + 1 == CHAIN { "b".into() } else { format!("x{}", n + 1) };
        text += &format!("[[link]]\nname = \"c{n}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n");
    }
    text
}

/// The router's hardware address at the first port.
const GATE: &str = "02:00:00:00:00:fe";

fn routed(course: Course) -> Course {
    Course { to: Some([2, 0, 0, 0, 0, 0xfe]), ..course }
}

/// A router at both ports.
pub(crate) fn router() -> String {
    format!(
        "[[router]]\nname = \"r\"\nports = [\n\
         {{ port = \"a\", mac = \"{GATE}\", addresses = \"10.0.1.1/16\" }},\n\
         {{ port = \"b\", addresses = \"11.0.1.1/16\" }},\n]\nneighbours = [\n{}]\n",
        neighbours("11.0.0")
    )
}

/// Hosts 1 to 8 of a network.
fn neighbours(network: &str) -> String {
    (1..=FEW).map(|n| format!("{{ address = \"{network}.{n}\", mac = \"02:00:00:00:01:01\" }},\n")).collect()
}

/// A router at each port, and a link between them.
pub(crate) fn routers() -> String {
    let peers = ["02:00:00:00:00:f1", "02:00:00:00:00:f2"];
    format!(
        "[[router]]\nname = \"r1\"\nports = [\n\
         {{ port = \"a\", mac = \"{GATE}\", addresses = \"10.0.1.1/16\" }},\n\
         {{ port = \"r1-east\", mac = \"{0}\", addresses = \"10.9.0.1/30\" }},\n]\n\
         routes = [{{ to = \"11.0.0.0/16\", via = \"10.9.0.2\" }}]\n\
         neighbours = [{{ address = \"10.9.0.2\", mac = \"{1}\" }}]\n\
         [[router]]\nname = \"r2\"\nports = [\n\
         {{ port = \"r2-west\", mac = \"{1}\", addresses = \"10.9.0.2/30\" }},\n\
         {{ port = \"b\", addresses = \"11.0.1.1/16\" }},\n]\nneighbours = [\n{2}]\n\
         [[link]]\nname = \"between\"\nfrom = \"r1-east\"\nto = \"r2-west\"\n",
        peers[0],
        peers[1],
        neighbours("11.0.0")
    )
}

/// Scenarios by the number of packets in flight: few with a constant delay, few with jitter, and many, so
/// that each packet has a link of its own.
fn flights(settings: &Settings<'_>) -> Result<Vec<Course>, BenchError> {
    let constant = |count: u32, time: Nanos| links(count, &format!("{RATE}delay = \"{} ns\"\n", time.0));
    let varied = |time: Nanos| {
        let jitter = format!("kind = \"jitter\", delay = \"{} ns\", jitter = \"{} ns\"", time.0, time.0 / 10);
        links(FEW, &format!("delay = {{ {jitter} }}\n"))
    };
    let many = apart_on(settings) as u32;
    let mut flights = flights_of(settings, "in-flight", (FEW, &FLIGHT_COUNTS), |time| constant(FEW, time))?;
    flights.extend(flights_of(settings, "in-flight-varied", (FEW, &FLIGHT_COUNTS), varied)?);
    flights.extend(flights_of(settings, "apart", (many, &APART_COUNTS), |time| constant(many, time))?);
    Ok(flights)
}

fn flights_of(
    settings: &Settings<'_>,
    kind: &str,
    (pairs, counts): (u32, &[u64]),
    link: impl Fn(Nanos) -> String,
) -> Result<Vec<Course>, BenchError> {
    let with = |name: &str, time: Nanos| {
        let course = Course::new(name, &(ports(SPIN) + &link(time)))?.shuffled(pairs);
        Ok::<_, BenchError>(Course { delay: Duration::from_nanos(time.0), ..course })
    };
    let mut each = with(&format!("{kind}, few"), Nanos::from_micros(10))?.cost(settings)?.packet;
    let mut flights = Vec::new();
    for &count in counts.iter().filter(|count| !settings.quick || **count <= QUICK_FLIGHT) {
        let course = with(&format!("{kind}-{count}"), Nanos((count as f64 * each) as u64))?;
        each = course.cost(settings)?.packet;
        flights.push(course);
    }
    Ok(flights)
}

/// Names of two courses, with and without a block.
type Compared = (String, String);

/// Scenarios with a block each, and their baselines; and the names of both.
fn with_blocks() -> Result<(Vec<Course>, Vec<Compared>), BenchError> {
    let (mut courses, mut names) = (Vec::<Course>::new(), Vec::new());
    for (trial, count) in
        blocks::scenarios()?.iter().flat_map(|trial| BLOCK_COUNTS.map(|count| (trial, count)))
    {
        // With a delay so short that hardly any packets are in flight: these have their own prices.
        let short =
            |keys: &str| if trial.base.contains("delay") { keys.replace(" ms", " us") } else { keys.into() };
        let with = |name: &str, keys: &str| {
            Course::new(name, &(ports(SPIN) + &links_of_two(count as u32, &short(keys))))
                .map(|course| course.of_two(count as u32))
        };
        let base = format!("{count} links with {}", trial.base.trim());
        if !courses.iter().any(|course| course.name == base) {
            courses.push(with(&base, &trial.base)?);
        }
        let price = block_price_at(&trial.price, count);
        courses.push(with(&price, &trial.keys)?);
        names.push((price, base));
    }
    Ok((courses, names))
}

/// Lateness on 100 links by the worker's way of waiting, without pauses of the machine. A sleeping worker
/// gets a packet each millisecond: with more it would have no time to sleep.
fn lateness(settings: &Settings<'_>, prices: &mut EnginePrices) -> Result<(), BenchError> {
    for wait in WAITS {
        let keys = "rate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n";
        let text = (ports(SPIN) + &links(100, keys)).replace("\"spin\"", &format!("\"{wait}\""));
        let course = Course::new("lateness", &text)?.shuffled(100);
        let gap = if wait == "spin" { Nanos::from_micros(10) } else { Nanos::from_millis(1) };
        let mut found = [Vec::new(), Vec::new()];
        for _ in 0..settings.runs(3) {
            settings.next(&format!("capacity: lateness, {wait}"))?;
            let ports = course.ports(Some(gap));
            let run = longwire_assemble::build(&course.plan, ports, |_| None)?.setup.start();
            let ((), report) = stop_after(run, settings.pause(settings.time(Duration::from_secs(1))))?;
            let late = report.fidelity.map(|fidelity| fidelity.lateness.without_pauses).unwrap_or_default();
            found.iter_mut().zip([late.p50, late.p99]).for_each(|(list, late)| list.push(late.0 as f64));
        }
        for (share, list) in ["p50", "p99"].into_iter().zip(found) {
            prices.set(&format!("late-{wait}-{share}"), priced(&list.into_iter().collect()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_course_is_a_scenario() {
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        let courses = stages(&settings).unwrap();
        let names: std::collections::BTreeSet<_> = courses.iter().map(|course| &course.name).collect();
        assert_eq!(names.len(), courses.len());
        let chain = courses.iter().find(|course| course.name == "chain").unwrap();
        let rule = &chain.plan.pair_rules[0];
        assert_eq!(chain.plan.routes.links(&rule.route).len(), CHAIN as usize);
    }

    /// Where bands meet, priority costs most.
    #[test]
    fn the_bands_of_a_price_have_a_flow_each() {
        let (courses, names) = with_blocks().unwrap();
        assert_eq!(names.len() % BLOCK_COUNTS.len(), 0);
        assert!(courses.iter().any(|course| course.name.contains("queue-priority")));
        let scenarios = blocks::scenarios().unwrap();
        let priority = scenarios.iter().find(|scenario| scenario.price.contains("queue-priority")).unwrap();
        assert!(priority.keys.contains(r#"classes = "a if dst net 12.0.0.0/8\nb""#), "{}", priority.keys);
        assert!(
            links_of_two(1, "").contains("{11.0.0.0 + n}") && links_of_two(1, "").contains("{12.0.0.0 + n}")
        );
    }

    /// The processor was half as fast in the second round of `with`, and in the first of `without`.
    #[test]
    fn costs_are_those_at_one_speed() {
        let costs = |list: [(f64, f64); 3]| list.map(|(packet, bare)| Cost { packet, bare }).to_vec();
        let rounds = Rounds::at_one_speed(&BTreeMap::from([
            ("with".to_owned(), costs([(30.0, 8.0), (62.0, 16.0), (32.0, 8.0)])),
            ("without".to_owned(), costs([(40.0, 16.0), (20.0, 8.0), (21.0, 8.0)])),
        ]));
        let price = rounds.price(["with", "without"], |[with, without]| with - without);
        assert_eq!(price, Price { median: 11_000, least: 10_000, most: 11_000 });
    }

    #[test]
    fn prices_are_differences_within_a_round() {
        let rounds = Rounds(BTreeMap::from([
            ("with".to_owned(), vec![30.0, 50.0, 41.0]),
            ("without".to_owned(), vec![20.0, 41.0, 20.0]),
        ]));
        let price = rounds.price(["with", "without"], |[with, without]| with - without);
        assert_eq!(price, Price { median: 10_000, least: 9_000, most: 21_000 });
        assert_eq!(rounds.price(["without", "with"], |[a, b]| a - b), Price::exact(0));
    }
}
