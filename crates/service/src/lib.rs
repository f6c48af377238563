//! Scenarios as a service: one process runs them all, reads their files again, keeps what runs over restarts,
//! logs events, and reports to a service manager. Or it runs those that clients send, as an agent.
#![forbid(unsafe_code)]

mod agent;
mod event_log;
mod group;
mod keeper;
mod notify;
mod part_files;
mod parts;
mod scenarios;
mod served;
mod service;
mod state;

pub use agent::{AgentOptions, serve_agent};
pub use event_log::Format;
pub use group::group_id;
pub use scenarios::ScenarioArg;
pub use service::{ServiceOptions, serve};
