//! Queues of flows before the processors: one for all ports, or one for each port ("line").
//!
//! With one for all, as in the CBCS paper, a flow whose port is full blocks flows to other ports when its
//! turn comes. With one for each ([`Settings::ready_limit`]) a slow port only blocks its own flows. Each line
//! is an instance of the scheduler with one port behind the processors. Lines are kept in step: the next
//! packet comes from the line with the lowest virtual time ([`due`](AnyDiscipline::due)), so that flows to
//! different ports share as if they were in one line. A line that gets all it asks for is charged only for
//! what it uses, whatever its weight.

use crate::Settings;
use crate::backlog::Backlog;
use crate::discipline::{AnyDiscipline, later};
use crate::ports::Ports;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: Vec<AnyDiscipline>,
    /// By port: offset of its line's virtual time to the common one, and the busy period of its last packet.
    offsets: Vec<(u64, u64)>,
    /// Number of the busy period: they are separated by times without work for a processor.
    period: u64,
    /// The common virtual time: the highest of any line that gave a packet while others had some.
    now: u64,
    /// The common virtual time of the processors alone, where lines have one.
    processors: u64,
    /// The largest single step in this busy period.
    step: u64,
    /// Lines that had packets when the last one was taken, and those of them that have been blocked since
    /// they gave one.
    busy: Ports,
    held: Ports,
    /// The line that gave it.
    last: u16,
    /// The line that has been the only one since then.
    alone: Option<u16>,
}

impl Lines {
    /// Lines of the scheduler of this name; none if it is unknown.
    pub(crate) fn build(name: &str, settings: &Settings) -> Option<Self> {
        let first = AnyDiscipline::build(name, settings)?;
        let apart = settings.ready_limit.is_some() && first.spec().apart;
        let count = if apart { usize::from(settings.ports) } else { 1 };
        let more = (1..count).filter_map(|_| AnyDiscipline::build(name, settings));
        let lines: Vec<_> = std::iter::once(first).chain(more).collect();
        Some(Self { offsets: vec![(0, 0); lines.len()], lines, ..Self::default() })
    }

    /// One of them: all have the same settings.
    pub(crate) fn any(&self) -> &AnyDiscipline {
        &self.lines[0]
    }

    #[inline]
    const fn is_apart(&self) -> bool {
        self.lines.len() > 1
    }

    /// The line of a flow.
    #[inline]
    pub(crate) fn of(&mut self, backlog: &Backlog, flow: u32) -> &mut AnyDiscipline {
        let line = if self.is_apart() { backlog.flow(flow).port.into() } else { 0 };
        &mut self.lines[line]
    }

    /// Takes the next packet for a processor.
    #[inline]
    pub(crate) fn next(&mut self, backlog: &mut Backlog) -> Option<u32> {
        if self.is_apart() {
            return self.next_of_some_line(backlog);
        }
        let is_full = backlog.settings.ports == 1 && backlog.is_full(0);
        if is_full { None } else { self.lines[0].next(backlog) }
    }

    /// Among the lines with packets that may proceed, the one with the lowest virtual time comes first; ties
    /// are broken in turn.
    fn next_of_some_line(&mut self, backlog: &mut Backlog) -> Option<u32> {
        // An empty line has a round left, in which flows become idle when their turn comes.
        self.busy.without(&backlog.busy).iter().for_each(|port| {
            self.lines[usize::from(port)].next(backlog);
        });
        let mut busy = backlog.busy.iter();
        let Some(first) = busy.next() else {
            self.rest();
            return None;
        };
        if busy.next().is_none() {
            return self.next_of_one(backlog, first);
        }
        self.catch_up();
        backlog.busy.without(&self.busy).iter().for_each(|port| self.join(port));
        self.busy = backlog.busy;
        let mut open = backlog.busy;
        for port in backlog.busy.iter().filter(|port| backlog.is_full(*port)) {
            open.remove(port);
            self.held.insert(port);
        }
        loop {
            let order = |port| (self.ahead(port), port <= self.last, port);
            let (ahead, _, port) = open.iter().map(order).min()?;
            if let Some(slot) = self.take(backlog, port) {
                self.go_on(port, ahead);
                return Some(slot);
            }
            open.remove(port);
            self.held.insert(port);
        }
    }

    /// Updates the line of a port that has given a packet while `ahead` of all others. If it was behind
    /// because it was blocked, by its port or by the progress rule of MR³ and GMR³, it may catch up by the
    /// largest step that the others make at once, because it could not have been closer. The rest is lost.
    #[inline]
    fn go_on(&mut self, port: u16, ahead: i64) {
        self.last = port;
        if ahead > 0 {
            self.now = self.now.wrapping_add(ahead as u64);
            self.step = self.step.max(ahead as u64);
        }
        if self.held.has(port) {
            self.held.remove(port);
            let lost = ahead.saturating_add_unsigned(self.step).min(0);
            let offset = &mut self.offsets[usize::from(port)].0;
            *offset = offset.wrapping_add(lost as u64);
        }
    }

    /// The next packet of the only line that has any; its virtual time is compared when there are others.
    #[inline]
    fn next_of_one(&mut self, backlog: &mut Backlog, port: u16) -> Option<u32> {
        if self.alone != Some(port) {
            self.catch_up();
            if !self.busy.has(port) {
                self.join(port);
            }
            (self.busy, self.alone) = (Ports::only(port), Some(port));
        }
        if backlog.is_full(port) { None } else { self.take(backlog, port) }
    }

    /// Takes the next packet of a line. All lines share the processors: what a flow has left of their time to
    /// flows of other lines is not saved for later.
    #[inline]
    fn take(&mut self, backlog: &mut Backlog, port: u16) -> Option<u32> {
        let line = usize::from(port);
        let (offset, line) = (self.offsets[line].0, &mut self.lines[line]);
        if let Some(clock) = line.processor_clock() {
            *clock = later(*clock, self.processors.wrapping_add(offset));
        }
        let slot = line.next(backlog)?;
        if let Some(clock) = line.processor_clock() {
            self.processors = later(self.processors, clock.wrapping_sub(offset));
        }
        Some(slot)
    }

    /// How far the line of a port is ahead of the common virtual time; negative if a round advanced it less
    /// than predicted.
    #[inline]
    fn ahead(&self, port: u16) -> i64 {
        let line = usize::from(port);
        let own = self.lines[line].due().wrapping_sub(self.offsets[line].0);
        own.wrapping_sub(self.now) as i64
    }

    /// Adds a line that had no packets: unused service is lost. Its lead from an earlier busy period is
    /// forgotten.
    fn join(&mut self, port: u16) {
        let ahead = self.ahead(port);
        let (offset, period) = &mut self.offsets[usize::from(port)];
        if ahead < 0 || *period != self.period {
            *offset = offset.wrapping_add(ahead as u64);
            *period = self.period;
        }
    }

    /// Ends a busy period: nothing is left to be processed.
    fn rest(&mut self) {
        if self.alone.is_some() || self.busy != Ports::default() {
            (self.alone, self.busy, self.step) = (None, Ports::default(), 0);
            self.period += 1;
        }
    }

    /// Ends the time with a single line: others begin at its virtual time.
    #[inline]
    fn catch_up(&mut self) {
        if let Some(port) = self.alone.take() {
            self.now = self.now.wrapping_add(self.ahead(port).max(0) as u64);
        }
    }

    /// The next packet for a port begins to be sent.
    #[inline]
    pub(crate) fn send(&mut self, backlog: &mut Backlog, port: u16) -> Option<u32> {
        let line = if self.is_apart() { usize::from(port) } else { 0 };
        self.lines[line].send(backlog, port)
    }
}
