//! The result of cutting a scenario.

use crate::graph::arithmetic;
use crate::machines::Underlay;
use longwire_units::Nanos;
use thiserror::Error;

/// Why a scenario can't have parts at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PartitionError {
    /// It has something that no part can have.
    #[error("{0}")]
    Unsupported(String),
    /// A machine names a node that is not there.
    #[error("machine {machine}: there is no host, port, bridge or router \"{name}\"; correct nodes")]
    UnknownNode {
        /// The machine.
        machine: String,
        /// The name.
        name: String,
    },
    /// There are not enough UDP ports after the first.
    #[error("{cuts} links are cut, and {first} is the first UDP port: lower first-port")]
    Ports {
        /// How many cables are cut.
        cuts: usize,
        /// The first port.
        first: u16,
    },
    /// A part is not a valid scenario.
    #[error("the part for {machine} is not valid: {why}")]
    Part {
        /// The machine.
        machine: String,
        /// What is wrong with it.
        why: String,
    },
    /// The file of a part can't be written.
    #[error("{file} can't be written: {why}")]
    Unwritable {
        /// The file, or its folder.
        file: String,
        /// The system's reason.
        why: String,
    },
}

/// A scenario cut into parts.
#[derive(Debug, Clone)]
pub struct Partition {
    /// The machines, in the file's order.
    pub machines: Vec<Share>,
    /// All hosts, ports, bridges and routers.
    pub nodes: Vec<Node>,
    /// What is cut.
    pub cuts: Vec<Cut>,
    /// What is not cut, and why.
    pub joined: Vec<Joined>,
    /// Why it does not work, and what to do; empty if it does.
    pub problems: Vec<String>,
    /// Whether some paths have no bound, for which a load was assumed.
    pub unbounded: bool,
    /// Traffic sources that send in virtual time only, and are in no part.
    pub left_out: Vec<String>,
    /// The scenarios, if there are no problems: one for each machine that has a node.
    pub parts: Vec<Part>,
}

/// What a machine gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// The cores that its part may use.
    pub cores: u32,
    /// Its load, in millionths of a core.
    pub load_ppm: u64,
    /// The tunnels' part of it.
    pub tunnels_ppm: u64,
    /// What its workers take of the processors, in millionths of one: no more than their cores, and all of
    /// them if they spin.
    pub taken_ppm: u64,
    /// How many nodes it has.
    pub nodes: usize,
}

/// A node and its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// `host`, `port`, `bridge` or `router`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Index of its machine.
    pub machine: usize,
    /// Why it is there.
    pub why: String,
}

/// Two links that are cut, one in each direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The links' names.
    pub links: [String; 2],
    /// Indices of the machines: where the first link starts, and where it ends.
    pub machines: [usize; 2],
    /// The lesser of their least delays.
    pub delay: Nanos,
    /// The network between the machines.
    pub underlay: Underlay,
    /// Packets a second on each.
    pub packets_per_second: [u64; 2],
    /// Bits a second of the tunnel in each direction.
    pub tunnel_bit_per_second: [u64; 2],
    /// The UDP port of the tunnel at both ends.
    pub udp_port: u16,
}

impl Cut {
    /// The comparison that allows the cut: `delay 20 ms ≥ latency 150 us + clock error 30 us`.
    pub fn arithmetic(&self) -> String {
        arithmetic(self.delay, self.underlay)
    }
}

/// Two nodes that must be on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Their names.
    pub nodes: [String; 2],
    /// Why.
    pub why: String,
    /// The link whose delay is too short, if that is why.
    pub short_link: Option<String>,
}

/// The scenario of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Index of the machine.
    pub machine: usize,
    /// Its text.
    pub text: String,
}
