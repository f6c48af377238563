//! The frames of captures, read from any source of bytes.

use crate::pcapng::{LONGEST, Nanoseconds};
use longwire_units::Nanos;
use pcap_file::pcap::{PcapReader, PcapTsResolution};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::{
    Block, ENHANCED_PACKET_BLOCK, INTERFACE_DESCRIPTION_BLOCK, INTERFACE_STATISTIC_BLOCK, PACKET_BLOCK,
    RawBlock, SIMPLE_PACKET_BLOCK,
};
use pcap_file::pcapng::{PcapNgReader, PcapNgState};
use pcap_file::{DataLink, Endianness};
use std::error::Error;
use std::fmt;
use std::io::{Chain, Cursor, ErrorKind, Read};
use thiserror::Error;

/// Bytes read at a time; no block of a pcapng file that is used may be longer.
const BUFFER: usize = LONGEST as usize;

/// Comment of the statistics block (pcapng) whose `isb_starttime` is the start of the run in which a file was
/// recorded. Statistics of other programs may begin at any time.
pub const RUN_START: &str = "longwire: the start of the run";

/// A frame of a capture.
#[derive(Debug, Clone, Copy)]
pub struct CapturedFrame<'a> {
    /// When it was captured, since 1970.
    pub time: Nanos,
    /// Unit of the times of its interface.
    pub unit: Nanos,
    /// Its length on the wire in bytes; at least that of the captured part.
    pub original: u32,
    /// The captured part.
    pub bytes: &'a [u8],
    /// What frames of its interface are.
    pub link_type: DataLink,
}

impl CapturedFrame<'_> {
    /// Whether it was captured on an interface with Ethernet frames.
    pub fn is_ethernet(&self) -> bool {
        self.link_type == DataLink::ETHERNET
    }
}

/// One interface of a pcapng file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Select {
    /// By its name (`if_name`).
    Name(String),
    /// By its index in its section, from 0.
    Index(u32),
}

impl Select {
    fn takes(&self, interfaces: &[Interface], index: usize) -> bool {
        match self {
            Self::Name(wanted) => name(interfaces, index) == wanted,
            Self::Index(wanted) => index == *wanted as usize,
        }
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "\"{name}\""),
            Self::Index(index) => write!(f, "number {index}"),
        }
    }
}

/// Why a capture can't be read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FramesError {
    /// It is not a capture; with what it may be instead.
    #[error("it is no capture{0}")]
    NoCapture(&'static str),
    /// It begins like a capture, and its header is wrong.
    #[error("it is no capture ({0})")]
    Header(String),
    /// Its packets have no times.
    #[error("its packets have no times (simple packet blocks)")]
    Timeless,
    /// It is truncated or corrupt: earlier frames are good.
    #[error("it is damaged after {good} good packets ({what}); cut it there")]
    Damaged {
        /// Frames before the damage.
        good: u64,
        /// Description of the damage.
        what: String,
    },
    /// The reader of the frames has refused one.
    #[error("{0}")]
    Refused(String),
}

/// Passes each frame of a pcap or pcapng file to `each`, in the file's order.
///
/// # Errors
/// It has another format, is damaged, or `each` refuses a frame. What was passed before is good.
pub fn read_frames(
    source: impl Read,
    each: &mut dyn FnMut(CapturedFrame<'_>) -> Result<(), String>,
) -> Result<(), FramesError> {
    let refused = FrameReader::new(source, None)?.find(|frame| each(frame).err())?;
    refused.map_or(Ok(()), |why| Err(FramesError::Refused(why)))
}

type Interface = InterfaceDescriptionBlock<'static>;
/// The first bytes, which say what it is, and the others.
type Whole<R> = Chain<Cursor<[u8; 4]>, R>;

enum Format<R: Read> {
    Pcap(PcapReader<Whole<R>>),
    Ng(PcapNgReader<Nanoseconds<Whole<R>>>),
}

/// A pcap or pcapng file, read frame by frame.
pub struct FrameReader<R: Read> {
    format: Format<R>,
    select: Option<Select>,
    is_selected: bool,
    good: u64,
    run_start: Option<Nanos>,
}

impl<R: Read> FrameReader<R> {
    /// Reads the beginning of a file, for the frames of one interface or of all.
    ///
    /// # Errors
    /// It is no capture.
    pub fn new(mut source: R, select: Option<Select>) -> Result<Self, FramesError> {
        let no_capture = |hint| Err(FramesError::NoCapture(hint));
        let mut magic = [0; 4];
        if source.read_exact(&mut magic).is_err() {
            return no_capture(": it is too short");
        }
        let whole = Cursor::new(magic).chain(source);
        let header = |error: &dyn Error| FramesError::Header(with_causes(error));
        let format = match magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => PcapNgReader::with_capacity(Nanoseconds::new(whole), BUFFER)
                .map(Format::Ng)
                .map_err(|error| header(&error))?,
            [0xa1, 0xb2, 0xc3, 0xd4]
            | [0xd4, 0xc3, 0xb2, 0xa1]
            | [0xa1, 0xb2, 0x3c, 0x4d]
            | [0x4d, 0x3c, 0xb2, 0xa1] => {
                PcapReader::with_capacity(whole, BUFFER).map(Format::Pcap).map_err(|error| header(&error))?
            }
            [0x1f, 0x8b, ..] => return no_capture(": it is compressed; unpack it with gunzip"),
            [0x28, 0xb5, 0x2f, 0xfd] => return no_capture(": it is compressed; unpack it with unzstd"),
            _ => return no_capture(""),
        };
        // A pcap file has one interface, which has no name.
        let is_selected = matches!((&format, &select), (Format::Pcap(_), None | Some(Select::Index(0))));
        Ok(Self { format, select, is_selected, good: 0, run_start: None })
    }

    /// Passes the frames of the selected interface to `take`, in the file's order, until it returns
    /// something. None at the end of the file.
    ///
    /// # Errors
    /// The file is damaged, or its packets have no times. What was passed before is good.
    pub fn find<T>(
        &mut self,
        take: impl FnMut(CapturedFrame<'_>) -> Option<T>,
    ) -> Result<Option<T>, FramesError> {
        let Self { format, select, is_selected, good, run_start } = self;
        match format {
            Format::Pcap(_) if !*is_selected => Ok(None),
            Format::Pcap(reader) => find_pcap(reader, good, take),
            Format::Ng(reader) => find_ng(reader, (select.as_ref(), is_selected), (good, run_start), take),
        }
    }

    /// Whether the selected interface has been seen, or any if all are.
    pub fn has_selected(&self) -> bool {
        self.is_selected
    }

    /// When the run began in which Longwire has recorded the file, since 1970, if that has been read: it
    /// comes before the first frame.
    pub fn run_start(&self) -> Option<Nanos> {
        self.run_start
    }

    /// The interface that was selected.
    pub fn selected(&self) -> Option<&Select> {
        self.select.as_ref()
    }

    /// The link type of a pcap file, which is that of all its frames.
    pub fn link_type(&self) -> Option<DataLink> {
        match &self.format {
            Format::Pcap(reader) => Some(reader.header().datalink),
            Format::Ng(_) => None,
        }
    }

    /// The names of the interfaces described so far in this section, in order; unnamed ones are empty.
    pub fn interfaces(&self) -> Vec<&str> {
        match &self.format {
            Format::Pcap(_) => vec![""],
            Format::Ng(reader) => {
                (0..reader.interfaces().len()).map(|index| name(reader.interfaces(), index)).collect()
            }
        }
    }
}

fn name(interfaces: &[Interface], index: usize) -> &str {
    let options = interfaces.get(index).map_or(&[][..], |interface| &interface.options);
    let name = options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfName(name) => Some(name.as_ref()),
        _ => None,
    });
    name.unwrap_or_default()
}

/// Reads raw records, because the file's own limit (snaplen) is often wrong.
fn find_pcap<T>(
    reader: &mut PcapReader<impl Read>,
    good: &mut u64,
    mut take: impl FnMut(CapturedFrame<'_>) -> Option<T>,
) -> Result<Option<T>, FramesError> {
    let unit = match reader.header().ts_resolution {
        PcapTsResolution::MicroSecond => Nanos(1000),
        PcapTsResolution::NanoSecond => Nanos(1),
    };
    let link_type = reader.header().datalink;
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet.map_err(|error| damaged(*good, with_causes(&error)))?;
        let fraction = u64::from(packet.ts_frac) * unit.0;
        if fraction >= 1_000_000_000 {
            let what = format!("a time stamp has {} in its place for fractions", packet.ts_frac);
            return Err(damaged(*good, what));
        }
        let time = Nanos(u64::from(packet.ts_sec) * 1_000_000_000 + fraction);
        let original = original(packet.orig_len, &packet.data);
        *good += 1;
        if let Some(found) = take(CapturedFrame { time, unit, original, bytes: &packet.data, link_type }) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn find_ng<T>(
    reader: &mut PcapNgReader<impl Read>,
    (select, is_selected): (Option<&Select>, &mut bool),
    (good, run_start): (&mut u64, &mut Option<Nanos>),
    mut take: impl FnMut(CapturedFrame<'_>) -> Option<T>,
) -> Result<Option<T>, FramesError> {
    while let Some(next) = reader.next_raw_block() {
        let (block, state) = next.map_err(|error| damaged(*good, with_causes(&error)))?;
        let takes = |index| select.is_none_or(|select| select.takes(state.interfaces(), index));
        match block.type_ {
            INTERFACE_DESCRIPTION_BLOCK => *is_selected |= takes(state.interfaces().len().saturating_sub(1)),
            ENHANCED_PACKET_BLOCK | PACKET_BLOCK => {
                let (interface, frame) = ng_packet(&block, state).map_err(|what| damaged(*good, what))?;
                if takes(interface) {
                    *good += 1;
                    if let Some(found) = take(frame) {
                        return Ok(Some(found));
                    }
                }
            }
            INTERFACE_STATISTIC_BLOCK if run_start.is_none() => *run_start = start_of_run(block, state),
            SIMPLE_PACKET_BLOCK if takes(0) => return Err(FramesError::Timeless),
            _ => {}
        }
    }
    Ok(None)
}

/// The start of the run, if these statistics say so.
fn start_of_run(block: RawBlock<'_>, state: &PcapNgState) -> Option<Nanos> {
    let Block::InterfaceStatistics(statistics) = block.try_into_block(state).ok()? else { return None };
    let (mut is_marked, mut start) = (false, None);
    for option in &statistics.options {
        match option {
            InterfaceStatisticsOption::Common(CommonOption::Comment(comment)) => {
                is_marked |= *comment == RUN_START;
            }
            InterfaceStatisticsOption::IsbStartTime(time) => start = u64::try_from(time.as_nanos()).ok(),
            _ => {}
        }
    }
    start.filter(|_| is_marked).map(Nanos)
}

/// The interface and the frame of an enhanced (or obsolete) packet block. Parsed here, because the library
/// allocates for options.
fn ng_packet<'a>(block: &'a RawBlock<'_>, state: &PcapNgState) -> Result<(usize, CapturedFrame<'a>), String> {
    let (header, rest) = block.body.split_at_checked(20).ok_or("a packet block is too short")?;
    let word = |index: usize| {
        let bytes = header[index * 4..].first_chunk().copied().unwrap_or_default();
        match state.endianness() {
            Endianness::Big => u32::from_be_bytes(bytes),
            Endianness::Little => u32::from_le_bytes(bytes),
        }
    };
    let index = match (block.type_, state.endianness()) {
        (PACKET_BLOCK, Endianness::Big) => u32::from(u16::from_be_bytes([header[0], header[1]])),
        (PACKET_BLOCK, Endianness::Little) => u32::from(u16::from_le_bytes([header[0], header[1]])),
        _ => word(0),
    };
    // Fails for an interface that the file has not described.
    let time = state.decode_timestamp(index, word(1), word(2)).map_err(|error| with_causes(&error))?;
    let time =
        u64::try_from(time.as_nanos()).map_err(|_| "a time stamp is after the year 2500".to_owned())?;
    let captured = word(3) as usize;
    let bytes = rest
        .get(..captured)
        .ok_or_else(|| format!("a packet block says {captured} bytes and has {}", rest.len()))?;
    let interface = &state.interfaces()[index as usize];
    let unit = Nanos::from(interface.ts_resolution().decode_timestamp(1)).max(Nanos(1));
    let (time, original, link_type) = (Nanos(time), original(word(4), bytes), interface.linktype);
    Ok((index as usize, CapturedFrame { time, unit, original, bytes, link_type }))
}

/// The original length is at least the captured one; some writers leave it 0.
fn original(written: u32, captured: &[u8]) -> u32 {
    written.max(u32::try_from(captured.len()).unwrap_or(u32::MAX))
}

fn damaged(good: u64, what: String) -> FramesError {
    FramesError::Damaged { good, what }
}

/// An error of a capture file with all its causes, in one line.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && io.kind() == ErrorKind::UnexpectedEof
        {
            return "it is cut short, or a length in it is wrong".into();
        }
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn read(file: &[u8]) -> (Vec<(Nanos, u32)>, Result<(), FramesError>) {
        let mut list = Vec::new();
        let result = read_frames(file, &mut |frame| {
            list.push((frame.time, frame.original));
            Ok(())
        });
        (list, result)
    }

    /// 10⁻¹² s and 2⁻³² s, which are finer than a nanosecond, beside 2⁻¹⁰ s.
    #[test]
    fn clocks_may_be_finer_than_a_nanosecond() {
        let mut file = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
        for resolution in [12, 0x80 | 32, 0x80 | 10] {
            file.extend(words(&[1, 32, 1, 0, 1 << 16 | 9, resolution, 0, 32]));
        }
        for (interface, high, low) in [(0, 1, 999), (1, 2, 1 << 31), (2, 0, 3 << 10)] {
            file.extend(words(&[6, 32, interface, high, low, 0, 60, 32]));
        }
        let (list, result) = read(&file);
        assert_eq!(result, Ok(()));
        assert_eq!(list, [(Nanos(4_294_968), 60), (Nanos(2_500_000_000), 60), (Nanos(3_000_000_000), 60)]);
    }

    /// 2 MiB of secrets between two packets.
    #[test]
    fn long_blocks_of_other_things_are_left_out() {
        let interface = words(&[1, 20, 1, 0, 20]);
        let packet = |micros| words(&[6, 32, 0, 0, micros, 0, 60, 32]);
        let length = (2 << 20) + 20;
        let secrets =
            [words(&[10, length, 0x544c_534b, 2 << 20]), vec![7; 2 << 20], words(&[length])].concat();
        let section = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
        let file = [section, interface, packet(1), secrets, packet(2)].concat();
        let both = [(Nanos(1000), 60), (Nanos(2000), 60)];
        assert_eq!(read(&file), (both.to_vec(), Ok(())));
        // Cut within the secrets.
        let (list, result) = read(&file[..file.len() - 40]);
        assert_eq!(list, both[..1]);
        assert!(matches!(result, Err(FramesError::Damaged { good: 1, .. })), "{result:?}");
    }

    #[test]
    fn frames_before_the_damage_are_good() {
        let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
        file.extend(words(&[1, 2, 4, 60, 0]));
        let whole = file.clone();
        file.extend([1, 2, 3]);
        assert_eq!(read(&whole), (vec![(Nanos(1_000_002_000), 60)], Ok(())));
        let (list, result) = read(&file);
        assert_eq!(list.len(), 1);
        assert!(matches!(result, Err(FramesError::Damaged { good: 1, .. })), "{result:?}");
        assert_eq!(read(&[1, 2]).1, Err(FramesError::NoCapture(": it is too short")));
        assert_eq!(read(&[7; 40]).1, Err(FramesError::NoCapture("")));
        assert!(matches!(read(&whole[..20]).1, Err(FramesError::Header(_))));
        let refused = read_frames(&whole[..], &mut |_| Err("enough".into()));
        assert_eq!(refused, Err(FramesError::Refused("enough".into())));
    }
}
