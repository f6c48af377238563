//! Output of a node besides its decisions about incoming packets.

use crate::DropReason;
use crate::decision::{FLOOD, REFUSED};
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::Nanos;

/// Capacity of an outbox. A node must leave room for packets that it has kept, and may not exceed it.
pub const OUTBOX: usize = 2048;

/// Packets that a node has made or released, in order, each with its destination. The engine empties the
/// outbox after every call of the node.
#[derive(Debug)]
pub struct Outbox {
    packets: Vec<(Handle, u16)>,
    made: u64,
    time: u64,
    place: u32,
    seq: u64,
}

impl Default for Outbox {
    fn default() -> Self {
        Self { packets: Vec::with_capacity(OUTBOX), made: 0, time: 0, place: 0, seq: 0 }
    }
}

impl Outbox {
    /// Makes `cause` the cause of the packets put from here on: they have its time and its place in the order
    /// of events.
    pub fn because_of(&mut self, cause: &Meta) {
        (self.time, self.place, self.seq) = (cause.arrival, cause.place, cause.seq);
    }

    /// Makes a timer at `time` the cause of the packets put from here on.
    pub fn at(&mut self, time: Nanos) {
        (self.time, self.place, self.seq) = (time.0, 0, 0);
    }

    /// The time of packets put now.
    pub fn time(&self) -> Nanos {
        Nanos(self.time)
    }

    /// Packets that still fit.
    pub fn room(&self) -> usize {
        OUTBOX - self.packets.len()
    }

    /// Counts packets (each segment of a train) that the node has made, wherever they go. [`Outbox::put`]
    /// does not count.
    pub fn count_made(&mut self, segments: u64) {
        self.made += segments;
    }

    /// Puts a packet that goes to `out_port`. The decision is stored in its [`Meta`] only when the engine
    /// takes it, because a packet may be kept and released within one batch.
    pub fn put(&mut self, pool: &mut Pool, handle: Handle, out_port: u16) {
        debug_assert!(self.room() > 0, "a node has put more than there is room for");
        self.seq += 1;
        let meta = pool.meta_mut(handle);
        (meta.arrival, meta.place, meta.seq) = (self.time, self.place, self.seq);
        self.packets.push((handle, out_port));
    }

    /// Puts a packet that the node had kept and now drops.
    pub fn refuse(&mut self, pool: &mut Pool, handle: Handle, reason: DropReason) {
        self.put(pool, handle, REFUSED + reason as u16);
    }

    /// Drops the packets that are bound for ports.
    pub fn refuse_all(&mut self, reason: DropReason) {
        let bound = self.packets.iter_mut().filter(|(_, port)| *port < REFUSED || *port == FLOOD);
        bound.for_each(|(_, port)| *port = REFUSED + reason as u16);
    }

    /// The packets with their destinations.
    pub fn packets(&self) -> &[(Handle, u16)] {
        &self.packets
    }

    /// Removes the packets, which were taken, and returns how many were made since the last call.
    pub fn clear(&mut self) -> u64 {
        self.packets.clear();
        std::mem::take(&mut self.made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_follows_its_cause() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut outbox = Outbox::default();
        let cause = pool.alloc(60).unwrap();
        let meta = pool.meta_mut(cause);
        (meta.arrival, meta.place, meta.seq) = (70, 5, 1 << 16);
        outbox.because_of(pool.meta(cause));
        let (one, two) = (pool.alloc(60).unwrap(), pool.alloc(60).unwrap());
        outbox.put(&mut pool, one, 3);
        outbox.refuse(&mut pool, two, DropReason::NoRoute);
        outbox.count_made(2);
        assert_eq!(outbox.packets(), [(one, 3), (two, REFUSED + DropReason::NoRoute as u16)]);
        let order = |handle| (pool.meta(handle).arrival, pool.meta(handle).place, pool.meta(handle).seq);
        assert_eq!((order(one), order(two)), ((70, 5, (1 << 16) + 1), (70, 5, (1 << 16) + 2)));
        outbox.refuse_all(DropReason::PortDown);
        let refused = [DropReason::PortDown, DropReason::NoRoute].map(|reason| REFUSED + reason as u16);
        assert_eq!(outbox.packets(), [(one, refused[0]), (two, refused[1])]);
        assert_eq!((outbox.clear(), outbox.room(), outbox.clear()), (2, OUTBOX, 0));
    }
}
