//! The fast path: workers whose links lead only to ports, so that none sees another, and each is served for a whole step at once.
//!
//! A packet that came in, and whose path is one link here, enters it; a link that is due lets go of all that leaves by now; and both go to their ports'
//! batches. Whatever is not so plain (other workers, other nodes, what judges do besides, answers of links) goes the general way, of which this file
//! has nothing: [`Worker::enter`], [`Worker::leave`].

use crate::egress::NOWHERE_HERE;
use crate::worker::Worker;
use longwire_block::path::{DIRECT, LinkRef, Paths};
use longwire_link::{Affected, Fate, Fifo};
use longwire_packet::{Handle, Meta};
use longwire_units::Nanos;

/// How many links are served together: what each needs is fetched while others are served.
const DUE: usize = 32;
/// How many packets ahead the links are fetched that packets are to enter.
const AHEAD: usize = 8;

impl Worker {
    /// Arrivals first, then each link that is due.
    pub(crate) fn serve_by_link(&mut self, ready: &[Handle], now: Nanos) {
        if self.observer.is_some() {
            ready.iter().for_each(|&handle| self.enter(handle));
        } else if self.links.are_many() {
            self.enter_plain::<true>(ready);
        } else {
            self.enter_plain::<false>(ready);
        }
        let mut due = [0; DUE];
        loop {
            let count = self.wheel.take_due(now, &mut due);
            let due = &due[..count];
            due.iter().for_each(|&link| self.links.prefetch_leaving(link));
            due.iter().for_each(|&link| self.links.prefetch_first(&self.pool, link));
            due.iter().for_each(|&link| self.release(link, now));
            if count < DUE {
                return;
            }
        }
    }

    /// Lets packets enter their links; if these are `FAR`, anywhere in memory, each is fetched some packets ahead.
    fn enter_plain<const FAR: bool>(&mut self, ready: &[Handle]) {
        let here = LinkRef::first_of(self.index);
        if FAR {
            ready.iter().take(AHEAD).for_each(|&handle| self.prefetch(handle));
        }
        let mut affected = None;
        for (at, &handle) in ready.iter().enumerate() {
            if FAR && let Some(&later) = ready.get(at + AHEAD) {
                self.prefetch(later);
            }
            let &Meta { path, out_port, .. } = self.pool.meta(handle);
            // No link here has the number that another worker's, or none, or a longer path, comes to.
            let link = path ^ here;
            match self.links.arrive_plain(&mut self.pool, link, handle, &mut affected) {
                Fate::Through(leave) => self.put_out_plain(out_port, handle, leave, link),
                Fate::First(leave) => self.arm_first(link, leave),
                Fate::Behind | Fate::Dropped => {}
                Fate::NotPlain => self.enter_otherwise(handle),
                Fate::Affected => self.enter_affected(link, handle, affected.take()),
            }
        }
    }

    fn prefetch(&self, handle: Handle) {
        if let Some(link) = self.map.paths.link(self.pool.meta(handle).path)
            && link.worker() == self.index
        {
            self.links.prefetch(link.local());
        }
    }

    /// Puts a packet that has left one link, its last, into its port's batch.
    #[inline(always)]
    fn put_out_plain(&mut self, out_port: u16, handle: Handle, leave: Nanos, link: u32) {
        let slot = self.exits.get(usize::from(out_port)).copied().unwrap_or(NOWHERE_HERE);
        match self.ports.get_mut(slot as usize) {
            Some(port) => {
                if port.out.push(handle, 1, leave, link) {
                    self.flush_port(slot as usize);
                }
            }
            None => self.go_out(handle, out_port),
        }
    }

    /// Gives a link a place in the wheel on whose empty line there is a packet now.
    #[inline(always)]
    fn arm_first(&mut self, link: u32, leave: Nanos) {
        if *self.links.armed(link) == Nanos::NEVER {
            self.arm_at(link, leave);
        } else {
            self.arm(link);
        }
    }

    /// Sees to a packet that takes no link, or whose link asks for more.
    #[inline(never)]
    fn enter_otherwise(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        if meta.path == DIRECT {
            meta.leave = meta.arrival;
            return self.egress(handle);
        }
        self.enter(handle);
    }

    /// Goes on with a packet to which the judges of its link do something.
    #[inline(never)]
    fn enter_affected(&mut self, link: u32, handle: Handle, affected: Option<Affected>) {
        let mut out = Fifo::EMPTY;
        if let Some(affected) = affected {
            self.links.arrive_affected(&mut self.pool, link, (handle, affected), &mut out);
        }
        self.arm(link);
        self.arm_stirred();
        while let Some(handle) = out.pop(&self.pool) {
            self.leave(handle);
        }
    }

    /// Lets all that leaves by `now` leave a link, and gives it its next place in the wheel.
    #[inline(always)]
    fn release(&mut self, link: u32, now: Nanos) {
        loop {
            let Self { links, pool, ports, exits, .. } = self;
            // What can't go to a port at once, or the port whose batch is full.
            let (mut other, mut full) = (Handle::NONE, NOWHERE_HERE);
            let next = links.release_each(pool, link, now, |handle, meta| {
                let slot = exits.get(usize::from(meta.out_port)).copied().unwrap_or(NOWHERE_HERE);
                match ports.get_mut(slot as usize) {
                    Some(port) if meta.flags & Meta::ASIDE == 0 && Paths::is_one_link(meta.path) => {
                        if port.out.push(handle, meta.segments, Nanos(meta.leave), link) {
                            full = slot;
                        }
                    }
                    _ => other = handle,
                }
                full != NOWHERE_HERE || other != Handle::NONE
            });
            if full != NOWHERE_HERE {
                self.flush_port(full as usize);
            } else if other != Handle::NONE {
                self.leave(other);
            }
            if next > now {
                return self.arm_at(link, next);
            }
        }
    }
}
