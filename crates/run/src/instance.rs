//! A run in real time, as seen through the API.

use crate::comparison::{Running, WrittenScenario, WrittenStart};
use crate::control_planes::ControlPlanes;
use crate::event_log::EventLog;
use crate::graph::{graph, joined};
use crate::link_now::{compared, find, link_stats};
use crate::metrics::{self, Sample};
use crate::nesp_counts::NespCounts;
use crate::objects::routers::gone;
use crate::objects::settings::mark_files;
use crate::objects::{NoticedChange, ObjectChange};
use crate::open_ports::PortWatches;
use crate::overview::{come, planned, rewired_text, scheduled_rewirings, sorted_links};
use crate::packet_log::links::LoggedLinks;
use crate::planned_rewiring::AppliedChange;
use crate::programs::change::ProgramChange;
use crate::programs::rows::{self, InstalledPrograms};
use crate::rotation::RecordFaults;
use crate::run_report::{ReportInput, fidelity_json, window_json};
use crate::running_state::RunningState;
use crate::selected_rows::selected;
use crate::series::SeriesFile;
use crate::threads::lock;
use crate::window_watch::WindowWatch;
use longwire_assemble::tolerance;
use longwire_control::{
    Answers, Comparison, Edition, EventPage, EventQuery, Instance, Kind, Made, Object, ObjectNames,
    ObjectPage, ObjectQuery, PlannedEvent, PoolUse, Problem, ProgramRequest, RewireRequest, RewireResponse,
    RoutePage, RowFilter, ScenarioRequest, SetError, Settable, Summary, Topology, chosen_in_order,
};
use longwire_engine::{FlowStats, Remote, RemoteError, Report, Run};
use longwire_report::Row;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use serde_json::Value;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A run in real time.
pub struct RunningInstance {
    name: String,
    /// Replaced as a whole.
    state: RwLock<RunningState>,
    /// The additions and removals that were scheduled at its start.
    scheduled_rewirings: Vec<PlannedEvent>,
    /// Held while the state is replaced.
    pub(crate) rewiring: Mutex<()>,
    /// The links of the packet log, if there is one.
    pub(crate) logged: OnceLock<Arc<LoggedLinks>>,
    /// Its time series, if there is one.
    pub(crate) sampled: OnceLock<Arc<Mutex<SeriesFile>>>,
    /// What fails while its files are written.
    record_faults: RecordFaults,
    /// The start of the scenario that was written last.
    written_start: Mutex<Option<WrittenStart>>,
    /// The control planes of its routers.
    pub(crate) planes: ControlPlanes,
    remote: Remote,
    watches: Mutex<PortWatches>,
    started: Nanos,
    nesp: Option<NespCounts>,
    pub(crate) window: WindowWatch,
    log: Mutex<EventLog>,
    /// What clients were answered last.
    answers: Answers,
    stop: Sender<()>,
}

impl RunningInstance {
    /// Creates the instance `name`, which asks for its end through `stop`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(
        name: String,
        state: RunningState,
        planes: ControlPlanes,
        run: &Run,
        (watches, record_faults): (PortWatches, RecordFaults),
        nesp: Option<NespCounts>,
        stop: Sender<()>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            name,
            scheduled_rewirings: scheduled_rewirings(&state.plan),
            window: WindowWatch::start(&state.plan, run.remote(), run.started())?,
            state: RwLock::new(state),
            rewiring: Mutex::default(),
            logged: OnceLock::new(),
            sampled: OnceLock::new(),
            record_faults,
            written_start: Mutex::default(),
            planes,
            remote: run.remote(),
            watches: Mutex::new(watches),
            started: run.started(),
            nesp,
            log: Mutex::default(),
            answers: Answers::default(),
            stop,
        })
    }

    /// The ports without an interface. The data are consistent even if a holder of the lock panicked.
    pub(crate) fn watches(&self) -> MutexGuard<'_, PortWatches> {
        lock(&self.watches)
    }

    /// The current state, which is not replaced while the guard lives. A thread may hold only one.
    pub fn state(&self) -> RwLockReadGuard<'_, RunningState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current state, for replacement.
    pub(crate) fn replace_state(&self) -> RwLockWriteGuard<'_, RunningState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle to its workers.
    pub const fn remote(&self) -> &Remote {
        &self.remote
    }

    /// What fails while its files are written.
    pub const fn record_faults(&self) -> &RecordFaults {
        &self.record_faults
    }

    /// A change of the scenario that was logged; the answer waits until it has been saved.
    ///
    /// # Errors
    /// What failed after it, which is logged, too.
    fn applied<T>(
        &self,
        AppliedChange { done, fault }: AppliedChange<T>,
        notice: impl FnOnce() -> NoticedChange,
    ) -> Result<Made<T>, SetError> {
        let saving = self.state().objects.tell(notice);
        let Some(fault) = fault else { return Ok(Made::new(done, saving)) };
        self.log().note(self.elapsed(), "fault", fault.to_string());
        Err(fault)
    }

    /// The running instance, for comparison with scenarios.
    pub(crate) fn running<'r>(&'r self, state: &'r RunningState) -> Running<'r> {
        Running { state, remote: self.remote(), elapsed: self.elapsed() }
    }

    /// The scenario that describes it.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn written(&self) -> Result<WrittenScenario, SetError> {
        let state = self.state();
        self.running(&state).written(&mut lock(&self.written_start))
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Nanos {
        longwire_clock::monotonic().since(self.started)
    }

    /// The workers' current counters, for the objects of `state`.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn count(&self, state: &RunningState) -> Result<Arc<Report>, RemoteError> {
        let asked = longwire_clock::monotonic();
        let mut report = self.remote().report(tolerance(&state.plan))?;
        report.window = self.window.verdicts();
        report.errors.extend(self.record_faults.all());
        let report = Arc::new(report);
        state.objects.links.note_report(asked, &report);
        let elapsed = self.elapsed();
        self.note_state(&report, elapsed);
        state.counted().note(elapsed, &report);
        Ok(report)
    }

    /// Packets sent, and dropped outside links, so far: fast however many links there are.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn flow(&self) -> Result<FlowStats, RemoteError> {
        self.remote().flow().map(|(flow, _)| flow)
    }

    /// The programs of its routers.
    pub(crate) fn programs(&self) -> InstalledPrograms {
        let routers = Arc::clone(&self.state().objects.routers);
        routers.programs(self.remote())
    }

    /// The input for a report on `counted` and `state`, with a row for each of the `programs`.
    pub fn ran(
        &self,
        state: &RunningState,
        counted: Arc<Report>,
        elapsed: Nanos,
        programs: Vec<Row>,
    ) -> ReportInput<'static> {
        let (links, sources) = (Arc::clone(&state.objects), Arc::clone(&state.objects));
        let settings = Box::new(move |place| links.links.settings(place as u32));
        let aims = Box::new(move |place| sources.sources.kind().aims(place));
        let watches = self.watches().by_place.clone();
        let planes = self.planes.rows();
        let nesp = self.nesp.as_ref().map(NespCounts::row);
        let plan = Arc::clone(&state.plan);
        ReportInput { plan, counted, watches, mode: "real", elapsed, settings, aims, planes, programs, nesp }
    }

    /// The last report, if it is recent; else a new one.
    pub(crate) fn recent(&self, state: &RunningState) -> Result<Arc<Report>, RemoteError> {
        let fresh = state.fresh();
        fresh.map_or_else(|| self.count(state), Ok)
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, EventLog> {
        lock(&self.log)
    }

    /// Logs what a `change`, or one that was `scheduled`, has added and removed.
    pub(crate) fn note_rewired(&self, at: Nanos, kind: &str, rewired: &RewireResponse) {
        for what in rewired_text(rewired, ["added", "removed"]) {
            self.log().note(at, kind, what);
        }
    }

    /// Logs the changes that have come of those that `plan`, which runs, schedules; returns the time.
    pub(crate) fn note_scheduled(&self, plan: &Plan) -> Nanos {
        let (now, mut log) = (self.elapsed(), self.log());
        let since = std::mem::replace(&mut log.noted_until, now);
        for (time, what) in come(plan, since, now) {
            log.note(time, "scheduled", what);
        }
        now
    }

    /// Logs changes of the verdict, and faults of ports.
    fn note_state(&self, report: &Report, elapsed: Nanos) {
        let mut log = self.log();
        if let Some(fidelity) = report.fidelity.as_ref().filter(|fidelity| fidelity.lateness.packets > 0) {
            log.note_verdict(elapsed, fidelity.faithful, fidelity.causes.first());
        }
        let (ports, files) = (report.ports.iter(), self.record_faults.all());
        let of_ports = ports.filter_map(|port| port.fault.as_deref());
        log.note_faults(elapsed, of_ports.chain(files.iter().map(String::as_str)));
    }

    fn chosen(
        &self,
        state: &RunningState,
        kind: Kind,
        choice: &ObjectQuery,
    ) -> Result<ObjectNames, SetError> {
        let (Kind::Link, Some(sort)) = (kind, choice.sort) else {
            return chosen_in_order(kind, &state.objects.names(self.remote(), kind), choice);
        };
        let report = self.recent(state).map_err(gone)?;
        let (elapsed, earlier) = compared(state);
        Ok(sorted_links(state, &report, (elapsed, earlier.as_ref()), choice, sort))
    }
}

impl Instance for RunningInstance {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn stats(&self, filter: &RowFilter) -> Result<Value, Box<Problem>> {
        let installed = self.programs();
        let state = self.state();
        let counted = self.recent(&state).map_err(|error| Problem::unavailable(error.to_string()))?;
        let programs = rows::counted(&state.plan, &installed);
        selected(&self.ran(&state, counted, self.elapsed(), programs), filter)
    }

    fn summary(&self) -> Result<Summary, SetError> {
        let state = self.state();
        let report = self.recent(&state).map_err(gone)?;
        let elapsed = state.counted().last.as_ref().map_or(Nanos::ZERO, |(_, elapsed, _)| *elapsed);
        let is_outer = |place: u16| state.plan.ports[usize::from(place)].attachment.far().is_none();
        let (mut in_packets, mut out_packets, mut out_bytes) = (0, 0, 0);
        for port in report.ports.iter().filter(|port| is_outer(port.place)) {
            in_packets += port.stats.in_frames;
            out_packets += port.stats.out_frames;
            out_bytes += port.stats.out_bytes;
        }
        let ran = self.ran(&state, Arc::clone(&report), elapsed, Vec::new());
        let dropped = ran.dropped().into_iter().map(|(reason, packets)| (reason.to_owned(), packets));
        let files = self.record_faults.all();
        let number = |kind: Kind| (kind.collection().to_owned(), state.objects.count(self.remote(), kind));
        Ok(Summary {
            scenario: state.plan.file.clone(),
            elapsed_ns: elapsed.0,
            fidelity: report.fidelity.as_ref().map(fidelity_json).unwrap_or_default(),
            window: report.window.as_ref().map(window_json).unwrap_or_default(),
            in_packets,
            out_packets,
            out_bytes,
            held: ran.held() + report.flow.kept,
            dropped: dropped.collect(),
            faults: report.ports.iter().filter_map(|port| port.fault.clone()).chain(files).collect(),
            pool: PoolUse { used_bytes: report.pool_used, bytes: report.pool_capacity },
            objects: Kind::ALL.into_iter().map(number).collect(),
        })
    }

    fn kept(&self, kind: Option<Kind>) -> Option<(&Answers, Edition)> {
        let state = self.state();
        let is_kept = match kind {
            Some(kind) => matches!(kind, Kind::Link | Kind::Router),
            // Programs are counted by their routers.
            None => state.plan.routers.is_empty(),
        };
        if !is_kept {
            return None;
        }
        // If these are too old, new ones are taken.
        self.recent(&state).ok()?;
        let changed = match kind {
            Some(Kind::Link) => state.objects.links.change_count(),
            // Routes that no request has changed are as old as the counters.
            Some(Kind::Router) => state.objects.routers.change_count(),
            _ => 0,
        };
        let counted = state.counted().number;
        Some((&self.answers, Edition { counted, changed }))
    }

    fn topology(&self, links: Option<&ObjectQuery>) -> Result<Topology, SetError> {
        let state = self.state();
        let Some(choice) = links else { return Ok(graph(&state.plan)) };
        let names = self.chosen(&state, Kind::Link, choice)?.names;
        let places = names.iter().filter_map(|name| state.objects.links.place(name));
        Ok(joined(&state.plan, places.map(|place| place as usize).collect()))
    }

    fn events(&self, query: EventQuery) -> EventPage {
        let state = self.state();
        let now = self.note_scheduled(&state.plan);
        let (log, last) = self.log().after(query.after);
        let rewirings = &self.scheduled_rewirings;
        let planned = if query.planned { planned(&state.plan, rewirings, now) } else { Vec::new() };
        EventPage { planned, log, last }
    }

    fn page(&self, kind: Kind, choice: &ObjectQuery) -> Result<ObjectPage, SetError> {
        let state = self.state();
        let chosen = self.chosen(&state, kind, choice)?;
        // One that has gone meanwhile is left out.
        let objects = if kind == Kind::Link {
            let counted = self.recent(&state).map_err(gone)?;
            // How links are set comes with the counters: no worker is asked for each.
            let link = |name: String| {
                let place = state.objects.links.place(&name)?;
                let stats = link_stats(&state, find(&counted.links, place)?)?;
                let (settings, notes) =
                    (state.objects.links.settings(place), state.objects.links.notes(place));
                Some(Object { kind, name, settings, stats, members: Vec::new(), notes })
            };
            chosen.names.into_iter().filter_map(link).collect()
        } else {
            state.objects.look(self.remote(), kind, chosen.names.iter().map(String::as_str));
            let counted = self.counted_for(&state, kind, &chosen.names);
            let one = |name: &String| self.show_one(&state, (kind, name), counted.as_ref()).ok();
            chosen.names.iter().filter_map(one).collect()
        };
        // What is not among the last counters was counted for this page.
        let is_kept = !matches!(kind, Kind::Medium | Kind::Flow | Kind::Forwarder);
        let counted_ns = if is_kept { compared(&state).0.0 } else { self.elapsed().0 };
        Ok(ObjectPage { total: chosen.total, from: choice.from, counted_ns, objects })
    }

    fn names(&self, kind: Kind) -> Arc<[String]> {
        self.state().objects.names(self.remote(), kind)
    }

    fn object(&self, kind: Kind, name: &str) -> Result<Object, SetError> {
        let state = self.state();
        state.objects.look(self.remote(), kind, [name]);
        self.show(&state, kind, name)
    }

    fn set(&self, kind: Kind, name: &str, changes: &[(String, String)]) -> Result<Made<Object>, SetError> {
        let change = [ObjectChange { kind, name: name.into(), pairs: changes.to_vec() }];
        let state = self.state();
        let may_quote = |fault| mark_files(fault, changes, state.plan.folder());
        let made = state.objects.set(self.remote(), &change, None).map_err(may_quote)?;
        self.note_set(&change, None);
        made.answered(|_| self.show(&state, kind, name))
    }

    fn settable(&self, kind: Kind) -> Vec<Settable> {
        self.state().objects.settable(kind)
    }

    fn routes(&self, router: &str) -> Result<RoutePage, SetError> {
        self.state().objects.routers.routes(self.remote(), router)
    }

    fn forwarders(&self, router: &str, ask: &ProgramRequest) -> Result<Value, SetError> {
        let routers = Arc::clone(&self.state().objects.routers);
        let answer = routers.forwarders(self.remote(), router, ask)?;
        if let Some(change) = ProgramChange::of(router, ask, &answer) {
            self.note_program(change);
        }
        Ok(answer)
    }

    fn rewire(&self, ask: &RewireRequest) -> Result<Made<RewireResponse>, SetError> {
        let rewired = self.edit(ask)?;
        self.note_rewired(self.elapsed(), "change", &rewired.done);
        let changed = rewired.done.added.len() + rewired.done.removed.len();
        self.applied(rewired, || NoticedChange::Applied { changed, scenario: None })
    }

    fn metrics(&self, links: Option<&str>, limit: usize) -> Result<String, SetError> {
        let state = self.state();
        let report = self.recent(&state).map_err(gone)?;
        let links_of_run = &state.objects.links;
        let matching = links.map(|pattern| links_of_run.matching(pattern, limit));
        let (matching, left_out) = matching.unwrap_or_default();
        let names = links_of_run.names();
        let link = |place: &u32| Some((names[*place as usize].clone(), find(&report.links, *place)?));
        let sample = Sample {
            scenario: &self.name,
            report: &report,
            seconds: self.elapsed().0 as f64 / 1e9,
            links: matching.iter().filter_map(link).collect(),
            left_out,
        };
        Ok(metrics::text(&sample))
    }

    fn scenario(&self) -> Result<String, SetError> {
        self.written().map(|written| written.whole())
    }

    fn compare(&self, toml: &str) -> Result<Comparison, SetError> {
        self.running(&self.state()).compared(toml)
    }

    fn apply(&self, wanted: &ScenarioRequest) -> Result<Made<Comparison>, SetError> {
        let brought = self.bring(wanted)?;
        let Comparison { changes, added, removed, refused, .. } = &brought.done;
        let mut what = format!("a scenario was applied: {} objects changed", changes.len());
        for (names, word) in [(added, "added"), (removed, "removed")] {
            if !names.is_empty() {
                what += &format!(", {} {word}", names.len());
            }
        }
        self.log().note(self.elapsed(), "change", what);
        let (changed, is_whole) = (brought.done.count(), brought.fault.is_none() && refused.is_empty());
        let scenario = || is_whole.then(|| wanted.toml.clone());
        self.applied(brought, || NoticedChange::Applied { changed, scenario: scenario() })
    }

    fn stop(&self) {
        // If the receiver is gone the run is ending.
        let _ = self.stop.send(());
    }
}
