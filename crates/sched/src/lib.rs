//! Sharing of processors and ports between flows.
//!
//! A router's programs cost flows unequal processor time, and packets of unequal length cost unequal time on
//! the port. A [`Scheduler`] precedes the processors and selects the next packet; its disciplines are files
//! under `discipline/`, from first come, first served to the CBCS paper's composite scheduler, its competitor
//! (two separate deficit round robins), and later ones with the guarantee that it aimed at: DRFQ, MR³ and
//! GMR³. Time is passed in, costs are integers, and nothing is allocated after the start. [`model`] simulates
//! processors, rings and ports in virtual time.
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
mod ports;
mod record;
mod room;
mod scheduler;
mod settings;
mod table;
pub mod terms;

pub use counters::{Counters, RareCounters, Refusal};
pub use discipline::{SPECS, Spec};
pub use estimate::Estimator;
pub use scheduler::{FlowError, FlowView, GrantedPacket, INVALID_HANDLE, Resource, Scheduler, Ticket};
pub use settings::{PerByte, Settings, SettingsError, Warning, Weight, WeightError};
