//! The interface between the API and a running instance, and the formats of its answers.

use crate::ProgramRequest;
use crate::answers::{Answers, Edition};
use crate::object::{Kind, Object, ObjectNames, ObjectPage, ObjectQuery, Settable};
use crate::overview::{EventPage, EventQuery, Summary, Topology};
use crate::problem::Problem;
use crate::rewire::{RewireRequest, RewireResponse};
use crate::rows::RowFilter;
use crate::saving::Made;
use crate::scenario::{Comparison, ScenarioRequest};
use crate::set_error::SetError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// A running instance, as used by the API.
///
/// The methods are called on a separate thread, never on a worker, and may block until workers answer between
/// two batches.
pub trait Instance: Send + Sync {
    /// Its name: that of the scenario, or one given at the start.
    fn name(&self) -> String;

    /// All counters, or the selected rows and the number of those after them.
    ///
    /// # Errors
    /// If the filter names an unknown kind, field or row, or it does not answer.
    fn stats(&self, filter: &RowFilter) -> Result<serde_json::Value, Box<Problem>>;

    /// The names of its objects of one kind, in the order of the scenario. A duplex link appears as its two
    /// directions.
    fn names(&self, kind: Kind) -> Arc<[String]>;

    /// Totals, without its objects.
    ///
    /// # Errors
    /// If it does not answer.
    fn summary(&self) -> Result<Summary, SetError>;

    /// Its graph, or that of some of its links.
    ///
    /// # Errors
    /// If links have no such order, or it does not answer.
    fn topology(&self, links: Option<&ObjectQuery>) -> Result<Topology, SetError>;

    /// Where answers are kept that many clients ask for, and what they show now: the totals, or without these
    /// the pages of a kind. None: such answers are made anew each time.
    fn kept(&self, _kind: Option<Kind>) -> Option<(&Answers, Edition)> {
        None
    }

    /// Scheduled changes and past events.
    fn events(&self, query: EventQuery) -> EventPage;

    /// A page of objects of one kind, with their settings and counters.
    ///
    /// # Errors
    /// If objects of this kind have no such order, or it does not answer.
    fn page(&self, kind: Kind, choice: &ObjectQuery) -> Result<ObjectPage, SetError>;

    /// The object of this kind and name.
    ///
    /// # Errors
    /// If there is none, or it does not answer.
    fn object(&self, kind: Kind, name: &str) -> Result<Object, SetError>;

    /// Changes an object at one instant: all `changes`, pairs of key and text, or none of them. Other
    /// settings are kept. Returns the object after the change.
    ///
    /// # Errors
    /// If there is no such object, or a change is impossible; then nothing has changed.
    fn set(&self, kind: Kind, name: &str, changes: &[(String, String)]) -> Result<Made<Object>, SetError>;

    /// The settings that changes of objects of one kind may name.
    fn settable(&self, kind: Kind) -> Vec<Settable>;

    /// A router's routes, including those to its own networks.
    ///
    /// # Errors
    /// If there is no such router, or it does not answer.
    fn routes(&self, router: &str) -> Result<RoutePage, SetError>;

    /// Handles a request about a router's programs, and answers as JSON.
    ///
    /// # Errors
    /// If there is no such router, program or map, or the request is impossible; then nothing has changed.
    fn forwarders(&self, router: &str, ask: &ProgramRequest) -> Result<serde_json::Value, SetError>;

    /// Counters in the text format of OpenMetrics, with at most `limit` single links that `links` matches, if
    /// any does.
    ///
    /// # Errors
    /// If the instance does not answer.
    fn metrics(&self, links: Option<&str>, limit: usize) -> Result<String, SetError>;

    /// The scenario that describes the running instance, in TOML.
    ///
    /// # Errors
    /// If it is unknown, or the instance does not answer.
    fn scenario(&self) -> Result<String, SetError>;

    /// Compares the running instance with a scenario in TOML.
    ///
    /// # Errors
    /// If the scenario is invalid, or the instance does not answer.
    fn compare(&self, toml: &str) -> Result<Comparison, SetError>;

    /// Applies a scenario to the running instance, and returns the changes.
    ///
    /// # Errors
    /// If the scenario is invalid, or part of it can't change in a run and a partial change is not wanted;
    /// then nothing has changed.
    fn apply(&self, wanted: &ScenarioRequest) -> Result<Made<Comparison>, SetError>;

    /// Adds and removes objects at one instant.
    ///
    /// # Errors
    /// If that is impossible; then nothing has changed.
    fn rewire(&self, ask: &RewireRequest) -> Result<Made<RewireResponse>, SetError>;

    /// Ends the instance as SIGTERM does, and returns without waiting.
    fn stop(&self);
}

/// Names of objects that match a query, in the scenario's order.
///
/// # Errors
/// If the query sorts them.
pub fn chosen_in_order(kind: Kind, all: &[String], choice: &ObjectQuery) -> Result<ObjectNames, SetError> {
    if choice.sort.is_some() {
        let reason = format!("{} can't be sorted; only links can", kind.collection());
        return Err(SetError::Value { key: "sort".into(), reason });
    }
    let fitting = || all.iter().filter(|name| choice.has(name));
    let total = if choice.name.is_some() { fitting().count() } else { all.len() };
    let names = match choice.reverse {
        false => fitting().skip(choice.from).take(choice.count).cloned().collect(),
        true => fitting().rev().skip(choice.from).take(choice.count).cloned().collect(),
    };
    Ok(ObjectNames { total, names })
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

/// Identity of an instance.
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
