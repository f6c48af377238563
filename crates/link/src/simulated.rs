//! Further operations for simulated runs: several workers need packets ahead of their time, and at the end of
//! a run all links must reach the same time, whether or not that is visible.

use crate::fifo::Fifo;
use crate::has;
use crate::links::Links;
use longwire_packet::Pool;
use longwire_units::Nanos;

/// Lead time by which a link releases packets early, which is at most their delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    /// The lead.
    pub by: Nanos,
    /// The end of the run: later departures are not released.
    pub until: Nanos,
}

impl Links {
    /// The next deadline of a link that releases packets early. Only packets in flight are early: ends of
    /// transmission, and other events of a link, happen at their time, because of what may arrive before.
    pub fn deadline_ahead(&self, link: u32, lead: Lead) -> Nanos {
        let link = &self.links[link as usize];
        let on_line = link.line.next();
        let deadline = link.deadline();
        if deadline > lead.until {
            return Nanos::NEVER;
        }
        if deadline == on_line {
            return deadline.since(lead.by);
        }
        // The next to leave is still to be sent, or the queue must be asked again.
        let sent = if link.serves() { link.finish } else { deadline };
        let seen = deadline.since(lead.by).max(sent);
        if on_line > lead.until { seen } else { seen.min(on_line.since(lead.by)) }
    }

    /// Executes events of a link by `now`, and releases departures within the lead after it, to `out`.
    pub fn expire_ahead(&mut self, pool: &mut Pool, link: u32, now: Nanos, lead: Lead, out: &mut Fifo) {
        let link = &mut self.links[link as usize];
        if link.line.features & has::MEDIUM == 0 {
            link.catch_up(pool, now);
        }
        link.release(pool, (now + lead.by).min(lead.until), out);
        if let Some(last) = out.last().filter(|_| link.is_decided()) {
            // It will no longer follow from the line's contents, which a change must know.
            let leave = Nanos(pool.meta(last).leave());
            let blocks = link.blocks();
            blocks.last = blocks.last.max(leave);
        }
    }

    /// Background packets that a link holds.
    pub fn phantoms(&self, link: u32) -> u32 {
        let rare = self.links[link as usize].known_rare();
        rare.map_or(0, |rare| rare.phantoms)
    }

    /// The last executed arrival or end of transmission of a link; none if it is a medium.
    pub fn latest(&self, link: u32) -> Option<Nanos> {
        self.links.get(link as usize).map(|link| link.latest)
    }

    /// Time that a link waits for a packet that it may have lost on the wire. With background traffic it is
    /// served when the packet is sent.
    pub fn vain_wait(&self, link: u32) -> Nanos {
        let link = &self.links[link as usize];
        let lossy = link.line.features & (has::WIRE | has::LOSSY_DELAY) != 0;
        if lossy && link.line.features & has::BACKGROUND == 0 {
            link.known_blocks().map_or(link.profile.delay, |blocks| blocks.delay.least())
        } else {
            Nanos::ZERO
        }
    }

    /// Executes everything up to `now` except departures on a link, including background traffic that did not
    /// wake it.
    pub fn catch_up(&mut self, pool: &mut Pool, link: u32, now: Nanos) {
        self.advance_station(pool, link, now);
        self.links[link as usize].catch_up(pool, now);
    }

    /// Bytes in a link's queue at `now`, the packet being sent included, as its rate counts them.
    pub fn queued_bytes(&mut self, pool: &mut Pool, link: u32, now: Nanos) -> u64 {
        self.catch_up(pool, link, now);
        self.links[link as usize].stats().queued_bytes
    }
}
