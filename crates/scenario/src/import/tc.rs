//! `tc` commands, and what `tc qdisc show` prints, as a scenario of two hosts.
//!
//! A qdisc shapes what leaves its interface. The first interface is taken as that of host `a` towards host `b`, the
//! second, as on a box between two networks, as the way back.

use super::lines::{Line, commands};
use super::netem::{Netem, Words};
use super::sheet::{Sheet, name_of};
use super::stage::Stage;
use super::{ImportError, Notes, tbf};

/// Words with which netem's options begin, where they stand alone.
const OPTIONS: [&str; 14] = [
    "netem",
    "delay",
    "latency",
    "loss",
    "drop",
    "duplicate",
    "corrupt",
    "reorder",
    "rate",
    "slot",
    "limit",
    "gap",
    "seed",
    "ecn",
];
/// Most interfaces and qdiscs that are kept.
const MOST: usize = 1000;

/// A qdisc of an interface.
struct Qdisc {
    line: usize,
    kind: String,
    place: String,
    options: Vec<String>,
}

/// An interface with its qdiscs, in the order in which they were made.
struct Device {
    name: String,
    qdiscs: Vec<Qdisc>,
}

/// The links that netem's options make, and its seed.
pub(super) fn options(text: &str, notes: &mut Notes) -> Result<(Vec<Stage>, Option<u64>), ImportError> {
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
pub(super) fn import(text: &str, notes: &mut Notes) -> Result<Sheet, ImportError> {
    let lines = commands(text)?;
    let mut devices = Vec::new();
    for line in &lines {
        command(line, &mut devices, notes)?;
    }
    let mut sheet = Sheet::new("Two hosts, and between them what tc did on an interface.");
    let mut ways = Vec::new();
    for device in &devices {
        let (stages, seed) = device.stages(notes)?;
        sheet.seed = sheet.seed.or(seed);
        if stages.is_empty() {
            continue;
        }
        if ways.len() == 2 || (device.name == "lo" && !ways.is_empty()) {
            let why = "two interfaces make the two directions between two hosts; import this one by itself";
            notes.add(
                device.qdiscs.first().map_or(0, |qdisc| qdisc.line),
                &format!("dev {}", device.name),
                why,
            );
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
    let mend = "write tc qdisc add dev eth0 root netem delay 100ms loss 1%, or netem's options alone";
    ImportError::new(0, "there is no netem and no tbf in it", mend)
}

fn command(line: &Line, devices: &mut Vec<Device>, notes: &mut Notes) -> Result<(), ImportError> {
    let mut words = &line.words[..];
    if words.first().is_some_and(|word| word == "sudo") {
        words = &words[1..];
    }
    let is_tc = |word: &String| word == "tc" || word.ends_with("/tc") || word.eq_ignore_ascii_case("$tc");
    let named = words.first().is_some_and(is_tc);
    if named {
        words = &words[1..];
    }
    while named && words.first().is_some_and(|word| word.starts_with('-')) {
        words = &words[1..];
    }
    let first = words.first().map_or("", String::as_str);
    match first {
        "qdisc" if named => changed(line, &words[1..], devices, notes),
        "qdisc" => shown(line, &words[1..], devices, notes),
        _ if !named && OPTIONS.contains(&first) => {
            let options = if first == "netem" { &words[1..] } else { words };
            let qdisc = Qdisc {
                line: line.number,
                kind: "netem".into(),
                place: "root".into(),
                options: options.into(),
            };
            device("eth0", line, devices)?.put(qdisc);
            Ok(())
        }
        "class" | "filter" if named => {
            let why = "classes and filters of tc are not carried over: all packets take the same link; \
                       a link's match or filter chooses packets here";
            notes.add(line.number, &line.text(), why);
            Ok(())
        }
        _ => {
            notes.add(line.number, &line.text(), "it is no qdisc of tc");
            Ok(())
        }
    }
}

/// `tc qdisc add|change|replace|del …`.
fn changed(
    line: &Line,
    words: &[String],
    devices: &mut Vec<Device>,
    notes: &mut Notes,
) -> Result<(), ImportError> {
    let verb = words.first().map_or("", String::as_str);
    let rest = words.get(1..).unwrap_or_default();
    match verb {
        "add" | "change" | "replace" | "link" => {
            let (name, place, at) = place(rest);
            let kind = rest.get(at).cloned().unwrap_or_default();
            let Some(name) = name else {
                return Err(ImportError::new(
                    line.number,
                    "the command names no interface",
                    "write dev eth0",
                ));
            };
            if ["ingress", "clsact"].contains(&kind.as_str()) || place == "ingress" {
                notes.add(
                    line.number,
                    &line.text(),
                    "what comes in is shaped where it leaves: import that interface",
                );
                return Ok(());
            }
            let options = rest.get(at + 1..).unwrap_or_default().to_vec();
            device(name, line, devices)?.put(Qdisc { line: line.number, kind, place, options });
        }
        "del" | "delete" => {
            if let (Some(name), place, _) = place(rest)
                && let Some(device) = devices.iter_mut().find(|device| device.name == name)
            {
                device.qdiscs.retain(|qdisc| place != "root" && qdisc.place != place);
            }
        }
        _ => notes.add(line.number, &line.text(), "it changes nothing"),
    }
    Ok(())
}

/// A line that `tc qdisc show` printed: `qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 100ms`.
fn shown(
    line: &Line,
    words: &[String],
    devices: &mut Vec<Device>,
    notes: &mut Notes,
) -> Result<(), ImportError> {
    let [kind, _handle, rest @ ..] = words else {
        notes.add(line.number, &line.text(), "it is no qdisc of tc");
        return Ok(());
    };
    let (name, place, mut at) = place(rest);
    while rest.get(at).is_some_and(|word| word == "refcnt") {
        at += 2;
    }
    let options = rest.get(at..).unwrap_or_default().to_vec();
    // Where nobody asked for a qdisc, the system's own is shown.
    if ["noqueue", "mq", "pfifo_fast", "fq_codel", "fq"].contains(&kind.as_str()) {
        notes.add(line.number, &line.text(), "the system's own qdisc is not carried over");
        return Ok(());
    }
    let qdisc = Qdisc { line: line.number, kind: kind.clone(), place, options };
    device(name.unwrap_or("eth0"), line, devices)?.put(qdisc);
    Ok(())
}

/// The interface, the place in its tree, and where the qdisc's kind stands.
fn place(words: &[String]) -> (Option<&str>, String, usize) {
    let (mut name, mut place, mut at) = (None, String::from("root"), 0);
    while let Some(word) = words.get(at) {
        let next = words.get(at + 1);
        match word.as_str() {
            "dev" => name = next.map(String::as_str),
            "parent" => place = next.cloned().unwrap_or_default(),
            "handle" => {}
            "root" | "ingress" => {
                place.clone_from(word);
                at += 1;
                continue;
            }
            _ => break,
        }
        at += 2;
    }
    (name, place, at)
}

fn device<'d>(name: &str, line: &Line, devices: &'d mut Vec<Device>) -> Result<&'d mut Device, ImportError> {
    let at = match devices.iter().position(|device| device.name == name) {
        Some(at) => at,
        None => {
            devices.push(Device { name: name.into(), qdiscs: Vec::new() });
            devices.len() - 1
        }
    };
    if devices.len() > MOST || devices[at].qdiscs.len() > MOST {
        let what = format!("there are more than {MOST} interfaces or qdiscs");
        return Err(ImportError::new(line.number, what, "import a part of them"));
    }
    Ok(&mut devices[at])
}

impl Device {
    /// Adds a qdisc in the place of the one before.
    fn put(&mut self, qdisc: Qdisc) {
        self.qdiscs.retain(|other| other.place != qdisc.place);
        self.qdiscs.push(qdisc);
    }

    /// The links that a packet takes: netem's delay comes before every rate, whichever of the two holds the other.
    fn stages(&self, notes: &mut Notes) -> Result<(Vec<Stage>, Option<u64>), ImportError> {
        let (mut delayed, mut shaped, mut seed) = (Vec::new(), Vec::new(), None);
        for qdisc in &self.qdiscs {
            let mut words = Words::new(qdisc.line, &qdisc.options);
            let option = || format!("{} {}", qdisc.kind, qdisc.options.join(" "));
            match qdisc.kind.as_str() {
                "netem" if delayed.is_empty() => {
                    let netem = Netem::read(&mut words, notes)?;
                    seed = netem.seed;
                    delayed = netem.stages(notes)?;
                }
                "tbf" if shaped.is_empty() => shaped.push(tbf::stage(&mut words, notes)?),
                "netem" | "tbf" => {
                    let why = "one of each is carried over for an interface; import this one by itself";
                    notes.add(qdisc.line, &option(), why);
                }
                _ => notes.add(qdisc.line, &option(), "of tc's qdiscs netem and tbf are carried over"),
            }
        }
        let does_nothing = shaped.is_empty() && delayed.iter().all(Stage::is_empty);
        delayed.retain(|stage| does_nothing || !stage.is_empty());
        delayed.append(&mut shaped);
        Ok((delayed, seed))
    }
}
