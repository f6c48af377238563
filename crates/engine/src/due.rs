//! What leaves a link at the very moment at which another packet enters it.
//!
//! The link has to let go of it first, since departures come before arrivals. But other links, earlier in the
//! plan, may have something that leaves at that moment, too, and that goes on before it does: so it is kept
//! until its link has its turn.

use longwire_link::Fifo;

/// Packets that have left links whose turns are yet to come: few links at a time, mostly none. The one that
/// has its turn first, which is the first in the plan, is the last.
#[derive(Debug)]
pub(crate) struct Due(Vec<(u32, Fifo)>);

impl Due {
    /// For a worker with so many links.
    pub fn new(links: usize) -> Self {
        const USUAL: usize = 256;
        Self(Vec::with_capacity(links.min(USUAL)))
    }

    /// What has left the link already.
    #[inline]
    pub fn take(&mut self, link: u32) -> Fifo {
        if self.0.is_empty() {
            return Fifo::EMPTY;
        }
        self.place_of(link).map_or(Fifo::EMPTY, |place| self.0.remove(place).1)
    }

    pub fn keep(&mut self, link: u32, left: Fifo) {
        if left != Fifo::EMPTY {
            let place = self.place_of(link).unwrap_or_else(|place| place);
            self.0.insert(place, (link, left));
        }
    }

    /// Where a link is, or else would be.
    fn place_of(&self, link: u32) -> Result<usize, usize> {
        self.0.binary_search_by(|(kept, _)| link.cmp(kept))
    }
}
