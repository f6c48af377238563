//! The same delay for every packet.

use super::Travel;
use longwire_block::{Block, Dice, Param, ParamKind, Spec, Values};
use longwire_units::Nanos;

/// Delays every packet by the same time after its last bit is sent.
#[derive(Debug)]
pub struct Constant {
    delay: Nanos,
}

impl Constant {
    /// No delay at all.
    pub(crate) const NONE: Self = Self { delay: Nanos::ZERO };

    /// So much for every packet.
    pub(crate) const fn new(delay: Nanos) -> Self {
        Self { delay }
    }
}

impl Block for Constant {
    const SPEC: Spec = Spec {
        key: "delay",
        kind: "constant",
        summary: "Delays every packet by the same time.",
        source: "High capacity network link emulation using network processors, section 4.2.1",
        params: &[
            Param {
                name: "delay",
                kind: ParamKind::Time { max: Nanos::from_secs(100) },
                default: Some("0 ms"),
                help: "one-way delay, 0 to 100 s",
            },
            super::BEFORE,
        ],
    };

    fn build(values: &Values, _: Dice) -> Self {
        let mut block = Self::NONE;
        block.change(values);
        block
    }

    /// Takes a new delay, for packets whose transmission ends from now on.
    fn change(&mut self, values: &Values) {
        self.delay = values.time(0);
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
