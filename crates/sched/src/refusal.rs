//! Why packets are not taken.

use thiserror::Error;

/// Why a packet was not taken. It is counted; the caller keeps it, and drops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Its flow has as many packets waiting as it may.
    #[error("the flow's queue is full")]
    QueueFull,
    /// There are as many flows as there may be, none of them idle.
    #[error("the flow table is full")]
    TableFull,
    /// Its flow has its share of the room for packets, or there is none left.
    #[error("there is no room for more packets of the flow")]
    NoRoom,
    /// The message has no valid handle.
    #[error("the handle is invalid")]
    Invalid,
}
