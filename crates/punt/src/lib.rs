//! How packets go from the data path up to other levels, and come back.
//!
//! A node has a [`Punt`]. It offers packets to *seats*; in a seat sits a service ([`Service`], on a thread of its own: [`Slow`]) or a control
//! process ([`Listener`] lets them in, [`client`] is their side). Packets stay in the worker's pool: what goes up is [`Facts`] and a copy of bytes, what
//! comes down is a [`Verdict`]. [`Admission`] says what fits.

mod admission;
mod allowance;
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
mod ring;
mod seat;
mod service;
pub mod services;
mod shared;
mod slow;
mod table;
mod turns;
mod way;
mod wire;

pub use admission::{Admission, Capacity, DoesNotFit, Request};
pub use allowance::{COPIED_LINE, TRIP};
pub use cut::Cut;
pub use inline::{Inline, InlineService};
pub use layout::{Class, Facts, HEAD, MAGIC, MAX_FRAME, Sizes, VERSION, Verdict};
pub use level::{SeatId, Seated};
pub use limits::Limits;
pub use listener::{Expected, Listener, ListenerError};
pub use punt::{Door, Punt};
pub use ring::Broken;
pub use seat::{Counts, Refused};
pub use service::{Made, Punted, Service};
pub use slow::{Slow, Waiting};
pub use turns::Turns;
