//! Background packets at a link: they occupy the queue and transmission time, and exist nowhere else.
//!
//! They pass the same queue discipline as all others, as UDP datagrams of one flow without ECN; filters and
//! impairments don't see them, and they end when their last bit is sent.

use crate::background::Background;
use crate::has;
use crate::link::Link;
use crate::queue::Joining;
use longwire_block::{DropReason, Verdict};
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::Nanos;

/// The frame of all background packets: Ethernet, IPv4 and UDP headers between documentation addresses (RFC
/// 5737), to the discard port.
const FRAME: [u8; 42] = [
    2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0x90, 0xcd, 192, 0, 2, 1,
    192, 0, 2, 2, 0, 9, 0, 9, 0, 8, 0, 0,
];

/// Longest time after a background packet until its link is served in real time, so that a long pause does
/// not leave much to catch up at once.
const KEEP_UP: Nanos = Nanos::from_millis(1);

/// Time before `now` that is not caught up, because the engine sees packets some time after their stamps.
const LAG: Nanos = Nanos::from_micros(100);

impl Link {
    /// Executes everything up to `now` except departures, on a link with other events: departures before
    /// arrivals.
    #[inline(never)]
    pub(crate) fn catch_up_with_others(&mut self, pool: &mut Pool, now: Nanos) {
        loop {
            let phantom = self.next_phantom();
            let finish = if self.blocks().sending.is_none() { Nanos::NEVER } else { self.finish };
            let resume = if self.line.features & has::WAITING == 0 { Nanos::NEVER } else { self.resume() };
            let front = self.next_in_front();
            let next = finish.min(resume).min(phantom).min(front);
            if next > now || next == Nanos::NEVER {
                return;
            }
            if next == finish {
                if self.line.features & has::OPPORTUNITIES == 0 {
                    self.send_off(pool, finish);
                } else {
                    self.send_off_by_opportunities(pool, finish);
                }
            } else if next == resume {
                self.latest = self.latest.max(resume);
                if self.line.features & has::OPPORTUNITIES == 0 {
                    self.begin_next(pool, resume);
                } else {
                    self.take_next(pool, resume);
                }
            } else if next == phantom {
                self.phantom_arrives(pool, phantom);
            } else {
                self.arrive_from_front(pool, front);
            }
        }
    }

    /// The time at which background traffic alone requires service; never in simulated time, where it is
    /// invisible.
    pub(crate) fn keep_up(&self) -> Nanos {
        let rare = self.known_rare();
        match rare.and_then(|rare| rare.background.as_ref()).filter(|background| background.real_time) {
            Some(background) if background.next() != Nanos::NEVER => background.next() + KEEP_UP,
            _ => Nanos::NEVER,
        }
    }

    /// Time at which a packet comes to the queue by itself, or the queue has one again.
    pub(crate) fn next_at_queue(&self) -> Nanos {
        let resume = if self.line.features & has::WAITING == 0 { Nanos::NEVER } else { self.resume() };
        if self.line.features & (has::BACKGROUND | has::FRONT) == 0 {
            return resume;
        }
        resume.min(self.next_phantom()).min(self.next_in_front())
    }

    /// Time up to which background traffic is caught up with, if there is nothing else.
    pub(crate) fn behind(now: Nanos) -> Nanos {
        now.since(LAG)
    }

    fn next_phantom(&self) -> Nanos {
        let rare = self.known_rare();
        rare.and_then(|rare| rare.background.as_ref()).map_or(Nanos::NEVER, Background::next)
    }

    /// Lets a background packet join the queue, or drops it.
    fn phantom_arrives(&mut self, pool: &mut Pool, now: Nanos) {
        let rare = self.rare();
        let Some(background) = &mut rare.background else { return };
        let (_, size) = background.process.next();
        rare.made += 1;
        let Some(handle) = phantom(pool, now, size) else {
            return self.count_drop(DropReason::PoolFull, 1);
        };
        self.latest = self.latest.max(now);
        let bytes = self.counted(pool, handle, size);
        let packet = Joining { handle, now, bytes };
        if let Verdict::Drop(reason) = self.admit(pool, packet, Meta::NO_BAND) {
            return self.drop(pool, handle, reason);
        }
        self.rare().phantoms += 1;
        self.wait_or_begin(pool, packet);
    }
}

/// A background packet of `size` bytes; none if the pool is full.
fn phantom(pool: &mut Pool, now: Nanos, size: u32) -> Option<Handle> {
    let handle = pool.insert(&FRAME)?;
    let meta = pool.meta_mut(handle);
    (meta.wire_len, meta.arrival, meta.flags) = (size, now.0, Meta::PHANTOM);
    meta.set_band(Meta::NO_BAND);
    Some(handle)
}
