//! Shared properties of links: a million of them differ in their state, not in their configuration.

use crate::blocks::Blocks;
use crate::chain::{AnyJudge, Chain};
use crate::delay::Delay;
use crate::delay::constant::Constant as ConstantDelay;
use crate::impair::Impair;
use crate::impair::independent::Independent;
use crate::queue::Queue;
use crate::queue::tail_drop::TailDrop;
use crate::transmit::Transmit;
use crate::transmit::constant::{Constant, Law};
use crate::transmit::framing::Framing;
use longwire_block::Dice;
use longwire_units::{Nanos, Probability};

/// Properties shared by identical links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Profile {
    /// The rate, if it is constant.
    pub law: Law,
    /// Admission by the queue, if it is a tail drop.
    pub queue: TailDrop,
    /// Whether the transmitter must be asked instead.
    pub asks_transmitter: bool,
    /// Whether the discipline must be asked instead.
    pub asks_queue: bool,
    /// The minimum delay; the delay of all packets, if everything is decided on arrival.
    pub delay: Nanos,
    pub loss: Loss,
    /// Whether judges on the wire, and the delay, must be asked for each packet; and whether either must.
    pub asks_wire: bool,
    pub asks_delay: bool,
    pub asks_behind: bool,
    /// On a decided link where either is asked, whether its tail drop always has room: packets are sent on
    /// arrival.
    pub always_admits: bool,
    /// The framing of the transmitter, which determines what a packet counts.
    pub framing: Framing,
}

/// Loss of a decided link before the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Loss {
    /// Never.
    #[default]
    None,
    /// Each packet with this probability, by dice stored beside the links.
    Chance(Probability),
    /// Decided by its judges.
    Judges,
}

impl Profile {
    /// The profile of a link with these blocks.
    pub(crate) fn of(blocks: &mut Blocks) -> Self {
        let (framing, delay) = (blocks.transmit.framing(), blocks.delay.least());
        let (law, asks_transmitter) = Law::of_transmit(&blocks.transmit);
        let (queue, asks_queue) = match &blocks.queue {
            Queue::TailDrop(queue) => (*queue, false),
            _ => (TailDrop::default(), true),
        };
        let asks_wire = !blocks.wire.chain.is_empty();
        let asks_delay = !matches!(blocks.delay, Delay::Constant(_));
        Self {
            law,
            queue,
            asks_transmitter,
            asks_queue,
            delay,
            loss: Loss::of(&blocks.before.chain),
            asks_wire,
            asks_delay,
            asks_behind: asks_wire || asks_delay,
            framing,
            ..Self::default()
        }
    }

    /// Whether it describes everything about a link on which everything is decided on arrival.
    pub(crate) fn is_whole(&self) -> bool {
        !(self.asks_queue || self.asks_transmitter || self.asks_behind) && self.loss != Loss::Judges
    }

    /// New blocks equivalent to the profile.
    pub(crate) fn blocks(&self) -> Blocks {
        let chain = match self.loss {
            Loss::Chance(probability) => {
                let loss = Independent::new(probability, Dice::default());
                Chain::One(AnyJudge::Impair(Impair::Independent(loss)))
            }
            Loss::None | Loss::Judges => Chain::None,
        };
        let (transmit, delay) = (Constant::new(self.law, self.framing), ConstantDelay::new(self.delay));
        Blocks::new(chain, Queue::TailDrop(self.queue), Transmit::Constant(transmit), Delay::Constant(delay))
    }
}

/// The dice of a decided link that loses packets by chance, which are beside the links.
pub(crate) type Draws<'a> = Option<&'a mut Dice>;

impl Loss {
    /// The loss by these judges.
    pub(crate) fn of(judges: &Chain) -> Self {
        match judges {
            Chain::None => Self::None,
            Chain::One(AnyJudge::Impair(Impair::Independent(loss))) => {
                loss.drops().map_or(Self::Judges, Self::Chance)
            }
            _ => Self::Judges,
        }
    }

    /// Whether the next packet is lost; none if judges must be asked. Draws once for each, even at 0 %, so
    /// that a change of probability does not shift later draws.
    #[inline(always)]
    pub(crate) fn strikes<'d>(self, dice: impl FnOnce() -> Draws<'d>) -> Option<bool> {
        match self {
            Self::None => Some(false),
            Self::Chance(probability) => Some(dice().is_some_and(|dice| probability.happens(dice.draw()))),
            Self::Judges => None,
        }
    }
}
