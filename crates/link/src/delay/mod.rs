//! Delays of packets after transmission.

pub mod constant;
pub mod distribution;
pub mod jitter;
pub mod trace;

/// The template of `cargo xtask new`, compiled as a block.
#[cfg(test)]
#[path = "../../../../xtask/templates/delay.rs"]
mod template;

use crate::fate::Fate;
use crate::stage::OfStage;
use longwire_block::{Block, Fallback, Param, ParamKind, Spec, Values};
use longwire_packet::{Handle, Pool};
use longwire_settings::{Choice, Setting};
use longwire_units::Nanos;

/// Order of packets with different delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// No packet leaves before its predecessor: e = max(f + delay, previous e).
    #[default]
    InOrder,
    /// Each contributes the time f + delay, and packets leave in transmission order at these times, sorted:
    /// the mean delay is preserved, and no delay falls below the minimum.
    Sorted,
    /// Each leaves at f + delay, independently of others.
    Free,
}

/// Whether packets are sorted by departure or overtake each other: the words of `order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum OrderWord {
    Keep,
    Reorder,
}

impl From<OrderWord> for Order {
    fn from(word: OrderWord) -> Self {
        match word {
            OrderWord::Keep => Self::Sorted,
            OrderWord::Reorder => Self::Free,
        }
    }
}

/// Position of the delay: the words of `before`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum Before {
    Queue,
    Leaving,
}

/// The setting for the position of the delay.
const BEFORE: Param = Param {
    name: "before",
    kind: ParamKind::Choice(Before::WORDS),
    default: Fallback::Value("leaving"),
    help: "leaving: packets are delayed after transmission; queue: before the queue",
    live: true,
};

/// Whether these are values of a delay before the queue.
pub fn before_queue(spec: &Spec, values: &Values) -> bool {
    let place = spec.params.iter().position(|param| param.name == BEFORE.name);
    place.and_then(|place| Before::of(&values.at(place))) == Some(Before::Queue)
}

/// A delay model.
pub trait Travel: Block {
    /// The delay of a packet whose transmission ended, or which arrived before the queue, at `finish`. Called
    /// once per packet.
    fn travel(&mut self, finish: Nanos) -> Nanos;

    /// Lower bound on delays until the next change: the link need not be woken earlier after a transmission.
    fn least(&self) -> Nanos;

    /// Whether all segments of a train have the same delay, so that it can stay whole.
    fn whole_trains(&self) -> bool {
        false
    }

    /// The order of packets.
    fn order(&mut self) -> Order {
        Order::InOrder
    }

    /// Called before a change of parameters, while packets that keep their order leave until this time:
    /// returns whether later delays ensure that those do not leave earlier because of the change. If not,
    /// later packets leave behind them.
    fn hand_over(&mut self, _: Nanos) -> bool {
        false
    }

    /// Whether [`Travel::loses`] may say so.
    fn may_lose(&self) -> bool {
        false
    }

    /// Whether a packet, or segment of a train, is lost on the way. Called once for each of a block that may
    /// lose any, before its [`Travel::travel`].
    fn loses(&mut self) -> bool {
        false
    }
}

/// A link that is compiled for each delay, where it asks nothing else.
pub(crate) trait SetsOff<S>: Sized {
    /// Sends a packet at its arrival, and delays it by this model.
    fn set_off_by<D: Travel + OfStage<S>>(&mut self, pool: &mut Pool, handle: Handle, now: Nanos) -> Fate;
}
pub(crate) type SetOff<L> = fn(&mut L, &mut Pool, Handle, Nanos) -> Fate;

/// See [`SetsOff::set_off_by`].
fn set_off_by<L: SetsOff<S>, S, D: Travel + OfStage<S>>(
    link: &mut L,
    pool: &mut Pool,
    handle: Handle,
    now: Nanos,
) -> Fate {
    link.set_off_by::<D>(pool, handle, now)
}

crate::stage::stage! {
    /// A delay model.
    Delay: Travel {
        inline {
            Constant = constant::Constant,
        }
        boxed {
            Jitter = jitter::Jitter,
            Distribution = distribution::Distribution,
            Trace = trace::Trace,
        }
    }
    fn travel(&mut self, finish: Nanos) -> Nanos;
    fn order(&mut self) -> Order;
    fn hand_over(&mut self, until: Nanos) -> bool;
    fn loses(&mut self) -> bool;
    ask
    fn least(&self) -> Nanos;
    fn whole_trains(&self) -> bool;
    fn may_lose(&self) -> bool;
    entry fn set_off<L: SetsOff<Delay>>(&self) -> SetOff<L> = set_off_by;
}
