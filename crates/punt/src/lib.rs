//! Packets between the data path and higher levels.
//!
//! A node has a [`Punt`] and offers packets to *attachments*. Each belongs to a service ([`Service`], on a
//! separate thread: [`ServiceThread`]) or to a control process (accepted by [`Listener`]; [`client`] is its
//! side). Packets stay in the worker's pool: [`Facts`] and a copy of bytes go up, and a [`Verdict`] comes
//! down. [`Admission`] checks guarantees.

mod admission;
mod allowance;
mod attachment;
mod bucket;
pub mod client;
mod cpu;
mod cut;
mod inline;
mod layout;
mod level;
mod limits;
mod listener;
mod punt;
mod return_path;
mod ring;
mod service;
pub mod services;
mod shared;
mod slow;
mod table;
mod turns;
mod wire;

pub use admission::{Admission, Capacity, DoesNotFit, Request};
pub use allowance::{COPIED_LINE, TRIP};
pub use attachment::{Counts, OfferError};
pub use bucket::Bucket;
pub use cut::CutReason;
pub use inline::{Inline, InlineService};
pub use layout::{Class, Facts, HEAD, MAGIC, MAX_FRAME, RingSizes, VERSION, Verdict};
pub use level::{AttachmentId, AttachmentView};
pub use limits::Limits;
pub use listener::{ExpectedProcess, Listener, ListenerError};
pub use punt::{AttachSender, Punt};
pub use ring::CorruptRing;
pub use service::{PuntedPacket, Service, ServiceOutput};
pub use slow::{ServiceThread, WaitMode};
pub use turns::{MOST as MOST_SERVICES, Turns};
