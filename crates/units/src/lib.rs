//! Quantities as exact integers, parsed from and printed as text; counts with their nouns; histograms;
//! disjoint sets.
//!
//! Every quantity is a newtype over `u64`. It is parsed without floating point from text such as `"10
//! Mbit/s"`, `"25 ms"`, `"64 KiB"` or `"1.5 %"`, and printed in the largest unit that keeps it exact.
#![forbid(unsafe_code)]

mod bytes;
mod counted;
mod decimal;
mod disjoint_sets;
mod histogram;
mod nanos;
mod probability;
mod rate;

pub use bytes::Bytes;
pub use counted::{counted, plural};
pub use decimal::UnitError;
pub use disjoint_sets::DisjointSets;
pub use histogram::{Histogram, LogHistogram, buckets};
pub use nanos::Nanos;
pub use probability::Probability;
pub use rate::Rate;
