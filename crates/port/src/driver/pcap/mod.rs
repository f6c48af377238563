//! Captures as ports: frames arrive from a pcap or pcapng file at their recorded times, and sent frames go
//! into another.
//!
//! Times in files are absolute. Times in the engine count from an epoch that all files of a run share: the
//! start of the earliest (see [`start_of`]).

mod error;
mod input;
mod output;
mod recorder;

pub use error::PcapError;
pub use input::{InputReport, interfaces, start_of};
pub use longwire_random::frames::Select;
pub use recorder::Recorder;

use super::wire_frames::each_frame;
use input::Input;
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;
use output::Output;
use std::path::PathBuf;

/// The files of a port.
#[derive(Debug, Clone, Default)]
pub struct PcapPlan {
    /// The file from which frames arrive, if any.
    pub input: Option<PathBuf>,
    /// The interface of a pcapng file; default: all.
    pub interface: Option<Select>,
    /// The file for sent frames: pcapng if the name ends in `.pcapng`, else pcap, both with nanoseconds.
    /// Without it they are only counted.
    pub output: Option<PathBuf>,
    /// The absolute time (since 1970) that is time 0 of the engine.
    pub epoch: Nanos,
    /// Longest IP packet of the recorded wire, in bytes: longer ones are trains, and are skipped and
    /// reported. Default: the limit of the pool.
    pub mtu: Option<u32>,
}

/// A port on capture files.
pub struct PcapPort {
    name: String,
    input: Option<Input>,
    output: Option<Output>,
    epoch: Nanos,
    stats: PortStats,
}

impl PcapPort {
    /// Opens the files; the output is overwritten.
    ///
    /// # Errors
    /// A file can't be opened or created, is not a capture, or its first frame is unusable.
    pub fn open(name: &str, plan: &PcapPlan) -> Result<Self, PortError> {
        let failed = |error: PcapError| PortError::Failed { port: name.into(), what: error.to_string() };
        let open = |path: &PathBuf| Input::open(path, plan.interface.clone(), plan.epoch, plan.mtu);
        let input = plan.input.as_ref().map(open).transpose().map_err(failed)?;
        let create = |path: &PathBuf| Output::create(path, &[name]);
        let output = plan.output.as_ref().map(create).transpose().map_err(failed)?;
        Ok(Self { name: name.into(), input, output, epoch: plan.epoch, stats: PortStats::default() })
    }

    /// The report on the input so far; final once `next_arrival` is [`Nanos::NEVER`].
    pub fn input_report(&self) -> InputReport {
        self.input.as_ref().map(Input::report).unwrap_or_default()
    }

    /// Why reading or writing stopped early, if it did: a truncated or corrupt file, a full disk.
    pub fn damage(&self) -> Option<&PcapError> {
        let read = self.input.as_ref().and_then(Input::damage);
        read.or_else(|| self.output.as_ref().and_then(Output::damage))
    }

    fn result(&self, damage: Option<&PcapError>) -> Result<(), PortError> {
        damage.map_or(Ok(()), |error| {
            Err(PortError::Failed { port: self.name.clone(), what: error.to_string() })
        })
    }
}

impl Port for PcapPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        let from = self.input.as_ref().map(|input| format!(" from {}", input.path().display()));
        let to = self.output.as_ref().map(|output| format!(" to {}", output.path().display()));
        format!("pcap{}{}", from.unwrap_or_default(), to.unwrap_or_default())
    }

    fn stamp(&self) -> Stamp {
        Stamp::Source
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        let Some(input) = &mut self.input else { return Ok(()) };
        while !batch.is_full() {
            let Some((time, wire_len, data)) = input.ahead().filter(|&(time, ..)| time <= now) else { break };
            match pool.insert(data) {
                Some(handle) => {
                    let meta = pool.meta_mut(handle);
                    meta.arrival = time.0;
                    meta.wire_len = wire_len;
                    self.stats.in_frames += 1;
                    self.stats.in_bytes += u64::from(wire_len);
                    batch.push(handle);
                }
                None => self.stats.in_pool_full += 1,
            }
            input.advance();
        }
        Ok(())
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let Self { output, epoch, stats, .. } = self;
        for &handle in batch.as_slice() {
            stats.out_full += each_frame(pool, handle, |meta, data| {
                let time = *epoch + Nanos(meta.leave().max(meta.arrival));
                let written = output.as_mut().is_none_or(|output| output.write(0, time, meta.wire_len, data));
                if written {
                    stats.out_frames += 1;
                    stats.out_bytes += u64::from(meta.wire_len);
                } else {
                    stats.out_down += 1;
                }
            });
            pool.free(handle);
        }
        self.result(self.output.as_ref().and_then(Output::damage))
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        Some(self.input.as_ref().and_then(Input::ahead).map_or(Nanos::NEVER, |(time, ..)| time))
    }

    fn stats(&self) -> PortStats {
        PortStats { in_bad: self.input_report().refused(), ..self.stats }
    }

    fn finish(&mut self) -> Result<(), PortError> {
        if let Some(output) = &mut self.output {
            output.flush();
        }
        self.result(self.damage())
    }
}

#[cfg(test)]
mod tests;
