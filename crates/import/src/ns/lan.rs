//! LANs of ns scripts: `make-lan` of Emulab and ns-2, and ns-2's `newLan`.

use super::{Object, Script};
use crate::Result;
use crate::ns_value::read;
use crate::quantity::{Share, ns_rate};
use crate::tcl::items;
use crate::topology::Direction;
use longwire_units::Nanos;

impl Script<'_> {
    /// `make-lan "A B C" RATE DELAY`: half of the delay on the sender's cable, half on the receiver's.
    pub(super) fn lan(&mut self, line: usize, rest: &[String]) -> Result<String> {
        let nodes = rest.first().map(|list| items(list)).unwrap_or_default();
        let rate = read(line, "the LAN's rate", rest.get(1), "100Mb", ns_rate)?;
        let delay = Nanos(self.delay(line, rest.get(2))?.0 / 2);
        let (kind, others) = layers(rest.get(3..).unwrap_or_default());
        let queue = self.queue_or_tail(line, kind)?;
        if !others.is_empty() {
            self.note(line, &others, "of a LAN its rate, delay and queue are carried over");
        }
        let direction = Direction { rate, delay, loss: Share::ZERO, loss_behind: false, queue };
        let lan = self.node(line, true)?;
        for node in &nodes {
            let node = self.node_of(line, Some(node))?;
            self.edge(line, (node, lan), true, direction.clone())?;
        }
        Ok(self.handle(Object::Lan(lan)))
    }
}

/// The queue's kind among a LAN's layers, and the others: `LL Queue/DropTail Mac/802_3 Channel`, or with
/// names, as in `-ifqType Queue/DropTail`.
fn layers(words: &[String]) -> (&str, Vec<String>) {
    let option = words.iter().position(|word| word == "-ifqType");
    let is_named = words.first().is_some_and(|word| word.starts_with('-'));
    let queue = if is_named { option.map(|at| at + 1) } else { Some(1) };
    let kind = queue.and_then(|at| words.get(at)).map_or("DropTail", String::as_str);
    let is_other = |(at, word): (usize, &String)| {
        let is_queue = Some(at) == queue || Some(at) == option;
        (!is_queue).then(|| word.clone())
    };
    let others = words.iter().enumerate().filter_map(is_other).collect();
    (kind.strip_prefix("Queue/").unwrap_or(kind), others)
}
