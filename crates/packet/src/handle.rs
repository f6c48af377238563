//! Handles of packets in the pool.

/// A packet in the pool. Copying it does not copy the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Handle(pub u32);

impl Default for Handle {
    /// No packet.
    fn default() -> Self {
        Self::NONE
    }
}

impl Handle {
    /// No packet.
    pub const NONE: Self = Self(u32::MAX);

    /// Whether this is no packet.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == Self::NONE.0
    }
}
