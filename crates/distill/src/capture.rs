//! The packets of a capture: when, how long, and which.

use crate::fingerprint::Fingerprint;
use longwire_expression::Expression;
use longwire_random::frames::{FramesError, read_frames};
use longwire_units::Nanos;
use std::io::Read;
use thiserror::Error;

/// Most packets of a capture, at 32 bytes each.
pub const MOST_PACKETS: usize = 1 << 23;

/// A packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it was captured, on the clock of the capture.
    pub time: Nanos,
    /// Length of the frame in bytes, without check sequence.
    pub bytes: u32,
    /// Which packet it is.
    pub fingerprint: Fingerprint,
}

impl Record {
    /// The record of a frame that was `original` bytes long; none if it is not an IP packet.
    pub fn of(time: Nanos, original: u32, frame: &[u8]) -> Option<Self> {
        Self::of_part(time, original, frame, usize::MAX)
    }

    fn of_part(time: Nanos, original: u32, frame: &[u8], most: usize) -> Option<Self> {
        Some(Self { time, bytes: original, fingerprint: Fingerprint::of(frame, most)? })
    }
}

/// The IP packets of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// In order of their times.
    pub records: Vec<Record>,
    /// Unit of the times.
    pub resolution: Nanos,
    /// Frames that are not IP.
    pub not_ip: u64,
    /// Frames that the filter left out.
    pub filtered: u64,
    /// Frames with an earlier time than the one before.
    pub backwards: u64,
    /// Length of the shortest frame that the capture has cut, in bytes; none if it has cut none.
    pub shortest_cut: Option<usize>,
    /// Why it could not be read to its end. What was read before is used.
    pub damage: Option<String>,
}

/// Why a capture can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// It is not a capture.
    #[error("{0}; give a pcap or pcapng file")]
    Unreadable(String),
    /// It was made on an interface without Ethernet frames.
    #[error("its link type is not Ethernet; capture on one interface, not on \"any\"")]
    LinkType,
    /// It is too long.
    #[error("it has more than {MOST_PACKETS} packets; give a part of it, or choose a flow with a filter")]
    Long,
    /// It has no packet that could be used.
    #[error("there is no IP packet in it{0}")]
    Empty(&'static str),
}

/// What to read of captures.
#[derive(Debug, Clone, Copy)]
pub struct Selection<'a> {
    /// Frames that match; none for all.
    pub filter: Option<&'a Expression>,
    /// Bytes of a frame that count for its fingerprint.
    pub most_bytes: usize,
}

impl Capture {
    /// A capture of these records, whose times are in nanoseconds.
    pub fn new(records: Vec<Record>) -> Self {
        let backwards = records.windows(2).filter(|pair| pair[1].time < pair[0].time).count() as u64;
        let mut records = records;
        records.sort_by_key(|record| record.time);
        Self {
            records,
            resolution: Nanos(1),
            not_ip: 0,
            filtered: 0,
            backwards,
            shortest_cut: None,
            damage: None,
        }
    }

    /// Reads a pcap or pcapng file.
    ///
    /// # Errors
    /// It is no capture, has other frames than Ethernet, no IP packet, or too many.
    pub fn read(source: impl Read, selection: Selection<'_>) -> Result<Self, CaptureError> {
        let (mut records, mut not_ip, mut filtered) = (Vec::new(), 0, 0);
        let mut shortest_cut: Option<usize> = None;
        let (mut is_ethernet, mut is_long, mut resolution) = (true, false, Nanos(1));
        let read = read_frames(source, &mut |frame| {
            is_ethernet = frame.is_ethernet();
            resolution = resolution.max(frame.unit);
            is_long = records.len() == MOST_PACKETS;
            if !is_ethernet || is_long {
                return Err(String::new());
            }
            if selection.filter.is_some_and(|filter| !filter.matches(frame.bytes, frame.original)) {
                filtered += 1;
                return Ok(());
            }
            match Record::of_part(frame.time, frame.original, frame.bytes, selection.most_bytes) {
                Some(record) => {
                    records.push(record);
                    if frame.original as usize > frame.bytes.len() {
                        let shortest = shortest_cut.unwrap_or(usize::MAX);
                        shortest_cut = Some(shortest.min(frame.bytes.len()));
                    }
                }
                None => not_ip += 1,
            }
            Ok(())
        });
        let damage = match read {
            Ok(()) => None,
            Err(_) if !is_ethernet => return Err(CaptureError::LinkType),
            Err(_) if is_long => return Err(CaptureError::Long),
            Err(error @ FramesError::Damaged { .. }) => Some(error.to_string()),
            Err(error) => return Err(CaptureError::Unreadable(error.to_string())),
        };
        if records.is_empty() {
            let hint = if filtered > 0 { " that matches the filter" } else { "" };
            return Err(damage.map_or(CaptureError::Empty(hint), CaptureError::Unreadable));
        }
        Ok(Self { resolution, not_ip, filtered, shortest_cut, damage, ..Self::new(records) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// A pcap file of frames with their times in µs, original lengths and bytes.
    fn pcap(link_type: u32, frames: &[(u32, u32, &[u8])]) -> Vec<u8> {
        let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link_type]);
        for (time, original, bytes) in frames {
            file.extend(words(&[1, *time, bytes.len() as u32, *original]));
            file.extend(*bytes);
        }
        file
    }

    fn ip(mark: u8) -> Vec<u8> {
        let mut frame = vec![mark; 60];
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[16..18].copy_from_slice(&46u16.to_be_bytes());
        frame
    }

    const ALL: Selection<'_> = Selection { filter: None, most_bytes: usize::MAX };

    #[test]
    fn frames_are_sorted_and_counted() {
        let (a, b) = (ip(1), ip(2));
        let file = pcap(1, &[(7, 60, &a), (5, 1514, &b[..40]), (6, 60, &[9; 60])]);
        let capture = Capture::read(&file[..], ALL).unwrap();
        let times: Vec<u64> = capture.records.iter().map(|record| record.time.0).collect();
        assert_eq!(times, [1_000_005_000, 1_000_007_000]);
        assert_eq!(capture.records[0].bytes, 1514);
        assert_eq!((capture.resolution, capture.not_ip, capture.backwards), (Nanos(1000), 1, 1));
        assert_eq!((capture.shortest_cut, capture.damage), (Some(40), None));
    }

    #[test]
    fn a_filter_leaves_frames_out() {
        let (a, b) = (ip(1), ip(2));
        let file = pcap(1, &[(5, 60, &a), (6, 60, &b)]);
        let filter = Expression::parse("src host 2.2.2.2").unwrap();
        let capture = Capture::read(&file[..], Selection { filter: Some(&filter), ..ALL }).unwrap();
        assert_eq!((capture.records.len(), capture.filtered), (1, 1));
        let none = Expression::parse("arp").unwrap();
        let error = Capture::read(&file[..], Selection { filter: Some(&none), ..ALL }).unwrap_err();
        assert_eq!(error.to_string(), "there is no IP packet in it that matches the filter");
    }

    #[test]
    fn what_is_damaged_is_used_as_far_as_it_is_good() {
        let a = ip(1);
        let file = pcap(1, &[(5, 60, &a), (6, 60, &a)]);
        let capture = Capture::read(&file[..file.len() - 3], ALL).unwrap();
        assert!(capture.damage.unwrap().starts_with("it is damaged after 1 good packets"));
        assert_eq!(capture.records.len(), 1);
        let says = |file: &[u8]| Capture::read(file, ALL).unwrap_err().to_string();
        assert!(says(&file[..30]).contains("damaged after 0"), "{}", says(&file[..30]));
        assert!(says(&file[..2]).starts_with("it is no capture: it is too short"));
        assert!(says(&[7; 100]).starts_with("it is no capture"));
        assert!(says(&pcap(1, &[])).starts_with("there is no IP packet"));
        assert!(says(&pcap(113, &[(5, 60, &a)])).contains("not Ethernet"));
    }
}
