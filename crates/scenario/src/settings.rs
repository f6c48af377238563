//! The sections whose keys are settings alone: each is declared here, once. Reading, ranges, defaults, help and the schema come from it.

use crate::words::{BetweenWorkers, Mapping, Wait};
use longwire_drivers::HostDriver;
use longwire_settings::Settings;
use longwire_units::{Bytes, Nanos, Probability};

/// Most packet memory of a worker.
pub const LARGEST_POOL: Bytes = Bytes(256 << 30);

/// How the engine runs.
#[derive(Debug, Clone, PartialEq, Eq, Settings)]
#[settings(key = "engine", kind = "engine", source = "Longwire's own")]
pub struct EngineSettings {
    /// Worker threads, 1 to 64.
    #[setting(default = "1", min = 1, max = 64)]
    pub workers: u32,
    /// How the work is shared among workers; with several, parallel if it is not given.
    #[setting(default = "single")]
    pub mapping: Mapping,
    /// What a worker does while nothing is due.
    #[setting(default = "sleep-then-spin")]
    pub wait: Wait,
    /// Which rings packets take from worker to worker: one for each pair (private), or one for each that receives (shared), with a lock and
    /// less memory.
    #[setting(name = "between-workers", default = "private")]
    pub between: BetweenWorkers,
    /// Packet memory of each worker, 1 MiB to 256 GiB; if it is not given, what delays and queues need, up to a quarter of the machine's memory
    /// and 4 GiB for all workers.
    #[setting(default = "256 MiB", min = Bytes(1 << 20), max = LARGEST_POOL)]
    pub pool: Bytes,
    /// Whether the scenario says how much packet memory there is; else what the links need may raise it
    /// (`fit_pool` in `longwire-assemble`).
    #[setting(skip)]
    pub pool_given: bool,
    /// How much of it is touched at the start: what the scenario asks for, or the default. The rest is taken as packets need it.
    #[setting(skip)]
    pub resident: Bytes,
    /// Processors to pin the workers to, one each; empty to leave that to the system.
    #[setting(skip)]
    pub cpus: Vec<u32>,
    /// Longest time between the leaving times of segments that stay together in one large packet, at most 1 s.
    #[setting(default = "10 us", max = Nanos::from_secs(1))]
    pub train_spread: Nanos,
    /// Packets leave at multiples of this, counted from the beginning of the run, as in emulators that are driven by a timer; 0 for any time, at
    /// most 1 s.
    #[setting(default = "0 ns", max = Nanos::from_secs(1))]
    pub tick: Nanos,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let settings = Self::defaults();
        Self { resident: settings.pool, ..settings }
    }
}

/// What counts as faithful: a run of which `share` of the packets leave no more than `within` late.
#[derive(Debug, Clone, PartialEq, Eq, Settings)]
#[settings(key = "fidelity", kind = "fidelity", source = "Longwire's own")]
pub struct Fidelity {
    /// Lateness that is still in time.
    #[setting(default = "100 us", max = Nanos::NEVER)]
    pub within: Nanos,
    /// How many of the packets have to be in time.
    #[setting(default = "99 %")]
    pub share: Probability,
}

/// What can be set of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Settings)]
#[settings(key = "bridge", kind = "bridge", source = "IEEE 802.1Q, section 8.8")]
pub struct BridgeSettings {
    /// How long an address is remembered that sends nothing, 1 s to 1000000 s.
    #[setting(default = "300 s", min = Nanos::from_secs(1), max = Nanos::from_secs(1_000_000))]
    pub ageing: Nanos,
    /// How many addresses are remembered, 16 to 16777216.
    #[setting(default = "4096", min = 16, max = 1 << 24)]
    pub table: u32,
}

/// A test host: a network namespace with one interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Settings)]
#[settings(key = "host", kind = "host", source = "Longwire's own")]
pub struct HostSettings {
    /// How Longwire holds its end of the wire.
    #[setting(default = "tap")]
    pub driver: HostDriver,
    /// Longest IP packet that the host sends, in bytes.
    #[setting(default = "1500", min = 68, max = 65_535)]
    pub mtu: u32,
}
