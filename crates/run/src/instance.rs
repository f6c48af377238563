//! A run in real time as its control socket shows it.

use crate::control_planes::ControlPlanes;
use crate::event_log::EventLog;
use crate::graph::graph;
use crate::nesp_counts::NespCounts;
use crate::objects::{ObjectChange, Objects};
use crate::programs::rows::{self, Installed};
use crate::replay_port::Watch;
use crate::run_report::{Ran, fidelity_json};
use longwire_assemble::tolerance;
use longwire_control::{
    Choice, Chosen, EventPage, ForwarderAsk, Instance, Kind, Object, PlannedEvent, PoolUse, RoutePage,
    SetError, Settable, Sort, Summary, Topology, chosen_in_order,
};
use longwire_engine::{FlowStats, LinkReport, Remote, RemoteError, Report};
use longwire_report::Row;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How old counters may be that are shown, and how much older for each link: asking a run with a million
/// links takes its workers a moment.
const FRESH: Duration = Duration::from_millis(200);
const FRESH_PER_LINK: Duration = Duration::from_micros(100);
const FRESH_AT_MOST: Duration = Duration::from_secs(10);
/// Links up to which the counters before the last ones are kept, for rates.
const MOST_COMPARED: usize = 100_000;
/// Scheduled changes that are listed.
const MOST_SCHEDULED: usize = 1000;
/// Scheduled changes that are noted at a time.
const MOST_NOTED: usize = 100;

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
    log: Mutex<EventLog>,
    stop: Sender<()>,
}

/// The line to the workers and what they last said.
struct RemoteLine {
    remote: Remote,
    counted: Mutex<Counted>,
}

/// What the workers last said, and when.
#[derive(Default)]
struct Counted {
    last: Option<(Instant, Nanos, Arc<Report>)>,
    /// What they said before, at least half a second ago.
    before: Option<Arc<Report>>,
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
        stop: Sender<()>,
    ) -> Self {
        let started = longwire_clock::monotonic();
        let remote = RemoteLine { remote, counted: Mutex::default() };
        Self { name, plan, objects, planes, remote, watches, started, nesp, log: Mutex::default(), stop }
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
        let elapsed = self.elapsed();
        self.note_state(&report, elapsed);
        let mut counted = self.counted();
        let old = counted.last.replace((Instant::now(), elapsed, Arc::clone(&report)));
        if let Some((at, _, old)) = old.filter(|(_, _, old)| old.links.len() <= MOST_COMPARED) {
            if counted.before.is_none() || at.elapsed() >= Duration::from_millis(500) {
                counted.before = Some(old);
            }
        }
        drop(counted);
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
        let links = u32::try_from(self.plan.links.len()).unwrap_or(u32::MAX);
        let fresh = (FRESH + FRESH_PER_LINK.saturating_mul(links)).min(FRESH_AT_MOST);
        let last = self.counted().last.clone();
        match last {
            Some((at, _, report)) if at.elapsed() < fresh => Ok(report),
            _ => self.count(),
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.remote.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> MutexGuard<'_, EventLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what has turned: the verdict, and faults of ports.
    fn note_state(&self, report: &Report, elapsed: Nanos) {
        let mut log = self.log();
        if let Some(fidelity) = report.fidelity.as_ref().filter(|fidelity| fidelity.lateness.packets > 0) {
            log.note_verdict(elapsed, fidelity.faithful, fidelity.causes.first());
        }
        log.note_faults(elapsed, report.ports.iter().filter_map(|port| port.fault.as_deref()));
    }

    /// Notes the scheduled changes that have come since the last time, the latest ones of very many.
    fn note_scheduled(&self, elapsed: Nanos) {
        let mut log = self.log();
        let since = std::mem::replace(&mut log.noted_until, elapsed);
        let mut come: Vec<(Nanos, String)> = Vec::new();
        // `next_after` means later than; what comes at 0 has been noted by the first call.
        let mut from = |event: &longwire_scenario::Event| {
            let mut time = since;
            if since == Nanos::ZERO && event.time == Nanos::ZERO {
                come.push((Nanos::ZERO, event.describe(&self.plan)));
            }
            let times = std::iter::from_fn(|| {
                time = event.next_after(time)?;
                (time <= elapsed).then_some(time)
            });
            let times: Vec<_> = times.take(MOST_NOTED).collect();
            come.extend(times.into_iter().map(|time| (time, event.describe(&self.plan))));
        };
        self.plan.events.iter().take(MOST_NOTED).for_each(&mut from);
        let of_routers =
            self.plan.router_events.iter().filter(|event| event.time > since && event.time <= elapsed);
        come.extend(
            of_routers.take(MOST_NOTED).map(|event| (event.time, event.describe(&self.plan.routers))),
        );
        come.sort();
        come.into_iter().for_each(|(time, what)| log.note(time, "scheduled", what));
    }

    /// Names of links, sorted by what they have counted.
    fn sorted_links(&self, choice: &Choice, sort: Sort) -> Result<Chosen, SetError> {
        let report = self.recent().map_err(|error| SetError::Unavailable(error.to_string()))?;
        let before = self.counted().before.clone();
        let earlier = |link: &LinkReport| {
            let old = before.as_ref().and_then(|before| find(&before.links, link.place));
            old.map_or(0, |old| old.stats.out_bytes)
        };
        let key = |link: &LinkReport| match sort {
            Sort::Rate => link.stats.out_bytes.saturating_sub(earlier(link)),
            Sort::Carried => link.stats.out_bytes,
            Sort::Queued => link.stats.queued_bytes,
            Sort::Dropped => link.stats.dropped(),
            Sort::Late => link.stats.max_late.0,
        };
        let all = self.objects.links.names();
        let name = |place: u32| &all[place as usize];
        let fitting = report.links.iter().filter(|link| choice.has(name(link.place)));
        let mut places: Vec<_> = fitting.map(|link| (Reverse(key(link)), link.place)).collect();
        places.sort_unstable();
        let page = places.iter().skip(choice.from).take(choice.count);
        let names = page.map(|&(_, place)| name(place).clone()).collect();
        Ok(Chosen { total: places.len(), names })
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

    fn summary(&self) -> Result<Summary, SetError> {
        let report = self.recent().map_err(|error| SetError::Unavailable(error.to_string()))?;
        let ran = self.ran(Arc::clone(&report), self.elapsed(), Vec::new());
        let outer = report
            .ports
            .iter()
            .filter(|port| self.plan.ports[usize::from(port.place)].attachment.far().is_none());
        let sums = outer.fold((0, 0, 0), |(come, gone, bytes), port| {
            let stats = &port.stats;
            (come + stats.in_frames, gone + stats.out_frames, bytes + stats.out_bytes)
        });
        let (in_packets, out_packets, out_bytes) = sums;
        let number = |kind: Kind| (kind.collection().to_owned(), self.names(kind).len());
        Ok(Summary {
            scenario: self.plan.file.clone(),
            elapsed_ns: self.counted_ns(),
            fidelity: report.fidelity.as_ref().map(fidelity_json).unwrap_or_default(),
            in_packets,
            out_packets,
            out_bytes,
            held: ran.held() + report.flow.kept,
            dropped: ran
                .dropped()
                .into_iter()
                .map(|(reason, packets)| (reason.to_owned(), packets))
                .collect(),
            pool: PoolUse { used_bytes: report.pool_used, bytes: report.pool_capacity },
            objects: Kind::ALL.into_iter().map(number).collect(),
        })
    }

    fn topology(&self) -> Topology {
        graph(&self.plan)
    }

    fn events(&self, after: u64) -> EventPage {
        self.note_scheduled(self.elapsed());
        let of_links = self.plan.events.iter().map(|event| PlannedEvent {
            at_ns: event.time.0,
            every_ns: event.repeat.map(|repeat| repeat.every.0),
            times: event.repeat.and_then(|repeat| repeat.times),
            over_ns: event.ramp.map(|ramp| ramp.over.0),
            what: event.describe(&self.plan),
        });
        let of_routers = self.plan.router_events.iter().map(|event| PlannedEvent {
            at_ns: event.time.0,
            every_ns: None,
            times: None,
            over_ns: None,
            what: event.describe(&self.plan.routers),
        });
        let (log, last) = self.log().after(after);
        EventPage { planned: of_links.chain(of_routers).take(MOST_SCHEDULED).collect(), log, last }
    }

    fn counted_ns(&self) -> u64 {
        self.counted().last.as_ref().map_or(0, |(_, elapsed, _)| elapsed.0)
    }

    fn choose(&self, kind: Kind, choice: &Choice) -> Result<Chosen, SetError> {
        match (kind, choice.sort) {
            (Kind::Link, Some(sort)) => self.sorted_links(choice, sort),
            _ => chosen_in_order(kind, &self.names(kind), choice),
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
        let each: Vec<_> = changes.iter().map(|(key, text)| format!("{key} {text}")).collect();
        self.log().note(self.elapsed(), "change", format!("{name}: {}", each.join(", ")));
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

    fn stop(&self) {
        // If nobody listens any more the run is ending.
        let _ = self.stop.send(());
    }
}
