//! Formats of requests and answers about the scenario that an instance runs.

use crate::object::Kind;
use crate::rewire::RewiredObject;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A scenario as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScenarioText {
    /// The scenario in TOML. Relative file names in it are relative to the folder of the scenario that the
    /// instance was started with.
    #[schema(example = "[[link]]\nname = \"up\"\n")]
    pub toml: String,
}

/// A scenario to apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioRequest {
    /// The scenario in TOML, as in a request for its differences.
    pub toml: String,
    /// Whether to make possible changes if others are impossible. Default: then nothing changes.
    #[serde(default)]
    pub partial: bool,
}

/// Differences between the running instance and a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Comparison {
    /// Objects with other settings, in the order of the running scenario.
    pub changes: Vec<ObjectDifference>,
    /// Links and hosts that are new: each direction of a duplex link for itself. A link with other ends is
    /// removed, and another one added.
    #[serde(default)]
    pub added: Vec<RewiredObject>,
    /// Links and hosts that are gone.
    #[serde(default)]
    pub removed: Vec<RewiredObject>,
    /// Whether packets take other paths, although no object is new or gone.
    #[serde(default)]
    pub paths: bool,
    /// What can't change while it runs.
    pub refused: Vec<RefusedDifference>,
}

impl Comparison {
    /// Number of objects that change, join or leave.
    pub fn count(&self) -> usize {
        self.changes.len() + self.added.len() + self.removed.len()
    }
}

/// An object whose settings differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObjectDifference {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    #[schema(example = "up.forward")]
    pub name: String,
    /// The differing settings.
    pub settings: Vec<SettingDifference>,
}

/// A differing setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettingDifference {
    /// The setting.
    #[schema(example = "delay")]
    pub key: String,
    /// Its value now, if the object has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "20 ms")]
    pub now: Option<String>,
    /// Its value in the scenario, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "40 ms")]
    pub wanted: Option<String>,
}

/// A difference that can't be removed in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedDifference {
    /// What differs.
    #[schema(example = "seed")]
    pub what: String,
    /// Why it can't change, and what to do.
    #[schema(example = "it is fixed when the instance starts: start the instance again")]
    pub reason: String,
}
