//! Schedulers inside a link against what their papers prove, in virtual time and whole numbers.
#![forbid(unsafe_code)]

mod bench;
mod drr;
mod hfsc;
mod leaf;
mod priority;
mod wf2q;
