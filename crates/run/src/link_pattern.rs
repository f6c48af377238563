//! Names of links with wildcards: `*` for any characters, `?` for one.

use anyhow::{anyhow, ensure};
use longwire_control::fits;
use longwire_scenario::Plan;
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

impl LinkPattern {
    /// Most links that an error names.
    pub const MOST_SHOWN: usize = 10;

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
        let some: Vec<_> = plan.links.iter().take(Self::MOST_SHOWN).map(|link| &*link.name).collect();
        ensure!(!places.is_empty(), self.fits_none(&plan.file, &some));
        Ok(places)
    }

    /// The error that none of the links of `file` matches, of which these are some.
    pub fn fits_none(&self, file: &str, some: &[&str]) -> anyhow::Error {
        anyhow!("no link matches {}; {file} has {}", self.0, some.join(", "))
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
