//! Parallel queues in one discipline: bands and classes.

use super::QueueContext;
use super::leaf::Leaf;
use super::settings::Limit;
use crate::fifo::Fifo;
use longwire_block::DropReason;
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// One of the queues: first in, first out with a limit, or with a discipline.
#[derive(Debug)]
struct Lane {
    fifo: Fifo,
    /// Backlog, the packet being sent included.
    packets: u64,
    bytes: u64,
    limit: Limit,
    leaf: Option<Box<Leaf>>,
}

/// Queues with individual limits.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Box<[Lane]>,
    /// The packet being sent: its lane, packets and bytes. It counts until the next one is requested.
    sending: Option<(usize, u64, u64)>,
}

impl Lanes {
    pub(super) fn new(lanes: impl Iterator<Item = (Limit, Option<Box<Leaf>>)>) -> Self {
        let lane = |(limit, leaf)| Lane { fifo: Fifo::EMPTY, packets: 0, bytes: 0, limit, leaf };
        Self { lanes: lanes.map(lane).collect(), sending: None }
    }

    /// Bytes of the lanes and their disciplines.
    pub(super) fn memory_bytes(&self) -> usize {
        let of_lane =
            |lane: &Lane| size_of::<Lane>() + lane.leaf.as_ref().map_or(0, |leaf| leaf.memory_bytes());
        self.lanes.iter().map(of_lane).sum()
    }

    /// Adds a packet at the end of a lane, or drops it there. Returns whether the lane was empty before, and
    /// is no longer.
    #[inline(always)]
    pub(super) fn join(&mut self, context: &mut QueueContext<'_>, lane: usize, handle: Handle) -> bool {
        let lane = &mut self.lanes[lane];
        if let Some(leaf) = &mut lane.leaf {
            return leaf.join(context, handle);
        }
        let meta = context.pool.meta(handle);
        let (packets, bytes) = (lane.packets + u64::from(meta.segments), lane.bytes + meta.counted());
        if lane.limit.is_exceeded(packets, bytes, context.rate) {
            context.drop(handle, DropReason::QueueFull);
            return false;
        }
        lane.add(context.pool, handle)
    }

    /// Records that the packet taken last was sent, at `now`.
    #[inline(always)]
    pub(super) fn settle(&mut self, now: Nanos) {
        if let Some((lane, packets, bytes)) = self.sending.take() {
            let lane = &mut self.lanes[lane];
            if let Some(leaf) = &mut lane.leaf {
                return leaf.settle((packets, bytes), now);
            }
            lane.packets -= packets;
            lane.bytes -= bytes;
        }
    }

    /// Takes the first packet of a lane to be sent.
    #[inline(always)]
    pub(super) fn take(&mut self, context: &mut QueueContext<'_>, lane: usize) -> Option<Handle> {
        let from = &mut self.lanes[lane];
        let handle = match &mut from.leaf {
            Some(leaf) => leaf.take(context)?,
            None => from.fifo.pop(context.pool)?,
        };
        let meta = context.pool.meta(handle);
        self.sending = Some((lane, meta.segments.into(), meta.counted()));
        Some(handle)
    }

    /// Bytes of a lane's next packet, if it has one.
    #[inline(always)]
    pub(super) fn head(&self, pool: &Pool, lane: usize) -> Option<u64> {
        let lane = &self.lanes[lane];
        match &lane.leaf {
            Some(leaf) => leaf.head(pool),
            None => lane.fifo.first().map(|handle| pool.meta(handle).counted()),
        }
    }

    /// Takes over packets into an empty lane, even beyond its limit.
    pub(super) fn adopt(&mut self, context: &mut QueueContext<'_>, lane: usize, mut waiting: Fifo) {
        let lane = &mut self.lanes[lane];
        if let Some(leaf) = &mut lane.leaf {
            return leaf.adopt(context, waiting);
        }
        while let Some(handle) = waiting.pop(context.pool) {
            lane.add(context.pool, handle);
        }
    }

    /// Takes over packets of one lane, which is empty: the one being sent, and those behind it.
    pub(super) fn take_back(&mut self, pool: &mut Pool, lane: usize, (sending, mut waiting): (Handle, Fifo)) {
        debug_assert!(self.sending.is_none(), "what was sent before has been settled");
        let meta = pool.meta(sending);
        let (packets, bytes) = (u64::from(meta.segments), meta.counted());
        self.sending = Some((lane, packets, bytes));
        let lane = &mut self.lanes[lane];
        (lane.packets, lane.bytes) = (packets, bytes);
        while let Some(handle) = waiting.pop(pool) {
            lane.add(pool, handle);
        }
    }

    /// Removes all packets, lane by lane. The packet being sent no longer counts in any.
    pub(super) fn drain(&mut self, pool: &mut Pool) -> Fifo {
        let mut all = Fifo::EMPTY;
        self.sending = None;
        for lane in &mut self.lanes {
            let waiting = lane.drain(pool);
            all.append(pool, waiting);
        }
        all
    }
}

impl Lane {
    /// Adds a packet. Returns whether it is the only one.
    #[inline(always)]
    fn add(&mut self, pool: &mut Pool, handle: Handle) -> bool {
        let was_empty = self.fifo.is_empty();
        let meta = pool.meta(handle);
        self.packets += u64::from(meta.segments);
        self.bytes += meta.counted();
        self.fifo.push(pool, handle);
        was_empty
    }

    fn drain(&mut self, pool: &mut Pool) -> Fifo {
        (self.packets, self.bytes) = (0, 0);
        self.leaf.as_mut().map_or_else(|| self.fifo.take(), |leaf| leaf.drain(pool))
    }
}
