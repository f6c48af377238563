//! The interface between the API and a running instance, and the formats of its answers.

use crate::ForwarderAsk;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;
use utoipa::ToSchema;

/// A running instance, as used by the API.
///
/// The methods are called on a separate thread, never on a worker, and may block until workers answer between
/// two batches.
pub trait Instance: Send + Sync {
    /// Its name: the scenario's, or one given at the start.
    fn name(&self) -> String;

    /// All counters.
    fn stats(&self) -> serde_json::Value;

    /// The names of its links, in the order of the plan.
    fn link_names(&self) -> Arc<[String]>;

    /// The link called `name`, or both directions of the duplex link of that name; none if there is neither.
    fn link(&self, name: &str) -> Option<LinkAnswer>;

    /// Changes a link, or both directions of a duplex link: all `changes`, pairs of key and text, or none of
    /// them. Other settings are kept. Returns the changed objects.
    ///
    /// # Errors
    /// If there is no such link, or a change is impossible; nothing has changed then.
    fn set_link(&self, link: &str, changes: &[(String, String)]) -> Result<LinkAnswer, SetError>;

    /// The names of its traffic sources, in the order of the plan.
    fn source_names(&self) -> Arc<[String]>;

    /// One source, or none if there is no source called `name`.
    fn source(&self, name: &str) -> Option<Source>;

    /// Changes a source, as [`Instance::set_link`] does a link.
    ///
    /// # Errors
    /// If there is no such source, or a change is impossible; nothing has changed then.
    fn set_source(&self, source: &str, changes: &[(String, String)]) -> Result<Source, SetError>;

    /// The names of its routers, in the order of the plan.
    fn router_names(&self) -> Vec<String>;

    /// A router's routes.
    ///
    /// # Errors
    /// If there is no such router, or it does not answer.
    fn routes(&self, router: &str) -> Result<RoutePage, SetError>;

    /// Adds a route of a router, in the syntax of `ip route`, or removes the route to a network.
    ///
    /// # Errors
    /// If there is no such router, or the change is impossible; nothing has changed then.
    fn change_route(&self, router: &str, add: bool, route: &str) -> Result<(), SetError>;

    /// Changes the weight of a flow that shares a router's processors, by its name.
    ///
    /// # Errors
    /// If there is no such router or flow, or the weight is invalid; nothing has changed then.
    fn weigh_flow(&self, router: &str, flow: &str, weight: i64) -> Result<(), SetError>;

    /// Handles a request about a router's programs, and answers as JSON.
    ///
    /// # Errors
    /// If there is no such router, program or map, or the request is impossible; nothing has changed then.
    fn forwarders(&self, router: &str, ask: &ForwarderAsk) -> Result<serde_json::Value, SetError>;

    /// The names of its shared media, in the order of the plan.
    fn medium_names(&self) -> Arc<[String]>;

    /// One medium, or none if there is no medium called `name`.
    fn medium(&self, name: &str) -> Option<Medium>;

    /// Changes a medium, as [`Instance::set_link`] does a link.
    ///
    /// # Errors
    /// If there is no such medium, or a change is impossible; nothing has changed then.
    fn set_medium(&self, medium: &str, changes: &[(String, String)]) -> Result<Medium, SetError>;

    /// Ends the instance as SIGTERM does, and returns without waiting.
    fn stop(&self);
}

/// A link with its settings and counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// Its name in the scenario.
    #[schema(example = "up")]
    pub name: String,
    /// Its settings, each as text in the syntax for setting it.
    #[schema(example = json!({"rate": "10 Mbit/s", "delay": "20 ms"}))]
    pub settings: BTreeMap<String, String>,
    /// Its counters.
    #[schema(value_type = Object)]
    pub stats: serde_json::Value,
}

/// The result for a link's name: one link, or a duplex link with its two directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum LinkAnswer {
    /// A link of one direction.
    One(Link),
    /// A duplex link.
    Duplex(Duplex),
}

impl LinkAnswer {
    /// The links: one, or the two directions of a duplex link, forward first.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        match self {
            Self::One(link) => std::slice::from_ref(link),
            Self::Duplex(duplex) => &duplex.directions,
        }
    }
}

/// A duplex link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Duplex {
    /// Its name in the scenario.
    #[schema(example = "wan")]
    pub name: String,
    /// The links `NAME.forward` and `NAME.backward`.
    pub directions: Vec<Link>,
}

/// A traffic source with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Source {
    /// Its name in the scenario.
    #[schema(example = "video")]
    pub name: String,
    /// Its settings, each as text in the syntax for setting it.
    #[schema(example = json!({"model": "cbr", "rate": "3 Mbit/s", "size": "1400 B"}))]
    pub settings: BTreeMap<String, String>,
}

/// A router's routes, or the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RoutePage {
    /// The routes, each in the syntax of `ip route`.
    #[schema(example = json!(["10.1.0.0/16 via 10.0.0.2 dev east", "10.0.0.0/24 dev east"]))]
    pub routes: Vec<String>,
    /// Whether there are more.
    pub more: bool,
}

/// A change of a router's routes: one of the two fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeRoute {
    /// The route to add or replace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "10.1.0.0/16 via 10.0.0.2")]
    pub add: Option<String>,
    /// The network whose route is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "10.2.0.0/16")]
    pub remove: Option<String>,
}

/// A change of the weight of a flow that shares a router's processors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WeighFlow {
    /// The flow's name in the router.
    #[schema(example = "voice")]
    pub flow: String,
    /// Its share relative to others, 1 to 65535.
    #[schema(example = 4)]
    pub weight: i64,
}

/// A shared medium with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Medium {
    /// Its name in the scenario.
    #[schema(example = "cell")]
    pub name: String,
    /// Its settings, each as text in the syntax for setting it.
    #[schema(example = json!({"rate": "11 Mbit/s", "slot": "20 us"}))]
    pub settings: BTreeMap<String, String>,
}

/// A page of an instance's links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkPage {
    /// Number of links of the instance.
    pub total: usize,
    /// Place in the plan of the first link of this page.
    pub from: usize,
    /// The links.
    pub links: Vec<Link>,
}

/// Which instance answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Info {
    /// Its name.
    #[schema(example = "demo")]
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Version of Longwire.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// Number of links.
    pub links: usize,
}

/// Reason why a link, source or medium could not be changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetError {
    /// There is no such link.
    #[error("there is no link \"{0}\"")]
    UnknownLink(String),
    /// There is no such traffic source.
    #[error("there is no source \"{0}\"")]
    UnknownSource(String),
    /// There is no such router.
    #[error("there is no router \"{0}\"")]
    UnknownRouter(String),
    /// There is no such medium.
    #[error("there is no medium \"{0}\"")]
    UnknownMedium(String),
    /// A link has no such setting.
    #[error("a link has no \"{key}\"; {}", few(known))]
    UnknownKey {
        /// What was given.
        key: String,
        /// The settings there are.
        known: Vec<String>,
    },
    /// The text is not a valid value of this setting.
    #[error("{key}: {reason}")]
    Value {
        /// The setting.
        key: String,
        /// What is wrong, with a valid example.
        reason: String,
    },
    /// It can't be changed in this run: the reason, and the fix.
    #[error("{0}")]
    Refused(String),
    /// The instance can't make changes now.
    #[error("nothing can be changed: {0}")]
    Unavailable(String),
}

/// Most settings that an error lists.
const MOST_LISTED: usize = 24;

/// Lists the known settings, if they are few.
fn few(known: &[String]) -> String {
    if known.len() > MOST_LISTED {
        return "longwire blocks lists what it can have".into();
    }
    format!("it has {}", known.join(", "))
}
