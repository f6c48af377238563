//! Commands that keep a link up until they are ended: common options and messages.

use crate::record_args::RecordArgs;
use crate::record_warnings::warn_of_new;
use crate::{Json, Outcome, outcome};
use longwire_drivers::HostDriver;
use longwire_run::fitted::fit_pool;
use longwire_run::open_ports::OwnPorts;
use longwire_run::real_run::{RealOptions, RealRun, RealRunOutcome};
use longwire_run::test_hosts::TestHosts;
use longwire_run::{report_text, verdict};
use longwire_rundir::StopSignals;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::time::{Duration, Instant};

/// Options of every such command.
#[derive(Debug, clap::Args)]
pub struct Foreground {
    /// End after this time: 10s, 5min. Default: at Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = run_time)]
    time: Option<Nanos>,

    /// Seed of losses: the same seed loses the same packets.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    records: RecordArgs,

    /// Fail (exit status 1) if the emulation was not faithful, or nothing crossed the link.
    #[arg(long)]
    require_faithful: bool,

    /// Print the whole report at the end.
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,

    /// Print only errors.
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    pub json: Json,
}

/// What the two ends of the links are.
pub enum Wiring {
    /// Hosts, and the driver that wires them.
    Hosts(Box<TestHosts>, HostDriver),
    /// Ports of this process.
    Ports(OwnPorts),
}

/// The longest possible duration, well within the range of the engine's clock, which ends after 584 years.
const LONGEST: Nanos = Nanos::from_secs(100 * 365 * 86_400);
/// Interval between checks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Parses the duration of a run.
pub fn run_time(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error: longwire_units::UnitError| error.to_string())?;
    if time <= LONGEST {
        return Ok(time);
    }
    Err(format!("it is out of range; write at most {LONGEST} (100 years)"))
}

impl Foreground {
    /// Starts the links of `plan` between its ends.
    ///
    /// # Errors
    /// If a port can't be opened, or memory is short; hosts are taken down then.
    pub fn start(&self, name: String, mut plan: Plan, ends: Wiring) -> anyhow::Result<RealRun> {
        fit_pool(&mut plan);
        let (hosts, ports) = match ends {
            Wiring::Hosts(hosts, driver) => {
                plan.hosts.iter_mut().for_each(|host| host.driver = driver);
                (Some(*hosts), OwnPorts::default())
            }
            Wiring::Ports(ports) => (None, ports),
        };
        let records = self.records.options()?;
        RealRun::start(plan, hosts, RealOptions { name, ports, records, ..RealOptions::default() })
    }

    /// Waits for the end: after its time, at a signal, on a request over the control socket, when a worker
    /// fails, or when `over` gives a reason, which is returned.
    pub fn wait(
        &self,
        run: &RealRun,
        signals: &StopSignals,
        mut over: impl FnMut() -> Option<String>,
    ) -> Option<String> {
        let end = self.time.map(|time| Instant::now() + Duration::from_nanos(time.0));
        while signals.came().is_none() && !run.has_ended() {
            let now = Instant::now();
            if end.is_some_and(|end| now >= end) {
                break;
            }
            if let Some(why) = over() {
                outcome::note(&format!("longwire: {why}"));
                return Some(why);
            }
            warn_of_new(run.instance().record_faults());
            let next = end.map_or(LOOK, |end| end.saturating_duration_since(now).min(LOOK));
            if run.stopped().recv_timeout(next).is_ok() {
                break;
            }
        }
        None
    }

    /// Prints the verdict, or the whole report. A run fails that was `over` before the time that was asked
    /// for.
    ///
    /// # Errors
    /// If it can't be printed.
    pub fn report(
        &self,
        command: &str,
        ended: RealRunOutcome,
        own: &[(&str, String)],
        over: Option<String>,
    ) -> anyhow::Result<Outcome> {
        let recorded = ended.recorded.fields();
        let ran = ended.ran();
        let mut report = ran.report();
        command.clone_into(&mut report.command);
        recorded.into_iter().for_each(|(name, value)| report.set(name, value));
        own.iter().for_each(|(key, value)| report.set(*key, value.as_str()));
        if let Some(why) = over {
            report.set("ended_because", why.as_str());
            if let Some(time) = self.time {
                report.fail(format!("it was to last {time}, but {why}"));
            }
        }
        if let Some(fidelity) = &ran.counted.fidelity {
            self.say(&verdict::brief(fidelity));
            if self.require_faithful && !verdict::has_shown_faithful(fidelity) {
                report.fail(verdict::brief(fidelity));
            }
        }
        if self.json.on {
            return outcome::print_report(&report, true);
        }
        if self.verbose {
            outcome::print_with(|out| report_text::write(&report, out))?;
        } else {
            ran.counted.errors.iter().for_each(|error| outcome::note(&format!("longwire: {error}")));
        }
        Ok(Outcome::of(report.pass))
    }

    /// Prints a message on standard error, unless silenced.
    pub fn say(&self, what: &str) {
        if !self.quiet {
            outcome::note(&format!("longwire: {what}"));
        }
    }
}
