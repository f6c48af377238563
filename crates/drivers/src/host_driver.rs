//! Drivers for test hosts.

use crate::{DRIVERS, Driver, Wire, af_packet, tap};
use longwire_settings::{Choice, Setting, Value};

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

const ALL: [HostDriver; COUNT] = {
    let mut all = [HostDriver::TAP; COUNT];
    let (mut count, mut at) = (0, 0);
    while at < DRIVERS.len() {
        if let Some(wire) = DRIVERS[at].host {
            all[count] = HostDriver { driver: DRIVERS[at], wire };
            count += 1;
        }
        at += 1;
    }
    all
};

const WORDS: [&str; COUNT] = {
    let mut words = [""; COUNT];
    let mut at = 0;
    while at < COUNT {
        words[at] = ALL[at].driver.word();
        at += 1;
    }
    words
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
    const WORDS: &'static [&'static str] = &WORDS;
    const ALL: &'static [Self] = &ALL;
}

impl Setting for HostDriver {
    fn of(value: &Value) -> Option<Self> {
        match *value {
            Value::Choice(word) => ALL.get(word).copied(),
            _ => None,
        }
    }
}
