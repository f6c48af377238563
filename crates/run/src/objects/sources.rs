//! Settings of traffic sources.

use super::changing::{CurrentObject, LiveObjects, ObjectKind};
use super::settings::{SettingPair, Settings, keyed, of_ramps, quantity};
use crate::threads::lock;
use longwire_block::change::{Blocks, Edit};
use longwire_block::flow::Course;
use longwire_block::{ParamKind, Value};
use longwire_control::{Bounds, Kind, Quantity, SetError, Settable};
use longwire_engine::{SourceRef, Target};
use longwire_scenario::{Plan, SourceSite, source_edits, source_rows};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

/// The setting that names the model.
const MODEL: &str = "model";

/// The sources of a run.
pub type LiveSources = LiveObjects<SourceKind>;

/// Sources, whose settings are those of their models and their flow.
#[derive(Debug)]
pub struct SourceKind {
    plan: Arc<Plan>,
    /// Ports to which changes have directed a source, with the source's place.
    aims: Mutex<Vec<(u32, u16)>>,
}

/// Why a source does not run in real time, if so: frames of a host or interface come from elsewhere. The text
/// ("not run …") does not include the name.
pub fn why_silent(plan: &Plan, source: &longwire_scenario::Source) -> Option<String> {
    let port = &plan.ports[usize::from(source.in_port)];
    if !plan.leads_outside(port) {
        return None;
    }
    let what = if port.attachment.host().is_some() { "host" } else { "interface" };
    Some(format!(
        "not run in real time: what comes in by {what} \"{}\" is what programs there send (longwire traffic, \
         say); run with --virtual, or let it come in by a port with driver = \"source\"",
        port.name
    ))
}

impl LiveSources {
    /// The sources of `plan`, with the engine's references.
    pub fn new(plan: &Arc<Plan>, refs: &[SourceRef]) -> Self {
        Self::of(plan, refs.iter().map(|&source| Target::Source(source)).collect(), Vec::new())
    }

    /// The sources of another plan, with the engine's references to them; `fresh` ones were added, the others
    /// stay as they are.
    pub(super) fn in_plan(&self, plan: &Arc<Plan>, (refs, fresh): (&[SourceRef], &HashSet<u32>)) -> Self {
        let stay = (0..).zip(&plan.sources).filter(|(place, _)| !fresh.contains(place));
        let places: HashMap<u32, u32> =
            stay.filter_map(|(place, source)| Some((self.place(&source.name)?, place))).collect();
        let aims = lock(&self.kind().aims);
        let aims = aims.iter().filter_map(|(place, port)| Some((*places.get(place)?, *port))).collect();
        Self::of(plan, refs.iter().map(|&source| Target::Source(source)).collect(), aims).after(self, fresh)
    }

    fn of(plan: &Arc<Plan>, targets: Vec<Target>, aims: Vec<(u32, u16)>) -> Self {
        let names = plan.sources.iter().map(|source| source.name.to_string()).collect();
        let planned = plan.sources.iter().map(|source| source.blocks(&plan.ports)).collect();
        let kind = SourceKind { plan: Arc::clone(plan), aims: Mutex::new(aims) };
        Self::made(kind, names, targets, (planned, (0..plan.sources.len() as u32).collect()))
    }
}

impl SourceKind {
    /// The ports to which changes have directed a source.
    pub fn aims(&self, place: usize) -> Vec<u16> {
        let aims = lock(&self.aims);
        let own = aims.iter().filter(|(other, _)| *other as usize == place);
        own.map(|(_, port)| *port).collect()
    }

    /// Records the port to which a change directs a source, if it does.
    pub(super) fn aim(&self, place: u32, made: &Blocks) {
        if let Some(course) = Course::among(made) {
            let (mut aims, aim) = (lock(&self.aims), (place, course.aim.port));
            if !aims.contains(&aim) {
                aims.push(aim);
            }
        }
    }
}

impl ObjectKind for SourceKind {
    fn kind(&self) -> Kind {
        Kind::Source
    }

    fn edits(&self, now: &CurrentObject<'_>, pairs: &[&SettingPair]) -> Result<Vec<Edit>, SetError> {
        let source = &self.plan.sources[now.place as usize];
        let site = SourceSite::of(source, self.plan.places());
        keyed(pairs, |texts| source_edits(now.blocks, texts, &site, self.plan.folder()))
    }

    fn check(&self, place: u32, _planned: &Blocks, _edits: &[Edit]) -> Result<(), SetError> {
        let source = &self.plan.sources[place as usize];
        match why_silent(&self.plan, source) {
            Some(why) => Err(SetError::Refused(format!("source \"{}\" is {why}", source.name))),
            None => Ok(()),
        }
    }

    fn settings(&self, blocks: &Blocks) -> Settings {
        let mut settings = Settings::new();
        for (spec, values) in blocks {
            if spec.key == "background" {
                settings.insert(MODEL.into(), spec.kind.into());
            }
            for (param, value) in spec.params.iter().zip(values.as_slice()) {
                let interval = matches!((param.kind, value), (ParamKind::Rate, Value::Time(_)));
                let name = if interval { "interval" } else { param.name };
                settings.insert(name.into(), value.print(param.kind));
            }
        }
        settings
    }

    fn settable(&self) -> Vec<Settable> {
        let models = source_rows().filter(|spec| spec.key == "background").map(|spec| spec.kind);
        let models = models.collect::<Vec<_>>();
        let pause = "the time between two packets, instead of a rate";
        let mut all = vec![
            Settable::new(
                MODEL,
                "when packets come, and how large they are",
                models.join(", "),
                Quantity::Words(models),
            ),
            Settable::new("interval", pause, "a time".into(), Quantity::Time(Bounds::NONE)),
        ];
        for param in source_rows().flat_map(|spec| spec.params) {
            Settable::new(param.name, param.help, param.takes(), quantity(param)).add_to(&mut all);
        }
        all.into_iter().chain(of_ramps()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_an_aim_once() {
        let mut text = String::new();
        for (place, name) in ["a", "b", "c"].into_iter().enumerate() {
            text += &format!("[[port]]\nname = \"{name}\"\ndriver = \"source\"\n");
            text += &format!("addresses = \"10.0.1.{}\"\n", place + 1);
        }
        for to in ["b", "c"] {
            let ends = format!("from = \"a\"\nto = \"{to}\"\n");
            text += &format!("[[link]]\nname = \"to-{to}\"\n{ends}");
            text += &format!("[[source]]\nname = \"for-{to}\"\n{ends}model = \"poisson\"\n");
            text += "rate = \"1 Mbit/s\"\n";
        }
        let plan = Arc::new(longwire_scenario::parse("x.toml", &text).unwrap());
        let kind = SourceKind { plan: Arc::clone(&plan), aims: Mutex::default() };
        let [to_b, to_c] = [0, 1].map(|source: usize| plan.sources[source].blocks(&plan.ports));
        for made in [&to_c, &to_b, &to_c, &to_b] {
            kind.aim(0, made);
        }
        kind.aim(1, &to_b);
        assert_eq!((kind.aims(0), kind.aims(1)), (vec![2, 1], vec![1]));
    }
}
