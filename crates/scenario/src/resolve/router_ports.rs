//! Routers' own ports, each joined to another router's port by a link, to a bridge, or to a host or port over
//! a bridge made for the two; and with the key `control-plane`, a port to a namespace beside each.

use super::links::Links;
use super::nodes::{Nodes, OwnPort};
use super::{Entry, Resolver};
use crate::file::File;
use crate::file_router;
use crate::finding::did_you_mean;
use crate::plan::{Attachment, Bridge, BridgeSettings, ControlEnd, End, Port, PortSide};
use crate::router_plan::RouterPort;
use crate::written::{Name, Text, Written};
use longwire_block::MAX_PORTS;
use longwire_units::Nanos;
use std::collections::{HashMap, HashSet};

/// Longest name of an interface (IFNAMSIZ less its terminator).
const LONGEST_INTERFACE: usize = 15;
/// Longest name of a namespace's host.
const LONGEST_NAME: usize = 63;
/// Reserved names of interfaces.
const TAKEN: [&str; 5] = ["lo", "all", "default", ".", ".."];

impl Resolver<'_, '_> {
    /// Finds the far port of every router's own port. None after an error.
    pub(super) fn join_routers(&mut self, file: &File, nodes: &mut Nodes, links: &mut Links) -> Option<()> {
        let own_ports = std::mem::take(&mut nodes.own_ports);
        let mut moved: HashMap<u16, u16> = HashMap::new();
        let mut partners: HashMap<u16, Option<End>> = HashMap::new();
        for OwnPort { place, wanted_bridge } in &own_ports {
            partners.insert(*place, wanted_bridge.as_ref().map(|(bridge, _)| End::Bridge(*bridge)));
        }
        for at in 0..links.links.len() {
            let ends = (links.links[at].from, links.links[at].to);
            for (one, other) in [ends, (ends.1, ends.0)] {
                let End::Port(place) = one else { continue };
                self.partner(nodes, links, at, (place, other), &mut partners)?;
            }
            if !own_ports.is_empty() && links.matched[at] && !links.spare[at] {
                let (what, fix) = if links.matches.iter().any(|(place, _)| *place as usize == at) {
                    (
                        "links are not chosen by addresses where routers have ports of their own",
                        "a packet would take it at every node it comes to: remove match, or use \
                         several bridges",
                    )
                } else {
                    (
                        "no filter steers to a link where routers have ports of their own",
                        "remove the rule; a program of the router can choose links (only = \"programs\")",
                    )
                };
                self.at_link(links, (at as u32, ""), what, fix);
                return None;
            }
        }
        for OwnPort { place, .. } in &own_ports {
            match partners.get(place).copied().flatten() {
                None => self.report_unjoined(nodes, *place),
                Some(End::Port(other)) if partners.contains_key(&other) => {
                    nodes.ports[usize::from(*place)].lead_to(other);
                }
                Some(End::Port(other)) => {
                    let bridge = self.wire(nodes, *place, other)?;
                    moved.insert(*place, self.attach(nodes, *place, bridge)?);
                }
                Some(End::Bridge(bridge)) => {
                    moved.insert(*place, self.attach(nodes, *place, bridge)?);
                }
            }
        }
        for end in links.links.iter_mut().flat_map(|link| [&mut link.from, &mut link.to]) {
            if let End::Port(place) = end
                && let Some(far) = moved.get(place)
            {
                *place = *far;
            }
        }
        if file.bridge.is_empty() && !file.router.is_empty() {
            self.report_unattached(nodes, links);
        }
        nodes.own_ports = own_ports;
        (!self.findings.failed()).then_some(())
    }

    /// Records what a link joins to the port at `place`, if that is a router's own. None after an error.
    fn partner(
        &mut self,
        nodes: &Nodes,
        links: &Links,
        at: usize,
        (place, other): (u16, End),
        partners: &mut HashMap<u16, Option<End>>,
    ) -> Option<()> {
        let name = |end: End| end.name(&nodes.bridges, &nodes.ports);
        let Some(known) = partners.get_mut(&place) else {
            let port = &nodes.ports[usize::from(place)];
            let alike = match other {
                End::Port(other) => {
                    nodes.ports[usize::from(other)].router == port.router && !partners.contains_key(&other)
                }
                End::Bridge(_) => false,
            };
            let Some(router) = port.router.filter(|_| !alike) else { return Some(()) };
            let router = &nodes.routers[router as usize].name;
            let what = format!(
                "\"{}\" is a port of router \"{router}\": no link can join it to \"{}\"",
                port.name,
                name(other)
            );
            let fix =
                format!("give \"{router}\" a port of its own in place of it, and join that to it by a link");
            self.at_link(links, (at as u32, ""), what, fix);
            return None;
        };
        if known.is_some_and(|known| known != other) {
            let what = format!(
                "\"{}\" is joined to \"{}\" already",
                name(End::Port(place)),
                known.map(name).unwrap_or_default()
            );
            let fix = "a port has one cable: give the router another port, or join several by a bridge";
            self.at_link(links, (at as u32, ""), what, fix);
            return None;
        }
        *known = Some(other);
        Some(())
    }

    fn report_unjoined(&mut self, nodes: &Nodes, place: u16) {
        let port = &nodes.ports[usize::from(place)];
        let router = port.router.map_or("", |router| &nodes.routers[router as usize].name);
        let entry = Entry { section: "router", name: Some(router), n: None };
        let known = nodes.ports.iter().filter(|other| other.router.is_none()).map(|other| &*other.name);
        let what =
            format!("there is no host or port \"{}\", and no link or bridge that it is joined to", port.name);
        let fix = did_you_mean(&port.name, known).unwrap_or_else(|| {
            let example = format!("between = [\"{}\", \"…\"]", port.name);
            format!("declare it as [[host]] or [[port]], or add a link: {example}")
        });
        self.error(&nodes.spans[usize::from(place)], &entry, "ports.port", what, fix);
    }

    /// Reports hosts and ports that would be on the default bridge.
    fn report_unattached(&mut self, nodes: &Nodes, links: &Links) {
        let linked: HashSet<End> = links.links.iter().flat_map(|link| [link.from, link.to]).collect();
        let linked = |place: u16| linked.contains(&End::Port(place));
        for (place, port) in nodes.ports.iter().enumerate() {
            let hangs = nodes.wanted_bridges[place].is_some() || linked(place as u16);
            if port.router.is_some() || port.is_vacant() || hangs {
                continue;
            }
            let entry = Entry { section: port.section(), name: Some(&port.name), n: None };
            let what =
                "it is not attached to anything: no router has it as a port, and no link joins it to one";
            let fix = "name it among a router's ports, or attach it to a declared [[bridge]]";
            self.error(&nodes.spans[place], &entry, "", what, fix);
        }
    }

    /// Makes a bridge for a router's port and the host or port that a link joins to it.
    fn wire(&mut self, nodes: &mut Nodes, place: u16, other: u16) -> Option<u32> {
        let port = &nodes.ports[usize::from(other)];
        let bridge = nodes.bridges.len() as u32;
        if let Some((hangs, _)) = &nodes.wanted_bridges[usize::from(other)] {
            let what = format!(
                "\"{}\" is attached to \"{}\", which its link to \"{}\" bypasses",
                port.name,
                nodes.bridges[*hangs as usize].name,
                nodes.ports[usize::from(place)].name
            );
            let entry = Entry { section: "host", name: Some(&port.name), n: None };
            let fix = "a host or port has one cable: link it to the bridge or to the router";
            return self.refuse(&nodes.spans[usize::from(other)], &entry, "", what, fix);
        }
        nodes.wanted_bridges[usize::from(other)] = Some((bridge, nodes.spans[usize::from(other)].clone()));
        let name = format!("{}-{}", port.name, nodes.ports[usize::from(place)].name).into();
        let settings = BridgeSettings { ageing: Nanos::from_secs(300), table: 16, wire: false };
        nodes.bridges.push(Bridge::new(name, settings, false));
        Some(bridge)
    }

    /// Gives a router's port a far port on a bridge, where its links then begin and end; returns its place.
    fn attach(&mut self, nodes: &mut Nodes, place: u16, bridge: u32) -> Option<u16> {
        let (name, span) =
            (nodes.ports[usize::from(place)].name.clone(), nodes.spans[usize::from(place)].clone());
        let Some(far) = nodes.place_of(&name, PortSide::Far) else {
            let what = format!("there are more than {MAX_PORTS} hosts and ports, those of routers included");
            return self.refuse(&span, &Entry::root(), "", what, "let several addresses share a port");
        };
        nodes.ports[usize::from(place)].lead_to(far);
        let mut port = Port::inner(name, far);
        port.lead_to(place);
        nodes.put(far, port, span.clone(), Some((bridge, span)));
        Some(far)
    }

    /// Adds the ports to a router's control plane, if it is to have one; returns whether. None after an
    /// error.
    pub(super) fn control_plane(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        (router, ports): (u32, &mut [RouterPort]),
        nodes: &mut Nodes,
    ) -> Option<bool> {
        let Some(wanted) = &written.control_plane else { return Some(false) };
        let Text(kind) = self.term(entry, "control-plane", wanted)?;
        if kind != "netns" {
            let what = format!("there is no control plane \"{kind}\"");
            let fix = "write \"netns\": a network namespace, in which BIRD or FRR run";
            return self.refuse(&wanted.span, entry, "control-plane", what, fix);
        }
        if let Some(span) = written.span("scheduler") {
            let what = "a router with a control plane can't share its processors between flows";
            let fix = "remove one of the two: hellos of routing protocols would wait behind flows";
            return self.refuse(span, entry, "scheduler", what, fix);
        }
        let fits = |name: &str, longest: usize| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            name.len() <= longest && name.chars().all(plain) && !TAKEN.contains(&name)
        };
        let Name(name) = self.term(entry, "name", &written.name)?;
        if !fits(&name, LONGEST_NAME) {
            let fix = "the namespace is named after it: use up to 63 letters, digits, \"-\", \"_\" and \".\"";
            let what = "it can't be the name of a namespace";
            return self.refuse(&written.name.span, entry, "name", what, fix);
        }
        for (number, (port, text)) in ports.iter_mut().zip(&written.ports).enumerate() {
            if !fits(&port.name, LONGEST_INTERFACE) {
                let what = format!("\"{}\" can't be the name of an interface", port.name);
                let fix = "the namespace's interfaces are named after ports: use up to 15 letters, digits, \
                    \"-\", \"_\" and \".\"";
                return self.refuse(&text.port.span, entry, "ports.port", what, fix);
            }
            let name = format!("{}:control", port.name);
            let named = Written::new(text.port.span.clone(), name.clone());
            let place = self.place(&Entry { n: None, ..*entry }, &named, nodes)?;
            let beside = Port {
                attachment: Attachment::Control(ControlEnd { router, port: number as u32 }),
                router: Some(router),
                queues: 1,
                ..Port::inner(name.into(), place)
            };
            nodes.put(place, beside, text.port.span.clone(), None);
            port.control = Some(place);
        }
        Some(true)
    }
}
