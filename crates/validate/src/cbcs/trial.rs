//! The paper's machine with one scheduler, and the delays of its packets.

use super::class_of;
use crate::Settings;
use longwire_bench::BenchError;
use longwire_sched::model::{Closed, Departure, Machine, Refill, Seen, Setup, TABLE_7, table_7};
use longwire_sched::{Estimator, PerByte};
use longwire_units::Nanos;
use std::collections::BTreeMap;

/// The paper's machine: engines, their clock, the ports' rate, and what CBCS charges for a byte.
pub(super) const PROCESSORS: u32 = 4;
const CLOCK_MHZ: u32 = 600;
const PORT: u64 = 50_000_000;
const CHARGED_NS: u32 = 80;
/// Table 7: the dearest program in cycles, and the longest packet.
const DEAREST: u64 = 3600;
const LONGEST: u32 = 127;
/// How long delays are measured, and how long before that the machine runs in.
const TIME: Nanos = Nanos(4_000_000_000);
const QUICK: Nanos = Nanos(200_000_000);
const SETTLING: Nanos = Nanos(50_000_000);
/// How many delays of a class a figure shows.
const SHOWN: usize = 250;

/// What the paper leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Open {
    /// Messages in the rings to the processors and to the port.
    pub ring: u32,
    /// The quantum, in tenths of the largest cost that the scheduler can charge.
    pub quantum: u64,
    /// Who sends the packet that takes the place of one that was sent.
    pub drawn: bool,
    /// The estimator's number in [`Estimator::ALL`].
    pub estimator: usize,
    /// Packets inside are the class's own: each flow has as many.
    pub each_its_own: bool,
    /// What a turn of a thread of the scheduler takes, in ns.
    pub step: u64,
}

/// A message for each processor, the least quantum that is not warned of, streams interleaved in turn (an option of the paper's figure 8), the paper's estimator, and threads that
/// take no time.
pub(super) const CHOSEN: Open =
    Open { ring: PROCESSORS, quantum: 10, drawn: false, estimator: 1, each_its_own: false, step: 0 };

/// Delays of a class.
#[derive(Debug, Clone, Default)]
pub(super) struct Delays {
    pub count: u64,
    pub max: f64,
    pub mean: f64,
    pub deviation: f64,
    /// The first ones, in ms, by their number.
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

/// What a run showed.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// By class, in the order of [`TABLE_7`].
    pub delays: Vec<Delays>,
    pub seen: Seen,
    pub time: Nanos,
}

impl Outcome {
    /// Packets inside by Little's law: packets a second times mean delay.
    pub(super) fn inside(&self) -> f64 {
        let measured = self.time.0.saturating_sub(SETTLING.0) as f64;
        self.delays.iter().map(|class| class.count as f64 * class.mean).sum::<f64>() / measured
    }
}

/// The machine of a scheduler; `factor` multiplies what programs take.
pub(super) fn setup(scheduler: &str, factor: u64, open: Open) -> Result<Setup, BenchError> {
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
        budget: DEAREST * factor,
        longest: LONGEST,
        flow_limit: 1024,
        ..longwire_sched::Settings::default()
    };
    let largest = longwire_sched::Scheduler::new(scheduler, &settings).map_err(wrong)?.largest_cost();
    settings.quantum = Nanos((largest.unwrap_or(1) * open.quantum / 10).max(1));
    Ok(Setup {
        scheduler: scheduler.into(),
        settings,
        input_ring: 4096,
        request_ring: open.ring as usize,
        feedback_ring: 64,
        // Figure 4: the second scheduler's queues lie between the processors and the port, and its ring behind them.
        ready_ring: if separate { 4096 } else { open.ring },
        transmit_ring: if separate { open.ring as usize } else { 0 },
        step: Nanos(open.step),
        drop_at_input: false,
        known: Estimator::ALL[open.estimator].1 == Estimator::Exact,
    })
}

/// That the settings of a trial are wrong.
pub(super) fn wrong(error: longwire_sched::SettingsError) -> BenchError {
    BenchError::NotHere(error.to_string())
}

/// Runs so many packets through a scheduler and notes their delays, from the input to the end of the port.
pub(super) fn measure(
    settings: &Settings<'_>,
    scheduler: &str,
    inside: usize,
    open: Open,
) -> Result<Outcome, BenchError> {
    settings.go_on()?;
    let refill = match open {
        Open { each_its_own: true, .. } => Refill::SameFlow,
        Open { drawn: true, .. } => Refill::Drawn,
        _ => Refill::InTurn,
    };
    let mut machine = Machine::new(setup(scheduler, 1, open)?).map_err(wrong)?;
    let mut traffic = Closed::new(table_7(1), inside, refill, 1);
    let mut delays = vec![Vec::new(); TABLE_7.len()];
    let time = settings.choose(TIME, QUICK);
    machine.run(&mut traffic, time, &mut |departure: &Departure| {
        if departure.sent > SETTLING {
            delays[class_of(departure.packet.key)].push(departure.sent.0 - departure.arrived.0);
        }
    });
    Ok(Outcome { delays: delays.iter().map(|class| Delays::of(class)).collect(), seen: machine.seen(), time })
}

/// Runs that several rows are made of.
pub(super) struct Runs<'a> {
    settings: &'a Settings<'a>,
    done: BTreeMap<(&'static str, usize), Outcome>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(settings: &'a Settings<'a>) -> Self {
        Self { settings, done: BTreeMap::new() }
    }

    /// The run of a scheduler with so many packets inside, as [`CHOSEN`].
    pub(super) fn of(&mut self, scheduler: &'static str, inside: usize) -> Result<&Outcome, BenchError> {
        if let std::collections::btree_map::Entry::Vacant(free) = self.done.entry((scheduler, inside)) {
            free.insert(measure(self.settings, scheduler, inside, CHOSEN)?);
        }
        Ok(&self.done[&(scheduler, inside)])
    }

    /// The run, if there has been one.
    pub(super) fn known(&self, scheduler: &'static str, inside: usize) -> Option<&Outcome> {
        self.done.get(&(scheduler, inside))
    }
}
