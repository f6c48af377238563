//! A list of packets with their bytes.

use crate::fifo::Fifo;
use longwire_packet::{Handle, Pool};

/// Packets in order of arrival, and the bytes that they count.
#[derive(Debug, Clone, Default)]
pub(super) struct CountedFifo {
    pub fifo: Fifo,
    pub bytes: u64,
}

impl CountedFifo {
    /// Adds a packet at the end.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, handle: Handle) {
        self.bytes += pool.meta(handle).counted();
        self.fifo.push(pool, handle);
    }

    /// Takes the first packet.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<Handle> {
        let handle = self.fifo.pop(pool)?;
        self.bytes -= pool.meta(handle).counted();
        Some(handle)
    }
}
