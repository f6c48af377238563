//! The tests of `longwire-assemble` from outside, as one program.
#![forbid(unsafe_code)]

mod capacity;
mod chosen_links;
mod events;
mod floods;
mod golden;
mod media;
mod multipath;
mod overload;
mod profiles;
mod replay;
mod rewiring;
mod routers;
mod source_events;
mod steering;
mod support;
mod swarm;
mod tables;
