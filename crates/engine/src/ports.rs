//! The ports of a worker, and packets to be sent.

use crate::calendar::Calendar;
use crate::fidelity::TunnelRecord;
use crate::map::Map;
use crate::own_losses::OwnLosses;
use crate::setup::PortSetup;
use crate::stats::RemovedPorts;
use crate::tick::Ticks;
use longwire_block::{Port, PortError, PortStats, Stamp, Underlay};
use longwire_link::Fifo;
use longwire_packet::{BATCH, Batch, Handle, Pool};
use longwire_units::Nanos;
use std::sync::Arc;

/// A port of another worker, a port that connects nodes, or one whose packets wait for the end of a window.
pub(crate) const NOWHERE_HERE: u32 = u32::MAX;

pub(crate) struct Ports {
    pub slots: Vec<PortSlot>,
    /// By a port's place in the plan: its index in `slots` if packets leave by it at once, else
    /// [`NOWHERE_HERE`].
    pub exits: Box<[u32]>,
    /// The coarse departure clock, if any.
    pub ticks: Option<Box<Ticks>>,
    /// Counters of ports that were replaced.
    pub closed: RemovedPorts,
    /// Errors of ports at their end: of those that have left in simulated time, then of all others.
    pub left: Vec<PortError>,
    /// The port whose losses are read next.
    next_sampled: usize,
    /// Whether one of them is a tunnel.
    pub has_tunnels: bool,
    /// When they were polled before the present step.
    pub polled: Nanos,
    /// In simulated time, when each receives its next frame.
    pub future: Option<Box<Future>>,
    /// A batch in the place of one that an [`Outlet`] has.
    spare: Option<Box<Outgoing>>,
}

/// The next frames of ports in simulated time, where only calls of a port move its next frame.
#[derive(Default)]
pub(crate) struct Future {
    arrivals: Calendar,
    /// Ports that can't tell, and are polled at each step.
    unforeseen: Vec<u32>,
    /// Ports with waiting batches.
    pub filled: Vec<u32>,
    /// Whether a port found the pool full.
    pool_full: bool,
}

/// The batch of the port by which the last packet left, taken out, so that for the next one it need not be
/// looked up again.
pub(crate) struct Outlet {
    /// The port's place in the plan, or [`NO_PORT`] at first, and its index.
    port: u32,
    slot: usize,
    out: Box<Outgoing>,
    /// What is to be done before it gets more packets: noted only then, because most need nothing.
    pub exit: Exit,
}

/// No port's place in the plan.
const NO_PORT: u32 = u32::MAX;

/// Place in the plan of a port that was removed.
pub const GONE_PORT: u16 = u16::MAX;

/// Most ports whose losses are read for one sample: each takes a system call or two.
const MOST_SAMPLED: usize = 128;

/// Work to be done before more packets can be given to ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Open,
    /// The batch of the port with this index is full.
    Full(usize),
    /// This packet does not leave by a port of this worker at once.
    Elsewhere(Handle),
}

impl Ports {
    /// The ports of worker number `worker`; in windows no packet leaves at once.
    pub fn new(
        setups: Vec<PortSetup>,
        map: &Map,
        worker: u32,
        (simulated, windows): (bool, bool),
        ticks: Option<Box<Ticks>>,
    ) -> Self {
        let exits = Self::exits_of(map, worker, windows);
        let slots: Vec<_> = setups.into_iter().map(PortSlot::new).collect();
        let has_tunnels = slots.iter().any(PortSlot::is_tunnel);
        let mut ports = Self {
            slots,
            exits,
            ticks,
            closed: RemovedPorts::default(),
            left: Vec::new(),
            next_sampled: 0,
            has_tunnels,
            polled: Nanos::ZERO,
            future: simulated.then(Box::default),
            spare: Some(Box::default()),
        };
        (0..ports.slots.len()).for_each(|slot| ports.ask_again(slot));
        ports
    }

    /// By a port's place in the plan: see [`Ports::exits`].
    pub fn exits_of(map: &Map, worker: u32, windows: bool) -> Box<[u32]> {
        let exit = |(home, place): (&crate::PortLocation, u16)| {
            let is_here =
                home.exit_of(worker) == worker && !windows && map.inner_ports.far_side(place).is_none();
            if is_here { home.slot } else { NOWHERE_HERE }
        };
        map.port_locations.iter().zip(0..).map(exit).collect()
    }

    /// Adds a port, behind all others or in place of one, which is then in `port`.
    pub fn exchange(&mut self, slot: u32, port: &mut Option<PortSlot>, now: Nanos) {
        if let (Some(old), Some(new)) = (self.slots.get_mut(slot as usize), port.as_mut()) {
            std::mem::swap(old, new);
            new.add_to(&mut self.closed, now);
        } else if let Some(new) = port.take() {
            self.slots.push(new);
            self.ticks.iter_mut().for_each(|ticks| ticks.held.push(Fifo::EMPTY));
        }
        self.ask_again(slot as usize);
        self.has_tunnels = self.slots.iter().any(PortSlot::is_tunnel);
    }

    /// An outlet, which must come back ([`Ports::close`]) before a batch is sent.
    #[inline]
    pub fn open(&mut self) -> Outlet {
        Outlet { port: NO_PORT, slot: 0, out: self.spare.take().unwrap_or_default(), exit: Exit::Open }
    }

    /// Takes an outlet back, and returns what is to be done.
    #[inline]
    pub fn close(&mut self, outlet: Outlet) -> Exit {
        let Outlet { port, slot, mut out, exit } = outlet;
        if port != NO_PORT {
            std::mem::swap(&mut self.slots[slot].out, &mut out);
        }
        self.spare = Some(out);
        exit
    }

    /// Puts a packet that has left its last link (handle, segments, departure time, link) into its port's
    /// batch. Returns whether the outlet must come back now.
    #[inline(always)]
    pub fn push_out(
        &mut self,
        outlet: &mut Outlet,
        out_port: u16,
        (handle, segments, leave, link): (Handle, u16, Nanos, u32),
    ) -> bool {
        if outlet.port != u32::from(out_port) && !self.turn(outlet, out_port) {
            outlet.exit = Exit::Elsewhere(handle);
            return true;
        }
        let is_full = outlet.out.push(handle, segments, leave, link);
        if is_full {
            outlet.exit = Exit::Full(outlet.slot);
        }
        is_full
    }

    /// Gives an outlet the batch of another port. Returns false if that is none of this worker's.
    #[inline(never)]
    fn turn(&mut self, outlet: &mut Outlet, out_port: u16) -> bool {
        let slot = self.exits.get(usize::from(out_port)).map_or(usize::MAX, |&slot| slot as usize);
        if slot >= self.slots.len() {
            return false;
        }
        if outlet.port != NO_PORT {
            std::mem::swap(&mut self.slots[outlet.slot].out, &mut outlet.out);
        }
        std::mem::swap(&mut self.slots[slot].out, &mut outlet.out);
        (outlet.port, outlet.slot) = (out_port.into(), slot);
        true
    }

    /// Asks a port when its next frame arrives, in simulated time: after each call that may move it.
    pub fn ask_again(&mut self, slot: usize) {
        let (Some(future), Some(PortSlot { port, .. })) = (&mut self.future, self.slots.get_mut(slot)) else {
            return;
        };
        let slot = slot as u32;
        future.pool_full |= port.stats().in_pool_full > 0;
        match port.next_arrival() {
            Some(time) => future.arrivals.set(slot, time),
            None if future.unforeseen.contains(&slot) => {}
            None => future.unforeseen.push(slot),
        }
    }

    /// The ports that may have frames by `now`, in simulated time; none on the machine's clock, where any
    /// may. The list is [given back](Self::give_back).
    pub fn take_due(&mut self, now: Nanos) -> Option<Vec<u32>> {
        let future = self.future.as_mut()?;
        let mut due = future.arrivals.take_due(now);
        due.extend_from_slice(&future.unforeseen);
        Some(due)
    }

    /// Takes back the list of due ports, and asks them again.
    pub fn give_back(&mut self, due: Vec<u32>) {
        due.iter().for_each(|&slot| self.ask_again(slot as usize));
        if let Some(future) = &mut self.future {
            future.arrivals.give_back(due);
        }
    }

    /// The earliest arrival time of the next frame that ports know.
    pub fn next_arrival(&mut self) -> Nanos {
        if let Some(future) = &mut self.future {
            return future.arrivals.next();
        }
        let times = self.slots.iter_mut().filter_map(|slot| slot.port.next_arrival());
        times.min().unwrap_or(Nanos::NEVER)
    }

    /// The next tick at which a waiting packet leaves.
    pub fn next_tick(&self) -> Nanos {
        self.ticks.as_ref().map_or(Nanos::NEVER, |ticks| ticks.next())
    }

    /// Whether a port found the pool full, in simulated time.
    pub fn lost_anything(&self) -> bool {
        self.future.as_ref().is_some_and(|future| future.pool_full)
    }

    /// Packets lost by ports, removed ones included. With many ports, some counts are a few samples old.
    pub fn losses(&mut self) -> OwnLosses {
        let count = self.slots.len();
        for _ in 0..count.min(MOST_SAMPLED) {
            let slot = &mut self.slots[self.next_sampled % count];
            slot.losses = OwnLosses::of_port(&slot.port.stats());
            self.next_sampled = (self.next_sampled + 1) % count;
        }
        // What is sent to a removed port is no loss: its links are removed, too.
        let slots = self.slots.iter().filter(|slot| slot.place != GONE_PORT);
        slots.fold(self.closed.losses, |sum, slot| sum.plus(slot.losses))
    }

    /// Counts the packets of a port's batch that should have left before `late`, by the tunnel that brought
    /// them. At the poll before the present step they were not here yet: they would have left then.
    #[cold]
    pub fn count_overdue(&mut self, slot: usize, pool: &Pool, late: Nanos) {
        let late = self.polled.min(late);
        for at in 0..self.slots[slot].out.batch.len() {
            let out = &self.slots[slot].out;
            let (leave, meta) = (out.departures().0[at], pool.meta(out.batch.as_slice()[at]));
            if leave >= late.0 {
                continue;
            }
            let (segments, in_port) = (u64::from(meta.segments), meta.in_port);
            if let Some(by) = self.tunnel_of(in_port) {
                self.slots[by].overdue += segments;
            }
        }
    }

    /// The tunnel by which a packet with this input port came, if it did. One that crossed routers has the
    /// port of the last, by which nothing leaves, and came by any tunnel.
    fn tunnel_of(&self, in_port: u16) -> Option<usize> {
        let by = self.slots.iter().position(|slot| slot.place == in_port)?;
        if self.slots[by].is_tunnel() {
            return Some(by);
        }
        let is_inner = self.exits.get(usize::from(in_port)) == Some(&NOWHERE_HERE);
        if is_inner { self.slots.iter().position(PortSlot::is_tunnel) } else { None }
    }
}

/// Packets for a port to send, with data for the records.
pub(crate) struct Outgoing {
    pub batch: Batch,
    leaves: [u64; BATCH],
    links: [u32; BATCH],
    /// Segments of trains beyond one each.
    more_segments: u64,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self { batch: Batch::new(), leaves: [0; BATCH], links: [0; BATCH], more_segments: 0 }
    }
}

impl Outgoing {
    /// Adds a packet of `segments` segments with departure time `leave` that was last in link `link`. Returns
    /// whether the batch is full.
    #[inline(always)]
    pub fn push(&mut self, handle: Handle, segments: u16, leave: Nanos, link: u32) -> bool {
        let at = self.batch.append(handle);
        (self.leaves[at], self.links[at]) = (leave.0, link);
        if segments > 1 {
            self.more_segments += u64::from(segments) - 1;
        }
        self.batch.is_full()
    }

    /// Departure times of the packets, and their last links.
    pub fn departures(&self) -> (&[u64], &[u32]) {
        let count = self.batch.len();
        (&self.leaves[..count], &self.links[..count])
    }

    /// Packets, where each segment of a train is counted.
    pub fn segments(&self) -> u64 {
        self.batch.len() as u64 + self.more_segments
    }

    pub fn clear(&mut self) {
        self.batch.clear();
        self.more_segments = 0;
    }
}

/// A port of a worker.
pub(crate) struct PortSlot {
    /// Its place in the plan.
    pub place: u16,
    /// Index of its node at the worker.
    pub node: usize,
    pub port: Box<dyn Port>,
    /// Packets to send.
    pub out: Box<Outgoing>,
    /// The failure at its last use.
    pub fault: Option<PortError>,
    /// Sequence number of its next packet.
    pub seq: u64,
    /// Packets exchanged with other nodes, without the driver.
    pub crossed: PortStats,
    outages: Outages,
    /// Losses when they were last read.
    losses: OwnLosses,
    /// Its name, if it is a tunnel.
    tunnel: Option<Arc<str>>,
    /// Packets that it brought too late, if it is a tunnel.
    overdue: u64,
}

/// Times in which a port's interface was down or gone.
#[derive(Debug, Clone, Copy, Default)]
struct Outages {
    count: u64,
    /// Time in past outages.
    down: Nanos,
    /// Start of the current outage.
    since: Option<Nanos>,
}

impl Outages {
    fn down_by(&self, now: Nanos) -> Nanos {
        self.since.map_or(self.down, |since| self.down + now.since(since))
    }
}

impl PortSlot {
    pub fn new(PortSetup { place, node, port }: PortSetup) -> Self {
        let tunnel = (port.stamp() == Stamp::Sender).then(|| port.name().into());
        Self {
            place,
            node,
            port,
            out: Box::default(),
            fault: None,
            seq: 0,
            crossed: PortStats::default(),
            outages: Outages::default(),
            losses: OwnLosses::default(),
            tunnel,
            overdue: 0,
        }
    }

    /// Whether it is a tunnel.
    pub fn is_tunnel(&self) -> bool {
        self.tunnel.is_some()
    }

    /// The network under a tunnel.
    pub fn underlay(&self) -> Option<Underlay> {
        self.port.underlay().map(|underlay| Underlay { overdue: self.overdue, ..underlay })
    }

    /// Adds its counters to those of removed ports.
    pub fn add_to(&self, removed: &mut RemovedPorts, now: Nanos) {
        let (stats, underlay) = (self.stats(now), self.underlay().unwrap_or_default());
        let is_gone = self.place == GONE_PORT;
        let losses = if is_gone { OwnLosses::default() } else { OwnLosses::of_port(&stats) };
        let tunnels = self.tunnel_record().and_then(TunnelRecord::removed).into_iter().collect();
        removed.add(&RemovedPorts { stats, underlay, losses, tunnels });
    }

    /// Its part in the verdict, if it is a tunnel.
    pub fn tunnel_record(&self) -> Option<TunnelRecord> {
        let name = Arc::clone(self.tunnel.as_ref()?);
        self.underlay().map(|underlay| TunnelRecord::of(name, &underlay))
    }

    /// Receives frames, and notes whether the interface is there.
    #[inline]
    pub fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) {
        match self.port.receive(pool, now, batch) {
            Ok(()) if self.fault.is_none() => {}
            Ok(()) => self.recover(now),
            Err(fault) => self.fail(fault, now),
        }
    }

    #[cold]
    #[inline(never)]
    fn recover(&mut self, now: Nanos) {
        self.fault = None;
        self.outages.down = self.outages.down_by(now);
        self.outages.since = None;
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, fault: PortError, now: Nanos) {
        let is_outage = matches!(
            fault,
            PortError::Down { .. } | PortError::Vanished { .. } | PortError::Unanswered { .. }
        );
        if is_outage && self.outages.since.is_none() {
            self.outages.count += 1;
            self.outages.since = Some(now);
        }
        self.fault = Some(fault);
    }

    /// Counters of the driver, plus packets exchanged with other nodes and outages until now.
    pub fn stats(&self, now: Nanos) -> PortStats {
        let (outages, down) = (self.outages.count, self.outages.down_by(now));
        PortStats { outages, down, ..self.port.stats().plus(&self.crossed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::Worker;
    use crate::{InnerPort, PortLocation, Setup, Tolerance, WorkerSetup};
    use longwire_block::path::{DIRECT, Paths};
    use longwire_link::Links;
    use longwire_link::classify::Classifier;
    use longwire_port::driver::memory::MemoryPort;

    /// A tunnel, a traffic source, and a router's own port.
    fn setups() -> Vec<PortSetup> {
        let memory = |stamp| Box::new(MemoryPort::pair("it", stamp, 16, 1 << 12).0) as Box<dyn Port>;
        let ports = [memory(Stamp::Sender), memory(Stamp::Source), Box::new(InnerPort::new("own"))];
        (0..).zip(ports).map(|(place, port)| PortSetup { place, node: 0, port }).collect()
    }

    fn map() -> Map {
        let port_locations = (0..3).map(|slot| PortLocation::single(0, slot)).collect();
        let mut map = Map::new(Classifier::new(&[], &[], &[]), Paths::default(), port_locations);
        map.inner_ports.join(2, 2);
        map
    }

    /// A worker that is too slow for its sources is no network that is.
    #[test]
    fn late_packets_of_traffic_sources_are_no_tunnel_s() {
        let ports = Ports::new(setups(), &map(), 0, (false, false), None);
        assert_eq!([0, 1, 2].map(|place| ports.tunnel_of(place)), [Some(0), None, Some(0)]);
    }

    #[test]
    fn waiting_for_a_tick_is_not_being_brought_late() {
        let mut own = WorkerSetup::new(Pool::new(1 << 20).unwrap(), Links::with_capacity(0, 1, Nanos(1)));
        own.ports = setups();
        let tolerance = Tolerance { tick: Nanos(100), ..Tolerance::default() };
        let mut worker = Worker::of(Setup { tolerance, ..Setup::new(vec![own], map()) }).remove(0);
        // Times of the polls before the packet comes out of its links, and before its tick.
        let mut overdue = |leave: u64, polled: [u64; 2], tick: u64| {
            let handle = worker.pool.insert(&[0; 60]).unwrap();
            let meta = worker.pool.meta_mut(handle);
            (meta.path, meta.in_port) = (DIRECT, 0);
            meta.set_leave(leave);
            worker.ports.polled = Nanos(polled[0]);
            worker.put_out(1, handle);
            worker.flush_ports();
            worker.ports.polled = Nanos(polled[1]);
            worker.send_at_tick(Nanos(tick));
            worker.ports.slots[0].overdue
        };
        assert_eq!(overdue(50, [40, 90], 100), 0, "it was here when it should have left");
        assert_eq!(overdue(150, [160, 190], 200), 1);
    }
}
