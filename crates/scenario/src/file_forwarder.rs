//! The section `[[forwarder]]` of a scenario file as it is written.

use crate::address::Network;
use crate::row::With;
use crate::settings::ForwarderSettings;
use crate::written::{Constant, Name, Text, Whole, Written};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

pub(crate) type Forwarder = With<ForwarderKeys, ForwarderSettings>;

/// A program on a router's path of packets.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ForwarderKeys {
    /// The router.
    pub(crate) router: Written<Name>,
    /// One that comes with Longwire, such as "syn-monitor", or an object file that clang -target bpf has
    /// made. What it lets pass goes up, if where says so; without a program, all packets of the key do.
    pub(crate) program: Option<Written<Text>>,
    /// The function in the object. Default: the only program.
    pub(crate) function: Option<Written<Text>>,
    /// Whole numbers that take the place of constants (const volatile) of its object, by name; of an array,
    /// with commas between, as a text. Default: what its source says.
    #[serde(default)]
    pub(crate) constants: BTreeMap<String, Written<Constant>>,
    /// How many entries maps of its object have, by name; of a program array, the names of its programs in
    /// order, with commas between, as a text; of a devmap or cpumap, where its entries lead in order, as
    /// PORT:PROGRAM or PORT:. Default: what its source says.
    #[serde(default)]
    pub(crate) maps: BTreeMap<String, Written<Constant>>,
    /// The programs of its object, of SEC("xdp/devmap") and SEC("xdp/cpumap"), that entries of its devmaps
    /// and cpumaps may name: by their numbers from 1, in this order. Default: none.
    #[serde(default)]
    pub(crate) exits: Vec<Written<Text>>,
    /// Its name. Default: the program's name.
    pub(crate) name: Option<Written<Text>>,
    /// The packets that it gets. Default: all.
    pub(crate) key: Option<ForwarderKey>,
    /// Initial state, in hexadecimal digits. Default: zeros.
    pub(crate) data: Option<Written<Text>>,
    /// The router's output port for its packets. Default: by the routes.
    pub(crate) port: Option<Written<Name>>,
    /// The gateway for its packets. Default: by the routes, or the destination itself if a port is named.
    pub(crate) via: Option<Written<IpAddr>>,
    /// The links that the program may choose, which it numbers from 0 on; they begin at the router's ports.
    /// Default: none.
    #[serde(default)]
    pub(crate) links: Vec<Written<Name>>,
    /// The service on the slow path: "echo", "witness".
    pub(crate) service: Option<Written<Text>>,
}

/// The packets of a flow; a field that is left out matches all.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ForwarderKey {
    /// Their source address, or a network: "10.0.0.0/8".
    pub(crate) source: Option<Written<Network>>,
    /// Their source port.
    pub(crate) source_port: Option<Written<Whole>>,
    /// Their destination address, or a network.
    pub(crate) destination: Option<Written<Network>>,
    /// Their destination port.
    pub(crate) destination_port: Option<Written<Whole>>,
    /// "tcp", "udp", "icmp", "icmpv6", or a number.
    pub(crate) protocol: Option<Written<Text>>,
}
