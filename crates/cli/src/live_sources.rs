//! The traffic sources of a run by name, with their settings as of now, and changes to them as people write them.

use crate::live::{OVER, ramp};
use longwire_control::SetError;
use longwire_engine::{Blocks, Remote, RemoteError, SourceRef, Target};
use longwire_scenario::{Plan, source_edit};
use longwire_units::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The setting that names the model.
const MODEL: &str = "model";

/// The sources of a run.
#[derive(Debug)]
pub struct LiveSources {
    /// By place in the plan.
    names: Arc<[String]>,
    refs: Vec<SourceRef>,
    planned: Vec<Arc<Blocks>>,
    shortest: Vec<Bytes>,
    changed: Mutex<HashMap<u32, Arc<Blocks>>>,
}

impl LiveSources {
    /// The sources of `plan`, which the engine finds at `refs`.
    pub fn new(plan: &Plan, refs: Vec<SourceRef>) -> Self {
        Self {
            names: plan.sources.iter().map(|source| source.name.to_string()).collect(),
            refs,
            planned: plan.sources.iter().map(|source| Arc::new(source.blocks())).collect(),
            shortest: plan.sources.iter().map(longwire_scenario::Source::shortest).collect(),
            changed: Mutex::default(),
        }
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
            changed.insert(place, now);
        }
        let blocks = changed.get(&place).unwrap_or(&self.planned[place as usize]);
        let each = blocks.iter().flat_map(|(spec, values)| {
            let params = spec.params.iter().zip(values.as_slice());
            let params = params.map(|(param, value)| (param.name.to_string(), value.print(param.kind)));
            params.chain([(MODEL.into(), spec.kind.into())])
        });
        each.collect()
    }

    /// Changes a source's settings, all of them or none; what is not named is kept. The pair `over` makes a ramp of the
    /// others, which takes so long.
    ///
    /// # Errors
    /// If there is no such source, a setting can't be that, or the engine refuses; nothing has changed then.
    pub fn set(&self, remote: &Remote, name: &str, pairs: &[(String, String)]) -> Result<u32, SetError> {
        let place = self.place(name).ok_or_else(|| SetError::UnknownSource(name.into()))?;
        let (over, pairs): (Vec<_>, Vec<_>) = pairs.iter().partition(|(key, _)| key == OVER);
        let ramp = over.first().map(|(_, text)| ramp(text)).transpose()?;
        let gone = |error: RemoteError| match error {
            RemoteError::Gone => SetError::Unavailable(error.to_string()),
            RemoteError::Refused(reason) => SetError::Value { key: OVER.into(), reason },
        };
        // Held until the engine has answered, so that changes take effect in the order in which they are noted.
        let mut changed = self.lock();
        let target = Target::Source(self.refs[place as usize]);
        let planned = Arc::clone(&self.planned[place as usize]);
        let now = remote.made_of(target).map_err(gone)?.unwrap_or_else(|| Arc::clone(&planned));
        let texts: Vec<_> = pairs.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        let edit = source_edit(&now, &texts, self.shortest[place as usize], Path::new(""));
        let edit =
            edit.map_err(|fault| SetError::Value { key: fault.key.clone(), reason: fault.to_string() })?;
        changed.insert(place, remote.change(target, planned, vec![edit], ramp).map_err(gone)?);
        Ok(place)
    }

    /// What is noted is whole even if who held the lock broke.
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<Blocks>>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
