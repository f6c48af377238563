//! The loss process: independent losses, or bursts of Gilbert's channel.

use crate::estimate::Estimate;
use crate::pairing::Packet;
use crate::statistics::{Fourfold, Level, wilson};

/// A model is rejected if chance alone would make such data with less than this probability.
const REJECTED: f64 = 0.01;

/// Losses other than at a full queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossFinding {
    /// Packets whose loss or arrival says something.
    pub trials: u64,
    /// Those that were lost.
    pub lost: u64,
    /// The share lost. Where losses come in bursts its interval allows for that.
    pub share: Estimate,
    /// How they are distributed.
    pub process: Process,
    /// Number of runs of consecutive losses, and packets in the longest.
    pub runs: (u64, u64),
}

/// How losses are distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Process {
    /// Nothing was lost.
    None,
    /// Each packet with the same probability.
    Independent,
    /// After a loss the next one is likelier: Gilbert's channel, which loses all packets in its bad state.
    Bursts {
        /// Probability of the bad state after a packet that arrived.
        p: Estimate,
        /// Probability of the good state after a packet that was lost: mean bursts have 1/r packets.
        r: Estimate,
        /// Whether more than the previous packet matters, so that this model does not fit either.
        is_rejected: bool,
    },
}

/// Finds the loss process. `may_be_full` has the packets whose fate a full queue may have decided.
///
/// The first packet and the last arrived by selection; they are no trials, but the last one may end a burst.
pub fn loss(packets: &[Packet], may_be_full: &[bool], level: Level) -> LossFinding {
    let inner = 1..packets.len().saturating_sub(1);
    let fate = |index: usize| (!may_be_full[index]).then_some(packets[index].delay_ns.is_none());
    let trials = inner.clone().filter_map(fate).count() as u64;
    let lost = inner.filter_map(fate).filter(|lost| *lost).count() as u64;
    let mut table = Transitions::default();
    let end = packets.len().saturating_sub(1);
    for index in 1..packets.len() {
        let before = |steps: usize| index.checked_sub(steps).and_then(fate);
        // That the last packet arrived says nothing about losses, but it ends a burst.
        if index == end && before(1) != Some(true) {
            continue;
        }
        if let (Some(last), Some(lost)) = (before(1), fate(index)) {
            table.count(before(2), last, lost);
        }
    }
    let process = match lost {
        0 => Process::None,
        _ if table.after_loss().by_chance() >= REJECTED => Process::Independent,
        _ => table.bursts(level),
    };
    let effective = match process {
        // The variance of a mean of a two-state chain is (1 + λ)/(1 − λ) times that of independent trials.
        Process::Bursts { p, r, .. } => {
            let lambda = (1.0 - p.value - r.value).clamp(0.0, 0.999_999);
            trials as f64 * (1.0 - lambda) / (1.0 + lambda)
        }
        _ => trials as f64,
    };
    let value = if trials > 0 { lost as f64 / trials as f64 } else { 0.0 };
    let (low, high) = wilson(value * effective, effective, level);
    let share = Estimate { value, low, high, samples: trials };
    LossFinding { trials, lost, share, process, runs: runs(packets, may_be_full) }
}

/// Numbers of packets, by the fates of the two before and their own.
#[derive(Debug, Clone, Copy, Default)]
struct Transitions {
    /// After an arrival and after a loss: lost, and arrived.
    by_last: [(u64, u64); 2],
    /// By the last, and the one before it.
    by_two: [[(u64, u64); 2]; 2],
}

impl Transitions {
    fn count(&mut self, before: Option<bool>, last: bool, lost: bool) {
        let add = |(hits, misses): &mut (u64, u64)| if lost { *hits += 1 } else { *misses += 1 };
        add(&mut self.by_last[usize::from(last)]);
        if let Some(before) = before {
            add(&mut self.by_two[usize::from(last)][usize::from(before)]);
        }
    }

    /// Losses after a loss, beside those after an arrival.
    fn after_loss(&self) -> Fourfold {
        Fourfold { first: self.by_last[1], second: self.by_last[0] }
    }

    fn bursts(&self, level: Level) -> Process {
        let share = |hits: u64, misses: u64| Estimate::share(hits, hits + misses, level);
        let [(began, stayed_good), (stayed_bad, ended)] = self.by_last;
        // How long bursts are is not known if none was seen to end: each met a full queue. A channel that
        // never leaves its bad state would lose everything.
        if ended == 0 {
            return Process::Independent;
        }
        // In each state, both ways: four tests.
        let is_rejected = self.by_two.iter().any(|[after_arrival, after_loss]| {
            let more = Fourfold { first: *after_loss, second: *after_arrival };
            let less = Fourfold { first: *after_arrival, second: *after_loss };
            more.by_chance().min(less.by_chance()) < REJECTED / 4.0
        });
        Process::Bursts { p: share(began, stayed_good), r: share(ended, stayed_bad), is_rejected }
    }
}

/// Number of runs of losses, and the longest. A packet at a full queue ends a run.
fn runs(packets: &[Packet], may_be_full: &[bool]) -> (u64, u64) {
    let (mut count, mut longest, mut run) = (0, 0, 0);
    for (packet, full) in packets.iter().zip(may_be_full) {
        run = if packet.delay_ns.is_none() && !full { run + 1 } else { 0 };
        count += u64::from(run == 1);
        longest = longest.max(run);
    }
    (count, longest)
}

/// Packets that arrived more than once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyFinding {
    /// Their share of those that arrived.
    pub share: Estimate,
    /// How many there were.
    pub copied: u64,
    /// How much later copies came, in ns, if all did by the same time; the interval is certain.
    pub later_ns: Option<Estimate>,
}

/// Finds the share of duplicated packets.
pub fn copies(packets: &[Packet], resolution_ns: f64, level: Level) -> CopyFinding {
    let arrived = packets.iter().filter(|packet| packet.delay_ns.is_some()).count() as u64;
    let later: Vec<f64> = packets.iter().filter_map(|packet| packet.copy_ns).collect();
    let copied = later.len() as u64;
    let share = Estimate::share(copied, arrived, level);
    let low = later.iter().fold(f64::NEG_INFINITY, |most, time| most.max(time - resolution_ns)).max(0.0);
    let high = later.iter().fold(f64::INFINITY, |least, time| least.min(time + resolution_ns));
    let middle = Estimate { value: (low + high) / 2.0, low, high, samples: copied };
    CopyFinding { share, copied, later_ns: (copied > 0 && low <= high).then_some(middle) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Dice;

    fn packets(fates: impl Iterator<Item = bool>) -> Vec<Packet> {
        let packet = |lost: bool| Packet {
            sent_ns: 0.0,
            bits: 512.0,
            delay_ns: (!lost).then_some(1.0),
            copy_ns: None,
        };
        // The first and the last arrive.
        let inner = fates.map(packet);
        [packet(false)].into_iter().chain(inner).chain([packet(false)]).collect()
    }

    fn of(packets: &[Packet]) -> LossFinding {
        loss(packets, &vec![false; packets.len()], Level::DEFAULT)
    }

    #[test]
    fn counts_by_hand() {
        let fates = [false, true, true, false, true, false];
        let found = of(&packets(fates.into_iter()));
        assert_eq!((found.trials, found.lost, found.runs), (6, 3, (2, 2)));
        assert_eq!(found.process, Process::Independent);
        assert!(found.share.value == 0.5 && found.share.contains(0.2) && !found.share.contains(0.99));
        let none = of(&packets([false; 9].into_iter()));
        assert_eq!((none.process, none.runs, none.share.low), (Process::None, (0, 0), 0.0));
        assert!(none.share.high > 0.2);
        // What a full queue may have lost is left out.
        let all = packets(fates.into_iter());
        let full: Vec<bool> = (0..all.len()).map(|index| index == 3).collect();
        let found = loss(&all, &full, Level::DEFAULT);
        assert_eq!((found.trials, found.lost, found.runs), (5, 2, (2, 1)));
    }

    #[test]
    fn bursts_are_recognised() {
        let mut dice = Dice::named(3, "loss");
        let mut happens = |share: f64| (dice.draw() as f64) < share * 2f64.powi(64);
        let independent = of(&packets((0..20_000).map(|_| happens(0.02)).collect::<Vec<_>>().into_iter()));
        assert_eq!(independent.process, Process::Independent);
        let mut bad = false;
        let fates: Vec<bool> = (0..20_000)
            .map(|_| {
                bad ^= happens(if bad { 0.3 } else { 0.01 });
                bad
            })
            .collect();
        let found = of(&packets(fates.into_iter()));
        let Process::Bursts { p, r, is_rejected } = found.process else { panic!("{found:?}") };
        assert!((p.value - 0.01).abs() < 0.003 && (r.value - 0.3).abs() < 0.06 && !is_rejected, "{found:?}");
        // Bursts of exactly ten: only a longer memory would show that they are no channel of two states.
        let regular = of(&packets((0..20_000).map(|n| n % 500 < 10)));
        assert!(matches!(regular.process, Process::Bursts { is_rejected: false, .. }), "{regular:?}");
        // Losses in pairs: after one of them the next is lost, after two it is not.
        let pairs = of(&packets((0..20_000).map(|n| n % 50 < 2)));
        assert!(matches!(pairs.process, Process::Bursts { is_rejected: true, .. }), "{pairs:?}");
    }

    #[test]
    fn a_burst_before_the_last_packet_ends() {
        let all = packets((1..999).map(|n| n >= 980));
        let found = of(&all);
        let Process::Bursts { p, r, .. } = found.process else { panic!("{found:?}") };
        assert_eq!((found.trials, found.lost, found.runs), (998, 19, (1, 19)));
        assert_eq!((p.samples, r.samples), (980, 19));
        assert!((r.value - 1.0 / 19.0).abs() < 1e-9, "{found:?}");
        // If that packet may have met a full queue, the end of the burst was not seen.
        let full: Vec<bool> = (0..all.len()).map(|index| index == 999).collect();
        let found = loss(&all, &full, Level::DEFAULT);
        assert_eq!((found.lost, found.process), (19, Process::Independent));
    }

    #[test]
    fn copies_are_counted() {
        let mut all = packets([false; 98].into_iter());
        assert_eq!(copies(&all, 1.0, Level::DEFAULT).later_ns, None);
        all[4].copy_ns = Some(5000.0);
        all[7].copy_ns = Some(5001.0);
        let found = copies(&all, 1.0, Level::DEFAULT);
        assert!(found.share.value == 0.02 && found.later_ns.unwrap().contains(5000.0), "{found:?}");
        all[9].copy_ns = Some(7000.0);
        let found = copies(&all, 1.0, Level::DEFAULT);
        assert_eq!((found.copied, found.later_ns), (3, None));
    }
}
