//! Drivers for test hosts.

use crate::{DRIVERS, Driver, Wire, af_packet, tap};
use longwire_settings::Choice;

/// A driver that holds the engine's end of a test host's wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostDriver {
    /// The driver.
    pub driver: &'static Driver,
    /// The wire between hosts and it.
    pub wire: Wire,
}

const COUNT: usize = {
    let (mut count, mut at) = (0, 0);
    while at < DRIVERS.len() {
        count += DRIVERS[at].host.is_some() as usize;
        at += 1;
    }
    count
};

/// Their words, and the drivers.
const HOSTS: ([&str; COUNT], [HostDriver; COUNT]) = {
    let (mut words, mut drivers) = ([""; COUNT], [HostDriver::TAP; COUNT]);
    let (mut count, mut at) = (0, 0);
    while at < DRIVERS.len() {
        if let Some(wire) = DRIVERS[at].host {
            words[count] = DRIVERS[at].word();
            drivers[count] = HostDriver { driver: DRIVERS[at], wire };
            count += 1;
        }
        at += 1;
    }
    (words, drivers)
};

impl HostDriver {
    /// The fastest for TCP: a TAP device.
    pub const TAP: Self = Self::of(&tap::DRIVER);
    /// Without TAP devices: packet sockets on a veth pair.
    pub const VETH: Self = Self::of(&af_packet::DRIVER);

    /// The driver for hosts.
    ///
    /// # Panics
    /// If it serves no host.
    pub const fn of(driver: &'static Driver) -> Self {
        match driver.host {
            Some(wire) => Self { driver, wire },
            None => panic!("the driver serves no host"),
        }
    }
}

impl Choice for HostDriver {
    const WORDS: &'static [&'static str] = &HOSTS.0;
    const ALL: &'static [Self] = &HOSTS.1;
}
