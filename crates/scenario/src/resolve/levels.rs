//! What the levels above a router can do: `slow-path` and `control` of `[[router]]`.

use super::{Desk, Entry};
use crate::file_router;
use crate::finding::not_one_of;
use crate::level_plan::RouterLevels;
use crate::written::{Text, Whole, Written};
use longwire_punt::Capacity;

/// Most packets and cycles a second of a level.
const MOST_PACKETS: u64 = 1_000_000_000;
const MOST_CYCLES: u64 = 1_000_000_000_000;

impl Desk<'_, '_> {
    /// None after an error.
    pub(super) fn levels(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
    ) -> Option<RouterLevels> {
        let mut levels = RouterLevels::default();
        if let Some(slow) = &written.slow_path {
            let capacity = (slow.packets.as_ref(), slow.cycles.as_ref());
            levels.slow =
                self.capacity(entry, ["slow-path.packets", "slow-path.cycles"], capacity, levels.slow)?;
            levels.wait = self.term_or(entry, "slow-path.wait", slow.wait.as_ref(), levels.wait)?;
            if let Some(scheduler) = &slow.scheduler {
                levels.scheduler = self.scheduler(entry, scheduler)?;
            }
        }
        if let Some(control) = &written.control {
            let capacity = (control.packets.as_ref(), control.cycles.as_ref());
            levels.control =
                self.capacity(entry, ["control.packets", "control.cycles"], capacity, levels.control)?;
        }
        Some(levels)
    }

    fn capacity(
        &mut self,
        entry: &Entry<'_>,
        [packets, cycles]: [&str; 2],
        written: (Option<&Written<Whole>>, Option<&Written<Whole>>),
        default: Capacity,
    ) -> Option<Capacity> {
        Some(Capacity {
            packets: self.whole_or(entry, packets, written.0, default.packets, 1..=MOST_PACKETS)?,
            cycles: self.whole_or(entry, cycles, written.1, default.cycles, 1..=MOST_CYCLES)?,
        })
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
