//! A program's code, and its execution on a packet.

use longwire_jit::{CompiledProgram, PreparedProgram, PreparedWithHelpers, compile};
use longwire_program::{
    ABORTED, Fact, Helper, Item, Machine, Maps, ProgramState, VerifiedProgram, interpret,
};
use std::sync::Arc;

/// How a program is run.
pub(super) enum Code {
    Compiled(Box<CompiledProgram>),
    /// If there is no compiler; with the number of instructions of the longest path.
    Interpreted(u64),
}

/// Code prepared for a series of packets.
pub(super) enum How<'f> {
    Alone(PreparedProgram<'f>),
    Helped(PreparedWithHelpers<'f>),
}

impl Code {
    /// The code of a program with these maps.
    pub fn of(verified: &VerifiedProgram, maps: &Arc<Maps>) -> Self {
        match compile(verified, Arc::clone(maps)) {
            Ok(compiled) => Self::Compiled(Box::new(compiled)),
            Err(_) => Self::Interpreted(verified.most()[Item::Instruction].into()),
        }
    }

    /// Prepares it for a series of packets, if it is compiled and does not move packets' ends.
    #[inline]
    pub fn ready<'f>(&'f self, state: &'f ProgramState) -> Option<How<'f>> {
        let Self::Compiled(compiled) = self else { return None };
        let alone = compiled.alone(state).map(How::Alone);
        alone.or_else(|| compiled.helped(state).map(How::Helped))
    }

    /// Runs it and returns its return value. Its requests stay in the machine, and are read as they were
    /// written: in pieces.
    pub fn run(&self, verified: &VerifiedProgram, machine: &mut Machine<'_>) -> u64 {
        let returned = match self {
            Self::Compiled(compiled) => compiled.run(machine).ok(),
            Self::Interpreted(budget) => {
                let code = &verified.program().code;
                interpret(code, machine, *budget).ok().map(|finished| finished.returned)
            }
        };
        // Verified programs never exceed their bound. One that does was wrongly verified, and is treated as
        // aborted.
        returned.unwrap_or(ABORTED)
    }
}

/// Whether a program calls one of the `wanted` helpers.
pub(super) fn calls(verified: &VerifiedProgram, wanted: impl Fn(Helper) -> bool) -> bool {
    let called = |fact: &Fact| fact.call.is_some_and(|call| wanted(call.helper));
    verified.facts().iter().any(|fact| fact.reached && called(fact))
}
