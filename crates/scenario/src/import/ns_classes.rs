//! Commands of ns-2 for whole classes of queues, and for its error models.

use super::ImportError;
use super::ns::{Object, Preset, Script, read, told};
use super::ns_queue::Queue;
use super::quantity::Share;

/// Most settings for all queues that are kept.
const MOST_DEFAULTS: usize = 100;

impl Script<'_> {
    /// `Queue/RED set thresh_ 5`: for the queues that are made from then on.
    pub(super) fn default(&mut self, line: usize, words: &[String]) -> Result<String, ImportError> {
        let [class, set, key, value] = words else {
            self.notes.add(line, &told(words), "the queues here have no such setting");
            return Ok(String::new());
        };
        let (class, key) = (class.to_ascii_lowercase(), key.to_ascii_lowercase());
        if set == "set"
            && Queue::default().set(line, &key, Some(value))?
            && self.defaults.len() < MOST_DEFAULTS
        {
            self.defaults.push(Preset { class, key, value: value.clone() });
        } else {
            self.notes.add(line, &told(words), "the queues here have no such setting");
        }
        Ok(String::new())
    }

    /// What is done to an error model: `set rate_ 0.01`, `set unit_ pkt`, `unit pkt`.
    pub(super) fn errors(&mut self, line: usize, words: &[String]) -> Result<String, ImportError> {
        let rest: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        match &rest[..] {
            ["set", "rate_", value] => {
                let share = read(line, "rate_", Some(&(*value).to_owned()), "0.01", Share::fraction)?;
                let places: Vec<_> =
                    self.losses.iter().filter(|(model, ..)| *model == words[0]).cloned().collect();
                for (_, edge, forward) in places {
                    if self.now.is_some() {
                        self.loss_then(line, (edge, forward), share)?;
                    } else {
                        self.way(edge, forward).loss = share;
                    }
                }
                self.objects.insert(words[0].clone(), Object::Errors(share));
            }
            ["set", "unit_", "pkt" | "packet"] | ["unit", "pkt" | "packet"] | ["drop-target", _] => {}
            ["unit", unit] | ["set", "unit_", unit] => {
                self.objects.insert(words[0].clone(), Object::Errors(Share::ZERO));
                let why = format!("errors for each {unit} are not carried over; see bit-error, kind rate");
                self.notes.add(line, &told(words), why);
            }
            ["ranvar", ..] => {
                self.notes.add(
                    line,
                    &told(words),
                    "each packet is lost with the share rate_, whatever the distribution",
                );
            }
            _ => self.notes.add(line, &told(words), "error models have no such setting here"),
        }
        Ok(String::new())
    }

    /// `lossmodel EM A B`: before the queue; `link-lossmodel`: behind it.
    pub(super) fn lossy(
        &mut self,
        line: usize,
        behind: bool,
        rest: &[String],
    ) -> Result<String, ImportError> {
        let share = match rest.first().and_then(|model| self.objects.get(model)) {
            Some(Object::Errors(share)) => *share,
            _ => {
                self.notes.add(line, &told(rest), "of error models ErrorModel with a rate_ is carried over");
                return Ok(String::new());
            }
        };
        let (edge, forward) = self.between(line, rest.get(1..).unwrap_or_default())?;
        self.losses.push((rest[0].clone(), edge, forward));
        let way = self.way(edge, forward);
        (way.loss, way.loss_behind) = (share, behind);
        Ok(String::new())
    }
}
