//! The tests of `longwire-engine` from outside, as one program.
#![forbid(unsafe_code)]

mod background;
mod between;
mod equal_times;
mod programs;
mod punt;
mod random_frames;
mod router;
mod support;
mod tick;
mod together;
mod verdicts;
