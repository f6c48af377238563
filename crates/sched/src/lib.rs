//! Sharing processors and ports between flows.
//!
//! A router's programs cost flows unequal processor time, and packets of unequal length cost them unequal time on the port. A [`Scheduler`] stands before the processors and
//! decides whose packet is next; which way it decides is a file under `discipline/`, from first come, first served to the CBCS paper's composite scheduler, its opponent
//! (two separate deficit round robins), and those that keep the guarantee it wanted: DRFQ, MR³ and GMR³. Time is told, costs are integers, and nothing is allocated after
//! the start. [`model`] has processors, rings and ports in virtual time, to try them on.
#![forbid(unsafe_code)]

mod ahead;
mod backlog;
mod cost;
mod counters;
mod discipline;
mod estimate;
pub mod fairness;
mod idle;
mod lines;
pub mod model;
mod per_byte;
mod ports;
mod record;
mod refusal;
mod room;
mod scheduler;
mod settings;
mod table;
mod weight;

pub use counters::{Counters, Happened};
pub use discipline::{SPECS, Spec};
pub use estimate::Estimator;
pub use per_byte::PerByte;
pub use refusal::Refusal;
pub use scheduler::{FlowError, FlowView, Granted, INVALID_HANDLE, Resource, Scheduler, Ticket};
pub use settings::{Settings, SettingsError, Warning};
pub use weight::{Weight, WeightError};
