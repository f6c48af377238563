//! Links that filters send packets to.

use super::links::Links;
use super::{Desk, Entry};
use crate::plan::Steer;
use crate::steering::targets;

/// Most targets of a link's filter.
const MOST: usize = 256;

impl Desk<'_, '_> {
    /// Finds the targets of all filters. A link that is one carries nothing else, unless it has matches of its own.
    pub(super) fn steers(&mut self, links: &mut Links) -> Vec<Steer> {
        let mut steers: Vec<Steer> = Vec::new();
        let chosen = links.matched.clone();
        for place in 0..links.links.len() {
            let targets = targets(&links.profiles[links.links[place].profile as usize].blocks);
            if targets.len() > MOST {
                let what = format!("its filter names {} links to steer to", targets.len());
                self.steer_error(links, place, what, format!("name {MOST} at the most"));
                continue;
            }
            for (number, name) in targets.iter().enumerate() {
                if let Some(target) = self.target(links, place, name) {
                    links.matched[target as usize] = true;
                    steers.push(Steer { link: place as u32, number: number as u8, target });
                }
            }
        }
        self.steers_reach(links, &steers, &chosen);
        steers
    }

    /// Every link that steers must carry something: those that steer only to each other would all be passed by. `chosen` are the links with
    /// matches of their own.
    fn steers_reach(&mut self, links: &Links, steers: &[Steer], chosen: &[bool]) {
        let mut reached: Vec<bool> = links.matched.iter().zip(chosen).map(|(to, own)| !to || *own).collect();
        let mut open: Vec<u32> = (0..reached.len() as u32).filter(|at| reached[*at as usize]).collect();
        while let Some(from) = open.pop() {
            let of_link = &steers[steers.partition_point(|steer| steer.link < from)..];
            for steer in of_link.iter().take_while(|steer| steer.link == from) {
                if !std::mem::replace(&mut reached[steer.target as usize], true) {
                    open.push(steer.target);
                }
            }
        }
        let lost = steers.iter().filter(|steer| steer.number == 0 && !reached[steer.link as usize]);
        for steer in lost {
            let what =
                "no packet comes to it: others only steer to it, and come from nowhere else themselves";
            let mend =
                "add a link between these two ends that none steers to, or give one of them a \"match\"";
            self.steer_error(links, steer.link as usize, what.into(), mend.into());
        }
    }

    /// The link called `name`, or the direction of a duplex link of that name, that goes where the one at `place` goes.
    fn target(&mut self, links: &Links, place: usize, name: &str) -> Option<u32> {
        let from = &links.links[place];
        let directions = [name.to_owned(), format!("{name}.forward"), format!("{name}.backward")];
        let found: Vec<u32> =
            directions.iter().filter_map(|name| links.names.get(name.as_str()).copied()).collect();
        let fits = |target: &&u32| {
            let to = &links.links[**target as usize];
            (to.from, to.to) == (from.from, from.to) && **target as usize != place
        };
        if let Some(target) = found.iter().find(fits) {
            return Some(*target);
        }
        let (what, mend) = match found.is_empty() {
            true => (
                format!("its filter steers to \"{}\", and there is no such link", name.escape_debug()),
                "name a link that begins and ends where this one does",
            ),
            false => (
                format!("its filter steers to \"{name}\", which goes elsewhere, or is this link itself"),
                "steer to another link with the same two ends",
            ),
        };
        self.steer_error(links, place, what, mend.into());
        None
    }

    fn steer_error(&mut self, links: &Links, place: usize, what: String, mend: String) {
        let entry = Entry { section: "link", name: Some(&links.links[place].name), n: None };
        self.error(&links.spans[place], &entry, "filter", what, mend);
    }
}
