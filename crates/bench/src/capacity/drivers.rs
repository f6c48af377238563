//! Cost of receiving and transmitting a frame by each port driver: every call is timed, in a loop that does
//! nothing else.

use super::Skipped;
use super::drive::FRAME;
use crate::flood::Flood;
use crate::tunnel::{Joined, circle};
use crate::world::{BenchHosts, Driver, require_hosts};
use crate::{BenchError, Sample, Settings, alongside, apart};
use longwire_block::Port;
use longwire_clock::monotonic;
use longwire_packet::{Batch, Pool};
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_prices::{EnginePrices, Price};
use longwire_units::Nanos;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// The longer frame, without FCS.
pub(crate) const LONG: usize = 1514;
/// Batches per time measurement, so that the cost of reading the clock does not matter.
const BATCHES: usize = 64;
/// Timeout for frames.
const PATIENCE: Duration = Duration::from_secs(5);

/// Nanoseconds per frame of receiving and transmitting, for each round. Rounds are short, so that most are
/// not interrupted.
#[derive(Default)]
struct Rounds([Vec<f64>; 2]);

impl Rounds {
    /// Medians of thirds of the rounds; their spread is that of the measurement.
    fn samples(&self) -> [Sample; 2] {
        let third = |values: &[f64]| values.iter().copied().collect::<Sample>().median();
        [&self.0[0], &self.0[1]]
            .map(|values| values.chunks(values.len().div_ceil(3).max(1)).map(third).collect())
    }
}

/// Measures memory ports, and all drivers available here. Others are returned with the reason.
///
/// # Errors
/// If the bench is stopped.
pub(crate) fn measure(
    settings: &Settings<'_>,
    prices: &mut EnginePrices,
) -> Result<Vec<Skipped>, BenchError> {
    memory(settings, prices)?;
    let mut skipped = Vec::new();
    let drivers = Driver::ALL.into_iter().map(|driver| (driver.name(), Some(driver)));
    for (name, driver) in drivers.chain([("tunnel", None)]) {
        let ports = || driver.map_or_else(|| of_tunnel(settings), |driver| of_driver(settings, driver));
        match require_hosts(name).and_then(|()| ports()) {
            Ok([short, long]) => set(prices, name, [&short, &long]),
            Err(BenchError::Stopped) => return Err(BenchError::Stopped),
            Err(why) => skipped.push((name, why.to_string())),
        }
    }
    Ok(skipped)
}

/// Measures memory ports.
///
/// # Errors
/// If the bench is stopped.
pub(crate) fn memory(settings: &Settings<'_>, prices: &mut EnginePrices) -> Result<(), BenchError> {
    settings.next("capacity: ports in memory")?;
    let [short, long] = [FRAME, LONG].map(|bytes| -> Result<Rounds, BenchError> {
        let pairs = vec![(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(11, 0, 0, 1))];
        let plan = BlastPlan { frame_bytes: bytes, pairs, count: u64::MAX, ..BlastPlan::sink() };
        let blast = |plan| Blast::new("memory", plan).expect("60 and 1514 bytes are in range");
        let mut ports = [Box::new(blast(plan)) as Box<dyn Port>, Box::new(blast(BlastPlan::sink()))];
        rounds(&mut ports, settings.time(Duration::from_millis(500)), || settings.go_on())
    });
    set(prices, "memory", [&short?, &long?]);
    Ok(())
}

/// Sends frames of both lengths through two ports of a driver on the first processor; the generator has the
/// last one.
fn of_driver(settings: &Settings<'_>, driver: Driver) -> Result<[Rounds; 2], BenchError> {
    let world = BenchHosts::new(driver, false)?;
    let of = |bytes: usize| -> Result<Rounds, BenchError> {
        settings.next(&format!("capacity: {}, {bytes} bytes", driver.name()))?;
        let mut ports = world.open()?;
        let mut flood = Flood::open(&world)?.with_frames_of(bytes);
        let timed = || on_first_processor(settings, &mut ports);
        let ((), rounds) = alongside(|stop| flood.run(stop), timed)?;
        Ok(rounds)
    };
    Ok([of(FRAME)?, of(LONG)?])
}

/// Sends frames of both lengths round a tunnel on the first processor.
fn of_tunnel(settings: &Settings<'_>) -> Result<[Rounds; 2], BenchError> {
    let joined = Joined::new()?;
    let of = |bytes: usize| -> Result<Rounds, BenchError> {
        settings.next(&format!("capacity: tunnel, {bytes} bytes"))?;
        on_first_processor(settings, &mut circle(settings, &joined, bytes)?)
    };
    Ok([of(FRAME)?, of(LONG)?])
}

fn on_first_processor(settings: &Settings<'_>, ports: &mut [Box<dyn Port>]) -> Result<Rounds, BenchError> {
    apart(|| {
        longwire_engine::clock::settle_thread(Some(0));
        rounds(ports, settings.time(Duration::from_millis(1500)), || settings.go_on())
    })
}

/// Times receiving at the first port and transmitting at the second.
fn rounds(
    ports: &mut [Box<dyn Port>],
    time: Duration,
    go_on: impl Fn() -> Result<(), BenchError>,
) -> Result<Rounds, BenchError> {
    let [from, to] = ports else { return Ok(Rounds::default()) };
    let mut pool = Pool::new(16 << 20)?;
    let mut batch = Batch::new();
    let mut rounds = Rounds::default();
    let begun = Instant::now();
    let mut last = begun;
    while begun.elapsed() < time || rounds.0[0].is_empty() {
        go_on()?;
        let (mut spent, mut frames) = ([0u64; 2], 0);
        let mut batches = 0;
        while batches < BATCHES {
            let begin = monotonic();
            from.receive(&mut pool, begin, &mut batch)?;
            let middle = monotonic();
            if batch.is_empty() {
                if last.elapsed() > PATIENCE {
                    return Err(BenchError::Silent(PATIENCE));
                }
                continue;
            }
            to.transmit(&mut pool, &batch)?;
            let end = monotonic();
            let took = |from: Nanos, to: Nanos| to.since(from).0;
            spent = [spent[0] + took(begin, middle), spent[1] + took(middle, end)];
            frames += batch.len();
            batches += 1;
            batch.clear();
        }
        last = Instant::now();
        for (list, spent) in rounds.0.iter_mut().zip(spent) {
            list.push(spent as f64 / frames.max(1) as f64);
        }
    }
    Ok(rounds)
}

/// Sets the price of a frame of length 0 and the price per byte.
fn set(prices: &mut EnginePrices, driver: &str, [short, long]: [&Rounds; 2]) {
    for ((what, short), long) in ["receive", "transmit"].into_iter().zip(short.samples()).zip(long.samples())
    {
        let byte = ((long.median() - short.median()) / (LONG - FRAME) as f64).max(0.0);
        let price = |sample: f64| super::picoseconds(sample - byte * FRAME as f64);
        let [median, least, most] = [short.median(), short.least(), short.most()].map(price);
        prices.set(&format!("{driver}-{what}"), Price { median, least, most });
        prices.set(&format!("{driver}-{what}-byte"), Price::exact(super::picoseconds(byte)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bytes_price_is_what_long_frames_cost_more() {
        let of = |receive: f64, transmit: f64| Rounds([vec![receive; 9], vec![transmit; 9]]);
        let mut prices = EnginePrices::default();
        set(&mut prices, "tap", [&of(130.0, 80.0), &of(1584.0, 70.0)]);
        let read = ["receive", "receive-byte", "transmit", "transmit-byte"]
            .map(|what| prices.price(&format!("tap-{what}")));
        assert_eq!(read, [70_000, 1_000, 80_000, 0]);
    }
}
