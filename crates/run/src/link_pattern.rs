//! Names of links with wildcards: `*` for any characters, `?` for one.

use anyhow::{anyhow, ensure};
use longwire_control::fits;
use longwire_scenario::Plan;
use std::rc::Rc;
use std::str::FromStr;

/// One or several patterns, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkPattern(String);

impl FromStr for LinkPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.split(',').any(|part| part.trim().is_empty()) {
            return Err("write names or patterns such as dsl*, with commas between them".into());
        }
        Ok(Self(text.into()))
    }
}

/// Most links that an error names.
const MOST_SHOWN: usize = 10;

impl LinkPattern {
    /// Whether a name matches.
    pub fn fits(&self, name: &str) -> bool {
        self.0.split(',').any(|part| fits(name, part.trim()))
    }

    /// The places of the plan's matching links.
    ///
    /// # Errors
    /// If there are none.
    pub fn places(&self, plan: &Plan) -> anyhow::Result<Vec<u32>> {
        let own = |&place: &usize| self.fits(&plan.links[place].name);
        let places: Vec<_> = (0..plan.links.len()).filter(own).map(|place| place as u32).collect();
        let some: Vec<_> = plan.links.iter().take(MOST_SHOWN).map(|link| &*link.name).collect();
        ensure!(!places.is_empty(), self.fits_none(&plan.file, &some));
        Ok(places)
    }

    /// The error that none of the links of `file` matches, of which these are some.
    fn fits_none(&self, file: &str, some: &[&str]) -> anyhow::Error {
        anyhow!("no link matches {}; {file} has {}", self.0, some.join(", "))
    }
}

/// The search for a link that matches, among those that have events in a log.
#[derive(Debug)]
pub struct LinkSearch<'p> {
    /// None once one was found, or if none is wanted.
    pattern: Option<&'p LinkPattern>,
    /// Some of those that do not match.
    others: Vec<Rc<str>>,
}

impl<'p> LinkSearch<'p> {
    /// A search that has seen no link.
    pub const fn new(pattern: Option<&'p LinkPattern>) -> Self {
        Self { pattern, others: Vec::new() }
    }

    /// Looks at the name of a link.
    pub fn see(&mut self, name: &Rc<str>) {
        let Some(pattern) = self.pattern else { return };
        if pattern.fits(name) {
            self.pattern = None;
        } else if self.others.len() < MOST_SHOWN && !self.others.contains(name) {
            self.others.push(Rc::clone(name));
        }
    }

    /// Says that none of the seen links of `file` matches, if so. That is no error: a log does not have the
    /// names of links without events.
    pub fn fits_none(&self, file: &str) -> Option<anyhow::Error> {
        let others: Vec<&str> = self.others.iter().map(AsRef::as_ref).collect();
        let pattern = self.pattern.filter(|_| !others.is_empty())?;
        Some(pattern.fits_none(file, &others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, fits) in [
            ("dsl*", "dsl12", true),
            ("dsl*", "adsl", false),
            ("up, down", "down", true),
            ("up", "upper", false),
        ] {
            let pattern: LinkPattern = pattern.parse().unwrap();
            assert_eq!(pattern.fits(name), fits, "{pattern:?} {name}");
        }
        assert!("a,,b".parse::<LinkPattern>().is_err());
    }
}
