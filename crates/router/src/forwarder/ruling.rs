//! The decision of programs on a packet.

use crate::above::Upward;
use crate::next_hop::NextHop;
use crate::state::Fate;
use longwire_block::DropReason;
use longwire_packet::Handle;

/// The decision of programs on a packet.
#[derive(Clone, Copy)]
pub(crate) struct Ruling {
    /// Its fate, if decided.
    pub fate: Option<Fate>,
    /// Its next hop, instead of the route's.
    pub way: Option<NextHop>,
    /// The level above to which it goes.
    pub above: Option<Upward>,
    /// The packet that replaces it, because it had too little room.
    pub instead: Option<Handle>,
}

impl Ruling {
    /// The ruling on a packet that meets no program.
    pub const NONE: Self = Self { fate: None, way: None, above: None, instead: None };

    /// Resets it.
    pub fn clear(&mut self) {
        (self.fate, self.way, self.above, self.instead) = (None, None, None, None);
    }

    /// Whether it has more than a fate.
    pub const fn is_special(&self) -> bool {
        self.way.is_some() || self.above.is_some() || self.instead.is_some()
    }

    /// The ruling on a lost packet.
    pub(super) const fn lost(reason: DropReason) -> Self {
        Self { fate: Some(Fate::Dropped(reason)), ..Self::NONE }
    }
}
