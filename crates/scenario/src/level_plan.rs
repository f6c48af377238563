//! A router's levels above the data path, and requests for places there.

use crate::settings::{ControlSettings, LevelWait, SlowPathSettings};
use longwire_block::Settings;
use longwire_punt::services::Native;
use longwire_punt::{Capacity, Limits, Request, TRIP};
use longwire_units::{Nanos, Probability};

/// Capacities of a router's slow path and its control level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterLevels {
    /// The slow path: packets and cycles per second.
    pub slow: Capacity,
    /// The control level: packets and cycles per second of all processes together.
    pub control: Capacity,
    /// The scheduler of services on their thread, one of `longwire_sched::SPECS`.
    pub scheduler: &'static str,
    /// How their thread waits.
    pub wait: LevelWait,
    /// Worker time reserved for moving packets to services and to processes and back, in ns per second; none
    /// for no bound.
    pub worker: [Option<u64>; 2],
}

impl Default for RouterLevels {
    /// The default settings: assumed, not measured.
    fn default() -> Self {
        let (slow, control) = (SlowPathSettings::defaults(), ControlSettings::defaults());
        Self {
            slow: Capacity { packets: slow.packets, cycles: slow.cycles },
            control: Capacity { packets: control.packets, cycles: control.cycles },
            scheduler: slow.scheduler.0,
            wait: slow.wait,
            worker: [None; 2],
        }
    }
}

impl RouterLevels {
    /// Worker time reserved for both levels, in ns per second.
    pub fn set_aside(&self) -> u64 {
        self.worker.iter().flatten().sum()
    }

    /// The time that a service takes for a packet of `cycles` in virtual time.
    pub fn time(&self, cycles: u64) -> Nanos {
        let time = u128::from(cycles) * 1_000_000_000 / u128::from(self.slow.cycles.max(1));
        Nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

/// A fraction of a second in whole nanoseconds, rounded: percentages have no finite binary form.
pub fn nanoseconds_of(part: Probability) -> u64 {
    ((u128::from(part.bits()) * 1_000_000_000 + (1 << 62)) >> 63) as u64
}

/// The receiver of packets that go up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    /// A service on the slow path.
    Service(&'static Native),
    /// A control process.
    Process,
}

/// A request for a place on a level above the data path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboveRequest {
    /// The receiver.
    pub receiver: Receiver,
    /// Its name, by which a process attaches.
    pub name: Box<str>,
    /// Its guarantee.
    pub request: Request,
    /// Its share of the capacity that is not guaranteed, relative to others.
    pub share: u32,
    /// Time limit for answers.
    pub within: Nanos,
    /// Whether packets without an answer are dropped; otherwise the default forwarder takes them.
    pub drops: bool,
}

impl AboveRequest {
    /// Limits of its attachment.
    pub fn limits(&self) -> Limits {
        let usual = Limits::default();
        let patience = usual.patience.max(self.within + self.within);
        let reserved = self.request.packets.saturating_mul(TRIP);
        Limits { answer_within: self.within, patience, drops: self.drops, reserved, ..usual }
    }
}
