//! Locks in values: mutual exclusion between programs.

use super::{Map, PATIENCE};
use crate::{Atomic, Width};

/// How often a worker yields before it gives up on a value's lock.
const LOCK_TURNS: u32 = 1 << 14;

impl Map {
    /// Takes or releases the lock at this byte of a value, for a program, which waits only a bounded time.
    /// False on a timeout, or if the lock was not taken.
    pub fn set_lock(&self, value: usize, locked: bool) -> bool {
        let Some(at) = self.spec.lock else { return false };
        let place = value + at as usize;
        let (from, to) = (u64::from(!locked), u64::from(locked));
        let change = || self.values.change(place, Width::W32, Atomic::CompareExchange, to, from) == from;
        if !locked {
            return change();
        }
        for _ in 0..LOCK_TURNS {
            for _ in 0..PATIENCE {
                if change() {
                    return true;
                }
                std::hint::spin_loop();
            }
            // The holder was preempted.
            std::thread::yield_now();
        }
        false
    }

    /// Writes bytes of a value from `at` on, except its lock: one who does not know yet that the value now
    /// belongs to another key may hold it.
    pub(super) fn write_beside_lock(&self, base: usize, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        let (first, last) = self.spec.lock.map_or((end, end), |lock| (lock as usize, lock as usize + 4));
        let (first, last) = (first.clamp(at, end), last.clamp(at, end));
        self.values.write(base + at, &bytes[..first - at]);
        self.values.write(base + last, &bytes[last - at..]);
    }
}
