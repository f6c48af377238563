//! The price of a byte.

/// Cost of a byte, in 2⁻³² ns: 300 bit/s to beyond 1 Tbit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerByte(u64);

impl PerByte {
    /// A whole number of nanoseconds, at most 2³² − 1.
    pub const fn of_ns(ns: u32) -> Self {
        Self((ns as u64) << 32)
    }

    /// Cost of a byte at a rate in bit/s, rounded down; zero at a rate of 0, which means no port at all.
    pub const fn of_rate(bits_per_second: u64) -> Self {
        if bits_per_second == 0 {
            return Self(0);
        }
        let exact = (8_000_000_000u128 << 32) / bits_per_second as u128;
        Self(if exact > u64::MAX as u128 { u64::MAX } else { exact as u64 })
    }

    /// Cost of `bytes` bytes, in whole nanoseconds rounded down, at most 2³² − 1.
    #[inline]
    pub const fn bytes(self, bytes: u32) -> u32 {
        let exact = (self.0 as u128 * bytes as u128) >> 32;
        if exact > u32::MAX as u128 { u32::MAX } else { exact as u32 }
    }
}
