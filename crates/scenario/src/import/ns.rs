//! Commands of ns scripts, as ns-2 and Emulab know them.
//!
//! Names of commands and of queue disciplines are read without regard to their case, and `$ns set duplex-link` as
//! `$ns duplex-link`: both occur in published scripts. That a LAN's delay is shared by the cables of sender and receiver is
//! as in Emulab's parser (lanlink.tcl).

use super::ns_queue::{Dialect, Queue};
use super::quantity::{Share, ns_rate, time, whole};
use super::sheet::Sheet;
use super::tcl::{Host, Tcl, items};
use super::topology::{Change, Edge, Node, Topology, Way};
use super::{ImportError, Notes};
use longwire_units::Nanos;
use std::collections::HashMap;

/// Most nodes and links of a script.
const MOST: usize = 20_000;
/// The longest delay of a link.
const LONGEST_DELAY: Nanos = Nanos(100_000_000_000);

/// What a handle stands for.
#[derive(Debug, Clone)]
pub(super) enum Object {
    Simulator,
    Node(usize),
    /// A link of one or more edges, in order.
    Link(Vec<usize>),
    /// A LAN: its node.
    Lan(usize),
    /// The queue of an edge, forward or not.
    Queue(usize, bool),
    /// An error model: how much is lost.
    Errors(Share),
    Other,
}

/// A script's network so far.
pub(super) struct Script<'n> {
    pub(super) topology: Topology,
    pub(super) objects: HashMap<String, Object>,
    /// What is set for all queues, or for those of a kind, from then on.
    pub(super) defaults: Vec<Preset>,
    pub(super) notes: &'n mut Notes,
}

/// `Queue/RED set thresh_ 5`.
pub(super) struct Preset {
    pub(super) class: String,
    pub(super) key: String,
    pub(super) value: String,
}

/// The scenario of this script.
pub(super) fn import(text: &str, notes: &mut Notes) -> Result<Sheet, ImportError> {
    let mut script =
        Script { topology: Topology::default(), objects: HashMap::new(), defaults: Vec::new(), notes };
    Tcl::new(&mut script).run(text, 1)?;
    let topology = script.topology;
    if topology.edges.is_empty() {
        let mend = "write $ns duplex-link $a $b 100Mb 10ms DropTail";
        return Err(ImportError::new(0, "the script makes no link", mend));
    }
    topology.sheet(notes)
}

impl Host for Script<'_> {
    fn call(&mut self, line: usize, words: &[String]) -> Result<String, ImportError> {
        let name = words[0].to_ascii_lowercase();
        let rest = &words[1..];
        match (self.objects.get(&words[0]).cloned(), name.as_str()) {
            (Some(Object::Simulator), _) => self.simulator(line, rest),
            (Some(Object::Link(edges)), _) => self.link(line, &edges, rest),
            (Some(Object::Lan(_) | Object::Node(_) | Object::Other), _) => {
                self.notes.add(line, &told(words), "it has no counterpart here");
                Ok(String::new())
            }
            (Some(Object::Queue(edge, forward)), _) => self.queue(line, edge, forward, rest),
            (Some(Object::Errors(_)), _) => self.errors(line, words),
            (None, "new") => Ok(self.make(line, rest)),
            (None, "set") => self.simulator(line, words),
            (None, "source") => {
                if rest.iter().any(|file| file.ends_with("tb_compat.tcl")) {
                    self.topology.dialect = Dialect::Emulab;
                } else {
                    self.notes.add(line, &told(words), "other files are not read");
                }
                Ok(String::new())
            }
            (None, tb) if tb.starts_with("tb-") => {
                self.topology.dialect = Dialect::Emulab;
                self.testbed(line, tb, words)
            }
            (None, class) if class == "queue" || class.starts_with("queue/") => self.default(line, words),
            _ => {
                self.notes.add(line, &told(words), "the command is not known");
                Ok(String::new())
            }
        }
    }

    fn named(&mut self, value: &str, variable: &str) {
        // Emulab calls nodes($i) nodes-3.
        let name = || Some(variable.replace('(', "-").replace(')', ""));
        match self.objects.get(value) {
            Some(Object::Node(node) | Object::Lan(node)) => {
                let node = &mut self.topology.nodes[*node];
                node.name = node.name.take().or_else(name);
            }
            Some(Object::Link(edges)) => {
                for edge in edges.clone() {
                    let edge = &mut self.topology.edges[edge];
                    edge.name = edge.name.take().or_else(name);
                }
            }
            _ => {}
        }
    }
}

impl Script<'_> {
    fn handle(&mut self, object: Object) -> String {
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
            // ns-2's arguments of the latter are the share and the unit.
            let share = rest.get(1).and_then(|word| Share::fraction(word)).unwrap_or(Share::ZERO);
            return self.handle(Object::Errors(share));
        }
        self.notes.add(
            line,
            &format!("new {}", rest.join(" ")),
            "programs make the traffic here, not agents",
        );
        self.handle(Object::Other)
    }

    /// A command of the simulator.
    fn simulator(&mut self, line: usize, words: &[String]) -> Result<String, ImportError> {
        let words = if words.first().is_some_and(|word| word.eq_ignore_ascii_case("set")) {
            &words[1..]
        } else {
            words
        };
        let command = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        let rest = words.get(1..).unwrap_or_default();
        match command.as_str() {
            "node" => self.node(line, false).map(|node| self.handle(Object::Node(node))),
            "duplex-link" | "simplex-link" => self.connect(line, rest, command == "duplex-link"),
            "make-lan" => self.lan(line, rest),
            "link" => self.between(line, rest).map(|(edge, _)| self.handle(Object::Link(vec![edge]))),
            "queue-limit" => {
                let (edge, forward) = self.between(line, rest)?;
                let limit = read(line, "queue-limit", rest.get(2), "50", whole)?;
                self.way(edge, forward).queue.hold(limit);
                Ok(String::new())
            }
            "lossmodel" | "link-lossmodel" => self.lossy(line, command == "link-lossmodel", rest),
            "delay" | "bandwidth" => {
                let (edge, forward) = self.between(line, rest)?;
                let both = rest.get(3).is_some_and(|word| word == "duplex");
                for forward in if both { vec![true, false] } else { vec![forward] } {
                    if command == "delay" {
                        self.way(edge, forward).delay = self.delay(line, rest.get(2))?;
                    } else {
                        self.way(edge, forward).rate = read(line, "bandwidth", rest.get(2), "1Mb", ns_rate)?;
                    }
                }
                Ok(String::new())
            }
            "at" => self.at(line, rest),
            "rtmodel-at" => {
                let [when, what, nodes @ ..] = rest else {
                    return Err(ImportError::new(
                        line,
                        "rtmodel-at lacks something",
                        "write rtmodel-at 1.0 down $a $b",
                    ));
                };
                let (edge, _) = self.between(line, nodes)?;
                self.change(line, when, &[edge], std::slice::from_ref(what))
            }
            "run" => Ok(String::new()),
            "rtproto"
                if rest
                    .first()
                    .is_some_and(|kind| ["static", "session"].contains(&&*kind.to_ascii_lowercase())) =>
            {
                Ok(String::new())
            }
            "rtproto" => {
                self.notes.add(line, &told(words), "ways are worked out once, before the run");
                Ok(String::new())
            }
            _ => {
                self.notes.add(line, &told(words), "it has no counterpart here");
                Ok(self.handle(Object::Other))
            }
        }
    }

    fn node(&mut self, line: usize, lan: bool) -> Result<usize, ImportError> {
        if self.topology.nodes.len() == MOST || self.topology.edges.len() >= MOST {
            let what = format!("there are more than {MOST} nodes or links");
            return Err(ImportError::new(line, what, "import a smaller network"));
        }
        self.topology.nodes.push(Node { name: None, lan });
        Ok(self.topology.nodes.len() - 1)
    }

    /// `duplex-link A B RATE DELAY QUEUE`.
    fn connect(&mut self, line: usize, rest: &[String], duplex: bool) -> Result<String, ImportError> {
        let ends = (self.node_of(line, rest.first())?, self.node_of(line, rest.get(1))?);
        if ends.0 == ends.1 {
            return Err(ImportError::new(
                line,
                "the link begins and ends at the same node",
                "name two nodes",
            ));
        }
        let rate = read(line, "the link's rate", rest.get(2), "100Mb", ns_rate)?;
        let delay = self.delay(line, rest.get(3))?;
        let kind = rest.get(4).map(String::as_str).unwrap_or_default();
        let mut queue = Queue::named(kind).unwrap_or_else(|| {
            self.notes.add(line, kind, "there is no such queue here, or in Emulab: it is taken for DropTail");
            Queue::default()
        });
        for default in &self.defaults {
            let own =
                default.class.strip_prefix("queue/").is_none_or(|class| class == kind.to_ascii_lowercase());
            if own {
                queue.set(line, &default.key, Some(&default.value))?;
            }
        }
        let edge =
            self.edge(line, ends, duplex, Way { rate, delay, loss: Share::ZERO, loss_behind: false, queue })?;
        Ok(self.handle(Object::Link(vec![edge])))
    }

    fn edge(
        &mut self,
        line: usize,
        ends: (usize, usize),
        duplex: bool,
        way: Way,
    ) -> Result<usize, ImportError> {
        if self.topology.edges.len() == MOST {
            let what = format!("there are more than {MOST} links");
            return Err(ImportError::new(line, what, "import a smaller network"));
        }
        let (there, back) = (way.clone(), way);
        self.topology.edges.push(Edge { line, name: None, ends, duplex, there, back });
        Ok(self.topology.edges.len() - 1)
    }

    /// `make-lan "A B C" RATE DELAY`: half of the delay on the sender's cable, half on the receiver's.
    fn lan(&mut self, line: usize, rest: &[String]) -> Result<String, ImportError> {
        let nodes = rest.first().map(|list| items(list)).unwrap_or_default();
        let rate = read(line, "the LAN's rate", rest.get(1), "100Mb", ns_rate)?;
        let delay = self.delay(line, rest.get(2))?;
        let lan = self.node(line, true)?;
        for node in &nodes {
            let node = self.node_of(line, Some(node))?;
            let delay = Nanos(delay.0 / 2);
            let way = Way { rate, delay, loss: Share::ZERO, loss_behind: false, queue: Queue::default() };
            self.edge(line, (node, lan), true, way)?;
        }
        Ok(self.handle(Object::Lan(lan)))
    }

    pub(super) fn delay(&mut self, line: usize, word: Option<&String>) -> Result<Nanos, ImportError> {
        let short = |word: &str| seconds(word).filter(|delay| *delay <= LONGEST_DELAY);
        let delay = read(line, "the delay", word, "10ms", short)?;
        if let Some(word) = word.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
            && delay > Nanos::ZERO
        {
            self.notes.add(line, word, "a delay without unit is taken as seconds, as ns does");
        }
        Ok(delay)
    }

    pub(super) fn node_of(&self, line: usize, word: Option<&String>) -> Result<usize, ImportError> {
        let word = word.map_or("", String::as_str);
        match self.objects.get(word) {
            Some(Object::Node(node)) => Ok(*node),
            _ => {
                let what = format!("\"{word}\" is no node");
                Err(ImportError::new(line, what, "make it with set n0 [$ns node], and write $n0"))
            }
        }
    }

    /// The link from the first node to the second, and whether that is its forward direction.
    pub(super) fn between(&self, line: usize, words: &[String]) -> Result<(usize, bool), ImportError> {
        let (from, to) = (self.node_of(line, words.first())?, self.node_of(line, words.get(1))?);
        let mut edges = self.topology.edges.iter().enumerate();
        let found = edges.find_map(|(at, edge)| match edge.ends {
            ends if ends == (from, to) => Some((at, true)),
            ends if ends == (to, from) && edge.duplex => Some((at, false)),
            _ => None,
        });
        found.ok_or_else(|| ImportError::new(line, "there is no link between these nodes", "make it first"))
    }

    pub(super) fn way(&mut self, edge: usize, forward: bool) -> &mut Way {
        let edge = &mut self.topology.edges[edge];
        if forward { &mut edge.there } else { &mut edge.back }
    }

    /// `[$ns link A B] queue`, and what is done to a link otherwise.
    fn link(&mut self, line: usize, edges: &[usize], rest: &[String]) -> Result<String, ImportError> {
        match (rest.first().map(String::as_str), edges) {
            (Some("queue"), [edge]) => Ok(self.handle(Object::Queue(*edge, true))),
            _ => {
                self.notes.add(line, &told(rest), "it has no counterpart here");
                Ok(String::new())
            }
        }
    }

    /// `$q set limit_ 20`.
    fn queue(
        &mut self,
        line: usize,
        edge: usize,
        forward: bool,
        rest: &[String],
    ) -> Result<String, ImportError> {
        let rest = if rest.first().is_some_and(|word| word == "set") { &rest[1..] } else { rest };
        let key = rest.first().map(|key| key.to_ascii_lowercase()).unwrap_or_default();
        if !self.way(edge, forward).queue.set(line, &key, rest.get(1))? {
            self.notes.add(line, &told(rest), "the queues here have no such setting");
        }
        Ok(String::new())
    }

    /// `at TIME "COMMAND"`.
    fn at(&mut self, line: usize, rest: &[String]) -> Result<String, ImportError> {
        let [when, what] = rest else {
            return Err(ImportError::new(
                line,
                "at takes a time and a command",
                "write $ns at 10.0 \"$link0 down\"",
            ));
        };
        let words = items(what);
        let edges = match words.first().and_then(|handle| self.objects.get(handle)) {
            Some(Object::Link(edges)) => edges.clone(),
            Some(Object::Lan(lan)) => {
                let edges = self.topology.edges.iter().enumerate();
                edges.filter(|(_, edge)| edge.ends.1 == *lan).map(|(at, _)| at).collect()
            }
            _ => {
                self.notes.add(
                    line,
                    &format!("at {when} {what}"),
                    "changes of links are read where the link is named: write $ns at 1.0 \"$link0 bandwidth 3Mb duplex\"",
                );
                return Ok(String::new());
            }
        };
        self.change(line, when, &edges, &words[1..])
    }

    /// A change of links: `down`, `up`, `bandwidth 10Mb duplex`, `delay 10ms`, `plr 0.1`, `modify bandwidth=10Mb`.
    fn change(
        &mut self,
        line: usize,
        when: &str,
        edges: &[usize],
        words: &[String],
    ) -> Result<String, ImportError> {
        let time = read(line, "at", Some(&when.to_owned()), "10.0", seconds)?;
        let mut settings = Vec::new();
        let mut ways = [true, true];
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let (key, given) =
                word.split_once('=').map_or((word.as_str(), None), |(key, value)| (key, Some(value)));
            let mut value = || given.map(str::to_owned).or_else(|| rest.next().cloned());
            match key.to_ascii_lowercase().as_str() {
                "up" => settings.push(("state", "up".into())),
                "down" => settings.push(("state", "down".into())),
                "bandwidth" | "bw" => {
                    let rate = read(line, key, value().as_ref(), "10Mb", ns_rate)?;
                    let text = super::quantity::rate_text(rate);
                    let wrong = || {
                        ImportError::new(line, format!("no link can have {rate} bit/s"), "300 bit/s or more")
                    };
                    settings.push(("rate", text.ok_or_else(wrong)?));
                }
                "delay" => {
                    settings.push(("delay", read(line, key, value().as_ref(), "10ms", seconds)?.to_string()));
                }
                "plr" | "loss" => {
                    settings
                        .push(("loss", read(line, key, value().as_ref(), "0.1", Share::fraction)?.text()));
                }
                "modify" | "duplex" => {}
                "simplex" => ways = [true, false],
                _ => self.notes.add(
                    line,
                    &told(words),
                    "of a link its bandwidth, delay, plr, up and down can change",
                ),
            }
        }
        if !settings.is_empty() {
            for edge in edges {
                self.topology.changes.push(Change { time, edge: *edge, ways, settings: settings.clone() });
            }
        }
        if self.topology.changes.len() > MOST {
            let what = format!("there are more than {MOST} changes");
            return Err(ImportError::new(line, what, "import a smaller script"));
        }
        Ok(String::new())
    }
}

/// A value as `reader` reads it.
pub(super) fn read<T>(
    line: usize,
    what: &str,
    word: Option<&String>,
    example: &str,
    reader: impl FnOnce(&str) -> Option<T>,
) -> Result<T, ImportError> {
    let word = word.map_or("", String::as_str);
    reader(word).ok_or_else(|| {
        ImportError::new(
            line,
            format!("{what}: \"{word}\" can't be understood"),
            format!("write one such as {example}"),
        )
    })
}

/// A time of ns: seconds, unless there is a unit.
fn seconds(text: &str) -> Option<Nanos> {
    time(text, 1_000_000_000)
}

/// A command for a note: what it is called with, without handles.
pub(super) fn told(words: &[String]) -> String {
    let shown = words.iter().map(|word| if word.starts_with("_o") { "$…" } else { word.as_str() });
    shown.collect::<Vec<_>>().join(" ")
}
