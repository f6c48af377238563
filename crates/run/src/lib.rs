//! A running instance: a plan in real time, with its test hosts and control planes, or in virtual time on captures.
//!
//! [`real_run`] starts and stops a run in real time, [`virtual_run`] plays one through. While a run goes on, [`instance`] is what
//! the API's server asks: its links, sources, media and routers are each a `live_*` module. [`run_report`] makes the result.
#![forbid(unsafe_code)]

mod carriers;
pub mod control_planes;
mod fields;
pub mod fitted;
pub mod instance;
pub mod leases;
pub mod live;
mod live_events;
pub mod live_forwarders;
mod live_maps;
mod live_media;
mod live_objects;
mod live_replace;
mod live_router_settings;
pub mod live_routers;
pub mod live_sources;
pub mod nesp_server;
pub mod open_ports;
pub mod port_files;
pub mod program_rows;
pub mod real_run;
pub mod recording;
pub mod replay_port;
pub mod router_rows;
pub mod run_report;
pub mod test_hosts;
pub mod virtual_run;
