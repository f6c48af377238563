//! Where packets wait for the transmitter, and who is let in.

pub mod ared;
mod average;
mod classes;
pub mod codel;
mod codel_law;
mod curve;
pub mod drr;
pub mod dualpi2;
mod early;
mod fair;
mod flow;
pub mod fq_codel;
pub mod fq_pie;
pub mod fred;
mod hall;
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
mod service;
mod settings;
pub mod sred;
pub mod tail_drop;
pub mod wf2q;

/// What `cargo xtask new` begins a block with, so that it is one.
#[cfg(test)]
#[path = "../../../../xtask/templates/queue.rs"]
mod template;

pub use hall::{Books, Hall, Waiting};
pub use service::Service;

use crate::fifo::Fifo;
use longwire_block::{Block, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::{Nanos, Rate};

/// What a queue is told when a packet or a segment asks to be let in.
#[derive(Clone, Copy)]
pub struct Admission<'a> {
    /// When it arrived.
    pub now: Nanos,
    /// Its bytes, as the link's rate counts them.
    pub bytes: u64,
    /// Packets in the queue, the one being sent included. Segments of a train count one each.
    pub packets_waiting: u64,
    /// Their bytes, as the link's rate counts them.
    pub bytes_waiting: u64,
    /// The rate at which the queue is expected to empty.
    pub rate: Rate,
    /// When the transmitter had nothing more to send the last time.
    pub idle_since: Nanos,
    /// The packet, or the train of which it is a segment.
    pub(crate) packet: Option<(&'a Pool, Handle)>,
    /// The band that a filter gave it, or `Meta::NO_BAND`.
    pub band: u8,
}

impl<'a> Admission<'a> {
    /// The frame from its Ethernet header on; of a train, the whole.
    #[inline]
    pub fn frame(&self) -> &'a [u8] {
        self.packet.map_or(&[], |(pool, handle)| pool.data(handle))
    }
}

/// A packet that comes to the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joining {
    pub(crate) handle: Handle,
    pub(crate) now: Nanos,
    /// What it counts.
    pub(crate) bytes: u64,
}

/// What a queue has for the transmitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This packet.
    Packet(Handle),
    /// Nothing before this time, though packets wait.
    Later(Nanos),
    /// Nothing.
    Empty,
}

/// A queue discipline.
///
/// A packet is asked about (`admit`), joins (`push`) and is taken out to be sent (`pop`). It counts from acceptance until its
/// last bit is sent, or on a link that sends by opportunities until one takes its first. Whatever a discipline drops of the packets that have joined, it gives to [`Hall::drop`].
/// While a packet waits, `Meta::counted()` is known, `Meta::arrival` when it came, and `Meta::band` its band.
/// The link keeps a list of packets for disciplines that need but one: [`Hall::append`], [`Hall::first`].
pub trait Discipline: Block {
    /// Whether a packet or segment may join, and whether it is marked.
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict;

    /// Adds a packet that was admitted.
    fn push(&mut self, hall: &mut Hall<'_>, handle: Handle) {
        hall.append(handle);
    }

    /// Takes over what waited in another discipline, or under other parameters, where nothing waits yet. It has been let in: so it is
    /// neither asked about nor dropped for how much it is, and what the discipline reckons from begins as it stands now.
    fn adopt(&mut self, hall: &mut Hall<'_>, mut waiting: Fifo) {
        while let Some(handle) = waiting.pop(hall.pool) {
            self.push(hall, handle);
        }
    }

    /// After new parameters: what waits goes where they would have put it, or else what comes later might overtake its own flow.
    fn resettle(&mut self, _: &mut Hall<'_>) {}

    /// Takes the packet to be sent next, at the moment `hall.now` at which the transmitter is free.
    fn pop(&mut self, hall: &mut Hall<'_>) -> Next {
        hall.first().map_or(Next::Empty, Next::Packet)
    }

    /// All packets that wait elsewhere than in the link's list, in the order in which they would be sent if no more came, or where
    /// time decides that, in the order in which they came: the run ends, or another discipline takes over.
    fn drain(&mut self, _: &mut Pool) -> Fifo {
        Fifo::EMPTY
    }

    /// Whether an admitted packet that finds the transmitter idle may go to it past `push` and `pop`.
    #[inline]
    fn direct(&self) -> bool {
        self.plain()
    }

    /// Whether all is decided when a packet asks to be let in: `push` and `pop` are as above.
    #[inline]
    fn plain(&self) -> bool {
        false
    }

    /// Whether several segments of a train may wait as one packet. Not where `pop` decides about each.
    fn whole_trains(&self) -> bool {
        false
    }

    /// Bytes of the tables that it keeps besides its own record, whether or not anything waits: flows, classes, lists.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Admits a packet and lets it join. The link's way through the discipline, compiled for each: so is what
    /// follows.
    #[inline]
    fn enter(&mut self, service: &mut impl Service, handle: Handle, now: Nanos, bytes: u64) -> Verdict
    where
        Self: Sized,
    {
        service.enter(self, (handle, now, bytes))
    }

    /// Lets a packet join that was admitted.
    #[inline]
    fn join(&mut self, service: &mut impl Service, handle: Handle, now: Nanos, bytes: u64)
    where
        Self: Sized,
    {
        service.join(self, (handle, now, bytes));
    }

    /// Sends the packet on its way that is being sent, and all behind it whose last bit is sent by `until`.
    #[inline]
    fn send(&mut self, service: &mut impl Service, until: Nanos)
    where
        Self: Sized,
    {
        service.send(self, until);
    }

    /// Begins the next packet at `start`, after a pause or at the end of the one before.
    #[inline]
    fn begin(&mut self, service: &mut impl Service, start: Nanos, pause: bool)
    where
        Self: Sized,
    {
        service.begin(self, start, pause);
    }
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
    fn push(&mut self, hall: &mut Hall<'_>, handle: Handle);
    fn adopt(&mut self, hall: &mut Hall<'_>, waiting: Fifo);
    fn resettle(&mut self, hall: &mut Hall<'_>);
    fn pop(&mut self, hall: &mut Hall<'_>) -> Next;
    fn drain(&mut self, pool: &mut Pool) -> Fifo;
    ask
    fn direct(&self) -> bool;
    fn plain(&self) -> bool;
    fn whole_trains(&self) -> bool;
    fn memory_bytes(&self) -> usize;
    apart
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict;
    fn enter(&mut self, service: &mut impl Service, handle: Handle, now: Nanos, bytes: u64) -> Verdict;
    fn join(&mut self, service: &mut impl Service, handle: Handle, now: Nanos, bytes: u64);
    fn send(&mut self, service: &mut impl Service, until: Nanos);
    fn begin(&mut self, service: &mut impl Service, start: Nanos, pause: bool);
}

impl Default for Queue {
    fn default() -> Self {
        Self::TailDrop(tail_drop::TailDrop::default())
    }
}
