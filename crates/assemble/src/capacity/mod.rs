//! Load of each worker and port in a scenario: its packets, as bounded by links and sources, at the measured
//! costs of the machine's stages. Also the work at each port, node and link, for cutting a plan into parts.

mod advice;
mod cost;
mod paths;

use crate::price::{LinkRates, Shortfall};
use cost::{Costs, Place, Sums};
use longwire_link::medium_rate;
use longwire_link::transmit::framing::Framing;
use longwire_prices::EnginePrices;
use longwire_scenario::Plan;
use longwire_units::{Bytes, Nanos, Rate};
use paths::{Path, Paths};
use serde::{Serialize, Serializer};

/// A whole core, in millionths.
pub const WHOLE: u64 = 1_000_000;

/// Predicted load of a plan on a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capacity {
    /// Length of the frames that fill links, without FCS; sources have their own.
    pub frame: Bytes,
    /// Whether prices were measured; otherwise all are assumed.
    pub measured: bool,
    /// Packets per second that enter by all ports, on paths with a bound.
    pub packets_per_second: u64,
    /// Whether there are unbounded paths: no link on them has a rate, and no source feeds them.
    pub unbounded: bool,
    /// The workers, in order.
    pub workers: Vec<WorkerLoad>,
    /// The outer ports, where packets enter or leave.
    pub ports: Vec<PortLoad>,
    /// Lateness of packets that do not wait for others: median and 99th percentile.
    #[serde(rename = "lateness_ns", serialize_with = "as_integers")]
    pub lateness: [Nanos; 2],
    /// Names of prices that were used but not measured.
    pub assumed: Vec<String>,
    /// Whether some paths through routers were left out, because there are too many.
    pub ways_left_out: bool,
    /// Resources that are insufficient; empty if everything fits.
    pub shortfalls: Vec<Shortfall>,
    /// Remarks on what fits.
    pub notes: Vec<String>,
}

fn as_integers<S: Serializer>(times: &[Nanos; 2], serializer: S) -> Result<S::Ok, S::Error> {
    times.map(|time| time.0).serialize(serializer)
}

/// Load of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerLoad {
    /// Which worker.
    pub worker: u32,
    /// Number of its links.
    pub links: u64,
    /// Packets per second that it handles, on paths with a bound.
    pub packets_per_second: u64,
    /// Their share of a core, in millionths.
    pub load_ppm: u64,
    /// Whether it also has unbounded paths.
    pub unbounded: bool,
    /// Mean cost of a packet over its paths, in picoseconds: at its packet rate, or at its limit without a
    /// bound.
    pub packet_picoseconds: u64,
    /// Packets per second at which it is saturated.
    pub saturated_at: u64,
    /// Packets in flight on its links at its packet rate.
    pub in_flight: u64,
}

/// Load of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortLoad {
    /// Its name.
    pub port: String,
    /// Its driver.
    pub driver: &'static str,
    /// Its worker, or the first of several.
    pub worker: u32,
    /// Number of workers that serve it, each by a queue of its own.
    pub queues: u32,
    /// Packets per second received, on paths with a bound.
    pub received_per_second: u64,
    /// Packets per second sent, likewise.
    pub sent_per_second: u64,
    /// Whether it also has unbounded paths.
    pub unbounded: bool,
    /// The driver's share of a core for these, in millionths; included in the worker's.
    pub load_ppm: u64,
}

/// Predicts the load of `plan` if every link is full of frames of that length and every source sends at its
/// maximum.
pub fn predict(plan: &Plan, prices: &EnginePrices, frame: Bytes) -> Capacity {
    let paths = Paths::of(plan);
    let bounds = Bounds::of(plan, &paths, frame);
    let costs = Costs::new(plan, prices, frame);
    let mut sums = Sums::new(&costs);
    paths.each(|path| sums.add(&costs, path, bounds.packets(path)));
    let wait = plan.engine.wait.word();
    let late = |share: &str| Nanos(prices.price(&format!("late-{wait}-{share}")) / 1000);
    let workers: Vec<WorkerLoad> =
        (0..plan.engine.workers).map(|worker| sums.worker(&costs, worker)).collect();
    let mut capacity = Capacity {
        frame,
        measured: !prices.is_assumed(),
        packets_per_second: sums.packets,
        unbounded: sums.unbounded,
        workers,
        ports: ports(plan, &costs, &sums),
        lateness: [late("p50"), late("p99")],
        assumed: costs.assumed(plan),
        ways_left_out: paths.some_left_out,
        shortfalls: Vec::new(),
        notes: Vec::new(),
    };
    advice::give(plan, prices, &mut capacity);
    capacity
}

fn ports(plan: &Plan, costs: &Costs<'_>, sums: &Sums) -> Vec<PortLoad> {
    let load = |place: usize| {
        let port = &plan.ports[place];
        let driver = costs.drivers[place]?;
        let (sum, home) = (&sums.ports[place], costs.home(place as u16));
        Some(PortLoad {
            port: port.name.to_string(),
            driver: driver.word(),
            worker: home.worker,
            queues: home.queues,
            received_per_second: sum.received,
            sent_per_second: sum.sent,
            unbounded: sum.unbounded,
            load_ppm: (sum.work / u128::from(WHOLE)) as u64,
        })
    };
    (0..plan.ports.len()).filter_map(load).collect()
}

/// Highest packet rate of each link and each path.
struct Bounds {
    /// By link: its own bound, and the total of arrivals.
    links: Vec<(Option<u64>, u128)>,
}

impl Bounds {
    fn of(plan: &Plan, paths: &Paths<'_>, frame: Bytes) -> Self {
        let bits = Framing::ETHERNET.counted(frame.0 as u32, 0) * 8;
        let at = |rate: Rate| (rate != Rate::UNLIMITED).then(|| rate.0 / bits);
        let of_profiles: Vec<Option<u64>> =
            plan.profiles.iter().map(|profile| at(LinkRates::of(profile, frame).highest)).collect();
        let own = |link: &longwire_scenario::Link| (of_profiles[link.profile as usize], 0);
        let mut bounds = Self { links: plan.links.iter().map(own).collect() };
        for medium in &plan.media {
            let shared =
                at(medium_rate(&medium.values)).map(|packets| packets / medium.links.len().max(1) as u64);
            medium.links.iter().for_each(|&link| bounds.links[link as usize].0 = shared);
        }
        let mut came = vec![0u128; plan.links.len()];
        paths.each(|path| {
            if let Some(packets) = bounds.alone(path) {
                path.links.iter().for_each(|&link| came[link as usize] += u128::from(packets));
            }
        });
        bounds.links.iter_mut().zip(came).for_each(|(link, came)| link.1 = came);
        bounds
    }

    /// Packet rate of a path if it were the only one; none if it has no bound.
    fn alone(&self, path: &Path<'_>) -> Option<u64> {
        let links = path.links.iter().filter_map(|&link| self.links[link as usize].0);
        links.chain(path.offered).min()
    }

    /// Packet rate of a path beside the others: at an overloaded link all are reduced in proportion.
    fn packets(&self, path: &Path<'_>) -> Option<u64> {
        let alone = self.alone(path)?;
        let share = |&link: &u32| match self.links[link as usize] {
            (Some(bound), came) if came > u128::from(bound) => {
                (u128::from(alone) * u128::from(bound) / came) as u64
            }
            _ => alone,
        };
        path.links.iter().map(share).min().or(Some(alone))
    }
}

/// Work of a plan by place, in picoseconds of processor time a second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceWork {
    /// By place of the port.
    pub ports: Vec<u128>,
    /// By index of the segment.
    pub segments: Vec<u128>,
    /// By place of the link.
    pub links: Vec<LinkWork>,
    /// Whether there are unbounded paths, for which a rate was assumed.
    pub unbounded: bool,
}

/// Packets and work of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkWork {
    /// Packets a second.
    pub packets: u64,
    /// Work.
    pub work: u128,
}

/// The work at each place if every link is full of frames of that length and every source sends at its
/// maximum. Paths without a bound carry `unbounded` packets a second.
pub fn place_work(plan: &Plan, prices: &EnginePrices, frame: Bytes, unbounded: u64) -> PlaceWork {
    let paths = Paths::of(plan);
    let bounds = Bounds::of(plan, &paths, frame);
    let costs = Costs::new(plan, prices, frame);
    let mut work = PlaceWork {
        ports: vec![0; plan.ports.len()],
        segments: vec![0; plan.segments.len()],
        links: vec![LinkWork::default(); plan.links.len()],
        unbounded: false,
    };
    paths.each(|path| {
        let bound = bounds.packets(path);
        work.unbounded |= bound.is_none();
        let packets = bound.unwrap_or(unbounded);
        for &link in path.links {
            let link = &mut work.links[link as usize];
            link.packets = link.packets.saturating_add(packets);
        }
        costs.each_place(path, |place, picoseconds| {
            let more = u128::from(packets) * u128::from(picoseconds);
            match place {
                Place::Port(place) => work.ports[usize::from(place)] += more,
                Place::Segment(index) => work.segments[index as usize] += more,
                Place::Link(place) => work.links[place as usize].work += more,
            }
        });
    });
    work
}
