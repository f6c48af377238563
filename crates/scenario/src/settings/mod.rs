//! Settings of a scenario's sections, each declared once. Reading, ranges, defaults, help, the schema and the
//! reference page come from here.

mod router;

pub(crate) use longwire_document::row::RepeatSettings;
pub(crate) use router::{
    ControlSettings, CostProfile, FlowSettings, HopSettings, LONGEST, PoliceSettings, RingSettings,
    RouterPortSettings, RouterSettings, SchedulerName, SlowPathSettings,
};

use longwire_drivers::HostDriver;
use longwire_settings::{Choice, Settings};
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

/// Settings of a link besides its blocks.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "link", kind = "link", source = "Longwire's own")]
pub(crate) struct LinkSettings {
    /// Its exclusive senders: with "programs", only packets that programs of the router at its start send
    /// into it take it.
    #[setting(default_is = "all packets take it")]
    pub only: Option<Only>,
    /// Keeps a histogram of lateness.
    #[setting(default = "no")]
    pub histogram: bool,
}

/// Settings of one direction of a duplex link besides its blocks.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "link", kind = "forward and backward", source = "Longwire's own")]
pub(crate) struct DirectionSettings {
    /// Keeps a histogram of lateness.
    #[setting(default_is = "as the link says")]
    pub histogram: Option<bool>,
}

/// Settings of a traffic source besides its model.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "source", kind = "source", source = "Longwire's own")]
pub(crate) struct SourceSettings {
    /// Time of the first frame.
    #[setting(default = "0 ms", max = Nanos::NEVER)]
    pub start: Nanos,
    /// Draws exponential gaps with the mean that rate or interval give: another way to write model =
    /// "poisson".
    #[setting(default_is = "as model says")]
    pub poisson: Option<bool>,
}

/// The time of a change, its duration, and its repetitions.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "at", kind = "at", source = "Longwire's own")]
pub(crate) struct AtSettings {
    /// When, from the start of the run.
    #[setting(max = Nanos::NEVER)]
    pub time: Nanos,
    /// Duration of the change: values move in steps from the current to the given ones.
    #[setting(default_is = "at once", min = Nanos(1), max = Nanos::NEVER)]
    pub ramp: Option<Nanos>,
    /// Time between the steps of a ramp.
    #[setting(
        default_is = "100 ms, or a fiftieth of the ramp if that is less",
        min = Nanos(1),
        max = Nanos::NEVER
    )]
    pub step: Option<Nanos>,
    /// Time between repetitions.
    #[setting(default_is = "none", min = Nanos(1), max = Nanos::NEVER)]
    pub every: Option<Nanos>,
    /// Number of times.
    #[setting(default_is = "with every, until the run ends", min = 1, max = u64::MAX)]
    pub times: Option<u64>,
    /// Lets removed links send what they hold, instead of dropping it.
    #[setting(default = "no")]
    pub drain: bool,
    /// Weight of the flow from then on.
    #[setting(default_is = "as before", min = 1, max = 65_535)]
    pub weight: Option<u16>,
}

/// Access to settings by frames.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "nesp", kind = "nesp", source = "Longwire's own")]
pub(crate) struct NespSettings {
    /// Operations allowed by frames: reading settings ("get"), or changing them as well ("set").
    #[setting(default = "set")]
    pub allow: NespAllow,
}

/// A program on a router's data path.
#[derive(Debug, Clone, Settings)]
#[settings(key = "forwarder", kind = "forwarder", source = "Longwire's own")]
pub(crate) struct ForwarderSettings {
    /// Size of its state.
    #[setting(
        default_is = "as much as the program uses",
        min = Bytes(0),
        max = Bytes(longwire_program::ProgramState::MAX as u64)
    )]
    pub state: Option<Bytes>,
    /// The output queue of its packets: the band or class of the first link.
    #[setting(default_is = "chosen by the link", min = 0, max = 254)]
    pub queue: Option<u8>,
    /// Where its packets go: no further (data-path), to a service (slow-path), or to another process
    /// (control).
    #[setting(name = "where", default = "data-path")]
    pub level: Level,
    /// Packets a second guaranteed to it on the slow path or at the control level, where it is required.
    #[setting(default_is = "none on the data path", min = 1, max = u64::MAX)]
    pub packets: Option<u64>,
    /// Cycles for each of them, required with packets.
    #[setting(default_is = "none on the data path", min = 0, max = u64::MAX)]
    pub cycles: Option<u64>,
    /// Its share of the capacity that is not guaranteed, relative to others.
    #[setting(default = "1", min = 0, max = u32::MAX as u64)]
    pub share: u32,
    /// Only packets that have this mark, which a program has set, go up.
    #[setting(default_is = "all packets", min = 0, max = u32::MAX as u64)]
    pub mark: Option<u32>,
    /// Time limit for the answer to a packet that went up.
    #[setting(default = "20 ms", min = Nanos::from_millis(1), max = Nanos::from_secs(10))]
    pub within: Nanos,
    /// Treatment of packets that are not answered in time, or without a process: the default forwarder takes
    /// them (pass), or they are dropped.
    #[setting(default = "pass")]
    pub otherwise: UnansweredPackets,
}

/// Where a program's packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum Level {
    DataPath,
    SlowPath,
    Control,
}

/// Treatment of packets without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum UnansweredPackets {
    Pass,
    Drop,
}

/// Division of the work among workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub enum Mapping {
    /// One worker does everything.
    Single,
    /// Ports and links are spread over workers, links near the ports from which packets enter them as far
    /// as the load stays even: one worker handles a packet from start to end where possible.
    Parallel,
    /// Some workers have the ports: they receive, classify and transmit. Others have the links and
    /// emulate.
    Pipeline,
}

/// Operations allowed by frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub enum NespAllow {
    /// Read settings.
    Get,
    /// Read and change settings.
    Set,
}

/// Rings between workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub enum BetweenWorkers {
    /// One per pair of workers and direction.
    Private,
    /// One per receiving worker, with a lock.
    Shared,
}

/// The exclusive senders of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum Only {
    /// Programs of the router where it begins.
    Programs,
}

/// How the slow path's thread waits for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub enum LevelWait {
    /// Sleeps after a while, until woken.
    Woken,
    /// Polls: fastest, and takes a core.
    Polling,
}

/// How a worker waits until the next event is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub enum Wait {
    /// Sleeps until shortly before the next deadline, then spins.
    SleepThenSpin,
    /// Never yields the processor: least lateness.
    Spin,
    /// Sleeps until the deadline: least processor time, 40–90 µs late.
    Sleep,
}

impl Wait {
    /// Its word in a scenario.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// How paths across bridges are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub enum Routing {
    /// There is a single path: loops of bridges are refused.
    Tree,
    /// The path with the least delay, then the fewest links, then the first in the file.
    ShortestDelay,
}
