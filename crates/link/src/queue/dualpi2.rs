//! DualPI2: one queue for senders that react slightly to every mark, one for all others, and a controller
//! that couples them.

use super::pie::{ALPHA, BETA, TARGET, UPDATE};
use super::pie_law::{Gains, ONE, Ticks};
use super::settings::{LIMIT, Limit};
use super::{Admission, Discipline, Next, QueueContext};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, DropReason, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_settings::{Millionths, Settings};
use longwire_units::{Nanos, Probability};
use longwire_wire::{Ecn, ecn};

/// DualPI2, the dual-queue coupled AQM.
///
/// Packets with ECT(1) and CE go to the low-latency queue (RFC 9331), all others to the classic one. Every
/// `update` the base probability p' is adjusted by the longer of the two heads' waiting times. Classic
/// packets are dropped, or marked if they are ECN-capable, with p'²; low-latency packets are marked with
/// coupling·p', and always once they have waited for `step` with others behind them (the step that RFC 9332,
/// appendix A.1, note c, allows in place of its ramp from 0.8 to 1.2 ms, as in Linux). From p' = 1/coupling
/// on the link is overloaded, and both are dropped with p'² (appendix A.2). Probabilities are accumulated,
/// not drawn (appendix A.1, `recur`), and one of 1 is certain.
///
/// The scheduler serves the low-latency queue first, but leaves the classic queue `protection` of the bytes
/// when both have packets: a weighted round robin with credit, which an idle link forgets (appendix A.1). A
/// tenth is Linux's value; the RFC only requires it to be small.
#[derive(Debug, Default)]
pub struct DualPi2 {
    /// Classic and low-latency.
    lanes: [Lane; 2],
    /// p', and the derived probabilities of each lane: p'² and coupling·p'; in steps of 2⁻⁶².
    base: u64,
    likelihoods: [u64; 2],
    /// The longer wait at the last adjustment, in ns.
    waited: u64,
    ticks: Ticks,
    gains: Gains,
    step: Nanos,
    /// In millionths.
    coupling: u64,
    /// Credit of the classic queue, in bytes · 2⁻¹⁶.
    credit: i64,
    /// The classic queue's share, of 2¹⁶.
    protection: i64,
    limit: Limit,
}

/// One of the queues.
#[derive(Debug)]
struct Lane {
    fifo: Fifo,
    /// Arrival of its first packet; never if there is none.
    head: Nanos,
    /// Likelihoods summed up.
    sum: u64,
}

impl Default for Lane {
    fn default() -> Self {
        Self { fifo: Fifo::EMPTY, head: Nanos::NEVER, sum: 0 }
    }
}

const CLASSIC: usize = 0;
const LOW: usize = 1;

/// Low latency for L4S senders beside a classic queue, coupled so that both get their share.
#[derive(Debug, Settings)]
#[settings(key = "queue", kind = "dualpi2", source = "RFC 9332, appendix A; RFC 9331", live)]
pub struct DualPi2Settings {
    #[setting(like = LIMIT, default = "10000 packets")]
    limit: Limit,
    #[setting(like = TARGET)]
    target: Nanos,
    #[setting(like = UPDATE, default = "16 ms")]
    update: Nanos,
    #[setting(like = ALPHA, default = "0.16")]
    alpha: Millionths,
    #[setting(like = BETA, default = "3.2")]
    beta: Millionths,
    /// marking probability of low-latency packets as a multiple of the base probability, 0 to 100
    #[setting(default = "2", min = 0, max = 100_000_000)]
    coupling: Millionths,
    /// waiting time from which every low-latency packet is marked, up to 10 s
    #[setting(default = "1 ms", max = Nanos::from_secs(10))]
    step: Nanos,
    /// share of the rate that the classic queue gets while both have packets
    #[setting(default = "10 %")]
    protection: Probability,
}

impl Block for DualPi2 {
    type Settings = DualPi2Settings;

    fn build(settings: DualPi2Settings, _: Dice) -> Self {
        Self::default().with(settings)
    }

    /// Applies new parameters; the probability stays.
    fn change(&mut self, settings: DualPi2Settings) {
        self.limit = settings.limit;
        self.gains = Gains::new(settings.target, settings.update, settings.alpha, settings.beta);
        self.coupling = settings.coupling.0;
        self.step = settings.step;
        self.protection = (settings.protection.bits() >> 47) as i64;
    }
}

impl Discipline for DualPi2 {
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        self.catch_up(packet.now);
        if self.limit.has_room(packet) { Verdict::Pass } else { Verdict::Drop(DropReason::QueueFull) }
    }

    #[inline(always)]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        let low = matches!(ecn(context.pool.data(handle)), Ecn::Ect1 | Ecn::Ce);
        let lane = &mut self.lanes[usize::from(low)];
        lane.fifo.push(context.pool, handle);
        if lane.head == Nanos::NEVER {
            lane.head = Nanos(context.pool.meta(handle).arrival);
        }
    }

    /// p' reacts to the wait above the target, and its changes from now on. If the wait were treated as
    /// having grown from zero, as RFC 9332, appendix A.1, begins with an empty queue, one adjustment after a
    /// wait of 0.6 s would drop all waiting packets.
    fn adopt(&mut self, context: &mut QueueContext<'_>, mut waiting: Fifo) {
        while let Some(handle) = waiting.pop(context.pool) {
            self.push(context, handle);
        }
        self.waited = longest_wait(self.heads(), context.now);
        self.catch_up(context.now);
    }

    #[inline(always)]
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next {
        self.catch_up(context.now);
        while let Some((lane, handle, credit)) = self.take(context) {
            let goes = if lane == LOW {
                self.passes_low(context, handle)
            } else {
                self.passes_classic(context, handle)
            };
            if goes {
                self.credit = self.credit.saturating_add(credit);
                return Next::Packet(handle);
            }
            context.drop(handle, DropReason::Aqm);
        }
        self.credit = 0;
        Next::Empty
    }

    /// The low-latency packets first.
    fn drain(&mut self, pool: &mut Pool) -> Fifo {
        let mut all = Fifo::EMPTY;
        for lane in self.lanes.iter_mut().rev() {
            lane.head = Nanos::NEVER;
            all.append(pool, lane.fifo.take());
        }
        all
    }
}

impl DualPi2 {
    /// Arrival of the first packet of each lane.
    #[inline]
    fn heads(&self) -> [Nanos; 2] {
        self.lanes.each_ref().map(|lane| lane.head)
    }

    /// Adjusts p' for every due time (appendix A.2, dualpi2_update). The first packets have not changed since
    /// the last event.
    #[inline]
    fn catch_up(&mut self, now: Nanos) {
        let heads = self.heads();
        let (base, waited, gains) = (&mut self.base, &mut self.waited, &self.gains);
        let mut corrected = false;
        self.ticks.catch_up(gains.update, now, |time| {
            let waits = longest_wait(heads, time);
            let next = (*base as i64).saturating_add(gains.correction(waits, *waited));
            let next = next.clamp(0, ONE as i64) as u64;
            let settled = (*base, *waited) == (next, waits);
            (*base, *waited, corrected) = (next, waits, true);
            settled
        });
        if corrected {
            let coupled = u128::from(self.base) * u128::from(self.coupling) / 1_000_000;
            self.likelihoods = [
                ((u128::from(self.base) * u128::from(self.base)) >> 62) as u64,
                coupled.min(ONE.into()) as u64,
            ];
        }
    }

    /// The next packet, its lane, and its effect on the classic queue's credit.
    #[inline]
    fn take(&mut self, context: &mut QueueContext<'_>) -> Option<(usize, Handle, i64)> {
        let [classic, low] = self.lanes.each_ref().map(|lane| !lane.fifo.is_empty());
        let chosen = if low && (!classic || self.credit <= 0) { LOW } else { CLASSIC };
        let lane = &mut self.lanes[chosen];
        let handle = lane.fifo.pop(context.pool)?;
        lane.head = match lane.fifo.first() {
            Some(next) => Nanos(context.pool.meta(next).arrival),
            None => Nanos::NEVER,
        };
        let part = match (classic && low, chosen) {
            (false, _) => 0,
            (true, LOW) => self.protection,
            (true, _) => self.protection - (1 << 16),
        };
        Some((chosen, handle, context.pool.meta(handle).counted() as i64 * part))
    }

    /// Whether a low-latency packet is sent, marked or not.
    #[inline]
    fn passes_low(&mut self, context: &mut QueueContext<'_>, handle: Handle) -> bool {
        let [classic, coupled] = self.likelihoods;
        let overload = coupled >= ONE;
        let lane = &mut self.lanes[LOW];
        if overload && lane.recurs(classic) {
            return false;
        }
        let waited = context.now.since(Nanos(context.pool.meta(handle).arrival));
        let stepped = waited >= self.step && !lane.fifo.is_empty();
        if stepped || overload || lane.recurs(coupled) {
            context.mark(handle);
        }
        true
    }

    /// Whether a classic packet is sent, marked or not. It is overload at p'² = min(1/coupling², 1).
    #[inline]
    fn passes_classic(&mut self, context: &mut QueueContext<'_>, handle: Handle) -> bool {
        let [classic, coupled] = self.likelihoods;
        !self.lanes[CLASSIC].recurs(classic) || classic.max(coupled) < ONE && context.mark(handle)
    }
}

/// The longer waiting time of two packets, in ns.
#[inline]
fn longest_wait(heads: [Nanos; 2], now: Nanos) -> u64 {
    heads.map(|head| now.since(head).0).into_iter().max().unwrap_or(0)
}

impl Lane {
    /// Whether this packet is selected, one of 1/likelihood.
    #[inline]
    fn recurs(&mut self, likelihood: u64) -> bool {
        if likelihood >= ONE {
            return true;
        }
        self.sum += likelihood;
        let hit = self.sum > ONE;
        if hit {
            self.sum -= ONE;
        }
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by hand: after 16 ms the first packet has waited for them, and p' = 0.16·(16 − 15 ms) +
    /// 3.2·16 ms = 0.05136. Classic packets are hit with its square, low-latency ones with its double, and of
    /// 100 000 the corresponding numbers.
    #[test]
    fn the_probabilities_are_coupled() {
        let mut queue = DualPi2::build(Settings::read(&[]).unwrap(), Dice::named(1, ""));
        queue.catch_up(Nanos(1));
        queue.lanes[CLASSIC].head = Nanos(1);
        queue.catch_up(Nanos(16_000_001));
        for (lane, wanted) in [(CLASSIC, 0.051_36 * 0.051_36), (LOW, 2.0 * 0.051_36)] {
            let likelihood = queue.likelihoods[lane];
            assert!((likelihood as f64 / ONE as f64 / wanted - 1.0).abs() < 1e-9, "{lane}: {likelihood}");
            let hits = (0..100_000).filter(|_| queue.lanes[lane].recurs(likelihood)).count() as f64;
            assert!((hits - 100_000.0 * wanted).abs() <= 1.0, "{lane}: {hits}");
        }
        // Without packets p' falls to 0, and both with it.
        queue.lanes[CLASSIC].head = Nanos::NEVER;
        queue.catch_up(Nanos::from_secs(10));
        assert_eq!(queue.likelihoods, [0, 0]);
    }
}
