//! Emulab's own commands in ns scripts: `tb-set-link-loss`, `tb-set-lan-simplex-params` and similar ones.

use super::ns::{MOST, Object, Script};
use super::ns_queue::Dialect;
use super::ns_value::read;
use super::quantity::{Share, ns_rate};
use super::topology::{Edge, Half, Setting};
use super::{ImportError, Result};

impl Script<'_> {
    /// Emulab's own commands.
    pub(super) fn testbed(&mut self, line: usize, name: &str, words: &[String]) -> Result<String> {
        let rest = &words[1..];
        match name {
            "tb-set-link-loss" | "tb-set-lan-loss" => self.loss(line, rest)?,
            "tb-set-link-simplex-params" => {
                let edge = self.edge_of(line, rest.first())?;
                let source = self.node_of(line, rest.get(1))?;
                let Edge { ends, duplex, .. } = self.topology.edges[edge];
                let forward = source == ends.0;
                let is_end = forward || duplex && source == ends.1;
                let fix = "name one of its ends, of a simplex link the first";
                ImportError::unless(is_end, line, "the link does not begin at this node", fix)?;
                self.set(line, (edge, forward), rest.get(2..).unwrap_or_default())?;
            }
            "tb-set-lan-simplex-params" => {
                let edge = self.cable(line, rest.get(1), rest.first())?;
                self.set(line, (edge, true), rest.get(2..5).unwrap_or_default())?;
                self.set(line, (edge, false), rest.get(5..8).unwrap_or_default())?;
            }
            "tb-set-node-lan-params" => {
                let edge = self.cable(line, rest.first(), rest.get(1))?;
                self.set(line, (edge, true), rest.get(2..).unwrap_or_default())?;
                self.set(line, (edge, false), rest.get(2..).unwrap_or_default())?;
            }
            "tb-set-node-lan-delay" | "tb-set-node-lan-bandwidth" | "tb-set-node-lan-loss" => {
                let edge = self.cable(line, rest.first(), rest.get(1))?;
                let value = rest.get(2);
                let setting = match name {
                    "tb-set-node-lan-delay" => Setting::Delay(self.delay(line, value)?),
                    "tb-set-node-lan-bandwidth" => Setting::Rate(read(line, name, value, "10Mb", ns_rate)?),
                    _ => Setting::Loss(read(line, name, value, "0.1", Share::fraction)?),
                };
                self.direction((edge, true)).apply(setting);
                self.direction((edge, false)).apply(setting);
            }
            _ if name.starts_with("tb-set-ip") => {
                self.note(line, words, "hosts have addresses of one subnet here, in their order");
            }
            _ => self.note(line, words, "it configures Emulab's machines"),
        }
        Ok(String::new())
    }

    /// `tb-set-link-loss LINK P`, `tb-set-link-loss A B P`, `tb-set-lan-loss LAN P`. A LAN's loss is that of
    /// two cables.
    fn loss(&mut self, line: usize, rest: &[String]) -> Result<()> {
        let share = read(line, "the loss", rest.last(), "0.05", Share::fraction)?;
        let object = rest.first().and_then(|handle| self.objects.get(handle)).cloned();
        let (edges, share) = match object {
            Some(Object::Lan(lan)) => (self.topology.edges_of(lan).collect(), share.half_of_two()),
            Some(Object::Link(edges)) => (edges, share),
            _ => (vec![self.between(line, rest)?.0], share),
        };
        for edge in edges {
            self.direction((edge, true)).loss = share;
            self.direction((edge, false)).loss = share;
        }
        Ok(())
    }

    /// `$ns event-group [list $link0 $link1]`.
    pub(super) fn group(&mut self, line: usize, rest: &[String]) -> Result<String> {
        self.topology.dialect = Dialect::Emulab;
        let handle = self.handle(Object::Group(Vec::new()));
        let members = rest.first().map(String::as_str).unwrap_or_default().split_whitespace();
        let words: Vec<String> = std::iter::once("add").chain(members).map(String::from).collect();
        self.gather(line, (&handle, Vec::new()), &words)?;
        Ok(handle)
    }

    /// `$group add $link0 $link1`.
    pub(super) fn gather(
        &mut self,
        line: usize,
        (handle, mut edges): (&String, Vec<usize>),
        rest: &[String],
    ) -> Result<String> {
        for member in rest.iter().skip(1) {
            match self.objects.get(member) {
                Some(Object::Link(more)) => edges.extend(more),
                Some(Object::Lan(lan)) => edges.extend(self.topology.edges_of(*lan)),
                _ => self.note(line, rest, "of event groups those of links are carried over"),
            }
            let what = format!("the group has more than {MOST} links");
            ImportError::unless(edges.len() <= MOST, line, what, "import a smaller script")?;
        }
        self.objects.insert(handle.clone(), Object::Group(edges));
        Ok(String::new())
    }

    /// DELAY RATE LOSS of one direction.
    fn set(&mut self, line: usize, half: Half, words: &[String]) -> Result<()> {
        let delay = self.delay(line, words.first())?;
        let rate = read(line, "the bandwidth", words.get(1), "10Mb", ns_rate)?;
        let loss = read(line, "the loss", words.get(2), "0.05", Share::fraction)?;
        let direction = self.direction(half);
        (direction.delay, direction.rate, direction.loss) = (delay, rate, loss);
        Ok(())
    }

    fn edge_of(&self, line: usize, word: Option<&String>) -> Result<usize> {
        match word.and_then(|word| self.objects.get(word)) {
            Some(Object::Link(edges)) if edges.len() == 1 => Ok(edges[0]),
            _ => {
                let fix = "make it with set link0 [$ns duplex-link …], and write $link0";
                Err(ImportError::new(line, "this is not a link", fix))
            }
        }
    }

    /// A node's cable to a LAN.
    pub(super) fn cable(&self, line: usize, node: Option<&String>, lan: Option<&String>) -> Result<usize> {
        let node = self.node_of(line, node)?;
        let Some(Object::Lan(lan)) = lan.and_then(|word| self.objects.get(word)) else {
            let fix = "make it with set lan0 [$ns make-lan …]";
            return Err(ImportError::new(line, "this is no LAN", fix));
        };
        let found = self.topology.edges.iter().position(|edge| edge.ends == (node, *lan));
        found.ok_or_else(|| ImportError::new(line, "the node is not in this LAN", "name it in make-lan"))
    }
}
