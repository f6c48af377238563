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

/// A scenario that an instance is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WantedScenario {
    /// The scenario in TOML, as in a request for its differences.
    pub toml: String,
    /// Whether to make the changes that can be made if others can't. Default: then nothing changes.
    #[serde(default)]
    pub partial: bool,
}

/// How what runs differs from a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Comparison {
    /// The objects with other settings, in the order in which they run.
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
    /// The settings that differ, and no others.
    pub settings: Vec<SettingDifference>,
}

/// A setting that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettingDifference {
    /// The setting.
    #[schema(example = "delay")]
    pub key: String,
    /// Its value now, if the object has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "20 ms")]
    pub now: Option<String>,
    /// Its value in the scenario, if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "40 ms")]
    pub wanted: Option<String>,
}

/// A difference that can't be removed while the instance runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedDifference {
    /// What differs.
    #[schema(example = "host \"c\"")]
    pub what: String,
    /// Why it can't change, and what to do.
    #[schema(example = "it is new: start the instance again")]
    pub reason: String,
}
