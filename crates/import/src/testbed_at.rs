//! Events of Emulab, as handled by its delay agent.
//!
//! Each direction of a link is a dummynet pipe: pipe0 from the first node, pipe1 back; pipe0 of a LAN's cable
//! leads to the LAN. The agent reads whole kbit/s and whole milliseconds and ignores what follows the digits;
//! a `LIMIT` counts packets; a LAN's queues are those of pipe0 (event/delay-agent/callback.c,
//! `get_new_link_params`).

use super::Result;
use super::ns::Script;
use super::ns_queue::{Dialect, Queue};
use super::ns_value::{read, seconds};
use super::quantity::{LONGEST_DELAY, Share};
use super::topology::{Half, Setting};

/// Parameters of a pipe's queue, with their names in scripts.
const OF_QUEUES: [(&str, &str); 6] = [
    ("LIMIT", "limit_"),
    ("QUEUE-IN-BYTES", "queue-in-bytes_"),
    ("MAXTHRESH", "maxthresh_"),
    ("THRESH", "thresh_"),
    ("LINTERM", "linterm_"),
    ("Q_WEIGHT", "q_weight_"),
];
/// Why whole numbers are taken.
const WHOLE_KBITS: &str = "Emulab's delay agent reads whole kbit/s, whatever follows the digits";
const WHOLE_MILLIS: &str = "Emulab's delay agent reads whole milliseconds, whatever follows the digits";

/// A parameter of a queue and its value.
type Parameter<'p> = (&'static str, &'p str);

impl Script<'_> {
    /// `modify KEY=VALUE …` of links, in these directions unless `PIPE=` names one.
    pub(super) fn modify(
        &mut self,
        line: usize,
        edges: &[usize],
        directions: [bool; 2],
        parameters: &[&String],
    ) -> Result<()> {
        self.topology.dialect = Dialect::Emulab;
        let pairs = parameters.iter().filter_map(|word| word.split_once('='));
        let mut pipe = match directions {
            [true, true] => None,
            [forward, _] => Some(forward),
        };
        let (mut settings, mut of_queue) = (Vec::new(), Vec::new());
        for (key, value) in pairs {
            let name = key.to_ascii_uppercase();
            if let Some((name, _)) = OF_QUEUES.iter().find(|(other, _)| *other == name) {
                of_queue.push((*name, value));
            } else if name == "PIPE" {
                pipe = match value {
                    "pipe0" => Some(true),
                    "pipe1" => Some(false),
                    _ => {
                        let why = "which direction has this pipe is not known here: write pipe0 or pipe1; \
                            nothing of it is carried over";
                        self.note(line, &[format!("{key}={value}")], why);
                        return Ok(());
                    }
                };
            } else if let Some(setting) = self.modified(line, &name, value)? {
                settings.push(setting);
            } else {
                let why = "of an event's parameters BANDWIDTH, DELAY, PLR, PIPE and those of queues are \
                    carried over";
                self.note(line, &[format!("{key}={value}")], why);
            }
        }
        let directions = [pipe != Some(false), pipe != Some(true)];
        self.note_lans(line, edges, directions, &settings);
        self.settle(line, edges, directions, &settings)?;
        for &edge in edges.iter().filter(|_| !of_queue.is_empty()) {
            self.modify_queues(line, edge, pipe, &of_queue)?;
        }
        Ok(())
    }

    /// The delay agent's interpretation of `KEY=VALUE`; none if it is not a link parameter.
    pub(super) fn modified(&mut self, line: usize, key: &str, value: &str) -> Result<Option<Setting>> {
        let text = value.to_owned();
        let setting = match key {
            "BANDWIDTH" => {
                let (kbits, unit) = read(line, key, Some(&text), "1000 (kbit/s)", leading)?;
                if !unit.is_empty() {
                    self.note(line, &[format!("{key}={value}")], WHOLE_KBITS);
                }
                Setting::Rate(kbits.saturating_mul(1000))
            }
            "DELAY" => {
                let (millis, unit) = read(line, key, Some(&text), "10 (ms)", leading)?;
                if !["", "ms", "msec"].contains(&&*unit.to_ascii_lowercase()) {
                    self.note(line, &[format!("{key}={value}")], WHOLE_MILLIS);
                }
                let millis = format!("{millis}ms");
                let delay = |word: &str| seconds(word).filter(|delay| *delay <= LONGEST_DELAY);
                Setting::Delay(read(line, key, Some(&millis), "10 (ms)", delay)?)
            }
            "PLR" => Setting::Loss(read(line, key, Some(&text), "0.1", Share::fraction)?),
            _ => return Ok(None),
        };
        Ok(Some(setting))
    }

    /// Notes the effect of an event on both pipes of a LAN's cables: `make-lan` splits its values between two
    /// pipes, the agent does not.
    pub(super) fn note_lans(
        &mut self,
        line: usize,
        edges: &[usize],
        directions: [bool; 2],
        settings: &[Setting],
    ) {
        let emulab = self.topology.dialect == Dialect::Emulab;
        if !emulab || directions != [true, true] || !edges.iter().any(|edge| self.is_of_lan(*edge)) {
            return;
        }
        for setting in settings {
            match setting {
                Setting::Delay(delay) => {
                    let why = format!(
                        "Emulab's delay agent delays by all of it on each cable, to the LAN and from it, \
                         where make-lan shares its delay: it is {} from node to node",
                        *delay + *delay
                    );
                    self.notes.add(line, &format!("DELAY={}", delay.0 / 1_000_000), why);
                }
                Setting::Loss(loss) if *loss > Share::ZERO => {
                    let why = "Emulab's delay agent loses so many on each cable, to the LAN and from it, \
                        where tb-set-lan-loss shares it";
                    self.notes.add(line, &format!("PLR={}", loss.decimal()), why);
                }
                _ => {}
            }
        }
    }

    fn is_of_lan(&self, edge: usize) -> bool {
        self.topology.nodes[self.topology.edges[edge].ends.1].lan
    }

    /// `$q set limit_ 20` at a time: an event for the queue's pipe. Returns whether there is such a
    /// parameter.
    pub(super) fn event_of_queue(
        &mut self,
        line: usize,
        (edge, forward): Half,
        key: &str,
        value: Option<&String>,
    ) -> Result<bool> {
        let Some((name, _)) = OF_QUEUES.iter().find(|(_, own)| *own == key) else { return Ok(false) };
        let value = value.map_or("", String::as_str);
        self.modify_queues(line, edge, Some(forward), &[(name, value)])?;
        Ok(true)
    }

    /// Sets the queues of a link's pipes, or of one.
    fn modify_queues(
        &mut self,
        line: usize,
        edge: usize,
        pipe: Option<bool>,
        parameters: &[Parameter<'_>],
    ) -> Result<()> {
        let lan = self.is_of_lan(edge);
        let before = [true, false].map(|forward| self.present((edge, forward)).queue.clone());
        let mut queues = before.clone();
        let first = usize::from(pipe == Some(false));
        let both = pipe.is_none() && !lan;
        for parameter in parameters {
            set_queues(line, &mut queues, (first, both), *parameter)?;
        }
        self.note_flags(line, (&before, &queues), (first, both), parameters);
        if lan && pipe.is_none() {
            let told: Vec<String> = parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let why = "to a LAN Emulab's delay agent sets the queues of the cables on the way to it, and not \
                on the way from it";
            self.notes.add(line, &told.join(" "), why);
        }
        let duplex = self.topology.edges[edge].duplex;
        for (direction, queue) in queues.into_iter().enumerate() {
            if (direction == first || both) && (direction == 0 || duplex) {
                self.put_queue(line, (edge, direction == 0), queue)?;
            }
        }
        Ok(())
    }

    /// Notes the agent's handling of flags: a `LIMIT` clears the flag for bytes, and without `PIPE` the
    /// others are copied from pipe to pipe.
    fn note_flags(
        &mut self,
        line: usize,
        (before, after): (&[Queue; 2], &[Queue; 2]),
        (first, both): (usize, bool),
        parameters: &[Parameter<'_>],
    ) {
        let last = |wanted: &str| parameters.iter().rev().find(|(key, _)| *key == wanted);
        let (Some((key, value)), others) = (match (last("LIMIT"), last("QUEUE-IN-BYTES")) {
            (Some(limit), bytes) => (Some(limit), bytes.is_some()),
            (None, bytes) => (bytes, false),
        }) else {
            return;
        };
        let mut cleared = before[first].clone();
        cleared.count_bytes(false);
        let why = if both && !others && *key == "LIMIT" && after[0].flags() != cleared.flags() {
            format!(
                "Emulab's delay agent takes a LIMIT for packets, but for both pipes goes on with the flags \
                 of pipe1: {}",
                after[0].flags()
            )
        } else if both && *key == "QUEUE-IN-BYTES" && after[1].flags() != before[1].flags() {
            format!(
                "for both pipes Emulab's delay agent goes on with the flags of pipe0: {}",
                after[1].flags()
            )
        } else if !others && *key == "LIMIT" && before[first].counts_bytes() {
            "Emulab's delay agent takes a LIMIT for packets, whatever queue-in-bytes_ said before".into()
        } else {
            return;
        };
        self.notes.add(line, &format!("{key}={value}"), why);
    }
}

/// Sets a parameter of the queue of the pipe `first`, and of pipe1, too, if it is for both.
fn set_queues(
    line: usize,
    queues: &mut [Queue; 2],
    (first, both): (usize, bool),
    (key, value): Parameter<'_>,
) -> Result<()> {
    let text = value.to_owned();
    let name = OF_QUEUES.iter().find(|(other, _)| *other == key).map_or(key, |(_, name)| name);
    if key == "QUEUE-IN-BYTES" {
        queues[first].count_bytes(leading(value).is_some_and(|(number, _)| number > 0));
        if both {
            let flags = queues[0].clone();
            queues[1].take_flags(&flags);
        }
        return Ok(());
    }
    queues[first].set(line, name, Some(&text))?;
    if both {
        queues[1].set(line, name, Some(&text))?;
    }
    if key == "LIMIT" {
        queues[first].count_bytes(false);
        if both {
            // As in the agent, in the reverse order of the rest.
            let flags = queues[1].clone();
            queues[0].take_flags(&flags);
        }
    }
    Ok(())
}

/// The leading whole number, as parsed by C's `atoi`, and the rest.
fn leading(text: &str) -> Option<(u64, String)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, text[digits..].to_owned()))
}
