//! Compares the running instance with a scenario: the smallest set of changes between them, and the scenario
//! that describes the instance.
//!
//! A scenario's start is the state of its sections after its events at time 0. Settings that later events of
//! the running scenario have changed belong to those events: they are neither compared nor written.

mod blocks;
mod routers;
mod starting;
mod written;

pub use starting::{StartSetting, StartSettingError, with_settings};
pub(crate) use written::without_changes;
pub use written::{WrittenScenario, with_changes};

use crate::objects::changing::{AnyObjects, PlannedChange};
use crate::objects::links::LiveLinks;
use crate::objects::media::LiveMedia;
use crate::objects::note_start;
use crate::objects::routers::gone;
use crate::objects::sources::LiveSources;
use crate::objects::{ObjectChange, Objects};
use crate::planned_rewiring::{PlannedRewiring, objects_between};
use crate::running_state::RunningState;
use blocks::{ChangedLater, ObjectEdits, StartBlocks};
use longwire_assemble::{FixedDifference, are_joined_alike, fixed_differences, tolerance};
use longwire_control::{
    Comparison, Kind, ObjectDifference, RefusedDifference, RewireResponse, RewiredObject, ScenarioRequest,
    SetError,
};
use longwire_engine::Remote;
use longwire_scenario::{Plan, Router, RouterEvent, ScenarioError, advanced, staged_sections};
use longwire_units::Nanos;
use routers::{RoutersAtStart, Toward};
use std::sync::Arc;

/// A scenario's objects at its start.
#[derive(Debug)]
struct Start {
    plan: Arc<Plan>,
    links: LiveLinks,
    sources: LiveSources,
    media: LiveMedia,
}

/// The start of the running scenario, as far as it matters for what is written of the instance.
#[derive(Debug)]
pub(crate) struct WrittenStart {
    /// The scenario's text.
    text: Arc<str>,
    /// Of links, sources and media.
    blocks: [StartBlocks; 3],
    routers: Vec<Router>,
    router_events: Vec<RouterEvent>,
    /// What later events have changed.
    kept: ChangedLater,
}

/// The changes of settings that a comparison asks for.
pub(crate) struct Changes {
    /// The scenario that is wanted, as it is after what its events have added and removed by now.
    pub(crate) text: Arc<str>,
    in_engine: Vec<(Kind, PlannedChange)>,
    of_routers: Vec<ObjectChange>,
}

/// What a comparison has found: how it is shown, the changes of settings, and what joins and leaves.
type ComparisonResult = (Comparison, Changes, Option<PlannedRewiring>);

impl Start {
    fn of(plan: Arc<Plan>) -> Self {
        let links = LiveLinks::new(&plan, &[]);
        let sources = LiveSources::new(&plan, &[]);
        let media = LiveMedia::new(&plan, &[]);
        note_start(&plan, [&links, &sources, &media]);
        Self { plan, links, sources, media }
    }

    /// The links, the sources and the media.
    fn in_engine(&self) -> [&AnyObjects; 3] {
        [&self.links, &self.sources, &self.media]
    }
}

/// The running instance.
pub(crate) struct Running<'r> {
    /// Its plan, its objects, and where the engine has them.
    pub(crate) state: &'r RunningState,
    /// The handle to its workers.
    pub(crate) remote: &'r Remote,
    /// Time since the start.
    pub(crate) elapsed: Nanos,
}

impl Running<'_> {
    /// Compares the instance with the scenario `toml`.
    ///
    /// # Errors
    /// If the scenario is invalid, or the workers don't answer.
    pub(crate) fn compared(&self, toml: &str) -> Result<Comparison, SetError> {
        Ok(self.found(&self.start_now(toml)?)?.0)
    }

    /// What makes what runs equal to a scenario, checked. If something can't change and the rest is wanted,
    /// this is the settings that can: which objects there are stays.
    ///
    /// # Errors
    /// If the scenario is wrong, or something can't change and the rest is not wanted.
    pub(crate) fn changes_to(&self, wanted: &ScenarioRequest) -> Result<ComparisonResult, SetError> {
        let (mut shown, changes, rewiring) = self.found(&self.start_now(&wanted.toml)?)?;
        if shown.refused.is_empty() {
            return Ok((shown, changes, rewiring));
        }
        if !wanted.partial {
            return Err(SetError::Refused(in_words(&shown.refused)));
        }
        let left = shown.added.drain(..).chain(shown.removed.drain(..));
        shown.refused.extend(left.map(|RewiredObject { kind, name }| RefusedDifference {
            what: format!("{kind} \"{name}\""),
            reason: "objects are added and removed all or none, and if nothing else is refused".into(),
        }));
        shown.paths = false;
        Ok((shown, changes, None))
    }

    /// Changes settings: those of links, sources and media at one instant, then those of each router. What is
    /// `shown` to change is afterwards what has changed.
    ///
    /// # Errors
    /// If a change is refused; those before it are made. Links, sources and media are changed all or none.
    pub(crate) fn make(&self, changes: Changes, shown: &mut Comparison) -> Result<(), SetError> {
        let objects = &self.state.objects;
        let Changes { in_engine, of_routers, .. } = changes;
        let (first, mut all) = (in_engine.len(), std::mem::take(&mut shown.changes).into_iter());
        objects.make(self.remote, in_engine)?;
        shown.changes.extend(all.by_ref().take(first));
        for (change, made) in of_routers.into_iter().zip(all) {
            // They are saved with the scenario.
            objects.set(self.remote, &[change], None).map(drop)?;
            shown.changes.push(made);
        }
        Ok(())
    }

    /// The scenario that describes the instance. Its start is computed once for each scenario, after which
    /// this costs what has changed since, however many objects there are.
    ///
    /// # Errors
    /// If the workers don't answer.
    pub(crate) fn written(&self, known: &mut Option<WrittenStart>) -> Result<WrittenScenario, SetError> {
        let plan = &self.state.plan;
        let start = match known.take().filter(|start| Arc::ptr_eq(&start.text, &plan.text)) {
            Some(start) => known.insert(start),
            None => known.insert(self.written_start()?),
        };
        start.kept.go_on(plan, self.elapsed);
        let mut changes = written::Writing::default();
        for (objects, blocks) in self.state.objects.in_engine().into_iter().zip(&start.blocks) {
            objects.read(self.remote, objects.perhaps_changed(blocks)).map_err(gone)?;
            changes.objects(objects, blocks, &start.kept);
        }
        let at_start = RoutersAtStart { routers: &start.routers, events: &start.router_events };
        let changed = self.state.objects.routers.perhaps_changed();
        for change in self.router_changes(at_start, changed, Toward::Now)? {
            changes.router(&change.change);
        }
        Ok(WrittenScenario { text: Arc::clone(&plan.text), changes: changes.entries() })
    }

    /// The start of the running scenario without the changes that were written into it, so that these are
    /// written again.
    fn written_start(&self) -> Result<WrittenStart, SetError> {
        let plan = &self.state.plan;
        let base = self.start_of(without_changes(&plan.text))?;
        let (now, then) = (self.state.objects.in_engine(), base.in_engine());
        Ok(WrittenStart {
            text: Arc::clone(&plan.text),
            blocks: std::array::from_fn(|at| now[at].start_blocks(then[at])),
            routers: base.plan.routers.clone(),
            router_events: base.plan.router_events.clone(),
            kept: ChangedLater::none(plan),
        })
    }

    /// The start of a scenario in the folder of the running one.
    fn start_of(&self, toml: &str) -> Result<Start, SetError> {
        let wrong = |error| mistakes("toml", error);
        let plan = longwire_scenario::parse_after(&self.state.plan, toml, self.elapsed).map_err(wrong)?;
        Ok(Start::of(Arc::new(plan)))
    }

    /// The start of a scenario after what its events have added and removed by now.
    fn start_now(&self, toml: &str) -> Result<Start, SetError> {
        let now = advanced(toml, self.elapsed);
        self.start_of(now.as_deref().unwrap_or(toml))
    }

    /// Settings that events have changed by now.
    fn kept(&self) -> ChangedLater {
        ChangedLater::by(&self.state.plan, self.elapsed)
    }

    /// Reads the current blocks of all objects from the workers.
    fn look_at_all(&self) -> Result<(), SetError> {
        let Objects { links, sources, media, .. } = &*self.state.objects;
        let asked = longwire_clock::monotonic();
        let report = self.remote.report(tolerance(&self.state.plan)).map_err(gone)?;
        links.note_report(asked, &report);
        sources.look(self.remote, 0..sources.names().len() as u32);
        media.look(self.remote, 0..media.names().len() as u32);
        Ok(())
    }

    fn found(&self, wanted: &Start) -> Result<ComparisonResult, SetError> {
        let state = self.state;
        // The running plan includes values chosen for the machine, such as memory.
        let base = self.start_of(&state.plan.text)?;
        let mut fixed = fixed_differences(&base.plan, &wanted.plan);
        if staged_sections(&base.plan.text) != staged_sections(&wanted.plan.text) {
            let (what, reason) = ("[[at]], add and remove".into(), "it is planned before the run".into());
            fixed.push(FixedDifference { what, reason });
        }
        let fixed = fixed.into_iter();
        let refused = fixed.map(|fixed| RefusedDifference { what: fixed.what, reason: fixed.reason });
        let RewireResponse { added, removed } = objects_between(&base.plan, &wanted.plan);
        let mut shown = Comparison { added, removed, refused: refused.collect(), ..Comparison::default() };
        let mut rewiring = None;
        if shown.refused.is_empty() && !are_joined_alike(&base.plan, &wanted.plan) {
            shown.paths = shown.added.is_empty() && shown.removed.is_empty();
            match PlannedRewiring::new(&state.plan, &state.layout, &wanted.plan, false) {
                Ok(planned) => rewiring = Some(planned),
                Err(error) => shown.refused.push(not_rewired(&shown, error.to_string())),
            }
        }
        let text = Arc::clone(&wanted.plan.text);
        let mut changes = Changes { text, in_engine: Vec::new(), of_routers: Vec::new() };
        let kept = self.kept();
        self.look_at_all()?;
        for (objects, wanted) in state.objects.in_engine().into_iter().zip(wanted.in_engine()) {
            let (kind, mut edits) = (objects.kind().kind(), objects.edits_to(wanted, &kept));
            if kind == Kind::Link {
                // One with other ends begins anew.
                edits.retain(|edits| !shown.removed.iter().any(|gone| gone.is_link(&edits.name)));
            }
            changes.take(&mut shown, kind, edits);
        }
        let at_start = RoutersAtStart::of(&wanted.plan);
        let all = 0..state.plan.routers.len() as u32;
        for change in self.router_changes(at_start, all, Toward::Scenario)? {
            shown.changes.push(change.shown);
            changes.of_routers.push(change.change);
        }
        Ok((shown, changes, rewiring))
    }
}

impl Changes {
    fn take(&mut self, shown: &mut Comparison, kind: Kind, all: Vec<ObjectEdits>) {
        for ObjectEdits { name, settings, planned, refused, .. } in all {
            match (refused, planned) {
                (Some(reason), _) => {
                    let what = format!("{} \"{name}\"", kind.word());
                    shown.refused.push(RefusedDifference { what, reason });
                }
                (None, Some(planned)) => {
                    shown.changes.push(ObjectDifference { kind, name, settings });
                    self.in_engine.push((kind, planned));
                }
                (None, None) => {}
            }
        }
    }
}

/// The mistakes in the text that a request has as `key`, which is no file of the running scenario.
pub(crate) fn mistakes(key: &str, mut error: ScenarioError) -> SetError {
    error.findings.iter_mut().for_each(|finding| finding.file = key.into());
    SetError::Scenario { key: key.into(), mistakes: error.to_string() }
}

/// What would join and leave, and does not.
fn not_rewired(shown: &Comparison, reason: String) -> RefusedDifference {
    let mut all = shown.added.iter().chain(&shown.removed);
    let what = match (all.next(), all.count()) {
        (None, _) => "[[path]]".into(),
        (Some(RewiredObject { kind, name }), 0) => format!("{kind} \"{name}\""),
        (Some(RewiredObject { kind, name }), more) => format!("{kind} \"{name}\" and {more} more"),
    };
    RefusedDifference { what, reason }
}

/// A sentence about what can't change.
fn in_words(refused: &[RefusedDifference]) -> String {
    const SHOWN: usize = 5;
    let each = refused.iter().take(SHOWN).map(|one| format!("{}: {}", one.what, one.reason));
    let mut text = format!("not all of it can change while it runs: {}", each.collect::<Vec<_>>().join("; "));
    if refused.len() > SHOWN {
        text += &format!("; and {} more", refused.len() - SHOWN);
    }
    text + ". Add --partial (in the API, partial) to change the rest"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real_run::{RealOptions, RealRun};

    const ROUTED: &str = r#"
        [[port]]
        name = "a"
        driver = "source"
        addresses = "10.0.1.9/24"

        [[port]]
        name = "b"
        driver = "source"
        addresses = "10.0.2.9/24"

        [[router]]
        name = "r"
        ports = [{ port = "a", addresses = "10.0.1.1/24" }, { port = "b", addresses = "10.0.2.1/24" }]
        routes = [{ to = "10.7.0.0/16", via = "10.0.2.9" }]

        [[link]]
        name = "up"
        from = "a"
        to = "b"
        delay = "10 ms"
    "#;

    #[test]
    fn what_has_changed_before_something_fails_is_known_and_written() {
        let plan = longwire_scenario::parse("routed.toml", ROUTED).unwrap();
        let name = format!("t{}-made", std::process::id());
        let run = RealRun::start(plan, None, RealOptions { name, ..RealOptions::default() }).unwrap();
        let toml = ROUTED.replace("10 ms", "30 ms").replace("via = \"10.0.2.9\"", "via = \"10.0.2.8\"");
        let wanted = ScenarioRequest { toml, partial: false };
        {
            let state = run.instance().state();
            let running = run.instance().running(&state);
            let (mut shown, mut changes, rewiring) = running.changes_to(&wanted).unwrap();
            assert!(rewiring.is_none() && shown.changes.len() == 2, "{shown:?}");
            // A router that fails.
            changes.of_routers[0].name = "gone".into();
            assert!(running.make(changes, &mut shown).is_err());
            let made: Vec<_> = shown.changes.iter().map(|change| &*change.name).collect();
            assert_eq!(made, ["up"]);
        }
        let written = run.instance().written().unwrap();
        assert!(written.changes.contains("30 ms") && !written.changes.contains("10.0.2.8"), "{written:?}");
        assert_eq!(&*written.text, ROUTED);
        run.stop();
    }
}
