//! The frames of a capture, read from any source of bytes.

use crate::pcapng::Nanoseconds;
use longwire_units::Nanos;
use pcap_file::DataLink;
use pcap_file::pcap::{PcapReader, PcapTsResolution};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::io::Read;
use thiserror::Error;

/// Bytes read at a time; no block of a pcapng file may be longer.
const BUFFER: usize = 1 << 20;

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
    /// Whether it was captured on an interface with Ethernet frames.
    pub is_ethernet: bool,
}

/// Why a capture can't be read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FramesError {
    /// There are not even the four bytes that say what it is.
    #[error("it is too short for a capture")]
    Short,
    /// It is not a capture.
    #[error("it is no capture ({0})")]
    Other(String),
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
    mut source: impl Read,
    each: &mut dyn FnMut(CapturedFrame<'_>) -> Result<(), String>,
) -> Result<(), FramesError> {
    let mut magic = [0; 4];
    source.read_exact(&mut magic).map_err(|_| FramesError::Short)?;
    let whole = magic.as_slice().chain(source);
    match magic {
        [0x0a, 0x0d, 0x0d, 0x0a] => read_ng(whole, each),
        _ => read_pcap(whole, each),
    }
}

fn read_pcap(
    source: impl Read,
    each: &mut dyn FnMut(CapturedFrame<'_>) -> Result<(), String>,
) -> Result<(), FramesError> {
    let mut reader = PcapReader::with_capacity(source, BUFFER).map_err(|error| other(&error))?;
    let unit = match reader.header().ts_resolution {
        PcapTsResolution::MicroSecond => Nanos(1000),
        PcapTsResolution::NanoSecond => Nanos(1),
    };
    let is_ethernet = reader.header().datalink == DataLink::ETHERNET;
    let mut good = 0;
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet.map_err(|error| damaged(good, &error))?;
        let time = Nanos(u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * unit.0);
        let original = packet.orig_len.max(packet.incl_len);
        let frame = CapturedFrame { time, unit, original, bytes: &packet.data, is_ethernet };
        each(frame).map_err(FramesError::Refused)?;
        good += 1;
    }
    Ok(())
}

fn read_ng(
    source: impl Read,
    each: &mut dyn FnMut(CapturedFrame<'_>) -> Result<(), String>,
) -> Result<(), FramesError> {
    let mut reader =
        PcapNgReader::with_capacity(Nanoseconds::new(source), BUFFER).map_err(|error| other(&error))?;
    let mut good = 0;
    while let Some(block) = reader.next_block() {
        let (block, state) = block.map_err(|error| damaged(good, &error))?;
        let (interface, time, original, bytes) = match &block {
            Block::EnhancedPacket(packet) => {
                (packet.interface_id, packet.timestamp, packet.original_len, &packet.data)
            }
            Block::Packet(packet) => {
                (u32::from(packet.interface_id), packet.timestamp, packet.original_len, &packet.data)
            }
            Block::SimplePacket(_) => return Err(FramesError::Timeless),
            _ => continue,
        };
        let interface = state.interfaces().get(interface as usize);
        let is_ethernet = interface.is_some_and(|interface| interface.linktype == DataLink::ETHERNET);
        let unit =
            interface.map_or(Nanos(1), |interface| interface.ts_resolution().decode_timestamp(1).into());
        let original = original.max(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        let frame =
            CapturedFrame { time: time.into(), unit: unit.max(Nanos(1)), original, bytes, is_ethernet };
        each(frame).map_err(FramesError::Refused)?;
        good += 1;
    }
    Ok(())
}

fn other(error: &dyn std::error::Error) -> FramesError {
    FramesError::Other(error.to_string())
}

fn damaged(good: u64, error: &dyn std::error::Error) -> FramesError {
    FramesError::Damaged { good, what: error.to_string() }
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
        assert_eq!(read(&[1, 2]).1, Err(FramesError::Short));
        assert!(matches!(read(&[7; 40]).1, Err(FramesError::Other(_))));
        let refused = read_frames(&whole[..], &mut |_| Err("enough".into()));
        assert_eq!(refused, Err(FramesError::Refused("enough".into())));
    }
}
