//! The paper's machine with one scheduler, and the delays of its packets.

use super::class_of;
use crate::Settings;
use longwire_bench::BenchError;
use longwire_block::Dice;
use longwire_sched::model::{
    ClosedArrivals, Departure, Machine, MachineStats, OpenArrivals, Places, Refill, Setup, TABLE_7, Traffic,
    table_7,
};
use longwire_sched::{Estimator, PerByte};
use longwire_units::Nanos;
use std::collections::BTreeMap;

/// The paper's machine: engines, their clock, the ports' rate, and CBCS's charge per byte.
pub(super) const PROCESSORS: u32 = 4;
const CLOCK_MHZ: u32 = 600;
const PORT: u64 = 50_000_000;
const CHARGED_NS: u32 = 80;
/// Table 7: the most expensive program in cycles, and the longest packet.
const LARGEST_COST: u64 = 3600;
const LONGEST: u32 = 127;
/// Measuring time of delays, and warm-up time before it.
const TIME: Nanos = Nanos(4_000_000_000);
const QUICK: Nanos = Nanos(200_000_000);
const SETTLING: Nanos = Nanos(50_000_000);
/// Number of a class's delays in a figure.
const SHOWN: usize = 250;

/// Arrivals: section 5.1 gives the rate of the media interfaces, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OfferedLoad {
    /// A constant number inside: each departure causes an arrival.
    Inside(usize),
    /// Flow after flow, each packet as soon as its predecessor has been received, at this percentage of the
    /// ports' rate.
    Percent(u64),
}

/// Choices for what the paper leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OpenChoices {
    /// Capacity of the rings to the processors and to the port, in messages.
    pub ring: u32,
    /// The quantum, in tenths of the scheduler's largest charge.
    pub quantum: u64,
    /// Whether the flow of the next packet is drawn at random.
    pub drawn: bool,
    /// Index of the estimator in [`Estimator::ALL`].
    pub estimator: usize,
    /// Whether packets inside are divided equally among flows.
    pub each_its_own: bool,
    /// Duration of a scheduler thread's turn, in ns.
    pub step: u64,
    /// Few buffers: rings 1 and 4 are as short as the others, a flow has room for one packet before the
    /// processors, and the excess is dropped.
    pub tight: bool,
}

/// A message for each processor, the smallest quantum without a warning, streams interleaved in turn (an
/// option of the paper's figure 8), the paper's estimator, and threads that take no time.
pub(super) const CHOSEN: OpenChoices = OpenChoices {
    ring: PROCESSORS,
    quantum: 10,
    drawn: false,
    estimator: 1,
    each_its_own: false,
    step: 0,
    tight: false,
};

/// Delays of a class.
#[derive(Debug, Clone, Default)]
pub(super) struct Delays {
    pub count: u64,
    pub max: f64,
    pub mean: f64,
    pub deviation: f64,
    /// The first ones in ms, with their number.
    pub first: Vec<(f64, f64)>,
}

impl Delays {
    fn of(delays: &[u64]) -> Self {
        let count = delays.len().max(1) as f64;
        let mean = delays.iter().sum::<u64>() as f64 / count;
        let variance = delays.iter().map(|delay| (*delay as f64 - mean).powi(2)).sum::<f64>() / count;
        let shown = delays.iter().take(SHOWN).enumerate();
        Self {
            count: delays.len() as u64,
            max: delays.iter().max().map_or(0.0, |max| *max as f64),
            mean,
            deviation: variance.sqrt(),
            first: shown.map(|(number, delay)| (number as f64, *delay as f64 / 1e6)).collect(),
        }
    }
}

/// Results of a run.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// By class, in the order of [`TABLE_7`].
    pub delays: Vec<Delays>,
    pub stats: MachineStats,
    pub time: Nanos,
    /// Mean number of packets in each place, in the order of [`PLACES`].
    pub places: [f64; 7],
}

/// Places in the machine, as in figures 3 and 4.
pub(super) const PLACES: [&str; 7] = [
    "ring 1",
    "flows' queues",
    "ring 2",
    "processors",
    "ring 4 and the second scheduler's queues",
    "ring 5",
    "port",
];

impl Outcome {
    /// Packets inside by Little's law: packets a second times mean delay.
    pub(super) fn inside(&self) -> f64 {
        (0..self.delays.len()).map(|class| self.inside_of(class)).sum()
    }

    /// Packets of one class inside, by Little's law.
    pub(super) fn inside_of(&self, class: usize) -> f64 {
        let measured = self.time.0.saturating_sub(SETTLING.0) as f64;
        self.delays[class].count as f64 * self.delays[class].mean / measured
    }
}

/// The machine of a scheduler; `factor` multiplies the cost of programs.
pub(super) fn setup(scheduler: &str, factor: u64, open: OpenChoices) -> Result<Setup, BenchError> {
    let separate = scheduler == "separate-drr";
    let mut settings = longwire_sched::Settings {
        processors: PROCESSORS,
        clock_mhz: CLOCK_MHZ,
        port: PerByte::of_rate(PORT),
        charged: PerByte::of_ns(CHARGED_NS),
        quantum: Nanos(1),
        quantum_bytes: (u64::from(LONGEST) * open.quantum / 10).max(1) as u32,
        estimator: Estimator::ALL[open.estimator].1,
        first_estimate: Some(0),
        budget: LARGEST_COST * factor,
        longest: LONGEST,
        flow_limit: if open.tight { 1 } else { 1024 },
        ..longwire_sched::Settings::default()
    };
    let largest =
        longwire_sched::Scheduler::new(scheduler, &settings).map_err(BenchError::not_here)?.largest_cost();
    settings.quantum = Nanos((largest.unwrap_or(1) * open.quantum / 10).max(1));
    Ok(Setup {
        scheduler: scheduler.into(),
        settings,
        input_ring: if open.tight { open.ring as usize } else { 4096 },
        request_ring: open.ring as usize,
        feedback_ring: 64,
        // Figure 4: the second scheduler's queues are between the processors and the port, and its ring is
        // behind them.
        ready_ring: if separate && !open.tight { 4096 } else { open.ring },
        transmit_ring: if separate { open.ring as usize } else { 0 },
        step: Nanos(open.step),
        drop_at_input: open.tight,
        known: Estimator::ALL[open.estimator].1 == Estimator::Exact,
    })
}

/// Sampling interval of the places.
const LOOK: Nanos = Nanos(50_000);

/// Runs packets through a scheduler and records their delays, from the input to the end of the port, and
/// where they wait.
pub(super) fn measure(
    settings: &Settings<'_>,
    scheduler: &str,
    offered: OfferedLoad,
    open: OpenChoices,
) -> Result<Outcome, BenchError> {
    let mut machine = Machine::new(setup(scheduler, 1, open)?).map_err(BenchError::not_here)?;
    let time = settings.choose(TIME, QUICK);
    let mut traffic = traffic(offered, open, time);
    let mut delays = vec![Vec::new(); TABLE_7.len()];
    let (mut places, mut looks) = ([0; 7], 0u64);
    let mut note = |departure: &Departure| {
        if departure.sent > SETTLING {
            delays[class_of(departure.packet.key)].push(departure.sent.0 - departure.arrived.0);
        }
    };
    while machine.now() < time {
        settings.go_on()?;
        machine.run(traffic.as_mut(), (machine.now() + LOOK).min(time), &mut note);
        if machine.now() > SETTLING {
            looks += 1;
            let Places { input, queues, requests, processors, ready, transmit, ports } = machine.places();
            let now = [input, queues, requests, processors, ready, transmit, ports];
            places.iter_mut().zip(now).for_each(|(sum, now)| *sum += now as u64);
        }
    }
    Ok(Outcome {
        delays: delays.iter().map(|class| Delays::of(class)).collect(),
        stats: machine.stats(),
        time,
        places: places.map(|sum| sum as f64 / looks.max(1) as f64),
    })
}

fn traffic(offered: OfferedLoad, open: OpenChoices, time: Nanos) -> Box<dyn Traffic> {
    let flows = table_7(1);
    let inside = match offered {
        OfferedLoad::Inside(inside) => inside,
        OfferedLoad::Percent(percent) => {
            let mut dice = Dice::named(1, "traffic");
            // Bits at the ports' rate in hundredths of a nanosecond, so that nothing is rounded.
            let (mut received, mut packets) = (0, Vec::new());
            for flow in flows.iter().cycle() {
                let packet = flow.packet(&mut dice);
                received += u64::from(packet.bytes) * 8 * (100_000_000_000 / PORT);
                let at = Nanos(received / percent);
                if at > time {
                    break;
                }
                packets.push((at, packet));
            }
            return Box::new(OpenArrivals::new(packets));
        }
    };
    let refill = match open {
        OpenChoices { each_its_own: true, .. } => Refill::SameFlow,
        OpenChoices { drawn: true, .. } => Refill::Drawn,
        _ => Refill::InTurn,
    };
    Box::new(ClosedArrivals::new(flows, inside, refill, 1))
}

/// Runs shared by several rows.
pub(super) struct Runs<'a> {
    settings: &'a Settings<'a>,
    done: BTreeMap<(&'static str, OfferedLoad, OpenChoices), Outcome>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(settings: &'a Settings<'a>) -> Self {
        Self { settings, done: BTreeMap::new() }
    }

    /// The run of a scheduler with this many packets inside, otherwise as [`CHOSEN`].
    pub(super) fn of(&mut self, scheduler: &'static str, inside: usize) -> Result<&Outcome, BenchError> {
        self.under(scheduler, OfferedLoad::Inside(inside), CHOSEN)
    }

    /// The run of a scheduler under any conditions.
    pub(super) fn under(
        &mut self,
        scheduler: &'static str,
        offered: OfferedLoad,
        open: OpenChoices,
    ) -> Result<&Outcome, BenchError> {
        let key = (scheduler, offered, open);
        if let std::collections::btree_map::Entry::Vacant(free) = self.done.entry(key) {
            free.insert(measure(self.settings, scheduler, offered, open)?);
        }
        Ok(&self.done[&key])
    }

    /// The run with this many packets inside, if there was one.
    pub(super) fn known(&self, scheduler: &'static str, inside: usize) -> Option<&Outcome> {
        self.done.get(&(scheduler, OfferedLoad::Inside(inside), CHOSEN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn outcome(scheduler: &str, offered: OfferedLoad, open: OpenChoices) -> Outcome {
        let stop = AtomicBool::new(false);
        measure(&Settings::of_test(&stop), scheduler, offered, open).unwrap()
    }

    #[test]
    fn packets_are_where_littles_law_has_them() {
        for (scheduler, open) in
            [("cbcs", CHOSEN), ("separate-drr", OpenChoices { ring: 16, tight: true, ..CHOSEN })]
        {
            let outcome = outcome(
                scheduler,
                if open.tight { OfferedLoad::Percent(130) } else { OfferedLoad::Inside(56) },
                open,
            );
            let sum: f64 = outcome.places.iter().sum();
            assert!((sum / outcome.inside() - 1.0).abs() < 0.03, "{sum} {}", outcome.inside());
            assert!(open.tight || (sum - 56.0).abs() < 1e-9, "{sum}");
        }
    }

    #[test]
    fn the_ports_rate_is_received_without_a_queue() {
        let outcome = outcome("cbcs", OfferedLoad::Percent(100), CHOSEN);
        let mean = outcome.delays.iter().map(|class| class.mean).sum::<f64>() / 5.0;
        // A packet waits for its predecessor to be sent, and is sent itself: about two packets of 13.5 µs.
        assert!((20e3..32e3).contains(&mean), "{mean}");
        assert_eq!((outcome.stats.dropped_at_input, outcome.stats.refused), (0, 0));
    }
}
