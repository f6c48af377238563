//! A processor for the worker alone: clients are on other machines in reality.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processor of a run's worker.
pub(super) struct OwnProcessor {
    number: usize,
    /// Those that this process may use.
    allowed: CpuSet,
}

/// Restores the processors of this thread.
pub(super) struct KeptOff(CpuSet);

impl OwnProcessor {
    /// The last processor, if there are several.
    pub(super) fn choose() -> Result<Option<Self>> {
        let allowed = sched_getaffinity(None).context("asking for the processors")?;
        let last = (0..CpuSet::MAX_CPU).rfind(|&number| allowed.is_set(number));
        Ok(last.filter(|_| allowed.count() > 1).map(|number| Self { number, allowed }))
    }

    /// The key of `[engine]` that pins a worker to it. The other threads of the run stay off it then.
    pub(super) fn key(&self) -> String {
        format!("cpus = [{}]\n", self.number)
    }

    /// Keeps this thread, and those that it starts, off it.
    pub(super) fn keep_off(&self) -> Result<KeptOff> {
        let mut others = self.allowed;
        others.unset(self.number);
        sched_setaffinity(None, &others).context("leaving a processor to the worker")?;
        Ok(KeptOff(self.allowed))
    }
}

impl Drop for KeptOff {
    fn drop(&mut self) {
        // It was allowed before.
        let _ = sched_setaffinity(None, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_leave_a_processor_to_the_worker() {
        let count = || sched_getaffinity(None).unwrap().count();
        let all = count();
        let own = OwnProcessor::choose().unwrap();
        assert_eq!(own.is_some(), all > 1);
        if let Some(own) = own {
            let kept_off = own.keep_off().unwrap();
            let others = std::thread::spawn(move || sched_getaffinity(None).unwrap()).join().unwrap();
            assert!(!others.is_set(own.number) && others.count() == all - 1);
            drop(kept_off);
            assert_eq!(count(), all);
        }
    }
}
