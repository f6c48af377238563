//! Costs of the engine's stages, blocks, memory and port drivers on a machine, in picoseconds per packet.
//!
//! | price | when |
//! |---|---|
//! | `DRIVER-receive`, `DRIVER-transmit`, and `-byte` of both | at the ports where it enters and leaves |
//! | `packet` | once: received, classified, counted, sent to its port |
//! | `bridge` | if its bridge is more than a cable between two ports |
//! | `link`, `link-rate`, `link-delay`, `link-rate-delay` | for each link |
//! | `block-KEY-KIND-N` | for each further block of the link, where a worker has N links |
//! | `further-link` | for each link after the first |
//! | `in-order` | where events keep their exact order |
//! | `router`, `turn` | for each router, and for each decision after the first |
//! | `hand-over`, `hand-over-byte` | half to each of the two workers, where a packet moves between them |
//! | `links-N`, `timed-links-N` | for each link, where a worker has N; `timed`: with a rate or a delay |
//! | `in-flight-N`, `in-flight-varied-N` | for each link with a delay, where N packets are in flight |
//! | `apart-N` | for each link with a delay that a packet leaves, where N links have packets in flight |
//!
//! Prices between two numbers N are interpolated by the logarithm.

use longwire_block::{ParamKind, Spec, Value, Values};
use longwire_drivers::{DRIVERS, Driver, Prices};
use std::collections::BTreeMap;

/// A measured price in picoseconds: the median of several runs, and their spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// The median.
    pub median: u64,
    /// The lowest of the runs.
    pub least: u64,
    /// The highest.
    pub most: u64,
}

impl Price {
    /// A price without a spread.
    pub const fn exact(picoseconds: u64) -> Self {
        Self { median: picoseconds, least: picoseconds, most: picoseconds }
    }
}

/// Numbers of links at which the cache misses of their records are measured.
pub const LINK_COUNTS: [u64; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
/// Numbers of links at which blocks are measured: with few, each gets several packets of a batch, and the
/// near caches hold its blocks.
pub const BLOCK_COUNTS: [u64; 2] = [8, 512];
/// Numbers of packets in flight at which their cache misses are measured.
pub const FLIGHT_COUNTS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Numbers of packets in flight, each on a link of its own, at which the misses of these links are measured.
pub const APART_COUNTS: [u64; 3] = [1_000, 10_000, 100_000];
/// Numbers of links and packets that fit in the near caches and cost nothing more.
const FEW_LINKS: u64 = 8;
const FEW_PACKETS: u64 = 100;
/// How a worker waits, as the names of prices say it.
pub const WAITS: [&str; 3] = ["spin", "sleep-then-spin", "sleep"];

/// What is always measured, with the value assumed otherwise: a processor of 3 GHz, memory of 90 ns latency.
const STAGES: &[(&str, u64)] = &[
    ("packet", 60_000),
    ("bridge", 10_000),
    ("in-order", 20_000),
    ("link", 25_000),
    ("link-rate", 40_000),
    ("link-delay", 60_000),
    ("link-rate-delay", 70_000),
    ("further-link", 80_000),
    ("router", 60_000),
    ("turn", 60_000),
    ("hand-over", 60_000),
    ("hand-over-byte", 60),
    ("links-100", 2_000),
    ("links-1000", 20_000),
    ("links-10000", 40_000),
    ("links-100000", 80_000),
    ("links-1000000", 120_000),
    ("timed-links-100", 5_000),
    ("timed-links-1000", 20_000),
    ("timed-links-10000", 40_000),
    ("timed-links-100000", 80_000),
    ("timed-links-1000000", 140_000),
    ("in-flight-1000", 2_000),
    ("in-flight-10000", 20_000),
    ("in-flight-100000", 50_000),
    ("in-flight-1000000", 80_000),
    ("in-flight-varied-1000", 5_000),
    ("in-flight-varied-10000", 40_000),
    ("in-flight-varied-100000", 100_000),
    ("in-flight-varied-1000000", 160_000),
    ("apart-1000", 10_000),
    ("apart-10000", 30_000),
    ("apart-100000", 60_000),
    ("late-spin-p50", 1_000_000),
    ("late-spin-p99", 10_000_000),
    ("late-sleep-then-spin-p50", 2_000_000),
    ("late-sleep-then-spin-p99", 20_000_000),
    ("late-sleep-p50", 60_000_000),
    ("late-sleep-p99", 90_000_000),
];

/// Prefix of the names of blocks' prices.
const BLOCK: &str = "block-";
/// Assumed prices of a judge and of a queue without any measurement.
const ASSUMED_BLOCK: u64 = 5_000;
const ASSUMED_QUEUE: u64 = 40_000;

/// The engine's prices on a machine: measured ones, and assumed ones for all else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnginePrices {
    measured: BTreeMap<String, Price>,
}

/// The origin of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Measured.
    Measured,
    /// The price of the most expensive measured block of its stage.
    Alike,
    /// Assumed.
    Assumed,
}

impl EnginePrices {
    /// The names of prices that every measurement has.
    pub fn required() -> impl Iterator<Item = &'static str> {
        let always = |driver: &&&Driver| !driver.backend.is_outside();
        STAGES
            .iter()
            .chain(DRIVERS.iter().filter(always).flat_map(|driver| own(driver)))
            .map(|(name, _)| *name)
    }

    /// Whether this is the name of a price.
    pub fn is_name(name: &str) -> bool {
        let listed = priced().any(|(known, _)| *known == name);
        let block = BLOCK_COUNTS.iter().find_map(|count| name.strip_suffix(&format!("-{count}")));
        let of_block = |spec: &&'static Spec| {
            let rest = block.and_then(|name| name.strip_prefix(block_name(spec, &[]).as_str()));
            rest.is_some_and(|rest| matches!(rest, "" | "-wire" | "-reorder"))
        };
        listed || longwire_link::registry().iter().any(of_block)
    }

    /// Sets a measured price.
    pub fn set(&mut self, name: &str, price: Price) {
        self.measured.insert(name.into(), price);
    }

    /// The measured prices by name.
    pub fn measured(&self) -> impl Iterator<Item = (&str, Price)> {
        self.measured.iter().map(|(name, price)| (name.as_str(), *price))
    }

    /// Whether nothing was measured.
    pub fn is_assumed(&self) -> bool {
        self.measured.is_empty()
    }

    /// The price of a stage, driver or number of links, in picoseconds.
    pub fn price(&self, name: &str) -> u64 {
        match self.measured.get(name) {
            Some(price) => price.median,
            None => Self::assumed(name),
        }
    }

    /// Whether the price of this name was measured.
    pub fn is_measured(&self, name: &str) -> bool {
        self.measured.contains_key(name)
    }

    /// The assumed price in picoseconds; 0 for what has none.
    pub fn assumed(name: &str) -> u64 {
        let listed = priced().find(|(known, _)| *known == name);
        match listed {
            Some((_, picoseconds)) => *picoseconds,
            None if name.starts_with("block-queue-") => ASSUMED_QUEUE,
            None if name.starts_with(BLOCK) => ASSUMED_BLOCK,
            None => 0,
        }
    }

    /// The prices of a block at each of [`BLOCK_COUNTS`], and their origin.
    pub fn block(&self, spec: &Spec, values: &Values) -> ([u64; BLOCK_COUNTS.len()], Origin) {
        let name = block_price(spec, values);
        let own = |count: u64| self.measured.get(&block_price_at(&name, count)).map(|price| price.median);
        if BLOCK_COUNTS.iter().all(|&count| own(count).is_some()) {
            return (BLOCK_COUNTS.map(|count| own(count).unwrap_or_default()), Origin::Measured);
        }
        let stage = format!("{BLOCK}{}-", spec.key);
        let most = |count: u64| {
            let end = block_price_at("", count);
            let alike = |name: &str| name.starts_with(&stage) && name.ends_with(&end);
            self.measured.iter().filter(|(name, _)| alike(name)).map(|(_, price)| price.median).max()
        };
        if BLOCK_COUNTS.iter().all(|&count| most(count).is_some()) {
            return (BLOCK_COUNTS.map(|count| most(count).unwrap_or_default()), Origin::Alike);
        }
        (BLOCK_COUNTS.map(|_| Self::assumed(&name)), Origin::Assumed)
    }

    /// The price of blocks with these prices at each of [`BLOCK_COUNTS`], where a worker has `count` links.
    pub fn of_blocks(prices: [u64; BLOCK_COUNTS.len()], count: u64) -> u64 {
        let [few, many] = [0, 1].map(|at| (BLOCK_COUNTS[at], prices[at]));
        interpolated(few, &[many], count)
    }

    /// Additional price of a packet's arrival at a link, where a worker has `count` links.
    pub fn of_links(&self, count: u64, timed: bool) -> u64 {
        let kind = if timed { "timed-links" } else { "links" };
        self.beyond(FEW_LINKS, kind, LINK_COUNTS, count)
    }

    /// Additional price per packet on a link with a constant or varied delay, with this many packets in
    /// flight.
    pub fn in_flight(&self, packets: u64, varied: bool) -> u64 {
        let kind = if varied { "in-flight-varied" } else { "in-flight" };
        self.beyond(FEW_PACKETS, kind, FLIGHT_COUNTS, packets)
    }

    /// Additional price of a departure from a link with a delay, where this many links have packets in
    /// flight: these were touched in between.
    pub fn apart(&self, links: u64) -> u64 {
        self.beyond(FEW_PACKETS, "apart", APART_COUNTS, links)
    }

    /// Additional price at `at`, where a `few` cost nothing more, and prices of a kind have these `counts`.
    fn beyond<const N: usize>(&self, few: u64, kind: &str, counts: [u64; N], at: u64) -> u64 {
        let points = counts.map(|count| (count, self.price(&format!("{kind}-{count}"))));
        interpolated((few, 0), &points, at)
    }
}

/// Stages and drivers with their assumed prices.
fn priced() -> impl Iterator<Item = &'static (&'static str, u64)> {
    STAGES.iter().chain(DRIVERS.iter().flat_map(|driver| own(driver)))
}

/// A driver's own prices.
fn own(driver: &'static Driver) -> &'static [(&'static str, u64)] {
    match &driver.prices {
        Prices::Own(rows) => rows,
        Prices::Of(_) | Prices::Free => &[],
    }
}

/// The name of a block's prices without the number of links: `block-loss-independent`, and
/// `block-loss-independent-wire` for a judge on the wire.
pub fn block_price(spec: &Spec, values: &Values) -> String {
    block_name(spec, &options(spec, values))
}

/// The name of a block's price on a worker with so many links, one of [`BLOCK_COUNTS`].
pub fn block_price_at(name: &str, count: u64) -> String {
    format!("{name}-{count}")
}

fn block_name(spec: &Spec, options: &[&str]) -> String {
    let mut name = format!("{BLOCK}{}-{}", spec.key, spec.kind);
    for option in options {
        name.push('-');
        name.push_str(option);
    }
    name
}

/// The choices of a block that affect its price.
fn options(spec: &Spec, values: &Values) -> Vec<&'static str> {
    let chosen = |parameter: &str, word: &str| {
        let place = spec.params.iter().position(|param| param.name == parameter)?;
        let (ParamKind::Choice(words), Value::Choice(index)) = (spec.params[place].kind, values.at(place))
        else {
            return None;
        };
        (words.get(index) == Some(&word)).then_some(())
    };
    let mut options = Vec::new();
    options.extend(chosen("where", "wire").map(|()| "wire"));
    options.extend(chosen("order", "reorder").map(|()| "reorder"));
    options
}

/// The price at `at`, interpolated over the logarithm; constant beyond the first and the last point.
fn interpolated(first: (u64, u64), points: &[(u64, u64)], at: u64) -> u64 {
    let mut before = first;
    for &point in points {
        if at <= before.0 {
            return before.1;
        }
        if at < point.0 {
            let whole = u128::from(logarithm(point.0) - logarithm(before.0)).max(1);
            let part = u128::from(logarithm(at) - logarithm(before.0));
            let (from, to) = (u128::from(before.1), u128::from(point.1));
            return ((from * (whole - part) + to * part) / whole) as u64;
        }
        before = point;
    }
    before.1
}

/// The binary logarithm in 65536ths, exact at powers of two and linear between them.
fn logarithm(number: u64) -> u64 {
    let number = number.max(1);
    let whole = number.ilog2();
    let fraction = (u128::from(number) << 16 >> whole) as u64 - (1 << 16);
    (u64::from(whole) << 16) + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_between_points_lie_between_in_logarithms() {
        let points = [(64, 600), (4096, 1200)];
        let at = |count| interpolated((8, 0), &points, count);
        assert_eq!((at(0), at(8), at(64), at(4096), at(1 << 40)), (0, 0, 600, 1200, 1200));
        // 16 is a third of the way from 8 to 64, 512 half of that from 64 to 4096.
        assert_eq!((at(16), at(512)), (200, 900));
        assert_eq!((logarithm(1), logarithm(8), logarithm(12)), (0, 3 << 16, (3 << 16) + (1 << 15)));
    }

    #[test]
    fn what_was_not_measured_is_assumed() {
        let mut prices = EnginePrices::default();
        assert!(prices.is_assumed() && EnginePrices::required().all(|name| prices.price(name) > 0));
        prices.set("link", Price { median: 7, least: 6, most: 9 });
        assert_eq!((prices.price("link"), prices.price("packet"), prices.price("none")), (7, 60_000, 0));
        assert!(prices.is_measured("link") && !prices.is_measured("packet") && !prices.is_assumed());
    }

    #[test]
    fn blocks_are_priced_by_kind_and_choice_else_by_their_stage() {
        let spec = |key: &str, kind: &str| {
            let registry = longwire_link::registry();
            *registry.iter().find(|spec| (spec.key, spec.kind) == (key, kind)).unwrap()
        };
        let loss = spec("loss", "independent");
        let read = |given| Values::read(loss, given).unwrap();
        let wire = read(&[("probability", "1 %"), ("where", "wire")]);
        assert_eq!(block_price(loss, &read(&[("probability", "1 %")])), "block-loss-independent");
        assert_eq!(block_price(loss, &wire), "block-loss-independent-wire");
        assert!(EnginePrices::is_name("block-loss-independent-wire-512") && EnginePrices::is_name("packet"));
        for wrong in ["block-loss-nothing-8", "block-loss-independent", "block-loss-independent-9", "packets"]
        {
            assert!(!EnginePrices::is_name(wrong), "{wrong}");
        }
        let mut prices = EnginePrices::default();
        let mut set = |name: &str, [few, many]: [u64; 2]| {
            prices.set(&format!("{name}-8"), Price::exact(few));
            prices.set(&format!("{name}-512"), Price::exact(many));
            prices.block(loss, &wire)
        };
        assert_eq!(set("packet", [0, 0]), ([ASSUMED_BLOCK; 2], Origin::Assumed));
        assert_eq!(set("block-loss-pattern", [11, 12]), ([11, 12], Origin::Alike));
        assert_eq!(set("block-loss-independent", [3, 20]), ([11, 20], Origin::Alike));
        assert_eq!(set("block-loss-independent-wire", [4, 16]), ([4, 16], Origin::Measured));
        // 64 lies halfway between 8 and 512.
        assert_eq!(
            [1, 8, 64, 512, 9999].map(|count| EnginePrices::of_blocks([4, 16], count)),
            [4, 4, 10, 16, 16]
        );
    }
}
