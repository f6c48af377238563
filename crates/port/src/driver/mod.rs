//! The drivers, a module each.

pub mod af_packet;
pub mod af_xdp;
pub mod memory;
mod open;
pub mod pcap;
pub mod reopening;
pub mod source;
pub mod tap;
mod wire_frames;

/// The template of `cargo xtask new driver`, compiled so that it stays valid.
#[cfg(test)]
#[path = "../../../../xtask/templates/port.rs"]
mod template;

pub use open::{HostEnd, Open, OpenFault, PortRequest};

use longwire_drivers::Driver;

/// Openers of the drivers that have interfaces.
const OPENERS: &[(&Driver, &dyn Open)] = &[
    (&longwire_drivers::af_packet::DRIVER, &af_packet::Opener),
    (&longwire_drivers::af_xdp::DRIVER, &af_xdp::Opener),
    (&longwire_drivers::tap::DRIVER, &tap::Opener),
];

/// The opener of a driver; none if its ports have no interface.
pub fn opener(driver: &Driver) -> Option<&'static dyn Open> {
    OPENERS.iter().find(|(known, _)| *known == driver).map(|(_, open)| *open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_drivers::{Backend, DRIVERS};

    #[test]
    fn every_driver_with_an_interface_is_opened_here() {
        for driver in DRIVERS {
            assert_eq!(opener(driver).is_some(), driver.backend == Backend::Interface, "{}", driver.word());
        }
        assert!(OPENERS.iter().all(|(driver, _)| DRIVERS.contains(driver)));
    }
}
