//! Where packets wait for the transmitter, and who is let in.

pub mod tail_drop;

use crate::fifo::Fifo;
use longwire_block::Verdict;
use longwire_packet::{Handle, Pool};
use longwire_units::{Nanos, Rate};

/// What a queue is told when a packet or a segment asks to be let in.
#[derive(Debug, Clone, Copy)]
pub struct Admission {
    /// When it arrived.
    pub now: Nanos,
    /// Its bytes, as the link's rate counts them.
    pub bytes: u64,
    /// Packets in the queue, the one being sent included. Segments of a train count one each.
    pub packets_waiting: u64,
    /// Their bytes, as the link's rate counts them.
    pub bytes_waiting: u64,
    /// The current rate.
    pub rate: Rate,
}

crate::registry::stage! {
    /// A queue discipline.
    Queue {
        TailDrop = tail_drop::TailDrop,
    }
    /// Whether a packet may join. Joins itself by `push`, unless the transmitter takes it at once.
    fn admit(&mut self, admission: &Admission) -> Verdict;
    /// Adds an admitted packet.
    fn push(&mut self, pool: &mut Pool, handle: Handle);
    /// Takes the packet to be sent next, at the moment `now` at which the transmitter becomes free.
    fn pop(&mut self, pool: &mut Pool, now: Nanos) -> Option<Handle>;
    /// The packets that wait, to give up at the end of a run.
    fn drain(&mut self, pool: &mut Pool) -> Fifo;
}
