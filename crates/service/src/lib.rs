//! Scenarios as a service: one process runs them all, reads their files again, keeps what runs over restarts,
//! logs events, and reports to a service manager.
#![forbid(unsafe_code)]

mod event_log;
mod group;
mod notify;
mod scenarios;
mod served;
mod service;
mod state;

pub use event_log::Format;
pub use group::group_id;
pub use scenarios::ScenarioArg;
pub use service::{ServiceOptions, serve};
