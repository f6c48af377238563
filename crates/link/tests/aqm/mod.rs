//! Active queue management compared with published results, in virtual time.

pub mod bench;
mod codel;
mod departures;
mod dualpi2;
mod fair;
mod limits;
mod opportunities;
mod pie;
mod queueing;
mod red_family;
mod sources;
