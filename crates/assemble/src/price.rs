//! Resources that a plan needs, compared with those of the machine, before it runs.

use longwire_block::Value;
use longwire_link::transmit::Backlog;
use longwire_link::{LinkConfig, Links, medium_rate};
use longwire_scenario::{Delays, LARGEST_POOL, Medium, Plan, Profile};
use longwire_units::{Bytes, Nanos, Rate, counted};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;

/// Fraction of the machine's memory, and absolute limit, for pools whose size the scenario leaves open.
const SHARE: u64 = 4;
const MOST_DEFAULT: u64 = 4 << 30;

/// Number of segments from which the paths of packets through routers are sampled.
const MOST_STARTS: usize = 100;

/// Costs of a packet, a hop and a link on a machine. The defaults are the requirements for a 2-core virtual
/// machine of 2026; measure your own with `longwire bench`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calibration {
    /// Processor time to receive a packet at a port and send it at another. Default 700 ns.
    pub port_ns: u64,
    /// Processor time of each link on a packet's path. Default 100 ns.
    pub hop_ns: u64,
    /// Processor time of each router on a packet's path, look-ups included. Default 125 ns, the requirement
    /// for minimal IP.
    pub router_ns: u64,
    /// Memory of a link besides its packets. Default 300 bytes.
    pub link_bytes: u64,
    /// Memory of a rule by addresses. Default 64 bytes.
    pub address_rule_bytes: u64,
    /// Memory of a rule by ports. Default 8 bytes.
    pub pair_rule_bytes: u64,
    /// Memory of a router's route. Default 64 bytes.
    pub route_bytes: u64,
    /// Memory of a waiting packet besides its bytes, which fill whole lines of 64. Default 64 bytes.
    pub packet_bytes: u64,
    /// Assumed frame length. Default 1514 bytes.
    pub frame: Bytes,
    /// Memory of the machine, if known. Default: unknown.
    pub memory: Option<Bytes>,
    /// Processors of the machine, if known. Default: unknown.
    pub processors: Option<u32>,
    /// Packet rate of all workers, if predicted ([`predict`](crate::predict)), which then also checks whether
    /// it is enough. Default: computed from the processor times above.
    pub capacity: Option<u64>,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            port_ns: 700,
            hop_ns: 100,
            router_ns: 125,
            link_bytes: 300,
            address_rule_bytes: 64,
            pair_rule_bytes: 8,
            route_bytes: 64,
            packet_bytes: 64,
            frame: Bytes(1514),
            memory: None,
            processors: None,
            capacity: None,
        }
    }
}

/// Needs of a plan if every link carries its maximum all the time, in frames of one length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pricing {
    /// Assumed frame length.
    pub frame: Bytes,
    /// Number of links.
    pub links: u64,
    /// Memory of the links, including the tables of their queues and histograms, and of the rules.
    pub link_memory: Bytes,
    /// Packet memory of all workers together, as configured.
    pub pool: Bytes,
    /// Most packet memory that the delay lines need.
    pub delay_lines: Bytes,
    /// Most packet memory that the queues need in addition; none if one of them has no limit.
    pub queues: Option<Bytes>,
    /// Mean number of links on a path, over all rules; between two routers, if there are any.
    pub hops: f64,
    /// Mean number of routers on the shortest path, over all pairs of hosts and ports.
    pub routers: f64,
    /// Routes of all routers, except those to their own networks.
    pub routes: u64,
    /// Packet rate of the workers at that number of links.
    pub capacity: u64,
    /// Packet rate of all links together; none if one of them is unlimited.
    pub demand: Option<u64>,
    /// Resources that are insufficient; empty if everything fits.
    pub shortfalls: Vec<Shortfall>,
}

/// An insufficient resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shortfall {
    /// The resource.
    pub what: String,
    /// How to fix it.
    pub fix: String,
}

/// Totals over the links of all profiles.
#[derive(Default)]
struct Load {
    /// Packets per second, except those of unlimited links.
    packets: u128,
    unlimited: bool,
    /// Packets in the delay lines of links with a rate.
    delayed: u128,
    longest_delay: Nanos,
    longest_unlimited: Nanos,
    queued: u128,
    endless_queue: bool,
}

/// Rates of a link.
#[derive(Clone, Copy)]
pub(crate) struct LinkRates {
    /// As its queue computes.
    rate: Rate,
    /// The highest sustained rate.
    pub highest: Rate,
}

impl LinkRates {
    pub fn of(profile: &Profile, frame: Bytes) -> Self {
        let Some(sender) = profile.sender() else {
            return Self { rate: Rate::UNLIMITED, highest: Rate::UNLIMITED };
        };
        let backlog = Backlog { packets: 1, bytes: frame.0 };
        Self { rate: sender.departure_rate(backlog), highest: sender.highest(frame.0) }
    }
}

/// Computes what `plan` needs on a machine with this `calibration`.
pub fn price(plan: &Plan, calibration: &Calibration) -> Pricing {
    let load = load(plan, calibration.frame);
    let hops = hops(plan);
    let routers = routers_passed(plan);
    let routes = plan.routers.iter().map(|router| router.routes.len() as u64).sum::<u64>();
    let worker_ns = 1e9 * f64::from(plan.engine.workers);
    let links_ns = hops * routers.max(1.0) * calibration.hop_ns as f64;
    let packet_ns = calibration.port_ns as f64 + links_ns + routers * calibration.router_ns as f64;
    let capacity = calibration.capacity.map_or(worker_ns / packet_ns.max(1.0), |packets| packets as f64);
    // Unlimited links carry no more packets than the workers receive.
    let arriving = |delay: Nanos| (capacity * delay.as_secs_f64() * hops.max(1.0)) as u128;
    let unlimited = arriving(load.longest_unlimited);
    let delayed = (load.delayed + unlimited).min(arriving(load.longest_delay));
    let slot = u128::from(calibration.packet_bytes + calibration.frame.0.div_ceil(64) * 64);
    let memory = |packets: u128| Bytes(u64::try_from(packets.saturating_mul(slot)).unwrap_or(u64::MAX));
    let rules = plan.address_rules.len() as u64 * calibration.address_rule_bytes
        + plan.pair_rules.len() as u64 * calibration.pair_rule_bytes
        + routes * calibration.route_bytes
        + plan.routes.listed() as u64 * 4;
    let per_packet = hops.max(1.0);
    let mut pricing = Pricing {
        frame: calibration.frame,
        links: plan.links.len() as u64,
        link_memory: Bytes(
            (plan.links.len() as u64 * calibration.link_bytes + rules).saturating_add(tables(plan)),
        ),
        pool: Bytes(plan.engine.pool.0.saturating_mul(u64::from(plan.engine.workers))),
        delay_lines: memory(delayed),
        queues: (!load.endless_queue).then(|| memory(load.queued)),
        hops,
        routers,
        routes,
        capacity: capacity as u64,
        demand: (!load.unlimited && !plan.links.is_empty())
            .then_some((load.packets as f64 / per_packet) as u64),
        shortfalls: Vec::new(),
    };
    pricing.shortfalls = shortfalls(plan, calibration, &pricing);
    pricing
}

/// Memory of the links' queues and histograms besides packets.
fn tables(plan: &Plan) -> u64 {
    let mut count = vec![0u64; plan.profiles.len()];
    plan.links.iter().for_each(|link| count[link.profile as usize] += 1);
    let mut sum = 0u64;
    // Consecutive profiles often have the same queue, which may be expensive to build.
    let mut last: Option<(&Profile, u64)> = None;
    for (profile, links) in plan.profiles.iter().zip(count).filter(|(_, links)| *links > 0) {
        let alike = |other: &Profile| {
            let queue = |profile: &Profile| {
                let block = profile.blocks.iter().find(|(spec, _)| spec.key == "queue");
                block.map(|(spec, values)| (spec.kind, values.clone()))
            };
            other.histogram == profile.histogram && queue(other) == queue(profile)
        };
        let each = match last {
            Some((other, bytes)) if alike(other) => bytes,
            _ => Links::tables_of(&LinkConfig::new(profile.blocks.clone(), profile.histogram)) as u64,
        };
        last = Some((profile, each));
        sum = sum.saturating_add(links.saturating_mul(each));
    }
    sum
}

/// Sets the pool size of a plan whose scenario leaves it open to what its delay lines and queues can need at
/// any time of the run, up to a quarter of the machine's `memory` and 4 GiB. If only the delay lines fit into
/// that, the pool has their size; if nothing fits, it keeps the default, which is also the minimum. Memory
/// above the default is only taken when packets need it. Without known `memory`, nothing changes.
pub fn fit_pool(plan: &mut Plan, memory: Option<Bytes>) {
    let (Some(memory), false) = (memory, plan.engine.pool_given) else { return };
    let stages = plan.stages.iter().map(|stage| &*stage.plan);
    let Some(pool) = stages.chain([&*plan]).filter_map(|plan| fitting_pool(plan, memory)).max() else {
        return;
    };
    let pool = plan.engine.pool.max(pool);
    plan.engine.pool = pool;
    plan.stages.iter_mut().for_each(|stage| Arc::make_mut(&mut stage.plan).engine.pool = pool);
}

/// The pool size for what the delay lines and queues of a plan can need, or its delay lines alone, if that
/// fits.
fn fitting_pool(plan: &Plan, memory: Bytes) -> Option<Bytes> {
    let workers = u64::from(plan.engine.workers.max(1));
    let most = (memory.0 / SHARE).min(MOST_DEFAULT) / workers;
    let pricing = price(plan, &Calibration::default());
    let lines = pricing.delay_lines.0;
    let all = pricing.queues.map(|queues| queues.0.saturating_add(lines));
    let pools = all.into_iter().chain([lines]).map(|bytes| bytes.div_ceil(workers));
    pools.filter_map(|pool| pool.checked_next_multiple_of(1 << 20)).find(|pool| *pool <= most).map(Bytes)
}

fn load(plan: &Plan, frame: Bytes) -> Load {
    let mut count = vec![0u128; plan.profiles.len()];
    for link in &plan.links {
        count[link.profile as usize] += 1;
    }
    for medium in &plan.media {
        medium.links.iter().for_each(|&link| count[plan.links[link as usize].profile as usize] -= 1);
    }
    let mut load = Load::default();
    for (profile, links) in plan.profiles.iter().zip(count).filter(|(_, links)| *links > 0) {
        load.add(profile, LinkRates::of(profile, frame), links, frame);
    }
    for medium in &plan.media {
        load.add_shared(plan, medium, frame);
    }
    for (&place, delays) in &plan.changing_delays {
        let profile = plan.profile(place as usize);
        load.hold((delays, profile.delays.held), LinkRates::of(profile, frame).highest, 1, frame);
    }
    load
}

/// Number of frames sent in `time`, rounded up.
fn sent_in(time: Nanos, rate: Rate, frame: Bytes) -> u128 {
    (u128::from(rate.0) * u128::from(time.0)).div_ceil(u128::from(frame.0.max(1)) * 8_000_000_000)
}

impl Load {
    /// Adds `links` links of this pace.
    fn add(&mut self, profile: &Profile, pace: LinkRates, links: u128, frame: Bytes) {
        let LinkRates { rate, highest } = pace;
        if highest == Rate::UNLIMITED {
            self.unlimited = true;
        } else {
            self.packets += links * (u128::from(highest.0) / (u128::from(frame.0.max(1)) * 8));
        }
        self.hold((&profile.delays, Nanos::ZERO), highest, links, frame);
        if rate == Rate::UNLIMITED {
            return;
        }
        let waiting = match queue(profile) {
            Value::Packets(u64::MAX) => {
                self.endless_queue = true;
                0
            }
            Value::Packets(packets) => u128::from(packets),
            Value::Bytes(bytes) => u128::from(bytes.0 / frame.0.max(1)),
            Value::Waiting(time) => sent_in(time, rate, frame),
            _ => 0,
        };
        self.queued = self.queued.saturating_add(links.saturating_mul(waiting));
    }

    /// Adds delays of `links` links that send at this rate, beyond the `known` time that was added before.
    fn hold(&mut self, (delays, known): (&Delays, Nanos), highest: Rate, links: u128, frame: Bytes) {
        self.longest_delay = self.longest_delay.max(delays.held);
        if highest == Rate::UNLIMITED || delays.before_queue {
            self.longest_unlimited = self.longest_unlimited.max(delays.held);
        } else {
            self.delayed += links * sent_in(delays.held.since(known), highest, frame);
        }
    }

    /// Adds links that share a rate: together they send no more than one of them alone, but each has a queue.
    fn add_shared(&mut self, plan: &Plan, medium: &Medium, frame: Bytes) {
        let (packets, delayed) = (self.packets, self.delayed);
        let (mut most_packets, mut most_delayed) = (packets, delayed);
        for &link in &medium.links {
            (self.packets, self.delayed) = (packets, delayed);
            let rate = medium_rate(&medium.values);
            self.add(plan.profile(link as usize), LinkRates { rate, highest: rate }, 1, frame);
            (most_packets, most_delayed) = (most_packets.max(self.packets), most_delayed.max(self.delayed));
        }
        (self.packets, self.delayed) = (most_packets, most_delayed);
    }
}

/// The limit of a profile's queue: its own or the registry's default.
fn queue(profile: &Profile) -> Value {
    let default = || {
        let spec = longwire_link::registry().into_iter().find(|spec| spec.key == "queue")?;
        spec.params[0].read(spec.params[0].default.value()?).ok()
    };
    profile.value("queue").or_else(default).unwrap_or(Value::Packets(0))
}

/// Mean number of links on a path, over all rules that lead over links.
fn hops(plan: &Plan) -> f64 {
    let by_address = plan.address_rules.iter().map(|rule| &rule.route);
    let lengths = by_address.chain(plan.pair_rules.iter().map(|rule| &rule.route));
    let lengths = lengths.map(|route| plan.routes.links(route).len() as u64).filter(|length| *length > 0);
    let (rules, links) = lengths.fold((0u64, 0u64), |(rules, links), length| (rules + 1, links + length));
    if rules == 0 { 0.0 } else { links as f64 / rules as f64 }
}

/// Mean number of routers on the shortest path, over all pairs of hosts and ports that a path joins.
fn routers_passed(plan: &Plan) -> f64 {
    if plan.routers.is_empty() {
        return 0.0;
    }
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); plan.segments.len()];
    let mut outer = vec![0u64; plan.segments.len()];
    for port in &plan.ports {
        if let Some(far) = port.attachment.far() {
            next[port.segment as usize].push(plan.ports[usize::from(far)].segment as usize);
        }
        outer[port.segment as usize] += u64::from(port.attachment.is_outer());
    }
    let costs = |segment: usize| u64::from(plan.segments[segment].router.is_some());
    let (mut pairs, mut passed) = (0, 0);
    for start in (0..outer.len()).filter(|start| outer[*start] > 0).take(MOST_STARTS) {
        let mut least = vec![u64::MAX; outer.len()];
        let mut waiting = VecDeque::from([(costs(start), start)]);
        while let Some((routers, at)) = waiting.pop_front() {
            if routers >= least[at] {
                continue;
            }
            least[at] = routers;
            for &to in &next[at] {
                // Steps without additional cost come first.
                match costs(to) {
                    0 => waiting.push_front((routers, to)),
                    more => waiting.push_back((routers + more, to)),
                }
            }
        }
        for there in (0..outer.len()).filter(|there| least[*there] < u64::MAX) {
            let others = if there == start { outer[there] - 1 } else { outer[there] };
            pairs += outer[start] * others;
            passed += outer[start] * others * least[there];
        }
    }
    if pairs == 0 { 0.0 } else { passed as f64 / pairs as f64 }
}

fn shortfalls(plan: &Plan, calibration: &Calibration, pricing: &Pricing) -> Vec<Shortfall> {
    let mut found = Vec::new();
    let mut add = |what: String, fix: String| found.push(Shortfall { what, fix });
    let workers = u64::from(plan.engine.workers);
    let enlarge = |bytes: Bytes, or: &str| match Bytes(bytes.0.div_ceil(workers)) {
        share if share > LARGEST_POOL => format!("no pool is that large: {or}"),
        share => format!("set pool = \"{}\" in [engine], or {or}", printed(share)),
    };
    if pricing.delay_lines > pricing.pool {
        let what = format!(
            "packets in delay lines need up to {}, the pool has {}",
            printed(pricing.delay_lines),
            printed(pricing.pool)
        );
        add(what, enlarge(pricing.delay_lines, "lower rates or delays"));
    }
    let together = pricing.queues.map(|queues| Bytes(queues.0.saturating_add(pricing.delay_lines.0)));
    // A queue without a limit was configured on purpose.
    if let Some(bytes) = together
        && bytes > pricing.pool
        && pricing.delay_lines <= pricing.pool
    {
        let what = format!(
            "with all queues full, packets need {}, the pool has {}",
            printed(bytes),
            printed(pricing.pool)
        );
        add(what, enlarge(bytes, "shorten the queues"));
    }
    if let (Some(demand), None) = (pricing.demand, calibration.capacity)
        && demand > pricing.capacity
    {
        let what = format!(
            "links at their full rates carry {demand} packets/s of {}, {workers} workers carry {}",
            pricing.frame, pricing.capacity
        );
        let needed = demand.div_ceil((pricing.capacity / workers).max(1));
        add(what, format!("set workers = {needed} in [engine] if the machine has them, or lower the rates"));
    }
    if let Some(memory) = calibration.memory {
        let needed = Bytes(pricing.pool.0.saturating_add(pricing.link_memory.0));
        if needed > memory {
            let what =
                format!("pools and links take {}, the machine has {}", printed(needed), printed(memory));
            add(what, "set a smaller pool in [engine], or make fewer links".into());
        }
    }
    if let Some(processors) = calibration.processors.filter(|n| *n < plan.engine.workers) {
        let what =
            format!("there are {}, but {}", counted(workers, "worker"), counted(processors, "processor"));
        add(what, format!("set workers = {processors} in [engine]"));
    }
    found
}

/// A size rounded up to whole mebibytes, for readability.
fn printed(bytes: Bytes) -> String {
    format!("{} MiB", bytes.0.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priced(text: &str) -> Pricing {
        let hosts = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
            address = \"10.0.0.2/24\"\n";
        let plan = longwire_scenario::plan_of(&format!("{hosts}{text}"));
        price(&plan, &Calibration { frame: Bytes(1000), ..Calibration::default() })
    }

    #[test]
    fn delay_lines_and_queues_by_hand() {
        // 8 Mbit/s · 1 s = 1000 frames of 1000 bytes: 16 lines of 64 bytes and one of metadata each, 1088
        // bytes.
        let pricing = priced(
            "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\ndelay = \"1 s\"\nqueue = \"10 kB\"",
        );
        assert_eq!(pricing.delay_lines, Bytes(1_088_000));
        assert_eq!(pricing.queues, Some(Bytes(10_880)));
        assert_eq!((pricing.demand, pricing.hops, pricing.capacity), (Some(1000), 1.0, 1_250_000));
        assert!(pricing.shortfalls.is_empty(), "{:?}", pricing.shortfalls);
    }

    #[test]
    fn the_path_with_the_fewest_routers_is_taken() {
        // a on r1, and b behind a link on r2: two routers, and a link of each. 700 + 2 · 100 + 2 · 125 ns.
        let port = |name: &str, address: &str| format!("{{ port = \"{name}\", addresses = \"{address}\" }}");
        let (west, east) = (port("r1-east", "10.9.0.1/30"), port("r2-west", "10.9.0.2/30"));
        let pricing = priced(&format!(
            "[[router]]\nname = \"r1\"\nports = [{}, {west}]\n\
             routes = [{{ to = \"10.7.0.0/16\", port = \"a\" }}]\n\
             [[router]]\nname = \"r2\"\nports = [{east}, {}]\n[[link]]\n\
             between = [\"r1-east\", \"r2-west\"]\n\
             [[link]]\nbetween = [\"r2-b\", \"b\"]\n",
            port("a", "10.1.0.1/24"),
            port("r2-b", "10.2.0.1/24"),
        ));
        assert_eq!((pricing.routers, pricing.hops, pricing.routes), (2.0, 1.0, 1));
        assert_eq!(pricing.capacity, 1_000_000_000 / 1150);
    }

    /// Packets of 1000 bytes per second, and how many are in flight and queued: a trace at its highest rate,
    /// though its queue assumes the mean; slots, as many as they release.
    #[test]
    fn every_kind_of_rate_has_its_highest() {
        for (rate, demand, delayed, queued) in [
            ("{ kind = \"trace\", file = \"0 s 8 Mbit/s; 1 s 24 Mbit/s; 2 s end\" }", Some(3000), 300, 200),
            ("{ kind = \"token-bucket\", rate = \"8 Mbit/s\", burst = \"10 kB\" }", Some(1000), 100, 100),
            ("{ kind = \"slotted\", rate = \"8 Mbit/s\", min = \"10 ms\", packets = 10 }", Some(500), 50, 50),
            ("\"unlimited\"", None, 125_000, 0),
        ] {
            let pricing = priced(&format!(
                "[[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"100 ms\"\nqueue = \"100 ms\"\nrate = {rate}"
            ));
            assert_eq!(pricing.demand, demand, "{rate}");
            let packets = |count: u64| Bytes(count * 1088);
            assert_eq!(
                (pricing.delay_lines, pricing.queues),
                (packets(delayed), Some(packets(queued))),
                "{rate}"
            );
        }
    }

    #[test]
    fn reports_what_does_not_fit() {
        let link = |rest: &str| format!("[[link]]\nfrom = \"a\"\nto = \"b\"\n{rest}");
        let table = [
            (
                link("rate = \"1 Gbit/s\"\ndelay = \"10 s\""),
                "delay lines need up to 1297 MiB",
                "\"1297 MiB\"",
            ),
            // An unlimited link carries what the worker receives: 1.25 million packets a second.
            (link("delay = \"1 s\""), "delay lines need up to 1297 MiB", "\"1297 MiB\""),
            (link("rate = \"1 Mbit/s\"\nqueue = \"300000 packets\""), "need 312 MiB", "\"312 MiB\""),
            (
                link("rate = \"300 bit/s\"\nqueue = \"1000000000 packets\""),
                "with all queues full",
                "no pool is that large",
            ),
            (link("rate = \"100 Gbit/s\""), "12500000 packets/s", "workers = 10"),
        ];
        for (text, what, fix) in table {
            let found = priced(&text).shortfalls;
            let told = found.iter().any(|short| short.what.contains(what) && short.fix.contains(fix));
            assert!(told, "{text}: {found:?}");
        }
    }

    /// 1 s at a worker's packet rate, 1.25 million frames of 1514 bytes (1600 in the pool) a second, needs
    /// 1908 MiB; 200 ms need 382 MiB.
    #[test]
    fn a_default_pool_fits() {
        let hosts = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
            address = \"10.0.0.2/24\"\n";
        let pool = |engine: &str, link: &str, memory: u64| {
            let text = format!("{engine}{hosts}[[link]]\nfrom = \"a\"\nto = \"b\"\n{link}");
            let mut plan = longwire_scenario::plan_of(&text);
            fit_pool(&mut plan, (memory > 0).then_some(Bytes(memory << 30)));
            // Otherwise, what joins or leaves would be another pool's.
            assert!(plan.stages.iter().all(|stage| stage.plan.engine.pool == plan.engine.pool), "{link}");
            plan.engine.pool.0 >> 20
        };
        let two = "[engine]\nworkers = 2\n";
        let table = [
            ("", "delay = \"200 ms\"", 16, 382),
            ("", "delay = \"1 s\"", 16, 1908),
            // More than a quarter of the machine, or more than 4 GiB: the default.
            ("", "delay = \"1 s\"", 7, 256),
            ("", "delay = \"10 s\"", 512, 256),
            // All arriving packets are in flight, if the delay precedes the rate.
            (
                "",
                "rate = \"1 Mbit/s\"\nqueue = \"1 packet\"\n\
                 delay = { delay = \"200 ms\", before = \"queue\" }",
                16,
                382,
            ),
            ("", "delay = \"1 s\"", 0, 256),
            ("", "delay = \"1 ms\"", 16, 256),
            // Variable delays use the longest, copies their probability, changes the new values.
            ("", "delay = { delay = \"800 ms\", jitter = \"200 ms\" }", 16, 1908),
            ("", "delay = { kind = \"distribution\", distribution = \"10 ms; 1 s\" }", 16, 1908),
            ("", "delay = { kind = \"trace\", file = \"0 s 1 s; 1 s 10 ms; 2 s 1 ms\" }", 16, 1908),
            ("", "duplicate = { probability = \"50 %\", delay = \"2 s\" }", 16, 1908),
            (
                "",
                "name = \"l\"\ndelay = \"1 ms\"\n[[at]]\ntime = \"1 s\"\nlink = \"l\"\ndelay = \"1 s\"",
                16,
                1908,
            ),
            ("", "delay = \"1 s\"\n[[at]]\ntime = \"1 s\"\nremove = \"a-b\"", 16, 1908),
            (
                "",
                "[[at]]\ntime = \"1 s\"\n\
                 add = { link = { name = \"l\", from = \"b\", to = \"a\", delay = \"200 ms\" } }",
                16,
                382,
            ),
            ("[engine]\npool = \"64 MiB\"\n", "delay = \"1 s\"", 16, 64),
            // A queue of 300000 frames is 458 MiB, two pools have half of that each.
            ("", "rate = \"1 Mbit/s\"\nqueue = \"300000 packets\"", 16, 458),
            (two, "rate = \"1 Mbit/s\"\nqueue = \"600000 packets\"", 16, 458),
            ("", "rate = \"1 Gbit/s\"\ndelay = \"4 s\"\nqueue = \"unlimited\"", 16, 504),
            ("", "rate = \"1 Gbit/s\"\ndelay = \"4 s\"\nqueue = \"9000000 packets\"", 16, 504),
        ];
        for (engine, link, memory, mebibytes) in table {
            assert_eq!(pool(engine, link, memory), mebibytes, "{engine}{link} on {memory} GiB");
        }
    }

    #[test]
    fn the_machine_counts() {
        let plan = longwire_scenario::parse(
            "s.toml",
            "[engine]\nworkers = 4\n[[port]]\nname = \"p\"\ndriver = \"memory\"",
        )
        .unwrap();
        let calibration =
            Calibration { memory: Some(Bytes(1 << 30)), processors: Some(2), ..Calibration::default() };
        let found = price(&plan, &calibration).shortfalls;
        assert_eq!(found.len(), 1, "four pools of 256 MiB just fit: {found:?}");
        assert!(found[0].fix.contains("workers = 2"));
    }
}
