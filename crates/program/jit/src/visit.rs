//! What a program returned, as it went from packet to packet.

/// What a program returned of a packet that is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Visit {
    pub(crate) returned: u64,
    /// 0, or the number of the instruction that ended the program, plus 1; all bits if the packet is none of
    /// the pool's.
    pub(crate) number: u64,
}

impl Visit {
    /// Of nothing yet.
    pub const NONE: Self = Self { returned: 0, number: 0 };

    /// What the program returned, of a packet whose bit is set: none if it was stopped.
    #[inline]
    pub fn returned(&self) -> Option<u64> {
        (self.number == 0).then_some(self.returned)
    }
}

/// How far a program has come among packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Visited {
    /// A bit for each packet that is to be looked at, from the lowest on.
    pub loud: u64,
    /// How many packets it was run on. The next one, if there is one, is a train, or its checksum is to be
    /// finished first.
    pub count: u64,
}

/// How many packets there may be: each has a bit.
pub const MOST: usize = u64::BITS as usize;
