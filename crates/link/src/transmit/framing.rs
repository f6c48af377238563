//! Bytes of a packet that a rate counts.

use longwire_block::{Fallback, Param, ParamKind};
use longwire_settings::Choice;

/// The work of a byte: eight bits, in bits · 10⁹, of which a rate of r bit/s does r per nanosecond.
pub const BYTE: u64 = 8_000_000_000;

/// Which bytes of a packet are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    layer: Layer,
    /// Whether the offset of the IP header is needed.
    counts_ip: bool,
    /// Bytes added to each frame, or to its IP packet.
    added: u16,
}

/// The layer whose bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum Layer {
    Ethernet,
    Ip,
    Wire,
    Atm,
}

/// The setting that names the layer.
pub(crate) const FRAMING_PARAM: Param = Param {
    name: "framing",
    kind: ParamKind::Choice(Layer::WORDS),
    default: Fallback::Value("ethernet"),
    help: "bytes the rate counts: ethernet (frame of at least 64 bytes with FCS), ip (the IP packet), wire \
        (ethernet and 20 bytes of preamble and gap), atm (cells of 53 bytes that carry 48 of the IP packet, \
        the overhead and AAL5's trailer of 8 bytes)",
    live: true,
};

/// The setting for bytes added to every packet.
pub(crate) const OVERHEAD_PARAM: Param = Param {
    name: "overhead",
    kind: ParamKind::Integer { min: 0, max: 1000 },
    default: Fallback::Value("0"),
    help: "bytes added to every packet, 0 to 1000; with atm, before it is cut into cells (PPPoA 2, IP over \
        LLC 8, PPPoE over bridged LLC 32)",
    live: true,
};

/// Shortest Ethernet frame without its frame check sequence (IEEE 802.3, 4A.4.2).
const SHORTEST: u32 = 60;
const FCS: u64 = 4;
/// Preamble and start delimiter (8) and the gap between packets (12).
const PREAMBLE_AND_GAP: u64 = 20;
/// An ATM cell, and its payload (ITU-T I.361); the AAL5 trailer (ITU-T I.363.5).
const CELL: u64 = 53;
const CELL_PAYLOAD: u64 = 48;
const AAL5_TRAILER: u64 = 8;

impl Default for Framing {
    fn default() -> Self {
        Self::ETHERNET
    }
}

impl Framing {
    /// Frames as they are on Ethernet, with their FCS.
    pub const ETHERNET: Self = Self::of(Layer::Ethernet, 0);

    /// This layer, with this many additional bytes.
    pub(crate) const fn of(layer: Layer, overhead: u64) -> Self {
        let framing = match layer {
            Layer::Ethernet => FCS,
            Layer::Wire => FCS + PREAMBLE_AND_GAP,
            Layer::Ip | Layer::Atm => 0,
        };
        let counts_ip = matches!(layer, Layer::Ip | Layer::Atm);
        Self { layer, counts_ip, added: (overhead + framing) as u16 }
    }

    /// As [`Framing::counted`], for framings that don't need the offset of the IP header.
    #[inline(always)]
    pub(crate) fn counted_on_wire(self, frame: u32) -> u64 {
        u64::from(frame.max(SHORTEST)) + u64::from(self.added)
    }

    /// Counted bytes of a frame of `frame` bytes without FCS, with `link_header` bytes before its IP header.
    #[inline]
    pub fn counted(self, frame: u32, link_header: u32) -> u64 {
        let added = u64::from(self.added);
        match self.layer {
            Layer::Ethernet | Layer::Wire => self.counted_on_wire(frame),
            Layer::Ip => u64::from(frame.saturating_sub(link_header)) + added,
            Layer::Atm => {
                let unit = u64::from(frame.saturating_sub(link_header)) + added + AAL5_TRAILER;
                unit.div_ceil(CELL_PAYLOAD) * CELL
            }
        }
    }

    /// Whether [`Framing::counted`] needs the offset of the IP header.
    #[inline]
    pub const fn counts_ip(self) -> bool {
        self.counts_ip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_bytes_at_the_layer_asked_for() {
        // (layer, overhead, frame, counted)
        for (layer, overhead, frame, counted) in [
            ("ethernet", 0, 60, 64),
            ("ethernet", 0, 42, 64),
            ("ethernet", 0, 1514, 1518),
            ("wire", 0, 60, 84),
            ("ip", 0, 1514, 1500),
            ("ip", 8, 1514, 1508),
            // 40 + 8 bytes fill a cell, and one more needs another; 1508 bytes need 32 cells (31.4), 1540
            // need 33 (32.1).
            ("atm", 0, 54, 53),
            ("atm", 0, 55, 106),
            ("atm", 0, 1514, 32 * 53),
            ("atm", 32, 1514, 33 * 53),
        ] {
            let word = Layer::WORDS.iter().position(|word| *word == layer).unwrap();
            assert_eq!(
                Framing::of(Layer::ALL[word], overhead).counted(frame, 14),
                counted,
                "{layer} {frame}"
            );
        }
    }

    #[test]
    fn only_what_counts_ip_needs_its_place() {
        let layers = Layer::ALL.iter().copied();
        let counting: Vec<_> = layers.filter(|&layer| Framing::of(layer, 0).counts_ip()).collect();
        assert_eq!(counting, [Layer::Ip, Layer::Atm]);
    }
}
