//! A run in real time: ports, engine, control socket and test hosts, started and stopped together.

use crate::control_planes::{ConfiguredPlane, ControlPlanes, MirroredEngine};
use crate::instance::RunningInstance;
use crate::nesp_server::NespSetup;
use crate::objects::routers::{LiveRouters, meter};
use crate::objects::{ChangeNotice, Objects};
use crate::open_ports::{OwnPorts, open_real};
use crate::port_files::PortFiles;
use crate::programs::rows;
use crate::records::{RealRecords, RecordOptions, RecordSummary};
use crate::rewiring::{Stages, start_stages};
use crate::run_report::ReportInput;
use crate::running_state::RunningState;
use crate::test_hosts::TestHosts;
use anyhow::Context;
use longwire_assemble::{build, measure_processors};
use longwire_control::{Instance, Server, Web, WebServer, control_socket};
use longwire_engine::clock::{AffinityGuard, avoid_cpus};
use longwire_engine::{Report, Run};
use longwire_report::Row;
use longwire_scenario::{Plan, Router};
use longwire_units::Nanos;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between looks at packets in flight.
const LOOK: Duration = Duration::from_millis(10);

/// How to start a run.
#[derive(Default)]
pub struct RealOptions {
    /// The name under which `longwire ctl` finds it: see [`instance_name`].
    pub name: String,
    /// The captures of its ports.
    pub files: Option<PortFiles>,
    /// Ports that are open already.
    pub ports: OwnPorts,
    /// The records that it writes.
    pub records: RecordOptions,
    /// A group, by number, that may use its API besides this user.
    pub group: Option<u32>,
    /// Receives changes.
    pub told: Option<Sender<ChangeNotice>>,
    /// The TCP server of the API and the dashboard, if wanted.
    pub web: Option<Web>,
}

/// A running run. Dropping it ends it and takes down its hosts.
pub struct RealRun {
    instance: Arc<RunningInstance>,
    /// Ends first, so that no requests reach a run that is ending.
    server: Option<Server>,
    web: Option<WebServer>,
    run: Option<Run>,
    hosts: Option<TestHosts>,
    records: Option<RealRecords>,
    nesp: Option<JoinHandle<()>>,
    stages: Option<Stages>,
    stopped: Receiver<()>,
}

/// The result of a run in real time.
pub struct RealRunOutcome {
    /// The input of reports: names, settings, sources.
    pub instance: Arc<RunningInstance>,
    /// The engine's counters.
    pub counted: Arc<Report>,
    /// How long it ran.
    pub elapsed: Nanos,
    /// A row for each program that its routers had at the end.
    pub programs: Vec<Row>,
    /// The records that it wrote. Errors are in `counted`.
    pub recorded: RecordSummary,
}

impl RealRunOutcome {
    /// The input for its report.
    pub fn ran(self) -> ReportInput<'static> {
        let state = self.instance.state();
        state.objects.links.note_report(Nanos::NEVER, &self.counted);
        self.instance.ran(&state, self.counted, self.elapsed, self.programs)
    }
}

impl RealRun {
    /// Opens the ports of `plan`, and starts its engine and control socket. `hosts` must be up if the plan
    /// has any (see [`TestHosts::make`]).
    ///
    /// # Errors
    /// If a port can't be opened, or memory is lacking; then the hosts are taken down.
    pub fn start(plan: Plan, mut hosts: Option<TestHosts>, options: RealOptions) -> anyhow::Result<Self> {
        let _kept_off = keep_off(&plan);
        let files = options.files.map_or_else(|| PortFiles::new(&plan, &[], &[]), Ok)?;
        files.check_written(&plan, options.records.files())?;
        if let Some(finding) = plan.routers.iter().find_map(|router| router.not_in_real_time.as_ref()) {
            anyhow::bail!("{finding}");
        }
        let mut open = open_real(&plan, hosts.as_mut(), &files, options.ports)?;
        // Until it ends, whichever ports leave it.
        let written = options.records.files().chain(files.sent_outside(&plan));
        open.watches.written = written.map(Path::to_path_buf).collect();
        let mut nesp = None;
        if let Some(settings) = &plan.nesp {
            let (setup, ports) = NespSetup::wrap(settings, &plan, open.ports)?;
            (nesp, open.ports) = (Some(setup), ports);
        }
        let (mut records, ports) = RealRecords::start(options.records, (&plan, &files), open.ports)?;
        let mut built = build(&plan, ports, |worker| records.observer(worker))?;
        records.place(&plan, &built.layout.links);
        if !plan.routers.is_empty() {
            measure_processors(&plan, &mut built, meter())?;
        }
        let directory = longwire_control::directory();
        longwire_control::prepare(&directory)?;
        let socket = |router: &Router| control_socket(&directory, &options.name, &router.name);
        let levels = built.raise(&plan, socket)?;
        let plan = Arc::new(plan);
        let routers = LiveRouters::new(Arc::clone(&plan), built.routers.clone(), levels);
        let objects = Objects::new(&plan, (&built.layout, &built.media), routers, options.told);
        let lab = hosts.as_ref().map(TestHosts::lab);
        let configured = ConfiguredPlane::all_of(&plan, lab)?;
        let started = longwire_clock::monotonic();
        records.note_start(started);
        let run = built.setup.start_at(started);
        let (remote, routers, links) = (run.remote(), &built.routers[..], &built.layout.links[..]);
        let engine = MirroredEngine { remote: &remote, routers, links };
        let planes = ControlPlanes::default();
        let followed = planes.follow(&plan, (lab, configured), engine);
        let (stop, stopped) = channel();
        let instance = followed.and_then(|()| {
            let instance = RunningInstance::new(
                options.name,
                RunningState::new(plan, objects, built.layout),
                planes,
                &run,
                (open.watches, records.faults().clone()),
                nesp.as_ref().map(NespSetup::counts),
                stop,
            );
            instance.context("the thread that judges the run")
        });
        let instance = match instance {
            Ok(instance) => Arc::new(instance),
            Err(error) => {
                run.stop();
                return Err(error);
            }
        };
        let (run, records) = (Some(run), Some(records));
        let (server, web, stages) = (None, None, None);
        let mut begun = Self { instance, server, web, run, hosts, records, nesp: None, stages, stopped };
        // If it fails, dropping this ends the workers.
        begun.begin(started, nesp)?;
        begun.serve(&directory, (options.group, options.web))?;
        Ok(begun)
    }

    /// Starts the threads beside its workers, which have started at this time.
    fn begin(&mut self, started: Nanos, nesp: Option<NespSetup>) -> anyhow::Result<()> {
        if let Some(records) = &mut self.records {
            if let Some(logged) = records.logged_links() {
                // It has one log at most.
                let _ = self.instance.logged.set(Arc::clone(logged));
            }
            records.begin(started, &self.instance)?;
        }
        self.nesp = nesp.map(|nesp| nesp.start(&self.instance, started)).transpose()?;
        self.stages = start_stages(&self.instance, started).context("the thread of [[at]]")?;
        RunningInstance::watch_leases(&self.instance).context("the thread that ends leases")
    }

    /// Starts the servers of its API: on a socket, which a group may also use, and on TCP, if wanted.
    fn serve(&mut self, directory: &Path, (group, web): (Option<u32>, Option<Web>)) -> anyhow::Result<()> {
        // Listing the sockets removes those of killed runs.
        longwire_control::list(directory).context("the control sockets")?;
        let instance = || Arc::clone(&self.instance) as Arc<dyn Instance>;
        let server = match group {
            Some(group) => Server::start_for_group(directory, group, instance()),
            None => Server::start(directory, instance()),
        };
        let server = server.context("the control socket")?;
        let web = web.map(|address| WebServer::start(address, instance())).transpose()?;
        (self.server, self.web) = (Some(server), web);
        Ok(())
    }

    /// The instance behind the control socket.
    pub const fn instance(&self) -> &Arc<RunningInstance> {
        &self.instance
    }

    /// Keeps this thread, and what it starts, off the workers' processors until the guard goes, as the run's
    /// own threads are.
    pub fn keep_off(&self) -> Option<AffinityGuard> {
        keep_off(&self.instance.state().plan)
    }

    /// The socket of its API, while it runs.
    pub fn socket(&self) -> Option<&Path> {
        self.server.as_ref().map(Server::path)
    }

    /// The server of its dashboard, if it has one.
    pub const fn web(&self) -> Option<&WebServer> {
        self.web.as_ref()
    }

    /// Its hosts, if it has any.
    pub const fn hosts(&self) -> Option<&TestHosts> {
        self.hosts.as_ref()
    }

    /// Receives a message when a client of the control socket asks for the end.
    pub const fn stopped(&self) -> &Receiver<()> {
        &self.stopped
    }

    /// Takes that receiver, for another thread.
    pub fn take_stopped(&mut self) -> Receiver<()> {
        std::mem::replace(&mut self.stopped, channel().1)
    }

    /// Whether a worker has ended by itself, which means that it panicked.
    pub fn has_ended(&self) -> bool {
        self.run.as_ref().is_none_or(Run::has_ended)
    }

    /// Waits until no packet is in flight, or a worker has ended, for at most `patience`.
    pub fn drain(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let holds_some = || {
            self.instance.count(&self.instance.state()).is_ok_and(|counted| {
                let mut links = counted.links.iter();
                links.any(|link| link.stats.queued_packets + link.stats.travelling_packets > 0)
            })
        };
        while Instant::now() < deadline && !self.has_ended() && holds_some() {
            std::thread::sleep(LOOK);
        }
    }

    /// Ends it: first the control socket and the dashboard, then the engine, then the hosts.
    pub fn stop(mut self) -> RealRunOutcome {
        (self.server, self.web) = (None, None);
        let panicked = || vec!["the thread of [[at]] panicked".to_owned()];
        let refused =
            self.stages.take().map(|stages| stages.end().unwrap_or_else(panicked)).unwrap_or_default();
        self.instance.planes.end();
        let mut recorded = RecordSummary::default();
        if let Some(records) = &mut self.records {
            records.end_series(&mut recorded);
        }
        let elapsed = self.instance.elapsed();
        let installed = self.instance.programs();
        let mut counted = std::thread::scope(|scope| {
            if let Some(hosts) = &self.hosts {
                scope.spawn(|| hosts.close_way_out());
            }
            self.run.take().map(Run::stop).unwrap_or_default()
        });
        counted.errors.extend(refused);
        counted.window = self.instance.window.verdicts();
        // The thread has ended with the ports.
        let nesp_broke = self.nesp.take().is_some_and(|thread| thread.join().is_err());
        if nesp_broke {
            counted.errors.push("the NESP thread panicked".into());
        }
        let programs = rows::whole(&self.instance.state().plan, &installed);
        if let Some(records) = self.records.take() {
            records.finish(&mut recorded);
        }
        counted.errors.append(&mut recorded.errors);
        if let Some(Err(error)) = self.hosts.take().map(TestHosts::down) {
            counted.errors.push(format!("taking the hosts down: {error}"));
        }
        RealRunOutcome {
            instance: Arc::clone(&self.instance),
            counted: Arc::new(counted),
            elapsed,
            programs,
            recorded,
        }
    }
}

impl Drop for RealRun {
    fn drop(&mut self) {
        (self.server, self.web) = (None, None);
        self.instance.planes.end();
        if let Some(run) = self.run.take() {
            run.stop();
        }
    }
}

/// Keeps this thread, and what it starts, off the processors of a plan's workers.
fn keep_off(plan: &Plan) -> Option<AffinityGuard> {
    avoid_cpus(plan.engine.cpus.iter().map(|&cpu| cpu as usize))
}

/// The name of a run of a scenario's file: the file's name, with invalid characters replaced.
pub fn instance_name(file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let fits = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = stem.chars().take(32).map(fits).collect();
    let name = name.trim_matches(['-', '.']).to_owned();
    if name.is_empty() { "run".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::{Port, PortError, PortStats, Stamp};
    use longwire_packet::{Batch, Pool};

    /// A port at which nothing happens.
    struct IdlePort {
        _alive: Arc<()>,
    }

    impl Port for IdlePort {
        fn name(&self) -> &str {
            "a"
        }

        fn describe(&self) -> String {
            "idle".into()
        }

        fn stamp(&self) -> Stamp {
            Stamp::Poll
        }

        fn receive(&mut self, _: &mut Pool, _: Nanos, _: &mut Batch) -> Result<(), PortError> {
            Ok(())
        }

        fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
            batch.as_slice().iter().for_each(|&handle| pool.free(handle));
            Ok(())
        }

        fn stats(&self) -> PortStats {
            PortStats::default()
        }
    }

    #[test]
    fn a_run_that_can_t_be_served_ends() {
        let ports = ["a", "b"].map(|name| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n"));
        let text = ports.concat() + "[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\n";
        let plan = longwire_scenario::plan_of(&text);
        let name = format!("t{}-twice", std::process::id());
        let options = || RealOptions { name: name.clone(), ..RealOptions::default() };
        let first = RealRun::start(plan.clone(), None, options()).unwrap();
        let alive = Arc::new(());
        let ports = OwnPorts(vec![Box::new(IdlePort { _alive: Arc::clone(&alive) })]);
        // The first one has the socket.
        let second = RealRun::start(plan, None, RealOptions { ports, ..options() });
        assert!(second.is_err());
        assert_eq!(Arc::strong_count(&alive), 1, "its worker still has the port");
        first.stop();
    }

    #[test]
    fn names_follow_the_file() {
        for (file, name) in [
            ("a/two-hosts.toml", "two-hosts"),
            ("my net (1).toml", "my-net--1"),
            ("..", "run"),
            ("ä.toml", "run"),
        ] {
            assert_eq!(instance_name(Path::new(file)), name);
        }
    }
}
