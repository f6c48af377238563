//! Records the arrivals of a run, for replay in virtual time, or the frames that a port sent.

use super::super::wire_frames::each_frame;
use super::error::PcapError;
use super::output::Output;
use longwire_packet::{Checksum, Handle, Pool};
use longwire_units::Nanos;
use std::fs::File;
use std::path::Path;

/// Writes frames to a pcapng file with an interface for each port, in call order, with the engine's
/// timestamps to the nanosecond. A port's frames are read back by its name.
pub struct Recorder {
    output: Output,
    epoch: Nanos,
    missed: u64,
}

impl Recorder {
    /// Begins the file at `path`, which is empty, with an interface for each of `ports`; `epoch` is the
    /// absolute time (since 1970) of the engine's time 0.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn begin(path: &Path, file: File, ports: &[&str], epoch: Nanos) -> Result<Self, PcapError> {
        Ok(Self { output: Output::begin_ng(path, file, ports)?, epoch, missed: 0 })
    }

    /// Begins the file at `path`, which is empty, for one port: pcapng if the name ends so, else pcap.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn of_port(path: &Path, file: File, port: &str, epoch: Nanos) -> Result<Self, PcapError> {
        Ok(Self { output: Output::begin(path, file, &[port])?, epoch, missed: 0 })
    }

    /// Notes that the run began at `start` on the engine's clock, before anything is recorded: a replay
    /// begins then, and not with the first frame.
    pub fn note_start(&mut self, start: Nanos) {
        self.output.note_start(self.epoch + start);
    }

    /// Records a packet at its arrival time. `port` is the index among the ports of the file.
    pub fn record(&mut self, pool: &mut Pool, port: u16, packet: Handle) {
        self.record_at(pool, port, packet, Nanos(pool.meta(packet).arrival));
    }

    /// Records a packet at `time` on the engine's clock, a train as its segments. The packet is not changed.
    /// A train, or a partial checksum, needs room in the pool for a copy.
    pub fn record_at(&mut self, pool: &mut Pool, port: u16, packet: Handle, time: Nanos) {
        let meta = *pool.meta(packet);
        let time = self.epoch + time;
        if !meta.is_train() && meta.checksum != Checksum::Partial as u8 {
            let written = self.output.write(u32::from(port), time, meta.wire_len, pool.data(packet));
            self.missed += u64::from(!written);
            return;
        }
        let Some(copy) = pool.duplicate(packet) else {
            self.missed += u64::from(meta.segments);
            return;
        };
        let Self { output, missed, .. } = self;
        let unmade = each_frame(pool, copy, |meta, data| {
            *missed += u64::from(!output.write(u32::from(port), time, meta.wire_len, data));
        });
        *missed += unmade;
        pool.free(copy);
    }

    /// Bytes of the file, besides what is at its beginning.
    pub fn written(&self) -> u64 {
        self.output.written()
    }

    /// Frames that were not recorded because the pool or the disk was full.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The first write error, after which nothing is written.
    pub fn damage(&self) -> Option<&PcapError> {
        self.output.damage()
    }

    /// Flushes the buffer, for those who read the file meanwhile.
    pub fn flush(&mut self) {
        self.output.flush();
    }

    /// Flushes the buffer at the end.
    ///
    /// # Errors
    /// The first write error, if any.
    pub fn finish(&mut self) -> Result<(), PcapError> {
        self.flush();
        self.output.damage().map_or(Ok(()), |error| Err(error.clone()))
    }
}
