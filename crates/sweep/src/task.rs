//! A task of a sweep.

use longwire_report::Row;
use longwire_run::comparison::StartSetting;
use serde_json::{Map, Value};

/// A task of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its number, from 0.
    pub number: u64,
    /// The settings of the axes, in the file's order.
    pub settings: Vec<StartSetting>,
    /// Its seed.
    pub seed: u64,
}

impl Task {
    /// Its row of a report.
    pub fn row(&self) -> Row {
        let settings = self.settings.iter().map(|one| (one.target.clone(), Value::from(one.value.as_str())));
        Row::new(format!("task {}", self.number), "")
            .extra("task", self.number)
            .extra("settings", settings.collect::<Map<_, _>>())
            .extra("seed", self.seed)
    }

    /// Its line of a table: its number, the values of its settings, and its seed.
    pub fn cells(self) -> Vec<String> {
        let values = self.settings.into_iter().map(|setting| setting.value);
        std::iter::once(self.number.to_string()).chain(values).chain([self.seed.to_string()]).collect()
    }
}
