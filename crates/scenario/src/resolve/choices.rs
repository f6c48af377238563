//! Links that routers' programs may choose.

use super::Resolver;
use super::links::Links;
use super::nodes::Nodes;
use crate::plan::{End, LinkRequest};
use longwire_router::LinkChoice;
use std::collections::HashMap;

impl Resolver<'_, '_> {
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
                    self.at_link(links, place as u32, what.into(), fix);
                }
                continue;
            };
            if spare && ends.usual.is_empty() {
                let what = "it is for programs only, and no other link has the same two ends";
                let fix =
                    "leave only = \"programs\" out: programs may name any link that begins at their router";
                self.at_link(links, place as u32, what.into(), fix);
                continue;
            }
            // Where addresses choose among links, a program could not move those packets.
            if !spare && ends.matched {
                continue;
            }
            let Some(number) = nodes.kept.link_number(&link.name) else {
                if spare {
                    let what = format!("there are more than {} links that programs may name", u16::MAX);
                    self.at_link(links, place as u32, what, "leave this one out");
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
