//! A run in real time as its control socket shows it.

use crate::control_planes::ControlPlanes;
use crate::live::{LiveLinks, Meant};
use crate::live_media::LiveMedia;
use crate::live_routers::LiveRouters;
use crate::live_sources::LiveSources;
use crate::nesp_server::NespCounts;
use crate::program_rows::{self, Installed};
use crate::replay_port::Watch;
use crate::run_report::Ran;
use longwire_assemble::tolerance;
use longwire_control::{
    Duplex, ForwarderAsk, Instance, Link, LinkAnswer, Medium, RoutePage, SetError, Source,
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
    links: LiveLinks,
    sources: LiveSources,
    routers: LiveRouters,
    media: LiveMedia,
    planes: ControlPlanes,
    remote: RemoteLine,
    watches: Vec<Option<Watch>>,
    started: Nanos,
    nesp: Option<NespCounts>,
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
        (links, sources, media, routers, planes): (
            LiveLinks,
            LiveSources,
            LiveMedia,
            LiveRouters,
            ControlPlanes,
        ),
        remote: Remote,
        watches: Vec<Option<Watch>>,
        nesp: Option<NespCounts>,
        stop: Sender<()>,
    ) -> Self {
        let started = longwire_clock::monotonic();
        let remote = RemoteLine { remote, last: Mutex::default() };
        Self { name, plan, links, sources, media, routers, planes, remote, watches, started, nesp, stop }
    }

    /// Removes programs whose leases are over, on a thread of its own, until the instance is gone.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn watch_leases(this: &Arc<Self>) -> std::io::Result<()> {
        let (line, this) = (this.routers.leases().line(), Arc::downgrade(this));
        let watch = move || {
            while let Some(instance) = this.upgrade() {
                let next = instance.routers.end_leases(&instance.remote.remote);
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

    /// Its links.
    pub const fn links(&self) -> &LiveLinks {
        &self.links
    }

    /// Its traffic sources.
    pub const fn sources(&self) -> &LiveSources {
        &self.sources
    }

    /// Its shared media.
    pub const fn media(&self) -> &LiveMedia {
        &self.media
    }

    /// Its routers.
    pub const fn routers(&self) -> &LiveRouters {
        &self.routers
    }

    /// The line to its workers.
    pub const fn remote(&self) -> &Remote {
        &self.remote.remote
    }

    /// The control planes of its routers.
    pub const fn control_planes(&self) -> &ControlPlanes {
        &self.planes
    }

    /// How long it has been running.
    pub fn elapsed(&self) -> Nanos {
        longwire_clock::monotonic().since(self.started)
    }

    /// What the workers have counted, as of now.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn count(&self) -> Result<Arc<Report>, RemoteError> {
        let report = Arc::new(self.remote.remote.report(tolerance(&self.plan))?);
        self.links.note(&report);
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
        self.routers.programs(&self.remote.remote)
    }

    /// The report on what was `counted` until now, with a row for each of the `programs`.
    pub fn ran(&self, counted: Report, elapsed: Nanos, programs: Vec<Row>) -> Ran<'_> {
        self.links.note(&counted);
        let settings = Box::new(|place| self.links.settings_json(place));
        let aims = Box::new(|place| self.sources.aims(place));
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

    /// The same, at most a moment old.
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

    /// What `name`, which means these links, is and has counted.
    fn answer(&self, name: &str, meant: Meant) -> LinkAnswer {
        let counted = self.recent().ok();
        // Behind what was counted, which may be a moment old: a change may have come at its time.
        meant.places().iter().for_each(|&place| self.links.look(self.remote(), place));
        let show = |place| self.show(place, counted.as_deref());
        match meant {
            Meant::One(place) => LinkAnswer::One(show(place)),
            Meant::Duplex(both) => {
                LinkAnswer::Duplex(Duplex { name: name.into(), directions: both.map(show).into() })
            }
        }
    }

    fn show(&self, place: u32, counted: Option<&Report>) -> Link {
        let stats = counted.and_then(|report| find(&report.links, place));
        Link {
            name: self.links.names()[place as usize].clone(),
            settings: self.links.settings(place),
            stats: stats.map_or(Value::Null, |link| serde_json::to_value(&link.stats).unwrap_or_default()),
        }
    }

    fn show_source(&self, place: u32) -> Source {
        let settings = self.sources.settings(&self.remote.remote, place);
        Source { name: self.sources.names()[place as usize].clone(), settings }
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
                let programs = program_rows::counted(&self.plan, &self.programs());
                let report = self.ran((*counted).clone(), self.elapsed(), programs).report();
                serde_json::to_value(report).unwrap_or_default()
            }
            Err(error) => json!({ "error": error.to_string() }),
        }
    }

    fn link_names(&self) -> Arc<[String]> {
        self.links.names()
    }

    fn link(&self, name: &str) -> Option<LinkAnswer> {
        Some(self.answer(name, self.links.meant(name)?))
    }

    fn set_link(&self, link: &str, changes: &[(String, String)]) -> Result<LinkAnswer, SetError> {
        let changed = self.links.set(&self.remote.remote, link, changes)?;
        Ok(self.answer(link, changed))
    }

    fn source_names(&self) -> Arc<[String]> {
        self.sources.names()
    }

    fn source(&self, name: &str) -> Option<Source> {
        self.sources.place(name).map(|place| self.show_source(place))
    }

    fn set_source(&self, source: &str, changes: &[(String, String)]) -> Result<Source, SetError> {
        self.sources.set(&self.remote.remote, source, changes).map(|place| self.show_source(place))
    }

    fn router_names(&self) -> Vec<String> {
        self.routers.names()
    }

    fn routes(&self, router: &str) -> Result<RoutePage, SetError> {
        self.routers.routes(&self.remote.remote, router)
    }

    fn change_route(&self, router: &str, add: bool, route: &str) -> Result<(), SetError> {
        self.routers.change(&self.remote.remote, router, add, route)
    }

    fn weigh_flow(&self, router: &str, flow: &str, weight: i64) -> Result<(), SetError> {
        self.routers.weigh(&self.remote.remote, router, flow, weight)
    }

    fn forwarders(&self, router: &str, ask: &ForwarderAsk) -> Result<Value, SetError> {
        self.routers.forwarders(&self.remote.remote, router, ask)
    }

    fn medium_names(&self) -> Arc<[String]> {
        self.media.names()
    }

    fn medium(&self, name: &str) -> Option<Medium> {
        let settings = self.media.settings(&self.remote.remote, self.media.place(name)?);
        Some(Medium { name: name.into(), settings })
    }

    fn set_medium(&self, medium: &str, changes: &[(String, String)]) -> Result<Medium, SetError> {
        let place = self.media.set(&self.remote.remote, medium, changes)?;
        Ok(Medium { name: medium.into(), settings: self.media.settings(&self.remote.remote, place) })
    }

    fn stop(&self) {
        // If nobody listens any more the run is ending.
        let _ = self.stop.send(());
    }
}
