//! `longwire run`

use crate::browser::Browser;
use crate::foreground::run_time;
use crate::progress::Progress;
use crate::record_args::RecordArgs;
use crate::record_warnings::{warn_of_new, watched};
use crate::{Json, Outcome, outcome};
use anyhow::Context;
use longwire_control::{Instance, WebAddress};
use longwire_lab::{CommandRole, has_reader, keep_for};
use longwire_run::comparison::{StartSetting, with_settings};
use longwire_run::fitted::fit_pool;
use longwire_run::live_lines::LiveLines;
use longwire_run::objects::sources::why_silent;
use longwire_run::port_files::{PortFile, PortFiles};
use longwire_run::real_run::{RealOptions, RealRun, instance_name};
use longwire_run::records::RecordSummary;
use longwire_run::report_text;
use longwire_run::run_report::ReportInput;
use longwire_run::test_hosts::{TestHosts, gain_privileges};
use longwire_run::virtual_run::simulate;
use longwire_rundir::StopSignals;
use longwire_scenario::Plan;
use longwire_terminal::{InstanceOwner, OfProcess, ViewEnd};
use longwire_units::Nanos;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Run a scenario, in real time or in virtual time
///
/// In real time Longwire makes the scenario's test hosts, opens its interfaces and carries the packets of
/// programs. With --virtual it runs on captures and on the scenario's traffic sources, as fast as the machine
/// can, with exact times. Both end with a report of what each link and port carried and dropped, and how
/// faithful the emulation was. A run in real time whose report (--json) goes to a pipe ends with its reader.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire run scenarios/two-hosts.toml --virtual
  longwire run scenarios/virtual-pcap.toml --virtual --input ground=in.pcap --output space=out.pcapng
  longwire run scenarios/dumbbell.toml --virtual --for 1s --json
  longwire run scenarios/dumbbell.toml --virtual --seed 7 --set bottleneck.rate=10mbit
  longwire run scenarios/two-hosts.toml
  longwire run scenarios/two-hosts.toml --web
  longwire run scenarios/two-hosts.toml --for 30s --name test --record arrivals.pcapng
  longwire run scenarios/two-hosts.toml --virtual --log run.lwlog --series run.csv --every 10ms
  longwire run scenarios/dumbbell.toml --log drops.pcapng --log-links 'core*' --file-size 100MB")]
pub struct Args {
    /// The scenario file.
    scenario: PathBuf,

    /// Use the simulated clock: nothing but files is touched.
    #[arg(long, conflicts_with = "record")]
    r#virtual: bool,

    /// End after this time: 10s, 500ms. Default in virtual time: until no events are left.
    #[arg(long = "for", value_name = "TIME", value_parser = run_time)]
    time: Option<Nanos>,

    /// Use this seed instead of the scenario's.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Begin with this setting instead of the scenario's; repeatable. Objects and settings are named as for
    /// longwire ctl set: bottleneck.rate=10mbit, up.forward.loss=1%, 'access-*.delay=5ms', video.rate=2mbit.
    #[arg(long = "set", value_name = "OBJECT.SETTING=VALUE")]
    settings: Vec<StartSetting>,

    /// Take PORT's input from a capture (pcap or pcapng); repeatable. All inputs count from the first frame
    /// of the earliest one, a recording of longwire run from the start of that run.
    #[arg(long = "input", value_name = "PORT=FILE")]
    inputs: Vec<PortFile>,

    /// Write PORT's output to a capture (pcapng if its name ends so, else pcap); repeatable.
    #[arg(long = "output", value_name = "PORT=FILE", group = "records")]
    outputs: Vec<PortFile>,

    /// The name of this run, for longwire ctl and longwire lab. Default: the scenario's.
    #[arg(long, conflicts_with = "virtual")]
    name: Option<String>,

    #[command(flatten)]
    records: RecordArgs,

    /// Serve the dashboard and the API at http://127.0.0.1:8399/, another port if that is taken, or ADDRESS:
    /// a port, or an address of this machine and a port. Every user of this machine can reach it. On a
    /// desktop the browser shows it, unless the run is root's, --quiet or --json.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, conflicts_with = "virtual")]
    web: Option<Option<WebAddress>>,

    /// Fail (exit status 1) if the run was not faithful.
    #[arg(long)]
    require_faithful: bool,

    /// Show no live display.
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    json: Json,
}

impl Args {
    /// Runs the scenario and prints the report.
    ///
    /// # Errors
    /// A mistake in the scenario, ports that can't be opened, a full packet pool.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let mut plan = longwire_scenario::load(&self.scenario)?;
        if self.seed.is_some() || !self.settings.is_empty() {
            plan = with_settings(&plan, self.seed, &self.settings)?;
        }
        fit_pool(&mut plan);
        outcome::print_notes(&plan);
        self.silence_sources(&mut plan);
        if self.r#virtual {
            if self.records.options()?.observes() {
                // The result is the same, and events have one order.
                plan.engine.workers = 1;
            }
            return self.run_virtual(&Arc::new(plan));
        }
        self.run_real(plan)
    }

    /// Frames from the command line replace the traffic sources of their port.
    fn silence_sources(&self, plan: &mut Plan) {
        let ports = self.inputs.iter().map(|input| input.port.as_str().into()).collect();
        for (name, port) in plan.silence(ports) {
            outcome::note(&format!("note: source \"{name}\" is silent: port {port} has an input"));
        }
    }

    fn run_virtual(&self, plan: &Arc<Plan>) -> anyhow::Result<Outcome> {
        let files = PortFiles::new(plan, &self.inputs, &self.outputs)?;
        let progress = self.progress(format!("running {} in virtual time", plan.file));
        let records = self.records.options()?;
        let faults = records.maker.faults.clone();
        let run = watched(|| warn_of_new(&faults), || simulate(plan, &files, self.time, records))?;
        drop(progress);
        if run.counted.flow.taken == 0 {
            outcome::note(
                "note: no packet came in; give the scenario a [[source]], or a port a capture: --input \
                 PORT=FILE",
            );
        }
        let (ran, recorded) = run.report_input();
        self.finish(&ran, &recorded)
    }

    fn run_real(self, mut plan: Plan) -> anyhow::Result<Outcome> {
        let wants_browser = self.web.is_some() && !self.quiet && !self.json.on;
        let browser = wants_browser.then(Browser::of_user).flatten();
        gain_privileges(&mut plan)?.iter().for_each(|note| outcome::note(&format!("note: {note}")));
        keep_for(CommandRole::Carries).context("giving up what root need not keep")?;
        let silent =
            plan.sources.iter().filter_map(|source| Some((&source.name, why_silent(&plan, source)?)));
        silent.for_each(|(name, why)| outcome::note(&format!("note: source \"{name}\" is {why}")));
        // From here on a signal while the hosts are made leaves nothing behind.
        let signals = StopSignals::catch().context("catching signals")?;
        let name = self.name.clone().unwrap_or_else(|| instance_name(&self.scenario));
        let files = PortFiles::new(&plan, &self.inputs, &self.outputs)?;
        check_files(&plan, &files)?;
        let progress = self.progress(format!("starting {}", plan.file));
        let hosts = TestHosts::make(&name, &plan)?;
        let records = self.records.options()?;
        let web = self.web.map(|address| address.unwrap_or_default().into());
        let options = RealOptions { name, files: Some(files), records, web, ..RealOptions::default() };
        let run = RealRun::start(plan, hosts, options)?;
        drop(progress);
        if let Some(address) = dashboard(&run) {
            outcome::note(&format!("dashboard: {address}"));
            if let Some(mut browser) = browser {
                browser.show(&address);
            }
        }
        let kept_off = run.keep_off();
        if !self.quiet {
            announce(&run);
        }
        self.watch(&run, &signals);
        drop(kept_off);
        let progress = self.progress("ending the run".into());
        let ended = run.stop();
        drop(progress);
        let recorded = ended.recorded.clone();
        self.finish(&ended.ran(), &recorded)
    }

    fn progress(&self, what: String) -> Option<Progress> {
        (!self.quiet).then(|| Progress::start(what, None))
    }

    /// Shows the run until it ends: on a terminal the view, else a line a second.
    fn watch(&self, run: &RealRun, signals: &StopSignals) {
        let end = self.time.map(|time| Instant::now() + Duration::from_nanos(time.0));
        let is_over = || {
            signals.came().is_some()
                || run.has_ended()
                || end.is_some_and(|end| Instant::now() >= end)
                || run.stopped().try_recv().is_ok()
                || self.is_forsaken()
        };
        if !self.quiet && !self.json.on && longwire_terminal::fits() && !self.view(run, is_over) {
            return;
        }
        let mut lines = (!self.quiet).then(LiveLines::start);
        while !is_over() {
            warn_of_new(run.instance().record_faults());
            let now = Instant::now();
            let line = lines.as_ref().map(LiveLines::next);
            let next = [line, end, Some(now + LOOK)].into_iter().flatten().min().unwrap_or(now);
            if run.stopped().recv_timeout(next.saturating_duration_since(now)).is_ok() {
                return;
            }
            if let Some(lines) = &mut lines {
                lines.refresh(run.instance()).iter().for_each(|line| outcome::note(line));
            }
        }
    }

    /// Whether the report is for a pipe that nobody reads any more: who started the run has ended.
    fn is_forsaken(&self) -> bool {
        self.json.on && !has_reader(&io::stdout())
    }

    /// Shows the view; false if the run is to end.
    fn view(&self, run: &RealRun, is_over: impl FnMut() -> bool) -> bool {
        let instance = Arc::clone(run.instance());
        let name = instance.name();
        let watched = Box::new(OfProcess(instance));
        let titles = (name, dashboard(run));
        let said = match longwire_terminal::view(watched, InstanceOwner::ThisProcess, titles, is_over) {
            Ok(ViewEnd::End | ViewEnd::Over) => return false,
            Ok(ViewEnd::Detached) => {
                announce(run);
                "the run goes on; Ctrl-C ends it, longwire top shows it".to_owned()
            }
            Ok(ViewEnd::Gone(reason)) => format!("note: no view any more: {reason}"),
            Err(error) => format!("note: the terminal can't show the view: {error}"),
        };
        outcome::note(&said);
        true
    }

    fn finish(&self, ran: &ReportInput<'_>, recorded: &RecordSummary) -> anyhow::Result<Outcome> {
        let mut report = ran.report();
        recorded.fields().into_iter().for_each(|(name, value)| report.set(name, value));
        let faithful = ran.counted.fidelity.as_ref().is_none_or(|fidelity| fidelity.faithful);
        if self.require_faithful && !faithful {
            report.fail("the run was not faithful");
        }
        if self.json.on {
            return outcome::print_report(&report, true);
        }
        outcome::print_with(|out| report_text::write(&report, out))?;
        recorded.sentences().iter().for_each(|sentence| outcome::note(sentence));
        Ok(Outcome::of(report.pass))
    }
}

/// Interval between checks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Captures replace the input of interfaces in virtual time only.
fn check_files(plan: &Plan, files: &PortFiles) -> anyhow::Result<()> {
    for (port, captures) in plan.ports.iter().zip(&files.captures) {
        anyhow::ensure!(
            !(plan.leads_outside(port) && captures.input.is_some()),
            "port \"{}\" has an interface in real time; add --virtual to use a capture instead",
            port.name
        );
    }
    Ok(())
}

/// The address of a run's dashboard.
fn dashboard(run: &RealRun) -> Option<String> {
    run.web().map(|web| format!("http://{}/", web.address()))
}

/// Prints the name of the run and how to reach its hosts.
fn announce(run: &RealRun) {
    let instance = run.instance();
    outcome::note(&format!("running as \"{}\"; longwire ctl stats shows it", instance.name()));
    for host in run.hosts().into_iter().flat_map(|hosts| hosts.lab().hosts()) {
        let addresses: Vec<_> = host.spec().addresses.iter().map(ToString::to_string).collect();
        outcome::note(&format!(
            "  host {} ({}): longwire lab exec {} {} -- COMMAND",
            host.name(),
            addresses.join(", "),
            instance.name(),
            host.name()
        ));
    }
}
