//! Changes from the control plane, and its state.

use super::Confirmation;
use crate::classify::Classify;
use crate::next_hop::neighbour_key;
use crate::ports::{InterfaceAddress, PortsError};
use crate::router::Router;
use longwire_units::Nanos;
use std::net::IpAddr;

impl<C: Classify> Router<C> {
    /// Replaces a port's addresses; routes to them and their networks are changed separately. Returns the
    /// previous ones, to be freed off the packet path; the link-local address is kept.
    ///
    /// # Errors
    /// If there is no such port, or an address is invalid for a port; nothing has changed then.
    #[expect(clippy::type_complexity, reason = "two lists, of two families")]
    pub fn set_addresses(
        &mut self,
        port: u16,
        v4: Vec<InterfaceAddress<u32>>,
        v6: Vec<InterfaceAddress<u128>>,
    ) -> Result<(Vec<InterfaceAddress<u32>>, Vec<InterfaceAddress<u128>>), PortsError> {
        self.core_mut().ports.set_addresses(port, v4, v6)
    }

    /// Sets a port up or down. Packets from and to a port that is down are dropped. False if there is no such
    /// port.
    pub fn set_up(&mut self, port: u16, up: bool) -> bool {
        if let Some(levels) = self.levels_mut() {
            levels.set_up(port, up);
        }
        self.core_mut().ports.set_up(port, up)
    }

    /// Stores a neighbour's state in the control plane. False if there is no room, or no such port.
    pub fn note_neighbour(
        &mut self,
        port: u16,
        address: IpAddr,
        mac: [u8; 6],
        known: Confirmation,
        now: Nanos,
    ) -> bool {
        let core = self.core_mut();
        core.ports.is_port(port) && core.neighbours.note(port, neighbour_key(address), mac, known, now)
    }

    /// Removes a neighbour, unless packets wait for it. Returns whether it was known.
    pub fn forget_neighbour(&mut self, port: u16, address: IpAddr) -> bool {
        self.core_mut().neighbours.forget(port, neighbour_key(address))
    }
}
