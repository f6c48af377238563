//! Routers from outside, as the engine sees them.

mod above;
mod choices;
mod continued;
mod control;
mod errors;
mod exercise;
mod exits;
mod floods;
mod forwarding;
mod itself;
mod labels;
mod lengths;
mod martians;
mod multipath;
mod programs;
mod replacing;
mod rig;
mod robust;
mod sharing;
mod shipped;
mod threads;
