//! The forwarders of `forwarders/` as prebuilt objects: effects on packets, and costs.

mod bench;
mod frames;

mod ack_monitor;
mod balancer;
mod cost;
mod detector;
mod dscp_marker;
mod heavy_hitters;
mod hostile;
mod minimal_ip;
mod nat44;
mod performance_monitor;
mod policer;
mod port_filter;
mod rebind;
mod source;
mod syn_filter;
mod syn_monitor;
mod syn_targets;
mod tcp_splicer;
mod tcp_splicer6;
mod wavelet;
