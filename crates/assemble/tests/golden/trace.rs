//! Runs of a case, and their traces: every packet that enters a link or leaves by a port, and all counters at
//! the end.

use super::cases::Case;
use super::frames::{Frame, frames, takes_frames};
use longwire_assemble::build;
use longwire_block::{Port, Stamp};
use longwire_engine::Report;
use longwire_packet::Meta;
use longwire_port::driver::memory::MemoryPort;
use longwire_scenario::{Plan, parse};
use std::fmt::Write;

/// A packet at a moment. Its bytes are represented by their hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketView {
    pub time: u64,
    pub len: u32,
    pub wire_len: u32,
    pub segments: u16,
    pub gso_size: u16,
    pub checksum: (u8, u16, u16),
    pub bytes: u64,
}

impl PacketView {
    fn of(time: u64, meta: &Meta, frame: &[u8]) -> Self {
        Self {
            time,
            len: meta.len,
            wire_len: meta.wire_len,
            segments: meta.segments,
            gso_size: meta.train().map_or(0, |train| train.gso_size),
            checksum: meta.open_checksum().map_or((0, 0, 0), |(start, offset)| (1, start, offset)),
            bytes: hash(frame),
        }
    }

    fn write(&self, what: &str, text: &mut String) {
        let Self { time, len, wire_len, segments, gso_size, checksum, bytes } = self;
        let (open, start, offset) = checksum;
        writeln!(
            text,
            "{what} at {time}: {len} of {wire_len} bytes, {segments} segments of {gso_size}, checksum {open} \
             {start} {offset}, {bytes:016x}"
        )
        .unwrap();
    }
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Packets that entered links, sorted: packets that enter different links at one moment have no order.
    pub entered: Vec<PacketView>,
    /// Departures by port, in order.
    pub left: Vec<Vec<PacketView>>,
    /// Counters of links, nodes and the whole run.
    pub counted: String,
}

impl Trace {
    /// The trace as text, with a line for each packet and counter.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (port, left) in self.left.iter().enumerate() {
            let what = format!("port {port} sends");
            left.iter().for_each(|view| view.write(&what, &mut text));
        }
        self.entered.iter().for_each(|view| view.write("a link takes in", &mut text));
        text + &self.counted
    }
}

/// A hash of bytes, the same on every machine.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64 ^ 0xcbf2_9ce4_8422_2325;
    let mut add = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    };
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|word| add(u64::from_le_bytes(*word)));
    rest.iter().for_each(|byte| add(u64::from(*byte)));
    hash
}

/// The port by which a packet left, if it did, and what it was.
fn look(view: &crate::support::PacketView<'_>) -> Option<(Option<u16>, PacketView)> {
    let left = view.left.then_some(view.meta.out_port);
    Some((left, PacketView::of(view.time, view.meta, view.frame)))
}

/// The plan of a scenario with `workers` workers; an error if it is refused.
pub fn read(case: &Case, workers: u32) -> Result<Plan, String> {
    let between = if workers == 3 { "shared" } else { "private" };
    let mapping = match workers {
        1 => "single",
        // Half of them, each with one.
        _ if hash(case.name.as_bytes()) >> 32 & 1 == 0 => "parallel",
        _ => "pipeline",
    };
    let engine = format!(
        "[engine]\nworkers = {workers}\nmapping = \"{mapping}\"\nbetween-workers = \"{between}\"\n\
         pool = \"24 MiB\"\n{}\n",
        case.engine
    );
    parse("golden.toml", &format!("{}\n{engine}", case.text)).map_err(|error| error.to_string())
}

/// Runs a case with the plan's workers.
pub fn run(case: &Case, plan: &Plan) -> (Trace, Report) {
    let seen = crate::support::Trace::of(look);
    let mut built = build(plan, ports(plan, frames(plan, &case.name)), |_| seen.observer()).unwrap();
    built.raise_in_line(plan).unwrap();
    let report = built.setup.simulate(case.until);
    let mut trace = Trace { left: vec![Vec::new(); plan.ports.len()], ..Trace::default() };
    for (left, view) in seen.take() {
        match left {
            Some(port) => trace.left[usize::from(port)].push(view),
            None => trace.entered.push(view),
        }
    }
    trace.entered.sort_unstable();
    trace.counted = counted(plan, &report);
    (trace, report)
}

/// Ports with the sources' traffic, and those for the frames.
fn ports(plan: &Plan, frames: Vec<Frame>) -> Vec<Box<dyn Port>> {
    let mut ports = crate::support::source_ports(plan);
    for (place, port) in plan.ports.iter().enumerate() {
        let has_source = plan.sources.iter().any(|source| usize::from(source.in_port) == place);
        if has_source || !takes_frames(plan, port) {
            continue;
        }
        let (inside, mut wire) = MemoryPort::pair(&port.name, Stamp::Source, 1 << 13, 4 << 20);
        for frame in frames.iter().filter(|frame| frame.port == place) {
            assert!(wire.push_with(&frame.bytes, frame.facts), "the ring is too small");
        }
        ports[place] = Box::new(inside);
    }
    ports
}

/// Counters that do not depend on the engine's internals, such as caches and memory.
fn counted(plan: &Plan, report: &Report) -> String {
    let mut text = String::new();
    for link in &report.links {
        let stats = &link.stats;
        let name = &plan.links[link.place as usize].name;
        writeln!(
            text,
            "link {name}: in {} packets {} bytes, out {} packets {} bytes, made {}, consumed {}, steered {}, \
             marked {}, corrupted {}, collisions {}, drops {:?}, queued {} packets {} bytes, travelling {}",
            stats.in_packets,
            stats.in_bytes,
            stats.out_packets,
            stats.out_bytes,
            stats.made_packets,
            stats.consumed_packets,
            stats.steered_packets,
            stats.marked_packets,
            stats.corrupted_packets,
            stats.collisions,
            stats.drops,
            stats.queued_packets,
            stats.queued_bytes,
            stats.travelling_packets
        )
        .unwrap();
    }
    for node in &report.nodes {
        let stats = &node.stats;
        writeln!(
            text,
            "router at port {}: received {}, made {}, forwarded {}, consumed {}, dropped {}, kept {}, errors \
             {}, unmade {}, exceptions {:?}, policed {:?}, neighbours {}, asked {}",
            node.port,
            stats.received,
            stats.made,
            stats.forwarded,
            stats.consumed,
            stats.dropped,
            stats.kept,
            stats.errors,
            stats.unmade,
            stats.exceptions,
            stats.policed,
            stats.neighbours,
            stats.asked
        )
        .unwrap();
        shared(stats, &mut text);
    }
    // Changes that were refused.
    report.errors.iter().for_each(|error| writeln!(text, "{error}").unwrap());
    let flow = &report.flow;
    writeln!(
        text,
        "all: taken {}, made {}, consumed {}, kept {}, sent {}, drops {:?}",
        flow.taken, flow.made, flow.consumed, flow.kept, flow.sent, flow.drops
    )
    .unwrap();
    text
}

/// Counters of a router's processors and of the levels above it.
fn shared(stats: &longwire_block::NodeStats, text: &mut String) {
    if let Some(processors) = &stats.processors {
        writeln!(
            text,
            "  {}: waiting {}, input full {}, queue full {}, table full {}, no room {}, exploded {}",
            processors.scheduler,
            processors.waiting,
            processors.input_full,
            processors.queue_full,
            processors.table_full,
            processors.no_room,
            processors.exploded
        )
        .unwrap();
        for flow in processors.flows.iter().chain([&processors.all]) {
            writeln!(
                text,
                "  flow {} to {}: in {}, out {}, {} bytes, refused {}, consumed {}, abandoned {}, {} ns",
                flow.flow,
                flow.port,
                flow.in_packets,
                flow.out_packets,
                flow.out_bytes,
                flow.refused,
                flow.consumed,
                flow.abandoned,
                flow.processor_ns
            )
            .unwrap();
        }
    }
    for level in &stats.levels {
        writeln!(
            text,
            "  {} {}: up {}, verdicts {}, late {}, returned {}, kept {}, refused {}",
            level.level,
            level.name,
            level.up,
            level.verdicts,
            level.late,
            level.returned,
            level.kept,
            level.refused
        )
        .unwrap();
    }
}
