//! The forwarders of `forwarders/`, as prebuilt objects: what each does to packets, and what it costs.

#[path = "../harness/mod.rs"]
mod harness;

mod bench;
mod frames;

mod ack_monitor;
mod cost;
mod minimal_ip;
mod port_filter;
mod source;
mod syn_monitor;
mod tcp_splicer;
mod wavelet;
