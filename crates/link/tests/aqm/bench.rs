//! A link with a queue discipline, and packets of numbered flows.

use longwire_block::Values;
use longwire_link::{Fifo, LinkConfig, LinkStats, Links, registry};
use longwire_packet::Pool;
use longwire_units::Nanos;
use longwire_wire::{Ecn, ds_field, ecn};

/// ECN fields.
pub const NOT_ECT: u8 = 0;
pub const ECT_1: u8 = 1;
pub const ECT_0: u8 = 2;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// A packet that has left the link.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    pub arrival: u64,
    pub leave: u64,
    pub flow: u16,
    pub number: u64,
    pub marked: bool,
    /// As counted by the rate.
    pub bytes: u64,
}

pub struct Bench {
    pool: Pool,
    links: Links,
    next: u64,
    /// Departures since the last call.
    pub left: Vec<Left>,
}

impl Bench {
    /// A link of `rate` with the queue `kind`.
    pub fn new(kind: &str, given: &[(&str, &str)], rate: &str) -> Self {
        Self::with(("constant", &[("rate", rate)]), (kind, given))
    }

    /// A link with that kind of rate and that kind of queue.
    pub fn with(rate: (&str, &[(&str, &str)]), queue: (&str, &[(&str, &str)])) -> Self {
        Self::with_filter(rate, queue, "")
    }

    /// A link with those, and a filter if there are rules.
    pub fn with_filter(rate: (&str, &[(&str, &str)]), queue: (&str, &[(&str, &str)]), rules: &str) -> Self {
        let add = |config: LinkConfig, key, (kind, given): (&str, &[(&str, &str)])| {
            let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == (key, kind)).unwrap();
            config.with(spec, Values::read(spec, given).unwrap_or_else(|error| panic!("{error}")))
        };
        let mut config = add(add(LinkConfig::default(), "rate", rate), "queue", queue);
        if !rules.is_empty() {
            config = config.with_text("filter", rules).unwrap();
        }
        let mut links = Links::with_capacity(1, 1, Nanos::from_micros(10));
        links.add(0, "test", &config);
        Self { pool: Pool::new(64 << 20).unwrap(), links, next: 0, left: Vec::new() }
    }

    /// Lets a packet of a flow arrive, with DS field `field` and `bytes` counted bytes (64 to 1518). Returns
    /// its number.
    pub fn arrive(&mut self, at: u64, flow: u16, field: u8, bytes: u64) -> u64 {
        self.advance(at);
        let mut frame = vec![0u8; bytes as usize - 4];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[15] = field;
        frame[16..18].copy_from_slice(&(bytes as u16 - 18).to_be_bytes());
        frame[23] = 17;
        frame[34..36].copy_from_slice(&flow.to_be_bytes());
        let handle = self.pool.insert(&frame).unwrap();
        let meta = self.pool.meta_mut(handle);
        (meta.arrival, meta.seq) = (at, self.next);
        self.next += 1;
        let mut out = Fifo::EMPTY;
        self.links.arrive_and_leave(&mut self.pool, 0, handle, &mut out);
        self.collect(out);
        self.next - 1
    }

    /// Gives the link another block at `at`.
    pub fn change(&mut self, at: u64, key: &str, kind: &str, given: &[(&str, &str)]) {
        let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == (key, kind)).unwrap();
        let values = Values::read(spec, given).unwrap();
        self.links.change(&mut self.pool, 0, Nanos(at), &[(spec, values)]).unwrap();
    }

    /// Executes all departures by `until`, each at its time.
    pub fn advance(&mut self, until: u64) {
        while self.deadline() <= until {
            let mut out = Fifo::EMPTY;
            let deadline = Nanos(self.deadline());
            self.links.expire(&mut self.pool, 0, deadline, &mut out);
            self.collect(out);
        }
    }

    /// The time at which the link must be served next.
    pub fn deadline(&mut self) -> u64 {
        self.links.deadline(0).0
    }

    pub fn stats(&mut self, now: u64) -> LinkStats {
        let stats = self.links.stats(&mut self.pool, 0, Nanos(now));
        assert!(stats.is_conserved(), "{stats:?}");
        stats
    }

    /// Drops for a reason.
    pub fn dropped(&mut self, now: u64, reason: &str) -> u64 {
        let stats = self.stats(now);
        stats.drops.iter().find(|(name, _)| *name == reason).map_or(0, |(_, packets)| *packets)
    }

    fn collect(&mut self, mut out: Fifo) {
        while let Some(handle) = out.pop(&self.pool) {
            let (meta, frame) = (*self.pool.meta(handle), self.pool.data(handle));
            assert!(ds_field(frame).is_some());
            self.left.push(Left {
                arrival: meta.arrival,
                leave: meta.leave(),
                flow: u16::from_be_bytes([frame[34], frame[35]]),
                number: meta.seq,
                marked: ecn(frame) == Ecn::Ce,
                bytes: u64::from(meta.len) + 4,
            });
            self.pool.free(handle);
        }
    }
}

/// A flow at a constant rate: its next packet, and the time between two.
#[derive(Debug, Clone, Copy)]
pub struct Steady {
    pub flow: u16,
    pub field: u8,
    pub bytes: u64,
    pub gap: u64,
    pub next: u64,
}

impl Steady {
    /// A flow of `rate` bit/s in packets of `bytes`, whose first packet comes after `start` by a part of
    /// their gap that differs from flow to flow (multiples of the golden ratio).
    pub fn new(flow: u16, field: u8, bytes: u64, rate: u64, start: u64) -> Self {
        let gap = bytes * 8 * SECOND / rate;
        Self {
            flow,
            field,
            bytes,
            gap,
            next: start + u64::from(flow) * 618_033_989 % 1_000_000_000 * gap / 1_000_000_000,
        }
    }
}

/// Lets steady flows arrive until a time.
pub fn send(bench: &mut Bench, flows: &mut [Steady], until: u64) {
    loop {
        let first = flows.iter_mut().min_by_key(|flow| flow.next).unwrap();
        if first.next >= until {
            return bench.advance(until);
        }
        bench.arrive(first.next, first.flow, first.field, first.bytes);
        first.next += first.gap;
    }
}
