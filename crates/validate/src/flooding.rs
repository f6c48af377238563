//! Frames sent into real ports, at full speed or at a rate, counted by the kernel at the far ends.

use crate::Settings;
use crate::experiment::{End, Far, blast, generator, paced, partner, scenario, silent};
use crate::meter::Meter;
use crate::trust::{trusted, whole};
use longwire_bench::flood::{counted, rate_between};
use longwire_bench::world::{BenchHosts, settle_beside};
use longwire_bench::{BenchError, Ending};
use longwire_clock::monotonic;
use longwire_packet::Pool;
use longwire_port::driver::memory::BlastPlan;
use longwire_report::Row;
use longwire_units::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The traffic.
pub(crate) struct Flood<'a> {
    /// Number of ports that send, each to its partner.
    pub ports: usize,
    pub links_a_port: u32,
    /// Length of the frames with FCS.
    pub size: usize,
    /// The links, as in a scenario.
    pub links: &'a str,
    /// Bits per second into each port; none for full speed.
    pub rate: Option<u64>,
}

impl Flood<'_> {
    /// Frames received per second, and the row with the number refused by a port's full queue. It is void if
    /// the engine itself lost packets, or sent paced traffic too late.
    pub(crate) fn carry(
        &self,
        settings: &Settings<'_>,
        world: &BenchHosts,
        row: Row,
    ) -> Result<(f64, u64, Row), BenchError> {
        let run = world.start_scenario(&scenario(world.hosts().len(), self.links))?;
        let rate = send(world, self.plans(world), || {
            settings.pause(Duration::from_millis(settings.choose(300, 100)))?;
            let before = counted(world)?;
            settings.pause(Duration::from_millis(settings.choose(1000, 200)))?;
            Ok(rate_between(&before, &counted(world)?))
        });
        let report = run.stop();
        let missed = report.ports.iter().map(|port| port.stats.in_missed).sum();
        let row = row.extra("missed", missed);
        // At full speed, lateness is expected.
        let row = if self.rate.is_some() { trusted(row, &report) } else { whole(row, &report) };
        Ok((rate?, missed, row))
    }

    /// The partners of senders send one frame each, so that nothing is flooded.
    fn plans(&self, world: &BenchHosts) -> Vec<(usize, BlastPlan)> {
        let plan = |place: usize| {
            let plan = blast(place, self.links_a_port, self.size - 4);
            match self.rate {
                _ if place >= self.ports => silent(place),
                Some(rate) => BlastPlan { count: u64::MAX, ..paced(plan, rate, Nanos::NEVER) },
                None => plan,
            }
        };
        let places = (0..world.hosts().len()).filter(|&place| place.min(partner(place)) < self.ports);
        places.map(|place| (place, plan(place))).collect()
    }
}

/// Sends while `measure` runs.
fn send<R>(
    world: &BenchHosts,
    plans: Vec<(usize, BlastPlan)>,
    measure: impl FnOnce() -> Result<R, BenchError>,
) -> Result<R, BenchError> {
    let mut far = Vec::new();
    for (place, plan) in plans {
        let end = End { source: generator(place, plan)?, meter: Meter::default() };
        far.push(Far::open(world, place, end, 64)?);
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| -> Result<(), BenchError> {
            settle_beside();
            let mut pool = Pool::new(4 << 20)?;
            let begin = monotonic();
            while !stop.load(Ordering::Relaxed) {
                let now = monotonic().since(begin);
                far.iter_mut().try_for_each(|far| far.send(&mut pool, now))?;
            }
            Ok(())
        });
        let measured = {
            let _ending = Ending(&stop);
            measure()
        };
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.and(measured)
    })
}
