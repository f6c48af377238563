//! The interface between the API and a running instance, and the formats of its answers.

use crate::ForwarderAsk;
use crate::object::{Choice, Chosen, Kind, Object, Settable};
use crate::overview::{EventPage, EventQuery, Summary, Topology};
use crate::rewire::{RewireAsk, Rewired};
use crate::scenario::{Comparison, WantedScenario};
use serde::{Deserialize, Serialize};
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

    /// The names of its objects of one kind, in the order of the scenario. A duplex link is there as its two
    /// directions.
    fn names(&self, kind: Kind) -> Arc<[String]>;

    /// Totals, without its objects.
    ///
    /// # Errors
    /// If it does not answer.
    fn summary(&self) -> Result<Summary, SetError>;

    /// Its graph, or what some of its links join.
    ///
    /// # Errors
    /// If links can't be chosen so, or it does not answer.
    fn topology(&self, links: Option<&Choice>) -> Result<Topology, SetError>;

    /// What is scheduled, and what has happened.
    fn events(&self, query: EventQuery) -> EventPage;

    /// The time of the run at which the counters that it shows were taken.
    fn counted_ns(&self) -> u64;

    /// The names of objects of one kind: those that fit, sorted.
    ///
    /// # Errors
    /// If objects of this kind can't be sorted so, or it does not answer.
    fn choose(&self, kind: Kind, choice: &Choice) -> Result<Chosen, SetError> {
        chosen_in_order(kind, &self.names(kind), choice)
    }

    /// The object of this kind and name.
    ///
    /// # Errors
    /// If there is none, or it does not answer.
    fn object(&self, kind: Kind, name: &str) -> Result<Object, SetError>;

    /// Changes an object at one instant: all `changes`, pairs of key and text, or none of them. What they
    /// don't name is kept. Returns the object after the change.
    ///
    /// # Errors
    /// If there is no such object, or a change can't be made; nothing has changed then.
    fn set(&self, kind: Kind, name: &str, changes: &[(String, String)]) -> Result<Object, SetError>;

    /// The settings that changes of objects of one kind may name.
    fn settable(&self, kind: Kind) -> Vec<Settable>;

    /// A router's routes, those to its own networks included.
    ///
    /// # Errors
    /// If there is no such router, or it does not answer.
    fn routes(&self, router: &str) -> Result<RoutePage, SetError>;

    /// Handles a request about a router's programs, and answers as JSON.
    ///
    /// # Errors
    /// If there is no such router, program or map, or the request is impossible; nothing has changed then.
    fn forwarders(&self, router: &str, ask: &ForwarderAsk) -> Result<serde_json::Value, SetError>;

    /// Counters in the text format of OpenMetrics; of single links those that `links` means, at most `limit`.
    ///
    /// # Errors
    /// If there are no such links, or the instance does not answer.
    fn metrics(&self, links: Option<&str>, limit: usize) -> Result<String, SetError>;

    /// The scenario that describes what runs, in TOML.
    ///
    /// # Errors
    /// If it is not known, or the instance does not answer.
    fn scenario(&self) -> Result<String, SetError>;

    /// How what runs differs from a scenario in TOML.
    ///
    /// # Errors
    /// If the scenario is wrong, or the instance does not answer.
    fn compare(&self, toml: &str) -> Result<Comparison, SetError>;

    /// Brings what runs to a scenario, and says what was changed.
    ///
    /// # Errors
    /// If the scenario is wrong, or something of it can't change while the instance runs and the rest is not
    /// wanted; nothing has changed then.
    fn apply(&self, wanted: &WantedScenario) -> Result<Comparison, SetError>;

    /// Adds and removes objects at one instant.
    ///
    /// # Errors
    /// If that can't be; nothing has changed then.
    fn rewire(&self, ask: &RewireAsk) -> Result<Rewired, SetError>;

    /// Ends the instance as SIGTERM does, and returns without waiting.
    fn stop(&self);
}

/// Names of objects that fit a choice, in their own order.
///
/// # Errors
/// If the choice sorts them.
pub fn chosen_in_order(kind: Kind, all: &[String], choice: &Choice) -> Result<Chosen, SetError> {
    if choice.sort.is_some() {
        let reason = format!("{} are not sorted; only links are", kind.collection());
        return Err(SetError::Value { key: "sort".into(), reason });
    }
    let fitting = || all.iter().filter(|name| choice.has(name));
    let names = fitting().skip(choice.from).take(choice.count).cloned().collect();
    Ok(Chosen { total: if choice.name.is_some() { fitting().count() } else { all.len() }, names })
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

/// Why an object can't be shown or changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetError {
    /// There is no such object.
    #[error("there is no {} \"{name}\"", kind.word())]
    Unknown {
        /// What it would be.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// An object of this kind has no such setting.
    #[error("a {} has no \"{key}\"; {}", kind.word(), few(known))]
    UnknownKey {
        /// What it is.
        kind: Kind,
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

/// What an object has, if that is soon said.
fn few(known: &[String]) -> String {
    match known.len() {
        0 => "nothing of it can be changed while it runs".into(),
        1..=MOST_LISTED => format!("it has {}", known.join(", ")),
        _ => "longwire blocks lists what it can have".into(),
    }
}
