//! What the levels above a router can do: `slow-path` and `control` of `[[router]]`.

use super::{Entry, Resolver};
use crate::file_router;
use crate::finding::not_one_of;
use crate::level_plan::{RouterLevels, nanoseconds_of};
use crate::written::{Text, Whole, Written};
use longwire_punt::{Capacity, TRIP};
use longwire_units::Probability;

/// Most packets and cycles a second of a level.
const MOST_PACKETS: u64 = 1_000_000_000;
const MOST_CYCLES: u64 = 1_000_000_000_000;
/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

impl Resolver<'_, '_> {
    /// None after an error.
    pub(super) fn levels(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
    ) -> Option<RouterLevels> {
        let mut levels = RouterLevels::default();
        if let Some(slow) = &written.slow_path {
            levels.worker[0] = self.worker(entry, "slow-path.worker", slow.worker.as_ref(), 0)?;
            let capacity = (slow.packets.as_ref(), slow.cycles.as_ref());
            let keys = ["slow-path.packets", "slow-path.cycles"];
            levels.slow = self.capacity(entry, keys, capacity, (levels.slow, levels.worker[0]))?;
            levels.wait = self.term_or(entry, "slow-path.wait", slow.wait.as_ref(), levels.wait)?;
            if let Some(scheduler) = &slow.scheduler {
                levels.scheduler = self.scheduler(entry, scheduler)?;
            }
        }
        if let Some(control) = &written.control {
            let slow = levels.worker[0].unwrap_or_default();
            levels.worker[1] = self.worker(entry, "control.worker", control.worker.as_ref(), slow)?;
            let capacity = (control.packets.as_ref(), control.cycles.as_ref());
            let keys = ["control.packets", "control.cycles"];
            levels.control = self.capacity(entry, keys, capacity, (levels.control, levels.worker[1]))?;
        }
        Some(levels)
    }

    /// What is set aside of the worker's time, in nanoseconds a second, if anything is said; something is
    /// left beside what others have.
    #[expect(clippy::option_option, reason = "none after an error, and then none if nothing is said")]
    fn worker(
        &mut self,
        entry: &Entry<'_>,
        key: &str,
        written: Option<&Written<Probability>>,
        others: u64,
    ) -> Option<Option<u64>> {
        let Some(written) = written else { return Some(None) };
        let part = self.term(entry, key, written)?;
        let reserved = nanoseconds_of(part);
        if reserved + others < SECOND {
            return Some(Some(reserved));
        }
        let what = "nothing of the worker is left for the data path".to_owned();
        self.error(&written.span, entry, key, what, "set less than 100 % aside, both levels together");
        None
    }

    /// Packets and cycles a second. Where the worker's time is set aside, no more packets can be promised
    /// than it moves in that.
    fn capacity(
        &mut self,
        entry: &Entry<'_>,
        [packets, cycles]: [&str; 2],
        written: (Option<&Written<Whole>>, Option<&Written<Whole>>),
        (default, reserved): (Capacity, Option<u64>),
    ) -> Option<Capacity> {
        let most = reserved.map_or(MOST_PACKETS, |reserved| (reserved / TRIP).max(1));
        let default_packets = default.packets.min(most);
        let capacity = Capacity {
            packets: self.whole_or(entry, packets, written.0, default_packets, 1..=MOST_PACKETS)?,
            cycles: self.whole_or(entry, cycles, written.1, default.cycles, 1..=MOST_CYCLES)?,
        };
        if let (Some(written), true) = (written.0, capacity.packets > most) {
            let what = format!(
                "{} packets/s of {TRIP} ns take {} us of each second, and {} us of the worker are set aside \
                 for them",
                capacity.packets,
                capacity.packets.saturating_mul(TRIP) / 1000,
                reserved.unwrap_or_default() / 1000
            );
            self.error(
                &written.span,
                entry,
                packets,
                what,
                format!("write at most {most}, or set more aside"),
            );
            return None;
        }
        Some(capacity)
    }

    fn scheduler(&mut self, entry: &Entry<'_>, written: &Written<Text>) -> Option<&'static str> {
        let Text(name) = self.term(entry, "slow-path.scheduler", written)?;
        let names: Vec<&'static str> = longwire_sched::SPECS.iter().map(|spec| spec.name).collect();
        let found = names.iter().find(|known| **known == name);
        if found.is_none() {
            let what = not_one_of("a scheduler", &name, &names);
            self.error(&written.span, entry, "slow-path.scheduler", what, "");
        }
        found.copied()
    }
}
