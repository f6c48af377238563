//! Whether the output queue that a router's program chooses has any effect.

use crate::plan::{End, Link, Plan};
use std::collections::HashSet;

impl Plan {
    /// A warning about a queue chosen for packets of this router: no first link has several, or there is no
    /// link.
    pub fn one_queue(&self, router: u32) -> Option<String> {
        let mut links = self.first_links(router).peekable();
        let name = &self.routers[router as usize].name;
        if links.peek().is_none() {
            return Some(format!(
                "no link begins at \"{name}\": there is no queue to choose, and this has no effect; join \
                 a link to it with a queue of kind priority, wf2q+ or hfsc"
            ));
        }
        if links.any(|link| self.has_classes(link)) {
            return None;
        }
        Some(format!(
            "no link that begins at \"{name}\" has more than one queue: this has no effect; give one a \
             queue of kind priority, wf2q+ or hfsc"
        ))
    }

    /// The links that begin at a router's ports, on either side, or at bridges attached to them.
    fn first_links(&self, router: u32) -> impl Iterator<Item = &Link> {
        let of_router = move |place: u16| self.ports[usize::from(place)].router == Some(router);
        let own = move |place: u16| {
            of_router(place) || self.ports[usize::from(place)].attachment.far().is_some_and(of_router)
        };
        let hung = self
            .ports
            .iter()
            .filter(move |port| port.router.is_none() && port.attachment.far().is_some_and(of_router));
        let hung = hung.map(|port| port.segment);
        let hung: HashSet<u32> = hung.collect();
        self.links.iter().filter(move |link| match (link.from, link.to) {
            (End::Port(place), _) => own(place),
            // It leads to the router.
            (End::Bridge(_), End::Port(place)) if own(place) => false,
            (End::Bridge(bridge), _) => hung.contains(&self.bridges[bridge as usize].segment),
        })
    }

    /// Whether a link's queue has classes that can be chosen from outside.
    fn has_classes(&self, link: &Link) -> bool {
        let queue = self.profiles[link.profile as usize].block("queue");
        queue.is_some_and(|(spec, _)| spec.params.iter().any(|param| param.name == "classes"))
    }
}
