//! A program's code: how it is run on a packet.

use longwire_jit::{Alone, Compiled, Helped, compile};
use longwire_program::{ABORTED, Fact, Helper, Item, Machine, Maps, State, Verified, interpret};
use std::sync::Arc;

/// How a program is run.
pub(super) enum Code {
    Compiled(Box<Compiled>),
    /// For want of a compiler; with the longest path's instructions.
    Interpreted(u64),
}

/// Code that is ready for packets, one after the other.
pub(super) enum How<'f> {
    Alone(Alone<'f>),
    Helped(Helped<'f>),
}

impl Code {
    /// That of a program with these maps.
    pub fn of(verified: &Verified, maps: &Arc<Maps>) -> Self {
        match compile(verified, Arc::clone(maps)) {
            Ok(compiled) => Self::Compiled(Box::new(compiled)),
            Err(_) => Self::Interpreted(verified.most()[Item::Instruction].into()),
        }
    }

    /// Gets it ready for packets, if it is code that does not move their ends.
    #[inline]
    pub fn ready<'f>(&'f self, state: &'f State) -> Option<How<'f>> {
        let Self::Compiled(compiled) = self else { return None };
        let alone = compiled.alone(state).map(How::Alone);
        alone.or_else(|| compiled.helped(state).map(How::Helped))
    }

    /// Runs it, and gives what it returns. What it asks for stays in the machine, from where it is read as it
    /// was written: in pieces.
    pub fn run(&self, verified: &Verified, machine: &mut Machine<'_>) -> u64 {
        let returned = match self {
            Self::Compiled(compiled) => compiled.run(machine).ok(),
            Self::Interpreted(budget) => {
                let code = &verified.program().code;
                interpret(code, machine, *budget).ok().map(|finished| finished.returned)
            }
        };
        // Verified programs are never stopped. One that was, was wrongly verified, and is treated as if it
        // had given up.
        returned.unwrap_or(ABORTED)
    }
}

/// Whether a program calls one of the helpers that are wanted.
pub(super) fn calls(verified: &Verified, wanted: impl Fn(Helper) -> bool) -> bool {
    let called = |fact: &Fact| fact.call.is_some_and(|call| wanted(call.helper));
    verified.facts().iter().any(|fact| fact.reached && called(fact))
}
