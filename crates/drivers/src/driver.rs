//! Declaration of a driver.

use longwire_settings::{Setting, Spec, Values};

/// Declaration of a driver.
#[derive(Debug)]
pub struct Driver {
    /// Its word in a scenario (the kind), summary, and settings.
    pub spec: Spec,
    /// Origin and destination of its frames.
    pub backend: Backend,
    /// The wire between a test host and it; none if it serves no host.
    pub host: Option<Wire>,
    /// Its cost for a worker.
    pub prices: Prices,
    /// The driver that carries the same packets in less processor time, which `longwire check` advises.
    pub lighter: Option<&'static str>,
}

/// The far side of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// An interface of this machine, in real time. In virtual time captures and sources take its place.
    Interface,
    /// Another instance, in real time. In virtual time captures and sources take its place.
    Peer,
    /// Captures, or frames from the process itself, in virtual and in real time.
    Process,
    /// The scenario's traffic sources alone, in virtual and in real time.
    Sources,
}

impl Backend {
    /// Whether a driver opens it, in real time.
    pub const fn is_outside(self) -> bool {
        matches!(self, Self::Interface | Self::Peer)
    }
}

/// The wire between a test host and the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// A TAP device that the driver makes, in the host's namespace.
    Tap,
    /// A veth pair made before the driver is opened.
    Veth {
        /// Whether its offloads are on: the driver takes trains and open checksums.
        offload: bool,
    },
}

/// Cost of a driver for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prices {
    /// Its own prices, with assumed values for the case without a measurement, in picoseconds: a frame
    /// received, each of its bytes, a frame transmitted, each of its bytes.
    Own([(&'static str, u64); 4]),
    /// The prices of the driver with this word.
    Of(&'static str),
    /// No cost.
    Free,
}

impl Driver {
    /// The driver with this word.
    pub fn named(word: &str) -> Option<&'static Self> {
        crate::DRIVERS.iter().copied().find(|driver| driver.word() == word)
    }

    /// Its word in a scenario.
    pub const fn word(&self) -> &'static str {
        self.spec.kind
    }

    /// The prefix of its price names; none if it costs nothing.
    pub const fn price(&self) -> Option<&'static str> {
        match self.prices {
            Prices::Own(_) => Some(self.word()),
            Prices::Of(other) => Some(other),
            Prices::Free => None,
        }
    }

    /// The setting of this name among values read for it; none if it has no such setting.
    pub fn setting<T: Setting>(&self, values: &Values, name: &str) -> Option<T> {
        let place = self.spec.params.iter().position(|param| param.name == name)?;
        T::of(&values.at(place))
    }
}

impl PartialEq for Driver {
    fn eq(&self, other: &Self) -> bool {
        self.word() == other.word()
    }
}

impl Eq for Driver {}

/// The prices of a driver.
macro_rules! prices {
    ($word:literal, receive: $receive:literal + $receive_byte:literal a byte,
        transmit: $transmit:literal + $transmit_byte:literal a byte) => {
        $crate::Prices::Own([
            (concat!($word, "-receive"), $receive),
            (concat!($word, "-receive-byte"), $receive_byte),
            (concat!($word, "-transmit"), $transmit),
            (concat!($word, "-transmit-byte"), $transmit_byte),
        ])
    };
}
pub(crate) use prices;
