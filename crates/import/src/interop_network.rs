//! The network around the link of QUIC's simulator: two interfaces, with a router at each.

use crate::{InteropLink, LinkText, Rebinding};
use longwire_scenario::{Mac, digits, quoted};
use longwire_units::Nanos;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Where the simulator stands.
#[derive(Debug, Clone, Copy)]
pub struct InteropNetwork<'a> {
    /// The interfaces of the client's and of the server's network.
    pub interfaces: [&'a str; 2],
    /// Their hardware addresses.
    pub macs: [[u8; 6]; 2],
    /// The scenario's seed.
    pub seed: u64,
    /// The time at which it begins, on the monotonic clock.
    pub start: Nanos,
}

/// A side of the simulator: a router with an interface, at the end of the link.
struct Side {
    name: &'static str,
    /// The last octets of its network, after 193.167 and fd00:cafe:cafe.
    third_octet: u8,
    subnet: &'static str,
    /// Its host at the link, in 193.167.50.0/30 and fd00:cafe:cafe:50::/64, and the one opposite.
    hosts: [u8; 2],
    /// Its end of the TCP cross traffic.
    tcp: TcpEnd,
}

/// An end of the TCP cross traffic: a port of the simulator's process, behind a link.
#[derive(Debug)]
pub struct TcpEnd {
    /// The port's name.
    pub name: &'static str,
    /// The network 193.167.N.0/30, in which the router is 1.
    third_octet: u8,
}

const LEFT: Side = Side { name: "left", third_octet: 0, subnet: "0", hosts: [1, 2], tcp: TcpEnd::SINK };
const RIGHT: Side =
    Side { name: "right", third_octet: 100, subnet: "100", hosts: [2, 1], tcp: TcpEnd::SOURCE };
/// The client.
const CLIENT: Ipv4Addr = Ipv4Addr::new(193, 167, 0, 100);
/// Addresses behind the client's that it can get: the router has one further on.
const OTHER_ADDRESSES: u32 = 150;

impl TcpEnd {
    /// The end that receives, at the client's side.
    pub const SINK: Self = Self { name: "tcp-sink", third_octet: 51 };
    /// The end that sends, at the server's side.
    pub const SOURCE: Self = Self { name: "tcp-source", third_octet: 49 };

    /// Its address.
    pub const fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(193, 167, self.third_octet, 2)
    }

    /// Its hardware address, and that of the router's port.
    pub const fn macs(&self) -> [[u8; 6]; 2] {
        [[2, 0, 0, 0, self.third_octet, 2], [2, 0, 0, 0, self.third_octet, 1]]
    }
}

impl InteropLink {
    /// The simulator as a scenario: the interfaces, and what lies between.
    pub fn scenario(&self, network: &InteropNetwork<'_>) -> String {
        let mut text = format!("# {}\nseed = {}\n", self.text, network.seed);
        for (number, side) in [&LEFT, &RIGHT].into_iter().enumerate() {
            side.push_ports(&mut text, network.interfaces[number], network.macs[number], self.has_tcp);
        }
        for (name, from, to, keys) in [
            ("to-server", LEFT.name, RIGHT.name, &self.to_server),
            ("to-client", RIGHT.name, LEFT.name, &self.to_client),
        ] {
            let ends = format!("from = \"{from}-link\"\nto = \"{to}-link\"");
            let _ = write!(text, "\n[[link]]\nname = \"{name}\"\n{ends}\n");
            push_keys(&mut text, keys);
        }
        if let Some((time, keys)) = &self.later {
            let _ = write!(text, "\n[[at]]\ntime = \"{time}\"\nlink = \"to-client\"\n");
            push_keys(&mut text, keys);
        }
        if let Some(rebinding) = &self.rebinding {
            for (side, at_client) in [(&LEFT, 1), (&RIGHT, 0)] {
                let state = state(rebinding, network.start, at_client);
                let name = side.name;
                let _ = write!(
                    text,
                    "\n[[forwarder]]\nrouter = \"{name}-router\"\nprogram = \"rebind\"\ndata = \"{state}\"\n"
                );
            }
        }
        text
    }
}

impl Side {
    /// Its interface, its router, and its end of the TCP cross traffic.
    fn push_ports(&self, text: &mut String, interface: &str, mac: [u8; 6], has_tcp: bool) {
        let Self { name, third_octet, subnet, hosts: [own, other], tcp } = self;
        let interface = quoted(interface);
        let mac = Mac(mac);
        let _ = write!(
            text,
            "
[[port]]
name = \"{name}\"
driver = \"af_packet\"
interface = {interface}

[[router]]
name = \"{name}-router\"
routes = [
    {{ to = \"default\", via = \"193.167.50.{other}\" }},
    {{ to = \"default\", via = \"fd00:cafe:cafe:50::{other}\" }},
    # The kernel has this address, at which clients wait.
    {{ to = \"193.167.{third_octet}.2/32\", discard = true }},
]
ports = [
    {{ port = \"{name}\", mac = \"{mac}\", addresses = [\"193.167.{third_octet}.254/24\", \
             \"fd00:cafe:cafe:{subnet}::2/64\"] }},
    {{ port = \"{name}-link\", addresses = [\"193.167.50.{own}/30\", \"fd00:cafe:cafe:50::{own}/64\"] }},
"
        );
        if !has_tcp {
            text.push_str("]\n");
            return;
        }
        let (end, octet, address, [own, router]) =
            (tcp.name, tcp.third_octet, tcp.address(), tcp.macs().map(Mac));
        let _ = write!(
            text,
            "    {{ port = \"{name}-tcp\", mac = \"{router}\", addresses = \"193.167.{octet}.1/30\" }},
]
neighbours = [{{ address = \"{address}\", mac = \"{own}\" }}]

[[port]]
name = \"{end}\"
driver = \"memory\"

[[link]]
name = \"{end}\"
between = [\"{end}\", \"{name}-tcp\"]
rate = \"100 Mbit/s\"
delay = \"1 ms\"
"
        );
    }
}

/// The state of the program `rebind`, as its source describes it.
fn state(rebinding: &Rebinding, start: Nanos, at_client: u32) -> String {
    let times = [start + rebinding.first, rebinding.again].map(|time| time.0.to_le_bytes());
    let addresses = if rebinding.addresses { OTHER_ADDRESSES } else { 0 };
    let rest = [CLIENT.octets(), addresses.to_le_bytes(), at_client.to_le_bytes(), [0; 4]];
    digits(&[times.as_flattened(), rest.as_flattened()].concat())
}

fn push_keys(text: &mut String, keys: &LinkText) {
    keys.settings.iter().for_each(|(key, value)| {
        let _ = writeln!(text, "{key} = {value}");
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_a_plan() {
        let usual = "--delay=15ms --bandwidth=10Mbps --queue=25";
        for scenario in [
            format!("simple-p2p\n {usual}"),
            format!("blackhole {usual} --on=5s --off=2s"),
            format!("drop-rate {usual} --rate_to_server=30 --rate_to_client=30 --burst_to_server=3"),
            format!("corrupt-rate {usual} --rate_to_server=2 --rate_to_client=2"),
            format!("droplist {usual} --drops_to_server=2,3,4"),
            format!("udp-cross-traffic {usual} --crossdatarate=1Mbps"),
            format!("tcp-cross-traffic {usual}"),
            format!("rebind {usual} --first-rebind=1s --rebind-freq=5s --rebind-addr"),
        ] {
            let link = crate::quic_interop(&scenario).unwrap();
            let (interfaces, macs) = (["veth0", "eth1"], [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]]);
            let text = link.scenario(&InteropNetwork { interfaces, macs, seed: 1, start: Nanos::ZERO });
            let plan = longwire_scenario::plan_of(&text);
            let links = if link.has_tcp { 6 } else { 2 };
            assert_eq!((plan.links.len(), plan.routers.len()), (links, 2), "{text}");
            assert!(text.contains("interface = \"veth0\""), "{text}");
        }
    }
}
