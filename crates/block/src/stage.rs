//! What every block of a link has in common, what those that judge packets are shown, and what they answer.

use crate::{Dice, DropReason, Settings, Spec};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// A block of a link: a filter, an impairment, a queue, a transmitter, a delay.
pub trait Block: Sized {
    /// What can be set of it.
    type Settings: Settings;

    /// Its row in the registry.
    const SPEC: Spec = <Self::Settings as Settings>::SPEC;

    /// The block with these settings, drawing from `dice`.
    fn build(settings: Self::Settings, dice: Dice) -> Self;

    /// Takes new settings; what the block has gathered so far stays, and its stream of draws goes on.
    fn change(&mut self, settings: Self::Settings);

    /// Told before anything else: when the run begins on the engine's clock. Schedules and traces count from
    /// there.
    fn start(&mut self, _begin: Nanos) {}
}

/// A packet, or one segment of a train, as a judge sees it, with what the judges before have done to it.
#[derive(Clone)]
pub struct Offer<'a> {
    /// When it arrived at the link; on the wire, when its last bit was sent.
    pub now: Nanos,
    /// Length of its frame without FCS, in bytes.
    pub bytes: u32,
    frame: Frame<'a>,
    effects: Option<Effects>,
}

/// Where the frame is: most judges never look.
#[derive(Clone)]
enum Frame<'a> {
    Here(&'a [u8]),
    Pooled(&'a Pool, Handle),
}

impl<'a> Offer<'a> {
    /// A packet of this frame, to which nothing has been done.
    #[inline]
    pub fn new(now: Nanos, bytes: u32, frame: &'a [u8]) -> Self {
        Self { now, bytes, frame: Frame::Here(frame), effects: None }
    }

    /// The same for a packet in the pool.
    #[inline]
    pub fn pooled(now: Nanos, bytes: u32, pool: &'a Pool, handle: Handle) -> Self {
        Self { now, bytes, frame: Frame::Pooled(pool, handle), effects: None }
    }

    /// The frame from its Ethernet header on; of a train, the whole, whose headers are those of each segment
    /// but for sequence numbers, lengths and checksums.
    #[inline]
    pub fn frame(&self) -> &'a [u8] {
        match self.frame {
            Frame::Here(frame) => frame,
            Frame::Pooled(pool, handle) => pool.data(handle),
        }
    }

    /// The number that programs have given it ([`Meta::mark`](longwire_packet::Meta::mark)); 0 if none has.
    #[inline]
    pub fn mark(&self) -> u32 {
        match self.frame {
            Frame::Here(_) => 0,
            Frame::Pooled(pool, handle) => pool.meta(handle).mark(),
        }
    }

    /// What is to happen to it besides: for judges to add to.
    #[inline]
    pub fn effects(&mut self) -> &mut Effects {
        self.effects.get_or_insert_with(Effects::default)
    }

    /// What the judges have done to it; none if they have done nothing.
    #[inline]
    pub fn done(&self) -> Option<&Effects> {
        self.effects.as_ref()
    }
}

/// What judges do to a packet that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    /// Mark it as having met congestion, if it is ECN-capable (RFC 3168).
    pub mark: bool,
    /// Flip bits of it.
    pub flips: Option<Flips>,
    /// Send a copy of it, which travels this much longer.
    pub copy: Option<Nanos>,
    /// Let it travel this much less, overtaking others.
    pub ahead: Option<Nanos>,
    /// Let it leave the moment it comes, past the queue, the rate and the delay. Only before the queue.
    pub past: bool,
    /// The queue's band or class it belongs to.
    pub band: Option<u8>,
    /// Its new DSCP (RFC 2474), 0 to 63.
    pub dscp: Option<u8>,
    /// The link it is to take instead: an index into the scenario's list of such targets.
    pub steer: Option<u16>,
    /// Tell its sender that it is too big for a link of this MTU (RFC 1191, RFC 8201). Only with a drop.
    pub too_big: Option<u32>,
}

impl Effects {
    /// Whether there are any.
    #[inline]
    pub fn any(&self) -> bool {
        self.mark
            | self.flips.is_some()
            | self.copy.is_some()
            | self.ahead.is_some()
            | self.past
            | self.band.is_some()
            | self.dscp.is_some()
            | self.steer.is_some()
            | self.too_big.is_some()
    }

    /// Whether they change what stands in the packet, make another, or let it overtake the queue: a segment
    /// can't stay in its train then.
    #[inline]
    pub fn rewrite(&self) -> bool {
        self.mark || self.past || self.dscp.is_some() || self.flips.is_some() || self.copy.is_some()
    }
}

/// Bits to flip in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flips {
    /// How many, 1 to 65535; never the same twice.
    pub count: u16,
    /// Whether Ethernet, IP and transport headers are spared.
    pub spare_headers: bool,
    /// What their places derive from.
    pub seed: u64,
}

/// What a stage decides about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Pass,
    /// It goes on, marked as having met congestion; whoever says so has seen that it is ECN-capable.
    Mark,
    /// It is dropped.
    Drop(DropReason),
}
