//! Traffic through emulated links, counted per link at the far end: in virtual time or on real ports, from
//! the same description.

use crate::Settings;
use crate::ends::Shared;
use crate::meter::Meter;
use crate::trust::{trusted, void};
use longwire_bench::punctual::greeting;
use longwire_bench::world::{BenchHosts, settle_beside};
use longwire_bench::{BenchError, apart, flood, stop_after, world};
use longwire_block::Port;
use longwire_clock::monotonic;
use longwire_engine::Report;
use longwire_packet::{Batch, Pool};
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions, Header};
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_port::driver::source::{Flow, Interval, Model, SourcePort};
use longwire_port::intercepted::InterceptedPort;
use longwire_report::Row;
use longwire_units::Nanos;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;

/// Length of the longest Ethernet frame, without and with FCS, and its bits as counted by a link.
pub(crate) const LONGEST: usize = 1514;
pub(crate) const LONGEST_BITS: u64 = (LONGEST as u64 + 4) * 8;

/// One end: its traffic and its counters.
pub(crate) struct End {
    pub source: Box<dyn Port>,
    pub meter: Meter,
}

/// Pairs of ends, each joined by links.
pub(crate) struct Experiment {
    /// Seed of its blocks.
    pub seed: u64,
    /// The links, as in a scenario.
    pub links: String,
    /// The ends; 0 and 1 are a pair, 2 and 3, and so on.
    pub ends: Vec<End>,
    /// How long the sources send.
    pub time: Nanos,
    /// In real time, arrivals before this are not counted: queues fill, so that a pause of the source does
    /// not affect the link.
    pub settling: Nanos,
    /// How long arrivals are counted after that.
    pub drain: Nanos,
}

/// Results.
pub(crate) struct ExperimentResult {
    /// Arrivals at each end.
    pub meters: Vec<Meter>,
    /// The engine's report.
    pub report: Report,
    /// Frames that the counters missed because they were too slow.
    pub missed: u64,
}

/// First address of this end; the n-th link's packets come from or go to the n-th.
pub(crate) fn base(place: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 10 + place as u8, 0, 0)
}

/// The n-th address from `base` on.
pub(crate) fn nth(base: Ipv4Addr, n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(base.to_bits() + n)
}

/// Hardware address of this end. It is not the interface's own, so that the host's stack ignores the frames.
pub(crate) const fn mac(place: usize) -> [u8; 6] {
    [2, 0x77, 0, 0, 0, place as u8 + 1]
}

/// The other end of the pair.
pub(crate) const fn partner(place: usize) -> usize {
    place ^ 1
}

/// `count` links from the end `from` to its partner, selected by address, each with these keys (lines of a
/// scenario).
pub(crate) fn links(from: usize, count: u32, keys: &str) -> String {
    let to = partner(from);
    let [a, b] = [world::HOSTS[from], world::HOSTS[to]];
    format!(
        "[[link]]\nname = \"{a}{{n}}\"\ncount = {count}\nfirst = 0\nfrom = \"{a}\"\nto = \"{b}\"\n\
         match = [{{ source = \"{{{} + n}}\", destination = \"{{{} + n}}\" }}]\n{keys}\n",
        base(from),
        base(to)
    )
}

/// The plan of a generator at the end `from`: frames of `frame_bytes` without FCS to each of `links`
/// destinations in turn.
pub(crate) fn blast(from: usize, links: u32, frame_bytes: usize) -> BlastPlan {
    let pairs = (0..links).map(|n| (nth(base(from), n), nth(base(partner(from)), n))).collect();
    BlastPlan {
        frame_bytes,
        pairs,
        shuffle: None,
        count: u64::MAX,
        gap: None,
        macs: (mac(partner(from)), mac(from)),
    }
}

/// A generator of `rate` bit/s at the link layer for `time`.
pub(crate) fn paced(plan: BlastPlan, rate: u64, time: Nanos) -> BlastPlan {
    let bits = (plan.frame_bytes as u64 + 4).max(64) * 8;
    let gap = (u128::from(bits) * 1_000_000_000 / u128::from(rate.max(1))).max(1) as u64;
    BlastPlan { gap: Some(Nanos(gap)), count: (time.0 / gap).max(1), ..plan }
}

/// Sends one frame, so that the bridge learns its address, and nothing else.
pub(crate) fn silent(place: usize) -> BlastPlan {
    BlastPlan { gap: Some(Nanos(1)), ..greeting((mac(partner(place)), mac(place))) }
}

/// The port of a plan.
pub(crate) fn generator(place: usize, plan: BlastPlan) -> Result<Box<dyn Port>, BenchError> {
    Ok(Box::new(Blast::new(world::HOSTS[place], plan).map_err(BenchError::not_here)?))
}

/// One flow of numbered packets from end 0: `count` frames of `frame_bytes` without FCS, at this interval.
pub(crate) fn numbered(every: Interval, frame_bytes: usize, count: u64) -> Result<Box<dyn Port>, BenchError> {
    let flow = Flow {
        name: "numbered".into(),
        id: 0,
        destination_mac: mac(1),
        source_mac: mac(0),
        source: (base(0), 1000).into(),
        destination: (base(1), 9).into(),
        model: Model::Cbr { every, size: frame_bytes as u32 },
        start: Nanos::ZERO,
        until: Nanos::NEVER,
        count,
        up: true,
    };
    Ok(Box::new(SourcePort::new(world::HOSTS[0], &[flow], 1, 1)?))
}

impl Experiment {
    /// One link with these keys. `meter` counts what arrives over it while the source sends for `time`,
    /// without settling and draining.
    pub(crate) fn one_way(
        source: Box<dyn Port>,
        meter: Meter,
        keys: &str,
        time: Nanos,
    ) -> Result<Self, BenchError> {
        let ends =
            vec![End { source, meter: Meter::default() }, End { source: generator(1, silent(1))?, meter }];
        let (settling, drain) = (Nanos::ZERO, Nanos::ZERO);
        Ok(Self { seed: 1, links: links(0, 1, keys), ends, time, settling, drain })
    }

    /// Runs it according to the settings. `world` has the test hosts, created on first use.
    pub(crate) fn run(
        self,
        settings: &Settings<'_>,
        world: &mut Hosts,
    ) -> Result<ExperimentResult, BenchError> {
        if settings.simulate { self.simulate() } else { self.on_ports(settings, world) }
    }

    /// The whole scenario.
    fn text(&self) -> String {
        format!("seed = {}\n", self.seed) + &scenario(self.ends.len(), &self.links)
    }

    /// In virtual time, to the end.
    pub(crate) fn simulate(self) -> Result<ExperimentResult, BenchError> {
        let plan = longwire_scenario::parse("validate", &self.text())?;
        let mut ports: Vec<Box<dyn Port>> = Vec::new();
        let mut meters = Vec::new();
        for end in self.ends {
            let meter = Shared::new(end.meter);
            meters.push(meter.clone());
            ports.push(Box::new(InterceptedPort::new(end.source, meter)));
        }
        let built = longwire_assemble::build(&plan, ports, |_| None)?;
        let report = built.setup.simulate(longwire_assemble::TO_THE_END);
        let meters = meters.iter().map(|meter| std::mem::take(&mut *meter.lock())).collect();
        Ok(ExperimentResult { meters, report, missed: 0 })
    }

    /// In real time, on test hosts.
    fn on_ports(self, settings: &Settings<'_>, hosts: &mut Hosts) -> Result<ExperimentResult, BenchError> {
        let text = self.text();
        let world = hosts.world(settings, self.ends.len(), false)?;
        let run = world.start_scenario(&text)?;
        let ((meters, missed), report) = stop_after(run, far_ends(settings, world, self))?;
        Ok(ExperimentResult { meters, report, missed })
    }
}

/// This many hosts with addresses, for a scenario.
pub(crate) fn hosts(count: usize) -> String {
    let hosts = world::HOSTS.into_iter().enumerate().take(count);
    let host = |(place, name): (usize, &str)| {
        format!("[[host]]\nname = \"{name}\"\naddress = \"{}/24\"\n", world::address(place))
    };
    hosts.map(host).collect()
}

/// A scenario of this many ends, in pairs, with these links.
pub(crate) fn scenario(ends: usize, links: &str) -> String {
    let mut text = "[engine]\nwait = \"spin\"\ncpus = [0]\npool = \"256 MiB\"\n".to_owned();
    for pair in 0..ends.div_ceil(2) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "[[bridge]]\nname = \"pair{pair}\"");
    }
    for (place, name) in world::HOSTS.into_iter().enumerate().take(ends) {
        let (pair, network) = (place / 2, base(place));
        let _ = writeln!(
            text,
            "[[port]]\nname = \"{name}\"\ndriver = \"memory\"\nbridge = \"pair{pair}\"\n\
             addresses = \"{network}/16\""
        );
    }
    text + links
}

/// Test hosts that several experiments share.
#[derive(Default)]
pub(crate) struct Hosts(Option<(BenchHosts, usize, bool)>);

impl Hosts {
    /// This many hosts, with or without addresses: the existing ones if they fit, or new ones.
    pub(crate) fn world(
        &mut self,
        settings: &Settings<'_>,
        count: usize,
        addresses: bool,
    ) -> Result<&BenchHosts, BenchError> {
        settings.require_real("this row")?;
        let same = self.0.as_ref().is_some_and(|(_, number, with)| (*number, *with) == (count, addresses));
        if !same {
            // The old ones are removed first: they may have the same names.
            self.0 = None;
            let world = BenchHosts::of(settings.driver, count, addresses)?;
            let world = if addresses { world } else { world.with_packet_options(deep()) };
            self.0 = Some((world, count, addresses));
        }
        self.0.as_ref().map(|(world, ..)| world).ok_or_else(|| BenchError::NotHere("no test hosts".into()))
    }
}

/// Packet socket options for hosts that send complete frames only: rings deep enough that a worker that waits
/// tenths of a second for a processor is late, but loses nothing.
pub(crate) fn deep() -> AfPacketOptions {
    AfPacketOptions { allow_addresses: false, header: Header::Off, slots: Some(16_384) }
}

/// An end on the far side of a wire: a packet socket on the host's own interface.
pub(crate) struct Far {
    port: AfPacket,
    source: Box<dyn Port>,
    meter: Meter,
}

impl Far {
    /// Opens it in this host; `slots` frames may wait to be counted.
    pub(crate) fn open(world: &BenchHosts, place: usize, end: End, slots: u32) -> Result<Self, BenchError> {
        let port = flood::far_end(&world.hosts()[place], slots)?;
        Ok(Self { port, source: end.source, meter: end.meter })
    }

    /// Sends what is due at `now`, relative to the start.
    pub(crate) fn send(&mut self, pool: &mut Pool, now: Nanos) -> Result<(), BenchError> {
        flood::send(&mut *self.source, &mut self.port, pool, now)
    }

    /// Ignores arrivals before `from`.
    pub(crate) fn settle(&mut self, from: Nanos) {
        let meter = std::mem::take(&mut self.meter);
        self.meter = meter.after(from);
    }

    /// Counts received frames.
    pub(crate) fn count(&mut self, pool: &mut Pool) -> Result<(), BenchError> {
        let mut batch = Batch::new();
        self.port.receive(pool, monotonic(), &mut batch)?;
        for &handle in batch.as_slice() {
            let meta = pool.meta(handle);
            self.meter.take(Nanos(meta.arrival), pool.data(handle), meta.wire_len);
            pool.free(handle);
        }
        Ok(())
    }
}

/// The counts of these ends, and the number of frames that they missed.
pub(crate) fn close(far: Vec<Far>) -> (Vec<Meter>, u64) {
    let missed = far.iter().map(|far| far.port.stats().in_missed).sum();
    (far.into_iter().map(|far| far.meter).collect(), missed)
}

/// Frames that may wait at a far end while others are served.
const SLOTS: u32 = 8192;

/// Sends and counts at all far ends, in one thread on the processor that the engine leaves free.
fn far_ends(
    settings: &Settings<'_>,
    world: &BenchHosts,
    experiment: Experiment,
) -> Result<(Vec<Meter>, u64), BenchError> {
    let (end, settling) = (experiment.time + experiment.drain, experiment.settling);
    let ends = experiment.ends.into_iter().enumerate();
    let mut far =
        ends.map(|(place, end)| Far::open(world, place, end, SLOTS)).collect::<Result<Vec<_>, _>>()?;
    apart(move || {
        settle_beside();
        let mut pool = Pool::new(4 << 20)?;
        let begin = monotonic();
        far.iter_mut().for_each(|far| far.settle(begin + settling));
        loop {
            let now = monotonic().since(begin);
            if now > end || settings.stop.load(Ordering::Relaxed) {
                break;
            }
            for far in &mut far {
                // Sources end by themselves; after a pause the last packets are late, but not lost.
                far.send(&mut pool, now)?;
                far.count(&mut pool)?;
            }
        }
        settings.go_on()?;
        Ok(close(far))
    })
}

impl ExperimentResult {
    /// The row, void if the run was not faithful, or packets were lost outside links: then it did not measure
    /// the link.
    pub(crate) fn checked(&self, row: Row) -> Row {
        let row = trusted(row, &self.report);
        if self.missed == 0 {
            return row;
        }
        void(row, format!("{} frames were not counted at the far end: this machine is too slow", self.missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saturated_link_passes_exactly_its_rate() {
        let time = Nanos::from_secs(2);
        let plan = paced(blast(0, 3, LONGEST), 3 * 1_100_000, time);
        let ends = vec![
            End { source: generator(0, plan).unwrap(), meter: Meter::new(base(0), 3) },
            End { source: generator(1, silent(1)).unwrap(), meter: Meter::new(base(1), 3) },
        ];
        let links = links(0, 3, "rate = \"1 Mbit/s\"\nqueue = \"10 packets\"");
        let seen = Experiment { seed: 1, links, ends, time, settling: Nanos::ZERO, drain: Nanos::ZERO }
            .simulate()
            .unwrap();
        assert!(seen.report.is_conserved());
        for link in &seen.meters[1].links {
            // 12 144 bits at 1 Mbit/s take 12 144 µs: 164 packets in 2 s, and those still in the queue.
            assert!((160..190).contains(&link.packets), "{link:?}");
            assert_eq!(link.last.since(link.first).0, (link.packets - 1) * 12_144_000);
        }
    }

    #[test]
    fn a_run_that_lost_packets_elsewhere_voids_its_row() {
        let source = generator(0, silent(0)).unwrap();
        let experiment = Experiment::one_way(source, Meter::default(), "loss = \"0 %\"", Nanos(1)).unwrap();
        let mut seen = experiment.simulate().unwrap();
        let row = || Row::new("x", "packets").expected(1).measured(1).within(0.0);
        let verdict = |seen: &ExperimentResult| crate::trust::sealed(seen.checked(row())).pass;
        assert_eq!(verdict(&seen), Some(true));
        seen.report.ports[0].stats.out_full = 1;
        assert_eq!(verdict(&seen), Some(false), "lost by a port");
        seen.report.ports[0].stats.out_full = 0;
        seen.report.fidelity = Some(longwire_engine::Fidelity {
            faithful: false,
            causes: vec!["late".into()],
            brief: Some("late".into()),
            lateness: longwire_engine::LatenessSummary::default(),
            tunnels: Vec::new(),
        });
        assert_eq!(verdict(&seen), Some(false), "not faithful");
        seen.report.fidelity = None;
        assert_eq!(verdict(&ExperimentResult { missed: 1, ..seen }), Some(false), "not counted");
    }

    #[test]
    fn numbered_packets_are_all_seen() {
        let every = Interval::per_second(8000).unwrap();
        let (source, meter) =
            (numbered(every, LONGEST, 50).unwrap(), Meter::new(base(1), 1).with_sequences());
        let experiment = Experiment::one_way(source, meter, "loss = \"0 %\"", Nanos::ZERO).unwrap();
        let seen = experiment.simulate().unwrap();
        assert_eq!(seen.meters[1].sequences, Some((0..50).collect()));
    }
}
