//! Control halves of forwarders beside a router with real traffic: alarms, filters, splices, layers,
//! summaries.

#[path = "../support/mod.rs"]
mod support;

mod ends;
mod splice;
mod watching;
