//! Addresses behind each port.

use super::nodes::Nodes;
use super::{Entry, Resolver};
use crate::address::{Network, number};
use std::net::IpAddr;
use std::ops::Range;

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

impl Resolver<'_, '_> {
    /// Checks that the `owner` of an address in a match is the port where the entry's link or path begins or
    /// ends. None after an error.
    pub(super) fn lies_behind(
        &mut self,
        (entry, span): (&Entry<'_>, &Range<usize>),
        address: IpAddr,
        (owner, port): (u16, u16),
        verb: &str,
        nodes: &Nodes,
    ) -> Option<()> {
        if owner == port {
            return Some(());
        }
        let [home, end] = [owner, port].map(|place| &nodes.ports[usize::from(place)].name);
        let section = entry.section;
        let what = format!("{address} lies behind \"{home}\", but the {section} {verb} at \"{end}\"");
        let fix = format!("correct the address or the {section}'s ends");
        self.refuse(span, entry, "match", what, fix)
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
