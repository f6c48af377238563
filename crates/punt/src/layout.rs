//! Layout of the memory shared with a level above: version 1. `PROTOCOL.md`, beside this crate's manifest,
//! has the tables.
//!
//! All numbers are little-endian. The first page has the parameters for the process and the indices of both
//! rings, each alone in its line; then come the lines of the upward ring, then those of the downward ring.

use crate::ring::{LINE, Line, RingLayout};
use longwire_units::Nanos;

/// The first word of the memory, and of a hello: the bytes `LONGWIRE`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"LONGWIRE");
/// The version of the layout.
pub const VERSION: u32 = 1;
/// Bytes of a packet that are sent to a process without a request.
pub const HEAD: usize = 64;
/// Most bytes of a frame.
pub const MAX_FRAME: usize = longwire_packet::MAX_FRAME;
/// Most lines of a record.
pub const MAX_LINES: u64 = 1 + (MAX_FRAME / LINE) as u64;

/// Words of the first page.
pub(crate) const PAGE_WORDS: usize = 512;
/// Offset, in words, of Longwire's write index in the upward ring.
pub(crate) const UP_HEAD: usize = 8;
/// Offset of the process's read index there.
pub(crate) const UP_TAIL: usize = 16;
/// Offset of the process's write index in the downward ring.
pub(crate) const DOWN_HEAD: usize = 24;
/// Offset of Longwire's read index there.
pub(crate) const DOWN_TAIL: usize = 32;
/// Non-zero while the process sleeps, or is about to, and must be woken.
pub(crate) const ASLEEP: usize = 40;
/// Zero until Longwire has ended the attachment: then the reason, a [`crate::CutReason`] plus one.
pub(crate) const ENDED: usize = 48;
/// The router's time, in the same clock as the packets' times, at its last poll.
pub(crate) const NOW: usize = 56;

/// Sizes of both rings, in lines: powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingSizes {
    /// Of the upward ring.
    pub up: u32,
    /// Of the downward ring.
    pub down: u32,
}

impl RingSizes {
    /// At least these numbers of lines, and twice the longest record.
    pub(crate) fn at_least(up: u32, down: u32) -> Self {
        let lines = |wanted: u32| wanted.clamp(2 * MAX_LINES as u32, 1 << 20).next_power_of_two();
        Self { up: lines(up), down: lines(down) }
    }

    /// Words of the memory.
    pub(crate) const fn words(self) -> usize {
        PAGE_WORDS + (self.up as usize + self.down as usize) * (LINE / 8)
    }

    pub(crate) const fn up_place(self) -> RingLayout {
        RingLayout { head: UP_HEAD, tail: UP_TAIL, first: PAGE_WORDS, lines: self.up as u64 }
    }

    pub(crate) const fn down_place(self) -> RingLayout {
        let first = PAGE_WORDS + self.up as usize * (LINE / 8);
        RingLayout { head: DOWN_HEAD, tail: DOWN_TAIL, first, lines: self.down as u64 }
    }

    /// The first line, which the process reads and Longwire never does.
    pub(crate) const fn first_line(self) -> Line {
        let (up, down) = (self.up_place(), self.down_place());
        let version = VERSION as u64;
        [
            MAGIC,
            version,
            up.first as u64 * 8,
            up.lines,
            down.first as u64 * 8,
            down.lines,
            MAX_FRAME as u64,
            0,
        ]
    }

    /// Parses the first line as a client does. None if the version differs, or it is invalid.
    pub(crate) fn read(line: &Line, words: usize) -> Option<Self> {
        let size = |lines: u64| u32::try_from(lines).ok().filter(|lines| lines.is_power_of_two());
        let sizes = Self { up: size(line[3])?, down: size(line[5])? };
        (*line == sizes.first_line() && sizes.words() <= words).then_some(sizes)
    }
}

/// Classification of a packet that goes up, so that it need not be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Class {
    /// The packet's forwarder.
    pub fid: u32,
    /// The reason for going up, in the node's numbering.
    pub class: u16,
    /// A hash of the flow; 0 if the node computes none.
    pub flow: u64,
    /// Offset of the network header in the frame; 0 if unknown.
    pub network: u16,
    /// Offset of the transport header; 0 if unknown or absent.
    pub transport: u16,
}

/// Metadata of a packet for a level above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// The token for the verdict. Tokens count up.
    pub token: u64,
    /// Arrival time, in nanoseconds of the engine's clock: the machine's monotonic one.
    pub time: u64,
    /// Time at which the default forwarder takes it without a verdict.
    pub expires: u64,
    /// Number of its input port in the plan.
    pub in_port: u16,
    /// Length of the frame in bytes.
    pub len: u32,
    /// Number of segments, if it is a train.
    pub segments: u16,
    /// Its classification.
    pub class: Class,
}

/// Record types of the upward ring.
pub(crate) mod up {
    /// A packet: its facts, then its first bytes.
    pub const PACKET: u16 = 1;
    /// Requested bytes of a packet.
    pub const BODY: u16 = 2;
}

/// Record types of the downward ring.
pub(crate) mod down {
    /// A verdict, then bytes that replace the first of the frame.
    pub const VERDICT: u16 = 1;
    /// A request for bytes of a packet.
    pub const FETCH: u16 = 2;
    /// A new packet.
    pub const NEW: u16 = 3;
    /// A packet is returned without a verdict, because too little time is left.
    pub const RETURN: u16 = 4;
}

/// Decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Drop it.
    Drop,
    /// Leave it to the default forwarder, with its changes.
    Pass,
    /// Send it out of a port of the node.
    Send {
        /// The port's number in the plan.
        port: u16,
        /// The band of the first link's queue, unless a filter of that link chooses another.
        band: Option<u8>,
    },
}

/// The beginning of every record: its type, its lines, and the number of bytes after its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    pub kind: u16,
    pub lines: u16,
    pub bytes: u32,
}

impl Opening {
    pub const fn new(kind: u16, bytes: usize) -> Self {
        Self { kind, lines: 1 + bytes.div_ceil(LINE) as u16, bytes: bytes as u32 }
    }

    pub const fn word(self) -> u64 {
        self.kind as u64 | (self.lines as u64) << 16 | (self.bytes as u64) << 32
    }

    pub const fn read(word: u64) -> Self {
        Self { kind: word as u16, lines: (word >> 16) as u16, bytes: (word >> 32) as u32 }
    }

    /// Whether the lengths are consistent with each other and with the available lines.
    pub const fn can_be(self, available: u64) -> bool {
        let lines = 1 + (self.bytes as u64).div_ceil(LINE as u64);
        self.lines as u64 == lines && lines <= available && lines <= MAX_LINES
    }
}

impl Facts {
    /// Whether less than a quarter of the packet's time is left at `now`. An overloaded process that returns
    /// such packets finishes the others in time; one that handles them is late with all.
    #[inline]
    pub const fn is_hopeless(&self, now: Nanos) -> bool {
        self.expires.saturating_sub(now.0) < self.expires.saturating_sub(self.time) / 4
    }

    pub(crate) fn line(&self, opening: Opening) -> Line {
        let Class { fid, class, flow, network, transport } = self.class;
        [
            opening.word(),
            self.token,
            self.time,
            self.expires,
            u64::from(self.in_port) | u64::from(class) << 16 | u64::from(fid) << 32,
            flow,
            u64::from(self.len) | u64::from(self.segments) << 32,
            u64::from(network) | u64::from(transport) << 16,
        ]
    }

    pub(crate) fn read(line: &Line) -> Self {
        let class = Class {
            fid: (line[4] >> 32) as u32,
            class: (line[4] >> 16) as u16,
            flow: line[5],
            network: line[7] as u16,
            transport: (line[7] >> 16) as u16,
        };
        Self {
            token: line[1],
            time: line[2],
            expires: line[3],
            in_port: line[4] as u16,
            len: line[6] as u32,
            segments: (line[6] >> 32) as u16,
            class,
        }
    }
}

impl Verdict {
    const NO_BAND: u64 = 0xffff;

    /// Action, port and band in one word.
    pub(crate) fn word(self) -> u64 {
        match self {
            Self::Drop => 0,
            Self::Pass => 1,
            Self::Send { port, band } => {
                2 | u64::from(port) << 16 | band.map_or(Self::NO_BAND, u64::from) << 32
            }
        }
    }

    /// None if it is invalid.
    pub(crate) fn read(word: u64) -> Option<Self> {
        let (port, band) = ((word >> 16) as u16, word >> 32 & 0xffff);
        match word as u16 {
            0 => Some(Self::Drop),
            1 => Some(Self::Pass),
            2 if band == Self::NO_BAND => Some(Self::Send { port, band: None }),
            2 => u8::try_from(band).ok().map(|band| Self::Send { port, band: Some(band) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_and_verdicts_are_read_as_written() {
        let class = Class {
            fid: 0xdead_beef,
            class: 0x1234,
            flow: 0x0123_4567_89ab_cdef,
            network: 14,
            transport: 34,
        };
        let facts = Facts { token: 5, time: 6, expires: 7, in_port: 0xfe, len: 1514, segments: 3, class };
        let line = facts.line(Opening::new(up::PACKET, 64));
        assert_eq!(line[0], 1 | 2 << 16 | 64 << 32);
        assert_eq!(line[4], 0xdead_beef_1234_00fe);
        assert_eq!((Facts::read(&line), Opening::read(line[0])), (facts, Opening::new(up::PACKET, 64)));
        let send = |port, band| Verdict::Send { port, band };
        for verdict in
            [Verdict::Drop, Verdict::Pass, send(7, None), send(0xfeff, Some(0)), send(0, Some(254))]
        {
            assert_eq!(Verdict::read(verdict.word()), Some(verdict));
        }
        assert_eq!((Verdict::read(3), Verdict::read(2 | 256 << 32)), (None, None));
    }

    #[test]
    fn a_packet_is_hopeless_in_the_last_quarter_of_its_time() {
        let class = Class { fid: 0, class: 0, flow: 0, network: 0, transport: 0 };
        let facts = Facts { token: 0, time: 100, expires: 500, in_port: 0, len: 60, segments: 1, class };
        for (now, expected) in
            [(0, false), (100, false), (400, false), (401, true), (500, true), (9999, true)]
        {
            assert_eq!(facts.is_hopeless(Nanos(now)), expected, "at {now}");
        }
    }

    #[test]
    fn the_protocol_has_the_indices_where_they_are() {
        let page = include_str!("../PROTOCOL.md");
        let rows = [
            (UP_HEAD, "router | lines written into the ring that leads up"),
            (UP_TAIL, "process | lines read of it"),
            (DOWN_HEAD, "process | lines written into the ring that leads down"),
            (DOWN_TAIL, "router | lines read of it"),
            (ASLEEP, "process | 1 while it sleeps"),
            (ENDED, "router | 0, or why the process was cut off"),
            (NOW, "router | its time, when it last looked"),
            (PAGE_WORDS, "router | the ring that leads up"),
        ];
        for (word, text) in rows {
            assert!(page.contains(&format!("| {} | {text}", word * 8)), "{text} at {}", word * 8);
        }
        assert_eq!(RingSizes::at_least(0, 0).up_place().first, PAGE_WORDS);
    }

    #[test]
    fn lengths_that_disagree_cannot_be() {
        // (bytes, lines, available lines, validity)
        let table = [
            (0, 1, 1, true),
            (64, 2, 2, true),
            (65, 2, 9, false),
            (65, 3, 3, true),
            (65, 3, 2, false),
            (0, 0, 5, false),
            (u32::MAX, 1, 5, false),
            (MAX_FRAME as u32, MAX_LINES as u16, 5000, true),
            (MAX_FRAME as u32 + 1, MAX_LINES as u16 + 1, 5000, false),
        ];
        for (bytes, lines, available, can_be) in table {
            let opening = Opening { kind: 1, lines, bytes };
            assert_eq!(opening.can_be(available), can_be, "{opening:?} of {available}");
        }
    }

    #[test]
    fn sizes_leave_room_for_the_longest_records() {
        let sizes = RingSizes::at_least(0, 5000);
        assert_eq!(sizes, RingSizes { up: 4096, down: 8192 });
        assert_eq!(RingSizes::read(&sizes.first_line(), sizes.words()), Some(sizes));
        assert_eq!(RingSizes::read(&sizes.first_line(), sizes.words() - 1), None);
        let mut other = sizes.first_line();
        other[1] = 2;
        assert_eq!(RingSizes::read(&other, sizes.words()), None);
    }
}
