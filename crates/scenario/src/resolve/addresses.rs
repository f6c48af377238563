//! Addresses behind each port.

use super::nodes::Nodes;
use super::{Entry, Resolver};
use crate::address::{Network, number};
use std::net::IpAddr;

/// Address ranges and their ports; ascending, without overlap.
pub(super) struct Owners {
    ranges: Vec<(bool, u128, u128, u16)>,
}

impl Owners {
    /// The port of `address`, if the scenario says.
    pub(super) fn port(&self, address: IpAddr) -> Option<u16> {
        let key = (address.is_ipv6(), number(address));
        let after = self.ranges.partition_point(|(v6, first, ..)| (*v6, *first) <= key);
        let (v6, _, last, port) = self.ranges[after.checked_sub(1)?];
        (v6 == key.0 && key.1 <= last).then_some(port)
    }
}

impl Resolver<'_, '_> {
    /// Collects the addresses of all ports; each address belongs to one port only.
    pub(super) fn owners(&mut self, nodes: &Nodes) -> Owners {
        let mut ranges = Vec::new();
        for (place, port) in nodes.ports.iter().enumerate() {
            for net in &port.addresses {
                let (first, last) = net.range();
                ranges.push((net.address.is_ipv6(), first, last, place as u16));
            }
        }
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            let [(v6, _, last, one), (other_v6, first, _, two)] = [pair[0], pair[1]];
            if v6 == other_v6 && first <= last && !self.findings.full() {
                let (early, late) = (one.min(two), one.max(two));
                let port = &nodes.ports[usize::from(late)];
                let entry = Entry { section: port.section(), name: Some(&port.name), n: None };
                let which = shared(&port.addresses, first);
                let what = match early == late {
                    true => format!("{which} is given twice, or is within another of its addresses"),
                    false => format!(
                        "{which} overlaps what lies behind \"{}\" (line {})",
                        nodes.ports[usize::from(early)].name,
                        self.findings.line(nodes.spans[usize::from(early)].start)
                    ),
                };
                let fix = "let each address lie behind one host or port only";
                self.error(&nodes.spans[usize::from(late)], &entry, "address", what, fix);
            }
        }
        Owners { ranges }
    }
}

/// The network of `nets` with the address of this number.
fn shared(nets: &[Network], at: u128) -> Network {
    let holds = |net: &&Network| {
        let (first, last) = net.range();
        (first..=last).contains(&at)
    };
    *nets.iter().find(holds).unwrap_or(&nets[0])
}
