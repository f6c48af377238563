//! Queues before the transmitter, and admission to them.

mod ahead;
pub mod ared;
mod average;
mod classes;
pub mod codel;
mod codel_law;
mod context;
mod counted;
mod curve;
pub mod drr;
pub mod dualpi2;
mod early;
mod fair;
mod flow;
pub mod fq_codel;
pub mod fq_pie;
pub mod fred;
pub mod head_drop;
mod heap;
pub mod hfsc;
mod hfsc_tree;
mod lane;
mod leaf;
pub mod pie;
mod pie_law;
pub mod priority;
pub mod red;
pub mod rio;
mod settings;
pub mod sred;
pub mod tail_drop;
pub mod wf2q;

/// The template of `cargo xtask new`, compiled as a block.
#[cfg(test)]
#[path = "../../../../xtask/templates/queue.rs"]
mod template;

pub use ahead::{Ahead, Foresight};
pub(crate) use ahead::{Decide, Decides};
pub use context::{QueueContext, Waiting, WaitingList};

use crate::fifo::Fifo;
use ahead::{Meeting, decide};
use longwire_block::{Block, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::{Nanos, Rate};

/// A packet or segment that asks for admission.
#[derive(Clone, Copy)]
pub struct Admission<'a> {
    /// Its arrival.
    pub now: Nanos,
    /// Its bytes, as counted by the link's rate.
    pub bytes: u64,
    /// Packets in the queue, the one being sent included. Each segment of a train is counted.
    pub packets_waiting: u64,
    /// Their bytes, as counted by the link's rate.
    pub bytes_waiting: u64,
    /// The expected departure rate of the queue.
    pub rate: Rate,
    /// Time at which the transmitter last became idle.
    pub idle_since: Nanos,
    /// The packet, or the train of which it is a segment.
    pub(crate) packet: Option<(&'a Pool, Handle)>,
    /// The band assigned by a filter, or `Meta::NO_BAND`.
    pub band: u8,
}

impl<'a> Admission<'a> {
    /// The frame from its Ethernet header on; for a train, the whole.
    #[inline]
    pub fn frame(&self) -> &'a [u8] {
        self.packet.map_or(&[], |(pool, handle)| pool.data(handle))
    }
}

/// A packet that arrives at the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joining {
    pub(crate) handle: Handle,
    pub(crate) now: Nanos,
    /// Its counted bytes.
    pub(crate) bytes: u64,
}

/// The queue's answer to the transmitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This packet.
    Packet(Handle),
    /// No packet before this time, though some wait.
    Later(Nanos),
    /// Nothing.
    Empty,
}

/// A queue discipline.
///
/// A packet is judged (`admit`), joins (`push`) and is taken out to be sent (`pop`). It counts from
/// acceptance until its last bit is sent, or on a link with opportunities until one takes its first. A
/// discipline passes packets that it drops after they joined to [`QueueContext::drop`]. While a packet waits,
/// `Meta::counted()`, `Meta::arrival` and `Meta::band` are valid. The link keeps a list of packets for
/// disciplines that need only one: [`QueueContext::append`], [`QueueContext::first`].
pub trait Discipline: Block {
    /// Whether a packet or segment may join, and whether it is marked.
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict;

    /// Adds an admitted packet.
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        context.append(handle);
    }

    /// Takes over packets from another discipline, or from other parameters, into an empty queue. They were
    /// admitted before: so they are neither judged again nor dropped for their number, and the discipline's
    /// state starts from the current backlog.
    fn adopt(&mut self, context: &mut QueueContext<'_>, mut waiting: Fifo) {
        while let Some(handle) = waiting.pop(context.pool) {
            self.push(context, handle);
        }
    }

    /// Called after new parameters: moves waiting packets to where the parameters would have put them, so
    /// that later packets don't overtake their own flow.
    fn resettle(&mut self, _: &mut QueueContext<'_>) {}

    /// Takes the next packet, at the moment `context.now` at which the transmitter is free.
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next {
        context.first().map_or(Next::Empty, Next::Packet)
    }

    /// Removes all packets outside the link's list, in the order in which they would be sent, or, if time
    /// determines that, in order of arrival: at the end of the run, or when another discipline takes over.
    fn drain(&mut self, _: &mut Pool) -> Fifo {
        Fifo::EMPTY
    }

    /// Whether an admitted packet that finds the transmitter idle may bypass `push` and `pop`.
    #[inline]
    fn direct(&self) -> bool {
        self.plain()
    }

    /// Whether everything is decided at admission: `push` and `pop` are the defaults above. Several segments
    /// of a train may then wait as one packet.
    #[inline]
    fn plain(&self) -> bool {
        false
    }

    /// Whether everything can be decided at arrivals, because a packet's fate is known at its admission or
    /// foreseen by [`Discipline::foresee`]; all are sent in order.
    #[inline]
    fn foresees(&self) -> bool {
        self.plain()
    }

    /// Whether an idle link begins to decide with the packet that comes. A discipline that foresaw too little
    /// lately may prefer to serve.
    #[inline]
    fn begins_to_decide(&mut self) -> bool {
        true
    }

    /// Foresees the fate of a packet that asks for admission to a decided link, on which everything waiting
    /// was passed; `rate` is the expected departure rate. Such a link counts only what it must:
    /// [`Discipline::push`] and [`Discipline::pop`] are not called for the packet.
    #[inline]
    fn foresee(&mut self, _packet: &Ahead<'_>, _rate: impl FnOnce() -> Rate) -> Foresight {
        Foresight::Counts
    }

    /// The time from which on the discipline must be informed of packets sent by a decided link.
    #[inline]
    fn due(&self) -> Nanos {
        Nanos::NEVER
    }

    /// Reports that a decided link has sent a packet at `finish`, which is not before [`Discipline::due`].
    /// `rate` is the expected departure rate.
    fn sent(&mut self, _finish: Nanos, _rate: Rate) {}

    /// Informs it that `bytes` have waited since the last arrival or end of transmission on a decided link,
    /// the packet being sent included.
    #[inline]
    fn notice_backlog(&mut self, _bytes: u64) {}

    /// Takes over packets that a decided link has passed, and that still wait behind the one being sent: from
    /// now on it is asked when each is sent. Returns those that the link keeps in its list.
    fn take_back(&mut self, _pool: &mut Pool, _sending: Handle, waiting: Fifo) -> Fifo {
        waiting
    }

    /// Bytes of its tables besides its own record, whether or not packets wait: flows, classes, lists.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Admits a packet and lets it join. The link's path through the discipline, compiled for each, as are
    /// the following.
    #[inline]
    fn enter(&mut self, service: &mut impl Service, handle: Handle, now: Nanos, bytes: u64) -> Verdict {
        service.enter(self, (handle, now, bytes))
    }

    /// Lets an admitted packet join.
    #[inline]
    fn join(&mut self, service: &mut impl Service, handle: Handle, now: Nanos, bytes: u64) {
        service.join(self, (handle, now, bytes));
    }

    /// Puts in flight the packet being sent, and all behind it whose last bit is sent by `until`.
    #[inline]
    fn send(&mut self, service: &mut impl Service, until: Nanos) {
        service.send(self, until);
    }

    /// Begins the next packet at `start`, after a pause or at the end of the previous one.
    #[inline]
    fn begin(&mut self, service: &mut impl Service, start: Nanos, pause: bool) {
        service.begin(self, start, pause);
    }
}

/// A link whose discipline is temporarily taken out, so that both are mutable: its path through the
/// discipline, compiled for each. A packet comes with its time and counted bytes.
pub trait Service {
    /// See [`Discipline::enter`].
    fn enter<Q: Discipline>(&mut self, queue: &mut Q, packet: (Handle, Nanos, u64)) -> Verdict;

    /// See [`Discipline::join`].
    fn join<Q: Discipline>(&mut self, queue: &mut Q, packet: (Handle, Nanos, u64));

    /// See [`Discipline::send`].
    fn send<Q: Discipline>(&mut self, queue: &mut Q, until: Nanos);

    /// See [`Discipline::begin`].
    fn begin<Q: Discipline>(&mut self, queue: &mut Q, start: Nanos, pause: bool);
}

crate::stage::stage! {
    /// A queue discipline.
    Queue: Discipline {
        inline {
            TailDrop = tail_drop::TailDrop,
        }
        boxed {
            HeadDrop = head_drop::HeadDrop,
            Red = red::Red,
            Ared = ared::Ared,
            Rio = rio::Rio,
            Fred = fred::Fred,
            Sred = sred::Sred,
            Codel = codel::Codel,
            FqCodel = fq_codel::FqCodel,
            Pie = pie::Pie,
            FqPie = fq_pie::FqPie,
            DualPi2 = dualpi2::DualPi2,
            Drr = drr::Drr,
            Wf2q = wf2q::Wf2q,
            Hfsc = hfsc::Hfsc,
            Priority = priority::Priority,
        }
    }
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle);
    fn adopt(&mut self, context: &mut QueueContext<'_>, waiting: Fifo);
    fn resettle(&mut self, context: &mut QueueContext<'_>);
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next;
    fn drain(&mut self, pool: &mut Pool) -> Fifo;
    fn begins_to_decide(&mut self) -> bool;
    fn sent(&mut self, finish: Nanos, rate: Rate);
    fn notice_backlog(&mut self, bytes: u64);
    fn take_back(&mut self, pool: &mut Pool, sending: Handle, waiting: Fifo) -> Fifo;
    ask
    fn direct(&self) -> bool;
    fn plain(&self) -> bool;
    fn foresees(&self) -> bool;
    fn due(&self) -> Nanos;
    fn memory_bytes(&self) -> usize;
    apart
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict;
    fn enter(&mut self, service: &mut impl Service, handle: Handle, now: Nanos, bytes: u64) -> Verdict;
    fn join(&mut self, service: &mut impl Service, handle: Handle, now: Nanos, bytes: u64);
    fn send(&mut self, service: &mut impl Service, until: Nanos);
    fn begin(&mut self, service: &mut impl Service, start: Nanos, pause: bool);
    entry fn decide<L: Decides<Queue>>(&self) -> Decide<L> = decide;
}

impl Default for Queue {
    fn default() -> Self {
        Self::TailDrop(tail_drop::TailDrop::default())
    }
}
