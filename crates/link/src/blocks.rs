//! What a link has of its own: blocks, and what stands between them. A plain link has none until it serves a train or a change, or drops a packet.

use crate::counters::Rare;
use crate::delay::{Delay, Order};
use crate::judge::Chain;
use crate::line::Line;
use crate::link::Link;
use crate::profile::Profile;
use crate::queue::{Books, Queue, Waiting};
use crate::transmit::Transmit;
use longwire_block::DropReason;
use longwire_packet::{Handle, Meta};
use longwire_units::Nanos;

/// The blocks of a link, and what stands between them.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub transmit: Transmit,
    pub queue: Queue,
    pub delay: Delay,
    /// What judges packets when they arrive, and on the wire.
    pub chain: Chain,
    pub wire: Chain,
    /// What becomes of the order of packets, as the delay says.
    pub order: Order,
    /// The latest time at which a packet leaves the line that keeps its place, or has left; on a decided link, as long as that does not follow from
    /// what is on the line.
    pub last: Nanos,
    /// The packet being sent, or none; none on a decided link.
    pub sending: Handle,
    pub books: Books,
}

impl Blocks {
    pub(crate) fn new(chain: Chain, queue: Queue, transmit: Transmit, delay: Delay) -> Self {
        let (order, last, books) = (Order::InOrder, Nanos::ZERO, Books::default());
        let wire = Chain::None;
        Self { transmit, queue, delay, chain, wire, order, last, sending: Handle::NONE, books }
    }
}

impl Link {
    /// The link's own blocks. One that has none is plain, and its profile says what they are.
    #[inline]
    pub(crate) fn blocks(&mut self) -> &mut Blocks {
        self.parts().2
    }

    /// The delay line, what waits, and the blocks.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut Line, &mut Waiting, &mut Blocks) {
        /// Out of the way of those that have them.
        #[cold]
        #[inline(never)]
        fn make<'a>(own: &'a mut Option<Box<Blocks>>, profile: &Profile) -> &'a mut Blocks {
            own.insert(Box::new(profile.blocks()))
        }
        let Self { line, waiting, own, profile, .. } = self;
        let blocks = match own {
            Some(own) => own,
            none => make(none, profile),
        };
        (line, waiting, blocks)
    }

    /// The same, if it has any.
    #[inline]
    pub(crate) fn known_blocks(&self) -> Option<&Blocks> {
        self.own.as_deref()
    }

    /// The same.
    #[inline]
    pub(crate) fn known_blocks_mut(&mut self) -> Option<&mut Blocks> {
        self.own.as_deref_mut()
    }

    /// Does without blocks of its own, which are as its profile says.
    pub(crate) fn give_up_blocks(&mut self) {
        self.own = None;
    }

    /// What few links have.
    #[inline]
    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.blocks().books.rare()
    }

    /// The same, if it has any of it.
    #[inline]
    pub(crate) fn known_rare(&self) -> Option<&Rare> {
        self.own.as_ref()?.books.rare.as_deref()
    }

    /// The same.
    #[inline]
    pub(crate) fn known_rare_mut(&mut self) -> Option<&mut Rare> {
        self.own.as_mut()?.books.rare.as_deref_mut()
    }

    /// Counts packets that are dropped.
    pub(crate) fn count_drop(&mut self, reason: DropReason, packets: u64) {
        self.blocks().books.drop(reason, packets);
    }

    /// Counts a packet as waiting no longer.
    #[inline]
    pub(crate) fn unqueue(&mut self, meta: &Meta) {
        self.waiting.unqueue(meta);
        if meta.flags & Meta::PHANTOM != 0 {
            self.blocks().books.unqueue_phantom();
        }
    }
}
