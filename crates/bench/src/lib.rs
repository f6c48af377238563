//! Longwire's performance on this machine: each bench prints its best run beside its target, with median and
//! spread.
//!
//! Machines are shared, so benches repeat, alternate what they compare, and show the spread of the runs. What
//! can't run here (privileges, memory) gives a row that says so and is not judged.
#![forbid(unsafe_code)]

mod alloc;
mod aqm;
mod bare;
mod blocks;
pub mod calibrate;
pub mod capacity;
pub mod carry;
mod carry_ports;
mod delay;
pub mod engine;
mod exact;
mod files;
pub mod flood;
pub mod guest;
mod installing;
pub mod latency;
mod lateness;
mod machine_memory;
pub mod mapping;
mod measuring;
mod memory;
mod peers;
mod ports;
pub mod punctual;
pub mod punt;
mod rate;
pub mod rig;
pub mod router_ports;
mod routing;
mod sample;
mod sched;
mod simulated;
mod straight;
mod sweep;
mod tcp;
mod tunnel;
pub mod world;

pub use guest::play_control_process;
pub use measuring::{
    alongside, apart, joined, pause, processors, receiving_by, require_two_processors, stop_after,
};
pub use sample::Sample;

use longwire_report::Row;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;

/// Settings of benches.
pub struct Settings<'a> {
    /// Number of repetitions; none for the usual number.
    pub runs: Option<u32>,
    /// Shorter and fewer runs: shows that a bench works, not the machine's performance.
    pub quick: bool,
    /// Receives progress messages.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// Stops the bench soon after it is set.
    pub stop: &'a AtomicBool,
}

/// Reason why a bench failed.
#[derive(Debug, Error)]
pub enum BenchError {
    /// It was stopped.
    #[error("stopped")]
    Stopped,
    /// It can't run on this machine. This is not a failure.
    #[error("{0}")]
    NotHere(String),
    /// Memory for packets is lacking.
    #[error(transparent)]
    Pool(#[from] longwire_packet::PoolError),
    /// A port can't be opened.
    #[error(transparent)]
    Port(#[from] longwire_port::OpenError),
    /// A port can't be opened through AF_XDP.
    #[error(transparent)]
    AfXdp(#[from] longwire_port::driver::af_xdp::AfXdpError),
    /// A port failed while it was used.
    #[error(transparent)]
    PortFailed(#[from] longwire_block::PortError),
    /// Test hosts can't be created.
    #[error(transparent)]
    Lab(#[from] longwire_lab::LabError),
    /// Frames were sent, but none arrived.
    #[error("no frame has come out within {0:?}")]
    Silent(Duration),
    /// The traffic could not be measured.
    #[error(transparent)]
    Traffic(#[from] longwire_lab::traffic::Error),
    /// A bench's scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] longwire_scenario::ScenarioError),
    /// The engine can't be built.
    #[error(transparent)]
    Build(#[from] longwire_assemble::BuildError),
    /// The ports of a run in virtual time can't be opened.
    #[error("{0:#}")]
    Virtual(#[from] anyhow::Error),
    /// The engine does not answer.
    #[error(transparent)]
    Engine(#[from] longwire_engine::RemoteError),
    /// The specification of a test flow is invalid.
    #[error(transparent)]
    Flow(#[from] longwire_port::driver::source::FlowError),
    /// Settings of a link are invalid.
    #[error(transparent)]
    Link(#[from] longwire_block::SpecError),
    /// Settings of a router are invalid.
    #[error(transparent)]
    Router(#[from] longwire_router::RouterError),
    /// A route is invalid.
    #[error(transparent)]
    Route(#[from] longwire_router::RouteError),
    /// A prefix is invalid.
    #[error(transparent)]
    Prefix(#[from] longwire_router::prefix::PrefixError),
    /// A program of a bench is refused.
    #[error(transparent)]
    Prepare(#[from] longwire_router::PrepareError),
    /// A program of a bench does not fit.
    #[error(transparent)]
    Install(#[from] longwire_router::InstallError),
    /// The assembly of a program is invalid.
    #[error(transparent)]
    Assembly(#[from] longwire_program::AssemblyError),
    /// An object can't be parsed.
    #[error(transparent)]
    Object(#[from] longwire_program::ObjectError),
    /// The listener for control processes failed.
    #[error(transparent)]
    Listener(#[from] longwire_punt::ListenerError),
    /// An external program or configuration tool failed.
    #[error("{command}: {reason}")]
    Tool {
        /// Its command line.
        command: String,
        /// Its error message.
        reason: String,
    },
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

impl BenchError {
    /// The error of something that this machine lacks, which is not a failure.
    pub fn not_here(why: impl ToString) -> Self {
        Self::NotHere(why.to_string())
    }

    /// The error of something that should not fail.
    pub fn failed(doing: &'static str, why: impl ToString) -> Self {
        Self::System { doing, source: std::io::Error::other(why.to_string()) }
    }

    /// Makes the error of a failed system call.
    pub fn system(doing: &'static str) -> impl Fn(std::io::Error) -> Self + Copy {
        move |source| Self::System { doing, source }
    }
}

type Bench = fn(&Settings<'_>) -> Result<Vec<Row>, BenchError>;

/// The benches with what they measure, in the order in which `all` runs them.
const BENCHES: &[(&str, &str, Bench)] = &[
    ("exact", "packets' times in virtual time against the formula", exact::rows),
    ("alloc", "allocations on the packet path", alloc::rows),
    ("engine", "packets a second, memory to memory", engine::rows),
    ("mapping", "one worker against two, in parallel and as a pipeline", mapping::rows),
    ("virtual", "packets a second in virtual time, one worker against two", simulated::rows),
    ("sweep", "time for a thousand runs of a dumbbell in virtual time", sweep::rows),
    ("blocks", "what each block of a link costs", blocks::rows),
    ("capacity", "what scenarios take of a core, as predicted and as measured", capacity::rows),
    ("sched", "what schedulers of processors and ports cost", sched::rows),
    ("memory", "memory of waiting packets", memory::rows),
    ("router", "a router alone: minimal IP, programs, and the time that is promised", routing::rows),
    ("router-ports", "a router between eight real ports", router_ports::rows),
    ("punt", "packets a second to services and control processes, and back", punt::rows),
    ("lateness", "lateness inside the engine", lateness::rows),
    ("ports", "packets a second between real ports, against a bare loop", ports::rows),
    ("tunnel", "frames a second through a tunnel, against bare UDP, and the error of a delay", tunnel::rows),
    ("tcp", "bulk TCP through an unlimited link", tcp::rows),
    ("aqm", "TCP behind queues that drop or mark early", aqm::rows),
    ("delay", "error of one-way delays on real ports", delay::rows),
    ("rate", "error of bandwidths on real ports", rate::rows),
    ("peers", "other forwarders and emulators of this machine beside Longwire", peers::rows),
];

/// The names of the benches and what each measures.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    BENCHES.iter().map(|&(name, what, _)| (name, what))
}

/// Runs the bench `name`; none if there is none of this name. A failing bench gives a failed row with the
/// reason.
pub fn run(name: &str, settings: &Settings<'_>) -> Option<Vec<Row>> {
    let (name, what, bench) = *BENCHES.iter().find(|bench| bench.0 == name)?;
    (settings.say)(name);
    Some(
        bench(settings).unwrap_or_else(|error| vec![Settings::could_not(&format!("{name}: {what}"), &error)]),
    )
}

impl Settings<'_> {
    /// Number of repetitions, `usual` by default.
    fn runs(&self, usual: u32) -> u32 {
        self.runs.unwrap_or(if self.quick { 1 } else { usual }).max(1)
    }

    /// Measuring time, `usual` by default.
    fn time(&self, usual: Duration) -> Duration {
        if self.quick { usual / 5 } else { usual }
    }

    /// Announces the next step.
    ///
    /// # Errors
    /// If the bench is stopped.
    fn next(&self, what: &str) -> Result<(), BenchError> {
        (self.say)(what);
        self.go_on()
    }

    fn go_on(&self) -> Result<(), BenchError> {
        if self.stop.load(Ordering::Relaxed) { Err(BenchError::Stopped) } else { Ok(()) }
    }

    /// What `measure` returns each time, announced as `what`: `usual` times by default.
    fn repeat<T, C: FromIterator<T>>(
        &self,
        usual: u32,
        what: &str,
        mut measure: impl FnMut() -> Result<T, BenchError>,
    ) -> Result<C, BenchError> {
        let once = |_| {
            self.next(what)?;
            measure()
        };
        (0..self.runs(usual)).map(once).collect()
    }

    /// Waits for this time.
    fn pause(&self, time: Duration) -> Result<(), BenchError> {
        pause(time, || self.go_on())
    }

    /// The row of a bench that gave no number.
    fn could_not(name: &str, error: &BenchError) -> Row {
        match error {
            BenchError::NotHere(why) => Row::new(name, "").measured("not run").note(why.clone()),
            error => Row::new(name, "").measured("failed").note(error.to_string()).judged(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_unknown_ones_are_refused() {
        let names: Vec<_> = names().map(|(name, _)| name).collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(true) };
        assert!(run("none", &settings).is_none());
    }

    #[test]
    fn what_cannot_run_is_not_judged_and_what_fails_is() {
        let here = Settings::could_not("x", &BenchError::NotHere("needs root".into()));
        assert_eq!((here.pass, here.notes.len()), (None, 1));
        assert_eq!(Settings::could_not("x", &BenchError::Stopped).pass, Some(false));
    }
}
