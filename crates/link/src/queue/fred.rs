//! Flow RED: RED that counts each flow's packets, protects small flows and limits large ones to their share.

use super::average::Average;
use super::early::{CERTAIN, Early, Outcome, in_steps, length};
use super::flow::{flow_hash, slot};
use super::settings::{ECN, FLOWS, LIMIT, Limit, MEAN_PACKET, WEIGHT};
use super::{Admission, Discipline, Next, QueueContext};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, DropReason, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_settings::{Millionths, Settings};
use longwire_units::{Bytes, Probability};

/// FRED with two-packet buffering (Lin & Morris 1997, with the extension for many flows).
///
/// A flow may have `min` packets in the queue, or two while the average is at `max` or above; a packet beyond
/// that is dropped, and its flow gets a strike. A flow with strikes gets no more than the average flow.
/// Between `min` and `max`, flows with at least `min-q` packets and an average share are dropped at random.
/// From `max` on there are no random drops: a flow without strikes is guaranteed two packets. This variant
/// guarantees each flow some packets (Stoica, Shenker & Zhang, "Core-stateless fair queueing", 1998, where it
/// is FRED-2); the other drops everything there, as RED does. The average is also updated when packets leave.
/// Packets count until they are sent; flows with the same hash are treated as one.
#[derive(Debug, Default)]
pub struct Fred {
    average: Average,
    early: Early,
    flows: Vec<Flow>,
    /// Flows with packets in the queue.
    active: u64,
    fifo: Fifo,
    /// The flow of the packet being sent.
    sending: Option<usize>,
    limit: Limit,
    marks: bool,
    min_q: u32,
    used: u32,
    /// Whether packets wait that are not counted for their flows.
    stale: bool,
    seed: u64,
}

/// State of a flow while it has packets.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    waiting: u32,
    strikes: u32,
}

/// Flow RED: protects flows with few packets and limits greedy ones to their share.
#[derive(Debug, Settings)]
#[settings(
    key = "queue",
    kind = "fred",
    source = "Lin & Morris, Dynamics of random early detection, 1997",
    live
)]
pub struct FredSettings {
    #[setting(like = LIMIT)]
    limit: Limit,
    /// average in packets from which packets are dropped early, and most packets of a flow
    #[setting(default = "5", min = 0, max = 1_000_000)]
    min: u64,
    /// average in packets from which each flow may have two; treated as min if it is less
    #[setting(default = "10", min = 0, max = 1_000_000)]
    max: u64,
    /// probability of an early drop just below max
    #[setting(default = "2 %")]
    max_p: Probability,
    #[setting(like = WEIGHT)]
    weight: Millionths,
    /// flows with fewer packets are not dropped at random, 1 to 1000; the paper has 2, and 4 for large
    /// buffers
    #[setting(default = "2", min = 1, max = 1000)]
    min_q: u64,
    #[setting(like = FLOWS)]
    flows: u64,
    #[setting(like = ECN)]
    ecn: bool,
    #[setting(like = MEAN_PACKET)]
    mean_packet: Bytes,
}

impl Block for Fred {
    type Settings = FredSettings;

    fn build(settings: FredSettings, mut dice: Dice) -> Self {
        let early = Early::new(Dice::seeded(dice.draw()));
        Self { early, seed: dice.draw(), ..Self::default() }.with(settings)
    }

    /// Applies new parameters; the average stays. With another number of flows, they start fresh with the
    /// waiting packets.
    fn change(&mut self, settings: FredSettings) {
        self.limit = settings.limit;
        self.early.set((settings.min, settings.max), in_steps(settings.max_p.bits()), false);
        self.average.set_weight(settings.weight.0, settings.mean_packet.0);
        self.min_q = settings.min_q as u32;
        self.marks = settings.ecn;
        let used = settings.flows as u32;
        if used != self.used {
            // Nothing waits in a queue that is built.
            self.stale = self.used != 0;
            self.used = used;
            self.active = 0;
            self.flows = vec![Flow::default(); used as usize];
            self.sending = None;
        }
    }
}

impl Discipline for Fred {
    fn memory_bytes(&self) -> usize {
        self.flows.capacity() * size_of::<Flow>()
    }

    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        if packet.packets_waiting == 0 {
            self.average.arrival(packet.now, 0, packet.rate);
        }
        let index = self.find(packet.frame());
        let average = self.average.value();
        let share = Share { average, active: self.active.max(1) };
        let (min, max) = self.early.thresholds();
        let crowded = average >= max;
        let flow = &mut self.flows[index];
        let most = if crowded { 2 } else { min >> 32 };
        if u64::from(flow.waiting) >= most || share.is_reached_by(flow.waiting) && flow.strikes > 1 {
            flow.strikes = flow.strikes.saturating_add(1);
            return Verdict::Drop(DropReason::Aqm);
        }
        let robust = flow.waiting >= self.min_q && share.is_reached_by(flow.waiting);
        let outcome = if average < min || robust && !crowded {
            self.early.judge(average, CERTAIN)
        } else {
            self.early.spare();
            Outcome::Spared
        };
        let verdict = outcome.verdict(packet, self.limit, self.marks);
        if packet.packets_waiting > 0 && !matches!(verdict, Verdict::Drop(_)) {
            self.average.observe(packet.packets_waiting);
        }
        verdict
    }

    #[inline]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        self.count(context.pool.data(handle));
        self.fifo.push(context.pool, handle);
    }

    fn resettle(&mut self, context: &mut QueueContext<'_>) {
        if std::mem::take(&mut self.stale) {
            self.fifo.iter(context.pool).for_each(|handle| self.count(context.pool.data(handle)));
        }
    }

    #[inline]
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next {
        if let Some(sent) = self.sending.take() {
            self.leave(sent);
            self.average.observe(context.packets_waiting());
        }
        match self.fifo.pop(context.pool) {
            Some(handle) => {
                self.sending = Some(self.find(context.pool.data(handle)));
                Next::Packet(handle)
            }
            None => {
                self.average.idle(context.now);
                Next::Empty
            }
        }
    }

    fn drain(&mut self, _: &mut Pool) -> Fifo {
        std::mem::take(&mut self.fifo)
    }
}

impl Fred {
    #[inline]
    fn find(&self, frame: &[u8]) -> usize {
        slot(flow_hash(frame, self.seed), self.used)
    }

    /// Counts a waiting packet of this flow.
    #[inline]
    fn count(&mut self, frame: &[u8]) {
        let index = self.find(frame);
        let flow = &mut self.flows[index];
        self.active += u64::from(flow.waiting == 0);
        flow.waiting += 1;
    }

    /// Counts a sent packet of this flow.
    #[inline]
    fn leave(&mut self, flow: usize) {
        let Some(flow) = self.flows.get_mut(flow).filter(|flow| flow.waiting > 0) else { return };
        flow.waiting -= 1;
        if flow.waiting == 0 {
            flow.strikes = 0;
            self.active -= 1;
        }
    }
}

/// The average flow's packets: the average divided by the number of flows, at least one. Compared without a
/// division.
#[derive(Clone, Copy)]
struct Share {
    /// In steps of 2⁻³².
    average: u64,
    active: u64,
}

impl Share {
    #[inline]
    fn is_reached_by(self, waiting: u32) -> bool {
        waiting >= 1 && u128::from(length(waiting.into())) * u128::from(self.active) >= self.average.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six packets among four flows are 1.5 each; an average below one packet per flow is treated as one.
    #[test]
    fn shares_without_a_division() {
        let share = Share { average: length(6), active: 4 };
        assert!(!share.is_reached_by(1) && share.is_reached_by(2));
        let small = Share { average: length(1), active: 4 };
        assert!(!small.is_reached_by(0) && small.is_reached_by(1));
    }
}
