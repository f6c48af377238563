//! The tests of `longwire-link` from outside, as one program.
#![forbid(unsafe_code)]

mod ahead;
mod aqm;
mod background;
mod changes;
mod contract;
mod decided;
mod delays;
mod filters_page;
mod front;
mod media;
mod moved_judges;
mod rates;
mod schedulers;
mod semantics;
