//! The engine: workers that move packets between ports, through nodes and links, on the machine's clock or a
//! simulated one. Blocks can't tell which.
#![deny(unsafe_code)]

mod aside;
mod bell;
pub mod clock;
mod events;
mod fidelity;
mod intake;
mod observer;
mod pause;
mod real;
mod remote;
mod ring;
mod setup;
mod simulated;
mod stats;
mod wheel;
mod windows;
mod worker;

pub use aside::Steered;
pub use events::{Agenda, Blocks, Edit, LinkEvent, Ramp, Repeat, set_block};
pub use fidelity::{Fidelity, LatenessSummary, OwnLosses, Quantiles, Tolerance};
pub use observer::Observer;
pub use remote::{Remote, RemoteError};
pub use setup::{Run, Seat, Setup, Wait, WorkerSetup};
pub use stats::{FlowStats, LinkReport, PortReport, Report, WorkerReport};
pub use worker::{Home, Map};
