//! Changes while a run goes on, and what a setting means for a link as it is.

use crate::finding::suggestion;
use crate::plan::Plan;
use crate::source_edit::{INTERVAL, is_interval};
use longwire_block::change::{Blocks, Edit, Ramp, Repeat};
use longwire_block::{Spec, Values};
use longwire_link::{NONE, without};
use longwire_units::Nanos;
use std::fmt::Write;
use std::sync::Arc;

/// A change of links, of traffic sources, or of media, at a time of the run.
#[derive(Debug, Clone)]
pub struct Event {
    /// When, from the start of the run.
    pub time: Nanos,
    /// Whether it comes again.
    pub repeat: Option<Repeat>,
    /// Whether it takes its time; else everything changes at once.
    pub ramp: Option<Ramp>,
    /// Places of the links, ascending.
    pub links: Arc<[u32]>,
    /// Places of the sources, ascending; none if others change.
    pub sources: Arc<[u32]>,
    /// Places of the media, ascending; none if others change.
    pub media: Arc<[u32]>,
    /// The changes.
    pub edits: Arc<[Edit]>,
}

/// Most links, sources or media that a description names.
const MOST_NAMED: usize = 4;

impl Event {
    /// When it comes next after `now`; none if no more.
    pub fn next_after(&self, now: Nanos) -> Option<Nanos> {
        if self.time > now {
            return Some(self.time);
        }
        let Repeat { every, times } = self.repeat?;
        let past = now.since(self.time).0 / every.0 + 1;
        let left = times.is_none_or(|times| past < times);
        left.then(|| Nanos(self.time.0.saturating_add(every.0.saturating_mul(past))))
    }

    /// Which links or sources change, and how, as in `up.forward: rate 1 Mbit/s, over 5 s in 50 steps, every
    /// 10 s`.
    pub fn describe(&self, plan: &Plan) -> String {
        let links = self.links.iter().map(|&link| &*plan.links[link as usize].name);
        let sources = self.sources.iter().map(|&source| &*plan.sources[source as usize].name);
        let media = self.media.iter().map(|&medium| &*plan.media[medium as usize].name);
        let count = self.links.len() + self.sources.len() + self.media.len();
        let mut names: Vec<&str> = links.chain(sources).chain(media).take(MOST_NAMED).collect();
        let more = format!("{} more", count.saturating_sub(MOST_NAMED));
        if count > MOST_NAMED {
            names.push(&more);
        }
        let settings = if self.links.is_empty() { plain(&self.edits) } else { described(&self.edits) };
        let mut text = format!("{}: {settings}", names.join(", "));
        // Writing to a text can't fail.
        if let Some(ramp) = self.ramp {
            let _ = write!(text, ", over {} in {} steps", ramp.over, ramp.steps());
        }
        if let Some(Repeat { every, times }) = self.repeat {
            let _ = write!(text, ", every {every}");
            if let Some(times) = times {
                let _ = write!(text, " ({times} times)");
            }
        }
        text
    }
}

/// The settings that edits name.
fn described(edits: &[Edit]) -> String {
    let setting = |edit: &Edit, at: usize, text: String| {
        let (spec, name) = (edit.spec, edit.spec.params[at].name);
        // Of rules there may be none.
        let text = if text.is_empty() { "none".into() } else { text };
        if at == 0 { format!("{} {text}", spec.key) } else { format!("{}.{name} {text}", spec.key) }
    };
    let each = edits.iter().flat_map(|edit| {
        let given = edit.given.iter();
        let removed = edit.spec.params.is_empty().then(|| format!("{} none", edit.spec.key));
        given.map(|(at, value)| setting(edit, *at, value.print(edit.spec.params[*at].kind))).chain(removed)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The settings of sources or media that edits name.
fn plain(edits: &[Edit]) -> String {
    let each = edits.iter().flat_map(|edit| {
        let params = edit.given.iter().map(|(at, value)| {
            let param = &edit.spec.params[*at];
            let name = if is_interval(param.kind, value) { INTERVAL } else { param.name };
            format!("{name} {}", value.print(param.kind))
        });
        let of_model = edit.spec.key == "background";
        of_model.then(|| format!("model {}", edit.spec.kind)).into_iter().chain(params)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What a link is made of that a scenario names `blocks` for: a key that the file does not name has its first
/// block, if that needs nothing to be given.
pub fn with_defaults(blocks: &Blocks, registry: &[&'static Spec]) -> Blocks {
    let mut all = blocks.clone();
    for (place, spec) in registry.iter().enumerate() {
        let first = registry[..place].iter().all(|other| other.key != spec.key);
        if first
            && all.iter().all(|(other, _)| other.key != spec.key)
            && let Ok(values) = Values::read(spec, &[])
        {
            all.push((spec, values));
        }
    }
    all
}

/// The block of `key` that a mere value names instead of being one: `queue = "codel"`.
pub fn kind_meant(registry: &[&'static Spec], key: &str, value: &str) -> Option<&'static Spec> {
    let mut of_key = registry.iter().copied().filter(|spec| spec.key == key);
    let first = of_key.clone().next()?;
    let named = of_key.find(|spec| spec.kind == value.trim())?;
    first.params.first().is_none_or(|param| param.read(value).is_err()).then_some(named)
}

/// The row that takes a link's block of `key` away, if that is what a mere value asks for: `loss = "none"`,
/// `loss = ""`, and `loss=[]` as text.
pub fn removal_meant(key: &str, value: &str) -> Option<&'static Spec> {
    without(key).filter(|_| ["", "[]", NONE].contains(&value.trim()))
}

/// What to write instead of a mere value of `key` that can't be read, if it looks like a kind: the kind that
/// it resembles, or all of them.
pub fn kind_hint(registry: &[&'static Spec], key: &str, value: &str) -> Option<String> {
    let value = value.trim();
    let kinds: Vec<&str> = registry.iter().filter(|spec| spec.key == key).map(|spec| spec.kind).collect();
    if value.is_empty() && !kinds.is_empty() {
        let neutral = match key {
            "rate" => "\"unlimited\"",
            "delay" => "\"0 ms\"",
            "queue" => "\"unlimited\", or how much may wait",
            "state" => "\"up\"",
            _ => return None,
        };
        return Some(format!("a link always has a {key}: write {neutral}"));
    }
    if kinds.len() < 2 || !value.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let hint = match suggestion(value, kinds.iter().copied()) {
        Some(near) => format!("did you mean the kind \"{near}\"?"),
        None => format!("it is no kind either; there are {}", kinds.join(", ")),
    };
    Some(hint)
}

/// The block that settings of `key` mean for a link that has `block` for it, if they don't say which: the
/// link's, if it has all the parameters that are `named` (none for the one that a mere value sets), else the
/// key's first that has.
pub fn block_meant(
    registry: &[&'static Spec],
    block: Option<&'static Spec>,
    key: &str,
    named: &[Option<&str>],
) -> Option<&'static Spec> {
    let mut of_key = registry.iter().copied().filter(|spec| spec.key == key);
    let first = of_key.clone().next()?;
    let has_all = |spec: &&Spec| {
        named.iter().all(|name| {
            let name = name.unwrap_or(first.params[0].name);
            spec.params.iter().any(|param| param.name == name)
        })
    };
    block.filter(|own| has_all(own)).or_else(|| of_key.find(has_all)).or(Some(first))
}

/// The place of the parameter `name` in a block's row; none means the one that a mere value of the key sets.
pub fn param_meant(registry: &[&'static Spec], spec: &Spec, name: Option<&str>) -> Option<usize> {
    let place = |name: &str| spec.params.iter().position(|param| param.name == name);
    match name {
        Some(name) => place(name),
        None => {
            let first = registry.iter().find(|first| first.key == spec.key)?;
            place(first.params[0].name).or(Some(0))
        }
    }
}
