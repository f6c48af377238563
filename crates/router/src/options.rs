//! IPv4 options in a router (RFC 791, 3.1; RFC 1812, 5.2.4 and 5.3.13; RFC 7126).

use crate::classify::ETHERNET;
use longwire_units::Nanos;
use longwire_wire::checksum::Sum;
use longwire_wire::{Ipv4Options, option_kind};

/// Bytes before the options.
const FIXED: usize = 20;
/// Maximum length of all options.
const MOST: usize = 40;

/// The invalid option of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadOption {
    /// Offset of the error in the header.
    Parameter(u8),
    /// Routes chosen by senders are not followed (RFC 7126, 4.3 and 4.4).
    SourceRoute,
}

/// Writes the router's `own` address and the time into the options that ask for it, in the header of a
/// forwarded packet. A packet with an invalid option stays as it is, because the error quotes it.
pub(crate) fn write_options(frame: &mut [u8], own: u32, now: Nanos) -> Result<(), BadOption> {
    let end = ETHERNET + usize::from(frame[ETHERNET] & 15) * 4;
    let header = &mut frame[ETHERNET..end];
    let mut options = [0; MOST];
    let written = &mut options[..header.len() - FIXED];
    written.copy_from_slice(&header[FIXED..]);
    fill(written, own, now)?;
    header[FIXED..].copy_from_slice(written);
    write_checksum(header);
    Ok(())
}

/// Writes the checksum of an IPv4 header.
pub(crate) fn write_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let checksum = Sum::ZERO.bytes(header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Checks the options of a packet for the router itself: source routes end here, too.
pub(crate) fn check_options(options: &[u8]) -> Result<(), BadOption> {
    let mut end = 0;
    for option in Ipv4Options::new(options) {
        let option = option.map_err(|_| bad_length(options, end))?;
        if is_source_route(option.kind) {
            return Err(BadOption::SourceRoute);
        }
        end = option.offset + option.len;
    }
    Ok(())
}

/// The options of an echo reply, with their length: record route and timestamps of the request, with this
/// host's address and time (RFC 1122, 3.2.2.6; RFC 1812, 4.3.3.6).
pub(crate) fn echoed(options: &[u8], own: u32, now: Nanos) -> Result<([u8; MOST], usize), BadOption> {
    let mut answer = [0; MOST];
    let filled = &mut answer[..options.len()];
    filled.copy_from_slice(options);
    fill(filled, own, now)?;
    let mut is_any = false;
    for option in Ipv4Options::new(options).flatten() {
        if matches!(option.kind, option_kind::RECORD_ROUTE | option_kind::TIMESTAMP) {
            is_any = true;
        } else {
            answer[option.offset..option.offset + option.len].fill(option_kind::NOTHING);
        }
    }
    Ok((answer, if is_any { options.len() } else { 0 }))
}

fn fill(options: &mut [u8], own: u32, now: Nanos) -> Result<(), BadOption> {
    let mut at = 0;
    while let Some(option) = Ipv4Options::new(&options[at..]).next() {
        let option = option.map_err(|_| bad_length(options, at))?;
        let start = at + option.offset;
        let bytes = &mut options[start..start + option.len];
        let (least, written) = match option.kind {
            kind if is_source_route(kind) => return Err(BadOption::SourceRoute),
            option_kind::RECORD_ROUTE => (3, record_route(bytes, own)),
            option_kind::TIMESTAMP => (4, stamp(bytes, own, now)),
            _ => (0, Some(())),
        };
        // The length, or else the pointer.
        let wrong = if option.len < least { start + 1 } else { start + 2 };
        written.ok_or(BadOption::Parameter((FIXED + wrong) as u8))?;
        at = start + option.len;
    }
    Ok(())
}

/// Error offset for an option at `at` with an impossible length: its length field, or its type if nothing
/// follows.
fn bad_length(options: &[u8], at: usize) -> BadOption {
    let fill = options[at..].iter().take_while(|byte| **byte == option_kind::NOTHING).count();
    let length = (at + fill + 1).min(options.len() - 1);
    BadOption::Parameter((FIXED + length) as u8)
}

const fn is_source_route(kind: u8) -> bool {
    matches!(kind, option_kind::LOOSE_ROUTE | option_kind::STRICT_ROUTE)
}

/// None if the option is malformed, or has some room but too little (RFC 791, 3.1); it may be full. Its third
/// byte points to the next free slot, counted from one.
fn record_route(option: &mut [u8], own: u32) -> Option<()> {
    let pointer = usize::from(*option.get(2)?);
    if pointer < 4 || !pointer.is_multiple_of(4) {
        return None;
    }
    if pointer > option.len() {
        return Some(());
    }
    option.get_mut(pointer - 1..pointer + 3)?.copy_from_slice(&own.to_be_bytes());
    option[2] += 4;
    Some(())
}

/// Milliseconds of the engine's clock, marked as not since midnight.
fn stamp(option: &mut [u8], own: u32, now: Nanos) -> Option<()> {
    const NOT_STANDARD: u32 = 1 << 31;
    const ADDRESSES: u8 = 1;
    const PRESCRIBED: u8 = 3;
    let (pointer, flags) = (usize::from(*option.get(2)?), *option.get(3)?);
    let kind = flags & 15;
    let size = match kind {
        0 => 4,
        ADDRESSES | PRESCRIBED => 8,
        _ => return None,
    };
    if pointer < 5 || !(pointer - 1).is_multiple_of(4) {
        return None;
    }
    if pointer > option.len() {
        // Counts an overflow; the counter ends at fifteen.
        option[3] = flags.checked_add(0x10)?;
        return Some(());
    }
    let place = option.get_mut(pointer - 1..pointer - 1 + size)?;
    if kind == PRESCRIBED && place[..4] != own.to_be_bytes() {
        return Some(());
    }
    if kind == ADDRESSES {
        place[..4].copy_from_slice(&own.to_be_bytes());
    }
    let time = (now.0 / 1_000_000) as u32 | NOT_STANDARD;
    place[size - 4..].copy_from_slice(&time.to_be_bytes());
    option[2] += size as u8;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{fix, frame_v4};

    /// The options of a header as rewritten by the router, or the error.
    fn options(bytes: &[u8]) -> Result<Vec<u8>, BadOption> {
        let mut frame = frame_v4([10, 0, 0, 9], [10, 0, 1, 9], 64, bytes);
        frame[14] = 0x45 + (bytes.len() / 4) as u8;
        fix(&mut frame);
        write_options(&mut frame, 0x0a00_0101, Nanos(7_000_000))?;
        assert_eq!(Sum::ZERO.bytes(&frame[14..34 + bytes.len()]).checksum(), 0);
        Ok(frame[34..].to_vec())
    }

    #[test]
    fn routes_are_recorded_while_there_is_room() {
        let record = |pointer| vec![1, 7, 11, pointer, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut first = record(8);
        (first[3], first[4..8].as_mut()).1.copy_from_slice(&[10, 0, 1, 1]);
        assert_eq!(options(&record(4)), Ok(first));
        let mut second = record(12);
        second[8..].copy_from_slice(&[10, 0, 1, 1]);
        assert_eq!(options(&record(8)), Ok(second));
        assert_eq!(options(&record(12)), Ok(record(12)), "full");
        for pointer in [0, 3, 5] {
            assert_eq!(options(&record(pointer)), Err(BadOption::Parameter(23)), "{pointer}");
        }
        let two_bytes_left = [7, 9, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(options(&two_bytes_left), Err(BadOption::Parameter(22)));
        assert_eq!(options(&[7, 2, 0, 0]), Err(BadOption::Parameter(21)), "no pointer");
    }

    #[test]
    fn time_stamps_are_written() {
        let stamped = [0x80, 0, 0, 7];
        let empty = |flags| vec![68, 12, 5, flags, 0, 0, 0, 0, 0, 0, 0, 0];
        let times = options(&empty(0)).unwrap();
        assert_eq!((times[2], &times[4..8]), (9, &stamped[..]));
        let both = options(&empty(1)).unwrap();
        assert_eq!((both[2], &both[4..8], &both[8..]), (13, &[10, 0, 1, 1][..], &stamped[..]));
        assert_eq!(options(&empty(3)), Ok(empty(3)), "prescribed to another");
        let full = [68, 4, 5, 0xe0];
        assert_eq!(options(&full), Ok(vec![68, 4, 5, 0xf0]));
        assert_eq!(options(&[68, 4, 5, 0xf0]), Err(BadOption::Parameter(22)), "sixteen found no room");
        let three_bytes_left = [68, 11, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(options(&three_bytes_left), Err(BadOption::Parameter(22)));
        assert_eq!(options(&[68, 3, 5, 0]), Err(BadOption::Parameter(21)), "no flags");
    }

    #[test]
    fn some_options_are_refused() {
        assert_eq!(options(&[131, 7, 4, 10, 0, 0, 1, 0]), Err(BadOption::SourceRoute));
        assert_eq!(options(&[1, 137, 3, 4]), Err(BadOption::SourceRoute));
        assert_eq!(options(&[7, 9, 4, 0]), Err(BadOption::Parameter(21)), "longer than the header");
        assert_eq!(options(&[148, 4, 0, 0]), Ok(vec![148, 4, 0, 0]), "router alert");
    }

    #[test]
    fn lengths_that_can_not_be_are_pointed_at() {
        // (options, error offset in the header)
        for (bytes, at) in [
            (&[7, 0, 4, 0][..], 21),
            (&[7, 1, 4, 0], 21),
            (&[1, 1, 7, 0], 23),
            (&[148, 4, 0, 0, 1, 68, 1, 0], 26),
            (&[7, 5, 4, 0], 21),
            // Nothing follows the type.
            (&[1, 1, 1, 7], 23),
            (&[148, 4, 0, 0, 1, 1, 1, 7], 27),
        ] {
            assert_eq!(options(bytes), Err(BadOption::Parameter(at)), "{bytes:?}");
            assert_eq!(check_options(bytes), Err(BadOption::Parameter(at)), "{bytes:?}");
        }
    }

    #[test]
    fn an_answer_has_the_options_that_are_to_come_back() {
        let echoed = |bytes: &[u8]| {
            let (answer, len) = echoed(bytes, 0x0a00_0101, Nanos(7_000_000))?;
            Ok::<_, BadOption>(answer[..len].to_vec())
        };
        assert_eq!(echoed(&[]), Ok(vec![]));
        assert_eq!(echoed(&[148, 4, 0, 0]), Ok(vec![]), "router alert alone");
        // Router alert becomes no-operations; the options behind it keep their offset.
        let both = [148, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 0];
        assert_eq!(echoed(&both), Ok(vec![1, 1, 1, 1, 7, 7, 8, 10, 0, 1, 1, 0]));
        let stamped = [68, 8, 9, 0, 0x80, 0, 0, 7];
        assert_eq!(echoed(&[68, 8, 5, 0, 0, 0, 0, 0]), Ok(stamped.to_vec()));
        assert_eq!(echoed(&[7, 7, 3, 0, 0, 0, 0, 0]), Err(BadOption::Parameter(22)), "no such pointer");
    }

    #[test]
    fn source_routes_end_at_the_router_too() {
        for bytes in [&[131, 7, 4, 10, 0, 0, 1, 0][..], &[1, 137, 3, 4], &[148, 4, 0, 0, 131, 3, 4, 0]] {
            assert_eq!(check_options(bytes), Err(BadOption::SourceRoute), "{bytes:?}");
        }
        for bytes in [&[][..], &[148, 4, 0, 0], &[7, 7, 4, 0, 0, 0, 0, 0], &[0, 131, 3, 4]] {
            assert_eq!(check_options(bytes), Ok(()), "{bytes:?}");
        }
    }
}
