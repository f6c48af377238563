//! Limits of an attachment.

use longwire_units::Nanos;

/// Limits of an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most packets that are up at once, from 16 to 65536; rounded up to a power of two.
    pub packets: u32,
    /// Bytes of the ring to a service; for a process it follows from `packets`.
    pub ring_bytes: u32,
    /// Time after which the default forwarder takes a packet without a verdict. In virtual time it does so as
    /// soon as no verdict is possible by then.
    pub answer_within: Nanos,
    /// Longest silence, without a verdict on any packet, before the service or process is cut off.
    pub patience: Nanos,
    /// Whether a packet without a verdict in time, or without an attached process, is dropped instead of
    /// going to the default forwarder.
    pub drops: bool,
    /// Tolerated faults (invalid answers) per second, with a burst of twice as many.
    pub faults: u32,
    /// Guaranteed worker time for moving its packets, in nanoseconds per second, from the level's part.
    pub reserved: u64,
}

impl Default for Limits {
    /// 1024 packets, 512 KiB, 20 ms, one second, to the default forwarder, 1000 faults a second, and no
    /// guaranteed time.
    fn default() -> Self {
        Self {
            packets: 1024,
            ring_bytes: 512 << 10,
            answer_within: Nanos::from_millis(20),
            patience: Nanos::from_secs(1),
            drops: false,
            faults: 1000,
            reserved: 0,
        }
    }
}
