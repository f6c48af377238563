//! Packet budgets: the keys `profile` and `line-rate` of `[[router]]`.

use super::{Entry, Resolver};
use crate::file_router;
use crate::settings::{CostProfile, RouterSettings};
use longwire_router::{Admission, Budget, RouterPrices};
use longwire_units::Rate;
use std::ops::Range;

impl Resolver<'_, '_> {
    /// The budget of a packet: that of a profile, or the time at a line rate, less `set_aside` ns per second
    /// for moving packets to other levels.
    pub(super) fn admission(
        &mut self,
        entry: &Entry<'_>,
        (written, settings): (&file_router::Router, &RouterSettings),
        set_aside: u64,
    ) -> Option<Admission> {
        let prices = settings.prices.router.clone();
        let budget = match (settings.profile, settings.line_rate) {
            (None, None) => Budget::default(),
            (Some(CostProfile::Vrp), None) => Budget::VRP.setting_aside(set_aside),
            (None, Some(line)) => {
                return self.line_rate(entry, written.span("line-rate")?, (line, set_aside), prices);
            }
            (Some(_), Some(_)) => {
                let what = "a router's budget is that of a profile or of a line rate";
                let fix = "leave one of the two out";
                return self.refuse(written.span("profile")?, entry, "profile", what, fix);
            }
        };
        Some(Admission { budget, prices })
    }

    /// The budget at a line rate. It is a guarantee: refused if the router's own work alone takes longer.
    fn line_rate(
        &mut self,
        entry: &Entry<'_>,
        span: &Range<usize>,
        (line, set_aside): (Rate, u64),
        prices: RouterPrices,
    ) -> Option<Admission> {
        let admission = Admission { budget: Budget::line_rate(line.0).setting_aside(set_aside), prices };
        let (what, fix) = match (line, admission.check()) {
            (Rate(0), _) => (
                "at a rate of 0 no packet comes, and nothing is promised".to_owned(),
                "write the rate that is to be held, or leave it out for no budget".to_owned(),
            ),
            (Rate::UNLIMITED, _) => (
                "an unlimited rate leaves no time for a packet".to_owned(),
                "write the rate that is to be held, or leave it out for no budget".to_owned(),
            ),
            (_, Err(overdrawn)) => {
                let sums: Vec<String> = overdrawn.sums.iter().map(ToString::to_string).collect();
                let what = format!("{line} can't be held, without any program: {}", sums.join("; "));
                let left = u128::from(Budget::rate_for(overdrawn.sums[0].total))
                    * u128::from(1_000_000_000 - set_aside);
                let most = Rate((left / 1_000_000_000) as u64 / 1_000_000 * 1_000_000);
                (what, format!("write at most {most}, or name prices that were measured"))
            }
            (_, Ok(_)) => return Some(admission),
        };
        self.refuse(span, entry, "line-rate", what, fix)
    }
}
