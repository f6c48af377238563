//! Work at each port, node and link of a plan, for cutting it into parts.

use super::Bounds;
use super::cost::{Costs, Place};
use super::paths::Paths;
use longwire_prices::EnginePrices;
use longwire_scenario::Plan;
use longwire_units::Bytes;

/// Work of a plan by place, in picoseconds of processor time a second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceWork {
    /// By place of the port.
    pub ports: Vec<u128>,
    /// By index of the segment.
    pub segments: Vec<u128>,
    /// By place of the link.
    pub links: Vec<LinkWork>,
    /// Whether there are unbounded paths, for which a rate was assumed.
    pub unbounded: bool,
}

/// Packets and work of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkWork {
    /// Packets a second.
    pub packets: u64,
    /// Work.
    pub work: u128,
}

/// The work at each place if every link is full of frames of that length and every source sends at its
/// maximum. Paths without a bound carry `unbounded` packets a second.
pub fn place_work(plan: &Plan, prices: &EnginePrices, frame: Bytes, unbounded: u64) -> PlaceWork {
    let paths = Paths::of(plan);
    let bounds = Bounds::of(plan, &paths, frame);
    let costs = Costs::new(plan, prices, frame);
    let mut work = PlaceWork {
        ports: vec![0; plan.ports.len()],
        segments: vec![0; plan.segments.len()],
        links: vec![LinkWork::default(); plan.links.len()],
        unbounded: false,
    };
    paths.each(|path| {
        let bound = bounds.packets(path);
        work.unbounded |= bound.is_none();
        let packets = bound.unwrap_or(unbounded);
        for &link in path.links {
            let link = &mut work.links[link as usize];
            link.packets = link.packets.saturating_add(packets);
        }
        costs.each_place(path, |place, picoseconds| {
            let more = u128::from(packets) * u128::from(picoseconds);
            match place {
                Place::Port(place) => work.ports[usize::from(place)] += more,
                Place::Segment(index) => work.segments[index as usize] += more,
                Place::Link(place) => work.links[place as usize].work += more,
            }
        });
    });
    work
}
