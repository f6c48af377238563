//! Traces with names of their own, beginning with `profile:`, that need no file: those of the profile
//! library's radio links.
//!
//! They are generated on demand by the model in [`synthetic`](crate::synthetic), and are the same on every
//! machine.

use crate::synthetic::Cellular;
use longwire_units::{Nanos, Probability, Rate};

/// Prefix of the names of shipped traces.
pub const PREFIX: &str = "profile:";

/// Length of a shipped trace.
pub const LENGTH: Nanos = Nanos::from_secs(60);

/// A trace available by name.
#[derive(Debug)]
pub struct ShippedTrace {
    /// Its name, without the prefix.
    pub name: &'static str,
    /// Parameters of the model.
    pub link: Cellular,
    /// Seed of the model.
    seed: u64,
}

/// All shipped traces. The means are those of the technology in `profiles/`. The coherence time of about a
/// second and the outages are typical of what Winstein, Sivaraman and Balakrishnan saw in moving cars (NSDI
/// 2013, section 3), not measured for these links. The rate varies so much that the mean of a minute is up to
/// a fifth off: the seeds are the first ones with a mean within 1 %.
pub static ALL: [ShippedTrace; 6] = [
    radio("3g-down", Rate(1_500_000), 2, 6),
    radio("3g-up", Rate(500_000), 2, 6),
    radio("lte-down", Rate(13_000_000), 1, 2),
    radio("lte-up", Rate(6_000_000), 1, 9),
    radio("5g-down", Rate(200_000_000), 1, 6),
    radio("5g-up", Rate(30_000_000), 1, 2),
];

/// A radio link with this percentage of outage, in outages of a fifth of a second.
const fn radio(name: &'static str, mean: Rate, percent_out: u64, seed: u64) -> ShippedTrace {
    let outage = Probability::from_bits(Probability::ONE.bits() / 100 * percent_out);
    let coherence = Nanos::from_secs(1);
    let link = Cellular { mean, coherence, outage, outage_length: Nanos::from_millis(200) };
    ShippedTrace { name, link, seed }
}

impl ShippedTrace {
    /// The trace with that name, with or without the prefix.
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        ALL.iter().find(|shipped| shipped.name == name)
    }

    /// The trace in mahimahi's format.
    pub fn text(&self) -> String {
        self.link.mahimahi(LENGTH, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Opportunities;

    #[test]
    fn has_the_mean_that_its_row_says() {
        let first = |shipped: &ShippedTrace| {
            let mean = |seed: &u64| {
                let trace = Opportunities::parse(&shipped.link.mahimahi(LENGTH, *seed)).unwrap();
                assert_eq!(trace.length(), LENGTH);
                trace.mean().as_f64() / shipped.link.mean.as_f64()
            };
            (1..1000).find(|seed| (mean(seed) - 1.0).abs() < 0.01).unwrap()
        };
        let wanted: Vec<u64> = ALL.iter().map(first).collect();
        assert_eq!(ALL.iter().map(|shipped| shipped.seed).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn is_found_with_and_without_the_prefix() {
        assert_eq!(ShippedTrace::named("profile:lte-up").unwrap().name, "lte-up");
        assert_eq!(ShippedTrace::named("lte-up").unwrap().name, "lte-up");
        assert!(ShippedTrace::named("profile:6g-up").is_none());
    }
}
