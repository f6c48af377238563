//! The levels of a router above the data path, and requests for a place there, in a checked plan and
//! as people write it.

use crate::settings::{ControlSettings, SlowPathSettings};
use crate::words::LevelWait;
use longwire_block::Settings;
use longwire_punt::services::Native;
use longwire_punt::{Admission, Capacity, DoesNotFit, Limits, Request, TRIP};
use longwire_units::{Nanos, Probability};

/// Capacities of a router's slow path and its control level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterLevels {
    /// The slow path: packets and cycles a second.
    pub slow: Capacity,
    /// The control level: packets and cycles a second of all processes together.
    pub control: Capacity,
    /// The scheduler by which services share their thread, one of `longwire_sched::SPECS`.
    pub scheduler: &'static str,
    /// How their thread waits.
    pub wait: LevelWait,
    /// What is set aside of the worker's time for moving packets to services and to processes and back, in
    /// nanoseconds a second; none if it is not bounded.
    pub worker: [Option<u64>; 2],
}

impl Default for RouterLevels {
    /// What the settings are if none is given: assumptions, measured nowhere.
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
    /// What is set aside of the worker's time for both levels, in nanoseconds a second.
    pub fn set_aside(&self) -> u64 {
        self.worker.iter().flatten().sum()
    }

    /// How long a service has the slow path for a packet of so many cycles: what virtual time takes it to
    /// need.
    pub fn time(&self, cycles: u64) -> Nanos {
        let time = u128::from(cycles) * 1_000_000_000 / u128::from(self.slow.cycles.max(1));
        Nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

/// A part of each second, in whole nanoseconds, the nearest: what is written in percent is no sum of powers
/// of two.
pub fn nanoseconds_of(part: Probability) -> u64 {
    ((u128::from(part.bits()) * 1_000_000_000 + (1 << 62)) >> 63) as u64
}

/// The receiver of packets that go up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A service on the slow path.
    Service(&'static Native),
    /// A control process.
    Process,
}

/// A place above a router that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboveRequest {
    /// Who is to be there.
    pub who: Who,
    /// Its name, by which a process attaches.
    pub name: Box<str>,
    /// Its guarantee.
    pub request: Request,
    /// Its share of what is promised to nobody, beside others'.
    pub share: u32,
    /// Within which time it has to answer.
    pub within: Nanos,
    /// Whether packets without an answer are dropped, instead of that the default forwarder takes them.
    pub drops: bool,
}

impl AboveRequest {
    /// The bounds of its attachment.
    pub fn limits(&self) -> Limits {
        let usual = Limits::default();
        let patience = usual.patience.max(self.within + self.within);
        let reserved = self.request.packets.saturating_mul(TRIP);
        Limits { answer_within: self.within, patience, drops: self.drops, reserved, ..usual }
    }
}

/// Guarantees on both levels of a router.
#[derive(Debug, Clone)]
pub struct Promises {
    slow: Admission,
    control: Admission,
}

impl Promises {
    /// None yet.
    pub const fn new(levels: &RouterLevels) -> Self {
        Self { slow: Admission::new(levels.slow), control: Admission::new(levels.control) }
    }

    /// Promises what is asked for.
    ///
    /// # Errors
    /// The arithmetic, if it does not fit; or the name is taken.
    pub fn admit(&mut self, above: &AboveRequest) -> Result<(), DoesNotFit> {
        let admission = match above.who {
            Who::Service(_) => &mut self.slow,
            Who::Process => &mut self.control,
        };
        admission.admit(&above.name, above.request)
    }
}
