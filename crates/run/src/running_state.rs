//! The state of an instance: the plan with its objects, which are replaced together when it is rewired.

use crate::objects::Objects;
use crate::threads::lock;
use longwire_assemble::Layout;
use longwire_engine::Report;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The running plan and its objects.
#[derive(Debug)]
pub struct RunningState {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Its objects.
    pub objects: Arc<Objects>,
    /// The engine's references to them.
    pub(crate) layout: Arc<Layout>,
    counted: Mutex<LastCounters>,
}

/// The last counters of the workers.
#[derive(Debug, Default)]
pub(crate) struct LastCounters {
    /// The last counters, with the time of the request and of the run.
    pub(crate) last: Option<(Instant, Nanos, Arc<Report>)>,
    /// Their number, which no other counters of the process have.
    pub(crate) number: u64,
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

/// Most links for which earlier counters are kept.
pub(crate) const MOST_COMPARED: usize = 100_000;
/// Largest age of shown counters, and the additional age per link: querying a million links takes workers a
/// while.
const FRESH: Duration = Duration::from_millis(200);
const FRESH_PER_LINK: Duration = Duration::from_micros(100);
const FRESH_AT_MOST: Duration = Duration::from_secs(10);
/// How often counters were taken.
static COUNTED: AtomicU64 = AtomicU64::new(0);
/// The least time between the last counters and those before.
const APART: Nanos = Nanos::from_millis(500);

impl LastCounters {
    /// Records current counters.
    pub(crate) fn note(&mut self, elapsed: Nanos, report: &Arc<Report>) {
        self.number = COUNTED.fetch_add(1, Ordering::Relaxed) + 1;
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

    /// The last counters, if they are recent.
    pub(crate) fn fresh(&self) -> Option<Arc<Report>> {
        let links = u32::try_from(self.plan.links.len()).unwrap_or(u32::MAX);
        let fresh = (FRESH + FRESH_PER_LINK.saturating_mul(links)).min(FRESH_AT_MOST);
        let (at, _, report) = self.counted().last.clone()?;
        (at.elapsed() < fresh).then_some(report)
    }

    pub(crate) fn counted(&self) -> MutexGuard<'_, LastCounters> {
        lock(&self.counted)
    }
}
