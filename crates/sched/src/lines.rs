//! Lines of flows before the processors: one for all ports, or one for each port.
//!
//! With one for all, as the CBCS paper has it, a flow whose port is full holds up flows to other ports when its turn comes. With one for each
//! ([`Settings::ready_limit`]) a port that is behind keeps its own flows only. Each line is the scheduler as its authors have it, with one port behind the
//! processors, and lines share processor time by start-time fair queueing, each with the weights of its flows that wait.

use crate::backlog::{Backlog, Gone};
use crate::discipline::{AnyDiscipline, Spec};
use crate::{Settings, Warning};

/// Fraction bits of a line's virtual time, which is in ns of a line of weight 1.
const FRACTION: u32 = 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Vec<AnyDiscipline>,
    /// By port: the start tag of its next packet. Tags wrap around: only differences count.
    starts: Vec<u64>,
    /// The start tag of the packet that was taken last.
    now: u64,
}

impl Lines {
    /// Of the scheduler of this name; none if there is none.
    pub(crate) fn build(name: &str, settings: &Settings) -> Option<Self> {
        let first = AnyDiscipline::build(name, settings)?;
        let apart = settings.ready_limit.is_some() && first.spec().apart;
        let count = if apart { usize::from(settings.ports) } else { 1 };
        let more = (1..count).filter_map(|_| AnyDiscipline::build(name, settings));
        let lines: Vec<_> = std::iter::once(first).chain(more).collect();
        Some(Self { starts: vec![0; lines.len()], lines, now: 0 })
    }

    pub(crate) fn spec(&self) -> &'static Spec {
        self.lines[0].spec()
    }

    pub(crate) fn stages(&self) -> usize {
        self.lines[0].stages()
    }

    pub(crate) fn quantum(&self, settings: &Settings) -> Option<u64> {
        self.lines[0].quantum(settings)
    }

    pub(crate) fn largest(&self, settings: &Settings) -> Option<u64> {
        self.lines[0].largest(settings)
    }

    pub(crate) fn warnings(&self, settings: &Settings) -> Vec<Warning> {
        self.lines[0].warnings(settings)
    }

    #[inline]
    const fn is_apart(&self) -> bool {
        self.lines.len() > 1
    }

    #[inline]
    fn line_of(&self, backlog: &Backlog, flow: u32) -> usize {
        if self.is_apart() { backlog.flow(flow).port.into() } else { 0 }
    }

    /// A packet comes. Returns what it will be charged.
    #[inline]
    pub(crate) fn enter(&mut self, backlog: &mut Backlog, slot: u32, processor: u32, first: bool) -> u32 {
        let line = self.line_of(backlog, backlog.slot(slot).flow);
        self.lines[line].enter(backlog, slot, processor, first)
    }

    /// Takes the next packet for a processor.
    #[inline]
    pub(crate) fn next(&mut self, backlog: &mut Backlog) -> Option<u32> {
        if self.is_apart() {
            return self.next_of_some_line(backlog);
        }
        if backlog.ports() == 1 && backlog.is_full(0) {
            return None;
        }
        self.lines[0].next(backlog)
    }

    /// Of the lines that have one and may go on, that with the least start tag comes first, and of equal ones that of the first port.
    fn next_of_some_line(&mut self, backlog: &mut Backlog) -> Option<u32> {
        let mut tried = None;
        loop {
            // A line that was held up has lost what it did not use meanwhile.
            let ahead = |port: u16| (self.starts[usize::from(port)].wrapping_sub(self.now) as i64).max(0);
            let lines =
                backlog.busy_ports().filter(|port| !backlog.is_full(*port)).map(|port| (ahead(port), port));
            let first = lines.filter(|line| tried.is_none_or(|tried| *line > tried)).min()?;
            let line = usize::from(first.1);
            let shared = backlog.busy_ports().nth(1).is_some();
            let weight = backlog.weight_of(first.1).max(1);
            let Some(slot) = self.lines[line].next(backlog) else {
                tried = Some(first);
                continue;
            };
            self.now = self.now.wrapping_add(first.0 as u64);
            self.starts[line] = self.now;
            let place = &mut backlog.slots[slot as usize];
            place.line_weight = if shared { weight } else { 0 };
            if shared {
                self.starts[line] = self.now.wrapping_add((u64::from(place.processor) << FRACTION) / weight);
            }
            return Some(slot);
        }
    }

    /// A packet has been processed. It is ready for its port once all of its flow that came before it are.
    #[inline]
    pub(crate) fn finish(&mut self, backlog: &mut Backlog, slot: u32, measured: Option<u32>) {
        let line = self.note(backlog, slot, measured);
        self.lines[line].finish(backlog, slot, measured);
    }

    /// A packet that was with a processor goes to no port. Those behind it go on.
    pub(crate) fn give_up(&mut self, backlog: &mut Backlog, slot: u32, measured: Option<u32>, because: Gone) {
        let line = self.note(backlog, slot, measured);
        self.lines[line].give_up(backlog, slot, measured, because);
    }

    /// What was charged to the line of the packet becomes what was measured. Returns that line.
    #[inline]
    fn note(&mut self, backlog: &Backlog, slot: u32, measured: Option<u32>) -> usize {
        if !self.is_apart() {
            return 0;
        }
        let line = backlog.port_of(slot);
        let place = backlog.slot(slot);
        if let Some(measured) = measured
            && place.line_weight > 0
            && measured != place.processor
        {
            let of_weight = |ns: u32| (u64::from(ns) << FRACTION) / place.line_weight;
            let start = self.starts[line].wrapping_sub(of_weight(place.processor));
            self.starts[line] = start.wrapping_add(of_weight(measured));
        }
        line
    }

    /// The next packet for a port begins to be sent.
    #[inline]
    pub(crate) fn send(&mut self, backlog: &mut Backlog, port: u16) -> Option<u32> {
        let line = if self.is_apart() { usize::from(port) } else { 0 };
        self.lines[line].send(backlog, port)
    }

    /// A flow has another weight than before.
    pub(crate) fn reweighted(&mut self, backlog: &mut Backlog, flow: u32, before: u32) {
        let line = self.line_of(backlog, flow);
        self.lines[line].reweighted(backlog, flow, before);
    }
}
