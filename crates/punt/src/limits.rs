//! How much a seat holds, and how long it waits.

use longwire_units::Nanos;

/// Bounds of a seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most packets that are up at once, from 16 to 65536; rounded up to a power of two.
    pub packets: u32,
    /// Bytes of the ring that leads to a service; for a process it follows from `packets`.
    pub ring_bytes: u32,
    /// When the default forwarder takes a packet about which nothing was said. In virtual time it does so
    /// when it is clear that nothing will be said by then.
    pub answer_within: Nanos,
    /// How long nothing may be said about any packet before who sits there is cut off.
    pub patience: Nanos,
    /// What becomes of a packet about which nothing was said in time, or about which nobody is there to say
    /// anything: it is dropped, instead of that the default forwarder takes it.
    pub drops: bool,
    /// Faults a second, which are answers that can't be, for which nobody is cut off. Twice that many may
    /// come at once.
    pub faults: u32,
    /// Nanoseconds a second of the worker's time that moving this seat's packets is promised, of what is set
    /// aside for its level.
    pub aside: u64,
}

impl Default for Limits {
    /// 1024 packets, 512 KiB, 20 ms, one second, to the default forwarder, 1000 faults a second, and no time
    /// of its own.
    fn default() -> Self {
        Self {
            packets: 1024,
            ring_bytes: 512 << 10,
            answer_within: Nanos::from_millis(20),
            patience: Nanos::from_secs(1),
            drops: false,
            faults: 1000,
            aside: 0,
        }
    }
}
