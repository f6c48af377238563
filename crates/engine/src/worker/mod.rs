//! A worker moves packets from ports, through nodes and links, to ports. The loops in `real`, `simulated` and
//! `windows` pass it the time.

mod between;
mod carry_out;
mod commands;
mod egress;
mod flood;
mod intake;
mod observing;
mod plain;
mod pump;
mod real;
mod report;
mod rewiring;
mod simulated;
mod tick;
mod turns;
mod windows;

pub use commands::{Change, are_alike};

use crate::between::Peers;
use crate::counters::WorkerCounters;
use crate::emulation::Emulation;
use crate::intake::Intake;
use crate::map::Map;
use crate::nodes::Nodes;
use crate::ports::Ports;
use crate::rewiring_step::RewiringStep;
use crate::schedules::Schedules;
use crate::setup::{Parts, TO_THE_END, WorkerSetup};
use crate::tick::Ticks;
use crate::walk::{NextStep, Step, Walk};
use crate::windows::Windows;
use longwire_block::DropReason;
use longwire_block::path::{NOWHERE, UNDECIDED};
use longwire_link::{Arrival, Fifo, Lead};
use longwire_packet::{Handle, Meta, PacketEvent, Pool};
use longwire_units::Nanos;
use observing::Observing;
use pump::Arrivals;
use std::collections::VecDeque;
use std::sync::Arc;

/// Order of departures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Links that lead only to ports are independent, so each is served for a whole step at once.
    ByLink,
    /// Every event in its exact place: (time, departures before arrivals, place in the plan, sequence).
    Exact,
}

/// See the module.
pub struct Worker {
    pub(crate) index: u32,
    /// Whether the clock is simulated, so that packets leave exactly on time.
    pub(crate) simulated: bool,
    pub(crate) order: Order,
    pub(crate) map: Arc<Map>,
    pub(crate) pool: Pool,
    /// Received packets.
    pub(crate) intake: Intake,
    /// Nodes, which decide where packets go.
    pub(crate) nodes: Nodes,
    /// Links and their timing wheel.
    pub(crate) emulation: Emulation,
    /// Pending steps of the packet being processed.
    pub(crate) walk: Walk,
    /// Output ports of this worker.
    pub(crate) ports: Ports,
    /// Rings to and from other workers.
    pub(crate) peers: Peers,
    /// State of simulated runs with several workers; see `windows`.
    pub(crate) windows: Option<Windows>,
    /// Pending changes of links and sources.
    pub(crate) schedules: Schedules,
    pub(crate) counters: WorkerCounters,
    pub(crate) observing: Observing,
    /// Planned rewirings of a simulated run.
    pub(crate) rewirings: VecDeque<(Nanos, RewiringStep)>,
    /// How many steps of rewirings it has made.
    pub(crate) rewired: usize,
}

impl Worker {
    /// Workers on the machine's clock, for tests that run them step by step.
    #[cfg(test)]
    pub(crate) fn of(setup: crate::Setup) -> Vec<Self> {
        setup.into_parts(false, Nanos::ZERO).into_iter().map(Self::new).collect()
    }

    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { index, setup, map, peers, tolerance, simulated, windows, start } = parts;
        let WorkerSetup { mut pool, ports, nodes, links, flat, crossing, mut agenda, .. } = setup;
        // Changes need exact order among arrivals.
        let is_exact = simulated || !flat || !agenda.links.events.is_empty();
        let in_turn = ports.iter().filter(|port| map.inner_ports.in_turn(port.place)).map(|port| port.node);
        let nodes = Nodes::new(nodes, in_turn, std::mem::take(&mut agenda.nodes), (start, simulated));
        let observing = Observing::new(&map, &mut pool, (setup.observer, setup.sampler), start);
        let longest = windows.as_ref().map(|windows| windows.longest);
        let ahead = longest.map(|by| (Lead { by, until: TO_THE_END }, crossing));
        let ticks = Ticks::new(tolerance.tick, start, ports.len());
        Self {
            index,
            simulated,
            order: if is_exact { Order::Exact } else { Order::ByLink },
            pool,
            intake: Intake::new(ports.len(), peers.inbox.most_in_a_step()),
            nodes,
            emulation: Emulation::new(links, start, simulated, ahead),
            walk: Walk::new(),
            ports: Ports::new(ports, &map, index, (simulated, windows.is_some()), ticks),
            peers,
            windows,
            schedules: Schedules::new(agenda, start),
            counters: WorkerCounters::new(start, tolerance),
            observing,
            rewirings: VecDeque::new(),
            rewired: 0,
            map,
        }
    }

    /// Handles all events up to `now`: received packets and due packets. `gap` is the time since the last
    /// poll of the ports. Returns the number of packets that came or left.
    pub fn step(&mut self, now: Nanos, gap: Nanos) -> usize {
        let before = self.counters.flow.sent + self.counters.flow.handed_over;
        self.ports.polled = Nanos(now.0.saturating_sub(gap.0));
        self.change_sources_due(now);
        let came = self.ingest(now, gap) + self.take_from_rings();
        let ready = self.intake.serve();
        match self.order {
            Order::ByLink => self.serve_by_link(&ready, now),
            Order::Exact => self.pump(Arrivals::Ready(&ready), now, now),
        }
        self.intake.served(ready);
        self.flush_ports();
        if self.ports.ticks.is_some() && !self.simulated {
            self.send_at_tick(now);
        }
        self.send_all_over();
        came + (self.counters.flow.sent + self.counters.flow.handed_over - before) as usize
    }

    /// Releases the packets of a due link that leave by `until`; in windows, if it leads to another worker's
    /// link, ahead of time.
    pub(crate) fn turn(&mut self, link: u32, until: Nanos) {
        let is_ahead = self.emulation.lead_of(link).is_some();
        if self.observing.on {
            self.sample_before(until);
        }
        let mut out = self.emulation.let_go(&mut self.pool, link, until);
        let place = self.emulation.links.place(link);
        if self.observing.on {
            self.observe_left(out);
        }
        while let Some(handle) = out.pop(&self.pool) {
            let seq = self.emulation.number(self.pool.meta_mut(handle), place);
            // A steered packet, or a reply, leaves now, as without a lead.
            if is_ahead && self.pool.meta(handle).flags & Meta::DIVERTED == 0 {
                self.go_ahead(handle);
            } else {
                self.follow(Some((place, seq)));
                self.leave(handle);
                self.follow(None);
            }
        }
    }

    /// Enters a packet into the first link of its path, at any worker; without a link it goes to its port.
    pub(crate) fn enter(&mut self, handle: Handle) {
        let &Meta { path, arrival, .. } = self.pool.meta(handle);
        let Some(link) = self.map.paths.link(path) else { return self.enter_none(path, handle) };
        if link.worker() != self.index {
            return self.hand_over(link.worker(), handle);
        }
        let local = link.local();
        let arrival = if self.observing.on { self.observe(local, handle) } else { Nanos(arrival) };
        let mut out = if self.order == Order::Exact && self.emulation.has_turn(local, arrival) {
            self.emulation.arrive_before_turn(&mut self.pool, local, handle)
        } else {
            self.arrive(local, handle)
        };
        if self.observing.on {
            self.observe_left(out);
        }
        while let Some(handle) = out.pop(&self.pool) {
            if self.walk.under_way {
                self.walk(NextStep::Leave, handle);
            } else {
                self.leave(handle);
            }
        }
    }

    /// Enters a packet into a link, and returns those that leave it at once.
    #[inline]
    fn arrive(&mut self, link: u32, handle: Handle) -> Fifo {
        let mut out = Fifo::EMPTY;
        let before = if self.simulated { self.emulation.links.latest(link) } else { None };
        let arrival = self.emulation.links.arrive(&mut self.pool, link, handle, &mut out);
        if arrival == Arrival::Through {
            out.push(&mut self.pool, handle);
        }
        if arrival == Arrival::DeadlineChanged || self.simulated {
            self.emulation.note(link, before);
            self.emulation.arm(link);
            self.emulation.arm_dirty();
        }
        out
    }

    /// Handles a packet whose path begins with no link.
    fn enter_none(&mut self, path: u32, handle: Handle) {
        if path == NOWHERE {
            return self.drop(handle, DropReason::NoRoute);
        }
        if path == UNDECIDED {
            return self.walk(NextStep::Decide, handle);
        }
        let meta = self.pool.meta_mut(handle);
        meta.set_leave(meta.arrival);
        self.egress(handle);
    }

    /// Executes a step for a packet, with all consequences; during a walk the step is added to it.
    #[inline(never)]
    pub(crate) fn walk(&mut self, next: NextStep, handle: Handle) {
        if self.walk.under_way {
            return self.walk.push(next, handle);
        }
        (self.walk.under_way, self.walk.turns, self.walk.taken) = (true, 0, 0);
        self.walk.push(next, handle);
        while let Some(Step { next, handle, turns }) = self.walk.steps.pop() {
            self.walk.turns = turns;
            if let Some(reason) = self.walk.take_step() {
                self.drop(handle, reason);
                continue;
            }
            let first = self.walk.steps.len();
            self.go(next, handle);
            self.walk.steps[first..].reverse();
        }
        self.walk.under_way = false;
    }

    fn go(&mut self, next: NextStep, handle: Handle) {
        match next {
            NextStep::Enter => self.enter(handle),
            NextStep::Leave => self.leave(handle),
            NextStep::Egress => self.egress(handle),
            NextStep::Diverted | NextStep::Decide if !self.walk.take_turn() => {
                self.drop(handle, DropReason::Loop);
            }
            NextStep::Diverted => self.divert(handle),
            NextStep::Decide => self.decide_in_turn(handle),
        }
    }

    pub(crate) fn drop(&mut self, handle: Handle, reason: DropReason) {
        self.pool.report(handle, PacketEvent::Refused { reason: reason as u8 });
        self.counters.drop(&mut self.pool, handle, reason);
    }

    /// End time of a run that ends by `until`, as far as this worker knows: `until`, or else the last event.
    pub(crate) fn end(&self, until: Nanos) -> Nanos {
        if until < TO_THE_END { until } else { self.emulation.seen.max(self.schedules.changed) }
    }

    /// Advances changes and background traffic to the end of the run, on which all workers agree, so that the
    /// counters do not depend on the number of workers.
    pub(crate) fn conclude(&mut self, end: Nanos) {
        self.carry_out(end);
        self.sample_before(end);
        self.sample_rest(end);
        self.nodes.change_all(end);
        self.nodes.change_no_more();
        for link in 0..self.emulation.links.len() as u32 {
            self.emulation.links.catch_up(&mut self.pool, link, end);
        }
    }

    /// Ends the run at `now`: held packets are dropped as stopped, and ports flush their buffers.
    pub(crate) fn finish(&mut self, now: Nanos) {
        self.flush_ports();
        self.emulation.links.flush(&mut self.pool, now);
        self.drop_held_back();
        (0..self.ports.slots.len()).for_each(|slot| self.drop_held(slot, DropReason::Stopped));
        self.ports.left.extend(self.ports.slots.iter_mut().filter_map(|slot| slot.port.finish().err()));
    }

    /// Drops packets handed over by other workers, which have ended.
    pub(crate) fn empty_rings(&mut self) {
        self.drain_rings(|worker, handle| worker.drop(handle, DropReason::Stopped));
    }
}
