//! Pairs the packets of two captures by their fingerprints.

use crate::capture::{Capture, Record};
use thiserror::Error;

/// Longest time between the two captures' times of a packet that is accepted: the longest delay of a link.
const MOST_DELAY_NS: i128 = 100_000_000_000;
/// Largest drift between two clocks, in parts per million: those of computers differ by a hundredth of it.
pub const MOST_DRIFT_PPM: i64 = 10_000;
/// Longest time that a capture spans: ten days, within which floating point is exact to a nanosecond.
const MOST_SPAN_NS: u64 = 864_000_000_000_000;

/// A packet that was sent once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packet {
    /// When it was sent, in ns since the first packet of the capture.
    pub sent_ns: f64,
    /// Bits that a rate counts: the Ethernet frame with check sequence, at least 64 bytes.
    pub bits: f64,
    /// Its delay in ns, if it arrived: of the first copy.
    pub delay_ns: Option<f64>,
    /// How much later the second copy arrived, if there was one, in ns.
    pub copy_ns: Option<f64>,
}

/// The packets of a path, in the order in which they were sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Paired {
    /// Packets between the first and the last that arrived, both included.
    pub packets: Vec<Packet>,
    /// Unit of the times of both captures together, in ns.
    pub resolution_ns: f64,
    /// How many were found, and what is left out.
    pub counts: Counts,
}

/// Numbers of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets in the sender's capture.
    pub sent: u64,
    /// Packets in the receiver's capture.
    pub received: u64,
    /// Sent packets that were found among the received ones.
    pub paired: u64,
    /// Sent packets with a fingerprint that others have too: which of them arrived can't be known.
    pub ambiguous: u64,
    /// Received packets that were not sent.
    pub foreign: u64,
    /// Packets that arrived before they were sent: those of the other direction.
    pub backward: u64,
    /// Sent packets before the first and after the last that arrived: whether the receiver's capture was
    /// running can't be known.
    pub outside: u64,
    /// Lost packets that are longer than all that arrived: trains that an offload cut after the capture.
    pub oversize: u64,
    /// Received copies beyond the first.
    pub copies: u64,
}

/// Why two captures can't be paired.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PairError {
    /// None was found in both.
    #[error(
        "none of the {sent} packets sent is among the {received} received; give two captures of one path, \
         the sender's first, without address translation between them"
    )]
    Nothing {
        /// Packets in the sender's capture.
        sent: usize,
        /// Packets in the receiver's capture.
        received: usize,
    },
    /// All have a fingerprint that others have too.
    #[error(
        "each of the {0} packets that arrived was sent more than once with the same bytes, so that they \
         can't be distinguished; number the packets, or send them with IP identifications"
    )]
    Ambiguous(u64),
    /// Everything arrived before it was sent.
    #[error(
        "all {0} packets arrived before they were sent; exchange the files, or give --two-clocks if the \
         captures are from two machines"
    )]
    Backward(u64),
    /// The clocks differ.
    #[error(
        "packet {number} of the sender's capture took {seconds} s, and a link delays at most 100 s; give \
         --two-clocks if the captures are from two machines"
    )]
    Slow {
        /// Its number, from 1.
        number: usize,
        /// Its delay.
        seconds: u64,
    },
    /// It spans too long a time.
    #[error("the {0}'s capture spans more than ten days; give a part of it")]
    Long(&'static str),
    /// The clocks can't be compared.
    #[error(
        "the least delay changes by {0} ppm of the time, and clocks differ by {MOST_DRIFT_PPM} at most: the \
         path has changed, or the captures are not of one path"
    )]
    Drift(i64),
    /// Too few arrived.
    #[error("only {0} packets arrived; at least {FEWEST} are needed")]
    Few(u64),
}

/// The fewest packets of which anything is estimated.
const FEWEST: u64 = 8;

/// Whether the two captures have one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    /// Differences of times are delays.
    One,
    /// They differ by an unknown offset and drift.
    Two,
}

/// Pairs the packets of a sender's and a receiver's capture.
///
/// # Errors
/// They have nothing in common, or what they have can't be used.
pub fn pair(sent: &Capture, received: &Capture, clocks: Clocks) -> Result<Paired, PairError> {
    let origin = first_time(&sent.records, "sender")?;
    let start = first_time(&received.records, "receiver")?;
    let mut counts = Counts {
        sent: sent.records.len() as u64,
        received: received.records.len() as u64,
        ..Counts::default()
    };
    let arrivals = arrivals(&sent.records, &received.records, &mut counts);
    if !arrivals.iter().any(|arrival| matches!(arrival, Arrival::At { .. })) {
        let (sent, received) = (sent.records.len(), received.records.len());
        return Err(if counts.ambiguous > 0 && counts.foreign < counts.received {
            PairError::Ambiguous(counts.received - counts.foreign)
        } else {
            PairError::Nothing { sent, received }
        });
    }
    // Times of two clocks may be decades apart: their difference is taken before it becomes a float.
    let offset = if clocks == Clocks::Two { i128::from(start) - i128::from(origin) } else { 0 };
    let mut packets = Vec::with_capacity(arrivals.len());
    for (index, (record, arrival)) in sent.records.iter().zip(&arrivals).enumerate() {
        let mut packet = Packet {
            sent_ns: (record.time.0 - origin) as f64,
            bits: f64::from(record.bytes.saturating_add(4).max(64)) * 8.0,
            delay_ns: None,
            copy_ns: None,
        };
        match *arrival {
            Arrival::Ambiguous => continue,
            Arrival::Lost => {}
            Arrival::At { first, second } => {
                let at = |place: u32| received.records[place as usize].time.0;
                let delay = i128::from(at(first)) - i128::from(record.time.0) - offset;
                if clocks == Clocks::One && delay < 0 {
                    counts.backward += 1;
                    continue;
                }
                if clocks == Clocks::One && delay > MOST_DELAY_NS {
                    let seconds = u64::try_from(delay / 1_000_000_000).unwrap_or(u64::MAX);
                    return Err(PairError::Slow { number: index + 1, seconds });
                }
                packet.delay_ns = Some(delay as f64);
                packet.copy_ns = second.map(|second| (at(second) - at(first)) as f64);
            }
        }
        packets.push(packet);
    }
    finished(packets, counts, sent.resolution.max(received.resolution).0 as f64)
}

fn finished(mut packets: Vec<Packet>, mut counts: Counts, resolution_ns: f64) -> Result<Paired, PairError> {
    counts.paired = packets.iter().filter(|packet| packet.delay_ns.is_some()).count() as u64;
    if counts.paired == 0 {
        return Err(PairError::Backward(counts.backward));
    }
    trim(&mut packets, &mut counts);
    if counts.paired < FEWEST {
        return Err(PairError::Few(counts.paired));
    }
    Ok(Paired { packets, resolution_ns, counts })
}

/// The time of the first record.
fn first_time(records: &[Record], whose: &'static str) -> Result<u64, PairError> {
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return Err(PairError::Nothing { sent: 0, received: 0 });
    };
    if last.time.0 - first.time.0 > MOST_SPAN_NS {
        return Err(PairError::Long(whose));
    }
    Ok(first.time.0)
}

/// What became of a sent packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    /// It was not received.
    Lost,
    /// Others have its fingerprint.
    Ambiguous,
    /// Places of its first two copies among the received.
    At { first: u32, second: Option<u32> },
}

/// Finds each sent packet among the received, by merging both in the order of fingerprints.
fn arrivals(sent: &[Record], received: &[Record], counts: &mut Counts) -> Vec<Arrival> {
    let (outgoing, incoming) = (by_fingerprint(sent), by_fingerprint(received));
    let mut arrivals = vec![Arrival::Lost; sent.len()];
    let (mut at, mut from) = (0, 0);
    while at < outgoing.len() {
        let fingerprint = sent[outgoing[at] as usize].fingerprint;
        let same = |list: &[u32], of: &[Record]| {
            list.iter().take_while(|place| of[**place as usize].fingerprint == fingerprint).count()
        };
        let equals = same(&outgoing[at..], sent);
        while incoming.get(from).is_some_and(|place| received[*place as usize].fingerprint < fingerprint) {
            counts.foreign += 1;
            from += 1;
        }
        let copies = same(&incoming[from..], received);
        if equals > 1 {
            counts.ambiguous += equals as u64;
            outgoing[at..][..equals].iter().for_each(|place| arrivals[*place as usize] = Arrival::Ambiguous);
        } else if copies > 0 {
            counts.copies += copies as u64 - 1;
            let second = (copies > 1).then(|| incoming[from + 1]);
            arrivals[outgoing[at] as usize] = Arrival::At { first: incoming[from], second };
        }
        at += equals;
        from += copies;
    }
    counts.foreign += (incoming.len() - from) as u64;
    arrivals
}

/// Places of the records, sorted by fingerprint, those of one fingerprint in order of time.
fn by_fingerprint(records: &[Record]) -> Vec<u32> {
    let mut places: Vec<u32> = (0..records.len() as u32).collect();
    places.sort_unstable_by_key(|place| (records[*place as usize].fingerprint, *place));
    places
}

/// Leaves out what was sent before the first and after the last packet that arrived, and trains.
fn trim(packets: &mut Vec<Packet>, counts: &mut Counts) {
    let arrived = |packet: &Packet| packet.delay_ns.is_some();
    let before = packets.len();
    if let Some(last) = packets.iter().rposition(arrived) {
        packets.truncate(last + 1);
    }
    if let Some(first) = packets.iter().position(arrived) {
        packets.drain(..first);
    }
    counts.outside = (before - packets.len()) as u64;
    let longest =
        packets.iter().filter(|packet| arrived(packet)).map(|packet| packet.bits).fold(0.0, f64::max);
    let before = packets.len();
    packets.retain(|packet| arrived(packet) || packet.bits <= longest);
    counts.oversize = (before - packets.len()) as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Nanos;

    /// A capture of packets: marks and times.
    fn capture(packets: &[(u8, u64)]) -> Capture {
        let record = |&(mark, time): &(u8, u64)| {
            let mut frame = vec![mark; 60];
            frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
            frame[16..18].copy_from_slice(&46u16.to_be_bytes());
            Record::of(Nanos(time), 60 + u32::from(mark / 200) * 1000, &frame).unwrap()
        };
        Capture::new(packets.iter().map(record).collect())
    }

    fn numbered(marks: impl Iterator<Item = u8>, later: u64) -> Vec<(u8, u64)> {
        marks.map(|mark| (mark, 1_000_000 + u64::from(mark) * 1001 + later)).collect()
    }

    #[test]
    fn each_packet_finds_its_arrival() {
        let sent = numbered(0..20, 0);
        // 4 and 7 are lost, 9 comes twice, 99 is foreign.
        let mut received = numbered((0..20).filter(|mark| ![4, 7].contains(mark)), 500);
        received.extend([(9, 1_020_000), (99, 1_000_700)]);
        let paired = pair(&capture(&sent), &capture(&received), Clocks::One).unwrap();
        let delays: Vec<Option<f64>> = paired.packets.iter().map(|packet| packet.delay_ns).collect();
        assert_eq!((delays[0], delays[4], delays[7], delays[19]), (Some(500.0), None, None, Some(500.0)));
        assert_eq!(paired.packets[9].copy_ns, Some(1_020_000.0 - 1_009_509.0));
        let counts = paired.counts;
        assert_eq!((counts.sent, counts.received, counts.paired), (20, 20, 18));
        assert_eq!((counts.copies, counts.foreign, counts.ambiguous), (1, 1, 0));
        assert_eq!(paired.packets[3].bits, 512.0);
    }

    #[test]
    fn equal_packets_are_left_out_and_counted() {
        let mut sent = numbered(0..20, 0);
        sent.push((5, 1_019_500));
        let received = numbered(0..20, 500);
        let paired = pair(&capture(&sent), &capture(&received), Clocks::One).unwrap();
        assert_eq!((paired.counts.ambiguous, paired.counts.paired, paired.packets.len()), (2, 19, 19));
        let all: Vec<(u8, u64)> = (0..10).map(|n| (1, 100 + n)).collect();
        let error = pair(&capture(&all), &capture(&all), Clocks::One).unwrap_err();
        assert_eq!(error, PairError::Ambiguous(10));
    }

    #[test]
    fn the_ends_and_trains_are_not_judged() {
        let mut sent = numbered(0..20, 0);
        // Lost, and longer than what arrived.
        sent.push((200, 1_010_100));
        let received = numbered(3..18, 500);
        let counts = pair(&capture(&sent), &capture(&received), Clocks::One).unwrap().counts;
        assert_eq!((counts.outside, counts.oversize, counts.paired), (5, 1, 15));
    }

    #[test]
    fn the_other_direction_is_left_out() {
        let mut sent = numbered(0..20, 0);
        let mut received = numbered(0..20, 500);
        sent.extend(numbered(30..35, 900));
        received.extend(numbered(30..35, 100));
        let counts = pair(&capture(&sent), &capture(&received), Clocks::One).unwrap().counts;
        assert_eq!((counts.backward, counts.paired), (5, 20));
        let error = pair(&capture(&received), &capture(&numbered(0..20, 0)), Clocks::One).unwrap_err();
        assert_eq!(error, PairError::Backward(20));
    }

    #[test]
    fn clocks_may_be_decades_apart() {
        let sent = numbered(0..20, 0);
        let received = numbered(0..20, 1_700_000_000_000_000_000);
        let error = pair(&capture(&sent), &capture(&received), Clocks::One).unwrap_err();
        assert!(error.to_string().contains("--two-clocks"), "{error}");
        let paired = pair(&capture(&sent), &capture(&received), Clocks::Two).unwrap();
        assert!(paired.packets.iter().all(|packet| packet.delay_ns == Some(0.0)));
    }

    #[test]
    fn nothing_in_common_is_an_error() {
        let says = |sent: &[(u8, u64)], received: &[(u8, u64)]| {
            pair(&capture(sent), &capture(received), Clocks::One).unwrap_err().to_string()
        };
        assert!(says(&numbered(0..9, 0), &numbered(20..29, 0)).starts_with("none of the 9 packets"));
        assert!(says(&[], &numbered(20..29, 0)).starts_with("none of the 0"));
        assert!(says(&numbered(0..7, 0), &numbered(0..7, 9)).starts_with("only 7 packets"));
        let far = [(1, 0), (2, u64::MAX)];
        assert!(says(&far, &far).contains("sender's capture spans"));
    }
}
