//! Routers from the user's view: hosts of a lab behind them, and runs in virtual time.

#[path = "../support/mod.rs"]
mod support;

mod constellation;
mod control_planes;
mod forwarding;

use longwire_lab::abilities;
use std::ops::Deref;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};
use support::lab::{RunningLab, are_available};
use support::{longwire, repository, stderr, stdout};

/// A lab with routers.
struct RoutedLab(RunningLab);

impl RoutedLab {
    /// Skips the test with a message if labs are impossible.
    fn new(test: &str) -> Option<Self> {
        // Without the scenario's own events: this test decides when.
        let text = std::fs::read_to_string(repository("scenarios/router.toml")).unwrap();
        RunningLab::of(test, text.split("[[at]]").next().unwrap()).map(Self)
    }

    /// A lab whose routers have control planes, if `programs` are installed.
    fn with_control_planes(test: &str, programs: &[&str]) -> Option<Self> {
        if let Some(missing) = programs.iter().find(|program| !Path::new(program).exists()) {
            println!("skipped {test}: {missing} is not installed");
            return None;
        }
        if !are_available(test, &[&abilities().tap]) {
            return None;
        }
        let text = std::fs::read_to_string(repository("scenarios/control-plane.toml")).unwrap();
        RunningLab::of(test, &text).map(Self)
    }

    /// Output of a command in a host.
    fn says(&self, host: &str, script: &str) -> String {
        let done = self.sh(host, script);
        stdout(&done) + &stderr(&done)
    }

    /// Runs a command in a host until its output contains all of `wanted`: other tests may use the
    /// processors.
    fn until(&self, host: &str, script: &str, wanted: &[&str]) -> String {
        let begin = Instant::now();
        loop {
            let said = self.says(host, &format!("{script}; sleep 0.3"));
            if wanted.iter().all(|wanted| said.contains(wanted)) {
                return said;
            }
            assert!(begin.elapsed() < PATIENCE, "{host}: {script}: {said}\n{:#}", self.stats());
        }
    }

    /// Queries a router's routes until they contain all of `wanted`.
    fn until_routes(&self, router: &str, wanted: &[&str]) {
        let begin = Instant::now();
        loop {
            let listed = stdout(&self.route(&["list", router]));
            if wanted.iter().all(|wanted| listed.contains(wanted)) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{wanted:?}: {listed}\n{:#}", self.stats());
            // Queries take the run's time, so they are spaced.
            self.says(router, "sleep 0.3");
        }
    }

    fn route(&self, args: &[&str]) -> Output {
        longwire(&[&["ctl", "route"], args, &["--instance", &self.name]].concat())
    }
}

impl Deref for RoutedLab {
    type Target = RunningLab;

    fn deref(&self) -> &RunningLab {
        &self.0
    }
}

/// Longest wait for routing protocols: they have timers of many seconds.
const PATIENCE: Duration = Duration::from_secs(180);
