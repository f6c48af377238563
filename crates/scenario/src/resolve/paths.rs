//! Section `[[path]]`: paths that are set instead of computed; and the addresses behind each port.

use super::graph::Graph;
use super::links::{Links, Pair};
use super::nodes::Nodes;
use super::{Entry, Resolver};
use crate::address::Network;
use crate::file::{self, File};
use crate::finding::did_you_mean;
use crate::plan::{End, Owners};
use crate::template;
use crate::written::{Name, Written};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

/// The paths of the file.
#[derive(Default)]
pub(super) struct DeclaredPaths {
    /// Links by (input, output) port.
    pub(super) by_ports: HashMap<(u16, u16), Vec<u32>>,
    /// Links by address pair.
    pub(super) by_addresses: Vec<(Vec<u32>, Pair)>,
}

/// The results of earlier steps.
#[derive(Clone, Copy)]
pub(super) struct Topology<'k> {
    pub(super) nodes: &'k Nodes,
    pub(super) links: &'k Links,
    pub(super) graph: &'k Graph,
}

impl Resolver<'_, '_> {
    pub(super) fn paths(&mut self, file: &File, known: Topology<'_>, owners: &Owners) -> DeclaredPaths {
        let mut given = DeclaredPaths::default();
        for written in &file.path {
            let entry = Entry { section: "path", name: None, n: None };
            for n in self.numbers(&entry, written) {
                let name = format!("{}-{}", written.from.text, written.to.text);
                let entry = Entry { n, name: Some(&name), ..entry };
                if self.path(&entry, written, (known, owners), &mut given).is_none() {
                    break;
                }
            }
        }
        given
    }

    fn path(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Path,
        (known, owners): (Topology<'_>, &Owners),
        given: &mut DeclaredPaths,
    ) -> Option<()> {
        let (from, to) = (self.port(entry, "from", &written.from), self.port(entry, "to", &written.to));
        let (from, to) = (from?, to?);
        if [from, to].iter().any(|port| known.nodes.ports[usize::from(*port)].router.is_some()) {
            let what = "a router is there, which chooses the path itself";
            let fix = "give the router a route, or join ports by a link";
            return self.refuse(&written.from.span, entry, "from", what, fix);
        }
        if from == to {
            let (what, fix) = ("it ends where it begins", "name another host or port");
            return self.refuse(&written.to.span, entry, "to", what, fix);
        }
        let mut places = Vec::with_capacity(written.links.0.len());
        for name in &written.links.0 {
            places.push(self.link_named(entry, name, known.links)?);
        }
        self.joins_up(entry, written, (from, to), &places, known)?;
        if let Some(first) = written.matches.first() {
            if !known.nodes.own_ports.is_empty() {
                let what = "paths are not chosen by addresses where routers have ports of their own";
                let fix = "a packet would take it at every node it comes to: remove match";
                return self.refuse(&first.source.span, entry, "match", what, fix);
            }
            let pairs = self.matches(entry, &written.matches)?;
            for (source, destination, span) in &pairs {
                for (address, port, verb) in [(*source, from, "begins"), (*destination, to, "ends")] {
                    let owner = owners.port(address).unwrap_or(port);
                    self.lies_behind((entry, span), address, (owner, port), verb, known.nodes)?;
                }
            }
            given.by_addresses.extend(pairs.into_iter().map(|pair| (places.clone(), pair)));
            return Some(());
        }
        if given.by_ports.insert((from, to), places).is_some() {
            let what =
                format!("there is a path from \"{}\" to \"{}\" already", written.from.text, written.to.text);
            return self.refuse(&written.from.span, entry, "", what, "keep one, or give them match");
        }
        Some(())
    }

    fn link_named(&mut self, entry: &Entry<'_>, written: &Written<Name>, links: &Links) -> Option<u32> {
        let text = template::expand(&written.text, entry.n);
        if let Some(place) = text.as_ref().ok().and_then(|text| links.names.get(text.as_ref())) {
            return Some(*place);
        }
        let Name(name) = self.term(entry, "links", written)?;
        let halves = ["forward", "backward"].map(|half| format!("{name}.{half}"));
        let fix = if links.names.contains_key(halves[0].as_str()) {
            format!("it is a duplex link: write \"{}\" or \"{}\"", halves[0], halves[1])
        } else {
            did_you_mean(&name, links.links.iter().take(10_000).map(|link| &*link.name))
                .unwrap_or_else(|| "declare it as [[link]]".into())
        };
        self.refuse(&written.span, entry, "links", format!("there is no link \"{name}\""), fix)
    }

    /// Checks that each link begins where the one before ends.
    fn joins_up(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Path,
        (from, to): (u16, u16),
        places: &[u32],
        known: Topology<'_>,
    ) -> Option<()> {
        let Topology { nodes, links, graph } = known;
        let bridge = |port: u16| End::Bridge(nodes.ports[usize::from(port)].bridge);
        let name = |end: End| end.name(&nodes.bridges, &nodes.ports);
        // A port without a link to its bridge is at the bridge.
        let mut at = End::Port(from);
        let on_bridge = graph.up[usize::from(from)].is_none();
        for (index, place) in places.iter().enumerate() {
            let link = &links.links[*place as usize];
            let begins = link.from == at || (index == 0 && on_bridge && link.from == bridge(from));
            if !begins {
                let what = format!(
                    "\"{}\" begins at \"{}\", but the path is at \"{}\"",
                    link.name,
                    name(link.from),
                    name(at)
                );
                let fix = "name the links in order, each beginning where the one before ends";
                return self.refuse(&written.links.0[index].span, entry, "links", what, fix);
            }
            at = link.to;
            if matches!(at, End::Port(_)) && index + 1 < places.len() {
                let what = format!("\"{}\" ends at \"{}\", which forwards nothing", link.name, name(at));
                let fix = "lead the path over bridges, up to its last link";
                return self.refuse(&written.links.0[index].span, entry, "links", what, fix);
            }
        }
        if places.is_empty() && on_bridge {
            at = bridge(from);
        }
        let there = at == End::Port(to) || (at == bridge(to) && graph.down[usize::from(to)].is_none());
        if !there {
            let what = format!("the path ends at \"{}\" instead of \"{}\"", name(at), name(End::Port(to)));
            self.error(&written.to.span, entry, "links", what, "add the links that are missing at its end");
        }
        there.then_some(())
    }

    /// Collects the addresses of all ports; each address belongs to one port only.
    pub(super) fn owners(&mut self, nodes: &Nodes) -> Owners {
        let owners = Owners::of(&nodes.ports);
        for pair in owners.ranges.windows(2) {
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
        owners
    }

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
