//! Packet memory: a bounded pool, handles into it, batches of handles, and the metadata of each packet.
//!
//! A packet is one cache line of [`Meta`] followed by its bytes in whole lines, so a waiting 64-byte packet
//! costs 128 bytes. All memory is mapped when the pool is made. All of it is touched then, except the part
//! that a growing pool keeps for later.

mod allocations;
mod arena;
mod batch;
mod class;
mod handle;
mod hints;
mod meta;
mod pool;
mod shelf;

pub use allocations::{CountingAllocator, allocations};
pub use arena::PoolError;
pub use batch::{BATCH, BATCH_BYTES, Batch};
pub use handle::Handle;
pub use hints::{huge_vec, prefetch, prefetch_whole};
pub use meta::{Checksum, Gso, Meta, Train};
pub use pool::{FirstLine, MAX_FRAME, PacketEvent, Place, Pool, Probe, Run};
