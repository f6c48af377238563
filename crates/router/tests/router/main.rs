//! Routers from outside, as the engine sees them.

#[path = "../../../../fuzz/corpus.rs"]
mod corpus;
mod exercise;
mod floods;
mod forwarding;
mod labels;
mod rig;
mod robust;
