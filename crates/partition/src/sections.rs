//! The scenario's sections as written: what a plan does not keep, and what parts are made from.

use longwire_document::expanded::expanded;
use longwire_drivers::Backend;
use longwire_scenario::{Plan, Source};
use std::collections::{HashMap, HashSet};
use toml::{Table, Value};

/// The sections, with an entry for each object.
pub(crate) struct Sections(Table);

/// Which link of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The entry is a simplex link.
    Only,
    Forward,
    Backward,
}

impl Direction {
    /// The key of what differs in this direction.
    pub(crate) fn key(self) -> Option<&'static str> {
        match self {
            Self::Only => None,
            Self::Forward => Some("forward"),
            Self::Backward => Some("backward"),
        }
    }
}

impl Sections {
    /// The sections of a plan's text.
    ///
    /// # Errors
    /// If the text is not that of a valid scenario.
    pub(crate) fn of(plan: &Plan) -> Result<Self, String> {
        expanded(&plan.text).map(Self)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The entries of a section.
    pub(crate) fn entries(&self, section: &str) -> impl Iterator<Item = &Table> {
        self.0.get(section).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table)
    }

    /// Why links can't be cut that say more than a plan keeps, by name.
    pub(crate) fn fixed_links(&self) -> HashMap<String, &'static str> {
        let mut fixed = HashMap::new();
        for entry in self.entries("link") {
            if entry.contains_key("match") || entry.contains_key("only") {
                let why = "it takes only some of the packets between its ends";
                fixed.extend(link_names(entry).into_iter().map(|(name, _)| (name, why)));
            }
        }
        for path in self.entries("path") {
            let links = path.get("links").map(texts).unwrap_or_default().into_iter();
            fixed.extend(links.map(|name| (name.to_owned(), "an explicit [[path]] leads over it")));
        }
        fixed
    }

    /// The routers whose programs choose bands or links for what they send.
    pub(crate) fn choosing_routers(&self) -> HashSet<&str> {
        let choose = |entry: &&Table| ["queue", "links"].iter().any(|key| entry.contains_key(*key));
        let forwarders = self.entries("forwarder").filter(choose);
        forwarders.filter_map(|entry| entry.get("router")?.as_str()).collect()
    }

    /// The hosts and ports that explicit paths join.
    pub(crate) fn path_ends(&self) -> impl Iterator<Item = (&str, &str)> {
        let paths = self.entries("path");
        paths.filter_map(|entry| Some((entry.get("from")?.as_str()?, entry.get("to")?.as_str()?)))
    }

    /// What no part can have, if the scenario has it, and how to do without.
    pub(crate) fn unsupported(&self) -> Option<&'static str> {
        if self.0.contains_key("nesp") {
            return Some("[nesp] sets links by frames, and they would be on several machines: leave it out");
        }
        let staged = |entry: &Table| entry.contains_key("add") || entry.contains_key("remove");
        if self.entries("at").any(staged) {
            return Some(
                "an [[at]] adds or removes objects: declare them from the start, with state = \"down\"",
            );
        }
        None
    }
}

/// Whether a traffic source sends in real time, where parts run: others are left out.
pub(crate) fn is_kept(plan: &Plan, source: &Source) -> bool {
    let driver = plan.driver_of(&plan.ports[usize::from(source.in_port)]);
    driver.is_some_and(|driver| driver.backend == Backend::Sources)
}

/// The names of an entry's links.
pub(crate) fn link_names(entry: &Table) -> Vec<(String, Direction)> {
    let name = entry.get("name").and_then(Value::as_str);
    let between = entry.get("between").map(texts).unwrap_or_default();
    match (name, &between[..]) {
        (Some(name), [_, _]) => {
            let named =
                |direction: Direction| (format!("{name}.{}", direction.key().unwrap_or_default()), direction);
            vec![named(Direction::Forward), named(Direction::Backward)]
        }
        (None, [one, two]) => {
            vec![(format!("{one}-{two}"), Direction::Forward), (format!("{two}-{one}"), Direction::Backward)]
        }
        (Some(name), _) => vec![(name.to_owned(), Direction::Only)],
        (None, _) => {
            let end = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
            vec![(format!("{}-{}", end("from"), end("to")), Direction::Only)]
        }
    }
}

/// The texts of a value that is one or a list.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}
