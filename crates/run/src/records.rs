//! Files that a run writes: captures, the packet log, and the time series.

use crate::instance::RunningInstance;
use crate::packet_log::links::LoggedLinks;
use crate::packet_log::{LogOptions, LogResult, PacketLog};
use crate::port_files::PortFiles;
use crate::recording::{FLUSH_TIME, Flushing, Recording, record_outputs, start_flushing};
use crate::rotation::{FileMaker, RecordFaults};
use crate::series::{SeriesFile, SeriesOptions, VirtualSeries};
use crate::threads::{EndingThread, lock};
use longwire_block::Port;
use longwire_block::path::LinkRef;
use longwire_engine::{Observer, Sampler};
use longwire_scenario::Plan;
use longwire_units::{Nanos, counted};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The files to write.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// A capture of all arrivals, for virtual time.
    pub record: Option<PathBuf>,
    /// The packet log.
    pub log: Option<LogOptions>,
    /// The time series of links.
    pub series: Option<SeriesOptions>,
    /// Makes each of these files.
    pub maker: FileMaker,
}

impl RecordOptions {
    /// Whether links are observed, which needs a single worker in virtual time.
    pub const fn observes(&self) -> bool {
        self.log.is_some() || self.series.is_some()
    }

    /// The files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let log = self.log.as_ref().map(|log| log.file.as_path());
        let series = self.series.as_ref().map(|series| series.file.as_path());
        [self.record.as_deref(), log, series].into_iter().flatten()
    }

    /// The files of one scenario of a service: `packets.lwlog` becomes `NAME-packets.lwlog`. Files of two
    /// names differ, older ones included, which have a number at the end.
    #[must_use]
    pub fn of_scenario(&self, name: &str) -> Self {
        let named = |file: &PathBuf| {
            let own = file.file_name().unwrap_or_default().to_string_lossy();
            file.with_file_name(format!("{name}-{own}"))
        };
        let log = self.log.as_ref().map(|log| LogOptions { file: named(&log.file), ..log.clone() });
        let series = self.series.as_ref();
        let series = series.map(|series| SeriesOptions { file: named(&series.file), ..series.clone() });
        let maker = FileMaker { faults: RecordFaults::default(), ..self.maker.clone() };
        Self { record: self.record.as_ref().map(named), log, series, maker }
    }
}

/// The files written.
#[derive(Debug, Clone, Default)]
pub struct RecordSummary {
    /// The packet log.
    pub log: Option<LogResult>,
    /// The file of the time series, and its rows.
    pub series: Option<(PathBuf, u64)>,
    /// Write errors.
    pub errors: Vec<String>,
}

impl RecordSummary {
    /// Its fields in a report.
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        let name = |file: &Path| file.display().to_string();
        let log = self
            .log
            .as_ref()
            .map(|log| ("log", json!({ "file": name(&log.file), "events": log.events, "lost": log.lost })));
        let series = self.series.as_ref();
        let series = series.map(|(file, rows)| ("series", json!({ "file": name(file), "rows": rows })));
        [log, series].into_iter().flatten().collect()
    }

    /// Sentences about the written files.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |file: &Path, number, noun| format!("{}: {}", file.display(), counted(number, noun));
        let log = self.log.as_ref().map(|log| sentence(&log.file, log.events, "event"));
        let series = self.series.as_ref().map(|(file, rows)| sentence(file, *rows, "row"));
        [log, series].into_iter().flatten().collect()
    }

    fn note_series(&mut self, file: PathBuf, rows: anyhow::Result<u64>) {
        match rows {
            Ok(rows) => self.series = Some((file, rows)),
            Err(error) => self.errors.push(format!("{error:#}")),
        }
    }
}

/// The packet log, between its start and its end.
struct Log(Option<PacketLog>);

impl Log {
    fn start(options: &RecordOptions, plan: &Plan, is_virtual: bool) -> anyhow::Result<Self> {
        let log = options.log.clone();
        let start = |log| PacketLog::start((log, &options.maker), plan, is_virtual);
        log.map(start).transpose().map(Self)
    }

    fn finish(&mut self, recorded: &mut RecordSummary) {
        recorded.log = self.0.take().and_then(PacketLog::finish);
        recorded.errors.extend(recorded.log.as_ref().and_then(LogResult::complaint));
    }
}

/// The records of a run in real time.
pub struct RealRecords {
    captures: Vec<Recording>,
    flushing: Option<Flushing>,
    log: Log,
    /// The series until it begins.
    planned_series: Option<(SeriesFile, SeriesOptions)>,
    series: Option<(PathBuf, RealSeries)>,
    faults: RecordFaults,
}

impl RealRecords {
    /// Creates the files, and adds recorders to ports.
    ///
    /// # Errors
    /// If a file can't be created, or no link matches.
    pub fn start(
        options: RecordOptions,
        (plan, files): (&Plan, &PortFiles),
        mut ports: Vec<Box<dyn Port>>,
    ) -> anyhow::Result<(Self, Vec<Box<dyn Port>>)> {
        let rotated = options.files().chain(files.sent_outside(plan));
        files.check_rotated(plan, options.maker.rotation, rotated)?;
        let mut captures = Vec::new();
        let faults = options.maker.faults.clone();
        if let Some(file) = &options.record {
            let (started, recorded) = Recording::start((file, &options.maker), plan, ports)?;
            captures.push(started);
            ports = recorded;
        }
        let (outputs, ports) = record_outputs((files, &options.maker), plan, ports)?;
        captures.extend(outputs);
        let log = Log::start(&options, plan, false)?;
        let create = |series: SeriesOptions| -> anyhow::Result<_> {
            Ok((SeriesFile::create(&series, &options.maker, plan)?, series))
        };
        let planned_series = options.series.map(create).transpose()?;
        let (flushing, series) = (None, None);
        Ok((Self { captures, flushing, log, planned_series, series, faults }, ports))
    }

    /// The observer of a worker.
    pub fn observer(&mut self, worker: u32) -> Option<Box<dyn Observer>> {
        self.log.0.as_mut()?.observer(worker)
    }

    /// Called just before the engine starts, at `start` on its clock, while nothing arrives.
    pub fn note_start(&self, start: Nanos) {
        self.captures.iter().for_each(|capture| capture.note_start(start));
    }

    /// Says where the links of `plan` are, before the engine starts.
    pub fn place(&self, plan: &Plan, links: &[LinkRef]) {
        if let Some(logged) = self.logged_links() {
            logged.place(plan, links, 0..plan.links.len() as u32);
        }
    }

    /// The links of the packet log, if there is one.
    pub fn logged_links(&self) -> Option<&Arc<LoggedLinks>> {
        self.log.0.as_ref().map(PacketLog::links)
    }

    /// What fails while they are written.
    pub const fn faults(&self) -> &RecordFaults {
        &self.faults
    }

    /// Called when the engine has started, at `start` on its clock.
    ///
    /// # Errors
    /// If the thread of the series, or that of the captures, can't be started.
    pub fn begin(&mut self, start: Nanos, instance: &Arc<RunningInstance>) -> anyhow::Result<()> {
        self.flushing = start_flushing(&self.captures)?;
        if let Some(log) = &self.log.0 {
            log.begin(start);
        }
        if let Some((file, options)) = self.planned_series.take() {
            self.series = Some((options.file, start_series(file, options.every, instance)?));
        }
        Ok(())
    }

    /// Takes the last samples, while the workers still answer.
    pub fn end_series(&mut self, recorded: &mut RecordSummary) {
        if let Some((file, series)) = self.series.take() {
            recorded.note_series(file, series.end().unwrap_or(Ok(0)));
        }
    }

    /// Writes the rest after the workers have ended.
    pub fn finish(mut self, recorded: &mut RecordSummary) {
        self.log.finish(recorded);
        self.flushing = None;
        let errors = self.captures.into_iter().filter_map(|capture| capture.finish().err());
        recorded.errors.extend(errors.map(|error| error.to_string()));
    }
}

/// The thread of a series of a run in real time, which queries the workers. When it ends, it takes the last
/// sample, so the workers have to run until then. Its result is the number of rows, or the first write error.
type RealSeries = EndingThread<anyhow::Result<u64>>;

/// Starts the thread, which samples at interval `every`.
///
/// # Errors
/// If no thread can be started.
fn start_series(file: SeriesFile, every: Nanos, instance: &Arc<RunningInstance>) -> io::Result<RealSeries> {
    let file = Arc::new(Mutex::new(file));
    // It has one series at most.
    let _ = instance.sampled.set(Arc::clone(&file));
    let (every, instance) = (Duration::from_nanos(every.0.max(1)), Arc::clone(instance));
    let work = move |ended: &Receiver<()>| {
        let mut next = Instant::now() + every;
        let mut flushed = Instant::now();
        loop {
            let wait = next.saturating_duration_since(Instant::now());
            let goes_on = ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
            let state = instance.state();
            // A rewiring may have had the state until now.
            let time = instance.elapsed();
            // A worker that does not answer is reported elsewhere.
            if let Ok(report) = instance.count(&state) {
                let mut file = lock(&file);
                for link in &report.links {
                    file.add(time, &state.plan.links[link.place as usize].name, &link.stats);
                }
            }
            drop(state);
            if !goes_on {
                return lock(&file).finish();
            }
            if flushed.elapsed() >= FLUSH_TIME {
                // For those who read it meanwhile.
                lock(&file).flush();
                flushed = Instant::now();
            }
            // If that took longer than the interval, samples are skipped.
            let now = Instant::now();
            let late = now.saturating_duration_since(next).as_nanos() / every.as_nanos();
            next += every.saturating_mul(u32::try_from(late).unwrap_or(u32::MAX)) + every;
        }
    };
    RealSeries::start("time series", work)
}

/// The records of a run in virtual time.
pub struct VirtualRecords {
    log: Log,
    series: Option<(PathBuf, VirtualSeries)>,
    sampler: Option<Box<dyn Sampler>>,
}

impl VirtualRecords {
    /// Creates the files.
    ///
    /// # Errors
    /// If a file can't be created, or no link matches.
    pub fn start(options: RecordOptions, plan: &Plan) -> anyhow::Result<Self> {
        let log = Log::start(&options, plan, true)?;
        let (mut series, mut sampler) = (None, None);
        if let Some(wanted) = options.series {
            let (started, of_worker) = VirtualSeries::start(&wanted, &options.maker, plan)?;
            (series, sampler) = (Some((wanted.file, started)), Some(of_worker));
        }
        Ok(Self { log, series, sampler })
    }

    /// The observer of the worker.
    pub fn observer(&mut self, worker: u32) -> Option<Box<dyn Observer>> {
        self.log.0.as_mut()?.observer(worker)
    }

    /// The sampler of the worker; says also where the links of `plan` are, and that time begins at zero.
    pub fn begin(&mut self, plan: &Plan, links: &[LinkRef]) -> Option<Box<dyn Sampler>> {
        if let Some(log) = &self.log.0 {
            log.links().place(plan, links, 0..plan.links.len() as u32);
            log.begin(Nanos::ZERO);
        }
        self.sampler.take()
    }

    /// Says where links will be that join later: in the order in which they do, before the run.
    pub fn place(&self, plan: &Arc<Plan>, links: &[LinkRef], fresh: &[u32]) {
        if let Some(log) = &self.log.0 {
            log.links().place(plan, links, fresh.iter().copied());
        }
        if let Some((_, series)) = &self.series {
            series.follow(plan);
        }
    }

    /// Writes the rest after the run.
    pub fn finish(mut self) -> RecordSummary {
        let mut recorded = RecordSummary::default();
        self.log.finish(&mut recorded);
        if let Some((file, series)) = self.series {
            recorded.note_series(file, series.finish());
        }
        recorded
    }
}
