//! Capacities of the levels above a router: `slow-path` and `control` of `[[router]]`.

use super::{Entry, Resolver};
use crate::file_router;
use crate::level_plan::{RouterLevels, nanoseconds_of};
use crate::settings::{ControlSettings, SlowPathSettings};
use longwire_punt::{Capacity, TRIP};
use longwire_units::Probability;
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
    #[expect(clippy::option_option, reason = "none after an error, and then none if nothing is said")]
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
}
