//! Objects: what can be looked at and changed while it runs. Scenario events, `longwire ctl`, the API and NESP address them alike, by kind and
//! name.

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
    /// Its settings, each as text that setting it would take. Of a duplex link, those that both directions have alike.
    #[schema(example = json!({"rate": "10 Mbit/s", "delay": "20 ms"}))]
    pub settings: BTreeMap<String, String>,
    /// Its counters, if it has any.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    #[schema(value_type = Option<Object>)]
    pub stats: serde_json::Value,
    /// The links `NAME.forward` and `NAME.backward` of a duplex link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub directions: Vec<Self>,
}

impl Object {
    /// A duplex link of two directions.
    pub fn duplex(name: &str, directions: [Self; 2]) -> Self {
        let [forward, backward] = &directions;
        let alike = forward.settings.iter().filter(|(key, text)| backward.settings.get(*key) == Some(*text));
        let settings = alike.map(|(key, text)| (key.clone(), text.clone())).collect();
        let stats = serde_json::Value::Null;
        Self { kind: Kind::Link, name: name.into(), settings, stats, directions: directions.into() }
    }

    /// The objects that the name means: the two directions of a duplex link, else itself.
    pub fn each(&self) -> &[Self] {
        if self.directions.is_empty() { std::slice::from_ref(self) } else { &self.directions }
    }
}

/// The name of [`Object`] in descriptions: there, `Object` would be any object of JSON.
pub(crate) type OneObject = Object;

/// Some of the objects of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ObjectPage {
    /// How many there are.
    pub total: usize,
    /// Index of the first one of this page, in the order of the scenario.
    pub from: usize,
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
}
