//! Rate limits of operations.

use crate::police::Limit;
use longwire_settings::{Form, Grammar};
use std::sync::Arc;

/// An average rate per second and a burst: `1000/s burst 64`. Without a burst, that of the default applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frequency {
    rate: u32,
    burst: Option<u32>,
}

impl Frequency {
    fn read(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("\"{text}\" is not a frequency; write one such as \"1000/s\" or \"1000/s burst 64\"");
        let (rate, burst) = match text.trim().split_once("burst") {
            Some((rate, burst)) => (rate, Some(burst.trim().parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        if burst == Some(0) {
            return Err("a burst of 0 allows nothing; write 1 or more".into());
        }
        let rate = rate.trim().strip_suffix("/s").ok_or_else(wrong)?.trim().replace('_', "");
        Ok(Self { rate: rate.parse().map_err(|_| wrong())?, burst })
    }

    /// The router's limit, with the burst of `default` if none is given.
    pub fn limit(self, default: Self) -> Limit {
        let burst = self.burst.or(default.burst).unwrap_or(self.rate);
        Limit { rate: self.rate, burst }
    }
}

/// A rate limit: a [`Frequency`].
pub const FREQUENCY: Grammar = Grammar {
    wanted: "a frequency such as \"1000/s\" or \"1000/s burst 64\"",
    read: |text, _| Ok(Arc::new(Frequency::read(text)?)),
    examples: &["1000/s", "20_000/s burst 1024"],
    form: Some(Form { pattern: "^ *[0-9_]+ */s *(burst +[0-9]+ *)?$", numbers: false }),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_read() {
        let default = Frequency { rate: 7, burst: Some(9) };
        let limit = |text| Frequency::read(text).unwrap().limit(default);
        assert_eq!(limit("1000/s"), Limit { rate: 1000, burst: 9 });
        assert_eq!(limit("20_000 /s burst 1024"), Limit { rate: 20_000, burst: 1024 });
        assert_eq!(limit("0/s"), Limit { rate: 0, burst: 9 });
        for bad in ["", "1000", "-1/s", "1/s burst", "1/s burst 0", "5000000000/s", "1/ms"] {
            assert!(Frequency::read(bad).is_err(), "{bad}");
        }
    }
}
