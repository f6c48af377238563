//! The delay behind the transmitter: constant, or a distribution; packets that overtake.

use crate::estimate::Estimate;
use crate::pairing::{Packet, Paired};
use crate::service::{Transmitter, served};
use crate::statistics::{Level, mean_and_variance, quantile, quantile_ranks};

/// Quantiles that are reported, as shares of the packets.
pub const SHARES: [f64; 7] = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99];
/// Points of the distribution function in the scenario, evenly spaced.
pub const POINTS: usize = 41;
/// Share of neighbours whose order could have changed, below which nothing is known about order.
const CLOSE: f64 = 0.01;

/// The delay of packets without queue and transmission. Without a known rate, transmission is in it.
#[derive(Debug, Clone, PartialEq)]
pub enum DelayFinding {
    /// All packets have one delay, except for some that are early.
    Constant {
        /// In ns. Its interval is certain: it has what rounding leaves open.
        delay_ns: Estimate,
        /// The packets that overtake.
        early: Option<Early>,
    },
    /// The delay varies.
    Varying(Box<Distribution>),
}

/// Packets whose delay is shorter than the others'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Early {
    /// Their share.
    pub share: Estimate,
    /// By how much their delay is shorter, in ns: the interval is certain if it is the same for all,
    /// otherwise it is that of the median.
    pub by_ns: Estimate,
    /// Whether it is the same for all.
    pub is_constant: bool,
}

/// Delays that vary.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// The shortest delay seen, in ns.
    pub least_ns: f64,
    /// The quantiles at [`SHARES`], in ns; none where there are too few packets for an interval.
    pub quantiles_ns: [Option<Estimate>; SHARES.len()],
    /// The mean in ns, with the interval of the central limit.
    pub mean_ns: Estimate,
    /// The distribution function: the delays in ns at [`POINTS`] evenly spaced shares from 0 to 1.
    pub points_ns: Vec<f64>,
    /// Correlation of the delays of consecutive packets. Intervals allow for it, if it is positive.
    pub correlation: f64,
    /// Whether packets keep their order.
    pub order: Order,
}

/// Whether packets whose delays vary keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// They were close enough to overtake, and none did.
    Kept,
    /// Some overtook others.
    Changed,
    /// They were too far apart.
    Unknown,
}

/// A delay without queue and transmission, in ns, and how much it may be wrong.
#[derive(Debug, Clone, Copy)]
struct Residual {
    delay_ns: f64,
    slack_ns: f64,
}

/// Estimates the delay. `reordered` packets arrived after packets that were sent later.
pub fn delay(
    paired: &Paired,
    transmitter: Option<Transmitter>,
    reordered: u64,
    level: Level,
) -> Option<DelayFinding> {
    let residuals = residuals(paired, transmitter);
    if residuals.is_empty() {
        return None;
    }
    if let Some(constant) = constant(&residuals, level) {
        return Some(constant);
    }
    let mut found = distribution(paired, &best(&residuals, level), reordered, level)?;
    if found.order == Order::Kept {
        // The first packets of a busy period are the surest, and the earliest where none overtakes.
        found = distribution(paired, &residuals, reordered, level)?;
    }
    Some(DelayFinding::Varying(Box::new(found)))
}

/// The delays in ascending order.
fn ascending(residuals: &[Residual]) -> Vec<f64> {
    let mut sorted: Vec<f64> = residuals.iter().map(|residual| residual.delay_ns).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn by_slack(residuals: &[Residual]) -> Vec<Residual> {
    let mut sorted = residuals.to_vec();
    sorted.sort_by(|a, b| a.slack_ns.total_cmp(&b.slack_ns));
    sorted
}

/// The tenth with the least slack, and 50 at least, of residuals in this order.
fn surest(by_slack: &[Residual]) -> &[Residual] {
    &by_slack[..by_slack.len().div_ceil(10).max(50).min(by_slack.len())]
}

/// The residuals with the least slack, as many as give the shortest intervals: more of them are surer, but
/// the longer the transmitter was busy, the less is known of its times.
fn best(residuals: &[Residual], level: Level) -> Vec<Residual> {
    let by_slack = by_slack(residuals);
    let sure = ascending(surest(&by_slack));
    let quartile = |share| quantile(&sure, share).unwrap_or(0.0);
    // The deviation of a normal median, from the distance of its quartiles.
    let error = level.deviations() * 1.2533 * (quartile(0.75) - quartile(0.25)) / 1.349;
    let width = |count: &usize| by_slack[*count - 1].slack_ns + error / (*count as f64).sqrt();
    let count = (1..=by_slack.len()).min_by(|a, b| width(a).total_cmp(&width(b)));
    let most = count.map_or(f64::INFINITY, |count| by_slack[count - 1].slack_ns);
    residuals.iter().copied().filter(|residual| residual.slack_ns <= most).collect()
}

/// By how much times of sending may be too early, in ns: as much as the latest packet's delay is above the
/// median of the surest. Without noise and jitter that is 0. Whether a busy machine has stamped packets too
/// early, sent them too late, or the path delays them can't be distinguished.
pub fn noise_ns(paired: &Paired, transmitter: Transmitter) -> f64 {
    let residuals = residuals(paired, Some(transmitter));
    let by_slack = by_slack(&residuals);
    let sure = surest(&by_slack);
    let (Some(median), Some(least_sure)) = (quantile(&ascending(sure), 0.5), sure.last()) else { return 0.0 };
    let late = |residual: &Residual| residual.delay_ns - median - residual.slack_ns - least_sure.slack_ns;
    residuals.iter().map(late).fold(0.0, f64::max)
}

/// The residuals of packets without copies: the first of two copies is early.
fn residuals(paired: &Paired, transmitter: Option<Transmitter>) -> Vec<Residual> {
    let packets = &paired.packets;
    let plain = Transmitter { ns_per_bit: 0.0, error: 0.0, resolution_ns: paired.resolution_ns };
    let transmitter = transmitter.unwrap_or(plain);
    served(packets, transmitter.ns_per_bit)
        .filter(|service| packets[service.index].copy_ns.is_none())
        .map(|service| {
            let packet = &packets[service.index];
            Residual {
                delay_ns: packet.sent_ns + packet.delay_ns.unwrap_or_default() - service.finish_ns,
                slack_ns: transmitter.slack_ns(&service),
            }
        })
        .collect()
}

/// A constant delay, if most packets have the median, and none is later.
fn constant(residuals: &[Residual], level: Level) -> Option<DelayFinding> {
    let by_slack = by_slack(residuals);
    let sure = surest(&by_slack);
    let (median, median_slack) = (quantile(&ascending(sure), 0.5)?, sure.last()?.slack_ns);
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut early: Vec<Residual> = Vec::new();
    for residual in residuals {
        let (delay, slack) = (residual.delay_ns, residual.slack_ns);
        if delay > median + slack + median_slack {
            return None;
        }
        if delay < median - slack - median_slack {
            early.push(Residual { delay_ns: median - delay, slack_ns: slack + median_slack });
        } else {
            low = low.max(delay - slack);
            high = high.min(delay + slack);
        }
    }
    let regular = (residuals.len() - early.len()) as u64;
    if early.len() as u64 > regular || low > high {
        return None;
    }
    let delay_ns = Estimate { value: (low + high) / 2.0, low, high, samples: regular };
    let early = (!early.is_empty()).then(|| ahead(&early, residuals.len(), level));
    Some(DelayFinding::Constant { delay_ns, early })
}

/// The share of early packets, and by how much they are early.
fn ahead(early: &[Residual], all: usize, level: Level) -> Early {
    let samples = early.len() as u64;
    let share = Estimate::share(samples, all as u64, level);
    let low = early.iter().map(|one| one.delay_ns - one.slack_ns).fold(f64::NEG_INFINITY, f64::max);
    let high = early.iter().map(|one| one.delay_ns + one.slack_ns).fold(f64::INFINITY, f64::min);
    if low <= high {
        let by_ns = Estimate { value: (low + high) / 2.0, low, high, samples };
        return Early { share, by_ns, is_constant: true };
    }
    let by = ascending(early);
    let (first, last) = (by[0], by[by.len() - 1]);
    let (low, high) =
        quantile_ranks(by.len(), 0.5, level).map_or((first, last), |(low, high)| (by[low], by[high]));
    let value = quantile(&by, 0.5).unwrap_or(first);
    Early { share, by_ns: Estimate { value, low, high, samples }, is_constant: false }
}

fn distribution(
    paired: &Paired,
    residuals: &[Residual],
    reordered: u64,
    level: Level,
) -> Option<Distribution> {
    let sorted = &ascending(residuals)[..];
    let (mean, variance) = mean_and_variance(sorted.iter().copied());
    let correlation = correlation(residuals, mean, variance);
    // As many independent values as the mean of correlated ones is worth (of an autoregressive process).
    let is_certain = correlation > 2.0 / (residuals.len() as f64).sqrt();
    let kept = if is_certain { (1.0 - correlation) / (1.0 + correlation) } else { 1.0 };
    let independent = ((sorted.len() as f64 * kept) as usize).clamp(1, sorted.len());
    let stride = sorted.len() as f64 / independent as f64;
    let rounding = residuals.iter().map(|residual| residual.slack_ns).fold(0.0, f64::max);
    let at = |rank: usize| sorted[((rank as f64 + 0.5) * stride) as usize];
    let quantiles_ns = SHARES.map(|share| {
        let (low, high) = quantile_ranks(independent, share, level)?;
        let (low, high) = (at(low) - rounding, at(high) + rounding);
        Some(Estimate { value: quantile(sorted, share)?, low, high, samples: independent as u64 })
    });
    let points_ns = (0..POINTS).filter_map(|n| quantile(sorted, n as f64 / (POINTS - 1) as f64)).collect();
    let error = level.deviations() * (variance / independent as f64).sqrt() + rounding;
    Some(Distribution {
        least_ns: *sorted.first()?,
        quantiles_ns,
        mean_ns: Estimate { value: mean, low: mean - error, high: mean + error, samples: independent as u64 },
        points_ns,
        correlation,
        order: order(&paired.packets, sorted, reordered),
    })
}

/// Correlation of consecutive residuals.
fn correlation(residuals: &[Residual], mean: f64, variance: f64) -> f64 {
    let products = residuals.windows(2).map(|pair| (pair[0].delay_ns - mean) * (pair[1].delay_ns - mean));
    let (covariance, _) = mean_and_variance(products);
    if variance > 0.0 { (covariance / variance).clamp(-1.0, 1.0) } else { 0.0 }
}

fn order(packets: &[Packet], sorted: &[f64], reordered: u64) -> Order {
    if reordered > 0 {
        return Order::Changed;
    }
    let usual = quantile(sorted, 0.95).unwrap_or(0.0) - quantile(sorted, 0.05).unwrap_or(0.0);
    let close = packets.windows(2).filter(|pair| pair[1].sent_ns - pair[0].sent_ns < usual / 2.0).count();
    if close as f64 > CLOSE * packets.len() as f64 { Order::Kept } else { Order::Unknown }
}

/// Packets that arrived after one that was sent later (RFC 4737, section 3.3).
pub fn reordered(packets: &[Packet]) -> u64 {
    let mut arrivals: Vec<(f64, usize)> = packets
        .iter()
        .enumerate()
        .filter_map(|(index, packet)| Some((packet.sent_ns + packet.delay_ns?, index)))
        .collect();
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut latest = 0;
    let mut count = 0;
    for (_, index) in arrivals {
        count += u64::from(index < latest);
        latest = latest.max(index);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::Counts;
    use longwire_block::Dice;

    fn paired(delays: impl Iterator<Item = f64>, every_ns: f64) -> Paired {
        let packet = |(n, delay): (usize, f64)| Packet {
            sent_ns: n as f64 * every_ns,
            bits: 1000.0,
            delay_ns: Some(delay),
            copy_ns: None,
        };
        let packets = delays.enumerate().map(packet).collect();
        Paired { packets, resolution_ns: 1.0, counts: Counts::default() }
    }

    fn of(paired: &Paired) -> DelayFinding {
        delay(paired, None, reordered(&paired.packets), Level::DEFAULT).unwrap()
    }

    #[test]
    fn a_constant_is_exact() {
        let DelayFinding::Constant { delay_ns, early } = of(&paired((0..100).map(|_| 5e6), 1e6)) else {
            panic!()
        };
        assert!(delay_ns.value == 5e6 && delay_ns.high - delay_ns.low <= 4.0 && early.is_none());
    }

    #[test]
    fn early_packets_are_not_jitter() {
        let delays = (0..1000).map(|n| if n % 10 == 3 { 2e6 } else { 5e6 });
        let all = paired(delays, 1e6);
        let DelayFinding::Constant { delay_ns, early: Some(early) } = of(&all) else { panic!() };
        assert!(delay_ns.contains(5e6) && early.is_constant && early.by_ns.contains(3e6));
        assert!(early.share.contains(0.1) && early.share.value == 0.1);
        // Three milliseconds early: two are overtaken.
        assert_eq!(reordered(&all.packets), 200);
        let varied = paired((0..1000).map(|n| 5e6 - f64::from(n % 10 / 9 * (n / 10)) * 1e4), 1e6);
        let DelayFinding::Constant { early: Some(early), .. } = of(&varied) else { panic!() };
        assert!(!early.is_constant && early.by_ns.contains(5e5), "{early:?}");
    }

    /// Bursts through a transmitter, then jitter of 10 to 14 ms that changes no order: arrivals are sorted.
    /// Of the first packet of a burst most is known, and it is the earliest.
    #[test]
    fn packets_that_keep_their_order_have_the_mean_of_all() {
        let mut dice = Dice::named(1, "kept");
        let mut jitter = move || 1e7 + dice.draw() as f64 / 2f64.powi(64) * 4e6;
        let mut packets = Vec::new();
        for burst in 0..200 {
            let start = f64::from(burst) * 1e8;
            let mut arrivals: Vec<f64> = (1..=20).map(|n| start + f64::from(n) * 1e5 + jitter()).collect();
            arrivals.sort_by(f64::total_cmp);
            packets.extend(arrivals.into_iter().enumerate().map(|(n, arrival)| {
                let sent_ns = start + n as f64 * 5e4;
                Packet { sent_ns, bits: 1000.0, delay_ns: Some(arrival - sent_ns), copy_ns: None }
            }));
        }
        let paired = Paired { packets, resolution_ns: 1.0, counts: Counts::default() };
        let transmitter = Transmitter { ns_per_bit: 100.0, error: 0.02, resolution_ns: 1.0 };
        let found = delay(&paired, Some(transmitter), 0, Level::DEFAULT);
        let Some(DelayFinding::Varying(found)) = found else { panic!("{found:?}") };
        assert!(found.order == Order::Kept && found.mean_ns.contains(1.2e7), "{:?}", found.mean_ns);
    }

    #[test]
    fn a_distribution_has_its_quantiles() {
        let mut dice = Dice::named(1, "delay");
        let all: Vec<f64> = (0..5000).map(|_| 1e7 + dice.draw() as f64 / 2f64.powi(64) * 1e6).collect();
        for (every, order) in [(1e7, Order::Unknown), (1e5, Order::Changed)] {
            let DelayFinding::Varying(found) = of(&paired(all.iter().copied(), every)) else { panic!() };
            for (share, estimate) in SHARES.iter().zip(found.quantiles_ns) {
                let estimate = estimate.unwrap();
                let (low, high) = (estimate.low, estimate.high);
                assert!(high - low < 5e4 && (estimate.value - 1e7 - share * 1e6).abs() < 3e4, "{share}");
            }
            assert!(found.mean_ns.contains(1.05e7) && found.correlation.abs() < 0.05);
            assert_eq!((found.order, found.points_ns.len()), (order, POINTS));
            assert!(found.points_ns.is_sorted());
        }
        let rising = paired((0..1000).map(|n| 1e7 + f64::from(n) * 1e4), 1e5);
        let DelayFinding::Varying(found) = of(&rising) else { panic!() };
        assert!(found.order == Order::Kept && found.correlation > 0.9);
        // Nearly all the same: the ends have no interval.
        assert_eq!(found.quantiles_ns[0], None);
    }
}
