//! Callbacks of helpers: `bpf_loop`.
//!
//! The number of rounds is bounded, so the loop ends whatever the function does, and a state of one round may
//! cover those of others: the function is followed until no round begins with a state not covered by an
//! earlier one. Its first argument is any round's number. After many rounds, whatever still differs is
//! treated as unknown ([`Knowledge::widen`]).
//!
//! Cache lines are charged as new in each round: a round covers others, before which less was accessed.

use super::Callback;
use super::error::{At, Rejection, Result};
use super::explore::Explorer;
use super::scalar::Scalar;
use super::state::{Flow, Knowledge};
use super::value::{Repeat, Value};
use crate::call::MAX_ROUNDS;
use crate::{Helper, Item, Register};

/// Number of states at the beginning of rounds that are kept exactly, so that counters are known up to there.
const EXACT: usize = 1024;

impl Explorer<'_> {
    /// A call of [`Helper::Loop`] with valid arguments.
    pub fn begin_loop(&mut self, index: usize, state: &Knowledge) -> Result<Flow> {
        let helper = Helper::Loop;
        let number = |register| state.register(register).as_scalar().unwrap_or(Scalar::ANY);
        let (count, flags) = (number(Register::R1).low_half(), number(Register::R4));
        for (number, scalar, high) in [(1, count, MAX_ROUNDS), (4, flags, 0)] {
            let Scalar { min, max, .. } = scalar;
            let high = u64::from(high);
            if max > high {
                return Err(Rejection::ArgumentRange { helper, number, low: 0, high, min, max });
            }
        }
        let Value::Function { entry } = state.register(Register::R2) else {
            return Err(Rejection::Unwritten { register: Register::R2 });
        };
        let (least, most, entry) = (count.min as u32, count.max as u32, entry as usize);
        self.note_callback(index, helper, Callback { entry, rounds: most })?;
        for item in [Item::Call, Item::Cycle] {
            self.cost[item] = self.cost[item].saturating_add(most);
        }
        Ok(Flow::Repeat(Repeat { entry, least, most, data: state.register(Register::R3) }))
    }

    /// Follows a callback from these states. Returns the states after the loop.
    pub fn repeat(
        &mut self,
        index: usize,
        repeat: Repeat,
        states: Vec<Knowledge>,
    ) -> Result<Vec<Knowledge>, At> {
        let Repeat { entry, least, most, data } = repeat;
        let (mut after, mut seen, mut waiting) = (Vec::new(), Vec::<Knowledge>::new(), states);
        // What precedes the loop can end; it also covers what follows a state that an earlier round covered.
        let (mut held, mut stands_for_later) = (Vec::new(), false);
        let mut summary: Option<Knowledge> = None;
        if least == 0 {
            waiting.clone().into_iter().for_each(|state| self.add_ended(&mut after, state, 0));
        }
        for round in 1..=most {
            if seen.len() >= EXACT {
                waiting = self.widened(&mut summary, waiting);
            }
            self.compare(waiting.len() * seen.len());
            let known = |state: &Knowledge| seen.iter().any(|kept| kept.contains(state, &mut self.names));
            let before = waiting.len();
            let fresh = without(waiting, known);
            stands_for_later |= fresh.len() < before;
            if fresh.is_empty() {
                break;
            }
            let mut entering = Vec::new();
            for state in fresh {
                let mut entered = state.clone();
                self.waiting += state.size();
                seen.push(state);
                entered.enter_round(data, most);
                self.add(&mut entering, entered);
            }
            waiting = Vec::new();
            for mut state in self.run(self.structure.function_at(entry), entering)? {
                let returned = goes_on(&state).map_err(|fault| (index, fault))?;
                state.leave();
                state.set(Register::R0, Value::Unset);
                state.forget_unnamed();
                if returned.may_go_on {
                    self.add(&mut waiting, state.clone());
                }
                if returned.may_end || round >= least {
                    self.add_ended(&mut after, state, most);
                } else {
                    self.add(&mut held, state);
                }
            }
        }
        self.waiting -= Knowledge::total_size(&seen);
        if stands_for_later {
            held.into_iter().for_each(|state| self.add_ended(&mut after, state, most));
        }
        Ok(after)
    }

    /// A state after the loop, with the number of rounds.
    fn add_ended(&mut self, after: &mut Vec<Knowledge>, mut state: Knowledge, most: u32) {
        state.set(Register::R0, Value::number(Scalar::between(0, most.into())));
        self.add(after, state);
    }

    /// A state that includes all of these, and the previous summary.
    fn widened(&mut self, summary: &mut Option<Knowledge>, states: Vec<Knowledge>) -> Vec<Knowledge> {
        for state in states {
            let wide = match summary.take() {
                Some(before) => before.widen(&state, || self.fresh()),
                None => state,
            };
            *summary = Some(wide);
        }
        summary.clone().into_iter().collect()
    }
}

fn without(states: Vec<Knowledge>, mut known: impl FnMut(&Knowledge) -> bool) -> Vec<Knowledge> {
    states.into_iter().filter(|state| !known(state)).collect()
}

/// The meaning of the function's return value.
struct ReturnMeaning {
    may_go_on: bool,
    may_end: bool,
}

fn goes_on(state: &Knowledge) -> Result<ReturnMeaning> {
    let value = state.register(Register::R0);
    let what = match value {
        Value::Number { scalar, .. } if scalar.max <= 1 => {
            return Ok(ReturnMeaning { may_go_on: scalar.min == 0, may_end: scalar.max == 1 });
        }
        Value::Number { scalar, .. } => format!("{} to {}", scalar.min, scalar.max).into(),
        other => other.what().into(),
    };
    Err(Rejection::CallbackReturns { helper: Helper::Loop, what })
}
