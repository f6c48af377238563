//! Deletions by ipfw: `delete`, `flush`, `pipe N delete`.
//!
//! Deletions apply in the script's order. Those that may not be executed (in an `if`, or the like) are
//! skipped, and so are those at the end of a script that removes everything again.

use super::{Table, behind_tool, object};
use crate::lines::Line;
use crate::words::named;
use crate::{Notes, Result};
use std::ops::RangeInclusive;

/// What a command deletes.
pub(super) enum Deletion {
    /// All rules.
    Rules,
    /// The rules with these numbers.
    Numbered(Vec<RangeInclusive<u64>>),
    /// All pipes, with their queues and schedulers.
    Pipes,
    /// Pipes, queues or schedulers with these numbers.
    Some(&'static str, Vec<u64>),
}

impl Deletion {
    /// The objects that this command deletes; none for other commands.
    pub(super) fn of(line: &Line) -> Option<Self> {
        let words = behind_tool(line);
        let verb = |word: &str| if word.len() > 1 { named(word, &["delete", "flush"]) } else { None };
        // dnctl knows no rules.
        let dnctl = line.words.iter().any(|word| word.rsplit('/').next() == Some("dnctl"));
        let object = object(&words);
        match (&words[..], object) {
            ([word, rest @ ..], None) => match verb(word)? {
                "flush" if dnctl => Some(Self::Pipes),
                "flush" => Some(Self::Rules),
                // Of a set of rules.
                _ if rest.first() == Some(&"set") => Some(Self::Numbered(Vec::new())),
                _ => Some(Self::Numbered(rest.iter().filter_map(|word| range(word)).collect())),
            },
            ([_, word, rest @ ..], Some(object)) => match (verb(word), rest) {
                (Some("flush"), _) => Some(Self::Pipes),
                (Some(_), numbers) => Some(Self::Some(object, numbers_of(numbers))),
                // ipfw accepts the number before or after the verb.
                (None, [after, ..]) if verb(after) == Some("delete") => {
                    Some(Self::Some(object, numbers_of(&[word])))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl Table {
    /// Deletes, or says why not.
    pub(super) fn delete(&mut self, deletion: &Deletion, line: &Line, notes: &mut Notes) {
        let why = match (self.holds_any(deletion), deletion) {
            (true, _) if line.maybe => "it may not be executed: what it would remove is carried over",
            (true, _) => return self.take_away(deletion, line, notes),
            (false, Deletion::Numbered(numbers)) if numbers.is_empty() => {
                "it is not executed: rules are identified by their numbers here"
            }
            (false, Deletion::Numbered(_) | Deletion::Some(..)) => {
                "there is nothing with this number before it"
            }
            _ => return,
        };
        notes.add(line.number, &line.text(), why);
    }

    /// Handles the commands after the last set-up command. If they leave nothing they are cleanup, and are
    /// skipped.
    pub(super) fn clean_up(&mut self, lines: &[Line], notes: &mut Notes) -> Result<()> {
        let (mut after, mut told) = (self.clone(), Notes::default());
        for line in lines {
            after.command(line, &mut told)?;
        }
        let leaves = |left: usize, had: usize| left > 0 || had == 0;
        if leaves(after.pipes.len(), self.pipes.len()) && leaves(after.rules.len(), self.rules.len()) {
            told.list.into_iter().for_each(|note| notes.add(note.line, &note.option, note.why));
            *self = after;
            return Ok(());
        }
        for line in lines {
            if Deletion::of(line).is_some() {
                let why = "not carried over: it is at the end, and removes what was set up; the links \
                    stay as they were";
                notes.add(line.number, &line.text(), why);
            } else {
                self.command(line, notes)?;
            }
        }
        Ok(())
    }

    fn holds_any(&mut self, deletion: &Deletion) -> bool {
        let mut places = self.rules.iter().map(|rule| &rule.place).chain(&self.others);
        match deletion {
            Deletion::Rules => places.next().is_some(),
            Deletion::Numbered(gone) => places.any(|place| gone.iter().any(|range| range.contains(place))),
            Deletion::Pipes => !(self.pipes.is_empty() && self.queues.is_empty() && self.scheds.is_empty()),
            Deletion::Some(object, numbers) => {
                let all = self.objects(object);
                numbers.iter().any(|number| all.contains_key(number))
            }
        }
    }

    fn take_away(&mut self, deletion: &Deletion, line: &Line, notes: &mut Notes) {
        let why = format!("line {} removes it again", line.number);
        let mut note = |line: usize, what: &str| notes.add(line, what, &*why);
        match deletion {
            Deletion::Rules => self.without_rules(&[0..=u64::MAX], note),
            Deletion::Numbered(gone) => self.without_rules(gone, note),
            Deletion::Pipes => {
                for object in ["pipe", "queue", "sched"] {
                    let all = std::mem::take(self.objects(object));
                    all.iter().for_each(|(number, own)| note(own.line, &format!("{object} {number}")));
                }
            }
            Deletion::Some(object, numbers) => {
                for number in numbers {
                    if let Some(own) = self.objects(object).remove(number) {
                        note(own.line, &format!("{object} {number}"));
                    }
                }
            }
        }
    }

    fn without_rules(&mut self, gone: &[RangeInclusive<u64>], mut note: impl FnMut(usize, &str)) {
        let goes = |place: u64| gone.iter().any(|range| range.contains(&place));
        let Self { rules, others, known, .. } = self;
        others.retain(|place| !goes(*place));
        rules.retain(|rule| {
            if goes(rule.place) {
                note(rule.line, &rule.text);
                known.remove(&(rule.line, rule.text.clone()));
            }
            !goes(rule.place)
        });
        let left = self.rules.iter().map(|rule| rule.place).chain(self.others.iter().copied());
        self.highest = left.max().unwrap_or(0);
    }
}

fn numbers_of(words: &[&str]) -> Vec<u64> {
    words.iter().filter_map(|word| word.parse().ok()).collect()
}

/// `100`, or `100-200`.
fn range(word: &str) -> Option<RangeInclusive<u64>> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    Some(first.parse().ok()?..=last.parse().ok()?)
}
