//! The links of a run by name, with their settings as of now, and changes to them as people write them.

use longwire_block::path::LinkRef;
use longwire_block::{Spec, Values};
use longwire_control::SetError;
use longwire_engine::{Changes, Remote};
use longwire_scenario::Plan;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a link is made of: a block a key at most.
type Blocks = Vec<(&'static Spec, Values)>;

/// The links of a run. What a million links are made of is kept once for each profile, and for those that were changed.
#[derive(Debug)]
pub struct LiveLinks {
    registry: Vec<&'static Spec>,
    /// By place in the plan.
    names: Arc<[String]>,
    /// Places in the order of the names.
    by_name: Vec<u32>,
    refs: Vec<LinkRef>,
    profile_of: Vec<u32>,
    profiles: Vec<Blocks>,
    changed: Mutex<HashMap<u32, Blocks>>,
}

impl LiveLinks {
    /// The links of `plan`, which the engine finds at `refs`; without these they can be shown, but not changed.
    pub fn new(plan: &Plan, refs: Vec<LinkRef>) -> Self {
        let registry = longwire_link::registry();
        let names: Vec<String> = plan.links.iter().map(|link| link.name.to_string()).collect();
        let mut by_name: Vec<u32> = (0..names.len() as u32).collect();
        by_name.sort_unstable_by_key(|&place| &names[place as usize]);
        Self {
            names: names.into(),
            by_name,
            refs,
            profile_of: plan.links.iter().map(|link| link.profile).collect(),
            profiles: plan.profiles.iter().map(|profile| with_defaults(&profile.blocks, &registry)).collect(),
            changed: Mutex::default(),
            registry,
        }
    }

    /// The names of the links, by place in the plan.
    pub fn names(&self) -> Arc<[String]> {
        Arc::clone(&self.names)
    }

    /// The place in the plan of the link called `name`.
    pub fn place(&self, name: &str) -> Option<u32> {
        let found = self.by_name.binary_search_by(|&place| self.names[place as usize].as_str().cmp(name));
        found.ok().map(|at| self.by_name[at])
    }

    /// A link's settings as text that setting them would take; `place` is its place in the plan.
    pub fn settings(&self, place: u32) -> BTreeMap<String, String> {
        let changed = self.lock();
        let blocks = self.blocks(&changed, place);
        let each = blocks.iter().flat_map(|(spec, values)| {
            let params = spec.params.iter().zip(values.as_slice()).enumerate();
            params.map(|(index, (param, value))| (self.key(spec, index), value.print(param.kind)))
        });
        each.collect()
    }

    /// The same as JSON.
    pub fn settings_json(&self, place: usize) -> Map<String, Value> {
        self.settings(place as u32).into_iter().map(|(key, text)| (key, text.into())).collect()
    }

    /// Changes a link's settings, all of them or none; what is not named is kept.
    ///
    /// # Errors
    /// If there is no such link, a setting can't be that, or the engine refuses; nothing has changed then.
    pub fn set(&self, remote: &Remote, name: &str, pairs: &[(String, String)]) -> Result<u32, SetError> {
        let place = self.place(name).ok_or_else(|| SetError::UnknownLink(name.into()))?;
        // Held until the engine has answered, so that changes take effect in the order in which they are noted.
        let mut changed = self.lock();
        let old = self.blocks(&changed, place);
        let changes = self.changes(old, pairs)?;
        let mut new = old.clone();
        for (spec, values) in &changes {
            match new.iter_mut().find(|(other, _)| other.key == spec.key) {
                Some(block) => *block = (spec, values.clone()),
                None => new.push((spec, values.clone())),
            }
        }
        let link =
            self.refs.get(place as usize).ok_or_else(|| SetError::Unavailable("the run has ended".into()))?;
        remote.change(*link, changes).map_err(|error| SetError::Unavailable(error.to_string()))?;
        changed.insert(place, new);
        Ok(place)
    }

    /// What has to be changed of `blocks` for `pairs` of key and text to hold.
    fn changes(&self, blocks: &Blocks, pairs: &[(String, String)]) -> Result<Changes, SetError> {
        let mut given: Vec<(&'static Spec, Vec<(&str, &str)>)> = Vec::new();
        for (key, text) in pairs {
            let (spec, index) = self.find(blocks, key).ok_or_else(|| self.unknown(key))?;
            let param = &spec.params[index];
            let reason = |error: longwire_block::SpecError| SetError::Value {
                key: key.clone(),
                reason: without_name(&error.to_string(), param.name),
            };
            param.read(text).map_err(reason)?;
            match given.iter_mut().find(|(other, _)| other.key == spec.key) {
                Some((_, params)) => params.push((param.name, text.as_str())),
                None => given.push((spec, vec![(param.name, text.as_str())])),
            }
        }
        let change = |(spec, params): (&'static Spec, Vec<(&str, &str)>)| {
            let old = blocks.iter().find(|(other, _)| other.key == spec.key);
            let new = match old {
                Some((_, values)) => values.with(spec, &params),
                None => Values::read(spec, &params),
            };
            let failed = |error: longwire_block::SpecError| SetError::Value {
                key: spec.key.into(),
                reason: error.to_string(),
            };
            new.map(|values| (spec, values)).map_err(failed)
        };
        given.into_iter().map(change).collect()
    }

    /// The block and its parameter that `key` means: a block's key (its first parameter), `key.parameter`, or a parameter's
    /// name that only one key has.
    fn find(&self, blocks: &Blocks, key: &str) -> Option<(&'static Spec, usize)> {
        let block = |key: &str| {
            let own = blocks.iter().map(|(spec, _)| *spec).find(|spec| spec.key == key);
            own.or_else(|| self.registry.iter().copied().find(|spec| spec.key == key))
        };
        if let Some(spec) = block(key) {
            return Some((spec, 0));
        }
        if let Some((key, name)) = key.split_once('.') {
            let spec = block(key)?;
            return Some((spec, spec.params.iter().position(|param| param.name == name)?));
        }
        let spec = block(self.only_key_with(key)?)?;
        Some((spec, spec.params.iter().position(|param| param.name == key)?))
    }

    /// The one key whose blocks have a parameter of this name.
    fn only_key_with(&self, name: &str) -> Option<&'static str> {
        let has = |spec: &&&Spec| spec.params.iter().any(|param| param.name == name);
        let mut keys = self.registry.iter().filter(has).map(|spec| spec.key);
        let first = keys.next()?;
        keys.all(|key| key == first).then_some(first)
    }

    /// How the parameter at `index` of a block is called in settings.
    fn key(&self, spec: &Spec, index: usize) -> String {
        let name = spec.params[index].name;
        let is_block = self.registry.iter().any(|row| row.key == name);
        match index {
            0 => spec.key.into(),
            _ if !is_block && self.only_key_with(name).is_some() => name.into(),
            _ => format!("{}.{name}", spec.key),
        }
    }

    fn unknown(&self, key: &str) -> SetError {
        let mut known: Vec<String> = Vec::new();
        for spec in &self.registry {
            known.extend((0..spec.params.len()).map(|index| self.key(spec, index)));
        }
        known.sort();
        known.dedup();
        SetError::UnknownKey { key: key.into(), known }
    }

    fn blocks<'a>(&'a self, changed: &'a HashMap<u32, Blocks>, place: u32) -> &'a Blocks {
        let profile = &self.profiles[self.profile_of[place as usize] as usize];
        changed.get(&place).unwrap_or(profile)
    }

    /// What is noted is whole even if who held the lock broke.
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Blocks>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a link has that a scenario names `blocks` for: stages that every link has get their defaults.
fn with_defaults(blocks: &Blocks, registry: &[&'static Spec]) -> Blocks {
    let mut all = blocks.clone();
    for spec in registry {
        if all.iter().all(|(other, _)| other.key != spec.key)
            && let Ok(values) = Values::read(spec, &[])
        {
            all.push((spec, values));
        }
    }
    all
}

/// `reason` without the parameter's name before it: the setting's stands there already.
fn without_name(reason: &str, name: &str) -> String {
    reason.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(reason).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> LiveLinks {
        let text = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
            address = \"10.0.0.2/24\"\n[[link]]\nname = \"up\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\n\
            delay = \"20 ms\"\nframing = \"ip\"\n";
        let plan = longwire_scenario::parse("x.toml", text).unwrap();
        LiveLinks::new(&plan, vec![LinkRef::new(0, 0), LinkRef::new(0, 1)])
    }

    fn changed(pairs: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let links = links();
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let changes = links.changes(links.blocks(&HashMap::new(), 0), &pairs).map_err(|e| e.to_string())?;
        let shown = changes.iter().map(|(spec, values)| {
            let texts = spec.params.iter().zip(values.as_slice()).map(|(p, v)| v.print(p.kind));
            format!("{}: {}", spec.key, texts.collect::<Vec<_>>().join(", "))
        });
        Ok(shown.collect())
    }

    #[test]
    fn what_is_not_named_is_kept() {
        assert_eq!(changed(&[("rate", "5mbit")]).unwrap(), ["rate: 5 Mbit/s, ip, 0"]);
        assert_eq!(changed(&[("overhead", "8"), ("rate.rate", "1gbit")]).unwrap(), ["rate: 1 Gbit/s, ip, 8"]);
        assert_eq!(changed(&[("delay", "40ms"), ("loss", "1%")]).unwrap(), ["delay: 40 ms", "loss: 1 %"]);
        assert_eq!(changed(&[("limit", "50 ms")]).unwrap(), ["queue: 50 ms"]);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(
            changed(&[("dealy", "1")]).unwrap_err().starts_with("a link has no \"dealy\"; it has delay,")
        );
        assert!(changed(&[("rate.colour", "1")]).is_err());
        let error = changed(&[("delay", "1 ms"), ("rate", "10 Mbitt")]).unwrap_err();
        assert!(error.starts_with("rate: ") && !error.starts_with("rate: rate"), "{error}");
    }

    #[test]
    fn links_are_found_by_name_and_show_all_settings() {
        let links = links();
        assert_eq!(links.place("up.backward"), Some(1));
        assert_eq!(links.place("up"), None);
        let settings = links.settings(0);
        let shown: Vec<_> = settings.iter().map(|(key, text)| format!("{key}={text}")).collect();
        assert_eq!(
            shown,
            ["delay=20 ms", "framing=ip", "overhead=0", "queue=1000 packets", "rate=10 Mbit/s"]
        );
        let remade: Vec<_> = settings.into_iter().collect();
        assert_eq!(links.changes(links.blocks(&HashMap::new(), 0), &remade).unwrap().len(), 3);
    }
}
