//! A scenario whose run begins with other settings: its text, with the changes at time 0, as a running
//! instance that was changed so would be written.

use super::Start;
use super::blocks::ChangedLater;
use super::written::{Writing, with_changes};
use crate::objects::ObjectChange;
use crate::objects::changing::{AnyObjects, CurrentObject};
use longwire_control::{Kind, SetError};
use longwire_scenario::{Plan, parse, suggestion, with_seed};
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A setting of an object at the start of a run: `bottleneck.rate=10mbit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartSetting {
    /// The object and the setting, as in `bottleneck.rate`.
    pub target: String,
    /// The value, as in a scenario.
    pub value: String,
}

/// A setting that a scenario's objects can't begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartSettingError {
    /// The object and the setting, or the object; "with these settings" if the fault is of all together.
    pub target: String,
    /// The fault and the fix.
    pub reason: String,
}

impl fmt::Display for StartSettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.target, self.reason)
    }
}

impl Error for StartSettingError {}

impl FromStr for StartSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (target, value) = text.split_once('=').unwrap_or_default();
        match target.trim().rsplit_once('.') {
            Some((object, setting)) if !object.is_empty() && !setting.is_empty() => {
                Ok(Self { target: target.trim().into(), value: value.trim().into() })
            }
            _ => Err("write OBJECT.SETTING=VALUE, such as bottleneck.rate=10mbit".into()),
        }
    }
}

/// The plan of a scenario whose run begins with these settings, and with this seed instead of its own.
///
/// # Errors
/// If there is no such object, or it can't have such a setting.
pub fn with_settings(
    plan: &Plan,
    seed: Option<u64>,
    settings: &[StartSetting],
) -> Result<Plan, StartSettingError> {
    let whole = |reason: String| StartSettingError { target: "with these settings".into(), reason };
    let mut text = if settings.is_empty() { plan.text.to_string() } else { text_with(plan, settings)? };
    if let Some(seed) = seed {
        text = with_seed(&text, seed).map_err(|error| whole(error.to_string()))?;
    }
    parse(&plan.file, &text).map_err(|error| {
        // File and places are those of a text that nobody has seen.
        let first = error.findings.into_iter().next();
        let first = first.map(|found| match &*found.fix {
            "" => format!("{}: {}", found.field, found.what),
            fix => format!("{}: {}; {fix}", found.field, found.what),
        });
        whole(first.unwrap_or_default())
    })
}

/// The scenario's text with these settings.
fn text_with(plan: &Plan, settings: &[StartSetting]) -> Result<String, StartSettingError> {
    let plan = Arc::new(plan.clone());
    let (before, after) = (Start::of(Arc::clone(&plan)), Start::of(plan));
    let mut of_routers = Vec::new();
    for change in after.changes(settings)? {
        match after.in_engine().into_iter().find(|objects| objects.kind().kind() == change.kind) {
            Some(objects) => objects.begin_with(&change).map_err(|error| in_words(&change.name, error))?,
            None => of_routers.push(change),
        }
    }
    let mut changes = Writing::default();
    for (before, after) in before.in_engine().into_iter().zip(after.in_engine()) {
        changes.objects(after, &after.start_blocks(before), &ChangedLater::default());
    }
    of_routers.iter().for_each(|change| changes.router(change));
    Ok(with_changes(&after.plan.text, &changes.entries()))
}

impl Start {
    /// The settings of each object, in the order in which they are first named.
    fn changes(&self, settings: &[StartSetting]) -> Result<Vec<ObjectChange>, StartSettingError> {
        let mut all: Vec<ObjectChange> = Vec::new();
        for StartSetting { target, value } in settings {
            let (kind, name, key) = self.object_of(target)?;
            let pair = (key.to_owned(), value.clone());
            match all.iter_mut().find(|change| change.kind == kind && change.name == name) {
                Some(change) => change.pairs.push(pair),
                None => all.push(ObjectChange { kind, name: name.into(), pairs: vec![pair] }),
            }
        }
        Ok(all)
    }

    /// The object that a target names, and the name of the setting. Names contain dots, too: the longest
    /// known name is meant.
    fn object_of<'t>(&self, target: &'t str) -> Result<(Kind, &'t str, &'t str), StartSettingError> {
        for (dot, _) in target.rmatch_indices('.') {
            let (name, key) = (&target[..dot], &target[dot + 1..]);
            for objects in self.in_engine() {
                match objects.meant(name) {
                    Ok(_) => return Ok((objects.kind().kind(), name, key)),
                    Err(SetError::Unknown { .. }) => {}
                    Err(error) => return Err(in_words(name, error)),
                }
            }
            let router = name.split('/').next().unwrap_or(name);
            if self.plan.routers.iter().any(|known| *known.name == *router) {
                return of_router(name, key);
            }
        }
        Err(self.unknown(target))
    }

    fn unknown(&self, target: &str) -> StartSettingError {
        let name = target.rsplit_once('.').map_or(target, |(name, _)| name);
        let links = self.plan.links.iter().map(|link| &*link.name);
        let duplex = links.clone().filter_map(|name| name.strip_suffix(".forward"));
        let sources = self.plan.sources.iter().map(|source| &*source.name);
        let media = self.plan.media.iter().map(|medium| &*medium.name);
        let routers = self.plan.routers.iter().map(|router| &*router.name);
        let known: Vec<&str> = duplex.chain(links).chain(sources).chain(media).chain(routers).collect();
        let fix = match suggestion(name, known.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("there are {}", known[..known.len().min(MOST_NAMES)].join(", ")),
        };
        let reason = format!("there is no link, source, medium or router \"{name}\"; {fix}");
        StartSettingError { target: target.into(), reason }
    }
}

/// Most names that an error lists.
const MOST_NAMES: usize = 12;

/// The router or flow of this name, if it has such a setting.
fn of_router<'t>(name: &'t str, key: &'t str) -> Result<(Kind, &'t str, &'t str), StartSettingError> {
    let wrong =
        |reason: &str| Err(StartSettingError { target: format!("{name}.{key}"), reason: reason.into() });
    match (name.contains('/'), key) {
        (true, "weight") => Ok((Kind::Flow, name, key)),
        (true, _) => wrong("a flow has no such setting; it has weight"),
        (false, key) if key.starts_with("route.") => Ok((Kind::Router, name, key)),
        (false, _) => wrong("a router has no such setting; it has route.NETWORK, and its flows have weight"),
    }
}

impl AnyObjects {
    /// Records the settings with which objects begin.
    fn begin_with(&self, change: &ObjectChange) -> Result<(), SetError> {
        let pairs: Vec<_> = change.pairs.iter().collect();
        for place in self.meant(&change.name)? {
            let blocks = self.known(place);
            let edits = self.kind().edits(&CurrentObject { place, blocks: &blocks }, &pairs)?;
            self.edit_known(place, &edits);
        }
        Ok(())
    }
}

fn in_words(name: &str, error: SetError) -> StartSettingError {
    match error {
        SetError::Value { key, reason } => StartSettingError { target: format!("{name}.{key}"), reason },
        SetError::UnknownKey { kind, ref key, ref known } => {
            // A suggestion makes the list unnecessary.
            let reason = match suggestion(key, known.iter().map(String::as_str)) {
                Some(near) => format!("a {} has no \"{key}\"; did you mean \"{near}\"?", kind.word()),
                None => error.to_string(),
            };
            StartSettingError { target: format!("{name}.{key}"), reason }
        }
        SetError::Several(faults) => {
            let mut each = faults.into_iter().map(|fault| in_words(name, fault));
            let Some(first) = each.next() else { unreachable!("several faults are two or more") };
            let lines = each.fold(first.reason, |lines, next| format!("{lines}\n{next}"));
            StartSettingError { target: first.target, reason: lines }
        }
        error => StartSettingError { target: name.into(), reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_scenario::plan_of;
    use longwire_units::Rate;

    const TEXT: &str = "# Two.\n[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
        address = \"10.0.0.2/24\"\n[[link]]\nname = \"up\"\nbetween = [\"a\", \"b\"]\n\
        rate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
        [[source]]\nname = \"video\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\nfor = \"1 s\"\n";

    fn begun(settings: &[&str]) -> Result<Plan, String> {
        let settings: Vec<StartSetting> = settings.iter().map(|text| text.parse().unwrap()).collect();
        with_settings(&plan_of(TEXT), Some(7), &settings).map_err(|error| error.to_string())
    }

    /// The blocks of an object at the start, as `key: values`.
    fn settings(plan: Plan, name: &str) -> Vec<String> {
        let start = Start::of(Arc::new(plan));
        let of_link = start.links.place(name).map(|place| start.links.settings(place));
        let all = of_link.unwrap_or_else(|| start.sources.settings(start.sources.place(name).unwrap()));
        all.into_iter().map(|(key, text)| format!("{key}={text}")).collect()
    }

    #[test]
    fn objects_begin_with_what_is_set() {
        let plan = begun(&["up.rate=5mbit", "up.forward.loss=1%", "video.rate=2mbit", "up.rate.overhead=8"]);
        let plan = plan.unwrap();
        assert_eq!(plan.seed, 7);
        assert_eq!(plan.text.lines().next(), Some("seed = 7 # Two."));
        let forward = settings(plan.clone(), "up.forward");
        for one in ["rate=5 Mbit/s", "overhead=8", "delay=20 ms", "loss=1 %"] {
            assert!(forward.contains(&one.to_owned()), "{one}: {forward:?}");
        }
        let backward = settings(plan.clone(), "up.backward");
        assert!(backward.contains(&"rate=5 Mbit/s".into()), "{backward:?}");
        assert!(!backward.iter().any(|one| one.starts_with("loss")), "{backward:?}");
        let video = settings(plan, "video");
        assert!(video.contains(&"rate=2 Mbit/s".into()), "{video:?}");
    }

    #[test]
    fn what_is_set_again_replaces_what_was_set() {
        let once = begun(&["up.queue=codel", "up.queue.target=7ms"]).unwrap();
        let twice = with_settings(&once, None, &["up.forward.rate=2mbit".parse().unwrap()]).unwrap();
        let forward = settings(twice.clone(), "up.forward");
        for one in ["rate=2 Mbit/s", "queue.kind=codel", "target=7 ms"] {
            assert!(forward.iter().any(|known| known.ends_with(one)), "{one}: {forward:?}");
        }
        assert_eq!(twice.text.matches("written by longwire").count(), 1, "{}", twice.text);
        assert_eq!(twice.profile(0).rate(), Rate(10_000_000), "the sections stay as written");
        // Without an effect nothing is written.
        assert_eq!(*begun(&["up.rate=10 Mbit/s"]).unwrap().text, *begun(&[]).unwrap().text);
    }

    #[test]
    fn mistakes_name_the_object_and_the_setting() {
        for (text, wanted) in [
            ("upp.rate=1mbit", "upp.rate: there is no link, source, medium or router \"upp\"; did you"),
            ("up.dealy=1ms", "up.dealy: a link has no \"dealy\"; did you mean \"delay\"?"),
            (
                "up.queue.tagret=5ms",
                "up.queue.tagret: a link has no \"queue.tagret\"; did you mean \"queue.target\"?",
            ),
            ("up.latency=1ms", "up.latency: a link has no such setting; did you mean \"delay\"?"),
            ("up.colour=red", "up.colour: a link has no \"colour\"; longwire blocks lists"),
            ("up.rate=1mbitt", "up.rate: \"1mbitt\" has the unknown unit \"mbitt\""),
            ("video.modle=cbr", "video.modle: the model cbr has no modle; did you mean \"model\"?"),
            ("up.forward.queue.kind=redd", "up.forward.queue.kind: there is no queue of the kind \"redd\""),
            ("up.filter=steer x if udp", "with these settings: at \"0 s\""),
        ] {
            let error = begun(&[text]).unwrap_err();
            assert!(error.starts_with(wanted), "{text}: {error}");
        }
        for text in ["rate=1", "up.rate", ".rate=1", "up.=1", ""] {
            assert!(text.parse::<StartSetting>().unwrap_err().contains("OBJECT.SETTING=VALUE"), "{text}");
        }
    }
}
