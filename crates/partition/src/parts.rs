//! The scenarios of the machines, written from the sections of the whole.

use crate::graph::{Cable, Graph};
use crate::machines::Machines;
use crate::result::{Part, PartitionError};
use crate::sections::{Direction, Sections, is_kept, link_names, texts};
use longwire_assemble::known_neighbours;
use longwire_scenario::{End, Mac, Plan, Port, parse};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use toml::{Table, Value};

/// Keys of a duplex link that a simplex link does not have, or has otherwise.
const DUPLEX: [&str; 6] = ["between", "forward", "backward", "from", "to", "name"];

/// The words with which a machine's part begins.
pub(crate) fn first_words(machine: &str) -> String {
    format!("# The part for {machine} of")
}

/// Writes a part for each machine that has nodes: `places` has the machine of each vertex, `cables` what is
/// cut.
///
/// # Errors
/// If a part is not a valid scenario.
pub(crate) fn write(
    (plan, machines): (&Plan, &Machines),
    sections: &Sections,
    graph: &Graph<'_>,
    (places, cables): (&[Option<usize>], &[&Cable]),
) -> Result<Vec<Part>, PartitionError> {
    let writer = Writer::new((plan, machines), sections, graph, (places, cables));
    let mut parts = Vec::new();
    for (machine, name) in machines.list.iter().map(|machine| &machine.name).enumerate() {
        if !places.contains(&Some(machine)) {
            continue;
        }
        let text = writer.part(machine);
        // Files that it names are looked for where the whole is.
        let file = Path::new(&plan.file).with_file_name(format!("{name}.toml"));
        parse(&file.display().to_string(), &text)
            .map_err(|why| PartitionError::Part { machine: name.clone(), why: why.to_string() })?;
        parts.push(Part { machine, text });
    }
    Ok(parts)
}

struct Writer<'a> {
    plan: &'a Plan,
    machines: &'a Machines,
    sections: &'a Sections,
    graph: &'a Graph<'a>,
    places: &'a [Option<usize>],
    cables: &'a [&'a Cable],
    /// Links by name.
    links: HashMap<&'a str, u32>,
    /// Hosts and ports by name.
    ports: HashMap<&'a str, u16>,
    /// Links that are cut: their cable, and the end to which they lead.
    cut: HashMap<u32, (usize, usize)>,
    /// By cable and end: the name of its tunnel port.
    tunnels: Vec<[String; 2]>,
    /// Bridges that join a host or port with a tunnel, by its place.
    wires: HashMap<u16, String>,
    /// The name of the bridge that the scenario does not declare, where it must be.
    default_bridge: String,
}

impl<'a> Writer<'a> {
    fn new(
        (plan, machines): (&'a Plan, &'a Machines),
        sections: &'a Sections,
        graph: &'a Graph<'a>,
        (places, cables): (&'a [Option<usize>], &'a [&'a Cable]),
    ) -> Self {
        let mut names = Names::of(plan);
        let mut tunnels = Vec::new();
        let (mut wires, mut cut) = (HashMap::new(), HashMap::new());
        for (number, cable) in cables.iter().enumerate() {
            let peer = |side: usize| {
                places[cable.vertices[1 - side]].map_or("", |machine| &*machines.list[machine].name)
            };
            tunnels.push([0, 1].map(|side| names.fresh(&format!("cut{number}-{}", peer(side)))));
            cut.extend([(cable.links[0], (number, 1)), (cable.links[1], (number, 0))]);
            for end in cable.ends {
                if let End::Port(place) = end
                    && plan.ports[usize::from(place)].attachment.is_outer()
                {
                    wires.insert(place, names.fresh(&format!("cut{number}-wire")));
                }
            }
        }
        let outer = (0u16..).zip(&plan.ports).filter(|(_, port)| port.attachment.is_outer());
        Self {
            plan,
            machines,
            sections,
            graph,
            places,
            cables,
            links: (0u32..).zip(&plan.links).map(|(place, link)| (&*link.name, place)).collect(),
            ports: outer.map(|(place, port)| (&*port.name, place)).collect(),
            cut,
            tunnels,
            wires,
            default_bridge: names.fresh("bridge"),
        }
    }

    fn part(&self, machine: usize) -> String {
        let name = &self.machines.list[machine].name;
        let mut text = format!("{} {}, cut by longwire partition.\n", first_words(name), self.plan.file);
        for key in ["seed", "routing"] {
            if let Some(value) = self.sections.get(key) {
                put_key(&mut text, key, value);
            }
        }
        let engine = self.engine(machine);
        if !engine.is_empty() {
            put(&mut text, "[engine]", &engine);
        }
        if let Some(fidelity) = self.sections.get("fidelity").and_then(Value::as_table) {
            put(&mut text, "[fidelity]", fidelity);
        }
        self.hosts_and_ports(machine, &mut text);
        self.bridges(machine, &mut text);
        self.routers(machine, &mut text);
        let is_forwarder = |entry: &Table| self.has_router(machine, text_of(entry, "router"));
        self.entries("forwarder", is_forwarder, &mut text);
        self.entries("medium", |entry| self.has_medium(text_of(entry, "name"), machine), &mut text);
        self.link_sections(machine, &mut text);
        for event in self.sections.entries("at").filter_map(|entry| self.event(entry, machine)) {
            put(&mut text, "[[at]]", &event);
        }
        text
    }

    /// Writes some entries of a section as they are.
    fn entries(&self, section: &str, are_here: impl Fn(&Table) -> bool, text: &mut String) {
        for entry in self.sections.entries(section).filter(|entry| are_here(entry)) {
            put(text, &format!("[[{section}]]"), entry);
        }
    }

    /// Whether a vertex is on a machine.
    fn is_on(&self, machine: usize, vertex: usize) -> bool {
        self.places[vertex] == Some(machine)
    }

    /// Whether a link is: where it ends.
    fn has_link(&self, machine: usize, place: u32) -> bool {
        self.is_on(machine, self.graph.end_vertex(self.plan.links[place as usize].to))
    }

    fn has_port(&self, machine: usize, name: &str) -> bool {
        self.ports.get(name).is_some_and(|place| self.is_on(machine, usize::from(*place)))
    }

    fn has_router(&self, machine: usize, name: &str) -> bool {
        let mut routers = (0u32..).zip(&self.plan.routers);
        routers.any(|(index, router)| {
            &*router.name == name && self.is_on(machine, self.graph.router_vertex(index))
        })
    }

    fn engine(&self, machine: usize) -> Table {
        let mut engine = self.sections.get("engine").and_then(Value::as_table).cloned().unwrap_or_default();
        if let Some(cores) = self.machines.list[machine].cores {
            engine.insert("workers".into(), cores.into());
            engine.remove("cpus");
            let single = engine.get("mapping").and_then(Value::as_str) == Some("single");
            if single != (cores == 1) {
                engine.remove("mapping");
            }
        }
        engine
    }

    fn hosts_and_ports(&self, machine: usize, text: &mut String) {
        for section in ["host", "port"] {
            for entry in self.sections.entries(section) {
                let name = text_of(entry, "name");
                let Some(&place) = self.ports.get(name) else { continue };
                if !self.is_on(machine, usize::from(place)) {
                    continue;
                }
                let port = &self.plan.ports[usize::from(place)];
                let mut own = entry.clone();
                own.insert("mac".into(), port.mac.to_string().into());
                if let Some(host) = self.plan.host_at(port) {
                    set_gateways(&mut own, &host.gateways);
                }
                if let Some(bridge) = self.bridge_of(machine, place, port) {
                    own.insert("bridge".into(), bridge.into());
                }
                put(text, &format!("[[{section}]]"), &own);
            }
        }
        for (number, cable) in self.cables.iter().enumerate() {
            for side in [0, 1] {
                if self.is_on(machine, cable.vertices[side]) {
                    put(text, "[[port]]", &self.tunnel(number, (cable, side), machine));
                }
            }
        }
    }

    /// The tunnel of a cable at one of its ends.
    fn tunnel(&self, number: usize, (cable, side): (&Cable, usize), machine: usize) -> Table {
        let peer = self.places[cable.vertices[1 - side]].unwrap_or(machine);
        let at = |machine: usize| {
            let port = self.machines.first_port + number as u16;
            SocketAddr::new(self.machines.list[machine].address, port).to_string()
        };
        let [high, low] = (number as u16).to_be_bytes();
        let keys = [
            ("name", self.tunnels[number][side].clone()),
            ("driver", "tunnel".to_owned()),
            ("listen", at(machine)),
            ("peer", at(peer)),
            ("key", self.machines.key(machine, peer).to_owned()),
            ("mac", Mac([0x02, b'L', b'W', 2, high, low]).to_string()),
        ];
        let bridge = match cable.ends[side] {
            End::Bridge(bridge) => Some(self.plan.bridges[bridge as usize].name.to_string()),
            End::Port(place) => self.wires.get(&place).cloned(),
        };
        let netns = self.machines.list[machine].netns.clone().map(|netns| ("netns", netns));
        table(keys.into_iter().chain(netns).chain(bridge.map(|bridge| ("bridge", bridge))))
    }

    /// The bridge that a host or port must name, so that it is where it was.
    fn bridge_of(&self, machine: usize, place: u16, port: &Port) -> Option<&str> {
        if let Some(wire) = self.wires.get(&place) {
            return Some(wire);
        }
        let bridge = self.plan.bridges.get(port.bridge as usize)?;
        if bridge.declared {
            return Some(&bridge.name);
        }
        let has_wires = || self.wires.keys().any(|place| self.is_on(machine, usize::from(*place)));
        (port.bridge == 0 && has_wires()).then_some(&self.default_bridge)
    }

    fn bridges(&self, machine: usize, text: &mut String) {
        let is_here = |index: u32| self.is_on(machine, self.graph.bridge_vertex(index));
        let bridges = (0u32..).zip(&self.plan.bridges);
        let declared = bridges.filter(|(index, bridge)| bridge.declared && is_here(*index));
        let declared: HashSet<&str> = declared.map(|(_, bridge)| &*bridge.name).collect();
        self.entries("bridge", |entry| declared.contains(text_of(entry, "name")), text);
        let wire = |name: &str, is: bool| table([("name", Value::from(name)), ("wire", is.into())]);
        let mut wires: Vec<(&u16, &String)> =
            self.wires.iter().filter(|(place, _)| self.is_on(machine, usize::from(**place))).collect();
        wires.sort_unstable();
        for (_, name) in &wires {
            put(text, "[[bridge]]", &wire(name, true));
        }
        // Where bridges are declared, there is no other.
        let Some(default) = self.plan.bridges.first().filter(|bridge| !bridge.declared) else { return };
        let left = default.ports.iter().filter(|place| !self.wires.contains_key(place));
        let left = left.filter(|place| self.is_on(machine, self.graph.port_vertex(**place))).count();
        if left > 0 && !wires.is_empty() {
            put(text, "[[bridge]]", &wire(&self.default_bridge, left == 2));
        }
    }

    fn routers(&self, machine: usize, text: &mut String) {
        for (entry, router) in self.sections.entries("router").zip(&self.plan.routers) {
            if !self.has_router(machine, &router.name) {
                continue;
            }
            let mut own = entry.clone();
            if let Some(Value::Array(ports)) = own.get_mut("ports") {
                for (written, port) in ports.iter_mut().zip(&router.ports) {
                    if let Value::Table(written) = written {
                        written.insert("mac".into(), port.mac.to_string().into());
                    }
                }
            }
            // Those behind a tunnel are not in this part.
            let known = known_neighbours(self.plan, router).into_iter();
            let known: BTreeMap<(u16, IpAddr), [u8; 6]> =
                known.map(|(port, address, mac)| ((port, address), mac)).collect();
            let neighbours = known.into_iter().map(|((port, address), mac)| {
                let port = self.plan.ports[usize::from(port)].name.to_string();
                table([("address", address.to_string()), ("mac", Mac(mac).to_string()), ("port", port)])
            });
            let neighbours: Vec<Table> = neighbours.collect();
            if !neighbours.is_empty() {
                own.insert("neighbours".into(), neighbours.into());
            }
            put(text, "[[router]]", &own);
        }
    }

    fn link_sections(&self, machine: usize, text: &mut String) {
        for entry in self.sections.entries("link") {
            let links = link_names(entry).into_iter();
            let links = links.filter_map(|(name, way)| Some((*self.links.get(name.as_str())?, name, way)));
            for (place, name, direction) in links.filter(|(place, ..)| self.has_link(machine, *place)) {
                if let Some((cable, end)) = self.cut.get(&place) {
                    let from = &self.tunnels[*cable][*end];
                    put(text, "[[link]]", &simplex(entry, direction, (&name, from)));
                } else if direction != Direction::Backward {
                    // Both directions of a duplex link are on one machine.
                    put(text, "[[link]]", entry);
                }
            }
        }
        self.entries("path", |entry| self.has_port(machine, text_of(entry, "from")), text);
        for (entry, source) in self.sections.entries("source").zip(&self.plan.sources) {
            if self.has_source(&source.name, machine) {
                put(text, "[[source]]", entry);
            }
        }
    }

    /// A change of what is on a machine.
    fn event(&self, entry: &Table, machine: usize) -> Option<Table> {
        let mut own = entry.clone();
        if entry.contains_key("router") && !self.has_router(machine, text_of(entry, "router")) {
            return None;
        }
        for key in ["link", "source", "medium"] {
            let Some(value) = entry.get(key) else { continue };
            let names = texts(value).into_iter();
            let names: Vec<String> = if key == "link" {
                names.flat_map(|name| self.links_called(name, machine)).collect()
            } else {
                let is_here = |name: &&str| self.has_source(name, machine) || self.has_medium(name, machine);
                names.filter(is_here).map(str::to_owned).collect()
            };
            if names.is_empty() {
                return None;
            }
            own.insert(key.into(), names.into());
        }
        Some(own)
    }

    fn has_source(&self, name: &str, machine: usize) -> bool {
        let mut sources = self.plan.sources.iter().filter(|source| is_kept(self.plan, source));
        sources.any(|source| &*source.name == name && self.is_on(machine, usize::from(source.in_port)))
    }

    fn has_medium(&self, name: &str, machine: usize) -> bool {
        let mut media = self.plan.media.iter().filter(|medium| &*medium.name == name);
        media.any(|medium| medium.links.first().is_some_and(|link| self.has_link(machine, *link)))
    }

    /// The names, in a part, of what a change calls so.
    fn links_called(&self, name: &str, machine: usize) -> Vec<String> {
        if let Some(place) = self.links.get(name) {
            return if self.has_link(machine, *place) { vec![name.to_owned()] } else { Vec::new() };
        }
        let halves = ["forward", "backward"].map(|direction| format!("{name}.{direction}"));
        let known = halves.into_iter().filter_map(|half| Some((*self.links.get(half.as_str())?, half)));
        let here: Vec<(u32, String)> = known.filter(|(place, _)| self.has_link(machine, *place)).collect();
        if here.len() == 2 && here.iter().all(|(place, _)| !self.cut.contains_key(place)) {
            return vec![name.to_owned()];
        }
        here.into_iter().map(|(_, half)| half).collect()
    }
}

/// One direction of an entry as a link of this name that begins at `from`.
fn simplex(entry: &Table, direction: Direction, (name, from): (&str, &str)) -> Table {
    let mut own = entry.clone();
    DUPLEX.iter().for_each(|key| {
        own.remove(*key);
    });
    let between = entry.get("between").map(texts).unwrap_or_default();
    let to = match direction {
        Direction::Only => text_of(entry, "to"),
        Direction::Forward => between.get(1).copied().unwrap_or_default(),
        Direction::Backward => between.first().copied().unwrap_or_default(),
    };
    if let Some(Value::Table(differs)) = direction.key().and_then(|key| entry.get(key)) {
        own.extend(differs.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    // A simplex link has a profile's forward direction unless it names the other one.
    if let (Some(way), Some(Value::String(profile))) = (direction.key(), own.get_mut("profile"))
        && ![".forward", ".backward"].iter().any(|suffix| profile.ends_with(suffix))
    {
        *profile = format!("{profile}.{way}");
    }
    for (key, text) in [("name", name), ("from", from), ("to", to)] {
        own.insert(key.into(), text.into());
    }
    own
}

/// Writes a host's gateways, which may follow from routers on other machines.
fn set_gateways(host: &mut Table, gateways: &[IpAddr]) {
    if gateways.is_empty() {
        return;
    }
    let is_default = |route: &Value| {
        let to = route.get("to").and_then(Value::as_str).unwrap_or_default().trim();
        to == "default" || to.ends_with("/0")
    };
    if let Some(Value::Array(routes)) = host.get_mut("routes") {
        routes.retain(|route| !is_default(route));
    }
    let gateways: Vec<String> = gateways.iter().map(ToString::to_string).collect();
    host.insert("gateway".into(), gateways.into());
}

/// Names that are taken.
struct Names(HashSet<String>);

impl Names {
    fn of(plan: &Plan) -> Self {
        let ports = plan.ports.iter().map(|port| &port.name);
        let bridges = plan.bridges.iter().filter(|bridge| bridge.declared).map(|bridge| &bridge.name);
        let routers = plan.routers.iter().map(|router| &router.name);
        let links = plan.links.iter().map(|link| &link.name);
        Self(ports.chain(bridges).chain(routers).chain(links).map(ToString::to_string).collect())
    }

    /// `wanted`, with a number if it is taken.
    fn fresh(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 1;
        while !self.0.insert(name.clone()) {
            number += 1;
            name = format!("{wanted}-{number}");
        }
        name
    }
}

fn table<V: Into<Value>>(keys: impl IntoIterator<Item = (&'static str, V)>) -> Table {
    keys.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

fn text_of<'t>(entry: &'t Table, key: &str) -> &'t str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn put(text: &mut String, header: &str, keys: &Table) {
    text.push('\n');
    text.push_str(header);
    text.push('\n');
    // The name first, where a reader looks for it.
    let (first, rest): (Vec<_>, Vec<_>) = keys.iter().partition(|(key, _)| *key == "name");
    first.into_iter().chain(rest).for_each(|(key, value)| put_key(text, key, value));
}

fn put_key(text: &mut String, key: &str, value: &Value) {
    // Writing to a String can't fail.
    let _ = writeln!(text, "{key} = {value}");
}
