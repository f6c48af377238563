//! Links that filters steer packets to, and those that routers' programs may choose.

use super::Resolver;
use super::links::Links;
use super::nodes::Nodes;
use crate::link_edit::targets;
use crate::plan::{End, LinkRequest, Steer};
use longwire_router::LinkChoice;
use std::collections::HashMap;

/// Most targets of a link's filter.
const MOST: usize = 256;
/// Most times that a packet is steered from link to link; the engine's limit is 1024.
const MOST_IN_A_ROW: usize = 256;

impl Resolver<'_, '_> {
    /// Finds the targets of all filters. A target carries nothing else, unless it has matches.
    pub(super) fn steers(&mut self, links: &mut Links) -> Vec<Steer> {
        let mut steers: Vec<Steer> = Vec::new();
        for place in 0..links.links.len() {
            let targets = targets(&links.profiles[links.links[place].profile as usize].blocks);
            if targets.len() > MOST {
                let what = format!("its filter names {} links to steer to", targets.len());
                self.at_link(links, (place as u32, "filter"), what, format!("name {MOST} at the most"));
                continue;
            }
            for (number, name) in targets.iter().enumerate() {
                if let Some(target) = self.target(links, place, name) {
                    links.matched[target as usize] = true;
                    steers.push(Steer { link: place as u32, number: number as u8, target });
                }
            }
        }
        self.steers_end(links, &steers);
        steers
    }

    /// Refuses steering in a circle, whatever the rules' conditions, and chains that are too long.
    fn steers_end(&mut self, links: &Links, steers: &[Steer]) {
        // By link: most times that a packet entering it is steered, once known.
        let mut depths: Vec<Option<usize>> =
            vec![None; if steers.is_empty() { 0 } else { links.links.len() }];
        let of_link = |link: u32| {
            let begin = steers.partition_point(|steer| steer.link < link);
            steers[begin..].iter().take_while(move |steer| steer.link == link).map(|steer| steer.target)
        };
        for first in steers.iter().filter(|steer| steer.number == 0).map(|steer| steer.link) {
            // The links on the path here, and their targets still to follow.
            let mut way = vec![(first, of_link(first))];
            while let Some((link, targets)) = way.last_mut() {
                let link = *link;
                let Some(target) = targets.find(|target| depths[*target as usize].is_none()) else {
                    let deepest = of_link(link).filter_map(|target| depths[target as usize]).max();
                    depths[link as usize] = Some(deepest.map_or(0, |depth| depth + 1));
                    way.pop();
                    continue;
                };
                if let Some(begin) = way.iter().position(|(on_way, _)| *on_way == target) {
                    let circle: Vec<u32> = way[begin..].iter().map(|(link, _)| *link).collect();
                    return self.report_circle(links, &circle);
                }
                if way.len() > MOST_IN_A_ROW {
                    return self.report_long_chain(links, first);
                }
                way.push((target, of_link(target)));
            }
            if depths[first as usize].is_some_and(|depth| depth > MOST_IN_A_ROW) {
                return self.report_long_chain(links, first);
            }
        }
    }

    fn report_long_chain(&mut self, links: &Links, first: u32) {
        let what = format!("packets are steered from it more than {MOST_IN_A_ROW} times in a row");
        let fix = "steer directly to the last link, by a rule with the conditions of all";
        self.at_link(links, (first, "filter"), what, fix);
    }

    fn report_circle(&mut self, links: &Links, circle: &[u32]) {
        const SHOWN: usize = 8;
        let name = |link: &u32| format!("\"{}\"", links.links[*link as usize].name);
        let mut names: Vec<String> = circle.iter().take(SHOWN).map(name).collect();
        if circle.len() > SHOWN {
            names.push("…".into());
        }
        names.push(name(&circle[0]));
        let what = format!("its filter steers in a circle: {}", names.join(" → "));
        let fix =
            "leave out one of these rules: a link may steer only to links from which no rule leads back";
        self.at_link(links, (circle[0], "filter"), what, fix);
    }

    /// The link `name`, or the direction of a duplex link `name`, with the ends of the one at `place`.
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
        let (what, fix) = match found.is_empty() {
            true => (
                format!("its filter steers to \"{}\", and there is no such link", name.escape_debug()),
                "name a link that begins and ends where this one does",
            ),
            false => (
                format!("its filter steers to \"{name}\", which goes elsewhere, or is this link itself"),
                "steer to another link with the same two ends",
            ),
        };
        self.at_link(links, (place as u32, "filter"), what, fix);
        None
    }

    /// Lists each router's links, and finds which links can be replaced by links for programs only.
    pub(super) fn choices(&mut self, nodes: &mut Nodes, links: &Links) -> Vec<LinkRequest> {
        let mut known: HashMap<(End, End), SameEnds> = HashMap::new();
        for (place, link) in links.links.iter().enumerate() {
            let of_ends = known.entry((link.from, link.to)).or_default();
            of_ends.matched |= links.matched[place] && !links.spare[place];
            if !links.spare[place] {
                of_ends.usual.push(place as u32);
            }
        }
        let mut requests = Vec::new();
        for (place, link) in links.links.iter().enumerate() {
            let (spare, ends) = (links.spare[place], &known[&(link.from, link.to)]);
            let Some((router, port, from)) = beginning(nodes, link.from, link.to) else {
                if spare {
                    let what = "it is for programs only, and begins where no router's program sends packets";
                    let fix =
                        "write it as a simplex link that begins at a router's port: from = \"…\", to = \"…\"";
                    self.at_link(links, (place as u32, ""), what, fix);
                }
                continue;
            };
            if spare && ends.usual.is_empty() {
                let what = "it is for programs only, and no other link has the same two ends";
                let fix =
                    "leave only = \"programs\" out: programs may name any link that begins at their router";
                self.at_link(links, (place as u32, ""), what, fix);
                continue;
            }
            // Where addresses choose among links, a program could not move those packets.
            if !spare && ends.matched {
                continue;
            }
            let Some(number) = nodes.kept.link_number(&link.name) else {
                if spare {
                    let what = format!("there are more than {} links that programs may name", u16::MAX);
                    self.at_link(links, (place as u32, ""), what, "leave this one out");
                }
                continue;
            };
            nodes.routers[router as usize].links.push(LinkChoice {
                name: link.name.clone(),
                number,
                port,
                from,
            });
            if spare {
                let target = place as u32;
                requests.extend(ends.usual.iter().map(|&link| LinkRequest { link, number, target }));
            }
        }
        requests
    }
}

/// Links with the same two ends.
#[derive(Default)]
struct SameEnds {
    /// Those that are not for programs only.
    usual: Vec<u32>,
    /// Whether some are chosen by addresses.
    matched: bool,
}

/// For a link that a router's packets can take: the router, the output port, and the input port if the link
/// begins there.
fn beginning(nodes: &Nodes, from: End, to: End) -> Option<(u32, u16, Option<u16>)> {
    let End::Port(from) = from else { return None };
    let router = |place: u16| nodes.ports[usize::from(place)].router;
    match (router(from), nodes.ports[usize::from(from)].attachment.far()) {
        (Some(own), Some(_)) => Some((own, from, None)),
        (Some(own), None) => match to {
            End::Port(to) if router(to) == Some(own) => Some((own, to, Some(from))),
            _ => None,
        },
        (None, Some(far)) => Some((router(far)?, far, None)),
        (None, None) => None,
    }
}
