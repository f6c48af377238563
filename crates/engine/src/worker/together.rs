//! Several changes at one instant are made, or none.

use super::{Order, Worker};
use crate::events::{Of, Placed};
use crate::remote::Step;
use longwire_block::change::{Blocks, Edit};
use longwire_units::Nanos;
use std::sync::Arc;

/// Most groups of changes that wait for their time at one worker: of links, and of sources.
const MOST_WAITING: usize = 256;

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

    /// Makes them, and begins the ramps. If a link, medium or source refuses, those before it are as they were.
    fn make(&mut self, changes: &[Placed], now: Nanos) -> Result<(), String> {
        let mut before: Vec<((Of, u32), Vec<Edit>)> = Vec::new();
        for Placed { what: (of, place), base, edits, .. } in
            changes.iter().filter(|change| change.ramp.is_none())
        {
            let blocks = self.schedules.of(*of).made_of_or(*place, Arc::clone(base));
            if let Err(why) = self.apply(*of, *place, edits, now) {
                for ((of, place), undo) in before.iter().rev() {
                    // They were made of it a moment ago.
                    let _ = self.apply(*of, *place, undo, now);
                }
                return Err(why);
            }
            before.push(((*of, *place), back(&blocks, edits)));
        }
        for Placed { what: (of, place), edits, ramp, .. } in changes {
            match ramp {
                Some(ramp) => {
                    if *of == Of::Links {
                        // Steps have their exact place from now on.
                        self.order = Order::Exact;
                    }
                    self.schedules.ramp(*of, *place, edits, *ramp, now, false)?;
                }
                None => self.schedules.of(*of).cancel(*place, edits),
            }
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
