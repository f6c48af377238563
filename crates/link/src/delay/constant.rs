//! A constant delay.

use super::{Before, Travel};
use longwire_block::{Block, Dice};
use longwire_settings::Settings;
use longwire_units::Nanos;

/// Delays every packet by the same time after its last bit is sent.
#[derive(Debug)]
pub struct Constant {
    delay: Nanos,
}

impl Constant {
    /// This delay for every packet.
    pub(crate) const fn new(delay: Nanos) -> Self {
        Self { delay }
    }
}

/// Delays every packet by the same time.
#[derive(Debug, Settings)]
#[settings(
    key = "delay",
    kind = "constant",
    source = "High capacity network link emulation using network processors, section 4.2.1",
    live
)]
pub struct ConstantSettings {
    /// one-way delay, 0 to 100 s
    #[setting(default = "0 ms", max = Nanos::from_secs(100))]
    pub delay: Nanos,
    #[setting(like = super::BEFORE)]
    _before: Before,
}

impl Block for Constant {
    type Settings = ConstantSettings;

    fn build(settings: ConstantSettings, _: Dice) -> Self {
        Self::new(settings.delay)
    }

    /// Applies a new delay to packets whose transmission ends from now on.
    fn change(&mut self, settings: ConstantSettings) {
        self.delay = settings.delay;
    }
}

impl Travel for Constant {
    #[inline]
    fn travel(&mut self, _: Nanos) -> Nanos {
        self.delay
    }

    #[inline]
    fn least(&self) -> Nanos {
        self.delay
    }

    #[inline]
    fn whole_trains(&self) -> bool {
        true
    }
}
