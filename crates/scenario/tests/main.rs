//! The tests of `longwire-scenario` from outside, as one program.
#![forbid(unsafe_code)]

mod book;
mod examples;
mod large;
mod links_page;
mod mistakes;
mod past_events;
mod plans;
