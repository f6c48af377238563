//! Arrival processes of traffic sources and of links' background traffic.
//!
//! Times count from the beginning of the process and are exact integers: a packet arrives at the nanosecond
//! in which the process has accumulated the packet's work, and the remainder carries over to the next.

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

/// A process, which always knows its next packet. It allocates nothing after construction.
#[derive(Debug, Clone)]
pub struct Process {
    model: Model,
    state: ModelState,
    next: Nanos,
}

#[derive(Debug, Clone)]
enum ModelState {
    /// The state at the last packet, from which a change continues, and the state at the next.
    Modulated { last: Modulated, ahead: Modulated },
    /// The dice are kept for another model.
    Replay { position: Position, dice: Dice },
}

impl Process {
    /// A process with this model, beginning at time 0, with its own dice.
    pub fn new(model: Model, dice: Dice) -> Self {
        Self::of_model(model, dice, Nanos::ZERO)
    }

    /// A process from one of the [`SPECS`] with its values, that begins at `now`.
    pub fn begun(spec: &Spec, values: &Values, dice: Dice, now: Nanos) -> Self {
        Self::of_model(Model::read(spec, values), dice, now)
    }

    fn of_model(model: Model, dice: Dice, now: Nanos) -> Self {
        let (state, next) = begin(&model, now, dice);
        Self { model, state, next }
    }

    /// Arrival time of the next packet; [`Nanos::NEVER`] if there is none.
    pub const fn peek(&self) -> Nanos {
        self.next
    }

    /// Takes the next packet: its arrival time and bytes. [`Nanos::NEVER`] and 0 if there is none.
    #[expect(clippy::should_implement_trait, reason = "it is no iterator: it may go on after a change")]
    pub fn next(&mut self) -> (Nanos, u32) {
        let due = self.next;
        if due == Nanos::NEVER {
            return (due, 0);
        }
        match &mut self.state {
            ModelState::Modulated { last, ahead } => {
                ahead.owe(&self.model);
                last.clone_from(ahead);
                self.next = ahead.advance(&self.model);
                (due, self.model.size())
            }
            ModelState::Replay { position, .. } => {
                let size = position.take(&self.model);
                self.next = position.due(&self.model);
                (due, size)
            }
        }
    }

    /// Changes the model from `now` on, which is no earlier than any packet taken; the same applies to the
    /// next packet.
    ///
    /// If the kind stays, progress is kept: the elapsed share of the packet's gap and of the state's
    /// duration. Another kind begins anew. Of packets due before `now` and not taken one remains.
    pub fn set(&mut self, model: Model, now: Nanos) {
        let old = std::mem::replace(&mut self.model, model);
        let goes_on = old.resembles(&self.model);
        match &mut self.state {
            ModelState::Modulated { last, ahead } if goes_on => {
                last.run_to(&old, now);
                last.adapt(&old, &self.model, now);
                ahead.clone_from(last);
                self.next = ahead.advance(&self.model);
            }
            ModelState::Replay { position, .. } if goes_on => {
                position.adapt(&old, now);
                self.next = position.due(&self.model);
            }
            ModelState::Modulated { ahead, .. } => {
                (self.state, self.next) = begin(&self.model, now, ahead.dice().clone());
            }
            ModelState::Replay { dice, .. } => {
                (self.state, self.next) = begin(&self.model, now, dice.clone());
            }
        }
    }

    /// Changes the model to one of the [`SPECS`] with its values, as [`Process::set`] does.
    pub fn change(&mut self, spec: &Spec, values: &Values, now: Nanos) {
        self.set(Model::read(spec, values), now);
    }

    /// Bytes of its largest packet.
    pub fn largest(&self) -> u32 {
        self.model.largest()
    }
}

/// The initial state, and the arrival time of the first packet.
fn begin(model: &Model, now: Nanos, dice: Dice) -> (ModelState, Nanos) {
    if matches!(model, Model::Replay { .. }) {
        let position = Position::at(now);
        let next = position.due(model);
        return (ModelState::Replay { position, dice }, next);
    }
    let last = Modulated::begin(model, now, dice);
    let mut ahead = last.clone();
    let next = ahead.advance(model);
    (ModelState::Modulated { last, ahead }, next)
}

#[cfg(test)]
mod tests;
