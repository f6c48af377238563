//! Disciplines on links on which everything is decided at arrivals.

use super::{Discipline, Waiting};
use crate::fate::{Coming, Fate};
use crate::stage::OfStage;
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// A packet that asks for admission to a decided link. What waits is counted as far as known without looking
/// at packets: some may have been sent.
#[derive(Clone, Copy)]
pub struct Ahead<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) handle: Handle,
    /// Its arrival.
    pub now: Nanos,
    /// The time at which it begins to be sent, if it is admitted: now, if nothing waits.
    pub start: Nanos,
    /// Its bytes, as counted by the link's rate.
    pub bytes: u64,
    /// At least as much as waits.
    pub(crate) waiting: Waiting,
}

impl Ahead<'_> {
    /// Whether it waits for CoDel's target or longer. One that finds the transmitter idle does not wait at
    /// all.
    #[inline(always)]
    pub(super) fn waits_for(&self, target: Nanos) -> bool {
        self.start > self.now && self.start - self.now >= target
    }
}

/// What a discipline foresees for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foresight {
    /// It is admitted, and passed when it is sent.
    Passes,
    /// That depends on what waits exactly: the discipline is asked for admission, and then passes it when it
    /// is sent.
    Counts,
    /// That depends on what comes until it is sent: the link must serve it.
    Waits,
}

/// Busy periods for which a link serves, because packets of several queues met in the last one in which it
/// decided.
#[derive(Debug, Default)]
pub(super) struct Meeting(u8);

impl Meeting {
    /// To begin anew takes as long as to serve two packets.
    const PERIODS: u8 = 15;

    /// Packets of several queues meet.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.0 = Self::PERIODS;
    }

    /// Counts a busy period. Returns whether the link may decide in it.
    #[inline]
    pub(super) fn is_over(&mut self) -> bool {
        let left = self.0.checked_sub(1);
        self.0 = left.unwrap_or(0);
        left.is_none()
    }
}

/// A decided link, whose disciplines are those of stage `S`.
pub(crate) trait Decides<S>: Sized {
    /// Takes a packet into its queue, under this discipline.
    fn decide<Q: Discipline + OfStage<S>>(&mut self, pool: &mut Pool, handle: Handle, coming: Coming)
    -> Fate;
}

/// A function that takes a packet into the queue of a decided link.
pub(crate) type Decide<L> = fn(&mut L, &mut Pool, Handle, Coming) -> Fate;

/// See [`Decides::decide`].
pub(super) fn decide<L: Decides<S>, S, Q: Discipline + OfStage<S>>(
    link: &mut L,
    pool: &mut Pool,
    handle: Handle,
    coming: Coming,
) -> Fate {
    link.decide::<Q>(pool, handle, coming)
}
