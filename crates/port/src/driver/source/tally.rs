//! Packets sent and received by a port, by flow.

use super::flow::FlowFrame;
use super::sequence_set::SequenceSet;
use longwire_units::{LogHistogram, Nanos, buckets};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Delays of packets, in buckets that are at most 1/32 of their value wide.
pub type DelayHistogram = LogHistogram<{ buckets(5) }>;

/// Packets of a flow sent by a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentCounters {
    /// Packets.
    pub packets: u64,
    /// Their frames' bytes, without FCS.
    pub bytes: u64,
    /// Bytes of the first one.
    pub first_bytes: u64,
    /// When the first was due; [`Nanos::NEVER`] if there was none.
    pub first: Nanos,
    /// When the last was due; 0 if there was none.
    pub last: Nanos,
}

/// Packets of a flow received by a port. All fields but `copies` and `corrupt` count intact packets, each at
/// its first arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedCounters {
    /// Packets.
    pub packets: u64,
    /// Copies of packets that had arrived before.
    pub copies: u64,
    /// Frames with changed bits, which are not counted otherwise.
    pub corrupt: u64,
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

/// A port's counters, shared by the port and reports.
#[derive(Debug, Clone)]
pub struct Tally(Arc<Mutex<Table>>);

#[derive(Debug)]
pub(super) struct Table {
    /// Number of flows of the run. Only flows that the port has sent or received have entries: ports times
    /// flows may be many.
    flows: u16,
    sent: HashMap<u16, SentCounters>,
    received: HashMap<u16, Arrivals>,
    others: u64,
}

/// What is known of a flow's arrivals.
#[derive(Debug, Default)]
struct Arrivals {
    received: ReceivedCounters,
    seen: SequenceSet,
    delays: DelayHistogram,
}

impl Default for ReceivedCounters {
    fn default() -> Self {
        Self::NONE
    }
}

impl SentCounters {
    /// Nothing.
    pub const NONE: Self =
        Self { packets: 0, bytes: 0, first_bytes: 0, first: Nanos::NEVER, last: Nanos::ZERO };

    /// Offered rate in bits per second: bits of all frames but the first, over the time from the first's due
    /// time to the last's. None without two different times.
    pub fn offered(&self) -> Option<f64> {
        let time = self.last.since(self.first);
        (self.packets > 1 && time.0 > 0).then(|| (self.bytes - self.first_bytes) as f64 * 8e9 / time.0 as f64)
    }
}

impl ReceivedCounters {
    /// Nothing.
    pub const NONE: Self = Self {
        packets: 0,
        copies: 0,
        corrupt: 0,
        bytes: 0,
        first: Nanos::NEVER,
        last: Nanos::ZERO,
        delay_sum: 0,
        delay_min: Nanos::NEVER,
        delay_max: Nanos::ZERO,
        reordered: 0,
        next_sequence: 0,
    };

    /// How many of `sent` packets are missing: not arrived, arrived only corrupt, or still in transit.
    pub fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.packets)
    }

    /// Delivered rate in bits per second: the offered rate without missing packets. None as
    /// [`SentCounters::offered`].
    pub fn delivered(&self, sent: &SentCounters) -> Option<f64> {
        sent.offered().map(|offered| offered * self.bytes as f64 / sent.bytes as f64)
    }

    /// Adds the packets of the flow received by another port.
    pub fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.copies += other.copies;
        self.corrupt += other.corrupt;
        self.bytes += other.bytes;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.delay_sum += other.delay_sum;
        self.delay_min = self.delay_min.min(other.delay_min);
        self.delay_max = self.delay_max.max(other.delay_max);
        self.reordered += other.reordered;
        self.next_sequence = self.next_sequence.max(other.next_sequence);
    }

    /// The mean delay in ns, for reports; none if no packet arrived.
    pub fn delay_mean(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.delay_sum as f64 / self.packets as f64)
    }
}

impl Tally {
    pub(super) fn new(flows: u16) -> Self {
        Self(Arc::new(Mutex::new(Table::new(flows))))
    }

    /// Distinguishes as many flows of the run from now on, if that is more.
    pub fn widen(&self, flows: u16) {
        let mut table = self.lock();
        table.flows = table.flows.max(flows);
    }

    /// Number of packets of a flow sent by the port.
    pub fn packets_sent(&self, flow: u16) -> u64 {
        self.sent(flow).packets
    }

    /// Packets of a flow sent by the port.
    pub fn sent(&self, flow: u16) -> SentCounters {
        self.lock().sent.get(&flow).copied().unwrap_or(SentCounters::NONE)
    }

    /// Packets of a flow received by the port.
    pub fn received(&self, flow: u16) -> ReceivedCounters {
        self.lock().received.get(&flow).map_or(ReceivedCounters::NONE, |arrivals| arrivals.received)
    }

    /// Adds the delays of the flow's packets received by the port: as in [`ReceivedCounters`], of each intact
    /// packet at its first arrival.
    pub fn add_delays(&self, flow: u16, all: &mut DelayHistogram) {
        if let Some(arrivals) = self.lock().received.get(&flow) {
            all.merge(&arrivals.delays);
        }
    }

    /// Received packets that belong to no flow of the run.
    pub fn others(&self) -> u64 {
        self.lock().others
    }

    /// Counters are valid even if a thread panicked while it held the lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn new(flows: u16) -> Self {
        Self { flows, sent: HashMap::new(), received: HashMap::new(), others: 0 }
    }

    /// Counts a sent packet.
    pub(super) fn give(&mut self, flow: u16, time: Nanos, bytes: usize) {
        if flow >= self.flows {
            return;
        }
        let sent = self.sent.entry(flow).or_insert(SentCounters::NONE);
        if sent.packets == 0 {
            (sent.first, sent.first_bytes) = (time, bytes as u64);
        }
        sent.packets += 1;
        sent.bytes += bytes as u64;
        sent.last = time;
    }

    /// Counts a received frame of `wire_len` bytes.
    pub(super) fn take(&mut self, time: Nanos, wire_len: u32, frame: &[u8]) {
        let said = FlowFrame::read(frame, wire_len);
        let known = said.and_then(|said| {
            let (FlowFrame::Intact { flow, .. } | FlowFrame::Corrupt { flow }) = said;
            let of_flow = (flow < self.flows).then(|| self.received.entry(flow))?;
            Some((said, of_flow.or_default()))
        });
        let Some((said, Arrivals { received, seen, delays })) = known else {
            self.others += 1;
            return;
        };
        match said {
            FlowFrame::Corrupt { .. } => received.corrupt += 1,
            FlowFrame::Intact { sequence, .. } if !seen.note(sequence) => received.copies += 1,
            FlowFrame::Intact { sequence, time: due, .. } => {
                delays.record(time.since(due));
                received.take(time, wire_len, sequence, due);
            }
        }
    }
}

impl ReceivedCounters {
    /// Counts the first arrival of an intact packet.
    fn take(&mut self, time: Nanos, wire_len: u32, sequence: u64, due: Nanos) {
        let delay = time.since(due);
        self.packets += 1;
        self.bytes += u64::from(wire_len);
        self.first = self.first.min(time);
        self.last = self.last.max(time);
        self.delay_sum += u128::from(delay.0);
        self.delay_min = self.delay_min.min(delay);
        self.delay_max = self.delay_max.max(delay);
        self.reordered += u64::from(sequence < self.next_sequence);
        self.next_sequence = self.next_sequence.max(sequence + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows that a port neither sends nor receives take no memory: 10 000 ports and flows would be 10⁸
    /// entries.
    #[test]
    fn flows_that_a_port_does_not_meet_take_no_room() {
        let mut table = Table::new(10_000);
        table.give(9_999, Nanos(1), 60);
        table.give(10_000, Nanos(1), 60);
        table.take(Nanos(1), 60, &[0; 60]);
        assert_eq!((table.sent.len(), table.received.len(), table.others), (1, 0, 1));
    }

    #[test]
    fn what_is_offered_and_what_of_it_arrives() {
        let mut table = Table::new(1);
        table.received.insert(0, Arrivals::default());
        table.give(0, Nanos(1_000_000_000), 500);
        assert_eq!(table.sent[&0].offered(), None);
        // 10 frames of 1000 bytes, 1 ms apart, after one of 500: 8 Mbit/s.
        (1..=10).for_each(|n| table.give(0, Nanos(1_000_000_000 + n * 1_000_000), 1000));
        let sent = table.sent[&0];
        assert_eq!((sent.packets, sent.bytes, sent.offered()), (11, 10_500, Some(8e6)));
        // A third of the bytes, all arriving at the end, is not a rate of 2800 Mbit/s.
        let received = &mut table.received.get_mut(&0).unwrap().received;
        (7..=9).for_each(|n| received.take(Nanos(1_010_000_000 + n), 1000, n, Nanos(1_000_000_000)));
        received.take(Nanos(1_010_000_010), 500, 0, Nanos(1_000_000_000));
        assert_eq!(received.delivered(&sent), Some(8e6 / 3.0));
        assert_eq!((received.lost(11), received.reordered), (7, 1));
    }
}
