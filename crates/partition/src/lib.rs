//! Cuts a scenario into parts, one for each machine, joined by tunnels.
//!
//! [`partition`] contracts what can't be cut (`graph`), spreads the rest over the machines (`balance`), and
//! writes a scenario for each (`parts`). A cut link is whole at the machine that receives: the tunnel hands
//! over each packet with the time at which it reached the link, so that everything behind is decided as on
//! one machine, as long as the packet is there before the link's delay has passed.
#![forbid(unsafe_code)]

mod balance;
mod clusters;
mod cut;
mod graph;
mod machines;
mod parts;
mod report;
mod result;
mod sections;

pub use cut::partition;
pub use machines::{Machine, Machines, MachinesError, Underlay};
pub use report::ReportRows;
pub use result::{Cut, Joined, Node, Part, Partition, PartitionError, Share};
