//! The cycle counter, and thread scheduling.
#![allow(unsafe_code)]

use longwire_clock::monotonic;
use longwire_units::Nanos;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use std::marker::PhantomData;
use std::num::NonZeroU64;

/// Reads the processor's cycle counter, which runs at a constant rate; nanoseconds on processors without a
/// known counter.
#[inline]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction, which only reads a counter.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        monotonic().0
    }
}

/// Number of [`cycles`] per microsecond, rounded to the nearest, 1 to 1 000 000: measured for 10 ms.
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

/// Pins this thread to a processor and makes its sleeps end on time. Failure only costs accuracy, which is
/// measured as lateness, so it is a return value and not an error.
pub fn settle_thread(cpu: Option<usize>) -> bool {
    let slack = set_current_timer_slack(NonZeroU64::new(1)).is_ok();
    let Some(cpu) = cpu else { return slack };
    let mut only = CpuSet::new();
    // A set panics at a number beyond its own.
    if cpu < CpuSet::MAX_CPU {
        only.set(cpu);
    }
    // The kernel refuses an empty set.
    sched_setaffinity(None, &only).is_ok() && slack
}

/// While it lives, the thread that created it, and threads that this starts, avoid some processors.
pub struct AffinityGuard {
    before: CpuSet,
    /// Not `Send`: it belongs to one thread.
    _thread: PhantomData<*const ()>,
}

/// Moves this thread, and those that it starts, off the workers' processors, so that requests to a run, above
/// all verifying and compiling a program, take no time from the packet path. Programs that it starts stay off
/// them, too. None if there are no other processors.
pub fn avoid_cpus(cpus: impl IntoIterator<Item = usize>) -> Option<AffinityGuard> {
    let before = sched_getaffinity(None).ok()?;
    let mut rest = before;
    cpus.into_iter().filter(|&cpu| cpu < CpuSet::MAX_CPU).for_each(|cpu| rest.unset(cpu));
    let moves = rest.count() > 0 && rest != before && sched_setaffinity(None, &rest).is_ok();
    moves.then_some(AffinityGuard { before, _thread: PhantomData })
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        // It was allowed before.
        let _ = sched_setaffinity(None, &self.before);
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

#[cfg(test)]
mod tests {
    use super::{avoid_cpus, settle_thread};
    use rustix::thread::CpuSet;
    use std::thread::available_parallelism;

    fn processors() -> usize {
        available_parallelism().unwrap().get()
    }

    #[test]
    fn threads_leave_workers_their_processors() {
        let all = processors();
        // A separate thread, because others of this process run tests.
        let seen = std::thread::spawn(move || {
            let first = (0..1024).find(|&cpu| avoid_cpus([cpu]).is_some());
            let during = first.map(|cpu| {
                let kept_off = avoid_cpus([cpu, usize::MAX]);
                let seen = (processors(), std::thread::spawn(processors).join().unwrap());
                drop(kept_off);
                seen
            });
            (during, avoid_cpus(0..1024).is_none(), processors())
        });
        let expected = (all > 1).then_some((all - 1, all - 1));
        assert_eq!(seen.join().unwrap(), (expected, true, all), "to leave none is to leave all");
    }

    #[test]
    fn a_processor_beyond_all_is_not_pinned_to() {
        for cpu in [CpuSet::MAX_CPU, 1 << 16, usize::MAX] {
            let settled = std::thread::spawn(move || (settle_thread(Some(cpu)), processors()));
            assert_eq!(settled.join().unwrap(), (false, processors()), "{cpu}");
        }
    }
}
