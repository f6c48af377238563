//! A line a second about a run in real time, where there is no terminal for the view.

use crate::instance::RunningInstance;
use crate::running_state::RunningState;
use longwire_engine::Report;
use longwire_link::LinkStats;
use longwire_report::shown;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two lines.
const PERIOD: Duration = Duration::from_secs(1);
/// Most links whose counters are queried: queries of more delay packets by a millisecond.
const MOST_ASKED: usize = 5000;

/// What the last line said.
#[derive(Debug)]
pub struct LiveLines {
    next: Instant,
    previous: Option<(Instant, Arc<Report>)>,
    /// With too many links to query: time and number of packets sent at the previous line.
    previous_flow: (Instant, u64),
}

impl LiveLines {
    /// The first line comes in a second.
    pub fn start() -> Self {
        let now = Instant::now();
        Self { next: now + PERIOD, previous: None, previous_flow: (now, 0) }
    }

    /// Time of the next line.
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// The next line, if it is time, and the run answers.
    pub fn refresh(&mut self, instance: &RunningInstance) -> Option<String> {
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        self.next = now + PERIOD;
        let state = instance.state();
        if state.plan.links.len() > MOST_ASKED {
            drop(state);
            return self.sums(instance, now);
        }
        // A run that does not answer is about to end, and reports why.
        let report = instance.count(&state).ok()?;
        let line = Frame::new((instance, &state), &report, self.previous.as_ref(), now).line();
        self.previous = Some((now, report));
        Some(line)
    }

    /// A line with sums only.
    fn sums(&mut self, instance: &RunningInstance, now: Instant) -> Option<String> {
        let flow = instance.flow().ok()?;
        let (at, before) = std::mem::replace(&mut self.previous_flow, (now, flow.sent));
        let packets = flow.sent.saturating_sub(before) as f64 / (now - at).as_secs_f64().max(1e-3);
        let seconds = instance.elapsed().0 as f64 / 1e9;
        let (taken, sent) = (shown::count(flow.taken), shown::count(flow.sent));
        Some(format!("{seconds:>5.0} s  {packets:.0} packets/s; {taken} in, {sent} out"))
    }
}

/// The state of a run, with changes since the previous line.
struct Frame<'a> {
    plan: &'a Plan,
    report: &'a Report,
    before: Option<&'a Report>,
    /// Seconds since the previous line.
    seconds: f64,
    elapsed: Nanos,
}

impl<'a> Frame<'a> {
    fn new(
        (instance, state): (&RunningInstance, &'a RunningState),
        report: &'a Report,
        previous: Option<&'a (Instant, Arc<Report>)>,
        now: Instant,
    ) -> Self {
        let elapsed = instance.elapsed();
        let seconds = previous.map_or(elapsed.0 as f64 / 1e9, |(at, _)| (now - *at).as_secs_f64());
        let before = previous.map(|(_, report)| &**report);
        Self { plan: &state.plan, report, before, seconds: seconds.max(1e-3), elapsed }
    }

    /// Packets and bits per second that ports sent since the previous line.
    fn totals(&self) -> (f64, f64) {
        let sums = |report: &Report| {
            // Packets between nodes have not left.
            let outer = report.ports.iter().filter(|port| !self.is_inner(port.place));
            let stats = outer.map(|port| &port.stats);
            stats.fold((0, 0), |(frames, bytes), s| (frames + s.out_frames, bytes + s.out_bytes))
        };
        let (frames, bytes) = sums(self.report);
        let (old_frames, old_bytes) = self.before.map_or((0, 0), sums);
        let per_second = |new: u64, old: u64| new.saturating_sub(old) as f64 / self.seconds;
        (per_second(frames, old_frames), per_second(bytes, old_bytes) * 8.0)
    }

    fn is_inner(&self, place: u16) -> bool {
        // A port of the report before may be gone.
        let port = self.plan.ports.get(usize::from(place));
        port.is_some_and(|port| port.attachment.far().is_some())
    }

    fn dropped(&self) -> u64 {
        let outside: u64 = self.report.flow.drops.iter().map(|(_, packets)| packets).sum();
        outside + self.report.all_links().map(LinkStats::dropped).sum::<u64>()
    }

    fn held(&self) -> u64 {
        let stats = self.report.all_links();
        let kept = self.report.flow.kept;
        kept + stats.map(|stats| stats.queued_packets + stats.travelling_packets).sum::<u64>()
    }

    fn line(&self) -> String {
        let (packets, bits) = self.totals();
        let faithful = self.report.fidelity.as_ref().is_none_or(|fidelity| fidelity.faithful);
        format!(
            "{:>5.0} s  {packets:>9.0} packets/s  {:>12}  {} held, {} dropped  {}{}",
            self.elapsed.0 as f64 / 1e9,
            shown::rate(bits),
            shown::count(self.held()),
            shown::count(self.dropped()),
            match (faithful, self.report.window.as_ref().map(|window| window.last.fidelity.faithful)) {
                (true, _) => "faithful",
                (false, Some(true)) => "faithful lately",
                (false, _) => "NOT faithful",
            },
            self.faults().map(|fault| format!("  {fault}")).collect::<String>(),
        )
    }

    fn faults(&self) -> impl Iterator<Item = &str> {
        self.report.ports.iter().filter_map(|port| port.fault.as_deref())
    }
}
