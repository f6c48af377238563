//! Captures of ports in real time: `--record`, all arrivals, with an interface for each port; and `--output`,
//! the frames that a port sends.

use crate::port_files::{Captures, PortFiles};
use crate::rotation::{FileMaker, Rotation};
use crate::threads::{EndingThread, lock};
use anyhow::Context;
use longwire_block::{Port, PortError};
use longwire_packet::{Batch, Pool};
use longwire_port::driver::pcap::{PcapError, Recorder};
use longwire_port::intercepted::{InterceptedPort, Interceptor};
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An ongoing recording.
pub struct Recording(Arc<Mutex<Capture>>);

/// A capture being written.
struct Capture {
    recorder: Recorder,
    file: CaptureFile,
    maker: FileMaker,
    /// Frames that are missing in files before this one.
    missed: u64,
    /// Why it is not rotated any more.
    error: Option<String>,
    /// Whether its recorder's failure is among the faults.
    is_damage_noted: bool,
}

/// What each file of a capture begins with.
struct CaptureFile {
    path: PathBuf,
    contents: CaptureContents,
    epoch: Nanos,
}

enum CaptureContents {
    /// Arrivals at all ports, in the order of the plan, and when the run has started on the engine's clock.
    Arrivals { ports: Vec<String>, start: Option<Nanos> },
    /// What a port sends.
    Output(String),
}

impl CaptureFile {
    fn begin(&self, file: File) -> Result<Recorder, PcapError> {
        match &self.contents {
            CaptureContents::Arrivals { ports, start } => {
                let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
                let mut recorder = Recorder::begin(&self.path, file, &ports, self.epoch)?;
                if let &Some(start) = start {
                    recorder.note_start(start);
                }
                Ok(recorder)
            }
            CaptureContents::Output(port) => Recorder::of_port(&self.path, file, port, self.epoch),
        }
    }
}

impl Capture {
    /// Creates the file.
    fn create(file: CaptureFile, maker: &FileMaker) -> anyhow::Result<Arc<Mutex<Self>>> {
        let created = maker.create(&file.path);
        let created = created.with_context(|| format!("can't write the capture {}", file.path.display()))?;
        let recorder = file.begin(created)?;
        Ok(Arc::new(Mutex::new(Self {
            recorder,
            file,
            maker: maker.clone(),
            missed: 0,
            error: None,
            is_damage_noted: false,
        })))
    }

    /// The recorder, of a new file if this one is full.
    fn recorder(&mut self) -> &mut Recorder {
        if let Some(rotation) = self.maker.full(self.recorder.written())
            && let Err(error) = self.rotate(rotation)
        {
            self.maker.rotation = None;
            let path = self.file.path.display();
            let fault = format!("{path} is not rotated any more: {error:#}");
            self.maker.faults.note(fault.clone());
            self.error = Some(fault);
        }
        &mut self.recorder
    }

    /// Notes the recorder's first failure, after frames were written.
    #[inline]
    fn note_damage(&mut self) {
        if let Some(damage) = self.recorder.damage().filter(|_| !self.is_damage_noted) {
            self.is_damage_noted = true;
            self.maker.faults.note(damage.to_string());
        }
    }

    /// Notes the start of the run in this file of arrivals, and in those that follow.
    fn note_start(&mut self, time: Nanos) {
        if let CaptureContents::Arrivals { start, .. } = &mut self.file.contents {
            *start = Some(time);
            self.recorder.note_start(time);
        }
    }

    /// Writes what is buffered, unless nothing is written any more.
    fn flush(&mut self) {
        if self.recorder.damage().is_none() {
            self.recorder.flush();
            self.note_damage();
        }
    }

    fn rotate(&mut self, rotation: Rotation) -> anyhow::Result<()> {
        self.recorder.finish()?;
        let next = self.file.begin(self.maker.next(rotation, &self.file.path)?)?;
        self.missed += std::mem::replace(&mut self.recorder, next).missed();
        Ok(())
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        self.recorder.finish()?;
        if let Some(error) = self.error.take() {
            anyhow::bail!(error);
        }
        let missed = self.missed + self.recorder.missed();
        anyhow::ensure!(missed == 0, "{missed} frames are missing in the recording: engine.pool was full");
        Ok(())
    }
}

impl Recording {
    /// Creates the file and adds a recorder to each of `ports`, which are in the plan's order, one for each
    /// queue.
    ///
    /// # Errors
    /// If the file can't be created.
    pub fn start(
        (path, maker): (&Path, &FileMaker),
        plan: &Plan,
        ports: Vec<Box<dyn Port>>,
    ) -> anyhow::Result<(Self, Vec<Box<dyn Port>>)> {
        let ports_of_plan = plan.ports.iter().map(|port| port.name.to_string()).collect();
        let contents = CaptureContents::Arrivals { ports: ports_of_plan, start: None };
        let capture = Capture::create(CaptureFile { path: path.into(), contents, epoch: epoch() }, maker)?;
        let recorded = |(place, port)| {
            let capture = Arc::clone(&capture);
            Box::new(InterceptedPort::new(port, RecordingPort { place, capture })) as Box<dyn Port>
        };
        let ports = plan.queue_places().zip(ports).map(recorded).collect();
        Ok((Self(capture), ports))
    }

    /// Notes when the run starts, before anything is recorded, and writes what the file begins with.
    pub fn note_start(&self, time: Nanos) {
        let mut capture = lock(&self.0);
        capture.note_start(time);
        capture.flush();
    }

    /// Flushes the buffer.
    ///
    /// # Errors
    /// If a write failed, or frames could not be recorded.
    pub fn finish(self) -> anyhow::Result<()> {
        lock(&self.0).finish()
    }
}

/// Longest time for which recorded frames are in memory only.
pub(crate) const FLUSH_TIME: Duration = Duration::from_secs(1);

/// A thread that writes what captures have buffered, for those who read them meanwhile: workers write full
/// buffers only, and wait no longer for this thread than for that.
pub(crate) type Flushing = EndingThread<()>;

/// Starts the thread; none without captures.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn start_flushing(captures: &[Recording]) -> io::Result<Option<Flushing>> {
    if captures.is_empty() {
        return Ok(None);
    }
    let captures: Vec<_> = captures.iter().map(|Recording(capture)| Arc::clone(capture)).collect();
    let work = move |ended: &Receiver<()>| {
        while ended.recv_timeout(FLUSH_TIME) == Err(RecvTimeoutError::Timeout) {
            captures.iter().for_each(|capture| lock(capture).flush());
        }
    };
    Flushing::start("captures", work).map(Some)
}

/// Recordings of ports, and the ports.
pub type Outputs = (Vec<Recording>, Vec<Box<dyn Port>>);

/// Adds a recorder of sent frames to each port with an interface for which `files` has an output. Other ports
/// write their own.
///
/// # Errors
/// If a file can't be created.
pub fn record_outputs(
    (files, maker): (&PortFiles, &FileMaker),
    plan: &Plan,
    ports: Vec<Box<dyn Port>>,
) -> anyhow::Result<Outputs> {
    let epoch = epoch();
    let recorder = |(port, captures): (&longwire_scenario::Port, &Captures)| {
        let path = captures.output.clone().filter(|_| plan.leads_outside(port))?;
        let contents = CaptureContents::Output(port.name.to_string());
        Some(Capture::create(CaptureFile { path, contents, epoch }, maker))
    };
    let recorders = plan.ports.iter().zip(&files.captures).map(|of| recorder(of).transpose());
    let recorders: Vec<_> = recorders.collect::<anyhow::Result<_>>()?;
    let intercepted = |(place, port): (u16, Box<dyn Port>)| match &recorders[usize::from(place)] {
        Some(capture) => {
            Box::new(InterceptedPort::new(port, OutputRecorder { capture: Arc::clone(capture) }))
                as Box<dyn Port>
        }
        None => port,
    };
    let ports = plan.queue_places().zip(ports).map(intercepted).collect();
    Ok((recorders.into_iter().flatten().map(Recording).collect(), ports))
}

/// The absolute time (since 1970) of the engine's time 0.
fn epoch() -> Nanos {
    longwire_clock::realtime().since(longwire_clock::monotonic())
}

/// Records the frames that a port sends, with the times at which they were due.
struct OutputRecorder {
    capture: Arc<Mutex<Capture>>,
}

impl Interceptor for OutputRecorder {
    fn describe(&self, port: &dyn Port) -> String {
        format!("{}, output recorded", port.describe())
    }

    fn transmit(&mut self, port: &mut dyn Port, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let mut capture = lock(&self.capture);
        for &handle in batch.as_slice() {
            let meta = pool.meta(handle);
            let due = Nanos(meta.leave().max(meta.arrival));
            capture.recorder().record_at(pool, 0, handle, due);
        }
        capture.note_damage();
        drop(capture);
        port.transmit(pool, batch)
    }
}

/// Records a port's arrivals.
struct RecordingPort {
    place: u16,
    capture: Arc<Mutex<Capture>>,
}

impl Interceptor for RecordingPort {
    fn describe(&self, port: &dyn Port) -> String {
        format!("{}, recorded", port.describe())
    }

    fn receive(
        &mut self,
        port: &mut dyn Port,
        pool: &mut Pool,
        now: Nanos,
        batch: &mut Batch,
    ) -> Result<(), PortError> {
        let before = batch.len();
        let received = port.receive(pool, now, batch);
        if batch.len() > before {
            let mut capture = lock(&self.capture);
            for &handle in &batch.as_slice()[before..] {
                capture.recorder().record(pool, self.place, handle);
            }
            capture.note_damage();
        }
        received
    }
}
