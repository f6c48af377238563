//! The header of packets of a measurement.
//!
//! ```text
//! byte  0      1        2..6      6..10      10..18
//!       magic  version  flow id   sequence   send time, CLOCK_MONOTONIC, ns
//! ```
//!
//! All in network byte order. 18 bytes, because with UDP and IPv4 they make the shortest Ethernet frame there
//! is; the pair of wall clock and monotonic clock that places the send time among other clocks is exchanged
//! once, over the control connection.

/// Bytes of the header, and so the smallest payload.
pub const HEADER_BYTES: usize = 18;

const MAGIC: u8 = 0x4c;
const VERSION: u8 = 1;

/// The fields of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Chosen at random by the receiver for each measurement, so that packets of an earlier one are ignored.
    pub flow: u32,
    /// 0 for the first packet.
    pub sequence: u32,
    /// The sender's CLOCK_MONOTONIC in nanoseconds.
    pub sent: u64,
}

impl Header {
    /// Writes it to the beginning of a packet.
    ///
    /// # Panics
    /// If `packet` is shorter than [`HEADER_BYTES`]; senders check sizes at the start.
    pub fn write(&self, packet: &mut [u8]) {
        packet[0] = MAGIC;
        packet[1] = VERSION;
        packet[2..6].copy_from_slice(&self.flow.to_be_bytes());
        packet[6..10].copy_from_slice(&self.sequence.to_be_bytes());
        packet[10..18].copy_from_slice(&self.sent.to_be_bytes());
    }

    /// The header of a packet, or none if the packet is too short or not of this protocol.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let header = packet.first_chunk::<HEADER_BYTES>()?;
        let [magic, version, f0, f1, f2, f3, s0, s1, s2, s3, sent @ ..] = *header;
        (magic == MAGIC && version == VERSION).then(|| Self {
            flow: u32::from_be_bytes([f0, f1, f2, f3]),
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            sent: u64::from_be_bytes(sent),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn layout() {
        let mut packet = [0xff; 20];
        Header { flow: 0x0102_0304, sequence: 5, sent: 6 }.write(&mut packet);
        assert_eq!(packet, [0x4c, 1, 1, 2, 3, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0xff, 0xff]);
    }

    #[test]
    fn strangers_are_refused() {
        let mut packet = [0; HEADER_BYTES];
        Header { flow: 1, sequence: 2, sent: 3 }.write(&mut packet);
        assert!(Header::read(&packet[..HEADER_BYTES - 1]).is_none());
        for byte in [0, 1] {
            let mut bad = packet;
            bad[byte] ^= 0x80;
            assert!(Header::read(&bad).is_none());
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_wrote(flow: u32, sequence: u32, sent: u64) {
            let header = Header { flow, sequence, sent };
            let mut packet = [0; 64];
            header.write(&mut packet);
            prop_assert_eq!(Header::read(&packet), Some(header));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(header) = Header::read(&bytes) {
                let mut again = bytes.clone();
                header.write(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
