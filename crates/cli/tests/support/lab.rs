//! Labs that stay up for a test.

use super::{Folder, json, longwire, stderr};
use longwire_lab::{Ability, abilities};
use serde_json::Value;
use std::process::Output;

/// Whether all of these are there; prints why a test is skipped if not.
pub fn are_available(test: &str, needed: &[&Ability]) -> bool {
    let missing = needed.iter().find(|ability| !ability.available);
    missing.inspect(|ability| println!("skipped {test}: {}", ability.reason)).is_none()
}

/// Whether labs are possible; prints why a test is skipped if not.
pub fn can_make_labs(test: &str) -> bool {
    let can = abilities();
    are_available(test, &[&can.root, &can.namespaces])
}

/// A lab that is taken down when dropped.
pub struct RunningLab {
    pub name: String,
}

impl RunningLab {
    /// The lab of this scenario. None, with a message, if labs are impossible.
    pub fn of(test: &str, scenario: &str) -> Option<Self> {
        let folder = Folder::new(test);
        Self::of_file(test, &folder.write("scenario.toml", scenario))
    }

    /// The lab of a scenario file. None, with a message, if labs are impossible.
    pub fn of_file(test: &str, scenario: &str) -> Option<Self> {
        let (lab, up) = Self::by(test, |name| longwire(&["lab", "up", scenario, "--name", name]))?;
        assert!(up.status.success(), "{}", stderr(&up));
        Some(lab)
    }

    /// The lab that `up` makes with this name, and the outcome. None, with a message, if labs are impossible.
    pub fn by(test: &str, up: impl FnOnce(&str) -> Output) -> Option<(Self, Output)> {
        let name = format!("t{}-{test}", std::process::id());
        can_make_labs(test).then(|| {
            let up = up(&name);
            (Self { name }, up)
        })
    }

    /// Runs a command in a host.
    pub fn exec(&self, host: &str, command: &[&str]) -> Output {
        longwire(&[&["lab", "exec", &self.name, host, "--"], command].concat())
    }

    /// Runs a shell script in a host.
    pub fn sh(&self, host: &str, script: &str) -> Output {
        self.exec(host, &["sh", "-c", script])
    }

    /// The counters.
    pub fn stats(&self) -> Value {
        json(&longwire(&["ctl", "stats", &self.name, "--json"]), 0)
    }
}

impl Drop for RunningLab {
    fn drop(&mut self) {
        // Some tests have taken it down.
        longwire(&["lab", "down", &self.name]);
    }
}
