//! Several changes at one instant, all or none.

use super::{Order, Worker};
use crate::events::{Of, Placed};
use crate::remote::Step;
use longwire_block::change::{Blocks, Edit};
use longwire_units::Nanos;
use std::sync::Arc;

/// Most pending groups of changes at one worker, for links and for sources.
const MOST_WAITING: usize = 256;

impl Worker {
    /// Executes a phase of a group of changes, and returns the time at which they are made.
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
                // Changes of links have an exact place from now on.
                self.order = Order::Exact;
                Ok(time)
            }
        }
    }

    /// Makes the changes of a due group, or records why none of them could be made.
    pub(crate) fn take_group(&mut self, of: Of, number: u64, time: Nanos) {
        let changes = self.schedules.of(of).take_group(number);
        let done = self.schedules.could_make(&changes).and_then(|()| self.make(&changes, time));
        if let Err(why) = done {
            self.schedules.of(of).refuse(time, &format!("{} things together", changes.len()), &why);
        }
    }

    /// Makes the changes. If a link, medium or source refuses, earlier ones are undone.
    fn make(&mut self, changes: &[Placed], now: Nanos) -> Result<(), String> {
        let mut before: Vec<((Of, u32), Arc<Blocks>)> = Vec::new();
        for (done, Placed { what: (of, place), base, edits }) in changes.iter().enumerate() {
            before.push(((*of, *place), self.schedules.of(*of).made_of_or(*place, Arc::clone(base))));
            if let Err(why) = self.apply(*of, *place, edits, now) {
                for (((of, place), blocks), Placed { edits, .. }) in
                    before.iter().zip(changes).take(done).rev()
                {
                    // Restoring the previous state can't fail.
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

/// The edits that undo `edits` of an object with these blocks.
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
