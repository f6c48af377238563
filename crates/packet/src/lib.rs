//! Packet memory: a bounded pool, handles into it, batches of handles, and the metadata of each packet.
//!
//! A packet is one cache line of [`Meta`] followed by its bytes in whole lines, so a waiting 64-byte packet
//! costs 128 bytes. All memory is mapped when the pool is made. A growing pool takes it from the system as it
//! is used, on a thread that stays ahead of the packets; others take all of it at the start.

mod allocations;
mod arena;
mod batch;
mod class;
mod growth;
mod handle;
mod hints;
mod meta;
mod pool;
mod shelf;

pub use allocations::{CountingAllocator, allocations};
pub use arena::PoolError;
pub use batch::{BATCH, BATCH_BYTES, Batch};
pub use handle::Handle;
pub use hints::{AHEAD, huge_vec, prefetch, prefetch_element};
pub use meta::{Checksum, Gso, Meta, Train};
pub use pool::{FirstLine, MAX_FRAME, PacketEvent, Packets, Place, Pool, Probe, Run};
