//! A line a second about a run in real time, where there is no terminal for the view.

use crate::instance::RunningInstance;
use longwire_engine::Report;
use longwire_link::LinkStats;
use longwire_report::shown;
use longwire_scenario::Plan;
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
        let previous = self.previous.as_ref().map(|(at, report)| ((now - *at).as_secs_f64(), &**report));
        let line = line((instance, &state.plan), &report, previous);
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

/// A line with the counters of a run, and with rates since the `previous` line, so many seconds ago.
fn line(
    (instance, plan): (&RunningInstance, &Plan),
    report: &Report,
    previous: Option<(f64, &Report)>,
) -> String {
    let elapsed = instance.elapsed().0 as f64 / 1e9;
    let seconds = previous.map_or(elapsed, |(seconds, _)| seconds).max(1e-3);
    // Packets between nodes have not left. A port of the report before may be gone.
    let is_inner =
        |place: u16| plan.ports.get(usize::from(place)).is_some_and(|port| port.attachment.far().is_some());
    // Packets and bytes that ports have sent.
    let sums = |report: &Report| {
        let outer = report.ports.iter().filter(|port| !is_inner(port.place));
        outer
            .map(|port| &port.stats)
            .fold((0, 0), |(frames, bytes), stats| (frames + stats.out_frames, bytes + stats.out_bytes))
    };
    let (frames, bytes) = sums(report);
    let (old_frames, old_bytes) = previous.map_or((0, 0), |(_, report)| sums(report));
    let per_second = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
    let held = report.all_links().map(|stats| stats.queued_packets + stats.travelling_packets);
    let outside: u64 = report.flow.drops.iter().map(|(_, packets)| packets).sum();
    let dropped = outside + report.all_links().map(LinkStats::dropped).sum::<u64>();
    let faithful = report.fidelity.as_ref().is_none_or(|fidelity| fidelity.faithful);
    let faults = report.ports.iter().filter_map(|port| port.fault.as_deref());
    format!(
        "{elapsed:>5.0} s  {:>9.0} packets/s  {:>12}  {} held, {} dropped  {}{}",
        per_second(frames, old_frames),
        shown::rate(per_second(bytes, old_bytes) * 8.0),
        shown::count(report.flow.kept + held.sum::<u64>()),
        shown::count(dropped),
        match (faithful, report.window.as_ref().map(|window| window.last.fidelity.faithful)) {
            (true, _) => "faithful",
            (false, Some(true)) => "faithful lately",
            (false, _) => "NOT faithful",
        },
        faults.map(|fault| format!("  {fault}")).collect::<String>(),
    )
}
