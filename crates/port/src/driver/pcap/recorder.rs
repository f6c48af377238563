//! A record of what came in during a run, to be replayed in virtual time, or of what a port sent.

use super::super::wire_frames::each_frame;
use super::error::PcapError;
use super::output::Output;
use longwire_packet::{Checksum, Handle, Pool};
use longwire_units::Nanos;
use std::path::Path;

/// Writes arrivals into a pcapng file with one interface for each port, in the order in which they are given,
/// with the engine's own stamps to the nanosecond. A port's arrivals are read back by its name.
pub struct Recorder {
    output: Output,
    epoch: Nanos,
    missed: u64,
}

impl Recorder {
    /// Makes the file with an interface for each of `ports`; `epoch` is the absolute time (since 1970) of the
    /// engine's time 0.
    ///
    /// # Errors
    /// The file can't be made.
    pub fn create(path: &Path, ports: &[&str], epoch: Nanos) -> Result<Self, PcapError> {
        Ok(Self { output: Output::create_ng(path, ports)?, epoch, missed: 0 })
    }

    /// Makes a capture of one port: pcapng if the name ends so, else pcap.
    ///
    /// # Errors
    /// The file can't be made.
    pub fn of_port(path: &Path, port: &str, epoch: Nanos) -> Result<Self, PcapError> {
        Ok(Self { output: Output::create(path, &[port])?, epoch, missed: 0 })
    }

    /// Records a packet at its arrival, by a port given by its place among `ports`.
    pub fn record(&mut self, pool: &mut Pool, port: u16, packet: Handle) {
        self.record_at(pool, port, packet, Nanos(pool.meta(packet).arrival));
    }

    /// Records a packet at `time` on the engine's clock. A train is written as its
    /// segments, all at that time; the packet itself is left as it is. Needs room in the pool for a copy if
    /// the packet is a train or its checksum unfinished.
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

    /// Frames that could not be recorded: the pool was full or the disk.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The first error of writing, now or before.
    pub fn finish(&mut self) -> Result<(), PcapError> {
        self.output.flush();
        self.output.damage().map_or(Ok(()), |error| Err(error.clone()))
    }
}
