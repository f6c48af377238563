//! Strict priority: while a band has packets, those behind it wait.

use super::classes::{ClassSet, Classed, Scheduler, read_lines};
use super::settings::{LIMIT, Limit};
use crate::piece::LineError;
use longwire_block::{Block, Dice, Grammar};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};
use std::sync::Arc;

/// Most bands.
const MOST: u64 = 16;

const CLASSES: Grammar = Grammar {
    wanted: "bands, one a line, such as \"voice limit 20 ms if dscp ef\"",
    form: None,
    read: |text, _| {
        if text.trim().is_empty() {
            return Ok(Arc::new(None::<Arc<ClassSet<Bands>>>));
        }
        match read(text) {
            Ok(set) => Ok(Arc::new(Some(Arc::new(set)))),
            Err(error) => Err(error.to_string()),
        }
    },
    examples: &[
        "",
        "a if tcp and less 500\nb",
        "a limit 3 packets if tcp and greater 900\nb queue codel target 1 ms interval 5 ms if less 600\n\
         c limit 9 kB",
    ],
};

/// Bands, of which the first with packets sends.
///
/// A packet's band is set by a filter of the link (`band N`), else `default`; a band beyond the last means
/// the last. Each band is first in, first out, with tail drop and the whole `limit`; the packet being sent
/// counts in its band. A packet being sent is not interrupted. With `classes`, bands have their own limits,
/// conditions and disciplines, like the classes of WF²Q+; an unknown band is treated as none.
pub type Priority = Classed<Strict>;

/// Bands in strict order: a band sends only while all before it are empty.
#[derive(Debug, Settings)]
#[settings(
    key = "queue",
    kind = "priority",
    source = "Kleinrock, Queueing Systems II (1976), chapter 3 (head of the line)",
    live
)]
pub struct PrioritySettings {
    /// number of bands, 1 to 16; a filter's "band N" chooses one, band 0 is sent first
    #[setting(default = "3", min = 1, max = MOST)]
    bands: usize,
    #[setting(like = LIMIT)]
    limit: Limit,
    /// band of packets without one from a filter, 0 to 15; a number beyond the last means the last
    #[setting(default = "1", min = 0, max = MOST - 1)]
    default: usize,
    /// instead of these three: one band a line or a list of them, highest priority first: NAME [limit L]
    /// [queue KIND [PARAMETER VALUE]...] [if EXPRESSION]; L is 1000 packets if not given; the first band
    /// without a condition takes all other packets
    #[setting(default = "", grammar = CLASSES)]
    classes: Arc<Option<Arc<ClassSet<Bands>>>>,
}

impl Block for Priority {
    type Settings = PrioritySettings;

    fn build(settings: PrioritySettings, dice: Dice) -> Self {
        Self::new(settings.set(), dice)
    }

    /// Applies new bands. Waiting packets go to the bands of the new settings, in the order in which they
    /// would have been sent.
    fn change(&mut self, settings: PrioritySettings) {
        self.wanted = settings.set();
    }
}

impl PrioritySettings {
    /// The bands in the settings.
    fn set(&self) -> Arc<ClassSet<Bands>> {
        match &*self.classes {
            Some(set) => Arc::clone(set),
            None => Arc::new(ClassSet::bands(vec![self.limit; self.bands], self.default, Bands(self.bands))),
        }
    }
}

fn read(text: &str) -> Result<ClassSet<Bands>, LineError> {
    let lines = read_lines(text, &[], "\"voice limit 20 ms if dscp ef\"")?;
    let bands = Bands(lines.len());
    ClassSet::new(lines, bands)
}

/// Number of bands.
#[derive(Debug, PartialEq, Eq)]
pub struct Bands(usize);

/// The scheduler: bands with waiting packets, as bits.
#[derive(Debug)]
pub struct Strict(Box<[u64]>);

impl Scheduler for Strict {
    type Plan = Bands;

    const BY_TIME: bool = false;

    fn new(Bands(bands): &Bands) -> Self {
        Self(vec![0; bands.div_ceil(64)].into())
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    #[inline]
    fn wake(&mut self, class: usize, _: u64, _: Nanos, _: Rate) {
        self.0[class / 64] |= 1 << (class % 64);
    }

    #[inline]
    fn rest(&mut self) {}

    #[inline]
    fn select(&mut self, _: Nanos) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some(word * 64 + self.0[word].trailing_zeros() as usize)
    }

    /// Time does not matter: a packet is available whenever some wait.
    fn resume(&self, now: Nanos) -> Nanos {
        now
    }

    #[inline]
    fn serve(&mut self, class: usize, _: u64, next: Option<u64>, _: Nanos) {
        if next.is_none() {
            self.0[class / 64] &= !(1 << (class % 64));
        }
    }
}
