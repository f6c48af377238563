//! Compares the running instance with a scenario: the smallest set of changes between them, and the scenario
//! that describes the instance.
//!
//! A scenario's start is the state of its sections after its events at time 0. Settings that later events of
//! the running scenario have changed belong to those events: they are neither compared nor written.

mod blocks;
mod routers;
mod structure;
mod written;

use crate::objects::changing::Planned;
use crate::objects::links::LiveLinks;
use crate::objects::media::LiveMedia;
use crate::objects::sources::LiveSources;
use crate::objects::{ObjectChange, Objects};
use blocks::{Kept, ObjectEdits};
use longwire_assemble::tolerance;
use longwire_control::{Comparison, Kind, ObjectDifference, RefusedDifference, SetError};
use longwire_engine::Remote;
use longwire_scenario::{Plan, ScenarioError};
use longwire_units::Nanos;
use std::sync::Arc;

/// A scenario's objects at its start.
#[derive(Debug)]
struct Start {
    plan: Arc<Plan>,
    links: LiveLinks,
    sources: LiveSources,
    media: LiveMedia,
}

/// The changes found by a comparison.
struct Changes {
    shown: Comparison,
    in_engine: Vec<(Kind, Planned)>,
    of_routers: Vec<ObjectChange>,
}

impl Start {
    fn of(plan: Arc<Plan>) -> Self {
        let links = LiveLinks::new(&plan, &[]);
        let sources = LiveSources::new(&plan, &[]);
        let media = LiveMedia::new(&plan, &[]);
        for event in plan.events.iter().filter(|event| blocks::is_at_start(event)) {
            event.links.iter().for_each(|&place| links.edit_known(place, &event.edits));
            event.sources.iter().for_each(|&place| sources.edit_known(place, &event.edits));
            event.media.iter().for_each(|&place| media.edit_known(place, &event.edits));
        }
        Self { plan, links, sources, media }
    }
}

/// The running instance.
pub(crate) struct Running<'r> {
    /// The plan with which it was started.
    pub(crate) plan: &'r Plan,
    pub(crate) objects: &'r Objects,
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
        Ok(self.changes(&self.start_of(toml)?)?.shown)
    }

    /// Applies the scenario `toml` to the instance: settings of links, sources and media at one instant, then
    /// those of each router. If `partial`, impossible changes are skipped.
    ///
    /// # Errors
    /// If the scenario is invalid, something can't change, or a change is refused; then no link, source or
    /// medium has changed.
    pub(crate) fn brought_to(&self, toml: &str, partial: bool) -> Result<Comparison, SetError> {
        let changes = self.changes(&self.start_of(toml)?)?;
        if !changes.shown.refused.is_empty() && !partial {
            return Err(SetError::Refused(in_words(&changes.shown.refused)));
        }
        self.objects.make(self.remote, changes.in_engine)?;
        for change in changes.of_routers {
            self.objects.set(self.remote, &[change], None)?;
        }
        Ok(changes.shown)
    }

    /// The scenario that describes the instance.
    ///
    /// # Errors
    /// If the workers don't answer.
    pub(crate) fn written(&self) -> Result<String, SetError> {
        // Compares with the start without earlier written changes, so that these are written again.
        let base_text = written::without_changes(&self.plan.text);
        let base = self.start_of(base_text)?;
        let kept = self.kept();
        self.look_at_all()?;
        let Objects { links, sources, media, .. } = self.objects;
        let mut text = written::Writing::new(base_text);
        text.links(&base.links.edits_to(links, &kept), links);
        text.plain(Kind::Source, &base.sources.edits_to(sources, &kept), sources);
        text.plain(Kind::Medium, &base.media.edits_to(media, &kept), media);
        for change in self.router_changes(&base.plan, routers::Toward::Now)? {
            text.router(&change);
        }
        Ok(text.finish())
    }

    /// The start of a scenario in the folder of the running one.
    fn start_of(&self, toml: &str) -> Result<Start, SetError> {
        let wrong = |error: ScenarioError| SetError::Value { key: "toml".into(), reason: error.to_string() };
        let plan = longwire_scenario::parse(&self.plan.file, toml).map_err(wrong)?;
        Ok(Start::of(Arc::new(plan)))
    }

    /// Settings that events have changed by now.
    fn kept(&self) -> Kept {
        Kept::by(self.plan, self.elapsed)
    }

    /// Reads the current blocks of all objects from the workers.
    fn look_at_all(&self) -> Result<(), SetError> {
        let report = self.remote.report(tolerance(self.plan));
        let report = report.map_err(|error| SetError::Unavailable(error.to_string()))?;
        let Objects { links, sources, media, .. } = self.objects;
        links.note_report(&report);
        (0..sources.names().len() as u32).for_each(|place| sources.look(self.remote, place));
        (0..media.names().len() as u32).for_each(|place| media.look(self.remote, place));
        Ok(())
    }

    fn changes(&self, wanted: &Start) -> Result<Changes, SetError> {
        // The running plan includes values chosen for the machine, such as memory.
        let base = self.start_of(&self.plan.text)?;
        let refused = structure::differences(&base.plan, &wanted.plan);
        let mut changes = Changes {
            shown: Comparison { changes: Vec::new(), refused },
            in_engine: Vec::new(),
            of_routers: Vec::new(),
        };
        let kept = self.kept();
        self.look_at_all()?;
        let Objects { links, sources, media, .. } = self.objects;
        changes.take(Kind::Link, links.edits_to(&wanted.links, &kept));
        changes.take(Kind::Source, sources.edits_to(&wanted.sources, &kept));
        changes.take(Kind::Medium, media.edits_to(&wanted.media, &kept));
        for change in self.router_changes(&wanted.plan, routers::Toward::Scenario)? {
            changes.shown.changes.push(change.shown);
            changes.of_routers.push(change.change);
        }
        Ok(changes)
    }
}

impl Changes {
    fn take(&mut self, kind: Kind, all: Vec<ObjectEdits>) {
        for ObjectEdits { name, settings, planned, refused, .. } in all {
            match (refused, planned) {
                (Some(reason), _) => {
                    let what = format!("{} \"{name}\"", kind.word());
                    self.shown.refused.push(RefusedDifference { what, reason });
                }
                (None, Some(planned)) => {
                    self.shown.changes.push(ObjectDifference { kind, name, settings });
                    self.in_engine.push((kind, planned));
                }
                (None, None) => {}
            }
        }
    }
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
