//! Neighbours known to a control plane.

use super::{AnswerFlags, NeighbourState, Neighbours, Slot};
use crate::control::Confirmation;
use longwire_units::Nanos;

impl Neighbours {
    /// Stores a neighbour known to the control plane. Packets that wait for it are due at once. False if
    /// there is no room.
    pub fn note(&mut self, port: u16, address: u128, mac: [u8; 6], known: Confirmation, now: Nanos) -> bool {
        let state = match known {
            Confirmation::Permanent => NeighbourState::Permanent,
            Confirmation::Answered => NeighbourState::Reachable,
            Confirmation::Doubtful => NeighbourState::Stale,
        };
        let Some(at) = self.place(port, address) else {
            if known == Confirmation::Doubtful {
                let flags = AnswerFlags { solicited: false, overrides: true, creates: true };
                self.learn(port, address, mac, flags, now);
                return self.place(port, address).is_some();
            }
            let new = Slot { address, port, mac, state, confirmed: now, ..Slot::default() };
            return self.insert(new, now).is_some();
        };
        let slot = self.slots.change(at);
        let was = slot.state;
        match (known, was) {
            (Confirmation::Permanent, _) => {}
            (_, NeighbourState::Permanent) => return true,
            (Confirmation::Doubtful, NeighbourState::Incomplete) | (Confirmation::Answered, _) => {}
            (Confirmation::Doubtful, _) if slot.mac == mac => return true,
            (Confirmation::Doubtful, _) => {}
        }
        (slot.mac, slot.state, slot.confirmed) = (mac, state, now);
        if known != Confirmation::Doubtful && slot.unasked {
            slot.unasked = false;
            self.unasked -= 1;
        }
        match was {
            NeighbourState::Probe => self.stop_asking(port, address),
            NeighbourState::Incomplete => {
                let asked = self.asked.iter_mut().find(|it| (it.port, it.address) == (port, address));
                asked.into_iter().for_each(|it| it.due = now);
                self.note_due();
            }
            _ => {}
        }
        true
    }

    /// Removes a neighbour, unless packets wait for it. Returns whether it was known.
    pub fn forget(&mut self, port: u16, address: u128) -> bool {
        let Some(at) = self.place(port, address) else { return false };
        match self.slots[at].state {
            NeighbourState::Incomplete => return false,
            _ if self.slots[at].waiting > 0 => return false,
            NeighbourState::Probe => self.stop_asking(port, address),
            _ => {}
        }
        self.remove(at);
        true
    }
}
