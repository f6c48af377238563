//! Why packets are not taken.

use thiserror::Error;

/// Reason why a packet was not accepted. It is counted; the caller keeps the packet, and drops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Its flow's queue is full.
    #[error("the flow's queue is full")]
    QueueFull,
    /// The flow table is full, and no flow is idle.
    #[error("the flow table is full")]
    TableFull,
    /// Its flow has used its share of the packet memory, or none is left.
    #[error("there is no room for more packets of the flow")]
    NoRoom,
    /// The message has no valid handle.
    #[error("the handle is invalid")]
    Invalid,
}
