//! A link's own state. A plain link has none until it serves a train or a change, or drops a packet.

use crate::blocks::Blocks;
use crate::line::Line;
use crate::link::Link;
use crate::profile::Profile;
use crate::queue::Waiting;
use crate::rare::Rare;
use longwire_block::DropReason;
use longwire_packet::Meta;
use longwire_units::Nanos;
use std::sync::Arc;

impl Link {
    /// A link of these blocks.
    pub(crate) fn new(blocks: Blocks) -> Self {
        Self::fresh(0, Arc::default(), Some(Box::new(blocks)))
    }

    /// A link like this one, which has its profile only, before anything has happened to it.
    pub(crate) fn alike(&self) -> Self {
        Self::fresh(self.line.features, Arc::clone(&self.profile), None)
    }

    fn fresh(features: u16, profile: Arc<Profile>, own: Option<Box<Blocks>>) -> Self {
        let mut line = Line::default();
        line.features = features;
        Self {
            line,
            armed: Nanos::NEVER,
            out_packets: 0,
            out_bytes: 0,
            notable: 0,
            waiting: Waiting::default(),
            finish: Nanos::ZERO,
            latest: Nanos::ZERO,
            rest: 0,
            in_packets: 0,
            profile,
            in_bytes: 0,
            own,
        }
    }

    /// The link's own blocks. A link without them is plain, with the blocks of its profile.
    #[inline]
    pub(crate) fn blocks(&mut self) -> &mut Blocks {
        self.parts().2
    }

    /// The delay line, waiting packets, and the blocks.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut Line, &mut Waiting, &mut Blocks) {
        /// Kept out of line, for links that have them already.
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

    /// The link's own blocks, if it has any.
    #[inline]
    pub(crate) fn known_blocks(&self) -> Option<&Blocks> {
        self.own.as_deref()
    }

    /// The link's own blocks, if it has any, mutable.
    #[inline]
    pub(crate) fn known_blocks_mut(&mut self) -> Option<&mut Blocks> {
        self.own.as_deref_mut()
    }

    /// Its rare state, created if necessary.
    #[inline]
    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.blocks().books.rare()
    }

    /// Its rare state, if it has any.
    #[inline]
    pub(crate) fn known_rare(&self) -> Option<&Rare> {
        self.own.as_ref()?.books.rare.as_deref()
    }

    /// Its rare state, if it has any, mutable.
    #[inline]
    pub(crate) fn known_rare_mut(&mut self) -> Option<&mut Rare> {
        self.own.as_mut()?.books.rare.as_deref_mut()
    }

    /// Counts packets that are dropped.
    pub(crate) fn count_drop(&mut self, reason: DropReason, packets: u64) {
        self.blocks().books.drop(reason, packets);
    }

    /// Stops counting a packet as waiting.
    #[inline]
    pub(crate) fn unqueue(&mut self, meta: &Meta) {
        self.waiting.unqueue(meta);
        if meta.flags & Meta::PHANTOM != 0 {
            self.blocks().books.unqueue_phantom();
        }
    }
}
