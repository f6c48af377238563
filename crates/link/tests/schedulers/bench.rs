//! The bench of queue disciplines at a byte per microsecond, with a filter and without ECN.

use crate::aqm::bench::{self, NOT_ECT};
pub use crate::aqm::bench::{Left, MS, SECOND};
use longwire_block::Dice;
use std::ops::{Deref, DerefMut};

/// A byte at 8 Mbit/s.
pub const BYTE: u64 = 1_000;
/// The longest packet here.
pub const LONGEST: u64 = 1518;

pub struct Bench(bench::Bench);

impl Deref for Bench {
    type Target = bench::Bench;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Bench {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Bench {
    /// A link of 8 Mbit/s with the queue `kind`, and a filter if there are rules.
    pub fn new(kind: &str, given: &[(&str, &str)], rules: &str) -> Self {
        Self(bench::Bench::with_filter(("constant", &[("rate", "8 Mbit/s")]), (kind, given), rules))
    }

    /// Lets a packet of a flow arrive with `bytes` counted bytes (64 to 1518).
    pub fn arrive(&mut self, at: u64, flow: u16, bytes: u64) {
        self.0.arrive(at, flow, NOT_ECT, bytes);
    }

    /// Lets packets of random lengths arrive for each of the flows, in turn.
    pub fn fill(&mut self, at: u64, flows: &[u16], packets: usize, dice: &mut Dice) {
        for _ in 0..packets {
            flows.iter().for_each(|&flow| self.arrive(at, flow, 64 + dice.below(LONGEST - 63)));
        }
    }

    /// Changes the queue, after all departures by then.
    pub fn change(&mut self, at: u64, kind: &str, given: &[(&str, &str)]) {
        self.advance(at);
        self.0.change(at, "queue", kind, given);
    }

    /// Bytes of a flow whose last bit was sent from one time to another.
    pub fn bytes(&self, flow: u16, from: u64, to: u64) -> u64 {
        let within = |left: &&Left| left.flow == flow && left.leave > from && left.leave <= to;
        self.left.iter().filter(within).map(|left| left.bytes).sum()
    }
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
