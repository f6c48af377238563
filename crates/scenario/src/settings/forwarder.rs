//! Settings of programs on routers.

use longwire_settings::{Choice, Settings};
use longwire_units::{Bytes, Nanos};

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
