//! How packets come: the processes of traffic sources and of links' background traffic.
//!
//! Times count from the beginning of the process. They are exact integers: a packet comes at the nanosecond in which the
//! process has given what the packet takes, and what is left over goes on to the next.

mod capture;
mod model;
mod modulated;
mod period;
mod position;
mod replay;
mod spec;

pub use model::{Interval, Model};
pub use replay::{Packets, Speed};
pub use spec::{SPECS, spec};

use longwire_block::{Dice, Spec, Values};
use longwire_units::Nanos;
use modulated::Modulated;
use position::Position;

/// A process: it always knows its next packet. Allocates nothing after it was made.
#[derive(Debug, Clone)]
pub struct Process {
    model: Model,
    state: State,
    next: Nanos,
}

#[derive(Debug, Clone)]
enum State {
    /// As it was when the last packet came (so that a change can count from there), and as it will be at the next.
    Modulated { last: Modulated, ahead: Modulated },
    /// Dice are kept for another model.
    Replay { position: Position, dice: Dice },
}

impl Process {
    /// A process of this model, beginning at time 0, with dice of its own.
    pub fn new(model: Model, dice: Dice) -> Self {
        let (state, next) = begin(&model, Nanos::ZERO, dice);
        Self { model, state, next }
    }

    /// A process of one of the [`SPECS`], with values read by it.
    pub fn build(spec: &Spec, values: &Values, dice: Dice) -> Self {
        Self::new(Model::read(spec, values), dice)
    }

    /// When the next packet comes; [`Nanos::NEVER`] when none does.
    pub const fn peek(&self) -> Nanos {
        self.next
    }

    /// Takes the next packet: when it comes, and its bytes. [`Nanos::NEVER`] and 0 when there is none.
    #[expect(clippy::should_implement_trait, reason = "it is no iterator: it may go on after a change")]
    pub fn next(&mut self) -> (Nanos, u32) {
        let due = self.next;
        if due == Nanos::NEVER {
            return (due, 0);
        }
        match &mut self.state {
            State::Modulated { last, ahead } => {
                ahead.owe(&self.model);
                last.clone_from(ahead);
                self.next = ahead.advance(&self.model);
                (due, self.model.size())
            }
            State::Replay { position, .. } => {
                let size = position.take(&self.model);
                self.next = position.due(&self.model);
                (due, size)
            }
        }
    }

    /// Goes on with another model from `now` on, which is no earlier than any packet taken; so is the next packet.
    ///
    /// If the kind stays, nothing that was under way is lost: the packet to come keeps the share of its gap that has passed,
    /// a state the share of its time. Another kind begins anew. Of packets due before `now` and not taken one remains.
    pub fn set(&mut self, model: Model, now: Nanos) {
        let old = std::mem::replace(&mut self.model, model);
        let goes_on = old.resembles(&self.model);
        match &mut self.state {
            State::Modulated { last, ahead } if goes_on => {
                last.run_to(&old, now);
                last.adapt(&old, &self.model, now);
                ahead.clone_from(last);
                self.next = ahead.advance(&self.model);
            }
            State::Replay { position, .. } if goes_on => {
                position.adapt(&old, now);
                self.next = position.due(&self.model);
            }
            State::Modulated { ahead, .. } => {
                (self.state, self.next) = begin(&self.model, now, ahead.dice().clone());
            }
            State::Replay { dice, .. } => (self.state, self.next) = begin(&self.model, now, dice.clone()),
        }
    }

    /// The same for one of the [`SPECS`], with values read by it.
    pub fn change(&mut self, spec: &Spec, values: &Values, now: Nanos) {
        self.set(Model::read(spec, values), now);
    }

    /// Bytes of the largest packet it can send.
    pub fn largest(&self) -> u32 {
        self.model.largest()
    }
}

/// The state at the beginning, and when the first packet comes.
fn begin(model: &Model, now: Nanos, dice: Dice) -> (State, Nanos) {
    if matches!(model, Model::Replay { .. }) {
        let position = Position::at(now);
        let next = position.due(model);
        return (State::Replay { position, dice }, next);
    }
    let last = Modulated::begin(model, now, dice);
    let mut ahead = last.clone();
    let next = ahead.advance(model);
    (State::Modulated { last, ahead }, next)
}

#[cfg(test)]
mod tests;
