//! Nodes: bridges and routers.
#![forbid(unsafe_code)]

mod above;
mod adjacency;
mod before;
mod bridge;
mod cache;
mod classify;
mod control;
mod extension;
mod fib;
mod forwarder;
mod fragment;
mod full;
mod group;
mod hops;
mod icmp;
mod martian;
mod meter;
mod minimal;
mod neighbour;
mod next_hop;
mod options;
mod own;
mod police;
mod ports;
pub mod prefix;
mod resolve;
mod router;
mod sharing;
mod state;
#[cfg(test)]
mod support;

pub use bridge::{Bridge, DEFAULT_AGEING, DEFAULT_STATIONS};
pub use classify::{Class, Classify, FullIpReason, IpClassifier};
pub use control::{Confirmation, ControlPort};
pub use fib::{FibLimits, RouteError};
pub use forwarder::{
    Admission, Fid, FlowKey, Forwarder, ForwarderStats, Forwarders, InstallError, Installation, Key,
    KeyAddress, KeyError, LinkChoice, MOST_FORWARDERS, MeasuredCost, PrepareError, REASONS, RouterPrices,
};
pub use group::{Group, MOST_MEMBERS, MOST_WEIGHT, Member, RouteHops, WayError};
pub use longwire_program::Budget;
pub use meter::Meter;
pub use neighbour::NeighbourLimits;
pub use next_hop::{GroupId, NextHop, neighbour_key};
pub use police::{FREQUENCY, Frequency, Limit, Limits, PolicedWork};
pub use ports::{InterfaceAddress, LEAST_MTU, PortAddresses, PortsError, RouterPort};
pub use router::{Router, RouterConfig, RouterError};
pub use sharing::{FlowFields, NamedFlow, ReweighError, Rings, SharingConfig, SharingError};
