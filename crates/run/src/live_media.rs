//! The shared media of a run by name, with their settings as of now, and changes to them as people write them.

use crate::live::{Pair, ramp_of, refusal};
use longwire_block::change::{Blocks, Ramp};
use longwire_control::SetError;
use longwire_engine::{MediumRef, Remote, Target, Together};
use longwire_scenario::{Plan, medium_edit};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The media of a run.
#[derive(Debug)]
pub struct LiveMedia {
    /// By place in the plan.
    names: Arc<[String]>,
    refs: Vec<MediumRef>,
    planned: Vec<Arc<Blocks>>,
}

impl LiveMedia {
    /// The media of `plan`, which the engine finds at `refs`.
    pub fn new(plan: &Plan, refs: Vec<MediumRef>) -> Self {
        Self {
            names: plan.media.iter().map(|medium| medium.name.to_string()).collect(),
            refs,
            planned: plan.media.iter().map(|medium| Arc::new(medium.blocks())).collect(),
        }
    }

    /// The names of the media, by place in the plan.
    pub fn names(&self) -> Arc<[String]> {
        Arc::clone(&self.names)
    }

    /// The place in the plan of the medium called `name`.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// A medium's settings as text that setting them would take, as of now if `remote` answers.
    pub fn settings(&self, remote: &Remote, place: usize) -> BTreeMap<String, String> {
        let now = remote.made_of(Target::Medium(self.refs[place])).ok().flatten();
        let blocks = now.as_ref().unwrap_or(&self.planned[place]);
        let each = blocks.iter().flat_map(|(spec, values)| {
            let params = spec.params.iter().zip(values.as_slice());
            params.map(|(param, value)| (param.name.to_string(), value.print(param.kind)))
        });
        each.collect()
    }

    /// Changes a medium's settings, all of them or none; what is not named is kept. The pairs `ramp` and `ramp.step` make a
    /// ramp of the others, which takes so long.
    ///
    /// # Errors
    /// If there is no such medium, a setting can't be that, or the engine refuses; nothing has changed then.
    pub fn set(&self, remote: &Remote, name: &str, pairs: &[Pair]) -> Result<usize, SetError> {
        let (ramp, pairs) = ramp_of(pairs)?;
        let (place, Together { target, base, edits }) = self.change(remote, name, &pairs, ramp)?;
        remote.change(target, base, edits, ramp).map_err(|error| refusal(error, ramp))?;
        Ok(place)
    }

    /// What a change of a medium's settings means, for several that are made together.
    ///
    /// # Errors
    /// If there is no such medium, or a setting can't be that.
    pub fn together(&self, remote: &Remote, name: &str, pairs: &[Pair]) -> Result<Together, SetError> {
        let pairs: Vec<&Pair> = pairs.iter().collect();
        self.change(remote, name, &pairs, None).map(|(_, change)| change)
    }

    fn change(
        &self,
        remote: &Remote,
        name: &str,
        pairs: &[&Pair],
        ramp: Option<Ramp>,
    ) -> Result<(usize, Together), SetError> {
        let place = self.place(name).ok_or_else(|| SetError::UnknownMedium(name.into()))?;
        let (target, base) = (Target::Medium(self.refs[place]), Arc::clone(&self.planned[place]));
        let now = remote.made_of(target).map_err(|error| refusal(error, ramp))?;
        let now = now.unwrap_or_else(|| Arc::clone(&base));
        let texts: Vec<_> = pairs.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        let edit = medium_edit(&now, &texts);
        let edit = edit.map_err(|(key, reason)| SetError::Value { key, reason })?;
        Ok((place, Together { target, base, edits: vec![edit] }))
    }
}
