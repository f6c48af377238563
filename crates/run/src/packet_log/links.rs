//! The logged links of a run: their numbers in the log, and where each worker has them. Links that join while
//! the run goes on get numbers of their own.

use super::row::NO_LINK;
use crate::link_pattern::LinkPattern;
use crate::threads::lock;
use longwire_block::path::LinkRef;
use longwire_scenario::Plan;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// By a link's index at a worker: its number in the log, or [`NO_LINK`].
pub type Numbers = Vec<u32>;

/// The numbers that a worker's recorder takes over, one list for each time that links are placed. The lists
/// that it had are freed by whoever places links next.
#[derive(Debug, Default)]
pub struct PlacedNumbers {
    next: VecDeque<Numbers>,
    spent: Vec<Numbers>,
}

/// What workers' recorders take over.
pub type Placing = Arc<Mutex<PlacedNumbers>>;

/// See the module.
#[derive(Debug)]
pub struct LoggedLinks {
    pattern: Option<LinkPattern>,
    state: Mutex<LinkNames>,
    placed: Box<[Placing]>,
}

#[derive(Debug)]
struct LinkNames {
    /// By number in the log.
    names: Vec<String>,
    /// By worker.
    numbers: Vec<Numbers>,
}

impl LoggedLinks {
    /// Of a run with so many workers: links that fit the pattern, or all.
    pub fn new(pattern: Option<LinkPattern>, workers: u32) -> Self {
        let placed = (0..workers).map(|_| Placing::default()).collect();
        let state = LinkNames { names: Vec::new(), numbers: vec![Vec::new(); workers as usize] };
        Self { pattern, state: Mutex::new(state), placed }
    }

    /// What the recorder of a worker takes over.
    pub fn placing(&self, worker: u32) -> Placing {
        Arc::clone(&self.placed[worker as usize])
    }

    /// Says where new links are, before the engine has them: those of `plan` at the places `fresh`, which the
    /// engine will find at `refs`. Each worker's recorder hears of it once.
    pub fn place(&self, plan: &Plan, refs: &[LinkRef], fresh: impl Iterator<Item = u32>) {
        let mut state = lock(&self.state);
        let LinkNames { names, numbers } = &mut *state;
        for place in fresh {
            let (name, link) = (&plan.links[place as usize].name, refs[place as usize]);
            let own = &mut numbers[link.worker() as usize];
            let local = link.local() as usize;
            own.resize(own.len().max(local + 1), NO_LINK);
            let is_logged = self.pattern.as_ref().is_none_or(|pattern| pattern.fits(name));
            own[local] = if is_logged { names.len() as u32 } else { NO_LINK };
            if is_logged {
                names.push(name.to_string());
            }
        }
        for (placed, numbers) in self.placed.iter().zip(numbers) {
            let spent = {
                let mut placed = lock(placed);
                placed.next.push_back(numbers.clone());
                let room = placed.next.len() + 1;
                std::mem::replace(&mut placed.spent, Vec::with_capacity(room))
            };
            // Not under the lock, for which a worker may wait.
            drop(spent);
        }
    }

    /// Adds the names from number `names.len()` on.
    pub fn add_names(&self, names: &mut Vec<String>) {
        names.extend_from_slice(&lock(&self.state).names[names.len()..]);
    }
}

/// Takes over the numbers that were placed next.
pub fn take_over(placing: &Placing, numbers: &mut Numbers) {
    let mut placed = lock(placing);
    if let Some(next) = placed.next.pop_front() {
        let before = std::mem::replace(numbers, next);
        placed.spent.push(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_scenario::plan_of;

    #[test]
    fn links_keep_their_numbers_and_indices_are_used_again() {
        let plan = |names: &[&str]| {
            let link = |name: &&str| {
                let [from, to] = if *name == "y" { ["b", "a"] } else { ["a", "b"] };
                format!("[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n")
            };
            let ports = ["a", "b"].map(|name| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n"));
            plan_of(&(ports.concat() + &names.iter().map(link).collect::<String>()))
        };
        let links = LoggedLinks::new(Some("x*".parse().unwrap()), 1);
        let (placing, mut numbers, mut names) = (links.placing(0), Vec::new(), Vec::new());
        let at = |local| LinkRef::new(0, local);
        links.place(&plan(&["x1"]), &[at(0)], 0..1);
        links.place(&plan(&["x1", "y"]), &[at(0), at(1)], 1..2);
        links.place(&plan(&["x2", "y"]), &[at(0), at(1)], 0..1);
        let mut all = Vec::new();
        for _ in 0..4 {
            take_over(&placing, &mut numbers);
            all.push(numbers.clone());
        }
        assert_eq!(all, [vec![0], vec![0, NO_LINK], vec![1, NO_LINK], vec![1, NO_LINK]]);
        links.add_names(&mut names);
        assert_eq!(names, ["x1", "x2"]);
    }
}
