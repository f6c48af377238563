//! A station's side of a shared medium: it requests, and the medium reports when a packet was sent.

use super::framing::{BYTE, FRAMING_PARAM, Framing, Layer, OVERHEAD_PARAM};
use super::{Backlog, Sender};
use longwire_block::{Block, Dice};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};

/// Sends nothing by itself: see the link's medium.
#[derive(Debug)]
pub struct Shared {
    /// The medium's.
    pub(crate) rate: Rate,
    pub(crate) framing: Framing,
    /// When the medium has finished the packet being sent; never, while it has not.
    pub(crate) finish: Nanos,
    /// A packet that the medium does not know of yet: the time since which it waits, and its counted bytes.
    pub(crate) request: Option<(Nanos, u64)>,
    /// The station's, from now on.
    pub(crate) share: Share,
}

/// Expected share of the medium's rate for a station.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Share {
    /// Packets are sent in order of arrival: the station's share is its part of the backlog, of which the
    /// others have `others` bytes.
    InOrder { others: u64 },
    /// Stations with packets send equally often: their number, this one included, and recent departures of
    /// all of them with their time.
    Fair { stations: u64, packets: u64, time: Nanos },
}

/// Sends when the medium lets it.
#[derive(Debug, Settings)]
#[settings(
    key = "rate",
    kind = "shared",
    source = "IEEE 802.3, clause 4; IEEE 802.11, distributed coordination function",
    live
)]
pub struct SharedSettings {
    /// the medium's rate
    rate: Rate,
    #[setting(like = FRAMING_PARAM)]
    layer: Layer,
    #[setting(like = OVERHEAD_PARAM)]
    overhead: u64,
}

impl Block for Shared {
    type Settings = SharedSettings;

    fn build(settings: SharedSettings, _: Dice) -> Self {
        Self::new(settings.rate, Framing::of(settings.layer, settings.overhead), Share::InOrder { others: 0 })
    }

    fn change(&mut self, settings: SharedSettings) {
        (self.rate, self.framing) = (settings.rate, Framing::of(settings.layer, settings.overhead));
    }
}

impl Shared {
    /// The station's side of a medium with this rate and framing.
    pub(crate) fn new(rate: Rate, framing: Framing, share: Share) -> Self {
        Self { rate, framing, finish: Nanos::NEVER, request: None, share }
    }
}

impl Sender for Shared {
    fn framing(&self) -> Framing {
        self.framing
    }

    fn begin(&mut self, start: Nanos, bytes: u64) {
        self.request = Some((start, bytes));
        self.finish = Nanos::NEVER;
    }

    fn follow(&mut self, finish: Nanos, bytes: u64) {
        self.begin(finish, bytes);
    }

    fn finish(&self) -> Nanos {
        self.finish
    }

    fn settle(&mut self, _: Nanos) {}

    fn rate(&self) -> Rate {
        self.rate
    }

    fn departure_rate(&self, backlog: Backlog) -> Rate {
        let own = u128::from(backlog.bytes);
        let rate = match self.share {
            Share::InOrder { others: 0 } => return self.rate,
            Share::InOrder { others } => u128::from(self.rate.0) * own / (own + u128::from(others)),
            Share::Fair { stations, packets: 0, .. } => u128::from(self.rate.0 / stations),
            Share::Fair { stations, packets, time } => {
                let times = u128::from(time.0) * u128::from(stations) * u128::from(backlog.packets.max(1));
                (u128::from(packets) * own * u128::from(BYTE)).checked_div(times).unwrap_or(u128::MAX)
            }
        };
        // An empty station must not appear to be stalled.
        Rate(u64::try_from(rate).unwrap_or(u64::MAX).max(1)).min(self.rate)
    }

    fn work_left(&self) -> u64 {
        0
    }

    fn take_over(&mut self, now: Nanos, _: u64) {
        self.finish = now;
    }
}
