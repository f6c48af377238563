//! A worker's steps of a rewiring.

use super::pump::Arrivals;
use super::{Order, Worker};
use crate::events::SourceSetup;
use crate::observer::PoolObserver;
use crate::rewiring_step::{PartSource, RewiringStep};
use longwire_block::DropReason;
use longwire_units::Nanos;
use std::mem::swap;
use std::sync::Arc;

impl Worker {
    /// Makes the next planned rewiring: after departures and changes at its time, before arrivals.
    pub(crate) fn rewire_planned(&mut self) {
        let Some((time, mut step)) = self.rewirings.pop_front() else { return };
        self.pump(Arrivals::Ready(&[]), time, time);
        self.sample_before(time);
        self.flush_ports();
        let places: Vec<u32> = step.leaving.iter().map(|&link| self.emulation.links.place(link)).collect();
        self.rewire(&mut step, time);
        self.observe_planned(time, places.into_iter().zip(&step.left));
        self.ports.left.extend(step.finish_ports());
    }

    /// Adds links, takes over the map, and removes links. What is no longer needed is left in `step`.
    pub(crate) fn rewire(&mut self, step: &mut RewiringStep, now: Nanos) {
        if let Some(joining) = &mut step.joining {
            if let Some(observed) = PoolObserver::of(&mut self.pool) {
                observed.observer.links_joined();
            }
            self.emulation.join(joining, step.wheel.as_mut(), now);
        }
        for (place, node) in &mut step.nodes {
            self.nodes.exchange(*place as usize, node);
        }
        for (place, stand_in) in &mut step.retiring {
            self.nodes.retire(*place as usize, stand_in);
        }
        // Before their ports go.
        for &source in &step.sources_leaving {
            self.remove_source(source);
        }
        for (slot, port) in &mut step.ports {
            // They would leave by the port that takes its place.
            self.drop_held(*slot as usize, DropReason::PortDown);
            self.ports.exchange(*slot, port, now);
        }
        for (place, source) in &mut step.sources {
            self.add_source(*place as usize, source, now);
        }
        for &(slot, node) in &step.moves {
            self.ports.slots[slot as usize].node = node as usize;
        }
        if let Some(map) = &mut step.map {
            swap(&mut self.map, map);
            swap(&mut self.ports.exits, &mut step.exits);
            self.nodes.verdicts.forget_all();
            if let Some(observed) = PoolObserver::of(&mut self.pool) {
                observed.map = Arc::clone(&self.map);
            }
        }
        if let Some(in_turn) = &mut step.in_turn {
            swap(&mut self.nodes.turns, in_turn);
            self.nodes.ask_all_in_turn(self.earliest_turn());
        }
        for (node, act) in step.acts.drain(..) {
            if let Some(node) = self.nodes.all.get_mut(node as usize) {
                act(&mut **node, now);
            }
        }
        self.schedules.links.forget(&step.leaving);
        for &link in &step.leaving {
            self.emulation.leave(&mut self.pool, link, now, step.drained);
            step.left.push(self.emulation.stats_at(&mut self.pool, link, now));
        }
        self.nodes.note_deadlines();
        self.rewired += 1;
        if step.exact {
            self.order = Order::Exact;
        }
    }

    /// Adds a traffic source. What had its index before is left in `source`.
    fn add_source(&mut self, place: usize, source: &mut PartSource, now: Nanos) {
        let port = source.setup.port as usize;
        if let Some(slot) = self.ports.slots.get_mut(port) {
            slot.port.add_source(now, &mut source.flow);
        }
        self.ports.ask_again(port);
        match self.schedules.source_setups.get_mut(place) {
            Some(old) => swap(old, &mut source.setup),
            None => self.schedules.source_setups.push(std::mem::take(&mut source.setup)),
        }
    }

    /// Ends a traffic source, and forgets its changes.
    fn remove_source(&mut self, place: u32) {
        self.schedules.sources.forget(&[place]);
        let SourceSetup { port, name } = &self.schedules.source_setups[place as usize];
        let port = *port as usize;
        if let Some(slot) = self.ports.slots.get_mut(port) {
            slot.port.remove_source(name);
        }
        self.ports.ask_again(port);
    }
}
