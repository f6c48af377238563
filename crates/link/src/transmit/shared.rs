//! A station's end of a shared medium: it asks, and the medium says when a packet was sent.

use super::Sender;
use super::framing::{FRAMING_PARAM, Framing, OVERHEAD_PARAM};
use longwire_block::{Block, Dice, Param, ParamKind, Spec, Values};
use longwire_units::{Nanos, Rate};

/// Sends nothing by itself: see the link's medium.
#[derive(Debug)]
pub struct Shared {
    rate: Rate,
    framing: Framing,
    finish: Nanos,
    /// Since when a packet wants to be sent that the medium does not know of, and the bytes that it counts.
    wish: Option<(Nanos, u64)>,
}

impl Block for Shared {
    const SPEC: Spec = Spec {
        key: "rate",
        kind: "shared",
        summary: "Sends when the medium lets it.",
        source: "IEEE 802.3, clause 4; IEEE 802.11, distributed coordination function",
        params: &[
            Param { name: "rate", kind: ParamKind::Rate, default: None, help: "the medium's rate" },
            FRAMING_PARAM,
            OVERHEAD_PARAM,
        ],
    };

    fn build(values: &Values, _: Dice) -> Self {
        Self::new(values.rate(0), Framing::read(values, 1, 2))
    }

    fn change(&mut self, values: &Values) {
        (self.rate, self.framing) = (values.rate(0), Framing::read(values, 1, 2));
    }
}

impl Shared {
    /// The end of a medium of that rate, which counts that much of a packet.
    pub(crate) fn new(rate: Rate, framing: Framing) -> Self {
        Self { rate, framing, finish: Nanos::NEVER, wish: None }
    }

    /// What the medium does not know of yet.
    pub(crate) fn take_wish(&mut self) -> Option<(Nanos, u64)> {
        self.wish.take()
    }

    /// The medium has this rate now, and counts that much of a packet.
    pub(crate) fn share(&mut self, rate: Rate, framing: Framing) {
        (self.rate, self.framing) = (rate, framing);
    }

    /// The medium is done at `now` with the packet being sent.
    pub(crate) fn end(&mut self, now: Nanos) {
        self.finish = now;
    }
}

impl Sender for Shared {
    fn framing(&mut self) -> Framing {
        self.framing
    }

    fn begin(&mut self, start: Nanos, bytes: u64) {
        self.wish = Some((start, bytes));
        self.finish = Nanos::NEVER;
    }

    fn follow(&mut self, finish: Nanos, bytes: u64) {
        self.begin(finish, bytes);
    }

    fn finish(&mut self) -> Nanos {
        self.finish
    }

    fn settle(&mut self, _: Nanos) {}

    fn rate(&mut self) -> Rate {
        self.rate
    }

    fn work_left(&mut self) -> u64 {
        0
    }

    fn take_over(&mut self, now: Nanos, _: u64) {
        self.finish = now;
    }
}
