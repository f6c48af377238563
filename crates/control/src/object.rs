//! Objects: what can be looked at and changed while it runs. Scenario events, `longwire ctl`, the API and
//! NESP address them alike, by kind and name.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A link; the name of a duplex link means both directions.
    Link,
    /// A traffic source.
    Source,
    /// A shared medium.
    Medium,
    /// A port, that of a test host included.
    Port,
    /// A router.
    Router,
    /// A flow that shares a router's processors: `ROUTER/FLOW`.
    Flow,
    /// A program of a router: `ROUTER/NAME`.
    Forwarder,
}

impl Kind {
    /// All kinds, in the order in which a name without a kind is looked for.
    pub const ALL: [Self; 7] =
        [Self::Link, Self::Source, Self::Medium, Self::Router, Self::Flow, Self::Forwarder, Self::Port];

    /// One of them, as in `there is no link "up"`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Source => "source",
            Self::Medium => "medium",
            Self::Port => "port",
            Self::Router => "router",
            Self::Flow => "flow",
            Self::Forwarder => "forwarder",
        }
    }

    /// All of them, as in a path of the API: `/v1/links`.
    pub const fn collection(self) -> &'static str {
        match self {
            Self::Link => "links",
            Self::Source => "sources",
            Self::Medium => "media",
            Self::Port => "ports",
            Self::Router => "routers",
            Self::Flow => "flows",
            Self::Forwarder => "forwarders",
        }
    }

    /// The kind whose collection has this name.
    pub fn of_collection(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.collection() == name)
    }
}

/// An object: how it is set, and what it has counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// Its name in the scenario.
    #[schema(example = "up")]
    pub name: String,
    /// Its settings, each as text that setting it would take. Of several objects, those that all have alike.
    #[schema(example = json!({"rate": "10 Mbit/s", "delay": "20 ms"}))]
    pub settings: BTreeMap<String, String>,
    /// Its counters, if it has any.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    #[schema(value_type = Option<Object>)]
    pub stats: serde_json::Value,
    /// The objects that the name means if it means several: both directions of a duplex link, or all whose
    /// names fit a pattern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub members: Vec<Self>,
}

impl Object {
    /// Several objects of one kind that are meant by one name.
    pub fn several(kind: Kind, name: &str, members: Vec<Self>) -> Self {
        let mut settings = members.first().map(|first| first.settings.clone()).unwrap_or_default();
        settings.retain(|key, text| members.iter().all(|member| member.settings.get(key) == Some(text)));
        Self { kind, name: name.into(), settings, stats: serde_json::Value::Null, members }
    }

    /// The objects that the name means: itself, if not several.
    pub fn each(&self) -> &[Self] {
        if self.members.is_empty() { std::slice::from_ref(self) } else { &self.members }
    }
}

/// The name of [`Object`] in descriptions: there, `Object` would be any object of JSON.
pub(crate) type OneObject = Object;

/// Some of the objects of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ObjectPage {
    /// How many there are that fit the request.
    pub total: usize,
    /// Index of the first one of this page.
    pub from: usize,
    /// The time of the run at which they were counted.
    pub counted_ns: u64,
    /// The objects.
    #[schema(value_type = Vec<OneObject>)]
    pub objects: Vec<Object>,
}

/// A setting that a change may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settable {
    /// How it is called; a part in capitals is to be filled in, as in `route.NETWORK`.
    pub key: String,
    /// What it sets.
    pub help: &'static str,
    /// What values it takes, in words.
    pub takes: String,
    /// What its values measure.
    pub quantity: Quantity,
    /// Whether only a new object can be given it.
    pub only_new: bool,
}

impl Settable {
    /// A setting that can change while the object is there.
    pub fn new(key: impl Into<String>, help: &'static str, takes: String, quantity: Quantity) -> Self {
        Self { key: key.into(), help, takes, quantity, only_new: false }
    }

    /// Adds it to others. Of a setting that several kinds of an object have, the range is that of all.
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

/// What the values of a setting measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quantity {
    /// A rate, such as `10 Mbit/s`.
    Rate,
    /// A time, such as `20 ms`; bounds are nanoseconds.
    Time(Bounds),
    /// A share, such as `2 %`.
    Share,
    /// A whole number.
    Integer(Bounds),
    /// A number with a fraction; bounds are millionths.
    Decimal(Bounds),
    /// A size, such as `64 KiB`; bounds are bytes.
    Size(Bounds),
    /// The limit of a queue, such as `100 packets`.
    Limit,
    /// Nothing: it is one of these words.
    Words(Vec<&'static str>),
    /// Something else.
    Other,
}

/// The lowest and the highest value of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The lowest.
    pub least: u64,
    /// The highest; `u64::MAX` if there is none.
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
    /// What either of two measures.
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

/// Which objects of a kind are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// A name, or a pattern in which `*` fits any text. Without it, all.
    pub name: Option<String>,
    /// By what they are sorted; without it, the order of the scenario.
    pub sort: Option<Sort>,
    /// Index of the first one.
    pub from: usize,
    /// How many, at most.
    pub count: usize,
}

impl Choice {
    /// Whether a name fits.
    pub fn has(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|pattern| fits(name, pattern))
    }
}

/// By what links are sorted, the highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// What they let out lately: since the counters before the last ones.
    Rate,
    /// What they have let out.
    Carried,
    /// Bytes in the queue.
    Queued,
    /// Dropped packets.
    Dropped,
    /// The highest lateness of a packet.
    Late,
}

/// The names of the objects that were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// How many there are that fit.
    pub total: usize,
    /// Those of the page.
    pub names: Vec<String>,
}

/// Whether a name fits a pattern, in which `*` fits any text.
pub fn fits(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names() {
        for (pattern, name) in [
            ("dsl*", "dsl7.forward"),
            ("*.forward", "dsl7.forward"),
            ("d*7*d", "dsl7.forward"),
            ("*", ""),
            ("a", "a"),
        ] {
            assert!(fits(name, pattern), "{pattern} {name}");
        }
        for (pattern, name) in [("dsl*", "ds"), ("a*a", "a"), ("*x*", "abc"), ("a", "ab"), ("a*b", "abc")] {
            assert!(!fits(name, pattern), "{pattern} {name}");
        }
    }
}
