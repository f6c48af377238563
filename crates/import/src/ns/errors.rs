//! Error models of ns-2: losses, and attachments.
//!
//! A model's settings apply when it is used, whatever their order. Its unit is set by its command `unit`
//! (errmodel.cc): packets, unless it names bytes, bits or a time.

use super::{Object, Script, Setting, only};
use crate::Result;
use crate::ns_value::read;
use crate::quantity::Share;

/// An error model: its packet loss, and its unit, if that is not packets.
#[derive(Debug, Clone)]
pub(crate) struct Errors {
    rate: Share,
    unit: Option<Unit>,
}

/// A unit other than packets, such as `byte`, and its line.
#[derive(Debug, Clone)]
struct Unit {
    name: String,
    line: usize,
}

impl Errors {
    /// `new ErrorModel`, or `new ErrorModel/Uniform SHARE UNIT`.
    pub(super) fn new(line: usize, arguments: &[String]) -> Self {
        let rate = arguments.first().and_then(|word| Share::fraction(word)).unwrap_or(Share::ZERO);
        let mut model = Self { rate, unit: None };
        if let Some(unit) = arguments.get(1) {
            model.count(line, unit);
        }
        model
    }

    /// `unit NAME`: unknown names mean packets.
    fn count(&mut self, line: usize, name: &str) {
        let other = ["byte", "bit", "time"].contains(&name);
        self.unit = other.then(|| Unit { name: name.into(), line });
    }

    /// The packet loss used here.
    fn loss(&self) -> Share {
        if self.unit.is_some() { Share::ZERO } else { self.rate }
    }
}

/// Reason why a unit is ignored.
fn of_unit(name: &str) -> String {
    format!(
        "errors for each {name} are not carried over, and the link drops nothing for them; see bit-error, \
         kind rate"
    )
}

impl Script<'_> {
    /// Handles a command of an error model: `set rate_ 0.01`, `unit pkt`; without a value, it is read.
    pub(super) fn errors(&mut self, line: usize, words: &[String], mut model: Errors) -> Result<String> {
        let rest: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        match &rest[..] {
            ["set", "rate_"] => return Ok(model.rate.decimal()),
            ["unit"] => return Ok(model.unit.map_or_else(|| "pkt".into(), |unit| unit.name)),
            ["set", "rate_", value] => {
                model.rate = read(line, "rate_", Some(&(*value).to_owned()), "0.01", Share::fraction)?;
            }
            ["unit", unit] => model.count(line, unit),
            ["drop-target", _] | ["set", "unit_", "pkt" | "packet"] => return Ok(String::new()),
            ["set", "unit_", unit] => {
                let why = format!(
                    "ns-2 has no such variable: packets are lost one by one unless the command is unit {unit}"
                );
                return self.skip(line, words, &why);
            }
            ["ranvar", ..] => {
                let why = "each packet is lost with the share rate_, whatever the distribution";
                return self.skip(line, words, why);
            }
            _ => return self.skip(line, words, "error models have no such setting here"),
        }
        if let Some(unit) = model.unit.as_ref().filter(|_| self.now.is_some()) {
            self.note(line, words, &of_unit(&unit.name));
        }
        let loss = model.loss();
        self.objects.insert(words[0].clone(), Object::Errors(model));
        let places: Vec<_> = self.losses.iter().filter(|(model, ..)| *model == words[0]).cloned().collect();
        for (_, half) in places {
            if self.now.is_none() {
                self.direction(half).loss = loss;
            } else if self.present(half).loss != loss {
                self.settle(line, &[half.0], only(half), &[Setting::Loss(loss)])?;
            }
        }
        Ok(String::new())
    }

    /// Notes attached error models with other units than packets, after the set-up.
    pub(super) fn note_units(&mut self) {
        let attached: Vec<String> = self.losses.iter().map(|(model, ..)| model.clone()).collect();
        for handle in attached {
            if let Some(Object::Errors(Errors { unit: Some(unit), .. })) = self.objects.get(&handle).cloned()
            {
                self.note(unit.line, &[handle, "unit".into(), unit.name.clone()], &of_unit(&unit.name));
            }
        }
    }

    /// `lossmodel EM A B`: before the queue; `link-lossmodel`: after it.
    pub(super) fn lossy(&mut self, line: usize, words: &[String]) -> Result<String> {
        let rest = &words[1..];
        let behind = words[0].eq_ignore_ascii_case("link-lossmodel");
        let Some(Object::Errors(model)) = rest.first().and_then(|model| self.objects.get(model)) else {
            return self.skip(line, words, "of error models ErrorModel with a rate_ is carried over");
        };
        let loss = model.loss();
        let half = self.between(line, rest.get(1..).unwrap_or_default())?;
        let before = self.losses.len();
        self.losses.retain(|(_, other)| *other != half);
        if self.losses.len() < before {
            let why = "a direction has one loss here: this model takes the place of the one before";
            self.note(line, words, why);
        }
        self.losses.push((rest[0].clone(), half));
        let direction = self.direction(half);
        (direction.loss, direction.loss_behind) = (loss, behind);
        Ok(String::new())
    }
}
