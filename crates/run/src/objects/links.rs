//! Settings of links.

use super::changing::{CurrentObject, LiveObjects, ObjectKind};
use super::settings::{SettingPair, Settings, of_ramps, quantity};
use longwire_block::change::{Blocks, Edit};
use longwire_block::path::LinkRef;
use longwire_block::{Spec, Values};
use longwire_control::{Kind, Quantity, SetError, Settable};
use longwire_engine::{LinkReport, Report, Target};
use longwire_link::without;
use longwire_scenario::library::{Direction, SHIPPED, ShippedProfile};
use longwire_scenario::{
    BlockPatch, FaultPlace, LinkFault, Plan, called_elsewhere, contradictions, implied_block, implied_kind,
    implied_removal, link_edit, suggestion, unplanned_target, with_defaults,
};
use longwire_units::Nanos;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The parameter that selects a key's block.
const KIND: &str = "kind";
/// A given setting: its name as written, its parameter (none for a block's plain value), and its text.
struct Setting<'s> {
    written: &'s str,
    name: Option<&'s str>,
    text: &'s str,
}

/// The links of a run.
pub type LiveLinks = LiveObjects<LinkKind>;

/// Links, whose settings are those of the registry's blocks.
#[derive(Debug)]
pub struct LinkKind {
    registry: Vec<&'static Spec>,
    /// The one key whose blocks have a parameter of this name; none if several have.
    owners: HashMap<&'static str, Option<&'static str>>,
    /// The scenario's folder, to which names of files are relative.
    folder: PathBuf,
    /// The directions of profiles, by a link's place in the plan.
    directions: Vec<Direction>,
}

impl LiveLinks {
    /// The links of `plan`, with the engine's references. Without these they can be shown but not changed.
    pub fn new(plan: &Plan, refs: &[LinkRef]) -> Self {
        let mut kind = LinkKind::of(plan.folder().into());
        kind.directions = plan.links.iter().map(|link| link.direction).collect();
        let names = plan.links.iter().map(|link| link.name.to_string()).collect();
        let planned =
            plan.profiles.iter().map(|profile| with_defaults(&profile.blocks, &kind.registry)).collect();
        let profiles = plan.links.iter().map(|link| link.profile).collect();
        let targets = refs.iter().map(|&link| Target::Link(link)).collect();
        Self::made(kind, names, targets, (planned, profiles))
    }

    /// What in a link's settings looks like a mistake.
    pub(crate) fn notes(&self, place: u32) -> Vec<String> {
        contradictions(&self.known(place)).iter().map(ToString::to_string).collect()
    }

    /// Records the links' blocks from a report that was asked for at this time.
    pub fn note_report(&self, asked: Nanos, report: &Report) {
        let changed = |link: &LinkReport| Some((link.place, Arc::clone(link.changed.as_ref()?)));
        self.note_read(asked, report.links.iter().filter_map(changed));
    }
}

impl ObjectKind for LinkKind {
    fn kind(&self) -> Kind {
        Kind::Link
    }

    fn edits(&self, link: &CurrentObject<'_>, pairs: &[&SettingPair]) -> Result<Vec<Edit>, SetError> {
        let direction = self.directions.get(link.place as usize).copied();
        let Some(pairs) = self.with_profile(pairs, direction.unwrap_or(Direction::Forward))? else {
            return self.edits_of(link.blocks, pairs);
        };
        let bare = self.without_profile(link.blocks);
        let edits = self.edits_of(&bare, &pairs.iter().collect::<Vec<_>>())?;
        Ok(self.whole_profile(&bare, edits))
    }

    fn check(&self, _place: u32, planned: &Blocks, edits: &[Edit]) -> Result<(), SetError> {
        check_ways(planned, edits)
    }

    fn settings(&self, blocks: &Blocks) -> Settings {
        let each = blocks.iter().flat_map(|(spec, values)| {
            let params = spec.params.iter().zip(values.as_slice()).enumerate();
            let params =
                params.map(|(index, (param, value))| (self.key(spec, index), value.print(param.kind)));
            let kind = self.is_named(spec).then(|| (format!("{}.{KIND}", spec.key), spec.kind.into()));
            params.chain(kind)
        });
        each.collect()
    }

    fn settable(&self) -> Vec<Settable> {
        let mut all: Vec<Settable> = Vec::new();
        let words = |key: String, help, words: Vec<&'static str>| {
            Settable::new(key, help, words.join(", "), Quantity::Words(words))
        };
        for spec in &self.registry {
            for (index, param) in spec.params.iter().enumerate() {
                let key = self.key(spec, index);
                Settable::new(key, param.help, param.takes(), quantity(param)).add_to(&mut all);
            }
            let kinds: Vec<_> =
                self.registry.iter().filter(|row| row.key == spec.key).map(|row| row.kind).collect();
            if kinds.len() > 1 {
                words(format!("{}.{KIND}", spec.key), "which kind it is", kinds).add_to(&mut all);
            }
        }
        let profiles = SHIPPED.iter().map(|shipped| shipped.name).collect();
        words(PROFILE.into(), "applies a profile", profiles).add_to(&mut all);
        all.into_iter().chain(of_ramps()).collect()
    }
}

impl LinkKind {
    /// Settings that a change of a link may name, in any run.
    pub fn known() -> Vec<Settable> {
        Self::of(PathBuf::new()).settable()
    }

    /// Links of a scenario in this folder.
    fn of(folder: PathBuf) -> Self {
        let registry = longwire_link::registry();
        let mut owners = HashMap::new();
        for spec in &registry {
            for param in spec.params {
                let owner = owners.entry(param.name).or_insert(Some(spec.key));
                *owner = owner.filter(|key| *key == spec.key);
            }
        }
        Self { registry, owners, folder, directions: Vec::new() }
    }

    /// The edits that `pairs` of key and text mean for a link with `blocks`.
    fn edits_of(&self, blocks: &Blocks, pairs: &[&SettingPair]) -> Result<Vec<Edit>, SetError> {
        let mut keys: Vec<(&'static str, Vec<Setting<'_>>)> = Vec::new();
        let mut faults = Vec::new();
        for (written, text) in pairs {
            let found = self.find(written).or_else(|| self.find_among(written, pairs, blocks));
            let Some((key, mut name)) = found else {
                faults.push(self.unknown((written, text), pairs, blocks));
                continue;
            };
            if name.is_none() && self.word_meant(key, text).is_some() {
                name = Some(KIND);
            }
            let setting = Setting { written, name, text };
            match keys.iter_mut().find(|(other, _)| *other == key) {
                Some((_, settings)) => settings.push(setting),
                None => keys.push((key, vec![setting])),
            }
        }
        let mut edits = Vec::new();
        for (key, settings) in keys {
            match self.edit(blocks, key, &settings) {
                Ok(edit) => edits.push(edit),
                Err(of_key) => faults.extend(of_key),
            }
        }
        if faults.is_empty() { Ok(edits) } else { Err(SetError::of_all(faults)) }
    }

    /// The edit of one key's block by its settings.
    fn edit(
        &self,
        blocks: &Blocks,
        key: &'static str,
        settings: &[Setting<'_>],
    ) -> Result<Edit, Vec<SetError>> {
        let (kinds, params): (Vec<_>, Vec<_>) =
            settings.iter().partition(|setting| setting.name == Some(KIND));
        let texts: Vec<_> = params.iter().map(|setting| (setting.name, setting.text)).collect();
        let kind = kinds.last();
        let patch = BlockPatch { key, kind: kind.map(|setting| setting.text), params: &texts };
        let wrong = |LinkFault { place, what, fix }| {
            let written = match place {
                FaultPlace::Kind => kind.map(|setting| setting.written),
                FaultPlace::Param(number, ..) => Some(params[number].written),
                FaultPlace::Whole => None,
            };
            let reason = if fix.is_empty() { what } else { format!("{what}; {fix}") };
            SetError::Value { key: written.unwrap_or(key).into(), reason }
        };
        link_edit(&self.registry, blocks, patch, &self.folder)
            .map_err(|faults| faults.into_iter().map(wrong).collect())
    }

    /// The block that a key's plain value names, if it names one.
    fn word_meant(&self, key: &str, text: &str) -> Option<&'static Spec> {
        implied_removal(key, text).or_else(|| implied_kind(&self.registry, key, text))
    }

    /// The parameter that an unqualified name means, if blocks of several keys have it: that of a block which
    /// the same change sets, else that of a block of the link. None if that is ambiguous.
    fn find_among<'s>(
        &self,
        written: &'s str,
        pairs: &[&SettingPair],
        blocks: &Blocks,
    ) -> Option<(&'static str, Option<&'s str>)> {
        let has = |spec: &Spec| spec.params.iter().any(|param| param.name == written);
        let only = |rows: Vec<&'static Spec>| {
            let first = rows.first()?.key;
            rows.iter().all(|spec| spec.key == first).then_some((first, Some(written)))
        };
        let asked = self.asked(pairs, blocks);
        let replaced = |spec: &Spec| asked.iter().any(|other| other.key == spec.key);
        let own = blocks.iter().map(|(spec, _)| *spec).filter(|spec| has(spec) && !replaced(spec));
        only(asked.iter().copied().filter(|spec| has(spec)).collect()).or_else(|| only(own.collect()))
    }

    /// The blocks that a change sets or modifies.
    fn asked(&self, pairs: &[&SettingPair], blocks: &Blocks) -> Vec<&'static Spec> {
        let kind_of = |(key, text): &&SettingPair| {
            let (key, name) = self.find(key)?;
            let row = self.registry.iter().copied().find(|spec| (spec.key, spec.kind) == (key, text.trim()));
            let own = blocks.iter().map(|(spec, _)| *spec).find(|spec| spec.key == key);
            match name {
                Some(KIND) => row,
                None if self.word_meant(key, text).is_some() => self.word_meant(key, text),
                _ => implied_block(&self.registry, own, key, &[name]),
            }
        };
        pairs.iter().filter_map(kind_of).collect()
    }

    /// `pairs` with a profile's name replaced by its settings; none if they name no profile. Queues also have
    /// a setting `profile`.
    fn with_profile(
        &self,
        pairs: &[&SettingPair],
        direction: Direction,
    ) -> Result<Option<Vec<SettingPair>>, SetError> {
        let is_profile = |pair: &SettingPair| pair.0 == PROFILE && !self.is_word_of_block(&pair.1);
        // The last one wins, as of other settings.
        let Some((key, text)) = pairs.iter().rev().copied().find(|pair| is_profile(pair)) else {
            return Ok(None);
        };
        let wrong = |reason| SetError::Value { key: key.clone(), reason };
        let (name, selected) = Direction::split(text.trim());
        let shipped = ShippedProfile::named(name).ok_or_else(|| wrong(no_profile(name)))?;
        let settings = shipped.settings(selected.unwrap_or(direction));
        let mut all = settings.map_err(|error| wrong(error.to_string()))?;
        // Keys given explicitly take precedence.
        all.retain(|(setting, _)| pairs.iter().all(|(key, _)| block_of(key) != block_of(setting)));
        all.extend(pairs.iter().copied().filter(|pair| !is_profile(pair)).cloned());
        Ok(Some(all))
    }

    /// The blocks of a link with those that a profile sets at their defaults.
    fn without_profile(&self, blocks: &Blocks) -> Blocks {
        let kept: Blocks =
            blocks.iter().filter(|(spec, _)| !OF_PROFILES.contains(&spec.key)).cloned().collect();
        with_defaults(&kept, &self.registry)
    }

    /// The edits of a link without a profile, `bare`, and those of the keys that they leave as they are
    /// there. Each gives a whole block: it is the same for every link, whatever that was set to before.
    fn whole_profile(&self, bare: &Blocks, edits: Vec<Edit>) -> Vec<Edit> {
        let of_key = |key: &str| bare.iter().find(|(spec, _)| spec.key == key).cloned();
        let left = OF_PROFILES.iter().filter(|key| edits.iter().all(|edit| edit.spec.key != **key));
        let left = left.filter_map(|key| {
            let (spec, values) = of_key(key).or_else(|| Some((without(key)?, Values::made(Vec::new()))))?;
            Some(whole(spec, values))
        });
        let left: Vec<Edit> = left.collect();
        let given = edits.into_iter().map(|edit| match edit.apply(bare) {
            Some((spec, values)) if OF_PROFILES.contains(&spec.key) => whole(spec, values),
            _ => edit,
        });
        given.chain(left).collect()
    }

    /// Whether some block's own setting `profile` takes this.
    fn is_word_of_block(&self, text: &str) -> bool {
        let params = self.registry.iter().flat_map(|spec| spec.params);
        params.filter(|param| param.name == PROFILE).any(|param| param.read(text).is_ok())
    }

    /// The key and parameter of a setting: a block's key (for a plain value), `key.kind`, `key.parameter`, or
    /// the name of a parameter that only one key has.
    fn find<'s>(&self, written: &'s str) -> Option<(&'static str, Option<&'s str>)> {
        let known = |key: &str| self.registry.iter().map(|spec| spec.key).find(|known| *known == key);
        if let Some(key) = known(written) {
            return Some((key, None));
        }
        let Some((key, name)) = written.split_once('.') else {
            return Some((self.only_key_with(written)?, Some(written)));
        };
        let key = known(key)?;
        let mut rows = self.registry.iter().filter(|spec| spec.key == key);
        let some_has = rows.any(|spec| spec.params.iter().any(|param| param.name == name));
        (name == KIND || some_has).then_some((key, Some(name)))
    }

    /// The one key whose blocks have a parameter of this name.
    fn only_key_with(&self, name: &str) -> Option<&'static str> {
        self.owners.get(name).copied().flatten()
    }

    /// The setting's name of a block's parameter.
    fn key(&self, spec: &Spec, index: usize) -> String {
        let name = spec.params[index].name;
        let is_block = self.registry.iter().any(|row| row.key == name);
        let first = self.registry.iter().find(|row| row.key == spec.key);
        if first.is_some_and(|row| row.params[0].name == name) {
            spec.key.into()
        } else if !is_block && self.only_key_with(name).is_some() {
            name.into()
        } else {
            format!("{}.{name}", spec.key)
        }
    }

    /// Whether a block must be named by its kind because it is not the first of its key.
    fn is_named(&self, spec: &Spec) -> bool {
        self.registry.iter().find(|row| row.key == spec.key).is_some_and(|row| row.kind != spec.kind)
    }

    /// Why a setting is unknown or ambiguous for a link with `blocks`.
    fn unknown(&self, (key, text): (&str, &str), pairs: &[&SettingPair], blocks: &Blocks) -> SetError {
        let param = |spec: &Spec| spec.params.iter().find(|param| param.name == key);
        let mut rows: Vec<&'static Spec> =
            self.registry.iter().copied().filter(|spec| param(spec).is_some()).collect();
        if rows.is_empty() {
            return self.unlisted(key);
        }
        let asked = self.asked(pairs, blocks);
        let own = |row: &Spec| blocks.iter().any(|(spec, _)| (spec.key, spec.kind) == (row.key, row.kind));
        // Skip blocks that the same change sets.
        let open =
            |row: &&'static Spec| asked.iter().all(|spec| spec.key != row.key || spec.kind == row.kind);
        let takes = |row: &&'static Spec| param(row).is_some_and(|param| param.read(text).is_ok());
        if rows.iter().any(|row| open(row) && takes(row)) {
            rows.retain(|row| open(row) && takes(row));
        }
        let whole = |row: &Spec| Values::read(row, &[(key, text)]).is_ok();
        let set = |row: &Spec| own(row) || asked.iter().any(|spec| spec.key == row.key);
        let mut can: Vec<(&str, String)> = Vec::new();
        for row in rows.iter().filter(|row| set(row) || whole(row)) {
            // A block that the link lacks needs its kind.
            let kind = if set(row) { String::new() } else { format!("{}.{KIND}={} ", row.key, row.kind) };
            if can.iter().all(|(block, _)| *block != row.key) {
                can.push((row.key, format!("{kind}{}.{key}=", row.key)));
            }
        }
        let reason = if can.is_empty() {
            let kinds: Vec<String> =
                rows.iter().map(|row| format!("{}.{KIND}={}", row.key, row.kind)).collect();
            format!("no block of the link has it; also name a kind that has it: {}", kinds.join(" or "))
        } else {
            let can: Vec<String> = can.into_iter().map(|(_, text)| text).collect();
            format!("it is ambiguous; write {}", can.join(" or "))
        };
        SetError::Value { key: key.into(), reason }
    }

    /// The error for an unknown setting: it lists the key's parameters, as written there, if the key exists,
    /// else all settings.
    fn unlisted(&self, key: &str) -> SetError {
        let block = key.split_once('.').map(|(block, _)| block);
        let of_block = |spec: &&&'static Spec| block.is_none_or(|block| block == spec.key);
        let mut known: Vec<String> = Vec::new();
        for spec in self.registry.iter().filter(of_block) {
            known.extend(spec.params.iter().enumerate().map(|(index, param)| match block {
                Some(block) if self.key(spec, index) != block => format!("{block}.{}", param.name),
                _ => self.key(spec, index),
            }));
            known.extend(self.is_named(spec).then(|| format!("{}.{KIND}", spec.key)));
        }
        known.sort();
        known.dedup();
        if let Some(meant) = called_elsewhere(key) {
            let reason = format!("a link has no such setting; did you mean \"{meant}\"?");
            return SetError::Value { key: key.into(), reason };
        }
        SetError::UnknownKey { kind: Kind::Link, key: key.into(), known }
    }
}

/// The key of a setting's block, as written.
fn block_of(setting: &str) -> &str {
    setting.split('.').next().unwrap_or(setting)
}

/// The setting that replaces those of a profile.
const PROFILE: &str = "profile";
/// The keys that a profile sets, or else puts to their defaults.
const OF_PROFILES: [&str; 7] = ["rate", "delay", "queue", "loss", "bit-error", "duplicate", "reorder"];

/// The edit that sets all values of a block.
fn whole(spec: &'static Spec, values: Values) -> Edit {
    let given = values.as_slice().iter().cloned().enumerate().collect();
    Edit { spec, given, fresh: Some(values) }
}

/// Why no profile of this name can be set.
fn no_profile(name: &str) -> String {
    let fix: String = match suggestion(name, SHIPPED.iter().map(|shipped| shipped.name)) {
        _ if name.ends_with(".toml") || name.contains('/') => {
            "a file of your own can't be set while it runs: set its keys".into()
        }
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "longwire profiles lists them".into(),
    };
    format!("there is no profile \"{name}\"; {fix}")
}

/// Refuses filters that steer packets to links to which no path was planned; `planned` are the link's blocks
/// at the start.
fn check_ways(planned: &Blocks, edits: &[Edit]) -> Result<(), SetError> {
    let Some(target) = edits.iter().find_map(|edit| unplanned_target(planned, edit)) else { return Ok(()) };
    let reason = format!(
        "it steers to \"{target}\", where the filter of the scenario does not; paths are planned before the \
         run, so steer to the same links in the same order"
    );
    Err(SetError::Value { key: "filter".into(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::change::set_block;

    fn links() -> LiveLinks {
        let text = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
            address = \"10.0.0.2/24\"\n[[link]]\nname = \"up\"\nbetween = [\"a\", \"b\"]\n\
            rate = \"10 Mbit/s\"\n\
            delay = \"20 ms\"\nframing = \"ip\"\n";
        let plan = longwire_scenario::plan_of(text);
        LiveLinks::new(&plan, &[LinkRef::new(0, 0), LinkRef::new(0, 1)])
    }

    fn changed(pairs: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let links = links();
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let pairs: Vec<_> = pairs.iter().collect();
        let (blocks, link_kind) = (&*links.known(0), links.kind());
        let edits = link_kind.edits_of(blocks, &pairs).map_err(|e| e.to_string())?;
        let shown = edits.iter().map(|edit| {
            let (spec, values) = edit.apply(blocks).unwrap();
            let texts = spec.params.iter().zip(values.as_slice()).map(|(p, v)| v.print(p.kind));
            let kind = if link_kind.is_named(spec) { format!(" ({})", spec.kind) } else { String::new() };
            format!("{}{kind}: {}", spec.key, texts.collect::<Vec<_>>().join(", "))
        });
        Ok(shown.collect())
    }

    #[test]
    fn some_of_the_matching_links_are_chosen() {
        let links = links();
        for (name, most, chosen) in [
            ("*", 5, (vec![0, 1], 0)),
            ("up*", 1, (vec![0], 1)),
            ("up", 1, (vec![0], 1)),
            ("up.backward", 5, (vec![1], 0)),
            ("d*", 5, (Vec::new(), 0)),
            ("down", 5, (Vec::new(), 0)),
            ("*", 0, (Vec::new(), 2)),
        ] {
            assert_eq!(links.matching(name, most), chosen, "{name} {most}");
        }
    }

    #[test]
    fn what_is_not_named_is_kept() {
        assert_eq!(changed(&[("rate", "5mbit")]).unwrap(), ["rate: 5 Mbit/s, ip, 0"]);
        assert_eq!(changed(&[("overhead", "8"), ("rate.rate", "1gbit")]).unwrap(), ["rate: 1 Gbit/s, ip, 8"]);
        assert_eq!(
            changed(&[("delay", "40ms"), ("loss", "1%")]).unwrap(),
            ["delay: 40 ms, leaving", "loss: 1 %, queue, no"]
        );
        assert_eq!(changed(&[("limit", "50 ms")]).unwrap(), ["queue: 50 ms"]);
    }

    #[test]
    fn mistakes_are_named() {
        let error = changed(&[("dealy", "1")]).unwrap_err();
        assert_eq!(error, "a link has no \"dealy\"; longwire blocks lists what it can have");
        let error = changed(&[("bandwidth", "1mbit")]).unwrap_err();
        assert_eq!(error, "bandwidth: a link has no such setting; did you mean \"rate\"?");
        let error = changed(&[("rate.colour", "1")]).unwrap_err();
        assert!(
            error.starts_with("a link has no \"rate.colour\"; it has rate, rate.")
                && error.contains(", rate.overhead, ")
                && error.contains("rate.kind"),
            "{error}"
        );
        let error = changed(&[("delay", "1 ms"), ("rate", "10 Mbitt")]).unwrap_err();
        assert!(error.starts_with("rate: ") && !error.starts_with("rate: rate"), "{error}");
        let all = changed(&[("dealy", "1"), ("rate", "10 Mbitt"), ("delay", "1 ms"), ("loss", "2")]);
        let all = all.unwrap_err();
        let lines: Vec<_> = all.lines().map(|line| line.split(':').next().unwrap_or_default()).collect();
        assert!(lines[0].starts_with("a link has no \"dealy\"") && lines[1..] == ["rate", "loss"], "{all}");
    }

    #[test]
    fn what_a_kind_needs_is_kept_from_the_one_before() {
        let jitter = changed(&[("jitter", "3ms")]).unwrap();
        assert!(jitter[0].starts_with("delay (jitter): 20 ms, 3 ms"), "{jitter:?}");
    }

    /// The settings of the link at `place`, changed by each of `changes` in turn.
    fn set(links: &LiveLinks, place: u32, changes: &[&[(&str, &str)]]) -> Settings {
        let mut blocks = (*links.known(place)).clone();
        for pairs in changes {
            let pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            let pairs: Vec<_> = pairs.iter().collect();
            let link = CurrentObject { place, blocks: &blocks };
            let edits =
                links.kind().edits(&link, &pairs).unwrap_or_else(|error| panic!("{pairs:?}: {error}"));
            for edit in edits {
                let (spec, values) = edit.apply(&blocks).unwrap();
                set_block(&mut blocks, spec, values);
            }
        }
        links.kind().settings(&blocks)
    }

    /// Whatever the link had before, and in the direction of each half. Keys that no profile has are kept.
    #[test]
    fn a_profile_makes_the_link_that_a_scenario_with_it_has() {
        let duplex = |keys: &str| {
            let ports = ["a", "b"].map(|name| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n"));
            let link = "[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n";
            LiveLinks::new(&longwire_scenario::plan_of(&(ports.concat() + link + keys)), &[])
        };
        let links = duplex("mtu = 1400\nduplicate = \"1 %\"\nqueue = \"codel\"\n");
        for second in SHIPPED {
            let wanted = duplex(&format!("mtu = 1400\nprofile = \"{}\"\n", second.name));
            for first in SHIPPED {
                for place in [0, 1] {
                    let changes = [[("profile", first.name)], [("profile", second.name)]];
                    let settings = set(&links, place, &[&changes[0], &changes[1]]);
                    assert_eq!(settings, wanted.settings(place), "{} after {}", second.name, first.name);
                }
            }
        }
        // The settings given beside it win, in any order.
        for own in [[("jitter", "3ms"), ("profile", "lte")], [("profile", "lte"), ("jitter", "3ms")]] {
            let mut wanted = duplex("mtu = 1400\nprofile = \"lte\"\n").settings(0);
            wanted.insert("jitter".into(), "3 ms".into());
            assert_eq!(set(&links, 0, &[&own]), wanted);
        }
        let own = set(
            &links,
            0,
            &[&[("profile", "leo")], &[("profile", "adsl"), ("rate", "1mbit"), ("loss", "1%")]],
        );
        let wanted = duplex("mtu = 1400\nprofile = \"adsl\"\nrate = \"1 Mbit/s\"\nloss = \"1 %\"\n");
        assert_eq!(own, wanted.settings(0));
    }

    /// The name selects a direction, or else the link has one.
    #[test]
    fn a_profile_is_set_in_the_links_direction() {
        let port = |name: char| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
        let text = ('a'..='f').map(port).collect::<String>()
            + "[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\nprofile = \"adsl.backward\"\n"
            + "[[link]]\nname = \"my.backward\"\nfrom = \"c\"\nto = \"d\"\n"
            + "[[link]]\nbetween = [\"e\", \"f\"]\n";
        let links = LiveLinks::new(&longwire_scenario::plan_of(&text), &[]);
        let rate = |name: &str, profile: &str| {
            set(&links, links.place(name).unwrap(), &[&[("profile", profile)]])["rate"].clone()
        };
        for (name, rates) in [
            ("up", "640 kbit/s"),
            ("my.backward", "6.144 Mbit/s"),
            ("e-f", "6.144 Mbit/s"),
            ("f-e", "640 kbit/s"),
        ] {
            assert_eq!(rate(name, "adsl"), rates, "{name}");
            assert_eq!(rate(name, "adsl.backward"), "640 kbit/s", "{name}");
            assert_eq!(rate(name, "adsl.forward"), "6.144 Mbit/s", "{name}");
        }
    }

    #[test]
    fn a_profile_that_cannot_be_set_says_why() {
        let links = links();
        let set = |name: &str| {
            let pair = ("profile".to_owned(), name.to_owned());
            links.kind().with_profile(&[&pair], Direction::Forward).map_err(|error| error.to_string())
        };
        for (name, fix) in [
            ("ltee", "did you mean \"lte\"?"),
            ("mine", "longwire profiles lists them"),
            ("my.toml", "a file of your own can't be set while it runs: set its keys"),
        ] {
            assert_eq!(set(name).unwrap_err(), format!("profile: there is no profile \"{name}\"; {fix}"));
        }
        assert_eq!(set("osaka").unwrap(), None, "a queue's own");
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
            [
                "before=leaving",
                "delay=20 ms",
                "framing=ip",
                "overhead=0",
                "queue=1000 packets",
                "rate=10 Mbit/s",
                "state=up"
            ]
        );
        let remade: Vec<_> = settings.into_iter().collect();
        let edits = links.kind().edits_of(&links.known(0), &remade.iter().collect::<Vec<_>>()).unwrap();
        assert!(edits.len() >= 3);
    }

    #[test]
    fn packets_are_steered_only_where_a_way_was_planned() {
        let links = links();
        let planned = &*links.known(0);
        let edits = |rules: &str| {
            let pairs = [("filter".to_string(), rules.to_string())];
            links.kind().edits_of(planned, &pairs.iter().collect::<Vec<_>>()).unwrap()
        };
        let error = check_ways(planned, &edits("steer other if udp")).unwrap_err().to_string();
        assert!(
            error.contains("it steers to \"other\", where the filter of the scenario does not"),
            "{error}"
        );
        assert_eq!(check_ways(planned, &edits("drop if udp")), Ok(()));
        let mut with_filter = Blocks::new();
        edits("steer one if udp\nsteer two").iter().for_each(|edit| {
            with_filter.extend(edit.apply(planned));
        });
        assert_eq!(check_ways(&with_filter, &edits("drop if tcp\nsteer one")), Ok(()));
        assert_eq!(check_ways(&with_filter, &edits("steer one if tcp\nsteer two")), Ok(()));
        // The engine identifies targets by number.
        assert!(check_ways(&with_filter, &edits("steer two if udp\nsteer one")).is_err());
        assert!(check_ways(&with_filter, &edits("steer one\nsteer two\nsteer three")).is_err());
    }

    #[test]
    fn the_kind_of_a_block_can_change() {
        assert!(changed(&[("queue", "codel")]).unwrap()[0].starts_with("queue (codel): 1000 packets, 5 ms"));
        assert!(changed(&[("queue", "codel"), ("target", "7ms")]).unwrap()[0].contains("7 ms"));
        for none in ["", "none", "[]"] {
            assert_eq!(changed(&[("filter", none)]).unwrap(), ["filter (none): "]);
        }
        assert!(changed(&[("loss", "burst")]).unwrap_err().contains("loss (burst) needs \"loss\""));
        let error = changed(&[("queue", "codle")]).unwrap_err();
        assert!(error.contains("\"codle\" is not a limit"), "{error}");
        assert!(error.ends_with("did you mean the kind \"codel\"?"), "{error}");
        let error = changed(&[("queue", "nonsense")]).unwrap_err();
        assert!(error.contains("it is not a kind either; there are tail-drop, head-drop, red,"), "{error}");
        assert!(changed(&[("queue", "")]).unwrap_err().contains("a link always has a queue"));
        let red = changed(&[("queue.kind", "red"), ("queue", "60 packets"), ("max-p", "2 %")]).unwrap();
        assert!(red[0].starts_with("queue (red): 60 packets, ") && red[0].contains("2 %"), "{red:?}");
        let jitter = changed(&[("delay.jitter", "5ms"), ("delay", "30ms")]).unwrap();
        assert!(jitter[0].starts_with("delay (jitter): 30 ms, 5 ms"), "{jitter:?}");
        let error = changed(&[("queue.kind", "redd")]).unwrap_err();
        assert_eq!(error, "queue.kind: there is no queue of the kind \"redd\"; did you mean \"red\"?");
        let error = changed(&[("loss.kind", "gilbert-elliott")]).unwrap_err();
        assert!(error.contains("needs \"p\"") && error.ends_with("; give loss.p, too"), "{error}");
    }

    /// Rates, losses and queues have a `burst`: it means that of the block which the same change sets, or
    /// which the link has.
    #[test]
    fn parameters_that_several_have() {
        let bucket = changed(&[("rate.kind", "token-bucket"), ("rate", "1mbit"), ("burst", "10kB")]).unwrap();
        assert!(bucket[0].starts_with("rate (token-bucket): 1 Mbit/s, 10 kB, "), "{bucket:?}");
        let pie = changed(&[("queue", "pie"), ("burst", "80ms")]).unwrap();
        assert!(pie[0].starts_with("queue (pie): ") && pie[0].contains(", 80 ms, "), "{pie:?}");
        // Suggestions fit the value and the link.
        let table: [(&[(&str, &str)], &str); 6] = [
            (
                &[("burst", "10kB")],
                "burst: no block of the link has it; also name a kind that has it: rate.kind=token-bucket",
            ),
            (&[("burst", "80ms")], "burst: it is ambiguous; write queue.kind=pie queue.burst="),
            (
                &[("queue.kind", "red"), ("burst", "3.5")],
                "burst: no block of the link has it; also name a kind that has it: loss.kind=burst",
            ),
            (
                &[("loss", "2 %"), ("duplicate", "1 %"), ("where", "wire")],
                "where: it is ambiguous; write loss.where= or duplicate.where=",
            ),
            (&[("queue.kind", "red"), ("queue.burts", "5")], "a link has no \"queue.burts\""),
            (
                &[("loss.kind", "independent"), ("loss.burst", "5")],
                "loss.burst: loss (independent) has no parameter \"burst\"; there are probability, \
                 where, ecn",
            ),
        ];
        for (pairs, wanted) in table {
            let error = changed(pairs).unwrap_err();
            assert!(error.starts_with(wanted), "{pairs:?}: {error}");
        }
        // Losses and duplicates have `where`, and the link has a loss.
        let copies = changed(&[("duplicate", "1 %"), ("where", "queue")]).unwrap();
        assert!(copies.len() == 1 && copies[0].starts_with("duplicate: 1 %, "), "{copies:?}");
        assert_eq!(changed(&[("loss", "2 %"), ("where", "wire")]).unwrap(), ["loss: 2 %, wire, no"]);
        // `rate` means the link's own: background traffic must be qualified.
        let error = changed(&[("background.kind", "cbr"), ("rate", "2mbit")]).unwrap_err();
        assert!(error.contains("needs \"rate\"") && error.ends_with("give background.rate, too"), "{error}");
    }

    #[test]
    fn what_a_link_can_be_without_is_removed() {
        for text in ["", "none", "[]"] {
            for key in ["loss", "mtu", "bit-error", "duplicate", "reorder", "background"] {
                assert_eq!(changed(&[(key, text)]).unwrap(), [format!("{key} (none): ")]);
                assert_eq!(
                    changed(&[(&format!("{key}.kind"), "none")]).unwrap(),
                    [format!("{key} (none): ")]
                );
            }
        }
        for key in ["rate", "delay", "queue"] {
            assert!(
                changed(&[(key, "")]).unwrap_err().contains(&format!("a link always has a {key}: write"))
            );
        }
        let error = changed(&[("loss", ""), ("loss.where", "wire")]).unwrap_err();
        assert!(error.contains("removes loss"), "{error}");
    }
}
