//! Pipes, queues and schedulers of dummynet: the `config` commands of ipfw(8).

use super::quantity::{LONGEST_DELAY, Share, ipfw_rate, ipfw_size, plain, rate_text, tc_size, time, whole};
use super::sheet::file_name;
use super::stage::Stage;
use super::words::Words;
use super::{ImportError, Notes, Result};
use longwire_units::{Bytes, Nanos};

/// dummynet's default queue.
const SLOTS: u64 = 50;
/// The packet size assumed by dummynet's RED (sysctl net.inet.ip.dummynet.red_avg_pkt_size).
const RED_PACKET: &str = "512 B";
const RED_BYTES: u64 = 512;

/// The settings of one `config`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pipe {
    pub(super) line: usize,
    /// As a scenario writes it.
    rate: Option<String>,
    delay: Nanos,
    queue: Option<Limit>,
    loss: Option<Share>,
    burst: Option<u64>,
    profile: Option<String>,
    discipline: Option<Discipline>,
    /// The pipe or scheduler that a queue or scheduler belongs to.
    pub(super) pipe: Option<u64>,
    pub(super) sched: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Slots(u64),
    Bytes(u64),
}

/// A queue discipline: its kind here, and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Discipline {
    kind: &'static str,
    parameters: Vec<(&'static str, String)>,
}

/// A time of dummynet: a bare number is milliseconds.
fn millis(text: &str) -> Option<Nanos> {
    time(text, 1_000_000).filter(|time| *time <= LONGEST_DELAY)
}

impl Pipe {
    /// Parses the options after `config`.
    pub(super) fn read(words: &mut Words<'_>, notes: &mut Notes) -> Result<Self> {
        let mut pipe = Self { line: words.line, ..Self::default() };
        let mut closed = None;
        while let Some(word) = words.next() {
            if let Some(kind) = closed {
                // ipfw's process_extra_parms treats all that follows as options of the discipline.
                let why = format!(
                    "ipfw looks for options of {kind} only behind it, and leaves this out; here it is taken"
                );
                notes.add(words.line, word, why);
            }
            pipe.option(&word.to_ascii_lowercase(), words, notes)?;
            closed = pipe.controlled_kind().or(closed);
        }
        Ok(pipe)
    }

    fn option(&mut self, word: &str, words: &mut Words<'_>, notes: &mut Notes) -> Result<()> {
        let line = words.line;
        match word {
            "bw" | "bandwidth" => self.bandwidth(words, notes)?,
            "delay" => self.delay(words, notes)?,
            "queue" => self.queue = Some(words.value("queue", "50 or 60KBytes", limit)?),
            "plr" => match words.value("plr", "0.01", |word| Some(word.to_owned()))? {
                several if several.contains(',') => {
                    let why = "one probability is carried over; see loss, kind gilbert-elliott";
                    notes.add(line, &format!("plr {several}"), why);
                }
                one => {
                    let what = format!("plr: \"{one}\" is not a probability");
                    let bad = || ImportError::new(line, what, "write plr 0.01");
                    self.loss = Some(Share::fraction(&one).ok_or_else(bad)?);
                }
            },
            "burst" => self.burst = Some(words.value("burst", "64k", ipfw_size)?.0),
            "profile" => self.profile = Some(words.value("profile", "FILE", |word| Some(word.to_owned()))?),
            "red" | "gred" => self.red(word == "gred", words)?,
            "ecn" => self.marks(line, notes),
            "droptail" => self.discipline = None,
            "codel" | "pie" | "fq_codel" | "fq_pie" => self.controlled(word, words, notes)?,
            "type" => {
                let kind = words.value("type", "fq_codel", |word| Some(word.to_ascii_lowercase()))?;
                match kind.as_str() {
                    "fq_codel" | "fq_pie" => self.controlled(&kind, words, notes)?,
                    "fifo" => {}
                    _ => {
                        let why = "flows share the link as they come here, first in first out";
                        notes.add(line, &format!("type {kind}"), why);
                    }
                }
            }
            "pipe" | "link" => self.pipe = Some(words.value(word, "1", whole)?),
            "sched" => self.sched = Some(words.value(word, "1", whole)?),
            "mask" | "sched_mask" | "flow_mask" => mask(words, notes),
            "flowset" | "buckets" | "weight" | "lmax" | "maxlen" | "pri" | "priority" => {
                let example = if word == "flowset" { "1" } else { "10" };
                let value = words.value(word, example, |word| Some(word.to_owned()))?;
                let why = "all packets of the link share one queue here";
                notes.add(line, &format!("{word} {value}"), why);
            }
            "noerror" => notes.add(line, "noerror", "a sender never gets an error for a drop here"),
            other => {
                let known = "bw, delay, queue, plr, burst, red, gred, ecn, codel, pie, profile, mask";
                return words.no_option("dummynet", &other.escape_debug().to_string(), known);
            }
        }
        Ok(())
    }

    fn bandwidth(&mut self, words: &mut Words<'_>, notes: &mut Notes) -> Result<()> {
        let word = words.value("bw", "1Mbit/s", |word| Some(word.to_owned()))?;
        match ipfw_rate(&word) {
            Some(0) => self.rate = None,
            Some(bits) => self.rate = Some(rate_text(words.line, bits)?),
            None if word.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                let why = "the pace of an interface is not carried over; give the link a rate";
                notes.add(words.line, &format!("bw {word}"), why);
            }
            None => {
                let what = format!("bw: \"{word}\" is not a bandwidth");
                let fix = "ipfw reads whole numbers: write bw 1500Kbit/s";
                return Err(ImportError::new(words.line, what, fix));
            }
        }
        Ok(())
    }

    /// ipfw reads whole milliseconds, and no unit (strtoul).
    fn delay(&mut self, words: &mut Words<'_>, notes: &mut Notes) -> Result<()> {
        let word = words.value("delay", "20", |word| Some(word.to_owned()))?;
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = word.split_at(digits);
        self.delay = millis(number).ok_or_else(|| words.bad("delay", &word, "write delay 20"))?;
        if !["", "ms", "msec"].contains(&unit.to_ascii_lowercase().as_str()) {
            let why =
                format!("ipfw reads whole milliseconds and no unit: it is {} there, and here", self.delay);
            notes.add(words.line, &format!("delay {word}"), why);
        }
        Ok(())
    }

    /// `red w_q/min_th/max_th/max_p`.
    fn red(&mut self, gentle: bool, words: &mut Words<'_>) -> Result<()> {
        let name = if gentle { "gred" } else { "red" };
        let threshold = |text: &str| tc_size(text).map(|bytes| bytes.0.to_string());
        let parameters = words.value(name, "0.002/5/15/0.1", |word| {
            let [weight, min, max, share] = word.split('/').collect::<Vec<_>>().try_into().ok()?;
            Some(vec![
                ("min", threshold(min)?),
                ("max", threshold(max)?),
                ("max-p", Share::fraction(share)?.text()),
                ("weight", plain(weight)?),
                ("gentle", if gentle { "yes" } else { "no" }.to_owned()),
                ("mean-packet", RED_PACKET.to_owned()),
            ])
        })?;
        self.discipline = Some(Discipline { kind: "red", parameters });
        Ok(())
    }

    /// `ecn` after `red` or `gred`.
    fn marks(&mut self, line: usize, notes: &mut Notes) {
        match &mut self.discipline {
            Some(discipline) if discipline.kind == "red" => {
                discipline.parameters.retain(|(name, _)| *name != "ecn");
                discipline.parameters.push(("ecn", "yes".into()));
            }
            _ => notes.add(line, "ecn", "it is carried over behind red, gred, codel or pie"),
        }
    }

    /// CoDel, PIE and their fair-queueing variants, with the options that follow.
    fn controlled(&mut self, name: &str, words: &mut Words<'_>, notes: &mut Notes) -> Result<()> {
        let kind = match name {
            "codel" => "codel",
            "pie" => "pie",
            "fq_codel" => "fq-codel",
            _ => "fq-pie",
        };
        let mut parameters: Vec<(&'static str, String)> = Vec::new();
        while let Some(word) = words.peek() {
            let Some((parameter, value)) = parameter(kind, &word.to_ascii_lowercase(), words, notes)? else {
                break;
            };
            if !parameter.is_empty() {
                parameters.retain(|(name, _)| *name != parameter);
                parameters.push((parameter, value));
            }
        }
        // By default ipfw marks in fq_codel and fq_pie, and not in codel and pie (process_extra_parms).
        if kind.starts_with("fq-") && !parameters.iter().any(|(name, _)| *name == "ecn") {
            parameters.push(("ecn", "yes".into()));
        }
        self.discipline = Some(Discipline { kind, parameters });
        Ok(())
    }

    /// The discipline, if ipfw treats everything after it as its options.
    fn controlled_kind(&self) -> Option<&'static str> {
        self.discipline.as_ref().map(|own| own.kind).filter(|kind| *kind != "red")
    }

    /// Whether it separates flows, as schedulers do.
    pub(super) fn is_fair(&self) -> bool {
        self.controlled_kind().is_some_and(|kind| kind.starts_with("fq-"))
    }

    /// Applies a queue's settings, for packets that enter the pipe through it. The pipe's own length, loss
    /// and discipline are for packets without a queue (ip_dn_io.c, `dn_enqueue`).
    pub(super) fn behind(&mut self, queue: &Self) {
        (self.queue, self.loss) = (queue.queue, queue.loss);
        if !self.is_fair() {
            self.discipline.clone_from(&queue.discipline);
        }
    }

    /// Applies the discipline of a scheduler, unless the pipe has one.
    pub(super) fn with(&mut self, sched: &Self) {
        self.discipline = sched.discipline.clone().or(self.discipline.take());
    }

    /// The equivalent links: one, or two if a profile's delays precede a constant one.
    pub(super) fn stages(&self, number: u64, notes: &mut Notes) -> Result<Vec<Stage>> {
        let mut stage = Stage::named(&format!("Pipe {number}."));
        if let Some(loss) = self.loss.filter(|loss| *loss > Share::ZERO) {
            stage.set("loss", &loss.text());
        }
        self.waiting(&mut stage, notes);
        if let Some(rate) = &self.rate {
            match self.burst.filter(|burst| *burst > 0).map(|burst| Bytes(burst).to_string()) {
                Some(burst) => {
                    stage.block("rate", "token-bucket", &[("rate", rate.clone()), ("burst", burst)]);
                }
                None => stage.set("rate", rate),
            }
            // dummynet counts the IP packet.
            stage.set("framing", "ip");
        }
        let Some(profile) = &self.profile else {
            if self.delay > Nanos::ZERO {
                stage.set("delay", &self.delay.to_string());
            }
            return Ok(vec![stage]);
        };
        let file = file_name(self.line, profile)?;
        let why = "its delays are time on the channel there, added after it here; its loss-level, and a bw \
            line in the file, are not carried over";
        notes.add(self.line, &format!("profile {file}"), why);
        stage.block("delay", "distribution", &[("distribution", file), ("order", "keep".into())]);
        let mut stages = vec![stage];
        if self.delay > Nanos::ZERO {
            let mut last = Stage::named(&format!("Pipe {number}: the delay after the profile's."));
            last.set("delay", &self.delay.to_string());
            stages.push(last);
        }
        Ok(stages)
    }

    /// A queue in bytes has thresholds in bytes there (ip_dn_io.c), and in assumed packets here.
    fn thresholds_of_bytes(&self, parameters: &mut Vec<(&'static str, String)>, notes: &mut Notes) {
        let mut told = Vec::new();
        for (name, value) in parameters.iter_mut().filter(|(name, _)| ["min", "max"].contains(name)) {
            let bytes: u64 = value.parse().unwrap_or(0);
            // To the nearest, but never both equal.
            let packets = (bytes + RED_BYTES / 2) / RED_BYTES;
            *value = packets.max(u64::from(*name == "max")).to_string();
            told.push(format!("{name} {bytes} B is {value}"));
        }
        parameters.push(("unit", "bytes".into()));
        let why = format!(
            "with a queue in bytes so are the thresholds; here they are packets of {RED_PACKET}: {}",
            told.join(", ")
        );
        notes.add(self.line, "red", why);
    }

    fn waiting(&self, stage: &mut Stage, notes: &mut Notes) {
        let queue = self.queue.unwrap_or(Limit::Slots(SLOTS));
        let limit = match queue {
            Limit::Slots(slots) => format!("{slots} packets"),
            Limit::Bytes(bytes) => Bytes(bytes).to_string(),
        };
        let Some(discipline) = &self.discipline else {
            stage.set("queue", &limit);
            return;
        };
        let mut parameters = discipline.parameters.clone();
        let fair = discipline.kind.starts_with("fq-");
        if !fair && !parameters.iter().any(|(name, _)| *name == "limit") {
            parameters.insert(0, ("limit", limit));
        }
        if discipline.kind == "red" && matches!(queue, Limit::Bytes(_)) {
            self.thresholds_of_bytes(&mut parameters, notes);
        }
        stage.block("queue", discipline.kind, &parameters);
    }
}

/// A queue's size: slots, or bytes if a unit follows.
fn limit(text: &str) -> Option<Limit> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    match text[digits..].to_ascii_lowercase().as_str() {
        "" => Some(Limit::Slots(number)),
        "k" | "kb" | "kbytes" | "kbyte" => number.checked_mul(1024).map(Limit::Bytes),
        "b" | "by" | "byte" | "bytes" => Some(Limit::Bytes(number)),
        _ => None,
    }
}

/// Converts an option of a discipline to a parameter here: an empty name if it has no counterpart, none if it
/// is not an option.
fn parameter(
    kind: &str,
    option: &str,
    words: &mut Words<'_>,
    notes: &mut Notes,
) -> Result<Option<(&'static str, String)>> {
    let pie = kind.ends_with("pie");
    let name = match option {
        "target" => "target",
        "interval" if !pie => "interval",
        "tupdate" if pie => "update",
        "max_burst" if pie => "burst",
        "alpha" if pie => "alpha",
        "beta" if pie => "beta",
        "quantum" => "quantum",
        "flows" => "flows",
        "limit" => "limit",
        "ecn" | "noecn" => "ecn",
        "max_ecnth" | "capdrop" | "nocapdrop" | "derand" | "noderand" | "onoff" | "dre" | "ts" if pie => "",
        _ => return Ok(None),
    };
    words.next();
    let line = words.line;
    let is_known = !["quantum", "flows", "limit"].contains(&name) || kind.starts_with("fq-");
    let what = format!("{kind} has no option \"{name}\", as ipfw says");
    ImportError::unless(is_known, line, what, "set its length with queue, before the discipline's name")?;
    let value = match name {
        "target" | "interval" | "update" | "burst" => words.value(option, "15ms", millis)?.to_string(),
        "alpha" | "beta" => words.value(option, "0.125", plain)?,
        "quantum" => Bytes(words.value(option, "1514", whole)?).to_string(),
        "flows" => words.value(option, "1024", whole)?.to_string(),
        "limit" => format!("{} packets", words.value(option, "1000", whole)?),
        "ecn" => if option == "ecn" { "yes" } else { "no" }.to_owned(),
        _ => {
            let value = if option == "max_ecnth" { words.next().unwrap_or_default() } else { "" };
            let why = "this switch of PIE is as in RFC 8033 here: marks below 10 %, drops spread out, steps \
                of at most 2 %";
            notes.add(line, &format!("{option} {value}"), why);
            String::new()
        }
    };
    Ok(Some((name, value)))
}

fn mask(words: &mut Words<'_>, notes: &mut Notes) {
    const FIELDS: [&str; 8] =
        ["src-ip", "dst-ip", "src-ip6", "dst-ip6", "src-port", "dst-port", "proto", "flow-id"];
    let mut text = String::from("mask");
    let is_part = |word: &&str| FIELDS.contains(word) || ["all", "queue"].contains(word);
    while let Some(word) = words.peek().filter(is_part) {
        words.next();
        if !FIELDS.contains(&word) {
            text += &format!(" {word}");
            break;
        }
        text += &format!(" {word} {}", words.next().unwrap_or_default());
    }
    let why = "each flow has a pipe of its own there; here all share this link: give each pair of addresses \
        a link, with count and match";
    notes.add(words.line, &text, why);
}
