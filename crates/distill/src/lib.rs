//! A scenario from a measured path: what two captures, one at each end, say about the path between them.
//!
//! 1. [`Capture::read`] reads a capture's packets and gives each a [`Fingerprint`].
//! 2. [`distill`] pairs them, and estimates rate, queue limit, losses, duplicates, overtaking and delay, each
//!    with an interval.
//! 3. [`scenario`] writes a link with these parameters, and [`rows`] a report.
//!
//! The model is Longwire's own link: losses, a first-in-first-out queue with a limit, a transmitter with a
//! constant rate, and a delay behind it. What the data do not determine is left out, and said.
//! `docs/book/distill.md` describes methods and assumptions.
#![forbid(unsafe_code)]

mod capture;
mod clocks;
mod delay;
mod distilled;
mod estimate;
mod fingerprint;
mod loss;
mod pairing;
mod queue;
mod rate;
mod rows;
mod scenario;
mod service;
mod shown;
mod statistics;

pub use capture::{Capture, CaptureError, MOST_PACKETS, Record, Selection};
pub use delay::{DelayFinding, Distribution, Early, Order, POINTS, SHARES};
pub use distilled::{Assumptions, Distilled, distill};
pub use estimate::Estimate;
pub use fingerprint::Fingerprint;
pub use loss::{CopyFinding, LossFinding, Process};
pub use pairing::{Clocks, Counts, PairError};
pub use queue::{QueueFinding, QueueUnit};
pub use rate::RateFinding;
pub use rows::rows;
pub use scenario::scenario;
pub use statistics::Level;
