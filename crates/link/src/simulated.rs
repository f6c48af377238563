//! What simulated runs ask of links besides: several workers need packets ahead of their time, and when a run
//! ends all links have come to the same time, whether anybody would have seen it or not.

use crate::fifo::Fifo;
use crate::has;
use crate::link::Link;
use crate::links::Links;
use longwire_packet::Pool;
use longwire_units::Nanos;

/// How far ahead of their time a link lets packets go, which is no longer than they travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    /// So much.
    pub by: Nanos,
    /// The end of the run: what leaves later is not let go.
    pub until: Nanos,
}

impl Links {
    /// When a link wants to be looked at next that lets packets go ahead of their time. Only packets on their
    /// way do go ahead: ends of transmission, and what else happens at a link, come at their time, because of
    /// what may arrive before.
    pub fn deadline_ahead(&self, link: u32, lead: Lead) -> Nanos {
        self.links[link as usize].deadline_ahead(lead)
    }

    /// Carries out what happens on a link by `now`, and lets go of what leaves within the lead after it, to
    /// `out`.
    pub fn expire_ahead(&mut self, pool: &mut Pool, link: u32, now: Nanos, lead: Lead, out: &mut Fifo) {
        let link = &mut self.links[link as usize];
        if link.line.features & has::MEDIUM == 0 {
            link.catch_up(pool, now);
        }
        link.release(pool, (now + lead.by).min(lead.until), out);
        if let Some(last) = out.last().filter(|_| link.is_decided()) {
            // What is on the line does not say it any more, if a change is to know it.
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

    /// The last arrival or end of transmission that was carried out on a link; none if it is a medium.
    pub fn latest(&self, link: u32) -> Option<Nanos> {
        self.links.get(link as usize).map(|link| link.latest)
    }

    /// How long a link that may have lost a packet on the wire waits for it all the same. With background
    /// traffic it looks when the packet is sent.
    pub fn vain_wait(&self, link: u32) -> Nanos {
        let link = &self.links[link as usize];
        let lossy = link.line.features & (has::WIRE | has::LOSSY_DELAY) != 0;
        if lossy && link.line.features & has::BACKGROUND == 0 {
            link.known_blocks().map_or(link.profile.delay, |blocks| blocks.delay.least())
        } else {
            Nanos::ZERO
        }
    }

    /// Carries out everything up to `now` but leaving, on a link: background traffic, too, that nobody has
    /// waited for.
    pub fn catch_up(&mut self, pool: &mut Pool, link: u32, now: Nanos) {
        self.advance_station(pool, link, now);
        self.links[link as usize].catch_up(pool, now);
    }
}

impl Link {
    fn deadline_ahead(&self, lead: Lead) -> Nanos {
        let on_line = self.line.next();
        let deadline = self.deadline();
        if deadline > lead.until {
            return Nanos::NEVER;
        }
        if deadline == on_line {
            return deadline.since(lead.by);
        }
        // The next to leave is still to be sent, or the queue to be asked again.
        let sent = if self.serves() { self.finish } else { deadline };
        let seen = deadline.since(lead.by).max(sent);
        if on_line > lead.until { seen } else { seen.min(on_line.since(lead.by)) }
    }
}
