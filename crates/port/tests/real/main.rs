//! The drivers for real interfaces, in network namespaces of their own. They need root, and are skipped
//! without it.

mod af_packet;
mod allocations;
mod flows;
mod net;
mod offloads;
mod tap;
mod tcp;
mod trains;
