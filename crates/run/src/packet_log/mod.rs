//! The packet log of a run: events of each packet at chosen links, with times and reasons (decision 56).
//!
//! Each worker has a recorder, which sends rows through a bounded ring (`ring`) to one thread, which writes
//! them to a file ([`mod@file`]). In real time the packet path never waits: events without room in the ring
//! are counted. [`reading`] reads both formats, [`following`] also while they are written, [`printing`]
//! prints entries.

pub mod binary;
pub mod file;
pub mod following;
pub mod links;
pub mod pcapng;
pub mod printing;
pub mod reading;
mod recorder;
mod ring;
pub mod row;

use crate::link_pattern::LinkPattern;
use crate::rotation::{FileMaker, RecordFaults};
use anyhow::Context;
use file::{Format, LogFile};
use links::LoggedLinks;
use longwire_block::DropReason;
use longwire_engine::Observer;
use longwire_scenario::Plan;
use longwire_units::{Nanos, counted};
use recorder::Recorder;
use ring::{RowReceiver, WhenFull, ring};
use row::{Event, NO_LINK, NO_TIME, Row};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of a worker's ring.
const RING_BYTES: usize = 8 << 20;
/// Bytes of a frame in a capture: headers and the start of the payload.
const FRAME_BYTES: usize = 256;
/// Pause of the writer when there is nothing to write.
const PAUSE: Duration = Duration::from_millis(5);

/// What to log.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// The file, `.pcapng` or `.lwlog`.
    pub file: PathBuf,
    /// The logged links; default: all, and drops outside links.
    pub links: Option<LinkPattern>,
}

/// The result of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogResult {
    /// The file.
    pub file: PathBuf,
    /// Events written.
    pub events: u64,
    /// Events that found no room in a ring, or could not be written.
    pub lost: u64,
    /// The first write error.
    pub error: Option<String>,
}

impl LogResult {
    /// A warning if the log is incomplete.
    pub fn complaint(&self) -> Option<String> {
        let file = self.file.display();
        match &self.error {
            Some(error) => Some(format!("the log {file} is incomplete: {error}")),
            None if self.lost > 0 => {
                Some(format!("the log {file} is incomplete: {} lost", counted(self.lost, "event")))
            }
            None => None,
        }
    }
}

/// A log being written. Dropping it ends it.
pub struct PacketLog {
    links: Arc<LoggedLinks>,
    base: Arc<OnceLock<Nanos>>,
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<LogResult>>,
    recorders: Vec<Option<Recorder>>,
}

impl PacketLog {
    /// Creates the file, a recorder for each worker of `plan`, and the writing thread.
    ///
    /// # Errors
    /// If no link matches, or the file can't be created.
    pub fn start(
        (options, maker): (LogOptions, &FileMaker),
        plan: &Plan,
        is_virtual: bool,
    ) -> anyhow::Result<Self> {
        if let Some(pattern) = &options.links {
            pattern.places(plan)?;
        }
        let start_since_1970 = if is_virtual { 0 } else { longwire_clock::realtime().0 };
        let file = LogFile::create(&options.file, maker, start_since_1970)?;
        let frame_bytes = if Format::of(&options.file)? == Format::Pcapng { FRAME_BYTES } else { 0 };
        let base = Arc::<OnceLock<Nanos>>::default();
        let outside = options.links.is_none();
        let links = Arc::new(LoggedLinks::new(options.links, plan.engine.workers));
        let when_full = if is_virtual { WhenFull::Wait } else { WhenFull::Lose };
        let (mut recorders, mut receivers) = (Vec::new(), Vec::new());
        for worker in 0..plan.engine.workers {
            let (sender, receiver) = ring(RING_BYTES, when_full);
            let what = (frame_bytes, outside);
            let placing = links.placing(worker);
            recorders.push(Some(Recorder::new(worker, plan.engine.pool.0, sender, placing, what)));
            receivers.push(receiver);
        }
        let stop = Arc::<AtomicBool>::default();
        let logged = LogResult { file: options.file, events: 0, lost: 0, error: None };
        let (names, of_links) = (Vec::new(), Arc::clone(&links));
        let base_of_writer = Arc::clone(&base);
        let faults = maker.faults.clone();
        let writer = Writer { file, names, links: of_links, receivers, base: base_of_writer, logged, faults };
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("packet log".into());
        let writer = thread.spawn(move || writer.run(&stopped)).context("the thread of the log")?;
        Ok(Self { links, base, stop, writer: Some(writer), recorders })
    }

    /// The observer of a worker.
    pub fn observer(&mut self, worker: u32) -> Option<Box<dyn Observer>> {
        let recorder = self.recorders.get_mut(worker as usize)?.take()?;
        Some(Box::new(recorder))
    }

    /// The links that it logs. Their places must be said before the first packet.
    pub const fn links(&self) -> &Arc<LoggedLinks> {
        &self.links
    }

    /// Sets the start of the run on the engine's clock. Nothing is written before.
    pub fn begin(&self, start: Nanos) {
        let _ = self.base.set(start);
    }

    /// Writes the rest after the workers have ended.
    pub fn finish(mut self) -> Option<LogResult> {
        self.end()
    }

    fn end(&mut self) -> Option<LogResult> {
        self.stop.store(true, Ordering::Release);
        self.writer.take().and_then(|writer| {
            writer.thread().unpark();
            writer.join().ok()
        })
    }
}

impl Drop for PacketLog {
    fn drop(&mut self) {
        self.end();
    }
}

/// The writing thread.
struct Writer {
    file: LogFile,
    /// The names of logged links, as far as they were needed.
    names: Vec<String>,
    links: Arc<LoggedLinks>,
    receivers: Vec<RowReceiver>,
    base: Arc<OnceLock<Nanos>>,
    logged: LogResult,
    faults: RecordFaults,
}

impl Writer {
    fn run(mut self, stop: &AtomicBool) -> LogResult {
        loop {
            // Read first, so that everything sent before the end is seen below.
            let stopped = stop.load(Ordering::Acquire);
            let was_whole = self.logged.error.is_none();
            let wrote = self.write_waiting();
            if !wrote {
                // For those who read it meanwhile.
                self.logged.note(self.file.flush());
            }
            if was_whole && self.logged.error.is_some() {
                self.logged.complaint().into_iter().for_each(|fault| self.faults.note(fault));
            }
            if !wrote {
                if stopped {
                    return self.logged;
                }
                std::thread::park_timeout(PAUSE);
            }
        }
    }

    /// Writes the rows in the rings, and returns whether there were any.
    fn write_waiting(&mut self) -> bool {
        let Some(&base) = self.base.get() else { return false };
        let Self { file, names, links, receivers, logged, .. } = self;
        let mut any = false;
        for receiver in receivers {
            let mut last = 0;
            while let Some((row, frame)) = receiver.next() {
                let since = |time: u64| if time == NO_TIME { NO_TIME } else { Nanos(time).since(base).0 };
                let (time, arrival, leave) = (since(row.time), since(row.arrival), since(row.leave));
                let row = Row { time, arrival, leave, ..row };
                if row.link != NO_LINK && row.link as usize >= names.len() {
                    links.add_names(names);
                }
                logged.write(file, &row, (names_of(names, &row), frame));
                (last, any) = (time, true);
            }
            let lost = receiver.newly_lost();
            if lost > 0 {
                logged.lost += lost;
                logged.write(file, &Row::outside(Event::Lost, last, lost), (("", ""), &[]));
            }
        }
        any
    }
}

impl LogResult {
    /// Writes a row, with its names and its frame, and counts it.
    fn write(&mut self, file: &mut LogFile, row: &Row, (names, frame): ((&str, &str), &[u8])) {
        let is_event = row.event != Event::Lost;
        let written = self.error.is_none() && self.note(file.write(row, names, frame));
        *(if written { &mut self.events } else { &mut self.lost }) += u64::from(is_event);
    }

    /// Keeps the first error, and returns whether this write succeeded.
    fn note(&mut self, written: std::io::Result<()>) -> bool {
        let done = written.is_ok();
        if let Err(error) = written {
            self.error.get_or_insert_with(|| error.to_string());
        }
        done
    }
}

/// The names of a row's link and reason.
fn names_of<'a>(links: &'a [String], row: &Row) -> (&'a str, &'static str) {
    let link = links.get(row.link as usize).map_or("", |name| name);
    let reason = DropReason::from_index(row.reason.into()).map_or("", DropReason::name);
    (link, reason)
}
