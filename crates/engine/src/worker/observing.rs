//! Calls of a worker's observer and sampler. Unobserved workers do not use this path.

use super::Worker;
use crate::map::Map;
use crate::observer::{Observer, PoolObserver, Sampler};
use longwire_link::{Fifo, LinkStats};
use longwire_packet::{Handle, PacketEvent, Pool};
use longwire_units::Nanos;
use std::sync::Arc;

/// A worker's observer and sampler.
type Observers = (Option<Box<dyn Observer>>, Option<Box<dyn Sampler>>);

/// Observation state of a worker.
#[derive(Default)]
pub(crate) struct Observing {
    /// Whether there is an observer or a sampler.
    pub on: bool,
    /// Whether arrivals report the backlog.
    asks_for_queues: bool,
    sampler: Option<Box<dyn Sampler>>,
    /// When the next sample is taken.
    next: Nanos,
}

impl Observing {
    /// Attaches an observer to the pool, and keeps the sampler, whose times count from `start`.
    pub fn new(map: &Arc<Map>, pool: &mut Pool, (observer, sampler): Observers, start: Nanos) -> Self {
        let on = observer.is_some() || sampler.is_some();
        let asks_for_queues = observer.as_ref().is_some_and(|observer| observer.asks_for_queues());
        if let Some(observer) = observer {
            pool.attach(Box::new(PoolObserver { map: Arc::clone(map), observer }));
        }
        let next = sampler.as_ref().map_or(Nanos::NEVER, |sampler| start + sampler.interval());
        Self { on, asks_for_queues, sampler, next }
    }
}

impl Worker {
    /// Reports a packet that arrives at a link, and returns its arrival time.
    #[cold]
    pub(crate) fn observe(&mut self, link: u32, handle: Handle) -> Nanos {
        let meta = self.pool.meta_mut(handle);
        let arrival = self.emulation.links.effective_arrival(link, Nanos(meta.arrival));
        meta.arrival = arrival.0;
        self.sample_before(arrival);
        let queue_bytes = match self.observing.asks_for_queues {
            true => self.emulation.queued_bytes(&mut self.pool, link, arrival),
            false => 0,
        };
        self.pool.report(handle, PacketEvent::Arrived { queue_bytes });
        arrival
    }

    /// Reports packets that leave a link.
    #[cold]
    pub(crate) fn observe_left(&mut self, out: Fifo) {
        let mut next = out.first();
        let last = out.iter(&self.pool).last();
        while let Some(handle) = next {
            self.pool.report(handle, PacketEvent::Left);
            next = (Some(handle) != last).then(|| Handle(self.pool.meta(handle).next));
        }
    }

    /// Serves arrivals first, then each due link, as [`Worker::serve_by_link`] does.
    #[cold]
    pub(crate) fn serve_observed(&mut self, ready: &[Handle], now: Nanos) {
        ready.iter().for_each(|&handle| self.enter(handle));
        let mut due = [0; 32];
        loop {
            let count = self.emulation.wheel.take_due(now, &mut due);
            if count == 0 {
                return;
            }
            for &link in &due[..count] {
                let mut out = self.emulation.let_go(&mut self.pool, link, now);
                self.observe_left(out);
                while let Some(handle) = out.pop(&self.pool) {
                    self.leave(handle);
                }
            }
        }
    }

    /// Tells the sampler that a planned rewiring was made at `time`, and what removed links have counted, by
    /// their places in the plan before.
    pub(crate) fn observe_planned<'s>(
        &mut self,
        time: Nanos,
        removed: impl Iterator<Item = (u32, &'s LinkStats)>,
    ) {
        let Some(sampler) = &mut self.observing.sampler else { return };
        for (place, stats) in removed {
            if sampler.samples(place) {
                sampler.removed(time, place, stats);
            }
        }
        sampler.rewired();
    }

    /// Takes the samples that are due at `now`, before anything happens then.
    #[inline]
    pub(crate) fn sample_before(&mut self, now: Nanos) {
        while self.observing.next <= now {
            self.take_sample();
        }
    }

    /// Takes a last sample at the end of the run, if it is not that of a whole interval.
    pub(crate) fn sample_rest(&mut self, end: Nanos) {
        let Some(sampler) = &self.observing.sampler else { return };
        if end > self.observing.next.since(sampler.interval()) {
            self.observing.next = end;
            self.take_sample();
        }
    }

    #[cold]
    fn take_sample(&mut self) {
        let time = self.observing.next;
        let Some(mut sampler) = self.observing.sampler.take() else {
            self.observing.next = Nanos::NEVER;
            return;
        };
        for link in 0..self.emulation.links.len() as u32 {
            let place = self.emulation.links.place(link);
            if sampler.samples(place) {
                sampler.sample(time, place, &self.emulation.stats_at(&mut self.pool, link, time));
            }
        }
        self.observing.next = time + sampler.interval().max(Nanos(1));
        self.observing.sampler = Some(sampler);
    }
}
