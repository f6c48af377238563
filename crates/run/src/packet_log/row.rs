//! A row of a packet log: a packet's event in fixed columns.

/// Bytes of an encoded row.
pub const ROW_BYTES: usize = 56;
/// A time that is unknown or does not apply.
pub const NO_TIME: u64 = u64::MAX;
/// The link of an event outside links.
pub const NO_LINK: u32 = u32::MAX;
/// The reason of an event without one.
pub const NO_REASON: u8 = u8::MAX;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The packet arrived at the link.
    Arrive,
    /// It left the link.
    Leave,
    /// It was dropped.
    Drop,
    /// CE was set on it.
    Mark,
    /// A filter sent it to another link.
    Steer,
    /// Not an event of a packet: events before this one were lost.
    Lost,
}

impl Event {
    /// All events, by number.
    pub const ALL: [Self; 6] = [Self::Arrive, Self::Leave, Self::Drop, Self::Mark, Self::Steer, Self::Lost];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arrive => "arrive",
            Self::Leave => "leave",
            Self::Drop => "drop",
            Self::Mark => "mark",
            Self::Steer => "steer",
            Self::Lost => "lost",
        }
    }

    /// The event of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }
}

/// One row. Times are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// When it happened.
    pub time: u64,
    /// When the packet arrived at the link, or [`NO_TIME`].
    pub arrival: u64,
    /// When it left the link, or [`NO_TIME`].
    pub leave: u64,
    /// The packet's number; for [`Event::Lost`], the number of lost events.
    pub id: u64,
    /// Bytes in the link's queue at its arrival.
    pub queue_bytes: u64,
    /// Bytes of its frame, all segments together.
    pub length: u32,
    /// The link's number, or [`NO_LINK`].
    pub link: u32,
    /// Segments of a train that the event concerns.
    pub segments: u16,
    /// What happened.
    pub event: Event,
    /// The number of the reason, or [`NO_REASON`].
    pub reason: u8,
}

impl Row {
    /// An event outside links, of a packet of which nothing else is known, or of no packet.
    pub const fn outside(event: Event, time: u64, id: u64) -> Self {
        Self {
            time,
            arrival: NO_TIME,
            leave: NO_TIME,
            id,
            queue_bytes: 0,
            length: 0,
            link: NO_LINK,
            segments: 0,
            event,
            reason: NO_REASON,
        }
    }

    /// Encodes the row, which `data` bytes of the frame follow.
    pub fn encode(&self, data: u32) -> [u8; ROW_BYTES] {
        let mut bytes = [0; ROW_BYTES];
        let words = [self.time, self.arrival, self.leave, self.id, self.queue_bytes];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes[40..44].copy_from_slice(&self.length.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.link.to_le_bytes());
        bytes[48..50].copy_from_slice(&self.segments.to_le_bytes());
        (bytes[50], bytes[51]) = (self.event as u8, self.reason);
        bytes[52..56].copy_from_slice(&data.to_le_bytes());
        bytes
    }

    /// Decodes a row and the number of bytes after it; none if the event is unknown.
    pub fn decode(bytes: &[u8; ROW_BYTES]) -> Option<(Self, u32)> {
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let short = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let row = Self {
            time: long(0),
            arrival: long(8),
            leave: long(16),
            id: long(24),
            queue_bytes: long(32),
            length: short(40),
            link: short(44),
            segments: u16::from_le_bytes([bytes[48], bytes[49]]),
            event: *Event::ALL.get(usize::from(bytes[50]))?,
            reason: bytes[51],
        };
        Some((row, short(52)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_names_are_read_back() {
        for (number, event) in Event::ALL.into_iter().enumerate() {
            assert_eq!(event as usize, number);
            assert_eq!(Event::of_name(event.name()), Some(event));
            let row = Row {
                time: 1,
                arrival: 2,
                leave: NO_TIME,
                id: 4,
                queue_bytes: 5,
                length: 6,
                link: 7,
                segments: 8,
                event,
                reason: 9,
            };
            assert_eq!(Row::decode(&row.encode(77)), Some((row, 77)));
        }
        assert_eq!(Row::decode(&[99; ROW_BYTES]), None);
    }
}
