//! Clocks of the machine, for code that runs in real time. Blocks never read a clock: they are told the time.
#![forbid(unsafe_code)]

mod mapping;

pub use mapping::Mapping;

use longwire_units::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads CLOCK_MONOTONIC, which measures intervals and is the engine's clock in real time.
#[inline]
pub fn monotonic() -> Nanos {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// Reads CLOCK_REALTIME, counted from 1970, which the kernel stamps packets with.
#[inline]
pub fn realtime() -> Nanos {
    nanos(clock_gettime(ClockId::Realtime))
}

/// Neither clock is ever negative.
#[inline]
fn nanos(time: Timespec) -> Nanos {
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward() {
        let before = (monotonic(), realtime());
        assert!(before.0 > Nanos::ZERO && before.1 > Nanos::ZERO);
        assert!(monotonic() >= before.0);
    }
}
