//! Reads captures, one frame ahead.

use super::error::{PcapError, in_full};
use longwire_packet::MAX_FRAME;
use longwire_random::pcapng::Nanoseconds;
use longwire_units::Nanos;
use longwire_wire::l3_offset;
use pcap_file::pcap::{PcapReader, PcapTsResolution};
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::{
    ENHANCED_PACKET_BLOCK, INTERFACE_DESCRIPTION_BLOCK, PACKET_BLOCK, RawBlock, SIMPLE_PACKET_BLOCK,
};
use pcap_file::pcapng::{PcapNgReader, PcapNgState};
use pcap_file::{DataLink, Endianness};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

/// Bytes read at a time, and the longest block of a pcapng file.
const BUFFER: usize = 1 << 20;
/// Shortest valid frame: an Ethernet header.
const MIN_FRAME: usize = 14;

/// One interface of a pcapng file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Select {
    /// By its name (`if_name`).
    Name(String),
    /// By its index in its section, from 0.
    Index(u32),
}

/// Statistics and anomalies of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputReport {
    /// Good frames read so far, including the one ahead.
    pub frames: u64,
    /// Of these, frames truncated by the capture: they have their original length.
    pub cut_short: u64,
    /// Skipped frames longer than the MTU or the pool allows: probably trains that the capturing machine's
    /// offloads had not split yet, or had merged.
    pub oversize: u64,
    /// Length of the longest of them in bytes.
    pub largest_oversize: u32,
    /// Skipped frames without a complete Ethernet header.
    pub too_short: u64,
    /// Frames with a time before their predecessor's or the epoch, which got that time instead.
    pub backwards: u64,
}

impl InputReport {
    /// Number of skipped frames.
    pub fn refused(&self) -> u64 {
        self.oversize + self.too_short
    }
}

enum Reader {
    Pcap(PcapReader<File>),
    Ng(PcapNgReader<Nanoseconds<File>>),
}

/// A frame in the file: its absolute time and original length; the bytes are in `Input::bytes`.
struct FileFrame {
    time: Nanos,
    original: u32,
    /// Number of bytes in the file, if they fit in the buffer.
    len: Option<usize>,
}

/// Why there is no next frame.
enum End {
    File,
    Damage(String),
    LinkType(String),
}

/// A capture being read.
pub(super) struct Input {
    path: PathBuf,
    reader: Reader,
    select: Option<Select>,
    /// Whether an interface that was selected has been seen.
    selected: bool,
    epoch: Nanos,
    mtu: Option<u32>,
    bytes: Box<[u8]>,
    /// Time, original length and number of captured bytes of the frame ahead.
    ahead: Option<(Nanos, u32, usize)>,
    last: Nanos,
    report: InputReport,
    damage: Option<PcapError>,
}

/// The absolute time (since 1970) of a capture's first frame; none if it has no frame.
///
/// # Errors
/// The same as for opening it as a port.
pub fn first_stamp(path: &Path, select: Option<Select>) -> Result<Option<Nanos>, PcapError> {
    let input = Input::open(path, select, Nanos::ZERO, None)?;
    Ok(input.ahead.map(|(time, ..)| time))
}

/// The names of the interfaces that a pcapng file describes before its first frame, in order; unnamed ones
/// are empty. A pcap file has one unnamed interface.
///
/// # Errors
/// The file can't be opened or is not a capture.
pub fn interfaces(path: &Path) -> Result<Vec<String>, PcapError> {
    let mut reader = match Reader::open(path)? {
        Reader::Pcap(_) => return Ok(vec![String::new()]),
        Reader::Ng(reader) => reader,
    };
    while let Some(Ok((block, _))) = reader.next_raw_block() {
        if matches!(block.type_, ENHANCED_PACKET_BLOCK | PACKET_BLOCK | SIMPLE_PACKET_BLOCK) {
            break;
        }
    }
    Ok((0..reader.interfaces().len()).map(|index| name(reader.interfaces(), index).into()).collect())
}

impl Reader {
    fn open(path: &Path) -> Result<Self, PcapError> {
        let system = |error: std::io::Error| PcapError::File { path: path.into(), what: error.to_string() };
        let mut file = File::open(path).map_err(system)?;
        let mut magic = [0; 4];
        let no_capture = |hint| PcapError::NoCapture { path: path.into(), hint };
        file.read_exact(&mut magic).map_err(|_| no_capture(": it is too short"))?;
        file.rewind().map_err(system)?;
        let header = |error: &dyn std::error::Error| PcapError::of(path, error);
        match magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => PcapNgReader::with_capacity(Nanoseconds::new(file), BUFFER)
                .map(Self::Ng)
                .map_err(|error| header(&error)),
            [0xa1, 0xb2, 0xc3, 0xd4]
            | [0xd4, 0xc3, 0xb2, 0xa1]
            | [0xa1, 0xb2, 0x3c, 0x4d]
            | [0x4d, 0x3c, 0xb2, 0xa1] => {
                PcapReader::with_capacity(file, BUFFER).map(Self::Pcap).map_err(|error| header(&error))
            }
            [0x1f, 0x8b, ..] => Err(no_capture(": it is compressed; unpack it with gunzip")),
            [0x28, 0xb5, 0x2f, 0xfd] => Err(no_capture(": it is compressed; unpack it with unzstd")),
            _ => Err(no_capture("")),
        }
    }
}

impl Input {
    /// Opens a capture and reads its first frame.
    pub(super) fn open(
        path: &Path,
        select: Option<Select>,
        epoch: Nanos,
        mtu: Option<u32>,
    ) -> Result<Self, PcapError> {
        let reader = Reader::open(path)?;
        let mut input = Self {
            path: path.into(),
            reader,
            select,
            selected: false,
            epoch,
            mtu,
            bytes: vec![0; MAX_FRAME].into(),
            ahead: None,
            last: Nanos::ZERO,
            report: InputReport::default(),
            damage: None,
        };
        input.check_pcap()?;
        input.advance();
        match &input.damage {
            // An error at the first frame makes the whole file useless.
            Some(error @ PcapError::LinkType { .. }) => return Err(error.clone()),
            Some(_) => {}
            None if input.ahead.is_none() => input.check_selected()?,
            None => {}
        }
        Ok(input)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn report(&self) -> InputReport {
        self.report
    }

    pub(super) fn damage(&self) -> Option<&PcapError> {
        self.damage.as_ref()
    }

    /// The frame ahead: arrival time on the engine's clock, original length, and bytes.
    pub(super) fn ahead(&self) -> Option<(Nanos, u32, &[u8])> {
        self.ahead.map(|(time, original, len)| (time, original, &self.bytes[..len]))
    }

    /// Advances to the next good frame, if any.
    pub(super) fn advance(&mut self) {
        self.ahead = None;
        while self.ahead.is_none() && self.damage.is_none() {
            match self.find() {
                Ok(found) => self.accept(&found),
                Err(End::File) => break,
                Err(End::Damage(what)) => {
                    self.damage = Some(PcapError::Damaged {
                        path: self.path.clone(),
                        frames: self.report.frames,
                        what,
                    });
                }
                Err(End::LinkType(link_type)) => {
                    self.damage = Some(PcapError::LinkType { path: self.path.clone(), link_type });
                }
            }
        }
    }

    /// Accepts a frame as the one ahead if it is valid.
    fn accept(&mut self, found: &FileFrame) {
        let Some(len) = found.len else { return self.oversize(found.original) };
        if len < MIN_FRAME {
            self.report.too_short += 1;
            return;
        }
        let ip_bytes = found.original.saturating_sub(l3_offset(&self.bytes[..len]) as u32);
        if self.mtu.is_some_and(|mtu| ip_bytes > mtu) || found.original as usize > MAX_FRAME {
            return self.oversize(found.original);
        }
        let time = found.time.since(self.epoch).max(self.last);
        if self.epoch + time != found.time {
            self.report.backwards += 1;
        }
        self.last = time;
        self.report.frames += 1;
        self.report.cut_short += u64::from(found.original as usize > len);
        self.ahead = Some((time, found.original, len));
    }

    fn oversize(&mut self, original: u32) {
        self.report.oversize += 1;
        self.report.largest_oversize = self.report.largest_oversize.max(original);
    }

    fn find(&mut self) -> Result<FileFrame, End> {
        match &mut self.reader {
            Reader::Pcap(reader) => find_pcap(reader, &mut self.bytes),
            Reader::Ng(reader) => find_ng(reader, self.select.as_ref(), &mut self.selected, &mut self.bytes),
        }
    }

    /// Checks the header of a pcap file.
    fn check_pcap(&self) -> Result<(), PcapError> {
        let Reader::Pcap(reader) = &self.reader else { return Ok(()) };
        let link_type = reader.header().datalink;
        if link_type != DataLink::ETHERNET {
            return Err(PcapError::LinkType { path: self.path.clone(), link_type: format!("{link_type:?}") });
        }
        match &self.select {
            None | Some(Select::Index(0)) => Ok(()),
            Some(select) => Err(PcapError::NoInterface {
                path: self.path.clone(),
                wanted: select.to_string(),
                known: "one without a name, as every pcap file".into(),
            }),
        }
    }

    fn check_selected(&self) -> Result<(), PcapError> {
        match (&self.reader, &self.select) {
            (Reader::Ng(reader), Some(select)) if !self.selected => {
                let names = (0..reader.interfaces().len()).map(|index| name(reader.interfaces(), index));
                let known = names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
                Err(PcapError::NoInterface {
                    path: self.path.clone(),
                    wanted: select.to_string(),
                    known: if known.is_empty() { "none".into() } else { known },
                })
            }
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for Select {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "\"{name}\""),
            Self::Index(index) => write!(f, "number {index}"),
        }
    }
}

impl Select {
    fn takes(&self, interfaces: &[Description], index: usize) -> bool {
        match self {
            Self::Name(wanted) => name(interfaces, index) == wanted,
            Self::Index(wanted) => index == *wanted as usize,
        }
    }
}

type Description = pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock<'static>;

fn name(interfaces: &[Description], index: usize) -> &str {
    let options = interfaces.get(index).map_or(&[][..], |interface| &interface.options);
    let name = options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfName(name) => Some(name.as_ref()),
        _ => None,
    });
    name.unwrap_or_default()
}

/// The next frame of a pcap file. Reads raw records, because the file's own limit (snaplen) is often wrong.
fn find_pcap(reader: &mut PcapReader<File>, bytes: &mut [u8]) -> Result<FileFrame, End> {
    let nanos = match reader.header().ts_resolution {
        PcapTsResolution::MicroSecond => 1000,
        PcapTsResolution::NanoSecond => 1,
    };
    let packet = match reader.next_raw_packet() {
        None => return Err(End::File),
        Some(Err(error)) => return Err(damage(&error)),
        Some(Ok(packet)) => packet,
    };
    let fraction = u64::from(packet.ts_frac) * nanos;
    if fraction >= 1_000_000_000 {
        return Err(End::Damage(format!("a time stamp has {} in its place for fractions", packet.ts_frac)));
    }
    let time = Nanos(u64::from(packet.ts_sec) * 1_000_000_000 + fraction);
    Ok(found(time, packet.orig_len, &packet.data, bytes))
}

/// The next frame of the selected interface of a pcapng file.
fn find_ng(
    reader: &mut PcapNgReader<Nanoseconds<File>>,
    select: Option<&Select>,
    selected: &mut bool,
    bytes: &mut [u8],
) -> Result<FileFrame, End> {
    loop {
        let (block, state) = match reader.next_raw_block() {
            None => return Err(End::File),
            Some(Err(error)) => return Err(damage(&error)),
            Some(Ok(next)) => next,
        };
        let takes = |index| select.is_none_or(|select| select.takes(state.interfaces(), index));
        match block.type_ {
            INTERFACE_DESCRIPTION_BLOCK => *selected |= takes(state.interfaces().len().saturating_sub(1)),
            ENHANCED_PACKET_BLOCK | PACKET_BLOCK => {
                let packet = NgPacket::read(&block, state)?;
                if takes(packet.interface as usize) {
                    let link_type = state.interfaces()[packet.interface as usize].linktype;
                    if link_type != DataLink::ETHERNET {
                        return Err(End::LinkType(format!("{link_type:?}")));
                    }
                    return Ok(found(packet.time, packet.original, packet.data, bytes));
                }
            }
            SIMPLE_PACKET_BLOCK if takes(0) => {
                return Err(End::Damage("a simple packet block has no time stamp".into()));
            }
            _ => {}
        }
    }
}

/// The fields of an enhanced (or obsolete) packet block. Parsed here, because the library allocates for
/// options.
struct NgPacket<'a> {
    interface: u32,
    time: Nanos,
    original: u32,
    data: &'a [u8],
}

impl<'a> NgPacket<'a> {
    fn read(block: &'a RawBlock<'_>, state: &PcapNgState) -> Result<Self, End> {
        let Some((header, rest)) = block.body.split_at_checked(20) else {
            return Err(End::Damage("a packet block is too short".into()));
        };
        let word = |index: usize| {
            let bytes = header[index * 4..].first_chunk().copied().unwrap_or_default();
            match state.endianness() {
                Endianness::Big => u32::from_be_bytes(bytes),
                Endianness::Little => u32::from_le_bytes(bytes),
            }
        };
        let interface = match (block.type_, state.endianness()) {
            (PACKET_BLOCK, Endianness::Big) => u32::from(u16::from_be_bytes([header[0], header[1]])),
            (PACKET_BLOCK, Endianness::Little) => u32::from(u16::from_le_bytes([header[0], header[1]])),
            _ => word(0),
        };
        let time = state.decode_timestamp(interface, word(1), word(2)).map_err(|error| damage(&error))?;
        let time = u64::try_from(time.as_nanos())
            .map_err(|_| End::Damage("a time stamp is after the year 2500".into()))?;
        let captured = word(3) as usize;
        let Some(data) = rest.get(..captured) else {
            return Err(End::Damage(format!("a packet block says {captured} bytes and has {}", rest.len())));
        };
        Ok(Self { interface, time: Nanos(time), original: word(4), data })
    }
}

fn found(time: Nanos, original: u32, data: &[u8], bytes: &mut [u8]) -> FileFrame {
    let place = bytes.get_mut(..data.len());
    let len = place.map(|place| place.copy_from_slice(data)).map(|()| data.len());
    // The original length is at least the captured one; some writers leave it 0.
    FileFrame { time, original: original.max(data.len() as u32), len }
}

fn damage(error: &dyn std::error::Error) -> End {
    End::Damage(in_full(error))
}
