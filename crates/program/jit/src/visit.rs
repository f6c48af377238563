//! Results of a program's loop over packets.

/// Result of a packet that must be inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Visit {
    pub(crate) returned: u64,
    /// 0, or the number of the instruction that ended the program plus 1; all bits set if the handle is not
    /// in the pool.
    pub(crate) number: u64,
}

impl Visit {
    /// Without a result.
    pub const NONE: Self = Self { returned: 0, number: 0 };

    /// The return value for a packet whose bit is set: none if it was stopped.
    #[inline]
    pub fn returned(&self) -> Option<u64> {
        (self.number == 0).then_some(self.returned)
    }
}

/// Progress of a program through packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct VisitProgress {
    /// A bit for each packet to inspect, lowest first.
    pub loud: u64,
    /// Number of packets processed. The next one, if any, is a train, or has an unfinished checksum.
    pub count: u64,
}

/// Most packets: each has a bit.
pub const MOST: usize = u64::BITS as usize;
