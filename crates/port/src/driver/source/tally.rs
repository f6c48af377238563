//! What a port has sent and received, by flow.

use super::flow::Said;
use longwire_units::Nanos;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What arrived of a flow at one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Packets.
    pub packets: u64,
    /// Their frames' bytes, without FCS.
    pub bytes: u64,
    /// When the first arrived; [`Nanos::NEVER`] if none did.
    pub first: Nanos,
    /// When the last arrived; 0 if none did.
    pub last: Nanos,
    /// Sum of the packets' delays, from when they were due to when they arrived, in ns.
    pub delay_sum: u128,
    /// The least delay; [`Nanos::NEVER`] if no packet arrived.
    pub delay_min: Nanos,
    /// The greatest delay.
    pub delay_max: Nanos,
    /// Packets that arrived after one with a higher sequence number.
    pub reordered: u64,
    next_sequence: u64,
}

/// The figures of one port, shared between the port and whoever reports.
#[derive(Debug, Clone)]
pub struct Tally(Arc<Mutex<Table>>);

#[derive(Debug)]
pub(super) struct Table {
    sent: Box<[u64]>,
    received: Box<[Received]>,
    others: u64,
}

impl Received {
    const NONE: Self = Self {
        packets: 0,
        bytes: 0,
        first: Nanos::NEVER,
        last: Nanos::ZERO,
        delay_sum: 0,
        delay_min: Nanos::NEVER,
        delay_max: Nanos::ZERO,
        reordered: 0,
        next_sequence: 0,
    };

    /// How many are missing of `sent` packets, those still under way included.
    pub fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.packets)
    }

    /// The mean delay in ns, for reports; none if no packet arrived.
    pub fn delay_mean(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.delay_sum as f64 / self.packets as f64)
    }
}

impl Tally {
    pub(super) fn new(flows: u16) -> Self {
        let flows = usize::from(flows);
        let table =
            Table { sent: vec![0; flows].into(), received: vec![Received::NONE; flows].into(), others: 0 };
        Self(Arc::new(Mutex::new(table)))
    }

    /// How many packets of a flow the port has sent; 0 for a flow it does not know.
    pub fn packets_sent(&self, flow: u16) -> u64 {
        self.lock().sent.get(usize::from(flow)).copied().unwrap_or(0)
    }

    /// What arrived of a flow at the port.
    pub fn received(&self, flow: u16) -> Received {
        self.lock().received.get(usize::from(flow)).copied().unwrap_or(Received::NONE)
    }

    /// Packets that arrived and belong to no flow of the run.
    pub fn others(&self) -> u64 {
        self.lock().others
    }

    /// Counters stay meaningful whatever the thread that held them did.
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Counts a packet that the port has sent.
    pub(super) fn give(&mut self, flow: u16) {
        if let Some(sent) = self.sent.get_mut(usize::from(flow)) {
            *sent += 1;
        }
    }

    /// Counts a frame of `wire_len` bytes that arrived at `time`.
    pub(super) fn take(&mut self, time: Nanos, wire_len: u32, frame: &[u8]) {
        let said = Said::read(frame);
        let Some((said, flow)) =
            said.and_then(|said| Some((said, self.received.get_mut(usize::from(said.flow))?)))
        else {
            self.others += 1;
            return;
        };
        let delay = time.since(said.time);
        flow.packets += 1;
        flow.bytes += u64::from(wire_len);
        flow.first = flow.first.min(time);
        flow.last = flow.last.max(time);
        flow.delay_sum += u128::from(delay.0);
        flow.delay_min = flow.delay_min.min(delay);
        flow.delay_max = flow.delay_max.max(delay);
        if said.sequence < flow.next_sequence {
            flow.reordered += 1;
        }
        flow.next_sequence = flow.next_sequence.max(said.sequence + 1);
    }
}
