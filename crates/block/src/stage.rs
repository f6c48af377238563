//! The part of the contract that all blocks of a link share, and the offers and verdicts of judges.

use crate::{Dice, DropReason, Settings, Spec};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// A block of a link: a filter, an impairment, a queue, a transmitter, a delay.
pub trait Block: Sized {
    /// Its settings.
    type Settings: Settings;

    /// Its registry row.
    const SPEC: Spec = <Self::Settings as Settings>::SPEC;

    /// Builds the block with these settings; it draws from `dice`.
    fn build(settings: Self::Settings, dice: Dice) -> Self;

    /// Applies new settings; accumulated state and the stream of draws continue.
    fn change(&mut self, settings: Self::Settings);

    /// The block after [`Block::change`].
    fn with(mut self, settings: Self::Settings) -> Self {
        self.change(settings);
        self
    }

    /// Reports, before anything else, when the run begins on the engine's clock. Schedules and traces count
    /// from there.
    fn start(&mut self, _begin: Nanos) {}
}

/// A block without state: it is its settings.
pub trait Stateless: Settings {}

impl<S: Stateless> Block for S {
    type Settings = Self;

    fn build(settings: Self, _: Dice) -> Self {
        settings
    }

    fn change(&mut self, settings: Self) {
        *self = settings;
    }
}

/// A packet, or one segment of a train, as presented to a judge, with the effects of previous judges.
#[derive(Clone)]
pub struct Offer<'a> {
    /// Arrival time at the link; for judges on the wire, the end of transmission.
    pub now: Nanos,
    /// Length of its frame without FCS, in bytes.
    pub bytes: u32,
    frame: Frame<'a>,
    effects: Option<Effects>,
}

/// The source of the frame's bytes, which most judges never read.
#[derive(Clone)]
enum Frame<'a> {
    Here(&'a [u8]),
    Pooled(&'a Pool, Handle),
}

impl<'a> Offer<'a> {
    /// An offer of this frame, without effects.
    #[inline]
    pub fn new(now: Nanos, bytes: u32, frame: &'a [u8]) -> Self {
        Self { now, bytes, frame: Frame::Here(frame), effects: None }
    }

    /// An offer of a packet in the pool, without effects.
    #[inline]
    pub fn pooled(now: Nanos, bytes: u32, pool: &'a Pool, handle: Handle) -> Self {
        Self { now, bytes, frame: Frame::Pooled(pool, handle), effects: None }
    }

    /// The frame from its Ethernet header on. For a train this is the whole large frame, whose headers are
    /// those of each segment except for sequence numbers, lengths and checksums.
    #[inline]
    pub fn frame(&self) -> &'a [u8] {
        match self.frame {
            Frame::Here(frame) => frame,
            Frame::Pooled(pool, handle) => pool.data(handle),
        }
    }

    /// The mark set by programs ([`Meta::mark`](longwire_packet::Meta::mark)); 0 if none.
    #[inline]
    pub fn mark(&self) -> u32 {
        match self.frame {
            Frame::Here(_) => 0,
            Frame::Pooled(pool, handle) => pool.meta(handle).mark(),
        }
    }

    /// The effects, for a judge to add to.
    #[inline]
    pub fn effects(&mut self) -> &mut Effects {
        self.effects.get_or_insert_with(Effects::default)
    }

    /// The effects of all judges; none if there are none.
    #[inline]
    pub fn into_effects(self) -> Option<Effects> {
        self.effects
    }

    /// The effects of the judges so far; none if there are none.
    #[inline]
    pub fn done(&self) -> Option<&Effects> {
        self.effects.as_ref()
    }
}

/// Effects of judges on a packet that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    /// Set CE, if it is ECN-capable (RFC 3168).
    pub mark: bool,
    /// Flip bits of it.
    pub flips: Option<Flips>,
    /// Send a copy with this additional delay.
    pub copy: Option<Nanos>,
    /// Subtract this from its delay, so that it overtakes others.
    pub ahead: Option<Nanos>,
    /// Let it leave immediately, without queue, rate and delay. Only before the queue.
    pub past: bool,
    /// The band or class of the queue.
    pub band: Option<u8>,
    /// Its new DSCP (RFC 2474), 0 to 63.
    pub dscp: Option<u8>,
    /// The link to which it is diverted: an index into the scenario's list of such targets.
    pub steer: Option<u16>,
    /// Report to its sender that it exceeds this MTU (RFC 1191, RFC 8201). Only with a drop.
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

    /// Whether they change the packet's contents, copy it, or let it overtake the queue: such a segment can't
    /// stay in its train.
    #[inline]
    pub fn rewrite(&self) -> bool {
        self.mark || self.past || self.dscp.is_some() || self.flips.is_some() || self.copy.is_some()
    }
}

/// Bits to flip in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flips {
    /// Number of bits, 1 to 65535, all different.
    pub count: u16,
    /// Whether Ethernet, IP and transport headers are left intact.
    pub spare_headers: bool,
    /// Seed of their positions.
    pub seed: u64,
}

/// Decision of a stage about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Pass,
    /// It goes on with CE set; the stage has checked that it is ECN-capable.
    Mark,
    /// It is dropped.
    Drop(DropReason),
}
