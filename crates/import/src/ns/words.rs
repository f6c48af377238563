//! Names in notes on ns scripts: the script's own words.

use super::{Half, Object, Script};
use crate::Result;
use crate::tcl_value::decimal;

/// Note on random numbers.
pub(super) const DRAWN: &str = "a random number there; here its mean is taken: write the value that you need";

/// The mean of a random generator's output: a real number, except for `integer`.
pub(super) fn drawn(words: &[String]) -> Option<String> {
    let number = |at: usize| words.get(at)?.parse::<f64>().ok().filter(|number| number.is_finite());
    let mean = match (words.first()?.as_str(), words.len()) {
        ("uniform", 3) => (number(1)? + number(2)?) / 2.0,
        ("integer", 2) => return Some(((number(1)? - 1.0) / 2.0).floor().max(0.0).to_string()),
        ("exponential" | "normal" | "avg", 2..) => number(1)?,
        ("exponential", 1) => 1.0,
        _ => return None,
    };
    Some(decimal(mean))
}

/// A `RandomVariable` of ns-2: its kind and settings.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    kind: &'static str,
    settings: Vec<(String, f64)>,
}

impl Variable {
    /// A variable of a class in lower case, if its mean follows from its settings.
    pub(super) fn named(class: &str) -> Option<Self> {
        let kinds = ["uniform", "exponential", "pareto", "constant", "normal"];
        let name = class.strip_prefix("randomvariable/")?;
        kinds.into_iter().find(|kind| *kind == name).map(|kind| Self { kind, settings: Vec::new() })
    }

    /// The setting, or ns-2's default (ns-default.tcl).
    fn setting(&self, key: &str) -> f64 {
        let own = self.settings.iter().rev().find(|(name, _)| name == key).map(|(_, value)| *value);
        let default = match (self.kind, key) {
            ("normal", "avg_") | (_, "min_") => 0.0,
            _ => 1.0,
        };
        own.unwrap_or(default)
    }

    fn mean(&self) -> f64 {
        match self.kind {
            "uniform" => (self.setting("min_") + self.setting("max_")) / 2.0,
            "constant" => self.setting("val_"),
            _ => self.setting("avg_"),
        }
    }
}

/// Most settings of a random variable.
const MOST_SETTINGS: usize = 100;

impl Script<'_> {
    /// A command of a random variable.
    pub(super) fn random(&mut self, line: usize, words: &[String], mut variable: Variable) -> String {
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        match &texts[..] {
            [_, "value"] => {
                if variable.kind != "constant" {
                    self.note(line, words, DRAWN);
                }
                decimal(variable.mean())
            }
            [handle, "set", key, value] => {
                if let Some(number) = value.parse().ok().filter(|number: &f64| number.is_finite())
                    && variable.settings.len() < MOST_SETTINGS
                {
                    variable.settings.push(((*key).to_owned(), number));
                    self.objects.insert((*handle).to_owned(), Object::Random(variable));
                }
                (*value).to_owned()
            }
            [_, "set", key] => variable.setting(key).to_string(),
            _ => String::new(),
        }
    }

    /// A note about a command that is not converted, or not exactly. If `words` are the end of the current
    /// command, the note has all of it.
    pub(crate) fn note(&mut self, line: usize, words: &[String], why: &str) {
        if self.notes.full() {
            return;
        }
        let words = if self.said.ends_with(words) { &self.said[..] } else { words };
        let told: Vec<String> = words.iter().map(|word| self.in_words(word)).collect();
        let told = match self.now {
            Some(time) => format!("at {time}: {}", told.join(" ")),
            None => told.join(" "),
        };
        self.notes.add(line, &told, why);
    }

    /// Notes a command that is left out: its result is empty.
    pub(super) fn skip(&mut self, line: usize, words: &[String], why: &str) -> Result<String> {
        self.note(line, words, why);
        Ok(String::new())
    }

    /// Records the first variable that holds a handle.
    pub(super) fn call_it(&mut self, handle: &str, variable: &str) {
        let known = self.names.get(handle).is_some_and(|name| name.starts_with('$'));
        if !known {
            self.names.insert(handle.to_owned(), format!("${variable}"));
        }
    }

    /// A word, or a list, as the script would write it.
    fn in_words(&self, word: &str) -> String {
        let items: Vec<String> = word.split(' ').map(|item| self.handle_in_words(item)).collect();
        items.join(" ")
    }

    fn handle_in_words(&self, word: &str) -> String {
        if let Some(name) = self.names.get(word) {
            return name.clone();
        }
        let between = |(edge, forward): Half| {
            let (from, to) = self.topology.edges[edge].ends;
            let (from, to) = if forward { (from, to) } else { (to, from) };
            format!("[$ns link {} {}]", self.node_in_words(from), self.node_in_words(to))
        };
        match self.objects.get(word) {
            None => word.to_owned(),
            Some(Object::Direction(half)) => between(*half),
            Some(Object::Queue(half)) => format!("[{} queue]", between(*half)),
            Some(Object::Delay(half)) => format!("[{} link]", between(*half)),
            Some(Object::Link(edges)) if edges.len() == 1 => between((edges[0], true)),
            Some(Object::Simulator) => "$ns".into(),
            Some(Object::Node(node) | Object::Lan(node)) => self.node_in_words(*node),
            Some(Object::Errors(_)) => "[new ErrorModel]".into(),
            Some(Object::Group(_)) => "[new EventGroup]".into(),
            Some(Object::Random(_)) => "[new RandomVariable]".into(),
            Some(Object::Link(_) | Object::Other) => "[…]".into(),
        }
    }

    fn node_in_words(&self, node: usize) -> String {
        let variable = self.topology.nodes[node].variable.as_ref();
        variable.map_or_else(|| "[…]".into(), |variable| format!("${variable}"))
    }
}
