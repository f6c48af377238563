//! Where packets lie while Longwire holds them: a bounded pool, handles into it, batches of handles, and what
//! is known of each packet.
//!
//! A packet is one cache line of [`Meta`] followed by its bytes in whole lines, so that a waiting 64-byte packet
//! costs 128 bytes. All memory is mapped when the pool is made, and touched, but for what a pool that may grow keeps for later.

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
pub use pool::{FirstLine, MAX_FRAME, Place, Pool, Run};
