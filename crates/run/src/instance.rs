//! A run in real time as its control socket shows it.

use crate::comparison::{LastApplied, Running};
use crate::control_planes::ControlPlanes;
use crate::metrics::{self, Sample};
use crate::nesp_counts::NespCounts;
use crate::objects::{ObjectChange, Objects};
use crate::programs::rows::{self, Installed};
use crate::replay_port::Watch;
use crate::run_report::Ran;
use longwire_assemble::tolerance;
use longwire_control::{
    Comparison, ForwarderAsk, Instance, Kind, Object, RoutePage, SetError, Settable, WantedScenario,
};
use longwire_engine::{FlowStats, LinkReport, Remote, RemoteError, Report};
use longwire_report::Row;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use serde_json::{Value, json};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How old counters may be that are shown: asking a run with a million links takes its workers a moment.
const FRESH: Duration = Duration::from_millis(200);

/// A run that goes on.
#[derive(Debug)]
pub struct RunningInstance {
    name: String,
    plan: Arc<Plan>,
    objects: Objects,
    planes: ControlPlanes,
    remote: RemoteLine,
    watches: Vec<Option<Watch>>,
    started: Nanos,
    nesp: Option<NespCounts>,
    applied: LastApplied,
    stop: Sender<()>,
}

/// The line to the workers and what they last said.
struct RemoteLine {
    remote: Remote,
    last: Mutex<Option<(Instant, Arc<Report>)>>,
}

impl std::fmt::Debug for RemoteLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RemoteLine")
    }
}

impl RunningInstance {
    /// The run of `plan` called `name`, which ends when `stop` is told a cause.
    pub fn new(
        name: String,
        plan: Arc<Plan>,
        (objects, planes): (Objects, ControlPlanes),
        remote: Remote,
        watches: Vec<Option<Watch>>,
        nesp: Option<NespCounts>,
        (applied, stop): (LastApplied, Sender<()>),
    ) -> Self {
        let started = longwire_clock::monotonic();
        let remote = RemoteLine { remote, last: Mutex::default() };
        Self { name, plan, objects, planes, remote, watches, started, nesp, applied, stop }
    }

    /// Removes programs whose leases are over, on a thread of its own, until the instance is gone.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn watch_leases(this: &Arc<Self>) -> std::io::Result<()> {
        let (line, this) = (this.objects.routers.leases().line(), Arc::downgrade(this));
        let watch = move || {
            while let Some(instance) = this.upgrade() {
                let next = instance.objects.routers.end_leases(&instance.remote.remote);
                drop(instance);
                let gone = match next {
                    Some(wait) => line.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected),
                    None => line.recv().is_err(),
                };
                if gone {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("leases".into()).spawn(watch).map(drop)
    }

    /// The plan that runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Its objects.
    pub const fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The line to its workers.
    pub const fn remote(&self) -> &Remote {
        &self.remote.remote
    }

    /// What runs, to be compared with scenarios.
    fn running(&self) -> Running<'_> {
        Running {
            plan: &self.plan,
            objects: &self.objects,
            remote: self.remote(),
            elapsed: self.elapsed(),
            last: &self.applied,
        }
    }

    /// The control planes of its routers.
    pub const fn control_planes(&self) -> &ControlPlanes {
        &self.planes
    }

    /// How long it has been running.
    pub fn elapsed(&self) -> Nanos {
        longwire_clock::monotonic().since(self.started)
    }

    /// The workers' current counters.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn count(&self) -> Result<Arc<Report>, RemoteError> {
        let report = Arc::new(self.remote.remote.report(tolerance(&self.plan))?);
        self.objects.links.note_report(&report);
        *self.last() = Some((Instant::now(), Arc::clone(&report)));
        Ok(report)
    }

    /// Packets that were sent and dropped outside links so far: quick however many links there are.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn flow(&self) -> Result<FlowStats, RemoteError> {
        self.remote.remote.flow().map(|(flow, _)| flow)
    }

    /// The programs of its routers.
    pub(crate) fn programs(&self) -> Installed {
        self.objects.routers.programs(&self.remote.remote)
    }

    /// The report on what was `counted` until now, with a row for each of the `programs`.
    pub fn ran(&self, counted: Arc<Report>, elapsed: Nanos, programs: Vec<Row>) -> Ran<'_> {
        let Objects { links, sources, .. } = &self.objects;
        links.note_report(&counted);
        let settings = Box::new(|place| links.settings(place as u32));
        let aims = Box::new(|place| sources.words().aims(place));
        let watches = self.watches.clone();
        let planes = self.planes.rows();
        let nesp = self.nesp.as_ref().map(NespCounts::row);
        Ran {
            plan: &self.plan,
            counted,
            watches,
            mode: "real",
            elapsed,
            settings,
            aims,
            planes,
            programs,
            nesp,
        }
    }

    /// The report, at most a moment old.
    fn recent(&self) -> Result<Arc<Report>, RemoteError> {
        let last = self.last().clone();
        match last {
            Some((at, report)) if at.elapsed() < FRESH => Ok(report),
            _ => self.count(),
        }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Arc<Report>)>> {
        self.remote.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object, with what it has counted as far as it counts.
    fn show(&self, kind: Kind, name: &str) -> Result<Object, SetError> {
        if let Some(members) = self.objects.members(kind, name)? {
            let members = members.iter().map(|member| self.show(kind, member)).collect::<Result<_, _>>()?;
            return Ok(Object::several(kind, name, members));
        }
        // What was counted may be a moment old: what it is set to is asked for behind that.
        let stats = self.counted_of(kind, name).unwrap_or_default();
        let settings = self.objects.settings(self.remote(), kind, name)?;
        Ok(Object { kind, name: name.into(), settings, stats, members: Vec::new() })
    }

    fn counted_of(&self, kind: Kind, name: &str) -> Option<Value> {
        match kind {
            Kind::Link => {
                let counted = self.recent().ok()?;
                let link = find(&counted.links, self.objects.links.place(name)?)?;
                serde_json::to_value(&link.stats).ok()
            }
            Kind::Source | Kind::Port | Kind::Router => {
                let ran = self.ran(self.recent().ok()?, self.elapsed(), Vec::new());
                serde_json::to_value(ran.row_of(kind, name)?).ok()
            }
            Kind::Flow => Some(self.objects.routers.flow(self.remote(), name).ok()?.1),
            Kind::Medium | Kind::Forwarder => None,
        }
    }
}

/// Links are in the plan's order, all of them.
fn find(links: &[LinkReport], place: u32) -> Option<&LinkReport> {
    links.binary_search_by_key(&place, |link| link.place).ok().map(|at| &links[at])
}

impl Instance for RunningInstance {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn stats(&self) -> Value {
        match self.recent() {
            Ok(counted) => {
                let programs = rows::counted(&self.plan, &self.programs());
                let report = self.ran(counted, self.elapsed(), programs).report();
                serde_json::to_value(report).unwrap_or_default()
            }
            Err(error) => json!({ "error": error.to_string() }),
        }
    }

    fn names(&self, kind: Kind) -> Arc<[String]> {
        self.objects.names(self.remote(), kind)
    }

    fn object(&self, kind: Kind, name: &str) -> Result<Object, SetError> {
        self.show(kind, name)
    }

    fn set(&self, kind: Kind, name: &str, changes: &[(String, String)]) -> Result<Object, SetError> {
        let change = ObjectChange { kind, name: name.into(), pairs: changes.to_vec() };
        self.objects.set(self.remote(), &[change], None)?;
        self.show(kind, name)
    }

    fn settable(&self, kind: Kind) -> Vec<Settable> {
        self.objects.settable(kind)
    }

    fn routes(&self, router: &str) -> Result<RoutePage, SetError> {
        self.objects.routers.routes(self.remote(), router)
    }

    fn forwarders(&self, router: &str, ask: &ForwarderAsk) -> Result<Value, SetError> {
        self.objects.routers.forwarders(self.remote(), router, ask)
    }

    fn metrics(&self, links: Option<&str>, limit: usize) -> Result<String, SetError> {
        let report = self.recent().map_err(|error| SetError::Unavailable(error.to_string()))?;
        let meant = links.map(|pattern| self.objects.links.meant(pattern)).transpose()?.unwrap_or_default();
        let names = self.objects.links.names();
        let link = |place: &u32| Some((names[*place as usize].clone(), find(&report.links, *place)?));
        let sample = Sample {
            scenario: &self.name,
            report: &report,
            seconds: self.elapsed().0 as f64 / 1e9,
            links: meant.iter().take(limit).filter_map(link).collect(),
            left_out: meant.len().saturating_sub(limit),
        };
        Ok(metrics::text(&[sample]))
    }

    fn scenario(&self) -> Result<String, SetError> {
        self.running().written()
    }

    fn compare(&self, toml: &str) -> Result<Comparison, SetError> {
        self.running().compared(toml)
    }

    fn apply(&self, wanted: &WantedScenario) -> Result<Comparison, SetError> {
        self.running().brought_to(&wanted.toml, wanted.partial)
    }

    fn stop(&self) {
        // If nobody listens any more the run is ending.
        let _ = self.stop.send(());
    }
}
