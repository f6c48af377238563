//! Whether it makes a difference which output queue a router's program chooses.

use crate::plan::{Attachment, End, Link, Plan};

impl Plan {
    /// What is odd about an output queue that is chosen for packets of this router: links begin at its ports, and none of them has more than one.
    pub fn one_queue(&self, router: u32) -> Option<String> {
        let mut links = self.first_links(router).peekable();
        links.peek()?;
        if links.any(|link| self.has_classes(link)) {
            return None;
        }
        let name = &self.routers[router as usize].name;
        Some(format!(
            "no link that begins at \"{name}\" has more than one queue: it makes no difference; give one a queue of kind \
             priority, wf2q+ or hfsc"
        ))
    }

    /// The links that begin at a router's ports, on either side of them.
    fn first_links(&self, router: u32) -> impl Iterator<Item = &Link> {
        let own = move |place: u16| self.ports[usize::from(place)].router == Some(router);
        self.links.iter().filter(move |link| match link.from {
            End::Port(place) => match self.ports[usize::from(place)].attachment {
                Attachment::Inner { far } => own(place) || own(far),
                _ => own(place),
            },
            End::Bridge(_) => false,
        })
    }

    /// Whether a link's queue has classes that something besides it may choose.
    fn has_classes(&self, link: &Link) -> bool {
        let blocks = &self.profiles[link.profile as usize].blocks;
        let queue = blocks.iter().find(|(spec, _)| spec.key == "queue");
        queue.is_some_and(|(spec, _)| spec.params.iter().any(|param| param.name == "classes"))
    }
}
