//! What an instance runs now: the plan with its objects, which are replaced together when it is rewired.

use crate::objects::Objects;
use longwire_assemble::Layout;
use longwire_engine::Report;
use longwire_scenario::Plan;
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
    /// The last counters, and when they were asked for.
    last: Mutex<Option<(Instant, Arc<Report>)>>,
}

impl RunningState {
    /// A plan with these objects.
    pub fn new(plan: Arc<Plan>, objects: Objects, layout: Layout) -> Self {
        Self { plan, objects: Arc::new(objects), layout: Arc::new(layout), last: Mutex::default() }
    }

    /// The last counters.
    pub(crate) fn last(&self) -> MutexGuard<'_, Option<(Instant, Arc<Report>)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
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
