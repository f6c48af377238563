//! Times and lengths of the frames in a capture.

use super::replay::{MOST_BYTES, Packets};
use crate::pcapng::Nanoseconds;
use longwire_units::Nanos;
use pcap_file::pcap::{PcapReader, PcapTsResolution};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

/// Bytes read at a time; no block of a pcapng file may be longer.
const BUFFER: usize = 1 << 20;
/// Most packets kept, at 16 bytes each.
const MOST: usize = 1 << 26;

/// Reads a pcap or pcapng file.
///
/// # Errors
/// It can't be read, has another format, is damaged, or has too many frames or none.
pub(super) fn read(path: &Path) -> Result<Packets, String> {
    let named = |what: String| format!("{}: {what}", path.display());
    let mut file = File::open(path).map_err(|error| named(error.to_string()))?;
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(|_| named("it is too short for a capture".into()))?;
    file.rewind().map_err(|error| named(error.to_string()))?;
    let list = match magic {
        [0x0a, 0x0d, 0x0d, 0x0a] => read_ng(file),
        _ => read_pcap(file),
    };
    match list {
        Ok(list) if list.is_empty() => Err(named("there is no packet in it".into())),
        Ok(list) => Ok(Packets::new(list)),
        Err(what) => Err(named(what)),
    }
}

fn read_pcap(file: File) -> Result<Vec<(Nanos, u32)>, String> {
    let mut reader =
        PcapReader::with_capacity(file, BUFFER).map_err(|error| format!("it is no capture ({error})"))?;
    let unit = match reader.header().ts_resolution {
        PcapTsResolution::MicroSecond => 1000,
        PcapTsResolution::NanoSecond => 1,
    };
    let mut list = Vec::new();
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet.map_err(|error| damaged(list.len(), &error))?;
        let time = u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * unit;
        push(&mut list, Nanos(time), packet.orig_len.max(packet.incl_len))?;
    }
    Ok(list)
}

fn read_ng(file: impl Read) -> Result<Vec<(Nanos, u32)>, String> {
    let mut reader = PcapNgReader::with_capacity(Nanoseconds::new(file), BUFFER)
        .map_err(|error| format!("it is no capture ({error})"))?;
    let mut list = Vec::new();
    while let Some(block) = reader.next_block() {
        let (block, _) = block.map_err(|error| damaged(list.len(), &error))?;
        let (time, length) = match block {
            Block::EnhancedPacket(packet) => (packet.timestamp, packet.original_len),
            Block::Packet(packet) => (packet.timestamp, packet.original_len),
            Block::SimplePacket(_) => return Err("its packets have no times (simple packet blocks)".into()),
            _ => continue,
        };
        push(&mut list, time.into(), length)?;
    }
    Ok(list)
}

/// A frame beyond the maximum length is merged from several frames: only its time is used.
fn push(list: &mut Vec<(Nanos, u32)>, time: Nanos, length: u32) -> Result<(), String> {
    if list.len() == MOST {
        return Err(format!("it has more than {MOST} packets; cut it into pieces"));
    }
    list.push((time, length.clamp(1, MOST_BYTES)));
    Ok(())
}

fn damaged(good: usize, error: &dyn std::error::Error) -> String {
    format!("it is damaged after {good} good packets ({error}); cut it there")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
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
        let read = read_ng(&file[..]).unwrap();
        assert_eq!(read, [(Nanos(4_294_968), 60), (Nanos(2_500_000_000), 60), (Nanos(3_000_000_000), 60)]);
    }
}
