//! Capacities of the levels above a router, `slow-path` and `control` of `[[router]]`, and packet budgets:
//! its keys `profile` and `line-rate`.

use super::{Entry, Resolver};
use crate::file_router;
use crate::level_plan::{RouterLevels, nanoseconds_of};
use crate::settings::{ControlSettings, CostProfile, RouterSettings, SlowPathSettings};
use longwire_punt::{Capacity, TRIP};
use longwire_router::{Admission, Budget, RouterPrices};
use longwire_units::{Probability, Rate};
use std::ops::Range;

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

impl Resolver<'_, '_> {
    /// The levels. None after an error.
    pub(super) fn levels(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
    ) -> Option<RouterLevels> {
        let slow: SlowPathSettings = self.subtable(entry, "slow-path", written.slow_path.as_ref())?;
        let control: ControlSettings = self.subtable(entry, "control", written.control.as_ref())?;
        let place = |key| written.slow_path.as_ref().and_then(|table| table.span(key));
        let reserved = self.worker(entry, "slow-path.worker", (slow.worker, place("worker")), 0)?;
        let capacity = (slow.packets, place("packets"), slow.cycles);
        let slow_capacity = self.capacity(entry, "slow-path.packets", capacity, reserved)?;
        let place = |key| written.control.as_ref().and_then(|table| table.span(key));
        let others = reserved.unwrap_or_default();
        let above = self.worker(entry, "control.worker", (control.worker, place("worker")), others)?;
        let capacity = (control.packets, place("packets"), control.cycles);
        Some(RouterLevels {
            slow: slow_capacity,
            control: self.capacity(entry, "control.packets", capacity, above)?,
            scheduler: slow.scheduler.0,
            wait: slow.wait,
            worker: [reserved, above],
        })
    }

    /// Worker time to reserve in ns per second, if given; some must remain besides `others`.
    fn worker(
        &mut self,
        entry: &Entry<'_>,
        key: &str,
        (part, span): (Option<Probability>, Option<&Range<usize>>),
        others: u64,
    ) -> Option<Option<u64>> {
        let (Some(part), Some(span)) = (part, span) else { return Some(None) };
        let reserved = nanoseconds_of(part);
        if reserved + others < SECOND {
            return Some(Some(reserved));
        }
        let what = "nothing of the worker is left for the data path".to_owned();
        self.refuse(span, entry, key, what, "set less than 100 % aside, both levels together")
    }

    /// The capacity. Where worker time is reserved, no more packets are guaranteed than it can move.
    fn capacity(
        &mut self,
        entry: &Entry<'_>,
        key: &str,
        (packets, span, cycles): (u64, Option<&Range<usize>>, u64),
        reserved: Option<u64>,
    ) -> Option<Capacity> {
        let most = reserved.map_or(u64::MAX, |reserved| (reserved / TRIP).max(1));
        if let (Some(span), true) = (span, packets > most) {
            let what = format!(
                "{packets} packets/s of {TRIP} ns take {} us of each second, and {} us of the worker are \
                 set aside for them",
                packets.saturating_mul(TRIP) / 1000,
                reserved.unwrap_or_default() / 1000
            );
            return self.refuse(span, entry, key, what, format!("write at most {most}, or set more aside"));
        }
        Some(Capacity { packets: packets.min(most), cycles })
    }

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
        let fix = "write the rate that is to be held, or leave it out for no budget".to_owned();
        let (what, fix) = match (line, admission.check()) {
            (Rate(0), _) => ("at a rate of 0 no packet comes, and nothing is promised".to_owned(), fix),
            (Rate::UNLIMITED, _) => ("an unlimited rate leaves no time for a packet".to_owned(), fix),
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
