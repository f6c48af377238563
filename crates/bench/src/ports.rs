//! 64-byte packets through two real ports: the engine and a bare forwarding loop on the same drivers,
//! alternating.

use crate::flood::{Flood, PATIENCE, description, received};
use crate::measuring::per_second;
use crate::world::{BenchHosts, Driver, with_each_driver};
use crate::{BenchError, Sample, Settings, alongside, stop_after};
use longwire_block::Port;
use longwire_packet::{Batch, Pool};
use longwire_report::Row;
use longwire_units::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Required share of the bare loop's packet rate.
const TARGET_PERCENT: f64 = 90.0;
/// Polling interval for the first frame.
const LOOK: Duration = Duration::from_millis(5);

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    with_each_driver("ports", |driver| compare(settings, driver))
}

fn compare(settings: &Settings<'_>, driver: Driver) -> Result<Vec<Row>, BenchError> {
    let world = BenchHosts::new(driver, false)?;
    let (mut bare, mut engine, mut ports) = (Vec::new(), Vec::new(), String::new());
    // Frames refused by the port's full queue: proof that the generator was faster.
    let mut missed = (0, 0);
    for round in 1..=settings.runs(5) {
        settings.next(&format!("ports: {}, round {round}, bare loop", driver.name()))?;
        let mut open = world.open()?;
        ports = open.iter().map(|port| port.describe()).collect::<Vec<_>>().join("; ");
        bare.push(forward(&mut open, || flooded(settings, &world))?);
        missed.0 += open[0].stats().in_missed;
        drop(open);
        settings.next(&format!("ports: {}, round {round}, engine", driver.name()))?;
        let run = world.start("loss = \"0 %\"")?;
        let (rate, report) = stop_after(run, flooded(settings, &world))?;
        engine.push(rate);
        missed.1 += report.ports[0].stats.in_missed;
        if !report.is_conserved() {
            return Ok(vec![
                Row::new(format!("ports: {}", driver.name()), "").judged(false).note("packets are missing"),
            ]);
        }
    }
    let ratios: Sample = engine.iter().zip(&bare).map(|(engine, bare)| engine / bare * 100.0).collect();
    let name = driver.name();
    let ratios = ratios
        .median_at_least(&format!("ports: {name}, engine of bare loop"), "%", TARGET_PERCENT)
        .extra("bare_missed", missed.0)
        .extra("engine_missed", missed.1)
        .note(
            "the bare loop is the same driver, received and sent at once; the two take turns, frames are \
            counted at the far end",
        )
        .note(description(driver));
    let ratios = if missed.0 == 0 {
        ratios.note(
            "the bare loop kept up with the generator: what is compared is not all that they could carry",
        )
    } else {
        ratios.note(format!(
            "frames the port had to refuse: {} with the bare loop, {} with the engine",
            missed.0, missed.1
        ))
    };
    Ok(vec![
        Sample::from_iter(bare).shown(&format!("ports: {name}, bare loop, 64 bytes"), "pps").note(ports),
        Sample::from_iter(engine).shown(&format!("ports: {name}, engine, 64 bytes"), "pps"),
        ratios,
    ])
}

/// Floods the first port, and measures frames per second at the second.
pub(crate) fn flooded(settings: &Settings<'_>, world: &BenchHosts) -> Result<f64, BenchError> {
    let mut flood = Flood::open(world)?;
    flood.greet()?;
    let ((), rate) = alongside(|stop| flood.run(stop), || measure(settings, world))?;
    Ok(rate)
}

fn measure(settings: &Settings<'_>, world: &BenchHosts) -> Result<f64, BenchError> {
    rate(|| received(world), |time| settings.pause(settings.time(time)))
}

/// Frames per second, from counts and their times. Counting starts some time after the first frame, because
/// forwarding may take a while to start.
fn rate(
    mut received: impl FnMut() -> Result<(u64, Nanos), BenchError>,
    pause: impl Fn(Duration) -> Result<(), BenchError>,
) -> Result<f64, BenchError> {
    let (none, begun) = received()?;
    loop {
        let (now, at) = received()?;
        if now > none {
            break;
        }
        if Duration::from_nanos(at.since(begun).0) > PATIENCE {
            return Err(BenchError::Silent(PATIENCE));
        }
        pause(LOOK)?;
    }
    per_second(received, [Duration::from_millis(500), Duration::from_secs(2)], pause)
}

/// Runs the bare loop during `measure`: frames are forwarded between the two ports, both ways.
pub(crate) fn forward(
    ports: &mut [Box<dyn Port>],
    measure: impl FnOnce() -> Result<f64, BenchError>,
) -> Result<f64, BenchError> {
    let [a, b] = ports else { return Ok(0.0) };
    let forward = |stop: &AtomicBool| -> Result<(), BenchError> {
        longwire_engine::clock::settle_thread(Some(0));
        let mut pool = Pool::new(64 << 20)?;
        let mut batch = Batch::new();
        while !stop.load(Ordering::Relaxed) {
            carry(&mut **a, &mut **b, &mut pool, &mut batch)?;
            carry(&mut **b, &mut **a, &mut pool, &mut batch)?;
        }
        Ok(())
    };
    let ((), rate) = alongside(forward, measure)?;
    Ok(rate)
}

fn carry(
    from: &mut dyn Port,
    to: &mut dyn Port,
    pool: &mut Pool,
    batch: &mut Batch,
) -> Result<(), BenchError> {
    from.receive(pool, longwire_clock::monotonic(), batch)?;
    if !batch.is_empty() {
        to.transmit(pool, batch)?;
        batch.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// 1000 frames per second from `start` on, none before, by a clock that only pauses advance.
    fn seen(start: u64) -> Result<f64, BenchError> {
        let now = Cell::new(0u64);
        let received = || Ok((now.get().saturating_sub(start) / 1_000_000, Nanos(now.get())));
        rate(received, |time| {
            now.set(now.get() + time.as_nanos() as u64);
            Ok(())
        })
    }

    #[test]
    fn nothing_is_counted_before_frames_come_out() {
        for start in [0, 100, 5000, 9000] {
            assert_eq!(seen(start * 1_000_000).unwrap(), 1000.0, "after {start} ms");
        }
        assert!(matches!(seen(11_000_000_000), Err(BenchError::Silent(_))));
    }
}
