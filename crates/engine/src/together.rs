//! Several changes at one instant: all of them, or none.

use crate::events::{Blocks, Edit};
use crate::remote::{Command, Remote, RemoteError, Target};
use crate::schedules::Of;
use crate::worker::{Order, Worker};
use longwire_units::Nanos;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// Most groups of changes that wait for their time at one worker: of links, and of sources.
const MOST_WAITING: usize = 256;
/// How far ahead changes at several workers are put that are to be made at once: all of them must have heard by then.
const AHEAD: Nanos = Nanos::from_millis(20);

/// One of several changes that are made together.
#[derive(Debug, Clone)]
pub struct Together {
    /// What is changed.
    pub target: Target,
    /// What it was made of at the start, defaults included.
    pub base: Arc<Blocks>,
    /// What changes; everything not named is kept.
    pub edits: Vec<Edit>,
}

/// The same at its worker.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub what: (Of, u32),
    pub base: Arc<Blocks>,
    pub edits: Vec<Edit>,
}

/// What a worker is to do with a group of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Say whether they can be made.
    Check,
    /// Make them.
    Now,
    /// Make them at this time of the engine's clock.
    At(Nanos),
}

impl Remote {
    /// Makes all `changes` at one instant: at the time `at` of the engine's clock, or at once. They are checked against what is changed as it
    /// is now; if the scenario's own events have left no way to make them by their time, none of a worker's is made, and the report
    /// says so. Returns the instant.
    ///
    /// # Errors
    /// If one of them can't be made, too many wait, the time is past, or a worker has ended; nothing has changed then.
    pub fn change_together(&self, changes: Vec<Together>, at: Option<Nanos>) -> Result<Nanos, RemoteError> {
        let mut by_worker: Vec<(u32, Vec<Placed>)> = Vec::new();
        for Together { target, base, edits } in changes {
            let (worker, what) = target.place();
            let placed = Placed { what, base, edits };
            match by_worker.iter_mut().find(|(known, _)| *known == worker) {
                Some((_, all)) => all.push(placed),
                None => by_worker.push((worker, vec![placed])),
            }
        }
        let now = crate::clock::monotonic();
        if by_worker.len() == 1 && at.is_none() {
            return self.group(by_worker, Step::Now);
        }
        if at.is_some_and(|at| at <= now) {
            return Err(RemoteError::Refused("its time is past".into()));
        }
        self.group(by_worker.clone(), Step::Check)?;
        self.group(by_worker, Step::At(at.unwrap_or(now + AHEAD)))
    }

    /// Lets each worker see to its part, and answers the latest time.
    fn group(&self, by_worker: Vec<(u32, Vec<Placed>)>, step: Step) -> Result<Nanos, RemoteError> {
        let mut answers = Vec::new();
        for (worker, changes) in by_worker {
            let (reply, answer) = channel();
            self.tell(worker, Command::Together { changes, step, reply })?;
            answers.push(answer);
        }
        let mut latest = Nanos::ZERO;
        for answer in answers {
            let answer = answer.recv_timeout(crate::remote::PATIENCE).map_err(|_| RemoteError::Gone)?;
            latest = latest.max(answer.map_err(RemoteError::Refused)?);
        }
        Ok(latest)
    }
}

impl Worker {
    /// Sees to a group of changes, and answers when they are made.
    pub(crate) fn together(&mut self, changes: Vec<Placed>, step: Step, now: Nanos) -> Result<Nanos, String> {
        for change in &changes {
            let (of, place) = change.what;
            self.schedules.of(of).made_of_or(place, Arc::clone(&change.base));
        }
        let waiting = self.schedules.links.groups().max(self.schedules.sources.groups());
        if step != Step::Now && waiting >= MOST_WAITING {
            return Err(format!("{waiting} changes wait for their time already"));
        }
        self.schedules.could_make(&changes)?;
        match step {
            Step::Check => Ok(now),
            Step::Now => self.make(&changes, now).map(|()| now),
            Step::At(time) => {
                let time = time.max(now);
                let (links, sources) = changes.into_iter().partition(|change| change.what.0 == Of::Links);
                for (of, part) in [(Of::Links, links), (Of::Sources, sources)] {
                    let part: Vec<Placed> = part;
                    if !part.is_empty() {
                        self.schedules.of(of).put_group(part, time);
                    }
                }
                // Changes of links have their exact place from now on.
                self.order = Order::Exact;
                Ok(time)
            }
        }
    }

    /// Makes a group's changes whose time has come, or notes why none of them could be.
    pub(crate) fn take_group(&mut self, of: Of, number: u64, time: Nanos) {
        let changes = self.schedules.of(of).take_group(number);
        let done = self.schedules.could_make(&changes).and_then(|()| self.make(&changes, time));
        if let Err(why) = done {
            self.schedules.of(of).refuse(time, &format!("{} things together", changes.len()), &why);
        }
    }

    /// Makes them. If a link, medium or source refuses, those before it are as they were.
    fn make(&mut self, changes: &[Placed], now: Nanos) -> Result<(), String> {
        let mut before: Vec<((Of, u32), Arc<Blocks>)> = Vec::new();
        for (done, Placed { what: (of, place), base, edits }) in changes.iter().enumerate() {
            before.push(((*of, *place), self.schedules.of(*of).made_of_or(*place, Arc::clone(base))));
            if let Err(why) = self.apply(*of, *place, edits, now) {
                for (((of, place), blocks), Placed { edits, .. }) in
                    before.iter().zip(changes).take(done).rev()
                {
                    // They were made of it a moment ago.
                    let _ = self.apply(*of, *place, &back(blocks, edits), now);
                }
                return Err(why);
            }
        }
        for Placed { what: (of, place), edits, .. } in changes {
            self.schedules.of(*of).cancel(*place, edits);
        }
        Ok(())
    }
}

/// What undoes `edits` of something that was made of `blocks`.
fn back(blocks: &Blocks, edits: &[Edit]) -> Vec<Edit> {
    let undo = |edit: &Edit| {
        let was = blocks.iter().find(|(spec, _)| spec.key == edit.spec.key);
        let (spec, fresh) = match was {
            Some((spec, values)) => (*spec, Some(values.clone())),
            None => {
                let none = longwire_link::without(edit.spec.key)?;
                (none, longwire_block::Values::read(none, &[]).ok())
            }
        };
        let values = fresh.as_ref().map(longwire_block::Values::as_slice).unwrap_or_default();
        Some(Edit { spec, given: values.iter().cloned().enumerate().collect(), fresh })
    };
    edits.iter().filter_map(undo).collect()
}
