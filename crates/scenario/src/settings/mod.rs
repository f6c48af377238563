//! Settings of a scenario's sections, each declared once. Reading, ranges, defaults, help, the schema and the
//! reference page come from here.

mod forwarder;
mod router;
mod traffic;

pub(crate) use forwarder::{ForwarderSettings, Level, UnansweredPackets};
pub(crate) use longwire_document::row::RepeatSettings;
pub(crate) use router::{
    ControlSettings, CostProfile, FlowSettings, HopSettings, LONGEST, PoliceSettings, RingSettings,
    RouterPortSettings, RouterSettings, SchedulerName, SlowPathSettings,
};
pub(crate) use traffic::{AtSettings, DirectionSettings, LinkSettings, NespSettings, SourceSettings};

use crate::words::{BetweenWorkers, Mapping, Routing, Wait};
use longwire_drivers::HostDriver;
use longwire_settings::Settings;
use longwire_units::{Bytes, Nanos, Probability};

/// Most packet memory of a worker.
pub const LARGEST_POOL: Bytes = Bytes(256 << 30);

/// Settings of the whole scenario: keys before its first section.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "scenario", kind = "scenario", source = "Longwire's own")]
pub(crate) struct ScenarioSettings {
    /// Seed of all random draws.
    #[setting(default = "1", min = 0, max = u64::MAX)]
    pub seed: u64,
    /// How paths across bridges are found. With "tree", bridges that form a loop are an error.
    #[setting(default = "tree")]
    pub routing: Routing,
}

/// How the engine runs.
#[derive(Debug, Clone, PartialEq, Eq, Settings)]
#[settings(key = "engine", kind = "engine", source = "Longwire's own")]
pub struct EngineSettings {
    /// Worker threads, 1 to 64.
    #[setting(default = "1", min = 1, max = 64)]
    pub workers: u32,
    /// Division of the work among workers. Default: parallel with several workers.
    #[setting(default = "single")]
    pub mapping: Mapping,
    /// How a worker waits until the next event is due.
    #[setting(default = "sleep-then-spin")]
    pub wait: Wait,
    /// Rings between workers: one for each pair (private), or one for each receiver (shared), with a lock and
    /// less memory.
    #[setting(name = "between-workers", default = "private")]
    pub between: BetweenWorkers,
    /// Packet memory of each worker, 1 MiB to 256 GiB. Default: enough for delays and queues, up to a quarter
    /// of the machine's memory and 4 GiB for all workers.
    #[setting(default = "256 MiB", min = Bytes(1 << 20), max = LARGEST_POOL)]
    pub pool: Bytes,
    /// Whether the scenario sets the packet memory; otherwise the links' needs may raise it
    /// (`fit_pool` in `longwire-assemble`).
    #[setting(skip)]
    pub pool_given: bool,
    /// Processors to pin the workers to, one each; empty to leave that to the system.
    #[setting(skip)]
    pub cpus: Vec<u32>,
    /// Longest time between the leaving times of segments that stay together in one large packet, at most 1
    /// s.
    #[setting(default = "10 us", max = Nanos::from_secs(1))]
    pub train_spread: Nanos,
    /// Packets leave at multiples of this from the start of the run, as in emulators driven by a timer; 0 for
    /// any time, at most 1 s.
    #[setting(default = "0 ns", max = Nanos::from_secs(1))]
    pub tick: Nanos,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self::defaults()
    }
}

/// When a run is faithful: `share` of the packets leave no more than `within` late.
#[derive(Debug, Clone, PartialEq, Eq, Settings)]
#[settings(key = "fidelity", kind = "fidelity", source = "Longwire's own")]
pub struct Fidelity {
    /// Lateness that is still in time.
    #[setting(default = "100 us", max = Nanos::NEVER)]
    pub within: Nanos,
    /// Share of the packets that must be in time.
    #[setting(default = "99 %")]
    pub share: Probability,
    /// Length of the last stretch that has a verdict of its own, besides the whole run's, 1 s to 1 h.
    #[setting(default = "10 s", min = Nanos::from_secs(1), max = Nanos::from_secs(3600))]
    pub window: Nanos,
}

/// Settings of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Settings)]
#[settings(key = "bridge", kind = "bridge", source = "IEEE 802.1Q, section 8.8")]
pub struct BridgeSettings {
    /// Lifetime of an address that sends nothing, 1 s to 1000000 s.
    #[setting(default = "300 s", min = Nanos::from_secs(1), max = Nanos::from_secs(1_000_000))]
    pub ageing: Nanos,
    /// Size of the address table, 16 to 16777216.
    #[setting(default = "4096", min = 16, max = 1 << 24)]
    pub table: u32,
    /// Makes it a wire between two ports: it learns nothing and passes every frame, those to
    /// 01-80-C2-00-00-0X too (LLDP, STP, 802.1X, pause).
    #[setting(default = "no")]
    pub wire: bool,
}

/// A test host: a network namespace with one interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Settings)]
#[settings(key = "host", kind = "host", source = "Longwire's own")]
pub struct HostSettings {
    /// How Longwire attaches to its end of the wire.
    #[setting(default = "tap")]
    pub driver: HostDriver,
    /// Longest IP packet that the host sends, in bytes.
    #[setting(default = "1500", min = 68, max = 65_535)]
    pub mtu: u32,
}
