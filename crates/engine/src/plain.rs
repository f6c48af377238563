//! The fast path: workers whose links lead only to ports, so that none sees another, and each is served for a whole step at once.
//!
//! A packet that came in, and whose path is one link here, enters it; a link that is due lets go of all that leaves by now; and both go to their ports'
//! batches. Whatever is not so plain (other workers, other nodes, what judges do besides, answers of links) goes the general way, of which this file
//! has nothing: [`Worker::enter`], [`Worker::leave`].

use crate::egress::NOWHERE_HERE;
use crate::slot::PortSlot;
use crate::worker::Worker;
use longwire_block::path::{DIRECT, LinkRef, Paths};
use longwire_link::{Passed, Stop};
use longwire_packet::{BATCH, Handle, Meta};
use longwire_units::Nanos;

/// How many links are served together: what each needs is fetched while others are served.
const DUE: usize = 32;

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
            let mut count = self.wheel.take_due(now, &mut due);
            let last = count < DUE;
            due[..count].iter().for_each(|&link| self.links.prefetch_leaving(link));
            due[..count].iter().for_each(|&link| self.links.prefetch_first(&self.pool, link));
            while count > 0 {
                count = self.release_one_each(&mut due[..count], now);
            }
            if last {
                return;
            }
        }
    }

    /// Lets packets enter their links; if these are `FAR`, anywhere in memory, those of a batch are fetched together.
    fn enter_plain<const FAR: bool>(&mut self, ready: &[Handle]) {
        let here = LinkRef::first_of(self.index);
        for mut rest in ready.chunks(BATCH) {
            if FAR {
                rest.iter().for_each(|&handle| self.links.prefetch(self.pool.meta(handle).path ^ here));
            }
            while !rest.is_empty() {
                let (entered, stop) = self.enter_run(here, rest);
                rest = &rest[entered..];
                match stop {
                    Stop::Done | Stop::Full => {}
                    Stop::Left(mut left) => {
                        while let Some(handle) = left.pop(&self.pool) {
                            self.leave(handle);
                        }
                    }
                    Stop::Elsewhere => {
                        if let Some((&handle, others)) = rest.split_first() {
                            self.enter_elsewhere(handle);
                            rest = others;
                        }
                    }
                }
            }
        }
    }

    /// Lets packets, a batch at most, enter links, and says how many have, and why no more have.
    #[inline(never)]
    fn enter_run(&mut self, here: u32, packets: &[Handle]) -> (usize, Stop) {
        let Self { links, pool, ports, exits, firsts, .. } = self;
        let mut exit = Exit::Open;
        let entered = links.enter(pool, here, packets, firsts, |Passed { handle, leave, link, out_port }| {
            exit = push_out(exits, ports, out_port, (handle, 1, leave, link));
            exit != Exit::Open
        });
        self.see_to(exit);
        for at in 0..self.firsts.as_slice().len() {
            let (link, leave) = self.firsts.as_slice()[at];
            self.arm_first(link, leave);
        }
        self.firsts.clear();
        self.arm_stirred();
        entered
    }

    /// Sends a batch that is full, or a packet that has left its link and can't go to a port at once.
    #[inline]
    fn see_to(&mut self, exit: Exit) {
        match exit {
            Exit::Open => {}
            Exit::Full(slot) => self.flush_port(slot as usize),
            Exit::Elsewhere(handle) => self.leave(handle),
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

    /// Sees to a packet that takes no link, or not one that is here.
    #[inline(never)]
    fn enter_elsewhere(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        if meta.path == DIRECT {
            meta.leave = meta.arrival;
            return self.egress(handle);
        }
        self.enter(handle);
    }

    /// Lets one packet leave each of the links that are `due`, so that the packets behind them reach the cache meanwhile. Those that may have more are moved
    /// to the front, and their number is answered; the others get their next place in the wheel.
    #[inline(always)]
    fn release_one_each(&mut self, due: &mut [u32], now: Nanos) -> usize {
        let mut left = 0;
        for at in 0..due.len() {
            let link = due[at];
            let Self { links, pool, ports, exits, .. } = self;
            let mut exit = Exit::Open;
            let next = links.release_each(pool, link, now, |handle, meta| {
                let &Meta { out_port, segments, leave, .. } = meta;
                let is_plain = meta.flags & Meta::ASIDE == 0 && Paths::is_one_link(meta.path);
                exit = match is_plain {
                    true => push_out(exits, ports, out_port, (handle, segments, Nanos(leave), link)),
                    false => Exit::Elsewhere(handle),
                };
                true
            });
            self.see_to(exit);
            if next <= now {
                due[left] = link;
                left += 1;
            } else {
                self.arm_at(link, next);
            }
        }
        left
    }
}

/// What is to be done before anything else can be given to ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Open,
    /// The batch of the port at this place is full.
    Full(u32),
    /// This packet goes to no port of this worker at once.
    Elsewhere(Handle),
}

/// Puts a packet that has left its last link (handle, segments, when, link) into its port's batch.
#[inline(always)]
fn push_out(
    exits: &[u32],
    ports: &mut [PortSlot],
    out_port: u16,
    (handle, segments, leave, link): (Handle, u16, Nanos, u32),
) -> Exit {
    let slot = exits.get(usize::from(out_port)).copied().unwrap_or(NOWHERE_HERE);
    let Some(port) = ports.get_mut(slot as usize) else { return Exit::Elsewhere(handle) };
    if port.out.push(handle, segments, leave, link) { Exit::Full(slot) } else { Exit::Open }
}
