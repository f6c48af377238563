//! Schedulers inside a link, compared with the theorems of their papers, in virtual time and integers.

mod bench;
mod drr;
mod hfsc;
mod leaf;
mod priority;
mod wf2q;
