//! Strict priority: as long as a band has packets, those behind it wait.

use super::lane::{Joined, Lanes};
use super::settings::{Limit, limit, number};
use super::{Admission, Discipline, Hall, Next};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, Param, ParamKind, Spec, Values, Verdict};
use longwire_packet::{Handle, Meta, Pool};

/// Most bands.
const MOST: usize = 16;

/// Bands, of which the first that has packets sends.
///
/// A packet's band is what a filter of the link says (`band N`), else `default`; a band beyond the last is the last. Each band
/// is first in, first out, drops what finds it full, and has the whole `limit`; the packet being sent counts in its band.
/// A packet that is being sent is not interrupted.
#[derive(Debug)]
pub struct Priority {
    lanes: Lanes,
    /// Which bands have packets that wait, as bits.
    filled: u32,
    last: usize,
    default: usize,
    /// Whether packets that wait may belong into other bands now.
    stale: bool,
}

impl Block for Priority {
    const SPEC: Spec = Spec {
        key: "queue",
        kind: "priority",
        summary: "Bands in strict order: a band sends only while all before it are empty.",
        source: "Kleinrock, Queueing Systems II (1976), chapter 3 (head of the line)",
        params: &[
            Param {
                name: "bands",
                kind: ParamKind::Integer { min: 1, max: MOST as u64 },
                default: Some("3"),
                help: "how many bands there are, 1 to 16; a filter's \"band N\" chooses one, 0 is sent first",
            },
            limit("1000 packets"),
            Param {
                name: "default",
                kind: ParamKind::Integer { min: 0, max: MOST as u64 - 1 },
                default: Some("1"),
                help: "band of packets to which no filter has given one, 0 to 15; beyond the last, the last",
            },
        ],
    };

    fn build(values: &Values, _: Dice) -> Self {
        let lanes = Lanes::new((0..MOST).map(|_| (Limit::Packets(0), None)));
        let mut block = Self { lanes, filled: 0, last: 0, default: 0, stale: false };
        block.change(values);
        block
    }

    /// Takes new bands. Packets that wait go where they would come to now, in the order in which they would have been sent.
    fn change(&mut self, values: &Values) {
        let before = (self.last, self.default);
        self.last = number(values, 0) as usize - 1;
        self.lanes.limit(Limit::read(values, 1));
        self.default = number(values, 2) as usize;
        self.stale |= before != (self.last, self.default);
    }
}

impl Discipline for Priority {
    #[inline]
    fn admit(&mut self, _: &Admission<'_>) -> Verdict {
        Verdict::Pass
    }

    #[inline]
    fn push(&mut self, hall: &mut Hall<'_>, handle: Handle) {
        let band = self.band_of(hall.pool.meta(handle));
        if self.lanes.join(hall, band, handle) != Joined::Dropped {
            self.filled |= 1 << band;
        }
    }

    fn adopt(&mut self, hall: &mut Hall<'_>, mut waiting: Fifo) {
        let mut bands = [Fifo::EMPTY; MOST];
        while let Some(handle) = waiting.pop(hall.pool) {
            bands[self.band_of(hall.pool.meta(handle))].push(hall.pool, handle);
        }
        for (band, list) in bands.into_iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            self.lanes.adopt(hall, band, list);
            self.filled |= 1 << band;
        }
    }

    fn resettle(&mut self, hall: &mut Hall<'_>) {
        if std::mem::take(&mut self.stale) {
            let waiting = self.drain(hall.pool);
            self.adopt(hall, waiting);
        }
    }

    #[inline]
    fn pop(&mut self, hall: &mut Hall<'_>) -> Next {
        self.lanes.settle(hall.now);
        if self.filled == 0 {
            return Next::Empty;
        }
        let band = self.filled.trailing_zeros() as usize;
        let taken = self.lanes.take(hall, band);
        if self.lanes.head(hall.pool, band).is_none() {
            self.filled &= !(1 << band);
        }
        taken.map_or(Next::Empty, Next::Packet)
    }

    fn drain(&mut self, pool: &mut Pool) -> Fifo {
        self.filled = 0;
        self.lanes.drain(pool)
    }
}

impl Priority {
    #[inline]
    fn band_of(&self, meta: &Meta) -> usize {
        let band = if meta.band == Meta::NO_BAND { self.default } else { meta.band.into() };
        band.min(self.last)
    }
}
