//! A worker: takes packets from its ports, through nodes and links, to ports again. It is told the time; the loops
//! in `real` and `simulated` tell it.

use crate::bell::Bell;
use crate::between::{Inbox, Outbound};
use crate::due::Due;
use crate::egress::exits;
use crate::events::{Schedule, SourceSeat};
use crate::fidelity::{Lateness, Tolerance};
use crate::intake::COPIES;
use crate::map::Map;
use crate::node_changes::NodeChanges;
use crate::observer::Observer;
use crate::pump::Arrivals;
use crate::slot::PortSlot;
use crate::tick::Ticks;
use crate::turns::Turns;
use crate::verdicts::Verdicts;
use crate::walk::{Next, Walk};
use crate::wheel::Wheel;
use longwire_block::path::{NOWHERE, UNDECIDED};
use longwire_block::{DropCounts, DropReason, Node, OUTBOX, Outbox};
use longwire_link::{Arrival, Fifo, Firsts, Links};
use longwire_packet::{BATCH, Handle, Meta, Pool};
use longwire_units::Nanos;
use std::sync::Arc;

/// Packets that a worker has seen, apart from what its links count. Segments of a train count one each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow {
    pub taken: u64,
    pub made: u64,
    pub consumed: u64,
    pub sent: u64,
    pub received: u64,
    pub handed_over: u64,
    pub drops: DropCounts,
}

/// Most room for packets that are ready which is made at the start.
const MOST_READY: usize = 1 << 20;

/// How departures are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Links that lead only to ports do not see each other, so each is served for a whole step at once.
    ByLink,
    /// Every event in its exact place: (time, departures before arrivals, place in the plan, sequence).
    Exact,
}

/// See the module.
pub struct Worker {
    pub(crate) index: u32,
    pub(crate) pool: Pool,
    pub(crate) links: Links,
    pub(crate) wheel: Wheel,
    pub(crate) ports: Vec<PortSlot>,
    /// By a port's place in the plan: its place among `ports` if packets leave by it at once, else none there is.
    pub(crate) exits: Box<[u32]>,
    pub(crate) nodes: Vec<Box<dyn Node>>,
    pub(crate) verdicts: Verdicts,
    /// Those that decide in their turn, and what changes at nodes.
    pub(crate) turns: Turns,
    pub(crate) walk: Walk,
    pub(crate) node_changes: NodeChanges,
    /// What nodes give out, emptied after each call.
    pub(crate) outbox: Outbox,
    pub(crate) map: Arc<Map>,
    /// From and to other workers.
    pub(crate) inbox: Inbox,
    pub(crate) outbound: Outbound,
    /// Every worker's bell.
    pub(crate) bells: Arc<[Bell]>,
    pub(crate) order: Order,
    pub(crate) flow: Flow,
    pub(crate) lateness: Lateness,
    pub(crate) tolerance: Tolerance,
    pub(crate) observer: Option<Box<dyn Observer>>,
    /// Whether packets leave when they should by definition: a simulated clock.
    pub(crate) simulated: bool,
    /// Simulated runs with several workers; see `windows`.
    pub(crate) windows: Option<crate::windows::Windows>,
    /// What changes on links, and when.
    pub(crate) schedule: Schedule,
    /// What changes on sources, and when.
    pub(crate) source_schedule: Schedule,
    /// The sources at ports here.
    pub(crate) seats: Vec<SourceSeat>,
    /// Packets taken in and not yet decided about.
    pub(crate) fresh: Vec<Handle>,
    /// Packets with a path, in order, about to enter their first link here; while a step serves these, what is decided about in its turn.
    pub(crate) ready: Vec<Handle>,
    pub(crate) ready_in_turn: Vec<Handle>,
    /// Links that have a packet on an empty line, and are to be given a place in the wheel.
    pub(crate) firsts: Firsts,
    pub(crate) seq: u64,
    /// When the run began: a frame that waited in a driver's ring since before then comes to links now, and is not late.
    pub(crate) begin: u64,
    /// What has left links that have their turn later at this moment.
    pub(crate) due: Due,
    /// Time and place of the last event that was carried out, where they are carried out in their exact order.
    pub(crate) done: (u64, u32),
    /// In a simulated run, when something last happened, or changed while packets were on their way; and the last change of links.
    pub(crate) seen: Nanos,
    pub(crate) changed: Nanos,
    /// Links with background traffic.
    pub(crate) noisy: Vec<u32>,
    /// Where packets leave at the ticks of a coarse clock.
    pub(crate) ticks: Option<Box<Ticks>>,
}

impl Worker {
    pub(crate) fn new(parts: crate::setup::Parts) -> Self {
        let crate::setup::Parts {
            index,
            mut setup,
            map,
            inbox,
            outbound,
            bells,
            tolerance,
            simulated,
            windows,
            start,
        } = parts;
        setup.links.start(start);
        let noisy = (0..setup.links.len() as u32).filter(|&link| setup.links.has_background(link)).collect();
        let ports = setup.ports.len();
        let in_turn = setup.ports.iter().filter(|seat| map.joints.in_turn(seat.place));
        let turns = Turns::new(setup.nodes.len(), in_turn.map(|seat| seat.node));
        let node_changes = NodeChanges::new(setup.agenda.nodes, setup.nodes.len(), start);
        let room = BATCH * (ports + 1);
        let handed_over = inbox.most_in_a_step();
        let due = Due::new(setup.links.slots());
        Self {
            index,
            wheel: Wheel::new(setup.links.slots(), start),
            pool: setup.pool,
            links: setup.links,
            ports: setup.ports.into_iter().map(PortSlot::new).collect(),
            exits: exits(&map, index, windows.is_some()),
            nodes: setup.nodes,
            verdicts: Verdicts::new(),
            turns,
            walk: Walk::new(),
            node_changes,
            outbox: Outbox::default(),
            map,
            inbox,
            outbound,
            bells,
            // A change has its exact place among arrivals, too.
            order: if simulated || !setup.flat || !setup.agenda.links.events.is_empty() {
                Order::Exact
            } else {
                Order::ByLink
            },
            schedule: Schedule::new(setup.agenda.links, start),
            source_schedule: Schedule::new(setup.agenda.sources, start),
            seats: setup.agenda.seats,
            flow: Flow::default(),
            lateness: Lateness::default(),
            tolerance,
            observer: setup.observer,
            simulated,
            windows,
            fresh: Vec::with_capacity(room),
            // A flooded packet becomes one for each port of its node. Where there are many ports, all that come at once are hardly ever flooded:
            // should they be, more is allocated then.
            ready: Vec::with_capacity((room * ports.max(1)).min(MOST_READY) + handed_over + OUTBOX),
            ready_in_turn: Vec::with_capacity(OUTBOX),
            firsts: Firsts::default(),
            seq: 0,
            begin: 0,
            due,
            done: (start.0, 0),
            seen: Nanos::ZERO,
            changed: Nanos::ZERO,
            noisy,
            ticks: Ticks::new(tolerance.tick, start, ports),
        }
    }

    /// Handles everything that happens up to `now`: packets that have come in, and packets that are due. `gap` is
    /// how long ago the ports were last polled. Returns how many packets came or left.
    pub fn step(&mut self, now: Nanos, gap: Nanos) -> usize {
        let before = self.flow.sent + self.flow.handed_over;
        self.change_sources_due(now);
        let came = self.ingest(now, gap) + self.take_from_rings();
        std::mem::swap(&mut self.ready, &mut self.ready_in_turn);
        let ready = std::mem::take(&mut self.ready_in_turn);
        match self.order {
            Order::ByLink => self.serve_by_link(&ready, now),
            Order::Exact => self.pump(Arrivals::Ready(&ready), now, now),
        }
        self.ready_in_turn = std::mem::replace(&mut self.ready, ready);
        self.ready.clear();
        self.flush_ports();
        if self.ticks.is_some() && !self.simulated {
            self.send_at_tick(now);
        }
        self.send_all_over();
        came + (self.flow.sent + self.flow.handed_over - before) as usize
    }

    /// Lets a link that is due let go of what leaves by `until`.
    pub(crate) fn turn(&mut self, link: u32, until: Nanos) {
        *self.links.armed(link) = Nanos::NEVER;
        let mut out = self.due.take(link);
        let before = self.links.latest(link);
        self.links.expire(&mut self.pool, link, until, &mut out);
        match before {
            Some(_) => self.note(link, before),
            // A medium, which has taken a step.
            None => self.seen = self.seen.max(until),
        }
        self.arm(link);
        self.arm_stirred();
        let place = self.links.place(link);
        while let Some(handle) = out.pop(&self.pool) {
            let meta = self.pool.meta_mut(handle);
            (meta.place, meta.seq) = (place, self.seq);
            self.seen = self.seen.max(Nanos(meta.leave()));
            self.follow(Some(self.seq));
            self.seq += COPIES;
            self.leave(handle);
        }
        self.follow(None);
    }

    /// Lets a packet enter the link that its path begins with, wherever that is; without one it goes to its port.
    pub(crate) fn enter(&mut self, handle: Handle) {
        let &Meta { path, arrival, .. } = self.pool.meta(handle);
        let Some(link) = self.map.paths.link(path) else { return self.enter_none(path, handle) };
        if link.worker() != self.index {
            return self.hand_over(link.worker(), handle);
        }
        let local = link.local();
        let arrival = if self.observer.is_some() { self.observe(local, handle) } else { Nanos(arrival) };
        if self.is_due_later(local, arrival) {
            return self.arrive_before_turn(local, handle);
        }
        let mut out = Fifo::EMPTY;
        let before = if self.simulated { self.links.latest(local) } else { None };
        let arrival = self.links.arrive(&mut self.pool, local, handle, &mut out);
        if arrival == Arrival::Through {
            out.push(&mut self.pool, handle);
        }
        if arrival == Arrival::Stirred || self.simulated {
            self.note(local, before);
            self.arm(local);
            self.arm_stirred();
        }
        while let Some(handle) = out.pop(&self.pool) {
            if self.walk.is_under_way() {
                self.walk(Next::Leave, handle);
            } else {
                self.leave(handle);
            }
        }
    }

    /// Shows a packet to the observer that arrives at a link, and says when it does.
    #[cold]
    fn observe(&mut self, link: u32, handle: Handle) -> Nanos {
        let meta = self.pool.meta_mut(handle);
        let arrival = self.links.effective_arrival(link, Nanos(meta.arrival));
        meta.arrival = arrival.0;
        if let Some(observer) = &mut self.observer {
            observer.arrived(self.pool.meta(handle), self.pool.data(handle));
        }
        arrival
    }

    /// Sees to a packet whose path begins with no link.
    fn enter_none(&mut self, path: u32, handle: Handle) {
        if path == NOWHERE {
            return self.drop(handle, DropReason::NoRoute);
        }
        if path == UNDECIDED {
            return self.walk(Next::Decide, handle);
        }
        let meta = self.pool.meta_mut(handle);
        meta.set_leave(meta.arrival);
        self.egress(handle);
    }

    pub(crate) fn drop(&mut self, handle: Handle, reason: DropReason) {
        self.flow.drops[reason as usize] += u64::from(self.pool.meta(handle).segments);
        self.pool.free(handle);
    }
}
