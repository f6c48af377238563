//! Built-in services, by name.
//!
//! A service is a file here and a line in [`Native::ALL`].

mod echo;
mod witness;

use crate::service::Service;

/// A built-in service.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    /// Its name in scenarios.
    pub name: &'static str,
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Creates the service.
    pub make: fn() -> Box<dyn Service>,
}

impl Native {
    /// All services, by name.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "echo",
            summary: "Sends UDP packets back to where they come from; all others pass.",
            make: || Box::new(echo::Echo),
        },
        Self {
            name: "witness",
            summary: "Looks at every byte and lets all pass: what the slow path itself costs.",
            make: || Box::new(witness::Witness::default()),
        },
    ];

    /// Finds a service by name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|native| native.name == name)
    }
}

pub use echo::reflect;

impl PartialEq for Native {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Native {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        for native in Native::ALL {
            assert_eq!(Native::named(native.name), Some(native));
        }
        assert_eq!(Native::named("none"), None);
    }
}
