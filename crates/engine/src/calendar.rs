//! What comes next in simulated time, among many places, without asking each of them at every event.

use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The next event of each of many places: the next frame of a port, or the deadline of a node. A place is
/// asked again only after it was used.
#[derive(Default)]
pub(crate) struct Calendar {
    /// By place: time of its next event; never if there is none.
    times: Vec<Nanos>,
    /// Those times, with their places, and earlier values of them, which are skipped.
    order: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Places whose event was due; empty except while they are used.
    due: Vec<u32>,
}

impl Calendar {
    /// Notes when the next event of a place is.
    pub fn set(&mut self, place: u32, time: Nanos) {
        let at = place as usize;
        if self.times.len() <= at {
            self.times.resize(at + 1, Nanos::NEVER);
        }
        if self.times[at] != time {
            self.times[at] = time;
            if time != Nanos::NEVER {
                self.order.push(Reverse((time, place)));
            }
        }
    }

    /// Time of the next event of all places.
    pub fn next(&mut self) -> Nanos {
        while let Some(&Reverse((time, place))) = self.order.peek() {
            if self.times[place as usize] == time {
                return time;
            }
            self.order.pop();
        }
        Nanos::NEVER
    }

    /// Takes out the places with an event by `now`, in ascending order. They must be [`set`](Self::set) anew,
    /// and the list given [back](Self::give_back).
    pub fn take_due(&mut self, now: Nanos) -> Vec<u32> {
        let mut due = std::mem::take(&mut self.due);
        while self.next() <= now
            && let Some(Reverse((_, place))) = self.order.pop()
        {
            self.times[place as usize] = Nanos::NEVER;
            due.push(place);
        }
        due.sort_unstable();
        due
    }

    /// Takes back the memory of the list of due places.
    pub fn give_back(&mut self, mut due: Vec<u32>) {
        due.clear();
        self.due = due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Dice;

    /// Against asking every place at every event.
    #[test]
    fn the_next_event_is_the_one_that_asking_all_finds() {
        let mut dice = Dice::named(1, "calendar");
        let mut calendar = Calendar::default();
        let mut times = [Nanos::NEVER; 20];
        let mut now = 0;
        for _ in 0..20_000 {
            let place = dice.below(times.len() as u64);
            let time = match dice.below(4) {
                0 => Nanos::NEVER,
                _ => Nanos(now + dice.below(50)),
            };
            times[place as usize] = time;
            calendar.set(place as u32, time);
            assert_eq!(calendar.next(), times.into_iter().min().unwrap());
            if dice.below(3) == 0 {
                now += dice.below(20);
                let due = calendar.take_due(Nanos(now));
                let wanted: Vec<u32> = (0..20).filter(|&place| times[place as usize] <= Nanos(now)).collect();
                assert_eq!(due, wanted);
                wanted.iter().for_each(|&place| times[place as usize] = Nanos::NEVER);
                calendar.give_back(due);
            }
        }
    }
}
