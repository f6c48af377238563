//! The pump: executes the events of a worker one by one, in exact order.
//!
//! The order is that of (time, place in the plan): due links and media, then nodes' deadlines, then changes,
//! then arrivals by ports. A packet from another worker's link arrives in that link's place. Workers whose
//! links lead only to ports do not need this order ([`super::plain`]).

use super::Worker;
use crate::order::{EVENT_PLACE, TICK_PLACE};
use longwire_packet::Handle;
use longwire_units::Nanos;

/// Time, and place in the plan.
type Moment = (u64, u32);

/// Packets that have arrived, in order, before they enter links or are decided about.
pub(crate) enum Arrivals<'a> {
    /// From ports, and from rings of other workers.
    Ready(&'a [Handle]),
    /// Windows: staged packets.
    Staged,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Departure { link: u32, time: Nanos },
    Tick(Nanos),
    Change(Nanos),
    Arrival(Handle),
}

impl Worker {
    /// Executes all events up to `last` and enters all ready packets: a frame may have arrived later, while
    /// its port was polled. `begin` is the start of the window.
    pub(crate) fn pump(&mut self, mut arrivals: Arrivals<'_>, begin: Nanos, last: Nanos) {
        while let Some(event) = self.next_event(&arrivals, begin, last) {
            match event {
                Event::Departure { link, time } => {
                    self.counters.did((time.0, 0));
                    self.turn(link, time);
                }
                Event::Tick(time) => self.tick_in_turn(time),
                Event::Change(time) => self.carry_out(time),
                Event::Arrival(handle) => self.take_arrival(&mut arrivals, handle),
            }
        }
    }

    /// The next event, if it happens by `last`. A due link is taken out of the wheel.
    fn next_event(&mut self, arrivals: &Arrivals<'_>, begin: Nanos, last: Nanos) -> Option<Event> {
        let arrival = self.first_arrival(arrivals);
        let last = match (arrivals, arrival) {
            (Arrivals::Ready(_), Some(((time, _), _))) => Nanos(time),
            _ => last,
        };
        let change: Moment = (self.schedules.links.next().0, EVENT_PLACE);
        let tick: Moment = (self.nodes.turns.next.0, TICK_PLACE);
        let other = change.min(tick);
        let first = arrival.map_or(other, |(arrival, _)| arrival.min(other));
        if let Some(entry) = self.emulation.wheel.peek(last.min(Nanos(first.0)))
            && (entry.time.0, self.emulation.links.place(entry.link)) < first
        {
            self.emulation.wheel.pop(entry.time);
            return Some(Event::Departure { link: entry.link, time: entry.time });
        }
        if first.0 > last.0 {
            return None;
        }
        match arrival {
            Some((arrival, handle)) if arrival == first => Some(Event::Arrival(handle)),
            _ if tick == first => Some(Event::Tick(Nanos(first.0))),
            _ if self.waits_in_vain(arrivals, begin, last, first) => None,
            _ => Some(Event::Change(Nanos(first.0))),
        }
    }

    fn first_arrival(&mut self, arrivals: &Arrivals<'_>) -> Option<(Moment, Handle)> {
        match arrivals {
            Arrivals::Staged => self.first_staged(),
            Arrivals::Ready(ready) => {
                let &handle = ready.first()?;
                let time = self.arrival_in_order(handle);
                Some(((time.0, self.pool.meta(handle).place), handle))
            }
        }
    }

    fn take_arrival(&mut self, arrivals: &mut Arrivals<'_>, handle: Handle) {
        match arrivals {
            Arrivals::Staged => self.enter_staged(),
            Arrivals::Ready(ready) => {
                *ready = &ready[1..];
                let meta = self.pool.meta(handle);
                self.counters.did((meta.arrival, meta.place));
                self.enter(handle);
            }
        }
    }

    /// Whether a change is the only event of a window, and no packet waits for it: it may then come after the
    /// end of the run.
    fn waits_in_vain(&mut self, arrivals: &Arrivals<'_>, begin: Nanos, last: Nanos, change: Moment) -> bool {
        if matches!(arrivals, Arrivals::Ready(_)) || change.0 <= begin.0 {
            return false;
        }
        // What was handed over is not held here any more.
        self.send_all_over();
        if self.links_hold_packets() {
            return false;
        }
        let followed = self.emulation.wheel.peek(last).is_some()
            || self.nodes.turns.next <= last
            || self.first_staged().is_some_and(|((time, _), _)| time <= last.0);
        !followed
    }
}
