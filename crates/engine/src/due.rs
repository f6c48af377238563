//! Packets that leave a link at the instant at which another packet enters it.
//!
//! Departures come before arrivals, so the link has to release them first. But links earlier in the plan may
//! have departures at the same instant, which come first, so released packets are kept until their link's
//! turn.

use longwire_link::Fifo;

/// Packets released by links whose turn is still to come: few links at a time, usually none. Sorted, with the
/// first in the plan at the end.
#[derive(Debug)]
pub(crate) struct DueReleases(Vec<(u32, Fifo)>);

impl DueReleases {
    /// For a worker with `links` links.
    pub fn new(links: usize) -> Self {
        const USUAL: usize = 256;
        Self(Vec::with_capacity(links.min(USUAL)))
    }

    /// Takes the packets that the link has already released.
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

    /// The index of a link's entry, or where it would be inserted.
    fn place_of(&self, link: u32) -> Result<usize, usize> {
        self.0.binary_search_by(|(kept, _)| link.cmp(kept))
    }
}
