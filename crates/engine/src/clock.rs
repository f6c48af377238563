//! The monotonic clock, and what a thread can learn of the time it was not running.
#![allow(unsafe_code)]

use longwire_units::Nanos;

/// CLOCK_MONOTONIC in nanoseconds: the engine's time in real runs.
#[inline]
pub fn monotonic() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write to; CLOCK_MONOTONIC exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The processor's cycle counter, which goes on steadily whatever the processor's frequency is; nanoseconds where none is known.
#[inline]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction; it reads a counter.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        monotonic().0
    }
}

/// How many of [`cycles`] a microsecond has, rounded to the nearest, 1 to 1 000 000: measured for 10 ms.
pub fn cycles_per_microsecond() -> u32 {
    let begin = (monotonic(), cycles());
    let mut end = begin;
    while end.0.since(begin.0) < Nanos::from_millis(10) {
        end = (monotonic(), cycles());
    }
    let time = end.0.since(begin.0).0;
    let rate = (end.1.wrapping_sub(begin.1).saturating_mul(1000) + time / 2) / time;
    rate.clamp(1, 1_000_000) as u32
}

/// Ties this thread to one processor and makes its sleeps end on time. A refusal costs accuracy only, and the
/// lateness that follows from it is measured, so it is answered, not raised.
pub fn settle_thread(cpu: Option<usize>) -> bool {
    // SAFETY: PR_SET_TIMERSLACK takes a plain number and concerns this thread only.
    let slack = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) == 0 };
    let Some(cpu) = cpu else { return slack };
    // SAFETY: an all-zero cpu_set_t is an empty set; CPU_SET checks its index; the call reads the set.
    slack
        && unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
        }
}

/// Sleeps until one of `fds` can be read or `timeout` has passed. Returns whether one can be read.
pub fn wait_readable(fds: &mut [libc::pollfd], timeout: Nanos) -> bool {
    let time = libc::timespec {
        tv_sec: (timeout.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (timeout.0 % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `fds` is a valid array of its own length, `time` lives for the call, no signal mask is given.
    let ready = unsafe {
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &raw const time, std::ptr::null())
    };
    ready > 0
}
