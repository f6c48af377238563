//! Live display of a run in real time: a screen on a terminal, else a line per second.

use crate::{flow_rows, outcome, verdict};
use longwire_engine::{LinkReport, Report};
use longwire_link::LinkStats;
use longwire_report::shown::{self, columns};
use longwire_report::{cells, printable};
use longwire_run::instance::RunningInstance;
use longwire_run::objects::Objects;
use longwire_run::router_rows;
use longwire_run::run_report::busiest;
use longwire_run::running_state::RunningState;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Style of the live display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// One screen, redrawn twice a second.
    Screen,
    /// A line a second.
    Lines,
    /// Not at all.
    Quiet,
}

impl Style {
    /// A screen if standard output is a terminal and no JSON is requested, else lines.
    pub fn fitting(json: bool, quiet: bool) -> Self {
        match (quiet, json, io::stdout().is_terminal()) {
            (true, ..) => Self::Quiet,
            (_, false, true) => Self::Screen,
            _ => Self::Lines,
        }
    }

    /// Refresh interval.
    const fn period(self) -> Duration {
        if matches!(self, Self::Screen) { Duration::from_millis(500) } else { Duration::from_secs(1) }
    }
}

/// Most links whose counters are queried: queries of more delay packets by a millisecond.
const MOST_ASKED: usize = 5000;
/// Lines of a screen that are not for links.
const OTHER_LINES: usize = 10;

/// A live display of a run. Dropping it restores the terminal.
#[derive(Debug)]
pub struct LiveView {
    style: Style,
    next: Instant,
    previous: Option<(Instant, Arc<Report>)>,
    /// With too many links to query: time and number of packets sent at the previous refresh.
    previous_flow: (Instant, u64),
    /// The dashboard's address, if there is one.
    dashboard: Option<String>,
}

impl LiveView {
    /// Starts the display.
    pub fn start(style: Style) -> Self {
        if style == Style::Screen {
            // The alternate screen, without a cursor. If the terminal can't be written to, nothing is shown.
            let _ = write!(io::stdout(), "\x1b[?1049h\x1b[?25l").and_then(|()| io::stdout().flush());
        }
        let now = Instant::now();
        let next = now + style.period();
        Self { style, next, previous: None, previous_flow: (now, 0), dashboard: None }
    }

    /// Shows the dashboard's address on the screen, which hides what was printed before.
    pub fn with_dashboard(mut self, address: Option<String>) -> Self {
        self.dashboard = address;
        self
    }

    /// The first line of a screen.
    fn title(&self, plan: &Plan, elapsed: Nanos) -> String {
        let dashboard = self.dashboard.as_ref().map(|address| format!("; dashboard: {address}"));
        let seconds = elapsed.0 as f64 / 1e9;
        format!("{} for {seconds:.0} s (Ctrl-C ends it){}", plan.file, dashboard.unwrap_or_default())
    }

    /// Time of the next refresh.
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// Refreshes the display if it is time.
    pub fn refresh(&mut self, instance: &RunningInstance) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + self.style.period();
        if self.style == Style::Quiet {
            return;
        }
        let state = instance.state();
        if state.plan.links.len() > MOST_ASKED {
            drop(state);
            return self.refresh_sums(instance, now);
        }
        // A run that does not answer is about to end, and reports why.
        let Ok(report) = instance.count(&state) else { return };
        let frame = Frame::new((instance, &state), &report, self.previous.as_ref(), now);
        if self.style == Style::Screen {
            show_screen(&frame.screen(self.title(frame.plan, frame.elapsed), size()));
        } else {
            show_line(&frame.line());
        }
        self.previous = Some((now, report));
    }

    /// Shows sums only.
    fn refresh_sums(&mut self, instance: &RunningInstance, now: Instant) {
        let Ok(flow) = instance.flow() else { return };
        let (at, before) = std::mem::replace(&mut self.previous_flow, (now, flow.sent));
        let packets = flow.sent.saturating_sub(before) as f64 / (now - at).as_secs_f64().max(1e-3);
        let seconds = instance.elapsed().0 as f64 / 1e9;
        let sums = format!(
            "{packets:.0} packets/s; {} in, {} out",
            shown::count(flow.taken),
            shown::count(flow.sent)
        );
        if self.style == Style::Screen {
            let plan = Arc::clone(&instance.state().plan);
            let links = shown::count(plan.links.len() as u64);
            let ask =
                format!("{links} links: longwire ctl get LINK shows one, longwire ctl stats the busiest");
            show_screen(&[self.title(&plan, instance.elapsed()), sums, ask]);
        } else {
            show_line(&format!("{seconds:>5.0} s  {sums}"));
        }
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        if self.style == Style::Screen {
            // Ignored as at the start.
            let _ = write!(io::stdout(), "\x1b[?25h\x1b[?1049l").and_then(|()| io::stdout().flush());
        }
    }
}

/// Columns and lines of the terminal.
fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    size.map_or((100, 24), |(width, height)| (width.0.into(), height.0.into()))
}

/// Shows a screen. Write errors are ignored; the run continues.
fn show_screen(lines: &[String]) {
    let _ = draw(&mut io::stdout().lock(), lines);
}

/// Shows a line, likewise.
fn show_line(line: &str) {
    outcome::note(line);
}

fn draw(out: &mut dyn Write, lines: &[String]) -> io::Result<()> {
    write!(out, "\x1b[H")?;
    lines.iter().try_for_each(|line| write!(out, "{}\x1b[K\r\n", printable(line)))?;
    write!(out, "\x1b[J")?;
    out.flush()
}

/// The state of a run, with changes since the previous refresh.
struct Frame<'a> {
    objects: &'a Objects,
    plan: &'a Plan,
    report: &'a Report,
    before: Option<&'a Report>,
    /// Seconds since the previous refresh.
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
        let (objects, plan) = (&*state.objects, &*state.plan);
        Self { objects, plan, report, before, seconds: seconds.max(1e-3), elapsed }
    }

    /// Bits per second that left a link since the previous refresh.
    fn link_rate(&self, link: &LinkReport, index: usize) -> f64 {
        let before =
            self.before.and_then(|before| before.links.get(index)).map_or(0, |old| old.stats.out_bytes);
        link.stats.out_bytes.saturating_sub(before) as f64 * 8.0 / self.seconds
    }

    /// Packets and bits per second that ports sent since the previous refresh.
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
        // A port of the previous report may be gone.
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

    fn screen(&self, title: String, (width, height): (usize, usize)) -> Vec<String> {
        let (packets, bits) = self.totals();
        let mut lines = vec![title, String::new()];
        let routers = self.report.nodes.len().min(height / 3);
        let sharing = self.report.nodes.iter().filter_map(|node| node.stats.processors.as_ref());
        let flows: usize = sharing.map(|processors| processors.flows.len()).sum();
        // A table of flows may take a third of the screen.
        let flows = if flows == 0 { 0 } else { (flows + 2).min(height / 3) };
        let room = height.saturating_sub(OTHER_LINES + routers * 2 + flows).max(1);
        let mut table = vec![cells!["link", "rate", "queued", "on its way", "delay", "max late", "dropped"]];
        table.extend(busiest(&self.report.links, room).into_iter().map(|link| self.link_cells(link)));
        lines.extend(columns(&table));
        if self.report.links.len() > room {
            lines.push(format!("({room} of {} links: those that carried most)", self.report.links.len()));
        }
        if !self.report.nodes.is_empty() {
            let most = (room / 2).max(1);
            let table = router_rows::screen(self.plan, self.report, self.before, self.seconds, most);
            lines.push(String::new());
            lines.extend(columns(&table));
            // Flows take the remaining lines.
            let most = height.saturating_sub(lines.len() + OTHER_LINES);
            let flows = flow_rows::screen(self.plan, self.report, self.before, self.seconds, most);
            if most > 0 && !flows.is_empty() {
                lines.push(String::new());
                lines.extend(columns(&flows));
                lines.extend(flow_rows::left_out(&self.report.nodes, flows.len() - 1));
            }
        }
        lines.push(String::new());
        lines.push(format!(
            "out: {packets:.0} packets/s, {}; {} held, {} dropped; memory {} of {}",
            shown::rate(bits),
            shown::count(self.held()),
            shown::count(self.dropped()),
            shown::bytes(self.report.pool_used as f64),
            shown::bytes(self.report.pool_capacity as f64),
        ));
        lines.extend(self.next_event());
        lines.extend(self.verdict());
        lines.extend(self.last_window());
        lines.extend(self.faults().map(str::to_owned));
        lines.truncate(height.saturating_sub(1).max(1));
        lines.iter().map(|line| line.chars().take(width).collect()).collect()
    }

    /// The next event.
    fn next_event(&self) -> Option<String> {
        let each = self.plan.events.iter();
        let each = each.filter_map(|event| Some((event.next_after(self.elapsed)?, event)));
        let of_links =
            each.min_by_key(|(time, _)| *time).map(|(time, event)| (time, event.describe(self.plan)));
        let of_routers = self.plan.router_events.iter().filter(|event| event.time > self.elapsed);
        let next_router = of_routers.min_by_key(|event| event.time);
        let of_routers = next_router.map(|event| (event.time, event.describe(&self.plan.routers)));
        let (time, what) = of_links.into_iter().chain(of_routers).min_by_key(|(time, _)| *time)?;
        Some(format!("next, at {}: {what}", shown::time(time.0 as f64)))
    }

    fn verdict(&self) -> Option<String> {
        let fidelity = self.report.fidelity.as_ref()?;
        let late = &fidelity.lateness.all;
        let verdict = if fidelity.faithful { "faithful" } else { "NOT faithful" };
        let causes: String = fidelity.causes.iter().map(|cause| format!("; {cause}")).collect();
        Some(format!(
            "{verdict}: late by {} (median), {} (99 %), {} (at most){causes}",
            shown::time(late.p50.0 as f64),
            shown::time(late.p99.0 as f64),
            shown::time(late.max.0 as f64),
        ))
    }

    /// The verdict on the last window.
    fn last_window(&self) -> Option<String> {
        let window = self.report.window.as_ref()?;
        let verdict = verdict::brief(&window.last.fidelity);
        Some(format!("the last {}: {verdict}", window.length))
    }

    fn link_cells(&self, link: &LinkReport) -> Vec<String> {
        let stats = &link.stats;
        let settings = self.objects.links.settings(link.place);
        vec![
            self.plan.links[link.place as usize].name.to_string(),
            shown::rate(self.link_rate(link, link.place as usize)),
            shown::count(stats.queued_packets),
            shown::count(stats.travelling_packets),
            settings.get("delay").cloned().unwrap_or_default(),
            shown::time(stats.max_late.0 as f64),
            shown::drops(&stats.drops),
        ]
    }
}
