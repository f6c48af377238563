//! What the links of a plan let through, said before packets flow: the round trip, or why nothing arrives.

use longwire_block::Value;
use longwire_report::shown;
use longwire_scenario::{Plan, contradictions};
use longwire_units::{Nanos, Probability, Rate};
use std::fmt;

/// Bytes of a ping's frame, as `ping` sends it by default.
const PING: u64 = 98;

/// What is said at the start: `trip`, how long a round trip takes, or that nothing arrives; and what settings
/// contradict each other.
pub fn outlook(plan: &Plan, trip: &str) -> Vec<String> {
    let mut said = vec![];
    for reason in [Blockage::Loss, Blockage::Down, Blockage::NoRate] {
        let blocked = (0..plan.links.len()).filter(|link| Blockage::of(plan, *link) == Some(reason));
        let links: Vec<&str> = blocked.map(|link| &*plan.links[link].name).collect();
        match links.len() {
            0 => {}
            all if all == plan.links.len() => said.push(reason.sentence("")),
            _ => said.push(reason.sentence(&format!(" on {}", links.join(" and ")))),
        }
    }
    if said.is_empty() {
        said.push(format!("{trip} {}", RoundTrip::of(plan)));
    }
    for link in 0..plan.links.len() {
        let found = contradictions(&plan.profile(link).blocks);
        said.extend(found.iter().map(|one| format!("note: {one}")));
    }
    // Both directions may have the same one.
    said.dedup();
    said
}

/// Why no packet passes a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blockage {
    Loss,
    Down,
    NoRate,
}

impl Blockage {
    fn of(plan: &Plan, link: usize) -> Option<Self> {
        plan.profile(link).blocks.iter().find_map(|(spec, values)| {
            match (spec.key, spec.kind, values.at(0)) {
                ("loss", "independent", Value::Probability(Probability::ONE)) => Some(Self::Loss),
                ("state", "fixed", state) => {
                    (state.print(spec.params[0].kind) == "down").then_some(Self::Down)
                }
                ("rate", _, Value::Rate(Rate(0))) => Some(Self::NoRate),
                _ => None,
            }
        })
    }

    fn sentence(self, place: &str) -> String {
        match self {
            Self::Loss => format!("every packet{place} will be lost (loss 100 %)"),
            Self::Down => format!("nothing will pass{place} (state down)"),
            Self::NoRate => format!("nothing will pass{place} (rate 0)"),
        }
    }
}

/// The round trip of an idle ping.
#[derive(Debug, PartialEq, Eq)]
struct RoundTrip {
    /// The mean delays of all links, and the transmission time of its frame where the rate is known.
    time: Nanos,
    /// Whether a rate changes while it runs.
    rate_varies: bool,
}

impl RoundTrip {
    fn of(plan: &Plan) -> Self {
        let mut trip = Self { time: Nanos::ZERO, rate_varies: false };
        for link in 0..plan.links.len() {
            let profile = plan.profile(link);
            trip.time.0 += profile.delays.mean.0;
            match profile.value("rate") {
                None | Some(Value::Rate(Rate::UNLIMITED | Rate(0))) => {}
                Some(Value::Rate(Rate(rate))) => {
                    trip.time.0 += (PING * 8).saturating_mul(1_000_000_000) / rate;
                }
                Some(_) => trip.rate_varies = true,
            }
        }
        trip
    }
}

impl fmt::Display for RoundTrip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "about {}", shown::time(self.time.0 as f64))?;
        if self.rate_varies {
            f.write_str(", and more where the rate is low: it varies")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip() {
        let port = |name| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
        let up = "[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\n";
        let down = "[[link]]\nname = \"down\"\nfrom = \"b\"\nto = \"a\"\n";
        let slow = "rate = \"10 Mbit/s\"\n\
                    delay = { kind = \"jitter\", delay = \"60 ms\", jitter = \"5 ms\" }\n";
        for (links, time) in [
            // 98 bytes at 10 Mbit/s take 78.4 us, each way.
            (format!("{up}{slow}{down}{slow}"), Nanos(120_156_800)),
            (format!("{up}delay = \"1 ms\"\n{down}delay = \"60 ms\"\n"), Nanos::from_millis(61)),
        ] {
            let text = format!("{}{}{links}", port("a"), port("b"));
            let plan = longwire_scenario::parse("test", &text).unwrap();
            assert_eq!(RoundTrip::of(&plan), RoundTrip { time, rate_varies: false }, "{links}");
        }
    }
}
