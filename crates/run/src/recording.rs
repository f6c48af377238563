//! Captures of ports in real time: `--record`, all arrivals, with an interface for each port; and `--output`,
//! the frames that a port sends.

use crate::port_files::{Captures, PortFiles};
use longwire_block::{Port, PortError};
use longwire_packet::{Batch, Pool};
use longwire_port::driver::pcap::{PcapError, Recorder};
use longwire_port::intercepted::{InterceptedPort, Interceptor};
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// An ongoing recording.
pub struct Recording(Arc<Mutex<Recorder>>);

impl Recording {
    /// Creates the file and adds a recorder to each of `ports`, which are in the plan's order, one for each
    /// queue.
    ///
    /// # Errors
    /// If the file can't be created.
    pub fn start(
        file: &Path,
        plan: &Plan,
        ports: Vec<Box<dyn Port>>,
    ) -> Result<(Self, Vec<Box<dyn Port>>), PcapError> {
        let names: Vec<&str> = plan.ports.iter().map(|port| &*port.name).collect();
        let recorder = Arc::new(Mutex::new(Recorder::create(file, &names, epoch())?));
        let recorded = |(place, port)| {
            let recorder = Arc::clone(&recorder);
            Box::new(InterceptedPort::new(port, RecordingPort { place, recorder })) as Box<dyn Port>
        };
        let ports = plan.queue_places().zip(ports).map(recorded).collect();
        Ok((Self(recorder), ports))
    }

    /// Flushes the buffer.
    ///
    /// # Errors
    /// If a write failed, or frames could not be recorded.
    pub fn finish(self) -> anyhow::Result<()> {
        let mut recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorder.finish()?;
        let missed = recorder.missed();
        anyhow::ensure!(missed == 0, "{missed} frames are missing in the recording: engine.pool was full");
        Ok(())
    }
}

/// Recordings of ports, and the ports.
pub type Outputs = (Vec<Recording>, Vec<Box<dyn Port>>);

/// Adds a recorder of sent frames to each port with an interface for which `files` has an output. Other ports
/// write their own.
///
/// # Errors
/// If a file can't be created.
pub fn record_outputs(
    plan: &Plan,
    files: &PortFiles,
    ports: Vec<Box<dyn Port>>,
) -> Result<Outputs, PcapError> {
    let epoch = epoch();
    let recorder = |(port, captures): (&longwire_scenario::Port, &Captures)| {
        let file = captures.output.as_ref().filter(|_| plan.leads_outside(port))?;
        Some(Recorder::of_port(file, &port.name, epoch).map(|recorder| Arc::new(Mutex::new(recorder))))
    };
    let recorders = plan.ports.iter().zip(&files.captures).map(|of| recorder(of).transpose());
    let recorders: Vec<_> = recorders.collect::<Result<_, _>>()?;
    let intercepted = |(place, port): (u16, Box<dyn Port>)| match &recorders[usize::from(place)] {
        Some(recorder) => {
            Box::new(InterceptedPort::new(port, OutputRecorder { recorder: Arc::clone(recorder) }))
                as Box<dyn Port>
        }
        None => port,
    };
    let ports = plan.queue_places().zip(ports).map(intercepted).collect();
    Ok((recorders.into_iter().flatten().map(Recording).collect(), ports))
}

/// The absolute time (since 1970) of the engine's time 0.
fn epoch() -> Nanos {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = Nanos(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX));
    now.since(longwire_clock::monotonic())
}

/// Records the frames that a port sends, with the times at which they were due.
struct OutputRecorder {
    recorder: Arc<Mutex<Recorder>>,
}

impl Interceptor for OutputRecorder {
    fn describe(&self, port: &dyn Port) -> String {
        format!("{}, output recorded", port.describe())
    }

    fn transmit(&mut self, port: &mut dyn Port, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        for &handle in batch.as_slice() {
            let meta = pool.meta(handle);
            let due = Nanos(meta.leave().max(meta.arrival));
            recorder.record_at(pool, 0, handle, due);
        }
        drop(recorder);
        port.transmit(pool, batch)
    }
}

/// Records a port's arrivals.
struct RecordingPort {
    place: u16,
    recorder: Arc<Mutex<Recorder>>,
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
            let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
            for &handle in &batch.as_slice()[before..] {
                recorder.record(pool, self.place, handle);
            }
        }
        received
    }
}
