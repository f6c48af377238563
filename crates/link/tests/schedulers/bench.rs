//! A link of a byte per microsecond, and packets of numbered flows: the flow is the UDP source port.

use longwire_block::{Dice, Values};
use longwire_link::{Fifo, LinkConfig, LinkStats, Links, registry};
use longwire_packet::Pool;
use longwire_units::Nanos;

/// A byte at 8 Mbit/s.
pub const BYTE: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;
/// The longest packet here.
pub const LONGEST: u64 = 1518;

/// A packet that has left the link.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    pub arrival: u64,
    pub leave: u64,
    pub flow: u16,
    /// As counted by the rate.
    pub bytes: u64,
}

pub struct Bench {
    pool: Pool,
    links: Links,
    pub left: Vec<Left>,
}

impl Bench {
    /// A link of 8 Mbit/s with the queue `kind`, and a filter if there are rules.
    pub fn new(kind: &str, given: &[(&str, &str)], rules: &str) -> Self {
        let mut config = LinkConfig::default().with_text("rate", "8 Mbit/s").unwrap();
        if !rules.is_empty() {
            config = config.with_text("filter", rules).unwrap();
        }
        let (spec, values) = queue(kind, given);
        let mut links = Links::with_capacity(1, 1, Nanos::from_micros(10));
        links.add(0, "test", &config.with(spec, values));
        Self { pool: Pool::new(64 << 20).unwrap(), links, left: Vec::new() }
    }

    /// Lets a packet of a flow arrive with `bytes` counted bytes (64 to 1518).
    pub fn arrive(&mut self, at: u64, flow: u16, bytes: u64) {
        self.advance(at);
        let mut frame = vec![0u8; bytes as usize - 4];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(bytes as u16 - 18).to_be_bytes());
        frame[23] = 17;
        frame[34..36].copy_from_slice(&flow.to_be_bytes());
        let handle = self.pool.insert(&frame).unwrap();
        self.pool.meta_mut(handle).arrival = at;
        let mut out = Fifo::EMPTY;
        self.links.arrive_and_leave(&mut self.pool, 0, handle, &mut out);
        self.collect(out);
    }

    /// Lets packets of random lengths arrive for each of the flows, in turn.
    pub fn fill(&mut self, at: u64, flows: &[u16], packets: usize, dice: &mut Dice) {
        for _ in 0..packets {
            flows.iter().for_each(|&flow| self.arrive(at, flow, 64 + dice.below(LONGEST - 63)));
        }
    }

    /// Executes all departures by `until`, each at its time.
    pub fn advance(&mut self, until: u64) {
        while self.links.deadline(0) <= Nanos(until) {
            let deadline = self.links.deadline(0);
            let mut out = Fifo::EMPTY;
            self.links.expire(&mut self.pool, 0, deadline, &mut out);
            self.collect(out);
        }
    }

    pub fn change(&mut self, at: u64, kind: &str, given: &[(&str, &str)]) {
        self.advance(at);
        self.links.change(&mut self.pool, 0, Nanos(at), &[queue(kind, given)]).unwrap();
    }

    pub fn stats(&mut self, now: u64) -> LinkStats {
        let stats = self.links.stats(&mut self.pool, 0, Nanos(now));
        assert!(stats.is_conserved(), "{stats:?}");
        stats
    }

    /// Bytes of a flow whose last bit was sent from one time to another.
    pub fn bytes(&self, flow: u16, from: u64, to: u64) -> u64 {
        let within = |left: &&Left| left.flow == flow && left.leave > from && left.leave <= to;
        self.left.iter().filter(within).map(|left| left.bytes).sum()
    }

    fn collect(&mut self, mut out: Fifo) {
        while let Some(handle) = out.pop(&self.pool) {
            let (meta, frame) = (*self.pool.meta(handle), self.pool.data(handle));
            self.left.push(Left {
                arrival: meta.arrival,
                leave: meta.leave(),
                flow: u16::from_be_bytes([frame[34], frame[35]]),
                bytes: u64::from(meta.len) + 4,
            });
            self.pool.free(handle);
        }
    }
}

fn queue(kind: &str, given: &[(&str, &str)]) -> (&'static longwire_block::Spec, Values) {
    let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == ("queue", kind)).unwrap();
    (spec, Values::read(spec, given).unwrap_or_else(|error| panic!("{error}")))
}

/// Lets `loads[n]` packets of 1000 bytes (a millisecond of transmission each) of flow n arrive in each 10 ms,
/// until a time.
pub fn offer(bench: &mut Bench, loads: &[u64], until: u64) {
    for start in (0..until).step_by(10 * MS as usize) {
        for slot in 0..20 {
            for (flow, &load) in loads.iter().enumerate() {
                // Evenly over the 10 ms: by this slot, its proportion of them.
                let due = |slot: u64| load * slot / 20;
                for _ in due(slot)..due(slot + 1) {
                    bench.arrive(start + slot * MS / 2, flow as u16, 1000);
                }
            }
        }
    }
    bench.advance(until);
}
