//! Everything that two captures say about the path between them.

use crate::capture::Capture;
use crate::clocks::remove_drift;
use crate::delay::{DelayFinding, delay, noise_ns, reordered};
use crate::estimate::Estimate;
use crate::loss::{CopyFinding, LossFinding, copies, loss};
use crate::pairing::{Clocks, Counts, MOST_DRIFT_PPM, PairError, pair};
use crate::queue::{QueueFinding, QueueTimes, queue};
use crate::rate::{RateFinding, rate};
use crate::service::Transmitter;
use crate::statistics::Level;
use longwire_units::Nanos;

/// How two captures are to be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Whether they have one clock.
    pub clocks: Clocks,
    /// The least delay of the path, if the clocks do not show it.
    pub least_delay: Option<Nanos>,
    /// Confidence of intervals.
    pub level: Level,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self { clocks: Clocks::One, least_delay: None, level: Level::DEFAULT }
    }
}

/// The parameters of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Distilled {
    /// The assumptions.
    pub assumptions: Assumptions,
    /// How many packets were found, and what is left out.
    pub counts: Counts,
    /// From the first packet sent to the last, in ns.
    pub span_ns: f64,
    /// Drift of the receiver's clock in ppm, with two clocks.
    pub drift_ppm: Option<f64>,
    /// The rate of the bottleneck, in bit/s.
    pub rate: RateFinding,
    /// The queue's limit, if the rate is known.
    pub queue: Option<QueueFinding>,
    /// Losses other than at a full queue.
    pub loss: LossFinding,
    /// Packets that arrived more than once.
    pub copies: CopyFinding,
    /// Packets that arrived after one that was sent later.
    pub reordered: u64,
    /// The delay without queue and transmission; none if each packet arrived more than once.
    pub delay: Option<DelayFinding>,
}

/// Estimates the parameters of the path between two captures, the sender's and the receiver's.
///
/// # Errors
/// They have nothing in common, or what they have can't be used.
pub fn distill(sent: &Capture, received: &Capture, assumptions: Assumptions) -> Result<Distilled, PairError> {
    let mut paired = pair(sent, received, assumptions.clocks)?;
    let level = assumptions.level;
    let mut drift_ppm = None;
    if assumptions.clocks == Clocks::Two {
        let drift = remove_drift(&mut paired.packets);
        if drift.abs() > MOST_DRIFT_PPM as f64 {
            return Err(PairError::Drift(drift as i64));
        }
        // The line rests on two rounded delays.
        paired.resolution_ns *= 2.0;
        drift_ppm = Some(drift);
    }
    let packets = &paired.packets;
    let rate = rate(&paired, level);
    let transmitter = rate.estimate().map(|rate| Transmitter {
        ns_per_bit: 1e9 / rate.value,
        error: (rate.value / rate.low).max(rate.high / rate.value) - 1.0,
        resolution_ns: paired.resolution_ns,
    });
    let queued = transmitter.map(|transmitter| {
        let noise_ns = noise_ns(&paired, transmitter);
        queue(packets, &QueueTimes { transmitter, noise_ns }, level)
    });
    let (queue, may_be_full) = queued.unzip();
    let may_be_full = may_be_full.unwrap_or_else(|| vec![false; packets.len()]);
    let reordered = reordered(packets);
    let mut delay = delay(&paired, transmitter, reordered, level);
    if let (Clocks::Two, Some(delay)) = (assumptions.clocks, &mut delay) {
        begin_at(delay, assumptions.least_delay.unwrap_or(Nanos::ZERO));
    }
    let span_ns =
        packets.last().map_or(0.0, |last| last.sent_ns) - packets.first().map_or(0.0, |first| first.sent_ns);
    Ok(Distilled {
        assumptions,
        counts: paired.counts,
        span_ns,
        drift_ppm,
        rate,
        queue,
        loss: loss(packets, &may_be_full, level),
        copies: copies(packets, paired.resolution_ns, level),
        reordered,
        delay,
    })
}

/// Shifts delays so that the least, or the constant one, is `least`.
fn begin_at(delay: &mut DelayFinding, least: Nanos) {
    let least = least.0 as f64;
    match delay {
        DelayFinding::Constant { delay_ns, .. } => {
            *delay_ns = Estimate { value: least, low: least, high: least, ..*delay_ns };
        }
        DelayFinding::Varying(found) => {
            let shift = least - found.least_ns;
            found.least_ns = least;
            found.mean_ns = found.mean_ns.map(|delay| delay + shift);
            for quantile in &mut found.quantiles_ns {
                *quantile = quantile.map(|estimate| estimate.map(|delay| delay + shift));
            }
            found.points_ns.iter_mut().for_each(|point| *point += shift);
        }
    }
}
