//! Cost of a path's packets for each worker, and the totals of all paths.

use super::paths::Path;
use super::{PortLoad, WHOLE, WorkerLoad};
use crate::build::Shards;
use longwire_drivers::Driver;
use longwire_engine::PortLocation;
use longwire_prices::{BLOCK_COUNTS, EnginePrices, Origin, block_price};
use longwire_scenario::{Plan, Profile};
use longwire_units::{Bytes, Nanos, Rate};
use std::collections::BTreeSet;

/// A second in picoseconds.
const SECOND: u128 = 1_000_000_000_000;
/// Upper bound on a worker's packet rate.
const MOST: u64 = 1 << 34;

/// Cost of a packet on a link of a profile.
#[derive(Debug, Clone, Copy)]
struct LinkCost {
    /// Without its further blocks.
    picoseconds: u64,
    /// Of these blocks, where a worker has each of [`BLOCK_COUNTS`] links.
    blocks: [u64; BLOCK_COUNTS.len()],
    /// Whether it is in the timing wheel while it holds packets.
    timed: bool,
    delay: Nanos,
    /// Whether its packets have individual delays, and are sorted or wait for each other.
    varied: bool,
}

/// Costs in a plan.
pub(super) struct Costs<'p> {
    plan: &'p Plan,
    prices: &'p EnginePrices,
    frame: Bytes,
    shards: Shards,
    /// Additional cost of exact order, for paths longer than one link or with changes.
    in_order: u64,
    profiles: Vec<LinkCost>,
    /// By worker: number of links, and the additional cost of each because of that number, plain and timed.
    links: Vec<(u64, [u64; 2])>,
    /// By port: its driver, the costs of receiving and transmitting, and of each byte of both.
    pub drivers: Vec<Option<&'static Driver>>,
    ports: Vec<[[u64; 2]; 2]>,
}

/// The part of a packet's path on one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    worker: u32,
    picoseconds: u64,
    /// Links with a constant delay, those with a variable one, and their total delay.
    delayed: [u64; 2],
    delay: Nanos,
}

/// Where a part of a packet's cost arises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Port(u16),
    Segment(u32),
    Link(u32),
}

impl<'p> Costs<'p> {
    pub(super) fn new(plan: &'p Plan, prices: &'p EnginePrices, frame: Bytes) -> Self {
        let shards = Shards::of(plan);
        let mut links = vec![(0, [0; 2]); plan.engine.workers as usize];
        shards.link_workers.iter().for_each(|&worker| links[worker as usize].0 += 1);
        for (count, more) in &mut links {
            *more = [false, true].map(|timed| prices.of_links(*count, timed));
        }
        let changes = plan.events.iter().any(|event| !event.links.is_empty() || !event.media.is_empty());
        let in_order = if shards.flat && !changes { 0 } else { prices.price("in-order") };
        let shared: BTreeSet<u32> = plan.media.iter().flat_map(|medium| &medium.links).copied().collect();
        let in_medium: BTreeSet<u32> = shared.iter().map(|&link| plan.links[link as usize].profile).collect();
        let profiles = plan.profiles.iter().zip(0..);
        let profiles =
            profiles.map(|(profile, at)| link_cost(prices, profile, in_medium.contains(&at))).collect();
        let drivers: Vec<_> = plan.ports.iter().map(|port| plan.driver_of(port)).collect();
        let port = |driver: &Option<&'static Driver>| {
            let name = driver.and_then(Driver::price);
            let price = |what: String| name.map_or(0, |name| prices.price(&format!("{name}-{what}")));
            ["receive", "transmit"].map(|what| ["", "-byte"].map(|each| price(format!("{what}{each}"))))
        };
        let ports = drivers.iter().map(port).collect();
        Self { plan, prices, frame, shards, in_order, profiles, links, drivers, ports }
    }

    /// The home of a port.
    pub(super) fn home(&self, place: u16) -> PortLocation {
        let port = &self.plan.ports[usize::from(place)];
        let worker = self.shards.segment_workers[port.segment as usize];
        PortLocation { queues: port.queues.into(), ..PortLocation::single(worker, 0) }
    }

    /// Number of input queues of a path.
    fn queues(&self, path: &Path<'_>) -> u32 {
        path.from.map_or(1, |place| self.home(place).queues)
    }

    /// The driver's cost of receiving and of transmitting a frame.
    fn driver(&self, place: u16, bytes: u64) -> [u64; 2] {
        self.ports[usize::from(place)].map(|[frame, byte]| frame + bytes * byte)
    }

    /// Passes each worker's cost for a packet of a path, received by `queue`, to `show`; a worker may occur
    /// several times.
    fn each_part(&self, path: &Path<'_>, queue: u32, mut show: impl FnMut(Part)) {
        let bytes = path.bytes.unwrap_or(self.frame.0);
        let pay =
            |worker: u32, picoseconds: u64| Part { worker, picoseconds, delayed: [0; 2], delay: Nanos::ZERO };
        let first = path.from.map(|place| self.home(place).worker + queue);
        let begins =
            first.or_else(|| path.links.first().map(|&link| self.shards.link_workers[link as usize]));
        let mut at = begins.unwrap_or(0);
        let received = path.from.map_or(0, |place| self.driver(place, bytes)[0]);
        show(pay(at, self.prices.price("packet") + self.in_order + received + self.bridge(path)));
        for (segment, picoseconds) in self.decisions(path) {
            show(pay(self.shards.segment_workers[segment as usize], picoseconds));
        }
        let hand_over = self.prices.price("hand-over") + bytes * self.prices.price("hand-over-byte");
        let cross = |from: u32, to: u32, show: &mut dyn FnMut(Part)| {
            if from != to {
                [from, to].into_iter().for_each(|worker| show(pay(worker, hand_over / 2)));
            }
        };
        for (number, &link) in path.links.iter().enumerate() {
            let worker = self.shards.link_workers[link as usize];
            cross(at, worker, &mut show);
            at = worker;
            let cost = self.profile(link);
            let mut delayed = [0; 2];
            delayed[usize::from(cost.varied)] = u64::from(cost.delay > Nanos::ZERO);
            show(Part { worker, picoseconds: self.at_link(link, number), delayed, delay: cost.delay });
        }
        if let Some(to) = path.to {
            let worker = self.home(to).exit_of(at);
            cross(at, worker, &mut show);
            show(pay(worker, self.driver(to, bytes)[1]));
        }
    }

    /// Passes the cost of a packet of a path at each place to `show`.
    pub(super) fn each_place(&self, path: &Path<'_>, mut show: impl FnMut(Place, u64)) {
        let bytes = path.bytes.unwrap_or(self.frame.0);
        let base = self.prices.price("packet") + self.in_order + self.bridge(path);
        match (path.from, path.links.first()) {
            (Some(from), _) => show(Place::Port(from), base + self.driver(from, bytes)[0]),
            (None, Some(&link)) => show(Place::Link(link), base),
            (None, None) => {}
        }
        self.decisions(path).for_each(|(segment, cost)| show(Place::Segment(segment), cost));
        for (number, &link) in path.links.iter().enumerate() {
            show(Place::Link(link), self.at_link(link, number));
        }
        if let Some(to) = path.to {
            show(Place::Port(to), self.driver(to, bytes)[1]);
        }
    }

    fn profile(&self, link: u32) -> LinkCost {
        self.profiles[self.plan.links[link as usize].profile as usize]
    }

    /// Cost of a packet at a link, the `number`th of its path from 0, except that of being in flight.
    fn at_link(&self, link: u32, number: usize) -> u64 {
        let cost = self.profile(link);
        let (count, more) = self.links[self.shards.link_workers[link as usize] as usize];
        let further = if number > 0 { self.prices.price("further-link") } else { 0 };
        let blocks = EnginePrices::of_blocks(cost.blocks, count);
        cost.picoseconds + blocks + further + more[usize::from(cost.timed)]
    }

    /// Cost of address look-ups, which cables and relays between two ports don't need.
    fn bridge(&self, path: &Path<'_>) -> u64 {
        let Some(from) = path.from else { return 0 };
        let segment = &self.plan.segments[self.plan.ports[usize::from(from)].segment as usize];
        let declared = segment.bridges.iter().any(|&bridge| self.plan.bridges[bridge as usize].declared);
        let learns = segment.router.is_none() && !segment.wire && self.home(from).queues == 1;
        let is_bridge = learns && (segment.ports.len() != 2 || declared);
        if is_bridge { self.prices.price("bridge") } else { 0 }
    }

    /// The segments on a path whose decisions have a cost, and that cost: routers, and all after the first.
    fn decisions(&self, path: &Path<'_>) -> impl Iterator<Item = (u32, u64)> {
        path.segments.iter().enumerate().filter_map(move |(number, &segment)| {
            let is_router = self.plan.segments[segment as usize].router.is_some();
            let router = if is_router { self.prices.price("router") } else { 0 };
            let turn = if number > 0 { self.prices.price("turn") } else { 0 };
            (is_router || number > 0).then_some((segment, router + turn))
        })
    }

    /// Names of prices for the plan's packets that were not measured.
    pub(super) fn assumed(&self, plan: &Plan) -> Vec<String> {
        let mut names = BTreeSet::new();
        for profile in &plan.profiles {
            for (spec, values) in profile.blocks.iter().filter(|(spec, _)| is_priced(spec.key, spec.kind)) {
                if self.prices.block(spec, values).1 != Origin::Measured {
                    names.insert(block_price(spec, values));
                }
            }
        }
        for name in self.drivers.iter().flatten().filter_map(|driver| driver.price()) {
            if !self.prices.is_measured(&format!("{name}-receive")) {
                names.insert(name.to_owned());
            }
        }
        names.into_iter().collect()
    }
}

/// Whether a block has a cost beyond the link's price.
fn is_priced(key: &str, kind: &str) -> bool {
    !matches!((key, kind), ("rate" | "delay", "constant") | ("queue", "tail-drop"))
}

fn link_cost(prices: &EnginePrices, profile: &Profile, in_medium: bool) -> LinkCost {
    let rated = in_medium || profile.rate() != Rate::UNLIMITED;
    let delayed = profile.delays.held > Nanos::ZERO;
    let kind = match (rated, delayed) {
        (false, false) => "link",
        (true, false) => "link-rate",
        (false, true) => "link-delay",
        (true, true) => "link-rate-delay",
    };
    let priced = profile.blocks.iter().filter(|(spec, _)| is_priced(spec.key, spec.kind));
    let mut blocks = [0; BLOCK_COUNTS.len()];
    for (spec, values) in priced {
        blocks.iter_mut().zip(prices.block(spec, values).0).for_each(|(sum, price)| *sum += price);
    }
    let varied = profile.blocks.iter().any(|(spec, _)| spec.key == "delay" && spec.kind != "constant");
    let picoseconds = prices.price(kind);
    LinkCost { picoseconds, blocks, timed: rated || delayed, delay: profile.delays.mean, varied }
}

/// Totals of a worker's paths.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// The worker's links.
    links: u64,
    /// Weight of its packets: packets per second, or one per path.
    packets: u128,
    picoseconds: u128,
    delayed: [u128; 2],
    delay: u128,
}

/// Totals of a port's paths.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PortSum {
    pub received: u64,
    pub sent: u64,
    pub unbounded: bool,
    /// Picoseconds of each second.
    pub work: u128,
}

/// Totals of all paths.
pub(super) struct Sums {
    pub packets: u64,
    pub unbounded: bool,
    pub ports: Vec<PortSum>,
    /// By worker: bounded paths, weighted by packets; and all paths, each with weight one.
    bounded: Vec<Sum>,
    each: Vec<Sum>,
    unbounded_workers: Vec<bool>,
    parts: Vec<Part>,
}

impl Sum {
    fn add(&mut self, part: &Part, times: u64) {
        let times = u128::from(times);
        self.packets += times;
        self.picoseconds += times * u128::from(part.picoseconds);
        self.delayed.iter_mut().zip(part.delayed).for_each(|(sum, links)| *sum += times * u128::from(links));
        self.delay += times * u128::from(part.delay.0);
    }

    /// Packets in flight at this packet rate.
    fn in_flight(&self, packets: u64) -> u64 {
        (u128::from(packets) * self.delay / self.packets.max(1) / 1_000_000_000) as u64
    }

    /// Cost of a packet at this packet rate.
    fn packet(&self, prices: &EnginePrices, packets: u64) -> u128 {
        let in_flight = self.in_flight(packets);
        let misses = [false, true].map(|varied| u128::from(prices.in_flight(in_flight, varied)));
        let misses = self.delayed[0] * misses[0] + self.delayed[1] * misses[1];
        // With more packets than links, each link is revisited sooner.
        let apart = u128::from(prices.apart(in_flight.min(self.links)));
        let apart = self.delayed.iter().sum::<u128>() * apart;
        (self.picoseconds + misses + apart) / self.packets.max(1)
    }

    /// The highest packet rate that takes at most a second per second.
    fn limit(&self, prices: &EnginePrices) -> u64 {
        let (mut least, mut most) = (0, MOST);
        while least < most {
            let middle = least + (most - least).div_ceil(2);
            if u128::from(middle) * self.packet(prices, middle) <= SECOND {
                least = middle;
            } else {
                most = middle - 1;
            }
        }
        least
    }
}

impl Sums {
    pub(super) fn new(costs: &Costs<'_>) -> Self {
        let sums: Vec<_> = costs.links.iter().map(|&(links, _)| Sum { links, ..Sum::default() }).collect();
        Self {
            packets: 0,
            unbounded: false,
            ports: vec![PortSum::default(); costs.plan.ports.len()],
            unbounded_workers: vec![false; sums.len()],
            bounded: sums.clone(),
            each: sums,
            parts: Vec::new(),
        }
    }

    /// Adds a path with its packet rate, if it has a bound.
    pub(super) fn add(&mut self, costs: &Costs<'_>, path: &Path<'_>, packets: Option<u64>) {
        let queues = costs.queues(path);
        for queue in 0..queues {
            // Many flows are assumed: each queue gets an equal share.
            let share = |packets| (packets + u64::from(queues - 1 - queue)) / u64::from(queues);
            self.add_to_workers(costs, (path, queue), packets.map(share));
        }
        self.packets = self.packets.saturating_add(packets.unwrap_or(0));
        self.unbounded |= packets.is_none();
        let bytes = path.bytes.unwrap_or(costs.frame.0);
        for (place, sends) in [(path.from, false), (path.to, true)] {
            let Some(place) = place else { continue };
            let port = &mut self.ports[usize::from(place)];
            port.unbounded |= packets.is_none();
            let count = if sends { &mut port.sent } else { &mut port.received };
            *count = count.saturating_add(packets.unwrap_or(0));
            let each = costs.driver(place, bytes)[usize::from(sends)];
            port.work += u128::from(packets.unwrap_or(0)) * u128::from(each);
        }
    }

    /// Adds the packets of a path's queue to the workers involved.
    fn add_to_workers(&mut self, costs: &Costs<'_>, (path, queue): (&Path<'_>, u32), packets: Option<u64>) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        costs.each_part(path, queue, |part| {
            match parts.iter_mut().find(|known| known.worker == part.worker) {
                Some(known) => {
                    known.picoseconds += part.picoseconds;
                    known.delayed.iter_mut().zip(part.delayed).for_each(|(sum, links)| *sum += links);
                    known.delay += part.delay;
                }
                None => parts.push(part),
            }
        });
        for part in &parts {
            let worker = part.worker as usize;
            self.each[worker].add(part, 1);
            match packets {
                Some(packets) => self.bounded[worker].add(part, packets),
                None => self.unbounded_workers[worker] = true,
            }
        }
        self.parts = parts;
    }

    pub(super) fn worker(&self, costs: &Costs<'_>, worker: u32) -> WorkerLoad {
        let at = worker as usize;
        let (bounded, unbounded) = (&self.bounded[at], self.unbounded_workers[at]);
        let packets = bounded.packets as u64;
        let load = u128::from(packets) * bounded.packet(costs.prices, packets) * u128::from(WHOLE) / SECOND;
        let mix = if unbounded || packets == 0 { &self.each[at] } else { bounded };
        let limit = if mix.packets == 0 { 0 } else { mix.limit(costs.prices) };
        let at_rate = if unbounded || packets == 0 { limit } else { packets };
        WorkerLoad {
            worker,
            links: costs.links[at].0,
            packets_per_second: packets,
            load_ppm: load as u64,
            unbounded,
            packet_picoseconds: if mix.packets == 0 { 0 } else { mix.packet(costs.prices, at_rate) as u64 },
            saturated_at: limit,
            in_flight: bounded.in_flight(packets),
        }
    }
}

impl PortLoad {
    /// Packets per second that come in and leave, on paths with a bound.
    pub fn packets_per_second(&self) -> u64 {
        self.received_per_second.saturating_add(self.sent_per_second)
    }
}
