//! Routers from outside, as the engine sees them.

mod floods;
mod forwarding;
mod labels;
mod rig;
mod robust;
