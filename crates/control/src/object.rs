//! Objects of a run, which can be shown and changed. Scenario events, `longwire ctl`, the API and NESP
//! address them alike, by kind and name.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A link; the name of a duplex link means both directions.
    Link,
    /// A traffic source.
    Source,
    /// A shared medium.
    Medium,
    /// A port, including that of a test host.
    Port,
    /// A router.
    Router,
    /// A flow that shares a router's processors: `ROUTER/FLOW`.
    Flow,
    /// A program of a router: `ROUTER/NAME`.
    Forwarder,
}

impl Kind {
    /// All kinds, in the order in which a name without a kind is looked up.
    pub const ALL: [Self; 7] =
        [Self::Link, Self::Source, Self::Medium, Self::Router, Self::Flow, Self::Forwarder, Self::Port];

    /// The singular, as in `there is no link "up"`.
    pub const fn word(self) -> &'static str {
        self.words().0
    }

    /// The plural, as in a path of the API: `/v1/links`.
    pub const fn collection(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Link => ("link", "links"),
            Self::Source => ("source", "sources"),
            Self::Medium => ("medium", "media"),
            Self::Port => ("port", "ports"),
            Self::Router => ("router", "routers"),
            Self::Flow => ("flow", "flows"),
            Self::Forwarder => ("forwarder", "forwarders"),
        }
    }

    /// The name of the schema of its settings in the description of the API, such as `LinkSettings`.
    pub fn settings_schema(self) -> String {
        let word = self.word();
        format!("{}{}Settings", word[..1].to_uppercase(), &word[1..])
    }

    /// The kind whose collection has this name.
    pub fn of_collection(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.collection() == name)
    }
}

/// An object with its settings and counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// Its name in the scenario.
    #[schema(example = "up")]
    pub name: String,
    /// Its settings, as text that can be set. Of several objects, the settings that are equal in all.
    #[schema(example = json!({"rate": "10 Mbit/s", "delay": "20 ms"}))]
    pub settings: BTreeMap<String, String>,
    /// Its counters, if it has any.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    #[schema(value_type = Option<Object>)]
    pub stats: serde_json::Value,
    /// The objects that the name matches if they are several: both directions of a duplex link, or the
    /// matches of a pattern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub members: Vec<Self>,
    /// What in its settings looks like a mistake, and how to fix it, as "longwire check" says of a scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Object {
    /// Several objects of one kind that match one name.
    pub fn several(kind: Kind, name: &str, members: Vec<Self>) -> Self {
        let mut settings = members.first().map(|first| first.settings.clone()).unwrap_or_default();
        settings.retain(|key, text| members.iter().all(|member| member.settings.get(key) == Some(text)));
        let (name, stats) = (name.into(), serde_json::Value::Null);
        Self { kind, name, settings, stats, members, notes: Vec::new() }
    }

    /// The objects that the name matches: itself, if not several.
    pub fn each(&self) -> &[Self] {
        if self.members.is_empty() { std::slice::from_ref(self) } else { &self.members }
    }
}

/// [`Object`] in descriptions, where `Object` would mean any JSON object.
pub(crate) type OneObject = Object;

/// Some of the objects of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ObjectPage {
    /// Number of matching objects.
    pub total: usize,
    /// Index of the first one on this page.
    pub from: usize,
    /// The time of the run at which counters were taken.
    pub counted_ns: u64,
    /// The objects.
    #[schema(value_type = Vec<OneObject>)]
    pub objects: Vec<Object>,
}

/// A setting that a change may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settable {
    /// Its name; a part in capitals is a placeholder, as in `route.NETWORK`.
    pub key: String,
    /// Its meaning.
    pub help: &'static str,
    /// Its values, as text.
    pub takes: String,
    /// The quantity of its values.
    pub quantity: Quantity,
    /// Whether only a new object can have it.
    pub only_new: bool,
}

impl Settable {
    /// A setting that can change during a run.
    pub fn new(key: impl Into<String>, help: &'static str, takes: String, quantity: Quantity) -> Self {
        Self { key: key.into(), help, takes, quantity, only_new: false }
    }

    /// Adds it to a list. If several kinds of an object have the setting, the range covers all of them.
    pub fn add_to(self, all: &mut Vec<Self>) {
        match all.iter_mut().find(|known| known.key == self.key) {
            Some(known) => {
                if known.quantity != self.quantity && !known.takes.contains(&self.takes) {
                    known.takes += &format!(", or {}", self.takes);
                }
                known.quantity.widen(self.quantity);
            }
            None => all.push(self),
        }
    }
}

/// The quantity of a setting's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quantity {
    /// A rate, such as `10 Mbit/s`.
    Rate,
    /// A time, such as `20 ms`; bounds are nanoseconds.
    Time(Bounds),
    /// A share, such as `2 %`.
    Share,
    /// An integer.
    Integer(Bounds),
    /// A number with a fraction; bounds are millionths.
    Decimal(Bounds),
    /// A size, such as `64 KiB`; bounds are bytes.
    Size(Bounds),
    /// The limit of a queue, such as `100 packets`.
    Limit,
    /// None: the value is one of these words.
    Words(Vec<&'static str>),
    /// Something else.
    Other,
}

/// Range of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The lowest.
    pub least: u64,
    /// The highest; `u64::MAX` if unlimited.
    pub most: u64,
}

impl Bounds {
    /// Any value.
    pub const NONE: Self = Self { least: 0, most: u64::MAX };

    fn widen(&mut self, other: Self) {
        *self = Self { least: self.least.min(other.least), most: self.most.max(other.most) };
    }
}

impl Quantity {
    /// Extends it to cover another quantity.
    fn widen(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Time(own), Self::Time(other))
            | (Self::Integer(own), Self::Integer(other))
            | (Self::Decimal(own), Self::Decimal(other))
            | (Self::Size(own), Self::Size(other)) => own.widen(other),
            (Self::Words(own), Self::Words(other)) => {
                let fresh: Vec<_> = other.into_iter().filter(|word| !own.contains(word)).collect();
                own.extend(fresh);
            }
            (own, other) if *own == other => {}
            _ => *self = Self::Other,
        }
    }
}

/// Selects objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ObjectQuery {
    /// Index of the first one.
    #[serde(default)]
    pub from: usize,
    /// Number of objects: at most 10000.
    #[serde(default = "default_count")]
    #[param(default = 1000, maximum = 10000)]
    pub count: usize,
    /// A name, or a pattern in which `*` matches any text and `?` one character. Default: all.
    #[param(example = "dsl*")]
    pub name: Option<String>,
    /// Sort key of links, the highest first. Default: the order of the scenario.
    pub sort: Option<Sort>,
    /// Whether to turn the order round.
    #[serde(default)]
    #[param(default = false)]
    pub reverse: bool,
}

fn default_count() -> usize {
    1000
}

impl ObjectQuery {
    /// Whether a name matches.
    pub fn has(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|pattern| fits(name, pattern))
    }
}

/// Sort keys of links, the highest first; names in alphabetical order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Name.
    Name,
    /// Recent input rate.
    In,
    /// Recent output rate.
    Rate,
    /// Share of the link's rate in recent use; links that are down come first.
    Load,
    /// Total output.
    Carried,
    /// Bytes in the queue.
    Queued,
    /// What a packet takes that comes now: the delay, and the queue at the link's rate.
    Delay,
    /// Dropped packets.
    Dropped,
    /// Highest lateness of a packet.
    Late,
}

/// Names of the selected objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectNames {
    /// Number of matching objects.
    pub total: usize,
    /// The names on the page.
    pub names: Vec<String>,
}

/// Whether a name matches a pattern, in which `*` matches any text, and `?` one character. A `*` takes as
/// little as possible, and more when the rest does not match.
pub fn fits(name: &str, pattern: &str) -> bool {
    let (name, pattern) = (name.as_bytes(), pattern.as_bytes());
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(b'?') => {
                (at, from) = (at + 1, from + 1);
                // The other bytes of the character, in UTF-8.
                while name.get(from).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    from += 1;
                }
            }
            Some(&c) if c == name[from] => (at, from) = (at + 1, from + 1),
            _ => match &mut star {
                Some((star, taken)) => {
                    *taken += 1;
                    (at, from) = (*star + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&c| c == b'*')
}

/// Whether a name is a pattern: it has a `*` or a `?`, which names of objects have not.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_several_kinds_has_the_range_of_all() {
        let time = |least, most| Quantity::Time(Bounds { least, most });
        let words = |words: &[&'static str]| Quantity::Words(words.to_vec());
        let of = |each: &[(&str, Quantity)]| {
            let mut all = Vec::new();
            for (takes, quantity) in each {
                Settable::new("slot", "", (*takes).into(), quantity.clone()).add_to(&mut all);
            }
            assert_eq!(all.len(), 1);
            (all[0].takes.clone(), all[0].quantity.clone())
        };
        assert_eq!(of(&[("a", time(1, 9)), ("a", time(1, 9))]), ("a".into(), time(1, 9)));
        assert_eq!(of(&[("a", time(1, 9)), ("b", time(5, 20))]), ("a, or b".into(), time(1, 20)));
        assert_eq!(of(&[("x", words(&["x"])), ("y", words(&["x", "y"]))]).1, words(&["x", "y"]));
        assert_eq!(of(&[("a", time(1, 9)), ("b", Quantity::Rate)]).1, Quantity::Other);
    }

    #[test]
    fn patterns_fit_names() {
        for (pattern, name) in [
            ("dsl*", "dsl7.forward"),
            ("*.forward", "dsl7.forward"),
            ("d*7*d", "dsl7.forward"),
            ("*", ""),
            ("a", "a"),
            ("a?c", "abc"),
            ("a?c", "aäc"),
            ("*?c", "aäc"),
            ("*ab*ab", "ababab"),
        ] {
            assert!(fits(name, pattern), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("dsl*", "ds"),
            ("a*a", "a"),
            ("*x*", "abc"),
            ("a", "ab"),
            ("a*b", "abc"),
            ("a?c", "ac"),
            ("a??c", "aäc"),
        ] {
            assert!(!fits(name, pattern), "{pattern} {name}");
        }
    }
}
