//! Costs of packets: processor time and port time, in nanoseconds, and both as shares of capacity.

use crate::{PerByte, Settings};

/// Converter of a packet's costs on each resource, in nanoseconds of at most 2³² − 1 (4.29 s).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Of a processor.
    pub processor: u32,
    /// Of the port.
    pub port: u32,
}

impl Cost {
    /// The larger of both.
    #[inline]
    pub(crate) fn dominant(self) -> u32 {
        self.processor.max(self.port)
    }
}

/// What resources cost.
#[derive(Debug, Clone)]
pub(crate) struct Prices {
    clock_mhz: u64,
    processors: u32,
    port: PerByte,
    charged: PerByte,
}

impl Prices {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            clock_mhz: settings.clock_mhz.into(),
            processors: settings.processors,
            port: settings.port,
            charged: settings.charged,
        }
    }

    /// Cycles in nanoseconds, rounded down: at 600 MHz ⁵⁄₃ ns each, with the paper's error of at most ⅔ ns.
    #[inline]
    pub(crate) fn processing(&self, cycles: u64) -> u32 {
        let ns = if self.clock_mhz == 1000 { cycles } else { cycles.saturating_mul(1000) / self.clock_mhz };
        u32::try_from(ns).unwrap_or(u32::MAX)
    }

    /// Both costs as shares of the capacity: processor time over the number of processors, and the port's own
    /// time.
    #[inline]
    pub(crate) fn normalised(&self, processor: u32, bytes: u32) -> Cost {
        let processor = if self.processors == 1 { processor } else { processor / self.processors };
        Cost { processor, port: self.port.bytes(bytes) }
    }

    /// The paper's combined resource requirement (section 4.4, "RR calculations"), in which neither cost is
    /// divided by its capacity.
    #[inline]
    pub(crate) fn combined(&self, processor: u32, bytes: u32) -> u32 {
        processor.saturating_add(self.charged.bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_cost_what_the_rate_says() {
        for (per_byte, bytes, ns) in [
            (PerByte::of_ns(80), 127, 10_160),
            (PerByte::of_rate(50_000_000), 127, 20_320),
            (PerByte::of_rate(3_000_000_000), 1500, 4000),
            (PerByte::of_rate(100_000_000_000), 1518, 121),
            (PerByte::of_rate(0), 1518, 0),
            (PerByte::of_rate(1), 1000, u32::MAX),
        ] {
            assert_eq!(per_byte.bytes(bytes), ns, "{per_byte:?}, {bytes}");
        }
    }

    #[test]
    fn the_papers_requirement_by_hand() {
        let settings = Settings {
            clock_mhz: 600,
            processors: 4,
            charged: PerByte::of_ns(80),
            port: PerByte::of_ns(160),
            ..Settings::default()
        };
        let prices = Prices::new(&settings);
        // 2401 cycles are 4001.67 ns.
        assert_eq!(prices.processing(2401), 4001);
        assert_eq!(prices.combined(4001, 48), 4001 + 3840);
        assert_eq!(prices.normalised(4001, 48), Cost { processor: 1000, port: 7680 });
        assert_eq!(prices.processing(u64::MAX), u32::MAX);
    }
}
