//! The section `[[forwarder]]` as written.

use crate::address::Network;
use crate::row::WithSettings;
use crate::settings::ForwarderSettings;
use crate::written::{Constant, Name, Text, Whole, Written};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

pub(crate) type Forwarder = WithSettings<ForwarderKeys, ForwarderSettings>;

/// A program on a router's data path.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ForwarderKeys {
    /// The router.
    pub(crate) router: Written<Name>,
    /// The name of one shipped with Longwire, such as "syn-monitor", or an object file made by clang -target
    /// bpf. Packets that it passes go up if where says so; without a program, all packets of the key do.
    pub(crate) program: Option<Written<Text>>,
    /// The function in the object. Default: the only program.
    pub(crate) function: Option<Written<Text>>,
    /// Values for constants (const volatile) of its object, by name; for an array, a text with commas.
    /// Default: those of the source.
    #[serde(default)]
    pub(crate) constants: BTreeMap<String, Written<Constant>>,
    /// Sizes of its object's maps, by name; for a program array, the names of its programs in order, as a
    /// text with commas; for a devmap or cpumap, the targets of its entries in order, as PORT:PROGRAM or
    /// PORT:. Default: as in the source.
    #[serde(default)]
    pub(crate) maps: BTreeMap<String, Written<Constant>>,
    /// The programs of its object, of SEC("xdp/devmap") and SEC("xdp/cpumap"), that entries of its devmaps
    /// and cpumaps may name by number, from 1 in this order. Default: none.
    #[serde(default)]
    pub(crate) exits: Vec<Written<Text>>,
    /// Its name. Default: the program's name.
    pub(crate) name: Option<Written<Text>>,
    /// The packets it receives. Default: all.
    pub(crate) key: Option<ForwarderKey>,
    /// Initial state, in hexadecimal digits. Default: zeros.
    pub(crate) data: Option<Written<Text>>,
    /// The router's output port for its packets. Default: by the routes.
    pub(crate) port: Option<Written<Name>>,
    /// The gateway for its packets. Default: by the routes, or the destination itself if a port is named.
    pub(crate) via: Option<Written<IpAddr>>,
    /// The links that the program may choose, by number from 0; they begin at the router's ports. Default:
    /// none.
    #[serde(default)]
    pub(crate) links: Vec<Written<Name>>,
    /// The service on the slow path: "echo", "witness".
    pub(crate) service: Option<Written<Text>>,
}

/// The packets of a flow; an omitted field matches all.
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
