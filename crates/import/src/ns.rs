//! Commands of ns scripts, as in ns-2 and Emulab.
//!
//! Names of commands and queue disciplines are case-insensitive, and `$ns set duplex-link` means `$ns
//! duplex-link`: both occur in published scripts. A LAN's delay is split between the cables of sender and
//! receiver, as in Emulab's parser (lanlink.tcl).

mod at;
mod classes;
mod errors;
mod lan;
mod words;

use super::ns_queue::Dialect;
use super::ns_value::{count, read, seconds};
use super::quantity::{LONGEST_DELAY, Share, ns_rate};
use super::sheet::Sheet;
use super::tcl::{Host, Tcl};
use super::topology::{Direction, Edge, Half, Node, Setting, Topology};
use super::{ImportError, Notes, Result};
use at::{DeferredCommand, Later, execute, only};
use errors::Errors;
use longwire_units::Nanos;
use std::collections::HashMap;
use words::{DRAWN, Variable, drawn};

/// Most nodes and links of a script, and most events.
pub(super) const MOST: usize = 20_000;

/// Why agents are left out.
const AGENTS: &str = "programs make the traffic here, not agents";
/// Why other commands are left out.
const NO_COUNTERPART: &str = "it has no counterpart here";
const NO_SETTING: &str = "the queues here have no such setting";
/// Parts of a link.
const PARTS: [&str; 2] = ["queue", "link"];

/// The object of a handle.
#[derive(Debug, Clone)]
pub(super) enum Object {
    Simulator,
    Node(usize),
    /// A link of one or more edges, in order.
    Link(Vec<usize>),
    /// One direction of an edge.
    Direction(Half),
    /// Links addressed by events together.
    Group(Vec<usize>),
    /// The delay element after a direction's queue.
    Delay(Half),
    /// A LAN: its node.
    Lan(usize),
    /// A direction's queue.
    Queue(Half),
    Errors(Errors),
    Random(Variable),
    Other,
}

/// A script's network so far.
pub(super) struct Script<'n> {
    pub(super) topology: Topology,
    pub(super) objects: HashMap<String, Object>,
    /// Settings for all queues, or for those of a kind, created from then on.
    pub(super) defaults: Vec<Preset>,
    /// Attachments of error models, by their handles.
    pub(super) losses: Vec<(String, Half)>,
    /// Commands deferred to times of the run, and the current one during execution.
    later: Vec<Later>,
    pub(super) now: Option<Nanos>,
    carried: DeferredCommand,
    /// Directions as changed by events, by edge and direction.
    pub(super) present: HashMap<Half, Direction>,
    /// Names of handles, and the current command, for notes.
    pub(super) names: HashMap<String, String>,
    pub(super) said: Vec<String>,
    pub(super) notes: &'n mut Notes,
}

/// `Queue/RED set thresh_ 5`.
pub(super) struct Preset {
    pub(super) class: String,
    pub(super) key: String,
    pub(super) value: String,
}

/// The scenario of this script.
pub(super) fn import(text: &str, notes: &mut Notes) -> Result<Sheet> {
    let mut script = Script {
        topology: Topology::default(),
        objects: HashMap::new(),
        defaults: Vec::new(),
        losses: Vec::new(),
        later: Vec::new(),
        now: None,
        carried: DeferredCommand::default(),
        present: HashMap::new(),
        names: HashMap::new(),
        said: Vec::new(),
        notes,
    };
    let mut tcl = Tcl::new(&mut script);
    tcl.run(text, 1)?;
    tcl.host.note_units();
    execute(&mut tcl)?;
    let topology = script.topology;
    let fix = "write $ns duplex-link $a $b 100Mb 10ms DropTail";
    ImportError::unless(!topology.edges.is_empty(), 0, "the script makes no link", fix)?;
    topology.sheet(notes)
}

impl Host for Script<'_> {
    fn call(&mut self, line: usize, words: &[String]) -> Result<String> {
        let name = words[0].to_ascii_lowercase();
        let rest = &words[1..];
        self.said = words.to_vec();
        match (self.objects.get(&words[0]).cloned(), name.as_str()) {
            (Some(Object::Simulator), _) => self.simulator(line, rest),
            (Some(Object::Link(edges)), _) if matches!(rest, [part] if PARTS.contains(&&**part)) => {
                self.link(line, &edges, rest)
            }
            (Some(Object::Link(edges) | Object::Group(edges)), _) if self.now.is_some() => {
                self.change(line, &edges, [true, true], rest)
            }
            (Some(Object::Lan(lan)), _) if self.now.is_some() => {
                let edges: Vec<_> = self.topology.edges_of(lan).collect();
                self.change(line, &edges, [true, true], rest)
            }
            (Some(Object::Link(edges)), _) => self.link(line, &edges, rest),
            (Some(Object::Group(edges)), _) => self.gather(line, (&words[0], edges), rest),
            (Some(Object::Direction(half)), _) => self.one_direction(line, half, rest),
            (Some(Object::Delay(half)), _) => self.delay_link(line, half, rest),
            (Some(Object::Lan(_) | Object::Node(_)), _) => self.skip(line, words, NO_COUNTERPART),
            (Some(Object::Other), _) if drawn(rest).is_some() => {
                self.note(line, words, DRAWN);
                Ok(drawn(rest).unwrap_or_default())
            }
            (Some(Object::Other), _) => {
                let why = if self.now.is_some() { AGENTS } else { NO_COUNTERPART };
                self.note(line, words, why);
                Ok(self.handle(Object::Other))
            }
            (Some(Object::Queue(half)), _) => self.queue(line, half, rest),
            (Some(Object::Errors(model)), _) => self.errors(line, words, model),
            (Some(Object::Random(variable)), _) => Ok(self.random(line, words, variable)),
            (None, "new") => Ok(self.make(line, rest)),
            (None, "set") => self.simulator(line, words),
            (None, "source") => {
                if rest.iter().any(|file| file.ends_with("tb_compat.tcl")) {
                    self.topology.dialect = Dialect::Emulab;
                } else {
                    self.note(line, words, "other files are not read");
                }
                Ok(String::new())
            }
            (None, tb) if tb.starts_with("tb-") => {
                self.topology.dialect = Dialect::Emulab;
                self.testbed(line, tb, words)
            }
            (None, class) if class == "queue" || class.starts_with("queue/") => self.default(line, words),
            _ => {
                let left = ["open", "close", "exec", "gets", "read", "after"].contains(&name.as_str());
                let why = if left { "files and programs are left alone" } else { "the command is not known" };
                self.note(line, words, why);
                // Procedures may pass a channel on.
                Ok(if name == "open" { self.handle(Object::Other) } else { String::new() })
            }
        }
    }

    fn drew(&mut self, line: usize, text: &str) {
        self.note(line, &["expr".into(), text.into()], DRAWN);
    }

    fn broke_off(&mut self, line: usize, words: &[String], error: &ImportError) {
        let why = format!("the procedure is executed up to here only: {error}");
        self.note(line, words, &why);
    }

    fn named(&mut self, value: &str, variable: &str) {
        if self.objects.contains_key(value) {
            self.call_it(value, variable);
        }
        // Emulab calls nodes($i) nodes-3.
        let name = || Some(variable.replace('(', "-").replace(')', ""));
        let edges = match self.objects.get(value) {
            Some(Object::Node(node) | Object::Lan(node)) => {
                let node = &mut self.topology.nodes[*node];
                node.name = node.name.take().or_else(name);
                node.variable.get_or_insert_with(|| variable.to_owned());
                return;
            }
            Some(Object::Link(edges)) => &edges[..],
            Some(Object::Direction((edge, _))) if !self.topology.edges[*edge].duplex => &[*edge],
            _ => return,
        };
        for &edge in edges {
            let edge = &mut self.topology.edges[edge];
            edge.name = edge.name.take().or_else(name);
        }
    }
}

impl Script<'_> {
    pub(super) fn handle(&mut self, object: Object) -> String {
        let handle = format!("_o{}", self.objects.len());
        self.objects.insert(handle.clone(), object);
        handle
    }

    fn make(&mut self, line: usize, rest: &[String]) -> String {
        let class = rest.first().map(|class| class.to_ascii_lowercase()).unwrap_or_default();
        if class == "simulator" {
            return self.handle(Object::Simulator);
        }
        if class == "errormodel" || class == "errormodel/uniform" {
            return self.handle(Object::Errors(Errors::new(line, &rest[1..])));
        }
        if class == "eventgroup" {
            self.topology.dialect = Dialect::Emulab;
            return self.handle(Object::Group(Vec::new()));
        }
        if let Some(variable) = Variable::named(&class) {
            return self.handle(Object::Random(variable));
        }
        self.note(line, rest, AGENTS);
        let handle = self.handle(Object::Other);
        self.names.insert(handle.clone(), format!("[{}]", self.said.join(" ")));
        handle
    }

    /// A command of the simulator.
    fn simulator(&mut self, line: usize, words: &[String]) -> Result<String> {
        let words = if words.first().is_some_and(|word| word.eq_ignore_ascii_case("set")) {
            &words[1..]
        } else {
            words
        };
        if self.now.is_some() {
            return self.simulator_then(line, words);
        }
        let command = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        let rest = words.get(1..).unwrap_or_default();
        match command.as_str() {
            "node" => self.node(line, false).map(|node| self.handle(Object::Node(node))),
            "duplex-link" | "simplex-link" => self.connect(line, rest, command == "duplex-link"),
            "make-lan" | "newlan" => self.lan(line, rest),
            "link" => self.between(line, rest).map(|half| self.handle(Object::Direction(half))),
            "lanlink" => self
                .cable(line, rest.get(1), rest.first())
                .map(|edge| self.handle(Object::Direction((edge, true)))),
            "queue-limit" => {
                let half = self.between(line, rest)?;
                let limit = read(line, "queue-limit", rest.get(2), "50", count)?;
                self.direction(half).queue.hold(limit);
                Ok(String::new())
            }
            "lossmodel" | "link-lossmodel" => self.lossy(line, words),
            "delay" | "bandwidth" => {
                let (edge, forward) = self.between(line, rest)?;
                let setting = match command.as_str() {
                    "delay" => Setting::Delay(self.delay(line, rest.get(2))?),
                    _ => Setting::Rate(read(line, "bandwidth", rest.get(2), "1Mb", ns_rate)?),
                };
                self.direction((edge, forward)).apply(setting);
                if rest.get(3).is_some_and(|word| word == "duplex") {
                    self.direction((edge, !forward)).apply(setting);
                }
                Ok(String::new())
            }
            "event-group" => self.group(line, rest),
            "at" => self.at(line, rest),
            "rtmodel-at" => self.switched_at(line, rest),
            "rtmodel" => self.route_model(line, rest),
            "now" => Ok(self.clock()),
            "run" => Ok(String::new()),
            "rtproto" => {
                let kind = rest.first().map(|kind| kind.to_ascii_lowercase()).unwrap_or_default();
                if !["static", "session"].contains(&&*kind) {
                    self.note(line, words, "paths are computed once, before the run");
                }
                Ok(String::new())
            }
            _ => {
                self.note(line, words, NO_COUNTERPART);
                Ok(self.handle(Object::Other))
            }
        }
    }

    fn node(&mut self, line: usize, lan: bool) -> Result<usize> {
        let count = self.topology.nodes.len().max(self.topology.edges.len()) + 1;
        ImportError::if_above(count, MOST, line, "nodes or links", "import a smaller network")?;
        self.topology.nodes.push(Node { name: None, variable: None, lan });
        Ok(self.topology.nodes.len() - 1)
    }

    /// `duplex-link A B RATE DELAY QUEUE`.
    fn connect(&mut self, line: usize, rest: &[String], duplex: bool) -> Result<String> {
        let ends = (self.node_of(line, rest.first())?, self.node_of(line, rest.get(1))?);
        let what = "the link begins and ends at the same node";
        ImportError::unless(ends.0 != ends.1, line, what, "name two nodes")?;
        let rate = read(line, "the link's rate", rest.get(2), "100Mb", ns_rate)?;
        let delay = self.delay(line, rest.get(3))?;
        let kind = rest.get(4).map(String::as_str).unwrap_or_default();
        let queue = self.queue_or_tail(line, kind)?;
        let direction = Direction { rate, delay, loss: Share::ZERO, loss_behind: false, queue };
        let edge = self.edge(line, ends, duplex, direction)?;
        Ok(self.handle(Object::Link(vec![edge])))
    }

    fn edge(
        &mut self,
        line: usize,
        ends: (usize, usize),
        duplex: bool,
        direction: Direction,
    ) -> Result<usize> {
        let count = self.topology.edges.len() + 1;
        ImportError::if_above(count, MOST, line, "links", "import a smaller network")?;
        let (there, back) = (direction.clone(), direction);
        self.topology.edges.push(Edge { line, name: None, ends, duplex, there, back });
        Ok(self.topology.edges.len() - 1)
    }

    pub(super) fn delay(&mut self, line: usize, word: Option<&String>) -> Result<Nanos> {
        let short = |word: &str| seconds(word).filter(|delay| *delay <= LONGEST_DELAY);
        let delay = read(line, "the delay", word, "10ms", short)?;
        if let Some(word) = word.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
            && delay > Nanos::ZERO
        {
            self.notes.add(line, word, "a delay without unit is taken as seconds, as ns does");
        }
        Ok(delay)
    }

    pub(super) fn node_of(&self, line: usize, word: Option<&String>) -> Result<usize> {
        let word = word.map_or("", String::as_str);
        match self.objects.get(word) {
            Some(Object::Node(node)) => Ok(*node),
            _ => {
                let what = format!("\"{word}\" is not a node");
                Err(ImportError::new(line, what, "make it with set n0 [$ns node], and write $n0"))
            }
        }
    }

    /// The link from the first node to the second, and whether that is its forward direction.
    pub(super) fn between(&self, line: usize, words: &[String]) -> Result<Half> {
        let (from, to) = (self.node_of(line, words.first())?, self.node_of(line, words.get(1))?);
        let mut edges = self.topology.edges.iter().enumerate();
        let found = edges.find_map(|(at, edge)| match edge.ends {
            ends if ends == (from, to) => Some((at, true)),
            ends if ends == (to, from) && edge.duplex => Some((at, false)),
            _ => None,
        });
        found.ok_or_else(|| ImportError::new(line, "there is no link between these nodes", "make it first"))
    }

    pub(super) fn direction(&mut self, (edge, forward): Half) -> &mut Direction {
        let edge = &mut self.topology.edges[edge];
        if forward { &mut edge.there } else { &mut edge.back }
    }

    /// The current state of a direction: as set up and as changed by events.
    pub(super) fn present(&mut self, half: Half) -> &mut Direction {
        if self.now.is_none() {
            return self.direction(half);
        }
        let direction = self.direction(half).clone();
        self.present.entry(half).or_insert(direction)
    }

    /// Applies a command to a link before the run.
    fn link(&mut self, line: usize, edges: &[usize], rest: &[String]) -> Result<String> {
        match (rest.first().map(String::as_str), edges) {
            (Some("queue" | "link"), [edge]) => self.one_direction(line, (*edge, true), rest),
            _ => self.skip(line, rest, NO_COUNTERPART),
        }
    }

    /// Applies a command to `[$ns link A B]`: `queue` and `link` are its parts.
    fn one_direction(&mut self, line: usize, half: Half, rest: &[String]) -> Result<String> {
        match (rest.first().map(String::as_str), self.now) {
            (Some("queue"), _) if rest.len() == 1 => Ok(self.handle(Object::Queue(half))),
            (Some("link"), _) if rest.len() == 1 => Ok(self.handle(Object::Delay(half))),
            (Some(_), Some(_)) => self.change(line, &[half.0], only(half), rest),
            _ => self.skip(line, rest, NO_COUNTERPART),
        }
    }

    /// `$q set limit_ 20`.
    fn queue(&mut self, line: usize, half: Half, rest: &[String]) -> Result<String> {
        let words = if rest.first().is_some_and(|word| word == "set") { &rest[1..] } else { rest };
        let key = words.first().map(|key| key.to_ascii_lowercase()).unwrap_or_default();
        let dialect = self.topology.dialect;
        let known = match words.get(1) {
            None => {
                if let Some(value) = self.present(half).queue.value(&key, dialect) {
                    return Ok(value);
                }
                false
            }
            value if self.now.is_some() => self.queue_then(line, half, &key, value)?,
            value => self.direction(half).queue.set(line, &key, value)?,
        };
        if known {
            return Ok(String::new());
        }
        let event = self.now.is_some() && dialect == Dialect::Emulab;
        self.skip(line, rest, if event { "no event of Emulab's sets it" } else { NO_SETTING })
    }
}
