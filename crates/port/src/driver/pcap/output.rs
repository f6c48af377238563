//! Writes captures with nanoseconds.

use super::error::PcapError;
use longwire_random::frames::RUN_START;
use longwire_units::Nanos;
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapTsResolution, PcapWriter};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use std::borrow::Cow;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Larger than any frame; the value that tcpdump writes.
const SNAPLEN: u32 = 262_144;
const BUFFER: usize = 1 << 18;

enum Writer {
    Pcap(PcapWriter<BufWriter<File>>),
    Ng(PcapNgWriter<BufWriter<File>>),
}

/// A capture being written.
pub(super) struct Output {
    path: PathBuf,
    writer: Writer,
    /// Bytes written, besides what is at the beginning.
    written: u64,
    damage: Option<PcapError>,
}

impl Output {
    /// Creates the file: pcapng with these interfaces if its name ends in `.pcapng`, else pcap.
    pub(super) fn create(path: &Path, interfaces: &[&str]) -> Result<Self, PcapError> {
        Self::begin(path, File::create(path).map_err(|error| PcapError::of(path, &error))?, interfaces)
    }

    /// Begins the file, which is empty, in the format that its name says.
    pub(super) fn begin(path: &Path, file: File, interfaces: &[&str]) -> Result<Self, PcapError> {
        let is_ng = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pcapng"));
        if is_ng { Self::begin_ng(path, file, interfaces) } else { Self::begin_pcap(path, file) }
    }

    /// Begins a pcapng file, which is empty, with these interfaces.
    pub(super) fn begin_ng(path: &Path, file: File, interfaces: &[&str]) -> Result<Self, PcapError> {
        let writer = PcapNgWriter::new(BufWriter::with_capacity(BUFFER, file));
        let mut writer = writer.map_err(|error| PcapError::of(path, &error))?;
        for &name in interfaces {
            let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, SNAPLEN);
            interface.options.push(InterfaceDescriptionOption::IfName(Cow::Borrowed(name)));
            interface.options.push(InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO));
            writer.write_block(&interface.into_block()).map_err(|error| PcapError::of(path, &error))?;
        }
        Ok(Self { path: path.into(), writer: Writer::Ng(writer), written: 0, damage: None })
    }

    fn begin_pcap(path: &Path, file: File) -> Result<Self, PcapError> {
        let header = PcapHeader {
            snaplen: SNAPLEN,
            ts_resolution: PcapTsResolution::NanoSecond,
            ..Default::default()
        };
        let writer = PcapWriter::with_header(BufWriter::with_capacity(BUFFER, file), header);
        let writer = writer.map_err(|error| PcapError::of(path, &error))?;
        Ok(Self { path: path.into(), writer: Writer::Pcap(writer), written: 0, damage: None })
    }

    /// Writes the absolute time at which the run began, to a pcapng file in which there is no frame yet.
    pub(super) fn note_start(&mut self, start: Nanos) {
        let Writer::Ng(writer) = &mut self.writer else { return };
        if writer.state().interfaces().is_empty() {
            // Statistics are of an interface, and nothing can arrive.
            return;
        }
        let timestamp = start.as_duration();
        let options = vec![
            InterfaceStatisticsOption::IsbStartTime(timestamp),
            InterfaceStatisticsOption::Common(CommonOption::Comment(Cow::Borrowed(RUN_START))),
        ];
        let block = InterfaceStatisticsBlock { interface_id: 0, timestamp, options };
        let result = writer.write_block(&block.into_block()).map(drop).map_err(Into::into);
        self.note(result);
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written, besides what is at the beginning of the file.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// The first error, after which nothing is written.
    pub(super) fn damage(&self) -> Option<&PcapError> {
        self.damage.as_ref()
    }

    /// Writes a frame with its absolute time and original length. False if this or an earlier write failed.
    pub(super) fn write(&mut self, interface: u32, time: Nanos, original_len: u32, data: &[u8]) -> bool {
        if self.damage.is_some() {
            return false;
        }
        let timestamp = time.as_duration();
        let result: Result<usize, Box<dyn Error>> = match &mut self.writer {
            Writer::Pcap(writer) => match PcapPacket::new(timestamp, original_len, data) {
                Ok(packet) => writer.write_packet(&packet).map_err(Into::into),
                Err(error) => Err(error.into()),
            },
            Writer::Ng(writer) => {
                let data = Cow::Borrowed(data);
                let block = EnhancedPacketBlock {
                    interface_id: interface,
                    timestamp,
                    original_len,
                    data,
                    options: vec![],
                };
                writer.write_block(&block.into_block()).map_err(Into::into)
            }
        };
        self.written += result.as_ref().map_or(0, |length| *length as u64);
        self.note(result.map(drop))
    }

    /// Flushes the buffer.
    pub(super) fn flush(&mut self) {
        let result: Result<(), Box<dyn Error>> = match &mut self.writer {
            Writer::Pcap(writer) => writer.flush().map_err(Into::into),
            Writer::Ng(writer) => writer.get_mut().flush().map_err(Into::into),
        };
        self.note(result);
    }

    fn note(&mut self, result: Result<(), Box<dyn Error>>) -> bool {
        if let Err(error) = &result
            && self.damage.is_none()
        {
            self.damage = Some(PcapError::incomplete(&self.path, error.as_ref()));
        }
        result.is_ok()
    }
}
