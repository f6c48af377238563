//! Time series read from files: rates, delays, losses, states of links, delivery opportunities.
//!
//! A trace has one of three formats, distinguished by their contents:
//! - a **mahimahi** trace: a whole number of milliseconds per line, each an opportunity to deliver 1504 bytes
//!   ([`mahimahi`]);
//! - a **TheaterQ** trace: lines of `KEEP,LATENCY,RATE,LOSS,LIMIT`, or the extended eight to ten columns
//!   ([`theaterq`]);
//! - a **list** of times and values: `0 s 10 Mbit/s`, `1.5 s, 2 Mbit/s`, or in seconds and base units
//!   `1.5,2000000` ([`list`]). It can also be written in place of the file's name: `0 s 10 Mbit/s; 5 s 1
//!   Mbit/s`.
//!
//! A rate trace can also be one shipped with the program, by name: `profile:lte-down` ([`shipped`]).
//!
//! Time counts from the start of the run, so that links with the same trace are in step. A file that several
//! links name is read once and shared.
#![forbid(unsafe_code)]

mod error;
pub mod list;
mod load;
pub mod mahimahi;
mod rates;
mod series;
pub mod shipped;
pub mod synthetic;
pub mod theaterq;

pub use error::TraceError;
pub use list::LinkState;
pub use load::{delays, losses, rates, states};
pub use mahimahi::{Deliveries, Opportunities};
pub use rates::{Rates, Steps};
pub use series::{Cursor, End, Series};

/// Most steps or opportunities of one trace: at one every 10 µs, almost three minutes of them.
pub const MAX_STEPS: usize = 1 << 24;

/// Longest trace file in bytes.
pub const MAX_FILE: u64 = 1 << 29;
