//! The traffic sources of a run by name, with their settings as of now, and changes to them as people write them.

use crate::live::{Pair, ramp_of, refusal};
use longwire_block::change::{Blocks, Ramp};
use longwire_block::flow::Course;
use longwire_block::{ParamKind, Value};
use longwire_control::SetError;
use longwire_engine::{Remote, SourceRef, Target, Together};
use longwire_scenario::{Plan, SourceSite, source_edits};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The setting that names the model.
const MODEL: &str = "model";

/// The sources of a run.
#[derive(Debug)]
pub struct LiveSources {
    plan: Arc<Plan>,
    /// By place in the plan.
    names: Arc<[String]>,
    refs: Vec<SourceRef>,
    planned: Vec<Arc<Blocks>>,
    changed: Mutex<Changed>,
}

#[derive(Debug, Default)]
struct Changed {
    /// What sources are made of that were changed.
    blocks: HashMap<u32, Arc<Blocks>>,
    /// The ports that people let a source send to.
    aims: Vec<(u32, u16)>,
}

impl Changed {
    /// Notes where a source that is made of these sends to.
    fn note_aim(&mut self, place: u32, blocks: &Blocks) {
        if let Some(course) = Course::among(blocks) {
            self.aims.push((place, course.aim.port));
            self.aims.dedup();
        }
    }
}

/// Why a source is not run in real time, if it is not: a host's or an interface's frames come from elsewhere. It says what the source is
/// ("not run …"), without its name.
pub fn why_silent(plan: &Plan, source: &longwire_scenario::Source) -> Option<String> {
    let port = &plan.ports[usize::from(source.in_port)];
    if !plan.has_interface(port) {
        return None;
    }
    let what = if port.attachment.host().is_some() { "host" } else { "interface" };
    Some(format!(
        "not run in real time: what comes in by {what} \"{}\" is what programs there send (longwire traffic, say); run with \
         --virtual, or let it come in by a port with driver = \"source\"",
        port.name
    ))
}

impl LiveSources {
    /// The sources of `plan`, which the engine finds at `refs`.
    pub fn new(plan: &Arc<Plan>, refs: Vec<SourceRef>) -> Self {
        Self {
            plan: Arc::clone(plan),
            names: plan.sources.iter().map(|source| source.name.to_string()).collect(),
            refs,
            planned: plan.sources.iter().map(|source| Arc::new(source.blocks(&plan.ports))).collect(),
            changed: Mutex::default(),
        }
    }

    /// The ports that people have let a source send to.
    pub fn aims(&self, place: usize) -> Vec<u16> {
        let changed = self.lock();
        let own = changed.aims.iter().filter(|(other, _)| *other as usize == place);
        own.map(|(_, port)| *port).collect()
    }

    /// The names of the sources, by place in the plan.
    pub fn names(&self) -> Arc<[String]> {
        Arc::clone(&self.names)
    }

    /// The place in the plan of the source called `name`.
    pub fn place(&self, name: &str) -> Option<u32> {
        self.names.iter().position(|known| known == name).map(|place| place as u32)
    }

    /// A source's settings as text that setting them would take, as of now if `remote` answers.
    pub fn settings(&self, remote: &Remote, place: u32) -> BTreeMap<String, String> {
        let mut changed = self.lock();
        if let Some(Ok(Some(now))) =
            self.refs.get(place as usize).map(|at| remote.made_of(Target::Source(*at)))
        {
            changed.blocks.insert(place, now);
        }
        let blocks = changed.blocks.get(&place).unwrap_or(&self.planned[place as usize]);
        let mut settings = BTreeMap::new();
        for (spec, values) in blocks.iter() {
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

    /// Changes a source's settings, all of them or none; what is not named is kept. The pairs `ramp` and `ramp.step` make a
    /// ramp of the others, which takes so long.
    ///
    /// # Errors
    /// If there is no such source, it is not run, a setting can't be that, or the engine refuses; nothing has changed then.
    pub fn set(&self, remote: &Remote, name: &str, pairs: &[Pair]) -> Result<u32, SetError> {
        let (ramp, pairs) = ramp_of(pairs)?;
        // Held until the engine has answered, so that changes take effect in the order in which they are noted.
        let mut changed = self.lock();
        let (place, Together { target, base, edits }) = self.change(remote, name, &pairs, ramp)?;
        let now = remote.change(target, base, edits, ramp).map_err(|error| refusal(error, ramp))?;
        changed.note_aim(place, &now);
        changed.blocks.insert(place, now);
        Ok(place)
    }

    /// What a change of a source's settings means, for several that are made together.
    ///
    /// # Errors
    /// If there is no such source, it is not run, or a setting can't be that.
    pub fn together(&self, remote: &Remote, name: &str, pairs: &[Pair]) -> Result<Together, SetError> {
        let pairs: Vec<&Pair> = pairs.iter().collect();
        let (place, change) = self.change(remote, name, &pairs, None)?;
        // It may be sent there from then on.
        for edit in &change.edits {
            if let Some((spec, values)) = edit.apply(&change.base) {
                self.lock().note_aim(place, &vec![(spec, values)]);
            }
        }
        Ok(change)
    }

    fn change(
        &self,
        remote: &Remote,
        name: &str,
        pairs: &[&Pair],
        ramp: Option<Ramp>,
    ) -> Result<(u32, Together), SetError> {
        let place = self.place(name).ok_or_else(|| SetError::UnknownSource(name.into()))?;
        let source = &self.plan.sources[place as usize];
        if let Some(why) = why_silent(&self.plan, source) {
            return Err(SetError::Refused(format!("source \"{name}\" is {why}")));
        }
        let target = Target::Source(self.refs[place as usize]);
        let base = Arc::clone(&self.planned[place as usize]);
        let now = remote.made_of(target).map_err(|error| refusal(error, ramp))?;
        let now = now.unwrap_or_else(|| Arc::clone(&base));
        let texts: Vec<_> = pairs.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        let site = SourceSite::of(source, self.plan.places());
        let edits = source_edits(&now, &texts, &site, Path::new(""));
        let edits = edits.map_err(|fault| SetError::Value {
            key: fault.key.clone(),
            reason: if fault.fix.is_empty() { fault.what } else { format!("{}; {}", fault.what, fault.fix) },
        })?;
        Ok((place, Together { target, base, edits }))
    }

    /// What is noted is whole even if who held the lock broke.
    fn lock(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
