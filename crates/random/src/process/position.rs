//! Position of a process in a list of packets.

use super::model::Model;
use longwire_units::Nanos;

/// Position of a replay.
#[derive(Debug, Clone)]
pub(super) struct Position {
    index: usize,
    /// The list's time `from` corresponds to `base`.
    from: Nanos,
    base: Nanos,
}

impl Position {
    /// The position before the first packet, which comes at `now`.
    pub(super) const fn at(now: Nanos) -> Self {
        Self { index: 0, from: Nanos::ZERO, base: now }
    }

    /// Arrival time of the next packet; [`Nanos::NEVER`] if there is none.
    pub(super) fn due(&self, model: &Model) -> Nanos {
        let Model::Replay { packets, speed } = model else { return Nanos::NEVER };
        let time =
            packets.as_slice().get(self.index).map(|&(time, _)| speed.shortened(time.since(self.from)));
        time.map_or(Nanos::NEVER, |time| self.base + time)
    }

    /// Takes the next packet and returns its size.
    pub(super) fn take(&mut self, model: &Model) -> u32 {
        let Model::Replay { packets, .. } = model else { return 0 };
        let size = packets.as_slice().get(self.index).map_or(0, |&(_, size)| size);
        self.index += 1;
        size
    }

    /// Changes the speed from `now` on.
    pub(super) fn adapt(&mut self, old: &Model, now: Nanos) {
        let Model::Replay { packets, speed } = old else { return };
        let passed = speed.lengthened(now.since(self.base)).map(|passed| self.from + passed);
        let next = packets.as_slice().get(self.index).map_or(Nanos::NEVER, |&(time, _)| time);
        self.from = passed.map_or(next, |passed| passed.min(next));
        self.base = now;
    }
}
