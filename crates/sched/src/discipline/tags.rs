//! Virtual time: start and finish tags for each of two resources, and selection of the flow with the smallest
//! start.
//!
//! Tags are in 2⁻¹⁰ ns of the service of a flow of weight 1, and wrap around: only differences matter.
//! Remainders of divisions by weights are carried to the flow's next packet.

use super::later;
use crate::backlog::Backlog;
use crate::cost::Cost;

/// Fraction bits of tags.
const FRACTION: u32 = 10;

/// Flows by the start tag of their heads.
#[derive(Debug, Default)]
pub(super) struct Tags {
    heap: Vec<Entry>,
    /// The virtual time of each resource: the largest start tag of a packet taken.
    clock: [u64; 2],
    /// The largest finish tag, to which the clock is set when no packets are left.
    latest: [u64; 2],
    /// The paper's Δ: how far a resource's start may precede the finish on the other one; none without this
    /// constraint.
    dovetail: Option<u64>,
    sequence: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: u64,
    sequence: u32,
    flow: u32,
}

impl Entry {
    /// Smallest tag first; ties by arrival.
    #[inline]
    fn before(&self, other: &Self) -> bool {
        match self.key.wrapping_sub(other.key) as i64 {
            0 => (self.sequence.wrapping_sub(other.sequence) as i32) < 0,
            difference => difference < 0,
        }
    }
}

impl Tags {
    /// For `flows` flows; `dovetail` is Δ in ns.
    pub(super) fn new(flows: u32, dovetail: u64) -> Self {
        // No two resources of a flow can be more than 2⁵² ns apart.
        let dovetail = (dovetail < 1 << 52).then_some(dovetail << FRACTION);
        Self { heap: Vec::with_capacity(flows as usize), dovetail, ..Self::default() }
    }

    /// Adds a flow with its first waiting packet: S = max(V, B) on each resource.
    #[inline]
    pub(super) fn join(&mut self, backlog: &mut Backlog, flow: u32) {
        if self.heap.is_empty() && backlog.inside == 1 {
            // Limited to the distance allowed for a flow's own tags: otherwise a packet could exploit the
            // difference of the clocks.
            let latest = self.bounds(self.latest);
            self.clock = [later(self.clock[0], latest[0]), later(self.clock[1], latest[1])];
        }
        let bounds = self.bounds(backlog.flow(flow).finish);
        let most = self.bounds(self.latest);
        let place = backlog.flow_mut(flow);
        for (resource, bound) in bounds.into_iter().enumerate() {
            // A bound later than the latest tag is so old that tags have wrapped around.
            let is_past = later(most[resource], bound) == most[resource];
            let start = if is_past { later(self.clock[resource], bound) } else { self.clock[resource] };
            if start != place.finish[resource] {
                place.left_over[resource] = 0;
            }
            place.start[resource] = start;
        }
        let key = later(place.start[0], place.start[1]);
        self.sequence = self.sequence.wrapping_add(1);
        self.heap.push(Entry { key, sequence: self.sequence, flow });
        self.up();
    }

    /// The start of the next packet.
    #[inline]
    pub(super) fn due(&self) -> u64 {
        self.heap.first().map_or_else(|| later(self.clock[0], self.clock[1]), |first| first.key)
    }

    /// The virtual time of the processors.
    #[inline]
    pub(super) fn processor_clock(&mut self) -> &mut u64 {
        &mut self.clock[0]
    }

    /// Takes the head with the smallest start; `cost` gives its cost on each resource.
    #[inline]
    pub(super) fn next(
        &mut self,
        backlog: &mut Backlog,
        cost: impl Fn(&mut Backlog, u32) -> Cost,
    ) -> Option<u32> {
        loop {
            let flow = self.heap.first()?.flow;
            let Some(slot) = backlog.head(flow) else {
                self.remove_first();
                continue;
            };
            let cost = cost(backlog, slot);
            self.stamp(backlog, flow, cost);
            backlog.pop(flow);
            if backlog.head(flow).is_some() {
                let bounds = self.bounds(backlog.flow(flow).finish);
                let bounds = [later(self.clock[0], bounds[0]), later(self.clock[1], bounds[1])];
                backlog.flow_mut(flow).start = bounds;
                self.sequence = self.sequence.wrapping_add(1);
                let key = later(bounds[0], bounds[1]);
                self.heap[0] = Entry { key, sequence: self.sequence, flow };
                self.down();
            } else {
                self.remove_first();
            }
            return Some(slot);
        }
    }

    /// F = S + s / w on each resource; the clocks follow the starts.
    #[inline]
    fn stamp(&mut self, backlog: &mut Backlog, flow: u32, cost: Cost) {
        let place = backlog.flow_mut(flow);
        let weight = u64::from(place.weight);
        for (resource, cost) in [cost.processor, cost.port].into_iter().enumerate() {
            let start = place.start[resource];
            let exact = (u64::from(cost) << FRACTION) + u64::from(place.left_over[resource]);
            let (service, left_over) =
                if weight == 1 { (exact, 0) } else { (exact / weight, exact % weight) };
            place.left_over[resource] = left_over as u32;
            place.finish[resource] = start.wrapping_add(service);
            self.clock[resource] = later(self.clock[resource], start);
            self.latest[resource] = later(self.latest[resource], place.finish[resource]);
        }
    }

    /// B on each resource: its own finish, and the other's minus Δ.
    #[inline]
    fn bounds(&self, finish: [u64; 2]) -> [u64; 2] {
        let Some(ahead) = self.dovetail else { return finish };
        let [processor, port] = finish;
        [later(processor, port.wrapping_sub(ahead)), later(port, processor.wrapping_sub(ahead))]
    }

    #[inline]
    fn remove_first(&mut self) {
        self.heap.swap_remove(0);
        self.down();
    }

    /// Restores heap order upwards from the last entry.
    #[inline]
    fn up(&mut self) {
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.heap[at].before(&self.heap[parent]) {
                return;
            }
            self.heap.swap(at, parent);
            at = parent;
        }
    }

    /// Restores heap order downwards from the first entry.
    #[inline]
    fn down(&mut self) {
        let mut at = 0;
        loop {
            let left = 2 * at + 1;
            let Some(mut least) = self.heap.get(left).map(|_| left) else { return };
            if let Some(right) = self.heap.get(left + 1)
                && right.before(&self.heap[left])
            {
                least = left + 1;
            }
            if !self.heap[least].before(&self.heap[at]) {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}
