//! A running instance: a plan in real time, with its test hosts and control planes, or in virtual time on
//! captures.
//!
//! [`real_run`] starts and stops a run in real time, [`virtual_run`] executes one in virtual time. The API's
//! server queries the running [`instance`]: its [`objects`] are links, sources, media, ports, routers and
//! flows, its [`programs`] those of routers. [`run_report`] builds the result, and
//! [`report_text`] writes it as text.
#![forbid(unsafe_code)]

pub mod absences;
mod carriers;
mod changed_ports;
pub mod comparison;
pub mod control_planes;
pub mod entrance;
mod event_log;
pub mod far_services;
pub mod fitted;
mod graph;
pub mod instance;
pub mod labs;
mod lease_watch;
mod link_now;
pub mod link_pattern;
pub mod live_lines;
mod metrics;
pub mod named_files;
pub mod nesp_client;
mod nesp_counts;
pub mod nesp_server;
pub mod objects;
pub mod open_ports;
pub mod outlook;
mod overview;
pub mod packet_log;
mod planned_rewiring;
pub mod port_files;
pub mod program_cost;
pub mod programs;
pub mod real_run;
mod recording;
pub mod records;
pub mod replay_port;
pub mod report_text;
mod rewiring;
pub mod rotation;
pub mod router_rows;
pub mod run_report;
pub mod running_state;
pub mod scenario_check;
mod selected_rows;
pub mod series;
mod showing;
pub mod stack;
pub mod test_hosts;
mod threads;
pub mod verdict;
pub mod virtual_run;
mod window_watch;
