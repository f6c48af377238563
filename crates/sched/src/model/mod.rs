//! Processors, rings and ports in virtual time, around a [`Scheduler`](crate::Scheduler): figures 3 and 4 of
//! the CBCS paper.

mod demand;
mod machine;
mod setup;
mod traffic;

pub use demand::{Class, Demand, FlowPlan, Packet, TABLE_7, table_7};
pub use machine::{Machine, MachineStats, Places};
pub use setup::Setup;
pub use traffic::{ClosedArrivals, Departure, DropCause, OpenArrivals, Refill, Traffic};
