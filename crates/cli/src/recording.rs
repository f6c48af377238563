//! `--record`: everything that comes in during a run, as a capture with an interface for each port.

use longwire_block::{Port, PortError, PortStats, Spec, Stamp, Values};
use longwire_packet::{Batch, Pool};
use longwire_port::driver::pcap::{PcapError, Recorder};
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A recording that goes on.
pub struct Recording(Arc<Mutex<Recorder>>);

impl Recording {
    /// Makes the file and puts a recorder before each of `ports`, which are in the plan's order.
    ///
    /// # Errors
    /// If the file can't be made.
    pub fn start(
        file: &Path,
        plan: &Plan,
        ports: Vec<Box<dyn Port>>,
    ) -> Result<(Self, Vec<Box<dyn Port>>), PcapError> {
        let names: Vec<&str> = plan.ports.iter().map(|port| &*port.name).collect();
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now = Nanos(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX));
        let epoch = now.since(longwire_engine::clock::monotonic());
        let recorder = Arc::new(Mutex::new(Recorder::create(file, &names, epoch)?));
        let recorded = |(place, inner)| {
            let recorder = Arc::clone(&recorder);
            Box::new(RecordedPort { inner, place, recorder }) as Box<dyn Port>
        };
        let ports = (0u16..).zip(ports).map(recorded).collect();
        Ok((Self(recorder), ports))
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// If not all could be written, or frames could not be recorded.
    pub fn finish(self) -> anyhow::Result<()> {
        let mut recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorder.finish()?;
        let missed = recorder.missed();
        anyhow::ensure!(missed == 0, "{missed} frames are missing in the recording: engine.pool was full");
        Ok(())
    }
}

/// A port whose arrivals are recorded.
struct RecordedPort {
    inner: Box<dyn Port>,
    place: u16,
    recorder: Arc<Mutex<Recorder>>,
}

impl Port for RecordedPort {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn describe(&self) -> String {
        format!("{}, recorded", self.inner.describe())
    }

    fn stamp(&self) -> Stamp {
        self.inner.stamp()
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        let before = batch.as_slice().len();
        let received = self.inner.receive(pool, now, batch);
        if batch.as_slice().len() > before {
            let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
            for &handle in &batch.as_slice()[before..] {
                recorder.record(pool, self.place, handle);
            }
        }
        received
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        self.inner.transmit(pool, batch)
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        self.inner.next_arrival()
    }

    fn change_source(&mut self, now: Nanos, source: &str, spec: &'static Spec, values: &Values) -> bool {
        self.inner.change_source(now, source, spec, values)
    }

    fn readable_fd(&self) -> Option<i32> {
        self.inner.readable_fd()
    }

    fn stats(&self) -> PortStats {
        self.inner.stats()
    }

    fn finish(&mut self) -> Result<(), PortError> {
        self.inner.finish()
    }
}
