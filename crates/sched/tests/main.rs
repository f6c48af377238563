//! The tests of `longwire-sched` from outside, as one program.
#![forbid(unsafe_code)]

mod bad_input;
mod bounds;
mod hostile;
mod machine;
mod moves;
mod order;
mod ports;
mod room;
mod router;
