//! The engine: workers that move packets between ports, through nodes and links, on the machine's clock or a
//! simulated one. Blocks can't distinguish the two.
#![deny(unsafe_code)]

mod bell;
mod between;
mod by_worker;
mod calendar;
pub mod clock;
mod counters;
mod emulation;
mod events;
mod fidelity;
mod inner_port;
mod intake;
mod map;
mod nodes;
mod observer;
mod order;
mod own_losses;
mod pause;
mod ports;
mod remote;
mod retired;
mod rewiring;
mod rewiring_step;
mod ring;
mod run;
mod schedules;
mod setup;
mod sliding;
mod stats;
mod tick;
mod turns;
mod verdicts;
mod walk;
mod wheel;
mod windows;
mod worker;

pub use between::RingKind;
pub use events::{Agenda, Changes, Event, SourceSetup};
pub use fidelity::{
    Fidelity, JudgedWindow, LatenessSummary, Quantiles, Tolerance, TunnelRecord, WindowVerdicts,
};
pub use inner_port::InnerPort;
pub use map::{Map, PortLocation, SteeredPaths};
pub use nodes::{NodeAction, NodeEvent};
pub use observer::{Observer, PacketView, Sampler};
pub use own_losses::OwnLosses;
pub use ports::GONE_PORT;
pub use remote::{Bases, Changed, MediumRef, NodeRef, Remote, RemoteError, SourceRef, Target};
pub use retired::RetiredNode;
pub use rewiring::{Part, Removed, Rewiring};
pub use rewiring_step::{AtNode, PartSource};
pub use run::Run;
pub use setup::{PortSetup, Setup, TO_THE_END, Wait, WorkerSetup};
pub use sliding::SlidingWindow;
pub use stats::{FlowStats, LinkReport, NodeReport, PortReport, RemovedPorts, Report, WorkerReport};
pub use turns::{InTurn, InnerPorts};
pub use worker::{Change, are_alike};
