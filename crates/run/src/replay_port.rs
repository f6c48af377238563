//! A port without an interface: traffic sources, captures in and out, and a sink that measures what arrives.

use crate::port_files::Captures;
use crate::threads::lock;
use longwire_block::{JoiningSource, Port, PortError, PortStats, Spec, Stamp, Values};
use longwire_packet::{Batch, Pool};
use longwire_port::driver::pcap::{InputReport, PcapPort};
use longwire_port::driver::source::{SourcePort, Tally};
use longwire_units::Nanos;
use std::sync::{Arc, Mutex, OnceLock};

/// The report of a capture's port after the run.
#[derive(Debug, Clone, Default)]
pub struct CaptureReport {
    /// Report on the input.
    pub input: InputReport,
    /// Sent frames missing in the output because the pool had no room for a copy.
    pub not_written: u64,
}

/// The handle to a port that has moved to its worker.
#[derive(Debug, Clone)]
pub struct PortWatch {
    tally: Tally,
    capture: Arc<Mutex<CaptureReport>>,
    files: Arc<Captures>,
}

impl PortWatch {
    /// Counters of packets sent by its traffic sources, and of received ones.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether traffic sources can begin at it: its frames do not come from a capture.
    pub fn takes_sources(&self) -> bool {
        self.files.input.is_none()
    }

    /// Its captures.
    pub(crate) fn files(&self) -> &Captures {
        &self.files
    }

    /// The report on its captures; complete once the run has ended.
    pub fn capture(&self) -> CaptureReport {
        lock(&self.capture).clone()
    }
}

/// The engine's time at which captures and sources begin: 0 in virtual time; in real time the first poll of
/// one of them, so that nothing is late however long a start takes. Shared by all ports of a run.
#[derive(Debug, Clone, Default)]
pub struct StartTime(Arc<OnceLock<Nanos>>);

impl StartTime {
    /// Time 0 of the engine.
    pub fn at_zero() -> Self {
        Self(Arc::new(OnceLock::from(Nanos::ZERO)))
    }

    /// The start time, if it is set.
    fn get(&self) -> Option<Nanos> {
        self.0.get().copied()
    }

    /// The start time, which becomes `now` if it is not set.
    fn or(&self, now: Nanos) -> Nanos {
        *self.0.get_or_init(|| now)
    }
}

/// A port of captures and sources, whose clock is 0 at the start time. Frames come from its capture if it has
/// an input, else from its sources. Sent frames are measured, and written to its capture if it has an output.
pub struct ReplayPort {
    source: SourcePort,
    /// Whether the source has flows.
    sends: bool,
    capture: Option<PcapPort>,
    files: Arc<Captures>,
    reads: bool,
    writes: bool,
    report: CaptureReport,
    shared: Arc<Mutex<CaptureReport>>,
    one: Batch,
    start_time: StartTime,
}

impl ReplayPort {
    /// Creates the port. `sends`: whether the source has flows; `capture` comes with its files.
    pub fn new(
        source: SourcePort,
        sends: bool,
        capture: Option<(PcapPort, Captures)>,
        start_time: StartTime,
    ) -> Self {
        let (capture, files) = capture.unzip();
        let files = Arc::new(files.unwrap_or_default());
        let (reads, writes) = (files.input.is_some(), files.output.is_some());
        let (report, shared) = Default::default();
        Self { source, sends, capture, files, reads, writes, report, shared, one: Batch::new(), start_time }
    }

    /// The handle to it.
    pub fn watch(&self) -> PortWatch {
        let (capture, files) = (Arc::clone(&self.shared), Arc::clone(&self.files));
        PortWatch { tally: self.source.tally(), capture, files }
    }

    /// Writes copies of the packets to the output, which frees what it has written.
    fn write(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let Some(capture) = self.capture.as_mut().filter(|_| self.writes) else { return Ok(()) };
        let mut result = Ok(());
        for &handle in batch.as_slice() {
            let Some(copy) = pool.duplicate(handle) else {
                self.report.not_written += u64::from(pool.meta(handle).segments);
                continue;
            };
            self.one.clear();
            self.one.push(copy);
            result = capture.transmit(pool, &self.one).and(result);
        }
        result
    }
}

impl Port for ReplayPort {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn describe(&self) -> String {
        match &self.capture {
            Some(capture) if self.sends => format!("{}, {}", self.source.describe(), capture.describe()),
            Some(capture) => capture.describe(),
            None if self.sends => self.source.describe(),
            None => "sink".into(),
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp::Source
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        let begin = self.start_time.or(now);
        let (own_now, before) = (now.since(begin), batch.as_slice().len());
        let received = match self.capture.as_mut().filter(|_| self.reads) {
            Some(capture) => capture.receive(pool, own_now, batch),
            None => self.source.receive(pool, own_now, batch),
        };
        for &handle in &batch.as_slice()[before..] {
            pool.meta_mut(handle).arrival += begin.0;
        }
        received
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let begin = self.start_time.get().unwrap_or_default().0;
        for &handle in batch.as_slice() {
            let meta = pool.meta_mut(handle);
            meta.set_leave(meta.leave().max(meta.arrival).saturating_sub(begin));
            meta.arrival = meta.arrival.saturating_sub(begin);
        }
        let written = self.write(pool, batch);
        self.source.transmit(pool, batch)?;
        written
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        let next = match self.capture.as_mut().filter(|_| self.reads) {
            Some(capture) => capture.next_arrival(),
            None => self.source.next_arrival(),
        };
        let begin = self.start_time.get();
        next.map(
            |time| if time == Nanos::NEVER { time } else { begin.map_or(Nanos::ZERO, |begin| begin + time) },
        )
    }

    fn change_source(&mut self, now: Nanos, source: &str, spec: &'static Spec, values: &Values) -> bool {
        let begin = self.start_time.get().unwrap_or(now);
        self.source.change_source(now.since(begin), source, spec, values)
    }

    fn add_source(&mut self, now: Nanos, source: &mut Option<JoiningSource>) {
        if !self.reads {
            let begin = self.start_time.or(now);
            self.source.add_source(now.since(begin), source);
            self.sends = true;
        }
    }

    fn remove_source(&mut self, source: &str) {
        self.source.remove_source(source);
    }

    fn stats(&self) -> PortStats {
        let own = self.source.stats();
        let Some(capture) = self.capture.as_ref().map(Port::stats) else { return own };
        let incoming = if self.reads { capture } else { own };
        PortStats {
            out_frames: own.out_frames,
            out_bytes: own.out_bytes,
            out_full: capture.out_full + self.report.not_written,
            // Frames that the capture lacks arrived all the same; an error says that there are some.
            out_down: own.out_down,
            ..incoming
        }
    }

    fn finish(&mut self) -> Result<(), PortError> {
        let finished = self.capture.as_mut().map_or(Ok(()), Port::finish);
        self.report.input = self.capture.as_ref().map(PcapPort::input_report).unwrap_or_default();
        *lock(&self.shared) = self.report.clone();
        finished
    }
}
