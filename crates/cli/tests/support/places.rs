//! Network namespaces of a test, removed at the end.

use super::stderr;
use longwire_lab::Namespace;
use std::process::Command;

/// Namespaces called NAME-PLACE.
pub struct Places {
    /// What their names begin with.
    pub name: String,
    places: &'static [&'static str],
}

impl Places {
    pub fn new(name: String, places: &'static [&'static str]) -> Self {
        let all = Self { name, places };
        for place in places {
            drop(Namespace::create(&all.named(place)).unwrap());
        }
        all
    }

    pub fn named(&self, place: &str) -> String {
        format!("{}-{place}", self.name)
    }

    /// Runs `ip` in a place.
    pub fn ip(&self, place: &str, arguments: &str) {
        let output = Command::new("ip").args(["-n", &self.named(place)]).args(arguments.split(' ')).output();
        let output = output.unwrap();
        assert!(output.status.success(), "ip {arguments}: {}", stderr(&output));
    }

    /// Runs `act` on a thread in a place.
    pub fn run<R: Send>(&self, place: &str, act: impl FnOnce() -> R + Send) -> R {
        Namespace::open(&self.named(place)).unwrap().run(act).unwrap()
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for place in self.places {
            let _ = Namespace::remove(&self.named(place));
        }
    }
}
