//! Traffic designed to invalidate cached decisions of a bridge, against the same traffic through a bridge
//! without the cache, alternating, so that both run under the same conditions.

use super::{Case, checked, setup, source, speed};
use crate::punctual::Punctual;
use crate::{BenchError, Sample, Settings, stop_after};
use longwire_block::{Node, Outbox, Port, PortError};
use longwire_engine::{PortLocation, PortSetup, Report};
use longwire_link::LinkConfig;
use longwire_packet::{BATCH, Batch, Pool};
use longwire_port::driver::memory::Blast;
use longwire_port::intercepted::{InterceptedPort, Interceptor};
use longwire_report::Row;
use longwire_router::{Bridge, DEFAULT_AGEING, DEFAULT_STATIONS};
use longwire_units::Nanos;
use std::ops::Range;
use std::time::Duration;

/// Required share of the uncached path's speed.
const TARGET_PERCENT: f64 = 90.0;
/// Number of source addresses in the attacks with many.
const ADDRESSES: u32 = 1_000_000;
/// Offset of a frame's source address.
const SOURCE_MAC: Range<usize> = 6..12;
/// The ports of the bridge: sink, source, and a second source for a moving address.
const PORTS: [u16; 3] = [0, 1, 2];

/// A kind of attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    /// One address alternates between two ports.
    Moving,
    /// Each frame has another of [`ADDRESSES`] addresses.
    Many,
    /// As `Many`, with frames of one fixed station in between.
    EveryOther,
}

const ATTACKS: [(Attack, &str); 3] = [
    (Attack::Moving, "a source address that moves with every packet"),
    (Attack::Many, "a million source addresses"),
    (Attack::EveryOther, "a million source addresses, every other packet"),
];

/// The rows of this bench, over links of `config`.
pub(crate) fn rows(settings: &Settings<'_>, config: &LinkConfig) -> Result<Vec<Row>, BenchError> {
    let case = Case { pool_bytes: 64 << 20, ..Case::new(config, settings.time(Duration::from_millis(250))) };
    ATTACKS.iter().map(|&(attack, name)| row(settings, &case, attack, name)).collect()
}

fn row(settings: &Settings<'_>, case: &Case, attack: Attack, name: &str) -> Result<Row, BenchError> {
    let (mut shares, mut speeds, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..settings.runs(7) {
        settings.next(&format!("engine: {name}"))?;
        let (own, report) = run(settings, case, attack, |bridge| Box::new(bridge))?;
        let (general, other) = run(settings, case, attack, |bridge| Box::new(Forgetful(bridge)))?;
        shares.push(own / general * 100.0);
        speeds.push(general);
        reports.extend([report, other]);
    }
    let general = Sample::from_iter(speeds);
    let row = Sample::from_iter(shares)
        .median_at_least(&format!("engine: {name}, of the general path"), "%", TARGET_PERCENT)
        .extra("general_pps", general.median())
        .note(format!(
            "by turns with the same traffic past a bridge none of whose decisions are remembered: {:.1} ns a \
             packet",
            1e9 / general.median()
        ));
    Ok(checked(row, reports.iter()))
}

/// Packets per second through a bridge that `wrap` makes from a plain one.
fn run(
    settings: &Settings<'_>,
    case: &Case,
    attack: Attack,
    wrap: impl FnOnce(Bridge) -> Box<dyn Node>,
) -> Result<(f64, Report), BenchError> {
    let forge = |port, place| {
        Box::new(InterceptedPort::new(port, ForgedAddresses { attack, place, sent: 0 })) as Box<dyn Port>
    };
    let (mut setup, _) = setup(case, |port| forge(port, PORTS[1]))?;
    let is_moving = attack == Attack::Moving;
    let ports = if is_moving { &PORTS[..] } else { &PORTS[..2] };
    let bridge = wrap(Bridge::new(ports.to_vec(), DEFAULT_AGEING, DEFAULT_STATIONS));
    let worker = &mut setup.workers[0];
    worker.nodes = vec![bridge];
    if is_moving {
        let place = PORTS[2];
        let blast = Blast::new("another source", source(case)).expect("60-byte frames are in range");
        worker.ports.push(PortSetup { place, node: 0, port: forge(Box::new(Punctual::new(blast)), place) });
        setup.map.port_locations.push(PortLocation::single(0, u32::from(place)));
    }
    let run = setup.start();
    let speed = speed(&run.remote(), [case.time; 2], |time| settings.pause(time));
    stop_after(run, speed)
}

/// A bridge whose decisions are not cached: every frame takes the general path.
struct Forgetful(Bridge);

impl Node for Forgetful {
    fn forward(&mut self, pool: &mut Pool, batch: &Batch, out: &mut Outbox) {
        self.0.forward(pool, batch, out);
    }

    fn ports(&self) -> &[u16] {
        self.0.ports()
    }
}

/// Forges the addresses of a source.
struct ForgedAddresses {
    attack: Attack,
    place: u16,
    sent: u32,
}

impl ForgedAddresses {
    /// Source address of the next frame; none for the port's own.
    fn next_address(&mut self) -> Option<[u8; 6]> {
        let number = self.sent;
        self.sent = (number + 1) % (2 * ADDRESSES);
        let other = match self.attack {
            Attack::Moving => return None,
            Attack::Many => number % ADDRESSES,
            Attack::EveryOther if number.is_multiple_of(2) => return None,
            Attack::EveryOther => number / 2,
        };
        let [_, a, b, c] = other.to_be_bytes();
        Some([2, 0, 1, a, b, c])
    }
}

impl Interceptor for ForgedAddresses {
    fn receive(
        &mut self,
        port: &mut dyn Port,
        pool: &mut Pool,
        now: Nanos,
        batch: &mut Batch,
    ) -> Result<(), PortError> {
        let first = batch.len();
        port.receive(pool, now, batch)?;
        for (at, &handle) in batch.as_slice()[first..].iter().enumerate() {
            let address = self.next_address();
            let (meta, line) = pool.head_mut(handle);
            if let Some(address) = address {
                line[SOURCE_MAC].copy_from_slice(&address);
            }
            if self.attack == Attack::Moving {
                // Frames of both ports alternate.
                let earlier = 2 * (BATCH - at) as u64 - u64::from(self.place % 2);
                meta.arrival = now.0.saturating_sub(earlier);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    fn case() -> Case {
        Case { pool_bytes: 16 << 20, ..Case::new(&LinkConfig::default(), Duration::from_millis(5)) }
    }

    fn forged(attack: Attack, place: u16) -> InterceptedPort<ForgedAddresses> {
        let blast = Blast::new("source", source(&case())).unwrap();
        InterceptedPort::new(Box::new(blast), ForgedAddresses { attack, place, sent: 0 })
    }

    /// Source addresses and times of the next batch.
    fn next(port: &mut InterceptedPort<ForgedAddresses>, pool: &mut Pool) -> Vec<([u8; 6], u64)> {
        let mut batch = Batch::new();
        port.receive(pool, Nanos(1_000_000), &mut batch).unwrap();
        let seen = |&handle| {
            let address = pool.data(handle)[SOURCE_MAC].try_into().unwrap();
            (address, pool.meta(handle).arrival)
        };
        let all = batch.as_slice().iter().map(seen).collect();
        pool.free_batch(&batch);
        all
    }

    #[test]
    fn frames_are_forged_as_said() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut ports = [1, 2].map(|place| forged(Attack::Moving, place));
        let [one, other] = [0, 1].map(|at: usize| next(&mut ports[at], &mut pool));
        let mut both = [&one[..], &other].concat();
        both.sort_by_key(|frame| frame.1);
        assert!(both.chunks(2).all(|pair| pair[0].1 < pair[1].1), "in turn");
        assert!(one.iter().all(|frame| frame.0 == other[0].0) && both.len() == 2 * BATCH);
        let distinct = |attack| {
            let mut port = forged(attack, 1);
            let frames = [next(&mut port, &mut pool), next(&mut port, &mut pool)].concat();
            frames.iter().map(|frame| frame.0).collect::<BTreeSet<_>>().len()
        };
        assert_eq!([Attack::Many, Attack::EveryOther].map(distinct), [2 * BATCH, BATCH + 1]);
    }

    #[test]
    fn both_ways_carry_all_attacks_and_lose_none() {
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        for (attack, name) in ATTACKS {
            let row = row(&settings, &case(), attack, name).unwrap();
            assert!(row.measured.as_ref().and_then(|value| value.as_f64()) > Some(0.0), "{row:?}");
            assert_eq!(row.notes.len(), 1, "no packet is missing or dropped: {row:?}");
        }
    }
}
