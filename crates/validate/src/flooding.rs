//! A load sent into real ports, at full speed or at a rate, counted by the kernel at the far ends.

use crate::Settings;
use crate::experiment::{End, Far, generator, partner, scenario};
use crate::memory::Load;
use crate::meter::Meter;
use crate::trust::{trusted, whole};
use longwire_bench::flood::received_rate;
use longwire_bench::world::{BenchHosts, settle_beside};
use longwire_bench::{BenchError, alongside, stop_after};
use longwire_clock::monotonic;
use longwire_packet::Pool;
use longwire_report::Row;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

impl Load {
    /// Frames received per second, and the row with the number refused by a port's full queue. It is void if
    /// the engine itself lost packets, or sent paced traffic too late.
    pub(crate) fn flood(
        &self,
        settings: &Settings<'_>,
        world: &BenchHosts,
        row: Row,
    ) -> Result<(f64, u64, Row), BenchError> {
        let run = world.start_scenario(&scenario(world.hosts().len(), &self.links))?;
        let times = [settings.choose(300, 100), settings.choose(1000, 200)].map(Duration::from_millis);
        let measure = || received_rate(world, times, |time| settings.pause(time));
        let measured = self.far_ends(world).and_then(|far| alongside(|stop| send(far, stop), measure));
        let (((), rate), report) = stop_after(run, measured)?;
        let missed = report.ports.iter().map(|port| port.stats.in_missed).sum();
        let row = row.extra("missed", missed);
        // At full speed, lateness is expected.
        let row = if self.rate.is_some() { trusted(row, &report) } else { whole(row, &report) };
        Ok((rate, missed, row))
    }

    /// The far ends that send: the partners of senders one frame each, so that nothing is flooded.
    fn far_ends(&self, world: &BenchHosts) -> Result<Vec<Far>, BenchError> {
        let places = (0..world.hosts().len()).filter(|&place| place.min(partner(place)) < self.ports);
        let open = |place| -> Result<Far, BenchError> {
            let end = End { source: generator(place, self.plan(place))?, meter: Meter::default() };
            Far::open(world, place, end, 64)
        };
        places.map(open).collect()
    }
}

/// Sends from these ends until the flag is set.
fn send(mut far: Vec<Far>, stop: &AtomicBool) -> Result<(), BenchError> {
    settle_beside();
    let mut pool = Pool::new(4 << 20)?;
    let begin = monotonic();
    while !stop.load(Ordering::Relaxed) {
        let now = monotonic().since(begin);
        far.iter_mut().try_for_each(|far| far.send(&mut pool, now))?;
    }
    Ok(())
}
