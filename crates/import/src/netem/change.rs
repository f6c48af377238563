//! What `tc qdisc change` keeps of a netem.

use super::Netem;
use super::loss::Loss;
use crate::quantity::Share;
use longwire_units::Nanos;

impl Netem {
    /// Keeps options that a change does not reset, and returns their names: the kernel resets delay, loss,
    /// duplicates, gap (without which nothing is reordered) and limit with each command, and the rest only if
    /// the command names it (sch_netem.c, `netem_change`).
    pub(crate) fn keep(&mut self, before: &Self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if kept(&mut self.rate, &before.rate) {
            (self.overhead, self.atm) = (before.overhead, before.atm);
            names.push("rate");
        }
        names.extend(kept(&mut self.slot, &before.slot).then_some("slot"));
        names.extend(kept(&mut self.corrupt, &before.corrupt).then_some("corrupt"));
        if self.jitter > Nanos::ZERO && kept(&mut self.distribution, &before.distribution) {
            names.push("distribution");
        }
        if !self.ecn && before.ecn && self.loss.is_some() {
            self.ecn = true;
            names.push("ecn");
        }
        if !self.is_correlated && self.correlate(before.correlations) {
            names.push("correlation");
        }
        names
    }

    /// Sets the correlations of delay, loss and duplicates. Returns whether any takes effect.
    fn correlate(&mut self, correlations: [Share; 3]) -> bool {
        self.correlations = correlations;
        let [delay, loss, duplicate] = correlations;
        let mut takes_effect = false;
        let mut put = |place: &mut Share, correlation: Share| {
            *place = correlation;
            takes_effect |= correlation > Share::ZERO;
        };
        if let Some(place) = self.delay_correlation.as_mut().filter(|_| self.jitter > Nanos::ZERO) {
            put(place, delay);
        }
        if let Some(Loss::Random(_, place)) = &mut self.loss {
            put(place, loss);
        }
        if let Some((_, place)) = &mut self.duplicate {
            put(place, duplicate);
        }
        takes_effect
    }
}

/// Gives an option that is not set the value that it had before. Returns whether that is one.
fn kept<T: Clone>(own: &mut Option<T>, before: &Option<T>) -> bool {
    let is_kept = own.is_none() && before.is_some();
    if is_kept {
        own.clone_from(before);
    }
    is_kept
}

/// Whether an option's `values` include a correlation of those that tc sends together.
pub(super) fn has_correlation(option: &str, values: &[String]) -> bool {
    let others = match (option, values.first().map(String::as_str)) {
        ("delay" | "latency", _) => 2,
        ("loss" | "drop", Some("state" | "gemodel")) => return false,
        ("loss" | "drop", Some("random")) => 2,
        ("loss" | "drop" | "corrupt" | "duplicate" | "reorder", _) => 1,
        _ => return false,
    };
    values.len() > others
}
