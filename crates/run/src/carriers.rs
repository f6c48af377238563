//! Carriers in a router's namespace: the interface for a router's own port has a carrier while links that are
//! up connect that port in both directions.

use crate::threads::EndingThread;
use longwire_block::path::LinkRef;
use longwire_engine::Remote;
use longwire_mirror::Carriers;
use longwire_scenario::{End, Plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Interval between checks of links. A shorter outage may go unnoticed.
const LOOK: Duration = Duration::from_millis(20);

/// An interface for a router's own port.
#[derive(Debug)]
pub struct Wire {
    /// The port's place in the plan.
    port: u16,
    /// Places in the plan of the links that leave the port, and of those that lead to it.
    out: Vec<usize>,
    back: Vec<usize>,
    /// The interface's index in its namespace.
    index: u32,
    has_carrier: bool,
}

impl Wire {
    /// The interface with this index for the port at `place`; none if the port has no wire of its own.
    pub fn of(plan: &Plan, place: u16, index: u32) -> Option<Self> {
        plan.ports[usize::from(place)].attachment.far()?;
        let that = |end: fn(&longwire_scenario::Link) -> End| {
            let links = plan.links.iter().enumerate();
            links.filter(|(_, link)| end(link) == End::Port(place)).map(|(at, _)| at).collect::<Vec<_>>()
        };
        let (out, back) = (that(|link| link.from), that(|link| link.to));
        Some(Self { port: place, out, back, index, has_carrier: true })
    }

    /// This interface with its links in another plan.
    fn in_plan(&self, plan: &Plan) -> Option<Self> {
        let found = Self::of(plan, self.port, self.index)?;
        Some(Self { has_carrier: self.has_carrier, ..found })
    }

    /// Whether it should have a carrier; `up` tells which links are up, by place. Without links in both
    /// directions it has one.
    fn is_up(&self, up: impl Fn(usize) -> bool) -> bool {
        let both = [&self.out, &self.back];
        both.iter().any(|links| links.is_empty())
            || both.iter().all(|links| links.iter().any(|&link| up(link)))
    }
}

/// Numbers of carrier changes, and of refusals by the kernel.
#[derive(Debug, Default)]
pub struct CarrierCounts {
    pub changes: AtomicU64,
    pub refused: AtomicU64,
}

/// The interfaces of a namespace.
#[derive(Debug)]
pub struct Wires {
    /// The name of its router.
    pub router: String,
    /// Handle to change their carriers.
    pub carriers: Carriers,
    /// The interfaces.
    pub wires: Vec<Wire>,
    /// Counters of the changes.
    pub counts: Arc<CarrierCounts>,
}

impl Wires {
    /// Finds the links of the wires in another plan.
    pub fn follow_plan(&mut self, plan: &Plan) {
        self.wires = self.wires.iter().filter_map(|wire| wire.in_plan(plan)).collect();
    }

    fn follow(&mut self, up: impl Fn(usize) -> bool) {
        for wire in &mut self.wires {
            let on = wire.is_up(&up);
            if on == wire.has_carrier {
                continue;
            }
            wire.has_carrier = on;
            let done = self.carriers.set(wire.index, on);
            let counter = if done.is_ok() { &self.counts.changes } else { &self.counts.refused };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A thread that follows the state of links. Its result is what it followed.
pub type CarrierWatch = EndingThread<Vec<Wires>>;

/// Follows the links of `all`; `links` are the engine's references by place in the plan. None if there is
/// nothing to follow, or no thread can be started.
pub fn follow_links(mut all: Vec<Wires>, links: &[LinkRef], remote: Remote) -> Option<CarrierWatch> {
    let wires = || all.iter().flat_map(|wires| &wires.wires);
    // Those with links in one direction may have others in the next plan.
    wires().next()?;
    let mut places: Vec<usize> =
        wires().flat_map(|wire| wire.out.iter().chain(&wire.back)).copied().collect();
    places.sort_unstable();
    places.dedup();
    let links: Vec<LinkRef> = places.iter().map(|&place| links[place]).collect();
    let follow = move |ended: &Receiver<()>| {
        loop {
            // A worker that does not answer now may do so later.
            if let Ok(up) = remote.are_up(&links) {
                let is_up = |place: usize| places.binary_search(&place).is_ok_and(|at| up[at]);
                all.iter_mut().for_each(|wires| wires.follow(is_up));
            }
            if ended.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                return all;
            }
        }
    };
    CarrierWatch::start("carriers", follow).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two routers whose own ports these links join.
    fn plan(links: &str) -> Plan {
        let router = |[router, host, own]: [&str; 3], net: u8| {
            format!(
                "[[host]]\nname = \"{host}\"\naddress = \"10.0.{net}.9/24\"\n\
                 [[router]]\nname = \"{router}\"\ncontrol-plane = \"netns\"\nports = [\n\
                 {{ port = \"{host}\", addresses = \"10.0.{net}.1/24\" }},\n\
                 {{ port = \"{own}\", addresses = \"10.9.0.{net}/30\" }}]\n"
            )
        };
        let routers = router(["west", "a", "west-east"], 1) + &router(["east", "b", "east-west"], 2);
        longwire_scenario::plan_of(&(routers + links))
    }

    #[test]
    fn an_interface_follows_the_links_of_the_present_plan() {
        const BOTH: &str = "[[link]]\nname = \"line\"\nbetween = [\"west-east\", \"east-west\"]\n";
        const ONE: &str = "[[link]]\nname = \"there\"\nfrom = \"west-east\"\nto = \"east-west\"\n";
        const BACK: &str = "[[link]]\nname = \"back\"\nfrom = \"east-west\"\nto = \"west-east\"\n";
        let first = plan(BOTH);
        let place = first.ports.iter().position(|port| &*port.name == "west-east").unwrap();
        let wire = Wire::of(&first, place as u16, 7).unwrap();
        assert!(wire.is_up(|_| true) && !wire.is_up(|_| false));
        let one_way = wire.in_plan(&plan(ONE)).unwrap();
        assert!(one_way.is_up(|_| false), "nothing would come back");
        let again = one_way.in_plan(&plan(&(ONE.to_owned() + BACK))).unwrap();
        assert_eq!((&again.out[..], &again.back[..], again.index), (&[0][..], &[1][..], 7));
        assert!(again.is_up(|_| true) && !again.is_up(|link| link == 0));
    }
}
