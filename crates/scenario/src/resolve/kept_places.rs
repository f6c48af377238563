//! Numbers in a plan that runs, which the plan that follows keeps: places of ports, by their names, numbers
//! of links for programs, and those of traffic sources.

use crate::plan::{Plan, PortSide};
use std::collections::HashMap;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct KeptPlaces {
    by_name: HashMap<(Box<str>, PortSide), u16>,
    /// By place, those of removed ports included.
    pub(super) names: Vec<(Box<str>, PortSide)>,
    /// By the name of a link: its number for programs.
    links: HashMap<Box<str>, u16>,
    /// The first number that no link has.
    next_link: u16,
    /// By the name of a traffic source: its number.
    sources: HashMap<Box<str>, u16>,
    /// How many numbers sources have had.
    pub(super) source_numbers: u16,
}

impl KeptPlaces {
    /// The places in `plan`.
    pub(crate) fn of(plan: &Plan) -> Self {
        let names: Vec<_> = plan.ports.iter().map(|port| (port.name.clone(), port.side())).collect();
        let by_name = names.iter().cloned().zip(0..).collect();
        let choices = plan.routers.iter().flat_map(|router| &router.links);
        let links: HashMap<_, _> = choices.map(|link| (link.name.clone(), link.number)).collect();
        let next_link = links.values().max().map_or(0, |last| last.saturating_add(1));
        let sources = plan.sources.iter().map(|source| (source.name.clone(), source.number)).collect();
        Self { by_name, names, links, next_link, sources, source_numbers: plan.source_numbers }
    }

    /// The number of a link for programs: the one that it had, or a new one. None if there are too many.
    pub(super) fn link_number(&mut self, name: &str) -> Option<u16> {
        if let Some(&number) = self.links.get(name) {
            return Some(number);
        }
        let number = self.next_link;
        self.next_link = number.checked_add(1)?;
        Some(number)
    }

    /// The number of a traffic source: the one that it had, or a new one. A run that has had more than can be
    /// distinguished is refused when the source is to begin.
    pub(super) fn source_number(&mut self, name: &str) -> u16 {
        if let Some(&number) = self.sources.get(name) {
            return number;
        }
        let number = self.source_numbers;
        self.source_numbers = number.saturating_add(1);
        number
    }

    /// The place of a port.
    pub(super) fn get(&self, name: &str, side: PortSide) -> Option<u16> {
        self.by_name.get(&(name.into(), side)).copied()
    }
}
