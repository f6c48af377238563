//! containerlab's topology files, with the impairments set and reset by its command `tools netem`.
//!
//! The files have no impairments: they are read from a script of such commands beside the topology, or from
//! `vars` of a link with the same names.

use super::netem::cable;
use super::sheet::Sheet;
use super::stage::Stage;
use super::wiring::{Cable, Node, Wiring};
use super::yaml::{map, read, text};
use super::{ImportError, Notes, Result, Source, shell, shown, tc};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Kinds of nodes that are bridges.
const BRIDGES: [&str; 2] = ["bridge", "ovs-bridge"];
/// Options of its commands without a value.
const SWITCHES: [&str; 4] = ["-d", "--debug", "-h", "--help"];

/// A cable's end: a node, and the interface's name there.
type End = (usize, String);

/// The lab, while it is read.
struct Lab {
    /// What containers' names have before the node's.
    prefix: String,
    wiring: Wiring,
    numbers: BTreeMap<String, usize>,
    /// The ends of each cable.
    ends: Vec<[End; 2]>,
}

/// The scenario of a topology file and scripts beside it.
pub(super) fn import(sources: &[Source], notes: &mut Notes) -> Result<Sheet> {
    let Some((first, scripts)) = sources.split_first() else { return Ok(Sheet::default()) };
    let document = read(&first.text, "a topology file of containerlab")?;
    let fix = "write topology: with nodes: and links:";
    let Some(topology) = document.get("topology").and_then(Value::as_object) else {
        return Err(ImportError::new(0, "there is no topology in it", fix));
    };
    let name = document.get("name").and_then(text).unwrap_or_default();
    let prefix = match document.get("prefix").and_then(text).as_deref() {
        Some("") => String::new(),
        Some("__lab-name") => format!("{name}-"),
        Some(prefix) => format!("{prefix}-{name}-"),
        None => format!("clab-{name}-"),
    };
    let mut lab = Lab { prefix, wiring: Wiring::default(), numbers: BTreeMap::new(), ends: Vec::new() };
    for (name, node) in map(topology, "nodes") {
        lab.add_node(name, node, topology);
    }
    for link in topology.get("links").and_then(Value::as_array).into_iter().flatten() {
        lab.add_link(link, notes)?;
    }
    ImportError::unless(!lab.ends.is_empty(), 0, "there is no link between two nodes in it", fix)?;
    for script in scripts {
        lab.read_script(script, notes)?;
    }
    lab.wiring.sheet("A lab of containerlab.", notes)
}

impl Lab {
    /// Adds a node. Its kind is its own, else that of its group, of the usual group, or the usual one.
    fn add_node(&mut self, name: &str, node: &Value, topology: &Map<String, Value>) {
        let kind = |of: &Value| of.get("kind").and_then(text);
        let of_group = |of: &Value| {
            let group = of.get("group").and_then(text)?;
            topology.get("groups")?.get(&*group).and_then(kind)
        };
        let usual = topology.get("defaults");
        let kind_of_node = kind(node)
            .or_else(|| of_group(node))
            .or_else(|| usual.and_then(of_group))
            .or_else(|| usual.and_then(kind));
        let bridge = kind_of_node.is_some_and(|kind| BRIDGES.contains(&&*kind.to_ascii_lowercase()));
        self.numbers.insert(name.into(), self.wiring.nodes.len());
        self.wiring.nodes.push(Node { name: name.into(), bridge });
    }

    /// Adds a link, in the brief or the extended format.
    fn add_link(&mut self, link: &Value, notes: &mut Notes) -> Result<()> {
        let kind = link.get("type").and_then(text);
        if let Some(kind) = kind.filter(|kind| kind != "veth") {
            notes.add(0, &format!("type: {kind}"), "only links between nodes (veth) are carried over");
            return Ok(());
        }
        let ends = link.get("endpoints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let [one, other] = ends else {
            let fix = "write endpoints: [\"node1:eth1\", \"node2:eth1\"]";
            return Err(ImportError::new(0, format!("a link has {} endpoints", ends.len()), fix));
        };
        let (Some(one), Some(other)) = (self.end(one, notes)?, self.end(other, notes)?) else {
            return Ok(());
        };
        if one.0 == other.0 {
            notes.add(0, &self.wiring.nodes[one.0].name, "a link from the node to itself is left out");
            return Ok(());
        }
        let mut given = Vec::new();
        for (key, value) in link.get("vars").and_then(Value::as_object).into_iter().flatten() {
            match text(value) {
                Some(value) => given.push((key.clone(), value)),
                None => notes.add(0, &format!("vars: {key}"), "it is not a text, and is left out"),
            }
        }
        let stage = cable::stage(0, &given, notes)?;
        if let Some(mtu) = link.get("mtu").and_then(text) {
            notes.add(0, &format!("mtu: {mtu}"), "hosts have their own MTU here: mtu of [[host]]");
        }
        self.wiring.cables.push(Cable { ends: (one.0, other.0), there: stage.clone(), back: stage });
        self.ends.push([one, other]);
        Ok(())
    }

    /// The end that `node:interface` names, or a map with both; none if it is not a node's.
    fn end(&self, end: &Value, notes: &mut Notes) -> Result<Option<End>> {
        let (node, interface) = match end {
            Value::Object(map) => {
                let at = |key: &str| map.get(key).and_then(text).unwrap_or_default();
                (at("node"), at("interface"))
            }
            other => {
                let text = text(other).unwrap_or_default();
                let (node, interface) = text.split_once(':').unwrap_or((&text, ""));
                (node.to_owned(), interface.to_owned())
            }
        };
        if ["host", "mgmt-net", "macvlan", "vxlan", "dummy"].contains(&&*node) {
            let option = format!("{node}:{interface}");
            notes.add(0, &option, "links that leave the lab are left out; give the scenario a [[port]]");
            return Ok(None);
        }
        let what = format!("a link ends at \"{node}\", which is not a node");
        let unknown = || ImportError::new(0, what, "name one under nodes:");
        Ok(Some((*self.numbers.get(&node).ok_or_else(unknown)?, interface)))
    }

    /// Applies `containerlab tools netem set` and `reset` of a script.
    fn read_script(&mut self, script: &Source, notes: &mut Notes) -> Result<()> {
        let is_ours = |words: &[String]| netem(words).is_some() || tc::is_ours(words);
        let mut any = false;
        for line in shell::run(&script.text, is_ours, notes)? {
            match netem(&line.words) {
                Some((command @ ("set" | "reset"), words)) => {
                    self.apply(line.number, (command, words), notes)?;
                    any = true;
                }
                None if tc::is_ours(&line.words) => {
                    let why = "only containerlab tools netem is read here; write it as such a command";
                    notes.add(line.number, &line.words.join(" "), why);
                }
                Some(("show", _)) | None => {}
                Some(_) => {
                    let why = "only set and reset of tools netem are known here";
                    notes.add(line.number, &line.words.join(" "), why);
                }
            }
        }
        if !any {
            let why = "it has no command containerlab tools netem set";
            notes.add(0, &shown(script), why);
        }
        Ok(())
    }

    /// One such command: packets sent by the interface are impaired, or no longer.
    fn apply(&mut self, line: usize, (command, words): (&str, &[String]), notes: &mut Notes) -> Result<()> {
        let (mut node, mut interface, mut given) = (String::new(), String::new(), Vec::new());
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (&**word, None),
            };
            if SWITCHES.contains(&option) {
                continue;
            }
            let value = value.or_else(|| rest.next().cloned()).unwrap_or_default();
            match option {
                "-n" | "--node" => node = value,
                "-i" | "--interface" => interface = value,
                _ => given.push((option.trim_start_matches('-').to_owned(), value)),
            }
        }
        let short = node.strip_prefix(&self.prefix).unwrap_or(&node);
        let number = self.numbers.get(short).or_else(|| self.numbers.get(&node)).copied();
        let is_end = |end: &End| Some(end.0) == number && end.1 == interface;
        let what = format!("no link of the topology ends at interface \"{interface}\" of \"{node}\"");
        let unknown = || ImportError::new(line, what, "write -n NODE -i INTERFACE of a link");
        let at = self.ends.iter().position(|ends| ends.iter().any(is_end)).ok_or_else(unknown)?;
        let stage = if command == "reset" { Stage::default() } else { cable::stage(line, &given, notes)? };
        let cable = &mut self.wiring.cables[at];
        *(if is_end(&self.ends[at][0]) { &mut cable.there } else { &mut cable.back }) = stage;
        Ok(())
    }
}

/// The subcommand of `containerlab tools netem`, and its options.
fn netem(words: &[String]) -> Option<(&str, &[String])> {
    let at = words.windows(2).position(|words| words[0] == "tools" && words[1] == "netem")?;
    let (command, options) = words[at + 2..].split_first()?;
    Some((command, options))
}
