//! Formats of an agent's API: a service to which clients send the scenarios that it runs, such as the parts
//! of a cluster.

use crate::instance::Instance;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;
use utoipa::ToSchema;

/// What runs scenarios at the request of clients.
pub trait Agent: Send + Sync {
    /// The agent itself, and what it runs.
    fn state(&self) -> AgentState;

    /// The part of this name, with its report if it has ended.
    ///
    /// # Errors
    /// If there is none.
    fn part(&self, name: &str) -> Result<PartState, AgentError>;

    /// Starts a scenario under this name, and returns without waiting until it runs. One of the same run that
    /// runs already goes on.
    ///
    /// # Errors
    /// If the scenario, a name or a file is wrong, or another run has the name; then nothing has changed.
    fn start(&self, name: &str, ask: &PartRequest) -> Result<PartState, AgentError>;

    /// Ends the part of this name, and returns without waiting for the end. One that has ended is forgotten.
    ///
    /// # Errors
    /// If there is none, or it has not started yet.
    fn end(&self, name: &str) -> Result<PartState, AgentError>;

    /// The instance of a part that runs.
    fn instance(&self, name: &str) -> Option<Arc<dyn Instance>>;
}

/// An agent, and what it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentState {
    /// Version of Longwire.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it started, since 1970: another time means another process.
    pub started_ns: u64,
    /// Processors that it may use.
    pub cores: usize,
    /// What it runs and has run, by name, without reports.
    pub parts: Vec<PartState>,
}

/// A scenario to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartRequest {
    /// The run that it is a part of: up to 64 letters, digits and `-_.`. All parts of a run have the same.
    #[schema(example = "7f3a9c")]
    pub run: String,
    /// The scenario in TOML. Relative file names in it mean the `files`.
    #[schema(example = "[[port]]\nname = \"a\"\n")]
    pub toml: String,
    /// The files that it names, such as keys and traces: by their relative names, the bytes in hexadecimal
    /// digits.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The load that it puts on the processors at most, in millionths of one, as its sender computed it: for
    /// those who ask whether there is room for more.
    #[serde(default)]
    #[schema(example = 350_000)]
    pub load_ppm: Option<u64>,
}

/// What has become of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// Its hosts are made and its ports opened.
    Starting,
    /// It runs.
    Running,
    /// Its end was requested.
    Ending,
    /// It has ended as requested.
    Ended,
    /// It could not start, or has ended by itself.
    Failed,
}

/// A part of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PartState {
    /// Its name.
    #[schema(example = "wan")]
    pub name: String,
    /// The run that it is a part of.
    #[schema(example = "7f3a9c")]
    pub run: String,
    /// What has become of it.
    pub condition: Condition,
    /// Its load, as its sender has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 350_000)]
    pub load_ppm: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its final report, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub report: Option<Value>,
}

/// Why an agent refuses something.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AgentError {
    /// There is no such part.
    #[error("there is no part \"{0}\" here")]
    Unknown(String),
    /// A part of the request is wrong.
    #[error("{key}: {reason}")]
    Value {
        /// The key of the request.
        key: &'static str,
        /// The fault, and the fix.
        reason: String,
    },
    /// It is impossible in the present condition: why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// The agent can't do it.
    #[error("the agent failed: {0}")]
    Failed(String),
}

/// The name of the part that a path belongs to, and the path in the API of its instance:
/// `/parts/wan/v1/stats` is `/v1/stats` of `wan`.
pub(crate) fn of_part(path: &str) -> Option<(&str, &str)> {
    let behind = path.strip_prefix("/parts/")?;
    let end = behind.find('/').filter(|end| *end > 0)?;
    Some(behind.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_belong_to_parts() {
        for (path, expected) in [
            ("/parts/wan/v1/stats", Some(("wan", "/v1/stats"))),
            ("/parts/wan/", Some(("wan", "/"))),
            ("/parts/wan/parts/wan/v1", Some(("wan", "/parts/wan/v1"))),
            ("/parts/wan", None),
            ("/parts//v1/stats", None),
            ("/parts/", None),
            ("/v1/agent/parts/wan", None),
        ] {
            assert_eq!(of_part(path), expected, "{path}");
        }
    }
}
