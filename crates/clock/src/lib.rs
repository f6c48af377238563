//! The machine's clocks, for whatever runs in real time. Blocks read none: they are told the time.
#![forbid(unsafe_code)]

use longwire_units::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// CLOCK_MONOTONIC: what all intervals are measured with, and the engine's time in real runs.
#[inline]
pub fn monotonic() -> Nanos {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// CLOCK_REALTIME, from 1970 on: what the kernel stamps packets with.
#[inline]
pub fn realtime() -> Nanos {
    nanos(clock_gettime(ClockId::Realtime))
}

/// Neither clock is ever before its beginning.
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
