//! First-in-first-out queues side by side in one discipline: bands and classes.

use super::Hall;
use super::settings::Limit;
use crate::fifo::Fifo;
use longwire_block::DropReason;
use longwire_packet::{Handle, Pool};

/// One of the queues.
#[derive(Debug)]
struct Lane {
    fifo: Fifo,
    /// What waits, the packet being sent included.
    packets: u64,
    bytes: u64,
    limit: Limit,
}

/// Queues, each with a limit of its own.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Box<[Lane]>,
    /// The packet being sent: its lane, packets and bytes. It counts until the next one is asked for.
    sending: Option<(usize, u64, u64)>,
}

/// What became of a packet that came to a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// It found no room.
    Dropped,
    /// No other waits there.
    First,
    /// Others wait before it.
    Behind,
}

impl Lanes {
    pub(super) fn new(limits: impl Iterator<Item = Limit>) -> Self {
        let lane = |limit| Lane { fifo: Fifo::EMPTY, packets: 0, bytes: 0, limit };
        Self { lanes: limits.map(lane).collect(), sending: None }
    }

    pub(super) fn limit(&mut self, limit: Limit) {
        self.lanes.iter_mut().for_each(|lane| lane.limit = limit);
    }

    /// Adds a packet at the end of a lane, or drops it there.
    #[inline]
    pub(super) fn join(&mut self, hall: &mut Hall<'_>, lane: usize, handle: Handle) -> Joined {
        let meta = hall.pool.meta(handle);
        let lane = &mut self.lanes[lane];
        let (packets, bytes) = (lane.packets + u64::from(meta.segments), lane.bytes + meta.leave);
        if lane.limit.is_exceeded(packets, bytes, hall.rate) {
            hall.drop(handle, DropReason::QueueFull);
            return Joined::Dropped;
        }
        lane.add(hall.pool, handle)
    }

    /// The packet that was taken last has been sent.
    #[inline]
    pub(super) fn settle(&mut self) {
        if let Some((lane, packets, bytes)) = self.sending.take() {
            let lane = &mut self.lanes[lane];
            lane.packets -= packets;
            lane.bytes -= bytes;
        }
    }

    /// Takes the first packet of a lane to be sent.
    #[inline]
    pub(super) fn take(&mut self, pool: &Pool, lane: usize) -> Option<Handle> {
        let handle = self.lanes[lane].fifo.pop(pool)?;
        let meta = pool.meta(handle);
        self.sending = Some((lane, meta.segments.into(), meta.leave));
        Some(handle)
    }

    /// Bytes of the packet that a lane would send next, if it has one.
    #[inline]
    pub(super) fn head(&self, pool: &Pool, lane: usize) -> Option<u64> {
        self.lanes[lane].fifo.first().map(|handle| pool.meta(handle).leave)
    }

    /// Takes over the packets of other lanes, even beyond limits: those of lane n go to lane `to(n)`.
    pub(super) fn adopt(&mut self, pool: &mut Pool, old: &mut Self, to: impl Fn(usize) -> usize) {
        for (number, lane) in old.lanes.iter_mut().enumerate() {
            while let Some(handle) = lane.fifo.pop(pool) {
                self.lanes[to(number)].add(pool, handle);
            }
        }
    }

    /// All packets, lane after lane.
    pub(super) fn drain(&mut self, pool: &mut Pool) -> Fifo {
        let mut all = Fifo::EMPTY;
        self.sending = None;
        for lane in &mut self.lanes {
            (lane.packets, lane.bytes) = (0, 0);
            while let Some(handle) = lane.fifo.pop(pool) {
                all.push(pool, handle);
            }
        }
        all
    }
}

impl Lane {
    #[inline]
    fn add(&mut self, pool: &mut Pool, handle: Handle) -> Joined {
        let joined = if self.fifo.is_empty() { Joined::First } else { Joined::Behind };
        let meta = pool.meta(handle);
        self.packets += u64::from(meta.segments);
        self.bytes += meta.leave;
        self.fifo.push(pool, handle);
        joined
    }
}
