//! The decision of programs on a packet.

use crate::above::Upward;
use crate::next_hop::NextHop;
use crate::state::Fate;
use longwire_block::DropReason;
use longwire_packet::Handle;

/// The decision of programs on a packet.
#[derive(Clone, Copy)]
pub(crate) struct Ruling {
    /// Its fate, if that is decided.
    pub fate: Option<Fate>,
    /// Its next hop instead of the route's.
    pub way: Option<NextHop>,
    /// The level above that it goes up to.
    pub above: Option<Upward>,
    /// The packet that has taken its place, which had too little room.
    pub instead: Option<Handle>,
}

impl Ruling {
    /// Of a packet that meets none.
    pub const NONE: Self = Self { fate: None, way: None, above: None, instead: None };

    /// Makes it none again.
    pub fn clear(&mut self) {
        (self.fate, self.way, self.above, self.instead) = (None, None, None, None);
    }

    /// Whether it says more than a fate.
    pub const fn is_special(&self) -> bool {
        self.way.is_some() || self.above.is_some() || self.instead.is_some()
    }

    /// Of one that is lost.
    pub(super) const fn lost(reason: DropReason) -> Self {
        Self { fate: Some(Fate::Dropped(reason)), ..Self::NONE }
    }
}
