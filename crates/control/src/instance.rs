//! What the API needs of a running instance, and the shapes of what it answers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;
use utoipa::ToSchema;

/// A running instance, as the API sees it.
///
/// The methods are called on a thread of their own, never on a worker, and may block for as long as workers need to
/// answer between two batches.
pub trait Instance: Send + Sync {
    /// Its name: that of its scenario, or one given at the start.
    fn name(&self) -> String;

    /// Everything it counts.
    fn stats(&self) -> serde_json::Value;

    /// The names of its links, in the order of the plan.
    fn link_names(&self) -> Arc<[String]>;

    /// One link, or none if there is no link called `name`.
    fn link(&self, name: &str) -> Option<Link>;

    /// Changes a link: all `changes`, pairs of key and text, or none of them. What they don't name is kept.
    /// Returns the link after the change.
    ///
    /// # Errors
    /// If there is no such link, or a change can't be made; nothing has changed then.
    fn set_link(&self, link: &str, changes: &[(String, String)]) -> Result<Link, SetError>;

    /// The names of its traffic sources, in the order of the plan.
    fn source_names(&self) -> Arc<[String]>;

    /// One source, or none if there is no source called `name`.
    fn source(&self, name: &str) -> Option<Source>;

    /// Changes a source, as [`Instance::set_link`] does a link.
    ///
    /// # Errors
    /// If there is no such source, or a change can't be made; nothing has changed then.
    fn set_source(&self, source: &str, changes: &[(String, String)]) -> Result<Source, SetError>;

    /// Asks it to end as it would on SIGTERM, and returns without waiting for it.
    fn stop(&self);
}

/// A link: how it is set, and what it has counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// Its name in the scenario.
    #[schema(example = "up")]
    pub name: String,
    /// Its settings, each as text that setting it would take.
    #[schema(example = json!({"rate": "10 Mbit/s", "delay": "20 ms"}))]
    pub settings: BTreeMap<String, String>,
    /// Its counters.
    #[schema(value_type = Object)]
    pub stats: serde_json::Value,
}

/// A traffic source: how it is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Source {
    /// Its name in the scenario.
    #[schema(example = "video")]
    pub name: String,
    /// Its settings, each as text that setting it would take.
    #[schema(example = json!({"model": "cbr", "rate": "3 Mbit/s", "size": "1400 B"}))]
    pub settings: BTreeMap<String, String>,
}

/// Some of an instance's links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkPage {
    /// How many links the instance has.
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
    /// The version of Longwire it runs.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// How many links it has.
    pub links: usize,
}

/// Why a link or source could not be changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetError {
    /// There is no such link.
    #[error("there is no link \"{0}\"")]
    UnknownLink(String),
    /// There is no such traffic source.
    #[error("there is no source \"{0}\"")]
    UnknownSource(String),
    /// A link has no such setting.
    #[error("a link has no \"{key}\"; it has {}", known.join(", "))]
    UnknownKey {
        /// What was given.
        key: String,
        /// The settings there are.
        known: Vec<String>,
    },
    /// The text can't be a value of this setting.
    #[error("{key}: {reason}")]
    Value {
        /// The setting.
        key: String,
        /// What is wrong, and what would do.
        reason: String,
    },
    /// The instance can't change anything now.
    #[error("nothing can be changed: {0}")]
    Unavailable(String),
}
