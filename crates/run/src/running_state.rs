//! What an instance runs now: the plan with its objects, which are replaced together when it is rewired.

use crate::objects::Objects;
use longwire_assemble::Layout;
use longwire_engine::Report;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

/// The plan that runs, and its objects.
#[derive(Debug)]
pub struct RunningState {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Its objects.
    pub objects: Arc<Objects>,
    /// Where the engine has them.
    pub(crate) layout: Arc<Layout>,
    counted: Mutex<Counted>,
}

/// What the workers last said.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// The last counters, when they were asked for, and how long it had run then.
    pub(crate) last: Option<(Instant, Nanos, Arc<Report>)>,
    /// Those before, the earliest first: one from half a second before the last or more, and those behind it.
    /// None of a run with very many links.
    before: VecDeque<Earlier>,
}

/// Counters before the last ones.
#[derive(Debug, Clone)]
pub(crate) struct Earlier {
    /// How long it had run.
    pub(crate) elapsed: Nanos,
    /// The counters.
    pub(crate) report: Arc<Report>,
}

/// Links up to which the counters before the last ones are kept.
const MOST_COMPARED: usize = 100_000;
/// The least time between the last counters and those before.
const APART: Nanos = Nanos::from_millis(500);

impl Counted {
    /// Notes counters of now.
    pub(crate) fn note(&mut self, elapsed: Nanos, report: &Arc<Report>) {
        let old = self.last.replace((Instant::now(), elapsed, Arc::clone(report)));
        let Some((_, at, report)) = old.filter(|(_, _, old)| old.links.len() <= MOST_COMPARED) else {
            return;
        };
        self.before.push_back(Earlier { elapsed: at, report });
        // The youngest that is old enough is the first.
        while self.before.get(1).is_some_and(|next| elapsed.since(next.elapsed) >= APART) {
            self.before.pop_front();
        }
    }

    /// The counters to compare the last ones with.
    pub(crate) fn earlier(&self) -> Option<Earlier> {
        self.before.front().cloned()
    }
}

impl RunningState {
    /// A plan with these objects.
    pub fn new(plan: Arc<Plan>, objects: Objects, layout: Layout) -> Self {
        Self { plan, objects: Arc::new(objects), layout: Arc::new(layout), counted: Mutex::default() }
    }

    /// The last counters.
    pub(crate) fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of an instance, replaced as a whole.
#[derive(Debug)]
pub(crate) struct Current(RwLock<RunningState>);

/// The state, which is not replaced while this is there. A thread holds one at a time.
#[derive(Debug)]
pub struct Held<'a>(RwLockReadGuard<'a, RunningState>);

impl Deref for Held<'_> {
    type Target = RunningState;

    fn deref(&self) -> &RunningState {
        &self.0
    }
}

impl Current {
    pub(crate) fn new(state: RunningState) -> Self {
        Self(RwLock::new(state))
    }

    /// The state now.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The state, to be replaced: nobody looks meanwhile.
    pub(crate) fn replace(&self) -> RwLockWriteGuard<'_, RunningState> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
