//! `tc` commands of scripts and batch files, and the output of `tc qdisc show`, as a scenario of two hosts.
//!
//! A qdisc shapes the output of its interface. The first interface is treated as that of host `a` towards
//! host `b`, the second, as on a box between two networks, as the reverse direction. Of a script's
//! consecutive commands for an interface, the last one is used that tc does not refuse.

use super::lines::{Line, commands};
use super::netem::{FIRST_OPTIONS, Netem};
use super::qdisc::{Device, Qdisc, SHOWN};
use super::sheet::{Sheet, name_of};
use super::sleeps::Clock;
use super::stage::Stage;
use super::words::{Words, named};
use super::{ImportError, Notes, Result, shell};

/// Objects and verbs of tc, in its order of matching abbreviations.
const OBJECTS: [&str; 7] = ["qdisc", "class", "filter", "chain", "actions", "monitor", "exec"];
const VERBS: [&str; 7] = ["add", "change", "replace", "link", "delete", "list", "show"];
/// Options of tc that have a value.
const WITH_VALUE: [&str; 3] = ["-batch", "-netns", "-conf"];
/// All options of tc with the same beginnings, in tc's order.
const SWITCHES: [&str; 6] = ["-batch", "-netns", "-names", "-nm", "-cf", "-conf"];
/// Network commands other than tc.
const NETWORKING: [&str; 8] = ["ip", "ifconfig", "ethtool", "iptables", "ip6tables", "nft", "ipfw", "brctl"];
/// Why a command is left out.
const NO_QDISC: &str = "it is not a qdisc of tc";
/// Commands that print their words.
const PRINTING: [&str; 3] = ["echo", "printf", "logger"];
/// Most interfaces and qdiscs that are kept.
const MOST: usize = 1000;
/// Deepest nesting of commands in words of commands: `sh -c "…"`.
const DEEPEST: usize = 3;

/// The links for netem's options, and its seed.
pub(super) fn options(text: &str, notes: &mut Notes) -> Result<(Vec<Stage>, Option<u64>)> {
    let lines = commands(text)?;
    let words: Vec<String> = lines.into_iter().flat_map(|line| line.words).collect();
    let at = words.iter().position(|word| word == "netem").map_or(0, |at| at + 1);
    if words.len() == at {
        return Err(nothing());
    }
    let netem = Netem::read(&mut Words::new(0, &words[at..]), notes)?;
    Ok((netem.stages(notes)?, netem.seed))
}

/// The scenario of these commands.
pub(super) fn import(text: &str, notes: &mut Notes) -> Result<Sheet> {
    let mut reader = Reader { devices: Vec::new(), others: 0, other: None, notes };
    let mut clock = Clock::default();
    for line in shell::run(text, is_ours, reader.notes)? {
        if !clock.passes(&line, reader.notes) {
            reader.command(&line, 0)?;
        }
    }
    reader.tell_others();
    let devices = reader.devices;
    let mut sheet = Sheet::new("Two hosts, and between them the effect of tc on an interface.");
    let mut ways = Vec::new();
    for device in &devices {
        let (stages, seed) = device.stages(&name_of(&device.name), notes)?;
        sheet.seed = sheet.seed.or(seed);
        if stages.is_empty() {
            continue;
        }
        if ways.len() == 2 || (device.name == "lo" && !ways.is_empty()) {
            let why = "two interfaces make the two directions between two hosts; import this one by itself";
            notes.add(device.line(), &format!("dev {}", device.name), why);
            continue;
        }
        ways.push((name_of(&device.name), stages));
    }
    let mut ways = ways.into_iter();
    let (name, there) = ways.next().ok_or_else(nothing)?;
    let (other, back) = match ways.next() {
        Some((other, _)) if other == name => (format!("{other}-back"), Vec::new()),
        Some(way) => way,
        None if name == "lo" => ("lo-back".into(), there.clone()),
        None => (format!("{name}-back"), Vec::new()),
    };
    sheet.host("a");
    sheet.host("b");
    sheet.chain(("a", "b"), (&name, &other), there, back);
    Ok(sheet)
}

fn nothing() -> ImportError {
    let fix = "write tc qdisc add dev eth0 root netem delay 100ms loss 1%, or netem's options alone";
    ImportError::new(0, "there is no netem and no tbf in it", fix)
}

fn is_tc(word: &str) -> bool {
    word == "tc"
        || word.ends_with("/tc")
        || word.eq_ignore_ascii_case("$tc")
        || word.eq_ignore_ascii_case("${tc}")
}

/// Whether a command is tc, or contains it.
pub(super) fn is_ours(words: &[String]) -> bool {
    words.iter().any(|word| is_tc(word) || word.split_whitespace().any(is_tc))
}

/// Interfaces so far, and the number of other commands.
struct Reader<'n> {
    devices: Vec<Device>,
    other: Option<Line>,
    others: usize,
    notes: &'n mut Notes,
}

impl Reader<'_> {
    fn command(&mut self, line: &Line, depth: usize) -> Result<()> {
        if PRINTING.contains(&command_of(line)) {
            if line.words.iter().any(|word| word.contains("qdisc")) {
                let why = "it is printed, not executed: import it by itself if another command executes it";
                self.notes.add(line.number, &line.text(), why);
            }
            return Ok(());
        }
        let Some(at) = line.words.iter().position(|word| is_tc(word)) else {
            return self.without_tc(line, depth);
        };
        let mut words = &line.words[at + 1..];
        let mut space = namespace(&line.words[..at]);
        while let Some((option, rest)) = words.split_first().filter(|(option, _)| option.starts_with('-')) {
            let name = named(option, &SWITCHES);
            if name == Some("-netns") {
                space = rest.first().map(String::as_str);
            }
            words = if name.is_some_and(|name| WITH_VALUE.contains(&name) || name == "-cf") {
                rest.get(1..).unwrap_or_default()
            } else {
                rest
            };
        }
        match words.first().and_then(|word| named(word, &OBJECTS)) {
            Some("qdisc") => self.changed(line, &words[1..], space)?,
            Some("class" | "filter" | "chain" | "actions") => {
                let why = "classes and filters of tc are not carried over: all packets take the same link; \
                           a link's match or filter chooses packets here";
                self.notes.add(line.number, &line.text(), why);
            }
            // Commands of a batch file may follow.
            None if words.is_empty() => {}
            _ => self.notes.add(line.number, &line.text(), NO_QDISC),
        }
        Ok(())
    }

    /// A line of a batch file, output of tc, netem's options alone, a command in a word of another, or none
    /// of these.
    fn without_tc(&mut self, line: &Line, depth: usize) -> Result<()> {
        let words = &line.words;
        let first = words.first().map_or("", String::as_str);
        let batch = named(first, &OBJECTS[..1]).is_some()
            && words.get(1).is_some_and(|word| named(word, &VERBS[..5]).is_some())
            && words.iter().any(|word| word == "dev");
        if batch {
            return self.changed(line, &words[1..], None);
        }
        if first == "qdisc" {
            return self.shown(line, &words[1..]);
        }
        let numbered = words.get(1).is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let begins_options =
            |names: &[&'static str]| names.contains(&first) || (numbered && named(first, names).is_some());
        if begins_options(&["netem"]) || begins_options(FIRST_OPTIONS) {
            let options = if first == "netem" { &words[1..] } else { words };
            let qdisc = Qdisc::new(line, "netem", "root", options);
            return self.put("eth0", line, qdisc, SHOWN);
        }
        // A message may mention tc, and need not be a command: "tc isn't there".
        if let Some(inner) = words.iter().find(|word| word.split_whitespace().any(is_tc))
            && depth < DEEPEST
            && let Ok(inner) = commands(inner)
        {
            for mut inner in inner {
                inner.number = line.number;
                inner.maybe |= line.maybe;
                self.command(&inner, depth + 1)?;
            }
            return Ok(());
        }
        let command = command_of(line);
        if NETWORKING.contains(&command) {
            let why = "it is not a qdisc of tc: add its effect to the scenario by hand";
            self.notes.add(line.number, &line.text(), why);
        } else if !shell::IDLE.contains(&command) {
            self.others += 1;
            self.other.get_or_insert_with(|| line.clone());
        }
        Ok(())
    }

    fn tell_others(&mut self) {
        if let Some(line) = self.other.take() {
            let why = match self.others {
                1 => NO_QDISC.to_owned(),
                several => format!("{NO_QDISC}, nor are {} more commands", several - 1),
            };
            self.notes.add(line.number, &line.text(), why);
        }
    }

    /// `tc qdisc add|change|replace|del …`, possibly in a network namespace.
    fn changed(&mut self, line: &Line, words: &[String], space: Option<&str>) -> Result<()> {
        let verb = words.first().and_then(|word| named(word, &VERBS));
        let rest = words.get(1..).unwrap_or_default();
        let (name, place, at) = place(line, rest, self.notes);
        let of = |name: &str| space.map_or_else(|| name.to_owned(), |space| format!("{space}:{name}"));
        match verb {
            Some(verb @ ("add" | "change" | "replace" | "link")) => {
                let kind = rest.get(at).map_or("", String::as_str);
                if ["ingress", "clsact"].contains(&kind) || place == "ingress" {
                    let why = "incoming packets are shaped where they leave: import that interface";
                    self.notes.add(line.number, &line.text(), why);
                    return Ok(());
                }
                let what = "the command names no interface";
                let name = name.ok_or_else(|| ImportError::new(line.number, what, "write dev eth0"))?;
                let qdisc = Qdisc::new(line, kind, &place, rest.get(at + 1..).unwrap_or_default());
                self.put(&of(name), line, qdisc, verb)?;
            }
            Some("delete") => {
                let name = name.map(of);
                if let Some(device) =
                    self.devices.iter_mut().find(|device| Some(&device.name) == name.as_ref())
                {
                    device.delete(&place, line);
                }
            }
            _ => self.notes.add(line.number, &line.text(), "it changes nothing"),
        }
        Ok(())
    }

    /// A line of `tc qdisc show`: `qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 100ms`.
    fn shown(&mut self, line: &Line, words: &[String]) -> Result<()> {
        let [kind, _handle, rest @ ..] = words else {
            self.notes.add(line.number, &line.text(), NO_QDISC);
            return Ok(());
        };
        let (name, place, mut at) = place(line, rest, self.notes);
        while rest.get(at).is_some_and(|word| word == "refcnt") {
            at += 2;
        }
        // Without a configured qdisc, the system's default is shown.
        if ["noqueue", "mq", "pfifo_fast", "fq_codel", "fq"].contains(&kind.as_str()) {
            self.notes.add(line.number, &line.text(), "the system's own qdisc is not carried over");
            return Ok(());
        }
        let qdisc = Qdisc::new(line, kind, &place, rest.get(at..).unwrap_or_default());
        self.put(name.unwrap_or("eth0"), line, qdisc, SHOWN)
    }

    fn put(&mut self, name: &str, line: &Line, qdisc: Qdisc, verb: &str) -> Result<()> {
        let known = self.devices.iter().position(|device| device.name == name);
        let at = known.unwrap_or(self.devices.len());
        if known.is_none() {
            self.devices.push(Device::new(name));
        }
        let count = self.devices.len().max(self.devices[at].qdiscs.len());
        ImportError::if_above(count, MOST, line.number, "interfaces or qdiscs", "import a part of them")?;
        if let Some(first) = self.devices[at].put(qdisc, verb) {
            let why = format!("tc refuses this (File exists), and line {first} stays: write replace");
            self.notes.add(line.number, &line.text(), why);
        }
        Ok(())
    }
}

/// The name of a command's program.
fn command_of(line: &Line) -> &str {
    let word = line.words.iter().find(|word| *word != "sudo");
    word.map_or("", |word| word.rsplit('/').next().unwrap_or(word))
}

/// The network namespace that a command before `tc` enters: `ip netns exec NAME tc …`.
fn namespace(before: &[String]) -> Option<&str> {
    let at = before.iter().position(|word| word == "exec")?;
    let netns = before[..at].last().is_some_and(|word| word.starts_with("net"));
    netns.then(|| before.get(at + 1).map(String::as_str)).flatten()
}

/// The interface, the parent, and the index of the qdisc's kind.
fn place<'w>(line: &Line, words: &'w [String], notes: &mut Notes) -> (Option<&'w str>, String, usize) {
    let (mut name, mut place, mut at) = (None, String::from("root"), 0);
    while let Some(word) = words.get(at) {
        let next = words.get(at + 1);
        match word.as_str() {
            "dev" => name = next.map(String::as_str),
            "parent" => place = next.cloned().unwrap_or_default(),
            "handle" | "ingress_block" | "egress_block" => {}
            "root" | "ingress" => {
                place.clone_from(word);
                at += 1;
                continue;
            }
            "stab" | "estimator" => {
                let sizes = ["mtu", "mpu", "tsize", "overhead", "linklayer"];
                let pairs =
                    words[at + 1..].chunks(2).take_while(|pair| sizes.contains(&pair[0].as_str())).count();
                let count = 1 + if word == "stab" { 2 * pairs } else { 2 };
                let option =
                    words.iter().skip(at).take(count).map(String::as_str).collect::<Vec<_>>().join(" ");
                let why = "what tc counts of a packet is not carried over from here; see a link's framing \
                    and overhead";
                notes.add(line.number, &option, why);
                at += count;
                continue;
            }
            _ => break,
        }
        at += 2;
    }
    (name, place, at.min(words.len()))
}
