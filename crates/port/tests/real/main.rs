//! The drivers for real interfaces, in network namespaces of their own. They need root; without it they say
//! so and pass.

mod af_packet;
mod allocations;
mod flows;
mod net;
mod offloads;
mod tap;
mod tcp;
mod trains;
