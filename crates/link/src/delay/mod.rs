//! How long a packet travels once it is sent.

pub mod constant;
pub mod distribution;
pub mod jitter;
pub mod trace;

/// What `cargo xtask new` begins a block with, so that it is one.
#[cfg(test)]
#[path = "../../../../xtask/templates/delay.rs"]
mod template;

use longwire_block::{Block, Param, ParamKind, Spec, Values};
use longwire_settings::{Choice, Setting};
use longwire_units::Nanos;

/// What becomes of the order of packets whose delays differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// None leaves before the one sent before it: e = max(f + delay, previous e).
    #[default]
    InOrder,
    /// Each contributes the time f + delay, and packets leave in the order in which they were sent at these times,
    /// sorted: the mean delay stays what it is, and no delay falls below the least.
    Sorted,
    /// Each leaves at f + delay, whatever the others do.
    Free,
}

/// Whether packets are sorted by their leaving times or overtake each other: the words of `order`.
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

/// What packets are delayed before: the words of `before`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum Before {
    Queue,
    Leaving,
}

/// The setting that says what packets are delayed before.
const BEFORE: Param = Param {
    name: "before",
    kind: ParamKind::Choice(Before::WORDS),
    default: Some("leaving"),
    help: "leaving: packets are delayed when they have been sent; queue: before they come to the queue",
};

/// Whether these are values of a delay before the queue.
pub fn before_queue(spec: &Spec, values: &Values) -> bool {
    let place = spec.params.iter().position(|param| param.name == BEFORE.name);
    place.and_then(|place| Before::of(&values.at(place))) == Some(Before::Queue)
}

/// A delay model.
pub trait Travel: Block {
    /// How long the packet travels whose transmission ended, or which arrived before the queue, at `finish`. Asked once a packet.
    fn travel(&mut self, finish: Nanos) -> Nanos;

    /// No packet travels less until the next change: the link need not be woken sooner after a transmission.
    fn least(&self) -> Nanos;

    /// Whether all segments of a train travel equally long, so that it can stay whole.
    fn whole_trains(&self) -> bool {
        false
    }

    /// What becomes of the packets' order.
    fn order(&mut self) -> Order {
        Order::InOrder
    }

    /// Said before a change of parameters, while packets that keep their order leave until then: whether the delays that come see to it
    /// that those leave no sooner because of the change. If not, what is sent later leaves behind them.
    fn hand_over(&mut self, _: Nanos) -> bool {
        false
    }

    /// Whether [`Travel::loses`] may say so.
    fn may_lose(&self) -> bool {
        false
    }

    /// Whether a packet, or segment of a train, is lost on the way. Asked once for each of a block that may lose any, before its
    /// [`Travel::travel`].
    fn loses(&mut self) -> bool {
        false
    }
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
}
