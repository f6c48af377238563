//! Effects of consecutive tc commands on an interface.

use super::lines::{CommandCondition, Line};
use super::netem::Netem;
use super::stage::Stage;
use super::words::Words;
use super::{Notes, Result, tbf};

/// The verb of what is no command: the output of tc, and netem's options alone.
pub(super) const SHOWN: &str = "show";
/// Most changes of one qdisc that are kept.
const MOST_CHANGES: usize = 100;

/// A qdisc of an interface.
pub(super) struct Qdisc {
    place: String,
    /// The command that created it, and those that changed it.
    sets: Vec<QdiscCommand>,
    /// The previous qdisc in its place.
    before: Option<QdiscCommand>,
    /// The command that deletes it.
    deleted: Option<(usize, String)>,
    /// Whether its command is executed in any case.
    is_sure: bool,
}

/// The settings of one command.
struct QdiscCommand {
    line: usize,
    command: String,
    kind: String,
    options: Vec<String>,
}

/// An interface with its qdiscs, in order of creation.
pub(super) struct Device {
    pub(super) name: String,
    pub(super) qdiscs: Vec<Qdisc>,
}

impl Qdisc {
    /// The settings of a command.
    pub(super) fn new(line: &Line, kind: &str, place: &str, options: &[String]) -> Self {
        let set = QdiscCommand {
            line: line.number,
            command: line.text(),
            kind: kind.into(),
            options: options.into(),
        };
        let is_sure = !line.maybe && line.joined != CommandCondition::Or;
        Self { place: place.into(), sets: vec![set], before: None, deleted: None, is_sure }
    }

    fn last(&self) -> &QdiscCommand {
        &self.sets[self.sets.len() - 1]
    }

    /// Netem's options, with those kept by changes.
    fn netem(&self, notes: &mut Notes) -> Result<Netem> {
        let (last, before) = (self.last(), &self.sets[..self.sets.len() - 1]);
        let mut kept: Option<Netem> = None;
        for set in before {
            // Unused qdiscs need no notes.
            let mut netem = Netem::read(&mut Words::new(set.line, &set.options), &mut Notes::default())?;
            if let Some(kept) = &kept {
                netem.keep(kept);
            }
            kept = Some(netem);
        }
        let mut netem = Netem::read(&mut Words::new(last.line, &last.options), notes)?;
        let names = kept.map(|kept| netem.keep(&kept)).unwrap_or_default();
        if !names.is_empty() {
            let why = format!("it keeps these as set before, as in the kernel: {}", names.join(", "));
            notes.add(last.line, &last.command, why);
        }
        Ok(netem)
    }

    /// Notes the effect of the commands before the last, and of the one that deletes the qdisc.
    fn note(&self, link: &str, notes: &mut Notes) {
        let last = self.last();
        let event =
            format!("a change during a run is an [[at]] event with time, link = \"{link}\" and settings");
        let before = self.sets.iter().rev().nth(1).or(self.before.as_ref());
        if let Some(before) =
            before.filter(|before| (&before.kind, &before.options) != (&last.kind, &last.options))
        {
            let why =
                format!("it is taken in place of line {}, which is not carried over: {event}", before.line);
            notes.add(last.line, &last.command, why);
        }
        if let Some((line, command)) = &self.deleted {
            let why = format!("not carried over: the link keeps what line {} sets; {event}", last.line);
            notes.add(*line, command, why);
        }
    }
}

impl Device {
    /// An interface without qdiscs.
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.into(), qdiscs: Vec::new() }
    }

    /// The line of its first qdisc.
    pub(super) fn line(&self) -> usize {
        self.qdiscs.first().map_or(0, |qdisc| qdisc.last().line)
    }

    /// Adds a qdisc in place of the previous one, or as its change. Where tc refuses that, because one is
    /// there, that one stays; its line is returned unless both are alike.
    pub(super) fn put(&mut self, mut qdisc: Qdisc, verb: &str) -> Option<usize> {
        qdisc.is_sure &= ["add", "replace"].contains(&verb);
        let Some(own) = self.qdiscs.iter_mut().find(|other| other.place == qdisc.place) else {
            self.qdiscs.push(qdisc);
            return None;
        };
        let is_there = own.deleted.is_none();
        let (old, new) = (own.last(), qdisc.last());
        if verb == "add" && is_there && own.is_sure && qdisc.is_sure {
            let is_same = (&old.kind, &old.options) == (&new.kind, &new.options);
            return (!is_same).then_some(old.line);
        }
        if !["add", SHOWN].contains(&verb) && is_there && old.kind == new.kind {
            own.is_sure |= qdisc.is_sure;
            own.sets.append(&mut qdisc.sets);
            if own.sets.len() > MOST_CHANGES {
                own.sets.remove(0);
            }
        } else {
            qdisc.before = own.sets.pop();
            *own = qdisc;
        }
        None
    }

    /// Deletes a qdisc; with the root all are deleted.
    pub(super) fn delete(&mut self, place: &str, line: &Line) {
        for qdisc in self.qdiscs.iter_mut().filter(|qdisc| place == "root" || qdisc.place == place) {
            qdisc.deleted.get_or_insert_with(|| (line.number, line.text()));
        }
    }

    /// The links of a packet: netem's delay precedes every rate, whichever qdisc contains the other.
    pub(super) fn stages(&self, link: &str, notes: &mut Notes) -> Result<(Vec<Stage>, Option<u64>)> {
        let (mut delayed, mut shaped, mut seed) = (Vec::new(), Vec::new(), None);
        for qdisc in &self.qdiscs {
            let last = qdisc.last();
            let why = match last.kind.as_str() {
                "netem" if delayed.is_empty() => {
                    let netem = qdisc.netem(notes)?;
                    seed = netem.seed;
                    delayed = netem.stages(notes)?;
                    qdisc.note(link, notes);
                    continue;
                }
                "tbf" if shaped.is_empty() => {
                    shaped.push(tbf::stage(&mut Words::new(last.line, &last.options), notes)?);
                    qdisc.note(link, notes);
                    continue;
                }
                "netem" | "tbf" => "one of each is carried over for an interface; import this one by itself",
                _ => "of tc's qdiscs, netem and tbf are carried over",
            };
            notes.add(last.line, &format!("{} {}", last.kind, last.options.join(" ")), why);
        }
        let does_nothing = shaped.is_empty() && delayed.iter().all(Stage::is_empty);
        delayed.retain(|stage| does_nothing || !stage.is_empty());
        delayed.append(&mut shaped);
        Ok((delayed, seed))
    }
}
