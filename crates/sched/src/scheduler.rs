//! The scheduler for a router: packets come, processors and ports request the next one.

use crate::backlog::{AdmittedPacket, Backlog, Gone, PacketState};
use crate::counters::{Counters, RareCounters};
use crate::discipline::{SPECS, Spec};
use crate::lines::Lines;
use crate::table::NONE;
use crate::{Refusal, Settings, SettingsError, Warning, Weight};
use longwire_units::Nanos;
use thiserror::Error;

/// A handle that means no packet.
pub const INVALID_HANDLE: u32 = NONE;

/// Identifies a packet inside until it is passed to its port or abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(u32);

impl Ticket {
    /// Its index among the packets inside: below [`Settings::packets`], and unique until the packet has left.
    #[inline]
    pub const fn place(self) -> usize {
        self.0 as usize
    }
}

/// A known flow with its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowView {
    /// Its key.
    pub key: u32,
    /// Its index among the flows: below [`Settings::flows`]. It may be reused once the flow is forgotten.
    pub place: usize,
    /// Its weight.
    pub weight: u32,
    /// Its port.
    pub port: u16,
    /// Packets that wait for a processor.
    pub waiting: u32,
    /// Packets inside, those included.
    pub inside: u32,
    /// Predicted processing time of its next packet.
    pub estimate: Nanos,
    /// Counters since it became known.
    pub counters: Counters,
}

/// Who asks for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A processor that is free.
    Processor,
    /// The port with this number, which is ready to send.
    Port(u16),
}

/// A packet that was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedPacket {
    /// For reporting that it has been processed. Invalid for a packet that goes to a port.
    pub ticket: Ticket,
    /// What the caller put in.
    pub handle: u32,
    /// Its flow.
    pub key: u32,
    /// Its length.
    pub bytes: u32,
    /// Arrival time.
    pub arrived: Nanos,
    /// Predicted processing time.
    pub estimate: Nanos,
}

/// Reason why a flow can't be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FlowError {
    /// The flow table is full.
    #[error("flow {key}: the flow table is full; give the scheduler more flows")]
    TableFull {
        /// The flow.
        key: u32,
    },
    /// It has packets inside for another port.
    #[error("flow {key} has packets inside; change its port while it is idle")]
    Busy {
        /// The flow.
        key: u32,
    },
    /// There is no such port.
    #[error("flow {key}: there is no port {port}; give 0 to {last}")]
    NoPort {
        /// The flow.
        key: u32,
        /// What was given.
        port: u16,
        /// The last port there is.
        last: u16,
    },
}

/// Flows that share processors and ports.
///
/// The calls for a packet: [`enqueue`](Self::enqueue), [`dequeue`](Self::dequeue) for a processor,
/// [`processed`](Self::processed) (or [`abandon`](Self::abandon)), `dequeue` for its port. Measurements are
/// reported by [`feedback`](Self::feedback). Packets of a flow reach the port in order of arrival, even if
/// several processors serve the flow. After [`new`](Self::new) nothing is allocated.
#[derive(Debug)]
pub struct Scheduler {
    lines: Lines,
    backlog: Backlog,
    /// Cost above which a packet needs more than a round.
    quantum: u64,
}

impl Scheduler {
    /// Makes the scheduler of this name, one of [`SPECS`].
    ///
    /// # Errors
    /// If the name is unknown, or a setting is out of its range.
    pub fn new(name: &str, settings: &Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let lines = Lines::build(name, settings).ok_or_else(|| SettingsError::Unknown {
            name: name.to_owned(),
            known: SPECS.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", "),
        })?;
        let Spec { quantum, apart, .. } = lines.any().spec();
        let quantum = quantum.map_or(u64::MAX, |_| settings.quantum.0);
        let backlog = Backlog::new(settings, !apart, lines.any().stages());
        Ok(Self { lines, backlog, quantum })
    }

    /// Its specification.
    pub fn spec(&self) -> &'static Spec {
        self.lines.any().spec()
    }

    /// Quanta that do not cover the largest packet.
    pub fn warnings(&self) -> Vec<Warning> {
        let Settings { quantum, quantum_bytes, longest, .. } = self.backlog.settings;
        let bytes = (self.lines.any().stages() == 2).then_some(longest.into());
        let quanta = [
            ("quantum", quantum.0, self.largest_cost(), "ns"),
            ("quantum_bytes", quantum_bytes.into(), bytes, "bytes"),
        ];
        let short = quanta.into_iter().filter_map(|(field, quantum, largest, unit)| {
            let largest = largest.filter(|largest| quantum < *largest)?;
            Some(Warning::QuantumBelowCost { field, quantum, largest, unit })
        });
        short.collect()
    }

    /// The highest cost of a packet in the unit of the quantum, in ns: a program that uses its whole budget
    /// on the longest packet. None for schedulers without a quantum.
    pub fn largest_cost(&self) -> Option<u64> {
        self.lines.any().largest(&self.backlog.settings)
    }

    /// Adds a packet of the flow `key`. `handle` is the caller's, and is returned with the packet.
    ///
    /// # Errors
    /// The reason why it was not accepted.
    #[inline]
    pub fn enqueue(&mut self, key: u32, handle: u32, bytes: u32, now: Nanos) -> Result<Ticket, Refusal> {
        self.enqueue_known(key, handle, bytes, now, None)
    }

    /// Adds a packet, with its processing time in cycles if that is known, as in virtual time
    /// ([`Estimator::Exact`](crate::Estimator::Exact)).
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue).
    #[inline]
    pub fn enqueue_known(
        &mut self,
        key: u32,
        handle: u32,
        bytes: u32,
        now: Nanos,
        cycles: Option<u64>,
    ) -> Result<Ticket, Refusal> {
        if handle == INVALID_HANDLE {
            self.backlog.happened.invalid += 1;
            return Err(Refusal::Invalid);
        }
        let Some(flow) = self.backlog.find_or_make(key) else {
            self.backlog.happened.table_full += 1;
            self.backlog.gone.refused += 1;
            return Err(Refusal::TableFull);
        };
        let AdmittedPacket { slot, first, estimate, weight } =
            self.backlog.admit(flow, handle, bytes, now.0)?;
        let processor = cycles.map_or(estimate, |cycles| {
            let cycles = self.backlog.within_budget(cycles);
            self.backlog.prices.processing(cycles)
        });
        let line = self.lines.of(&self.backlog, flow);
        let cost = line.enter(&mut self.backlog, slot, processor, first);
        if u64::from(cost) > self.quantum.saturating_mul(weight.into()) {
            self.backlog.happened.beyond_quantum += 1;
        }
        Ok(Ticket(slot))
    }

    /// Prefetches for the packets of three flows that will arrive soon: for the last the table entry, for the
    /// one before it the flow itself, and for the first the tail of its queue; so each key is passed three
    /// times. A hint without effect on results: with many flows, cache misses dominate a packet's cost. Few
    /// flows stay in the cache and are skipped.
    #[inline]
    pub fn expect(&self, last: Option<u32>, before: Option<u32>, first: Option<u32>) {
        if !self.backlog.is_large() {
            return;
        }
        if let Some(key) = last {
            self.backlog.table.prefetch(key);
        }
        if let Some(flow) = before.and_then(|key| self.backlog.table.find(key)) {
            self.backlog.prefetch_entry(flow);
        }
        if let Some(flow) = first.and_then(|key| self.backlog.table.find(key)) {
            self.backlog.prefetch_tail(flow);
        }
    }

    /// Takes the next packet for a resource. None if there is none, if there is no such port, or, for a
    /// processor, if the scheduler waits for the port's progress (MR³, GMR³): then try again after a packet
    /// was passed to the port.
    #[inline]
    pub fn dequeue(&mut self, resource: Resource) -> Option<GrantedPacket> {
        match resource {
            Resource::Processor => {
                let slot = self.lines.next(&mut self.backlog)?;
                Some(self.granted(slot))
            }
            Resource::Port(port) => self.next_for_port(port),
        }
    }

    #[inline]
    fn next_for_port(&mut self, port: u16) -> Option<GrantedPacket> {
        if self.backlog.ready(port) == 0 {
            return None;
        }
        let slot = self.lines.send(&mut self.backlog, port)?;
        let granted = self.granted(slot);
        self.backlog.sent(slot, port);
        Some(granted)
    }

    #[inline]
    fn granted(&self, slot: u32) -> GrantedPacket {
        let place = self.backlog.slot(slot);
        GrantedPacket {
            ticket: Ticket(slot),
            handle: place.handle,
            key: self.backlog.flow(place.flow).key,
            bytes: place.bytes,
            arrived: Nanos(place.arrived),
            estimate: Nanos(place.processor.into()),
        }
    }

    /// Reports that a packet has been processed, with the measured cycles if any. It becomes ready for its
    /// port once all earlier packets of its flow are. Returns false if there is no such packet with a
    /// processor.
    #[inline]
    pub fn processed(&mut self, ticket: Ticket, cycles: Option<u64>) -> bool {
        let Some(flow) = self.working(ticket) else { return false };
        let measured = cycles.map(|cycles| self.price(cycles));
        self.lines.of(&self.backlog, flow).finish(&mut self.backlog, ticket.0, measured);
        true
    }

    /// [`feedback`](Self::feedback) and [`processed`](Self::processed) in one, with one look-up of the flow.
    #[inline]
    pub fn finish(&mut self, ticket: Ticket, cycles: u64) -> bool {
        let Some(flow) = self.working(ticket) else { return false };
        let cycles = self.backlog.within_budget(cycles);
        self.backlog.measure(flow, cycles);
        let measured = self.price(cycles);
        self.lines.of(&self.backlog, flow).finish(&mut self.backlog, ticket.0, Some(measured));
        true
    }

    /// Reports that a packet's program exceeded its budget and was stopped: the packet is lost and counted;
    /// later ones proceed. The budget is treated as measured. Returns its handle, for the caller to free;
    /// none if there is no such packet with a processor.
    pub fn abandon(&mut self, ticket: Ticket) -> Option<u32> {
        let flow = self.working(ticket)?;
        let budget = self.backlog.settings.budget;
        let (measured, handle) = (self.price(budget), self.backlog.slot(ticket.0).handle);
        self.backlog.measure(flow, budget);
        let line = self.lines.of(&self.backlog, flow);
        line.give_up(&mut self.backlog, ticket.0, Some(measured), Gone::Abandoned);
        Some(handle)
    }

    /// Reports that a packet has been processed, with the measured cycles if any, and goes to no port: its
    /// program dropped it, or it was for the router. Later ones proceed. Schedulers that charge for the port
    /// keep the charge. Returns false if there is no such packet with a processor.
    #[inline]
    pub fn consume(&mut self, ticket: Ticket, cycles: Option<u64>) -> bool {
        let Some(flow) = self.working(ticket) else { return false };
        let measured = cycles.map(|cycles| self.price(cycles));
        self.lines.of(&self.backlog, flow).give_up(&mut self.backlog, ticket.0, measured, Gone::Consumed);
        true
    }

    /// Invalidates a waiting packet's handle. As in the paper, it keeps its place; when its turn comes it is
    /// discarded without charge, and the flow's next packet is tried. Returns false if there is no such
    /// packet waiting.
    pub fn revoke(&mut self, ticket: Ticket) -> bool {
        let waiting = self.is_in(ticket, PacketState::Waiting);
        if waiting {
            self.backlog.revoke(ticket.0);
        }
        waiting
    }

    /// Reports the measured processing time of a packet of this flow. More than the budget is treated as the
    /// budget; unknown flows are ignored.
    #[inline]
    pub fn feedback(&mut self, key: u32, measured: u64) {
        let Some(flow) = self.backlog.table.find(key) else { return };
        let cycles = self.backlog.within_budget(measured);
        self.backlog.measure(flow, cycles);
    }

    /// Assigns a weight to a flow, from its next credit on. The flow, known or not, stays in the flow table.
    ///
    /// # Errors
    /// If the flow table is full.
    pub fn set_weight(&mut self, key: u32, weight: Weight) -> Result<(), FlowError> {
        let flow = self.backlog.find_or_make(key).ok_or(FlowError::TableFull { key })?;
        let before = self.backlog.flow(flow).weight;
        self.backlog.pin(flow, Some(weight), None);
        self.backlog.flow_mut(flow).left_over = [0; 2];
        self.lines.of(&self.backlog, flow).reweighted(&mut self.backlog, flow, before);
        Ok(())
    }

    /// Assigns another port to a flow, which stays in the flow table.
    ///
    /// # Errors
    /// If there is no such port, if the flow has packets inside or (with `cbcs`) a pending turn, or if the
    /// flow table is full.
    pub fn set_port(&mut self, key: u32, port: u16) -> Result<(), FlowError> {
        let last = self.backlog.settings.ports - 1;
        if port > last {
            return Err(FlowError::NoPort { key, port, last });
        }
        let flow = self.backlog.find_or_make(key).ok_or(FlowError::TableFull { key })?;
        if self.backlog.flow(flow).inside > 0 || self.backlog.flow(flow).turn.active {
            return Err(FlowError::Busy { key });
        }
        self.backlog.pin(flow, None, Some(port));
        Ok(())
    }

    /// Directs a flow to the port of its next packet, if it is idle (with `cbcs`: has no pending turn) and
    /// has none from [`set_port`](Self::set_port). Unlike that, this does not pin the flow. Does nothing if
    /// there is no such port, or no room for the flow.
    #[inline]
    pub fn aim(&mut self, key: u32, port: u16) {
        if port < self.backlog.settings.ports
            && let Some(flow) = self.backlog.find_or_make(key)
        {
            self.backlog.aim(flow, port);
        }
    }

    /// Resets a flow to weight 1, and lets it be evicted when idle.
    pub fn forget(&mut self, key: u32) {
        if let Some(flow) = self.backlog.table.find(key) {
            let before = self.backlog.flow(flow).weight;
            self.backlog.unpin(flow);
            self.lines.of(&self.backlog, flow).reweighted(&mut self.backlog, flow, before);
        }
    }

    /// The known flows, by index.
    pub fn flows(&self) -> impl Iterator<Item = FlowView> {
        self.backlog.flows.iter().enumerate().map(|(place, flow)| FlowView {
            key: flow.key,
            place,
            weight: flow.weight,
            port: flow.port,
            waiting: flow.waiting_packets,
            inside: flow.inside,
            estimate: Nanos(flow.estimate.into()),
            counters: self.backlog.counters(place as u32),
        })
    }

    /// Index of the flow of a packet inside.
    #[inline]
    pub fn flow_of(&self, ticket: Ticket) -> usize {
        self.backlog.slot(ticket.0).flow as usize
    }

    /// Index of a known flow.
    #[inline]
    pub fn place_of(&self, key: u32) -> Option<usize> {
        self.backlog.table.find(key).map(|flow| flow as usize)
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.backlog.settings
    }

    /// Packets before the processors, those with invalid handles included.
    pub fn waiting(&self) -> u32 {
        self.backlog.waiting
    }

    /// Packets ready for a port, for back-pressure.
    #[inline]
    pub fn ready(&self, port: u16) -> u32 {
        self.backlog.ready(port)
    }

    /// The port of a flow: 0 unless another was assigned.
    #[inline]
    pub fn port_of(&self, key: u32) -> u16 {
        self.backlog.table.find(key).map_or(0, |flow| self.backlog.flow(flow).port)
    }

    /// The oldest packet of a flow that is with a processor, for callers that decide in order.
    #[inline]
    pub fn oldest_working(&self, key: u32) -> Option<Ticket> {
        self.backlog.table.find(key).and_then(|flow| self.backlog.flow(flow).working.first()).map(Ticket)
    }

    /// Packets inside.
    pub fn inside(&self) -> u32 {
        self.backlog.inside
    }

    /// Counters of all flows, evicted ones included. Visits every flow.
    pub fn totals(&self) -> Counters {
        self.backlog.totals()
    }

    /// Counters of a flow since it became known; none if it is unknown.
    pub fn counters(&self, key: u32) -> Option<Counters> {
        self.backlog.table.find(key).map(|flow| self.backlog.counters(flow))
    }

    /// Events that belong to no flow, or should be rare.
    pub fn happened(&self) -> RareCounters {
        self.backlog.happened
    }

    #[inline]
    fn is_in(&self, ticket: Ticket, state: PacketState) -> bool {
        self.backlog.slots.get(ticket.0 as usize).is_some_and(|slot| slot.state == state)
    }

    /// The flow of a packet that is with a processor.
    #[inline]
    fn working(&self, ticket: Ticket) -> Option<u32> {
        self.is_in(ticket, PacketState::Working).then(|| self.backlog.slot(ticket.0).flow)
    }

    /// Cycles in ns; more than the budget are treated as the budget.
    #[inline]
    fn price(&self, cycles: u64) -> u32 {
        self.backlog.prices.processing(cycles.min(self.backlog.settings.budget))
    }
}
