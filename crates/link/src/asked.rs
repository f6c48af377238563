//! Decided links whose discipline is asked about each packet: the path through the queue, compiled for each
//! discipline.
//!
//! RED and its variants decide at admission, by the exact backlog. CoDel decides when a packet is taken to be
//! sent, and PIE at its updates; but most packets can be passed for what is known on arrival
//! ([`Discipline::foresee`]), without counting what still waits.

use crate::blocks::Blocks;
use crate::fate::{Arrival, Coming, Fate};
use crate::has;
use crate::link::{Link, Surroundings};
use crate::profile::Draws;
use crate::queue::tail_drop::TailDrop;
use crate::queue::{Admission, Ahead, Decide, Decides, Discipline, Foresight, Joining, Queue, Waiting};
use crate::stage::OfStage;
use crate::transmit::Backlog;
use longwire_block::{DropReason, Verdict};
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::Nanos;

impl Decides<Queue> for Link {
    #[inline(always)]
    fn decide<Q: Discipline + OfStage<Queue>>(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        Coming { now, frame }: Coming,
    ) -> Fate {
        let bytes = self.counted(pool, handle, frame);
        let waits = self.is_sending(now);
        let (start, rest, waiting) = match waits {
            true => (self.finish, self.rest, self.waiting),
            false => (now, 0, Waiting::default()),
        };
        match self.foresee::<Q>(&Ahead { pool, handle, now, start, bytes, waiting }) {
            Foresight::Passes => self.waiting = waiting,
            Foresight::Waits => return Fate::Waits,
            Foresight::Counts => {
                self.recount(pool, now);
                if let Some(reason) = self.admit_exactly::<Q>(pool, Joining { handle, now, bytes }) {
                    return Fate::Dropped(reason);
                }
            }
        }
        if self.profile.asks_behind {
            return Fate::Admitted;
        }
        if self.profile.asks_transmitter {
            self.finish = self.blocks().transmit.send(!waits, start, bytes);
        } else {
            (self.finish, self.rest) = self.profile.law.send(start, rest, bytes);
        }
        Fate::Joined(self.wait_on_line(pool, handle, bytes, self.finish + self.profile.delay))
    }
}

impl Link {
    /// The path through its discipline: tail drop, if it has no blocks.
    #[inline(always)]
    pub(crate) fn decider(&self) -> Decide<Self> {
        self.known_blocks().map_or(Self::decide::<TailDrop>, |blocks| blocks.queue.decide())
    }

    /// What the discipline foresees.
    #[inline(always)]
    fn foresee<Q: Discipline + OfStage<Queue>>(&mut self, packet: &Ahead<'_>) -> Foresight {
        let Self { own, profile, .. } = self;
        let Some(Blocks { queue, transmit, .. }) = own.as_deref_mut() else { return Foresight::Counts };
        let Some(queue) = Q::of(queue) else { return Foresight::Counts };
        let backlog = Backlog {
            packets: u64::from(packet.waiting.packets) + 1,
            bytes: packet.waiting.bytes + packet.bytes,
        };
        queue.foresee(packet, || match profile.asks_transmitter {
            true => transmit.departure_rate(backlog),
            false => profile.law.rate(),
        })
    }

    /// Asks the discipline about a packet, with the exact backlog. Returns the reason if it drops it.
    #[inline(always)]
    fn admit_exactly<Q: Discipline + OfStage<Queue>>(
        &mut self,
        pool: &mut Pool,
        packet: Joining,
    ) -> Option<DropReason> {
        let Joining { handle, now, bytes } = packet;
        let (waiting, rate) = (self.waiting, self.expected_rate(self.waiting, bytes));
        let Some(blocks) = self.own.as_deref_mut() else {
            let has_room = self.profile.queue.has_room(waiting, bytes, || rate);
            return (!has_room).then_some(DropReason::QueueFull);
        };
        let queue = Q::of(&mut blocks.queue)?;
        queue.notice_backlog(waiting.bytes);
        let verdict = queue.admit(&Admission {
            now,
            bytes,
            packets_waiting: waiting.packets.into(),
            bytes_waiting: waiting.bytes,
            rate,
            idle_since: blocks.books.idle_since,
            packet: Some((pool, handle)),
            band: Meta::NO_BAND,
        });
        blocks.books.due = queue.due();
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark => self.mark(pool, handle),
            Verdict::Drop(reason) => return Some(reason),
        }
        None
    }

    /// Whether the discipline must be informed of a packet that is sent at `finish` on a decided link.
    #[inline(always)]
    pub(crate) fn is_due(&self, finish: Nanos) -> bool {
        self.line.features & has::PLAIN == 0
            && self.profile.asks_queue
            && self.known_blocks().is_some_and(|blocks| blocks.books.due <= finish)
    }

    /// Informs the discipline of a packet sent at `finish`, before it is no longer counted as waiting.
    #[cold]
    #[inline(never)]
    pub(crate) fn report_sent(&mut self, finish: Nanos) {
        let waiting = self.waiting;
        let rate = self.expected_rate(waiting, 0);
        let blocks = self.blocks();
        blocks.queue.notice_backlog(waiting.bytes);
        blocks.queue.sent(finish, rate);
        blocks.books.due = blocks.queue.due();
    }

    /// Serves packets from now on, for one that waits for longer than the discipline can foresee.
    #[inline(never)]
    pub(crate) fn wait_served(
        &mut self,
        dice: Draws<'_>,
        at: &mut Surroundings<'_>,
        handle: Handle,
    ) -> Arrival {
        let (now, frame) = (self.latest, at.pool.meta(handle).wire_len);
        self.pick_up_dice(dice);
        self.serve(at.pool, now);
        let bytes = self.counted(at.pool, handle, frame);
        self.enter(at.pool, Joining { handle, now, bytes });
        Arrival::DeadlineChanged
    }
}
