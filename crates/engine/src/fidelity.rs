//! Fidelity of a run: how late packets left, and why.

use crate::own_losses::OwnLosses;
use crate::pause::Pause;
use longwire_block::Underlay;
use longwire_units::{LogHistogram, Nanos, buckets, counted};
use std::sync::Arc;

/// Required fidelity: the share of packets that must leave within a tolerance of their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance {
    /// Largest lateness of a packet that is on time.
    pub within: Nanos,
    /// Required share of packets on time, in millionths.
    pub share_ppm: u32,
    /// Departures happen at multiples of this from the start of the run; at any time if it is zero.
    pub tick: Nanos,
}

impl Default for Tolerance {
    /// 99 % within 100 µs.
    fn default() -> Self {
        Self { within: Nanos::from_micros(100), share_ppm: 990_000, tick: Nanos::ZERO }
    }
}

/// A worker's histogram, with buckets of a thirty-second of their value: a change of a tenth is seen.
type FineHistogram = LogHistogram<{ buckets(5) }>;

/// Number of pauses that are remembered: packets that should have left in one leave right after it.
const LATELY: usize = 4;

/// Packets that should have left by this much before a pause are late because of it too: the step that it
/// interrupted would have sent them.
const INTERRUPTED: Nanos = Nanos::from_micros(100);

/// Lateness records of one worker.
#[derive(Debug, Clone, Default)]
pub struct Lateness {
    /// Packets whose departure time was outside every pause.
    own: FineHistogram,
    /// Packets whose departure time was in a pause.
    excused: FineHistogram,
    /// Possible waiting time of polled frames before the poll.
    waited: FineHistogram,
    pauses: u64,
    /// Pauses in which other programs held the processor.
    preemptions: u64,
    paused: Nanos,
    longest_pause: Nanos,
    /// The longest pause since the last sample; in a sample, since the one before.
    pub(crate) longest_lately: Nanos,
    pause_end: Nanos,
    /// Begin and end of the last pauses.
    lately: [(Nanos, Nanos); LATELY],
}

impl Lateness {
    /// Records a packet that should have left at `leave` and left at `now`; returns its lateness.
    #[inline]
    pub fn record(&mut self, leave: Nanos, now: Nanos) -> Nanos {
        let late = now.since(leave);
        if leave > self.pause_end {
            self.own.record(late);
        } else {
            self.record_before_pause_end(leave, late);
        }
        late
    }

    /// Records a packet that should have left before the end of the last pause, in one or before it.
    #[cold]
    #[inline(never)]
    fn record_before_pause_end(&mut self, leave: Nanos, late: Nanos) {
        let excuses = |(begin, end): &(Nanos, Nanos)| begin.since(INTERRUPTED) <= leave && leave <= *end;
        let is_excused = self.lately.iter().any(excuses);
        if is_excused { &mut self.excused } else { &mut self.own }.record(late);
    }

    /// Records that `frames` frames stamped by polling, at least one, may have waited for `gap`.
    #[inline]
    pub fn record_wait(&mut self, gap: Nanos, frames: u64) {
        self.waited.record_all(gap, frames);
    }

    /// Records a pause of the worker; packets that should have left in it are counted separately.
    pub(crate) fn record_pause(&mut self, pause: Pause) {
        self.lately[self.pauses as usize % LATELY] = (pause.end.since(pause.length), pause.end);
        self.pauses += 1;
        self.preemptions += u64::from(pause.is_preemption);
        self.paused += pause.length;
        self.longest_pause = self.longest_pause.max(pause.length);
        self.longest_lately = self.longest_lately.max(pause.length);
        self.pause_end = pause.end;
    }

    /// Summary of the records so far.
    pub fn summary(&self, tolerance: Tolerance) -> LatenessSummary {
        let mut all = self.own.clone();
        all.merge(&self.excused);
        LatenessSummary {
            packets: all.total(),
            late: all.above(tolerance.within),
            late_without_pauses: self.own.above(tolerance.within),
            waited_too_long: self.waited.above(tolerance.within),
            all: Quantiles::of(&all),
            without_pauses: Quantiles::of(&self.own),
            poll_wait: Quantiles::of(&self.waited),
            pauses: self.pauses,
            preemptions: self.preemptions,
            paused: self.paused,
            longest_pause: self.longest_pause,
        }
    }

    /// Adds another worker's records, for the overall verdict.
    pub fn merge(&mut self, other: &Self) {
        self.own.merge(&other.own);
        self.excused.merge(&other.excused);
        self.waited.merge(&other.waited);
        self.pauses += other.pauses;
        self.preemptions += other.preemptions;
        self.paused += other.paused;
        self.longest_pause = self.longest_pause.max(other.longest_pause);
        self.longest_lately = self.longest_lately.max(other.longest_lately);
    }

    /// Copies the records into `sample` without allocating; the longest pause between samples begins anew.
    pub(crate) fn sample(&mut self, sample: &mut Self) {
        let Self { own, excused, waited, .. } = sample;
        own.copy_from(&self.own);
        excused.copy_from(&self.excused);
        waited.copy_from(&self.waited);
        (sample.pauses, sample.preemptions, sample.paused) = (self.pauses, self.preemptions, self.paused);
        sample.longest_pause = self.longest_pause;
        sample.longest_lately = std::mem::take(&mut self.longest_lately);
    }

    /// What was recorded since an earlier sample. `longest_pause` is the longest in between.
    pub(crate) fn since(&self, earlier: &Self, longest_pause: Nanos) -> Self {
        Self {
            own: self.own.since(&earlier.own),
            excused: self.excused.since(&earlier.excused),
            waited: self.waited.since(&earlier.waited),
            pauses: self.pauses - earlier.pauses,
            preemptions: self.preemptions - earlier.preemptions,
            paused: self.paused.since(earlier.paused),
            longest_pause,
            longest_lately: longest_pause,
            ..Self::default()
        }
    }
}

/// Points of a distribution of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quantiles {
    /// The median.
    pub p50: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
    /// 99.9th percentile.
    pub p999: Nanos,
    /// The largest.
    pub max: Nanos,
}

impl Quantiles {
    pub(crate) fn of<const BUCKETS: usize>(histogram: &LogHistogram<BUCKETS>) -> Self {
        Self {
            p50: histogram.quantile(0.5),
            p99: histogram.quantile(0.99),
            p999: histogram.quantile(0.999),
            max: histogram.max(),
        }
    }
}

/// Lateness of packets, and its causes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LatenessSummary {
    /// Packets that left.
    pub packets: u64,
    /// Packets later than tolerated.
    pub late: u64,
    /// Of these, packets that no pause excuses.
    pub late_without_pauses: u64,
    /// Frames whose stamp may be off by more than the tolerance, because of the gap between polls.
    pub waited_too_long: u64,
    /// Lateness of all packets.
    pub all: Quantiles,
    /// Lateness of packets whose time fell outside every pause.
    pub without_pauses: Quantiles,
    /// Possible waiting time of polled frames before their stamp.
    pub poll_wait: Quantiles,
    /// Pauses of workers.
    pub pauses: u64,
    /// Of these, pauses in which other programs had the processor; in the rest the machine itself was
    /// stopped.
    pub preemptions: u64,
    /// Time spent in them.
    pub paused: Nanos,
    /// The longest.
    pub longest_pause: Nanos,
}

/// Fidelity verdict of a run, with causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fidelity {
    /// Whether the run is faithful.
    pub faithful: bool,
    /// Why not; the most important cause first.
    pub causes: Vec<String>,
    /// The first cause in a few words: `CPU busy (3 % of packets > 100 us late)`.
    pub brief: Option<String>,
    /// The underlying numbers.
    pub lateness: LatenessSummary,
    /// Tunnels and the networks under them.
    pub tunnels: Vec<TunnelRecord>,
}

/// A tunnel's part in the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunnelRecord {
    /// The port's name.
    pub name: Arc<str>,
    /// Packets that it brought after they should have left here, by more than is tolerated.
    pub overdue: u64,
    /// Messages that the network under it lost.
    pub lost: u64,
    /// How often a clock at one of its ends was set or stood still.
    pub clock_jumps: u64,
    /// The largest possible error of the times of its packets; none without a peer.
    pub clock_error: Option<Nanos>,
}

impl TunnelRecord {
    /// The record of the tunnel `name`.
    pub fn of(name: Arc<str>, underlay: &Underlay) -> Self {
        let &Underlay { overdue, lost, clock_jumps, clock_error, .. } = underlay;
        Self { name, overdue, lost, clock_jumps, clock_error }
    }

    /// Adds records to others, those of a name together: a tunnel that was removed may be there again.
    pub(crate) fn merge(all: &mut Vec<Self>, more: &[Self]) {
        for one in more {
            match all.iter_mut().find(|known| known.name == one.name) {
                Some(known) => {
                    known.overdue += one.overdue;
                    known.lost += one.lost;
                    known.clock_jumps += one.clock_jumps;
                    known.clock_error = known.clock_error.or(one.clock_error);
                }
                None => all.push(one.clone()),
            }
        }
    }

    /// What is left of it once its port is removed; none if it was faithful.
    pub(crate) fn removed(self) -> Option<Self> {
        let is_faithful = self.overdue == 0 && self.lost == 0 && self.clock_jumps == 0;
        (!is_faithful).then_some(Self { clock_error: None, ..self })
    }

    /// Its part in the time since earlier records.
    pub(crate) fn since(&self, earlier: &[Self]) -> Self {
        let Some(before) = earlier.iter().find(|tunnel| tunnel.name == self.name) else {
            return self.clone();
        };
        Self {
            overdue: self.overdue.saturating_sub(before.overdue),
            lost: self.lost.saturating_sub(before.lost),
            clock_jumps: self.clock_jumps.saturating_sub(before.clock_jumps),
            ..self.clone()
        }
    }

    /// The cause that it brought packets too late, if it did.
    fn late_cause(&self, summary: &LatenessSummary, within: Nanos) -> Option<Cause> {
        let Self { name, overdue, .. } = self;
        let share = percent(*overdue, summary.packets);
        let brief = format!("network under {name} slow ({share:.1} % of packets > {within} late)");
        let cause = format!(
            "the tunnel {name}: {share:.1} % of packets ({overdue} of {}) came later than they were due, by \
             more than {within}: the network under it takes longer than the links behind it delay; let these \
             delay more, or take a faster network",
            summary.packets
        );
        (*overdue > 0).then_some((brief, cause))
    }

    /// Causes besides late packets.
    fn other_causes(&self, within: Nanos) -> impl Iterator<Item = Cause> + use<> {
        let Self { name, lost, .. } = self;
        let lost = Some(*lost).filter(|lost| *lost > 0).map(|lost| {
            let what = format!("{} lost by the network under the tunnel {name}", counted(lost, "packet"));
            (format!("network under {name} lossy ({} lost)", counted(lost, "packet")), what)
        });
        let clock = self.clock_error.filter(|error| *error > within).map(|error| {
            let what = format!(
                "the tunnel {name}: the clock of its peer is known to {error} only, more than {within}: the \
                 network under it takes too long, or too irregularly long"
            );
            (format!("clock of {name} uncertain ({error})"), what)
        });
        let jumps = Some(self.clock_jumps).filter(|jumps| *jumps > 0).map(|jumps| {
            let what = format!(
                "the tunnel {name}: a clock at one of its ends jumped ({}), and times of packets were wrong \
                 until that was noticed: don't suspend machines while they carry packets",
                counted(jumps, "time")
            );
            (format!("clock of {name} jumped"), what)
        });
        lost.into_iter().chain(clock).chain(jumps)
    }
}

/// A copy of what one worker, or all of them, recorded since the start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub lateness: Lateness,
    pub losses: OwnLosses,
    pub tunnels: Vec<TunnelRecord>,
}

/// The verdict on one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedWindow {
    /// Start of the window, from the start of the run.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// The verdict on it.
    pub fidelity: Fidelity,
}

/// Verdicts on the windows of a run so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowVerdicts {
    /// The length of a window.
    pub length: Nanos,
    /// Windows in which something happened. A window ends every tenth of its length.
    pub judged: u64,
    /// Of these, faithful windows.
    pub faithful: u64,
    /// The last window.
    pub last: Arc<JudgedWindow>,
    /// The window with the largest share of packets late or lost, if there was any such packet.
    pub worst: Option<Arc<JudgedWindow>>,
}

impl Fidelity {
    /// The verdict on the records.
    pub fn judge(
        lateness: &Lateness,
        losses: OwnLosses,
        tunnels: Vec<TunnelRecord>,
        tolerance: Tolerance,
    ) -> Self {
        let summary = lateness.summary(tolerance);
        let mut causes = losses.causes();
        let Tolerance { within, .. } = tolerance;
        if summary.late > tolerance.allowed(summary.packets) {
            let overdue = tunnels.iter().map(|tunnel| tunnel.overdue).sum();
            causes.extend(late_cause(&summary, overdue, tolerance));
            causes.extend(tunnels.iter().filter_map(|tunnel| tunnel.late_cause(&summary, within)));
        }
        let waited = lateness.waited.total();
        if summary.waited_too_long > tolerance.allowed(waited) {
            let share = percent(summary.waited_too_long, waited);
            causes.push((
                format!("input stalled ({share:.1} % of frames waited > {within})"),
                format!(
                    "{} of {waited} frames may have waited more than {within} before they were read: the \
                     input stalled",
                    summary.waited_too_long
                ),
            ));
        }
        causes.extend(tunnels.iter().flat_map(|tunnel| tunnel.other_causes(within)));
        let brief = causes.first().map(|(brief, _)| brief.clone());
        let causes: Vec<String> = causes.into_iter().map(|(_, cause)| cause).collect();
        Self { faithful: causes.is_empty(), causes, brief, lateness: summary, tunnels }
    }
}

/// A cause of a verdict, in a brief and a full wording.
type Cause = (String, String);

impl Tolerance {
    /// How many of so many packets may be late.
    fn allowed(&self, packets: u64) -> u64 {
        (u128::from(packets) * u128::from(1_000_000 - self.share_ppm) / 1_000_000) as u64
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Why packets left late, apart from those that tunnels brought too late; none if few are left then.
fn late_cause(summary: &LatenessSummary, overdue: u64, tolerance: Tolerance) -> Option<Cause> {
    let Tolerance { within, tick, .. } = tolerance;
    let allowed = tolerance.allowed(summary.packets);
    if summary.late.saturating_sub(overdue) <= allowed && overdue > 0 {
        return None;
    }
    let own = summary.late_without_pauses.saturating_sub(overdue);
    let (brief, named) = if tick > within {
        let named = "make engine.tick shorter, or fidelity.within longer";
        ("ticks too far apart", format!("they leave at ticks of {tick} only: {named}"))
    } else if own > allowed {
        let named = "the worker is overloaded; lower the load or add workers";
        ("CPU busy", format!("{own} of them outside every pause: {named}"))
    } else {
        let named = format!(
            "the machine paused {}, {} at the longest ({} other programs had the processor): give Longwire \
             processors of its own",
            counted(summary.pauses, "time"),
            summary.longest_pause,
            counted(summary.preemptions, "time")
        );
        (if summary.preemptions > 0 { "CPU busy" } else { "machine paused" }, named)
    };
    let share = percent(summary.late, summary.packets);
    Some((
        format!("{brief} ({share:.1} % of packets > {within} late)"),
        format!(
            "{} of {} left more than {within} late; {named}",
            summary.late,
            counted(summary.packets, "packet")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lateness(late: &[(u64, u64)]) -> Lateness {
        let mut book = Lateness::default();
        for &(micros, packets) in late {
            (0..packets).for_each(|_| {
                book.record(Nanos(1), Nanos(1 + micros * 1000));
            });
        }
        book
    }

    /// The verdict without tunnels.
    fn judge_alone(lateness: &Lateness, losses: OwnLosses) -> Fidelity {
        Fidelity::judge(lateness, losses, Vec::new(), Tolerance::default())
    }

    fn tunnel(overdue: u64, lost: u64, clock_error: u64) -> TunnelRecord {
        let clock_error = Some(Nanos::from_micros(clock_error));
        TunnelRecord { name: "far".into(), overdue, lost, clock_jumps: 0, clock_error }
    }

    #[test]
    fn one_in_a_hundred_may_be_late_but_not_more() {
        let judge = |late: &[_]| judge_alone(&lateness(late), OwnLosses::default());
        assert!(judge(&[(1, 990), (500, 10)]).faithful);
        let verdict = judge(&[(1, 989), (500, 11)]);
        assert!(!verdict.faithful && verdict.causes[0].contains("overloaded"), "{verdict:?}");
        assert_eq!(verdict.brief.as_deref(), Some("CPU busy (1.1 % of packets > 100 us late)"));
        assert!(judge(&[]).faithful);
    }

    #[test]
    fn a_drop_by_pool_or_port_is_never_faithful() {
        let losses = OwnLosses { pool: 1, ..OwnLosses::default() };
        let verdict = judge_alone(&lateness(&[(1, 1000)]), losses);
        assert!(!verdict.faithful && verdict.causes[0].contains("engine.pool"));
    }

    #[test]
    fn a_port_that_was_down_or_too_narrow_is_named() {
        for (losses, wanted) in [
            (OwnLosses { down: 2, ..OwnLosses::default() }, "2 packets dropped because the interface"),
            (OwnLosses { oversize: 3, ..OwnLosses::default() }, "3 packets dropped because they were longer"),
        ] {
            let verdict = judge_alone(&lateness(&[(1, 1000)]), losses);
            assert!(!verdict.faithful && verdict.causes[0].starts_with(wanted), "{verdict:?}");
        }
    }

    #[test]
    fn pauses_count_and_are_named() {
        let mut book = lateness(&[(1, 900)]);
        let pause = Pause { length: Nanos(8_000_000), end: Nanos(9_000_000), is_preemption: false };
        book.record_pause(pause);
        (0..100).for_each(|_| {
            book.record(Nanos(2_000_000), Nanos(9_000_000));
        });
        let verdict = judge_alone(&book, OwnLosses::default());
        assert!(!verdict.faithful && verdict.causes[0].contains("paused 1 time, 8 ms"), "{verdict:?}");
        assert_eq!(verdict.lateness.late_without_pauses, 0);
    }

    /// A worker that is 50 ms behind is interrupted for 60 µs, which makes what is due before no less late.
    #[test]
    fn a_pause_excuses_only_what_was_due_in_it() {
        let mut book = Lateness::default();
        let pause = |end| Pause { length: Nanos(60_000), end: Nanos(end), is_preemption: true };
        book.record_pause(pause(1_000_000_000));
        let mut late = |leave| {
            book.record(Nanos(leave), Nanos(1_002_000_000));
            book.summary(Tolerance::default()).late_without_pauses
        };
        assert_eq!(late(950_000_000), 1, "before the pause");
        assert_eq!(late(1_000_000_000 - 30_000), 1, "in the pause");
        assert_eq!(late(1_000_000_000 - 130_000), 1, "in the step that was interrupted");
        assert_eq!(late(1_001_000_000), 2, "after it");
        book.record_pause(pause(1_002_000_000));
        book.record(Nanos(1_000_000_000), Nanos(1_002_000_000));
        book.record(Nanos(1_001_000_000), Nanos(1_002_000_000));
        assert_eq!(book.summary(Tolerance::default()).late_without_pauses, 3, "between two pauses");
    }

    #[test]
    fn a_stalled_input_is_not_faithful() {
        let mut book = lateness(&[(1, 100)]);
        book.record_wait(Nanos::from_millis(1), 100);
        assert!(!judge_alone(&book, OwnLosses::default()).faithful);
    }

    #[test]
    fn a_network_under_a_tunnel_is_named() {
        let judge = |late: &[_], tunnel| {
            Fidelity::judge(&lateness(late), OwnLosses::default(), vec![tunnel], Tolerance::default())
        };
        assert!(judge(&[(1, 990), (500, 10)], tunnel(10, 0, 90)).faithful, "one in a hundred may be late");
        let verdict = judge(&[(1, 970), (500, 30)], tunnel(25, 0, 90));
        assert_eq!(verdict.causes.len(), 1, "the other five are few enough: {verdict:?}");
        let wanted = "the tunnel far: 2.5 % of packets (25 of 1000) came later than they were due";
        assert!(verdict.causes[0].starts_with(wanted), "{verdict:?}");
        let brief = "network under far slow (2.5 % of packets > 100 us late)";
        assert_eq!(verdict.brief.as_deref(), Some(brief));
        let verdict = judge(&[(1, 970), (500, 30)], tunnel(15, 0, 90));
        let has = |what: &str| verdict.causes.iter().any(|cause| cause.contains(what));
        assert!(has("overloaded") && has("the tunnel far: 1.5 %"), "both have their part: {verdict:?}");
        let verdict = judge(&[(1, 1000)], tunnel(0, 3, 101));
        assert!(verdict.causes[0].starts_with("3 packets lost by the network under the tunnel far"));
        assert!(verdict.causes[1].contains("the clock of its peer is known to 101 us only"), "{verdict:?}");
        assert_eq!(tunnel(5, 4, 9).since(&[tunnel(3, 4, 7)]), tunnel(2, 0, 9));
        let jumped = TunnelRecord { clock_jumps: 2, ..tunnel(0, 0, 90) };
        let verdict = judge(&[(1, 1000)], jumped.clone());
        assert_eq!(verdict.brief.as_deref(), Some("clock of far jumped"));
        assert!(verdict.causes[0].contains("jumped (2 times)"), "{verdict:?}");
        assert_eq!(jumped.since(std::slice::from_ref(&jumped)), tunnel(0, 0, 90));
    }
}
