//! Links whose transmitter sends at opportunities, like the cellular links whose traces mahimahi replays.
//!
//! A packet waits in the queue until an opportunity comes, which takes it out of the queue, with as many of
//! its bytes as the opportunity has. The rest of the opportunity is for the next packet, and the rest of the
//! packet for the next opportunity. So an idle transmitter takes no packet early, the queue discipline sees
//! how long packets wait in an outage, and the packet being sent does not count towards the queue's limit
//! (Mahimahi: Accurate Record-and-Replay for HTTP, USENIX ATC 2015, section 3.3, and its `mm-link`).

use crate::has;
use crate::link::Link;
use crate::queue::Next;
use crate::rare::PartlyTaken;
use longwire_packet::Pool;
use longwire_units::Nanos;

impl Link {
    /// Makes packets of a transmitter that is idle at `now` wait for an opportunity.
    #[inline(never)]
    pub(crate) fn await_opportunity(&mut self, pool: &mut Pool, now: Nanos) {
        let at = self.blocks().transmit.opportunity_after(now);
        if at <= now {
            // The trace has ended, and the link is no longer limited.
            self.take_next(pool, now);
        } else {
            self.wait(at);
        }
    }

    /// Takes the next packet out of the queue at an opportunity.
    #[inline(never)]
    pub(crate) fn take_next(&mut self, pool: &mut Pool, now: Nanos) {
        match self.with_queue(pool, |queue, at| queue.pop(&mut at.link.context(at.pool, now))) {
            Next::Packet(next) => {
                self.line.features &= !has::WAITING;
                self.blocks().transmit.follow(now, pool.meta(next).counted());
                self.finish = self.blocks().transmit.finish();
                self.blocks().sending = next;
                if self.finish > now {
                    self.note_taken(pool);
                    if self.waiting.packets == 0 {
                        self.blocks().books.idle_since = now;
                    }
                }
            }
            Next::Later(resume) => {
                let resume = resume.max(now + Nanos(1));
                let at = self.blocks().transmit.opportunity_after(resume - Nanos(1)).max(resume);
                self.idle(Next::Later(at), now);
            }
            Next::Empty => self.idle(Next::Empty, now),
        }
    }

    /// Puts the packet in flight whose last byte was taken by an opportunity at `finish`, and continues with
    /// the next.
    #[inline(never)]
    pub(crate) fn send_off_by_opportunities(&mut self, pool: &mut Pool, finish: Nanos) {
        self.untake();
        let sent = self.blocks().sending;
        self.send_on(pool, sent, finish);
        if self.waiting.packets == 0 {
            return self.idle(Next::Empty, finish);
        }
        match self.blocks().transmit.next_opportunity(finish) {
            at if at > finish => self.idle(Next::Later(at), finish),
            _ => self.take_next(pool, finish),
        }
    }

    /// Stops counting the packet being sent as waiting, for transmission by opportunities.
    pub(crate) fn note_taken(&mut self, pool: &Pool) {
        if self.line.features & has::OPPORTUNITIES == 0 {
            return;
        }
        let meta = pool.meta(self.blocks().sending);
        self.waiting.unqueue(meta);
        self.rare().taken = PartlyTaken { packets: meta.segments.into(), bytes: meta.counted() };
    }

    /// Counts the packet being sent as waiting until it is sent, as on other links.
    pub(crate) fn untake(&mut self) {
        if let Some(rare) = self.known_rare_mut() {
            let taken = std::mem::take(&mut rare.taken);
            self.waiting.packets += taken.packets;
            self.waiting.bytes += taken.bytes;
        }
    }
}
