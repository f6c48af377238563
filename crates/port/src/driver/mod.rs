//! The drivers, a module each.

pub mod af_packet;
pub mod af_xdp;
pub mod memory;
mod open;
pub mod pcap;
pub mod reopening;
pub mod source;
pub mod tap;
pub mod tunnel;
mod wire_frames;

/// The template of `cargo xtask new driver`, compiled so that it stays valid.
#[cfg(test)]
#[path = "../../../../xtask/templates/port.rs"]
mod template;

pub use open::{HostEnd, Open, OpenFault, PortRequest, fault_in};

use longwire_drivers::Driver;

/// State of a port's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum InterfaceState {
    /// It carries frames.
    Up = 0,
    /// The wire is unplugged.
    Down = 1,
    /// The interface is gone.
    Gone = 2,
}

/// Openers of the drivers that lead outside.
const OPENERS: &[(&Driver, &dyn Open)] = &[
    (&longwire_drivers::af_packet::DRIVER, &af_packet::Opener),
    (&longwire_drivers::af_xdp::DRIVER, &af_xdp::Opener),
    (&longwire_drivers::tap::DRIVER, &tap::Opener),
    (&longwire_drivers::tunnel::DRIVER, &tunnel::Opener),
];

/// The opener of a driver; none if its ports stay in the process.
pub fn opener(driver: &Driver) -> Option<&'static dyn Open> {
    OPENERS.iter().find(|(known, _)| *known == driver).map(|(_, open)| *open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_drivers::DRIVERS;

    #[test]
    fn every_driver_that_leads_outside_is_opened_here() {
        for driver in DRIVERS {
            assert_eq!(opener(driver).is_some(), driver.backend.is_outside(), "{}", driver.word());
        }
        assert!(OPENERS.iter().all(|(driver, _)| DRIVERS.contains(driver)));
    }
}
