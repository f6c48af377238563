//! Control flow after an instruction.

use super::state::Knowledge;
use super::value::Value;
use crate::Code;

/// Successors of a state.
pub enum Flow {
    Next,
    Jump,
    /// The given state is that of falling through, if possible.
    Branch {
        falls: bool,
        jumps: Option<Box<Knowledge>>,
    },
    Enter,
    /// Calls of a callback.
    Repeat(Repeat),
    Exit,
}

/// Repeated calls of a callback.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeat {
    /// Its first instruction.
    pub entry: usize,
    /// Minimum number of rounds, unless it ends the loop, and maximum.
    pub least: u32,
    pub most: u32,
    /// Its argument besides the round's number.
    pub data: Value,
}

/// Possible successors of an instruction within its function: the next one, and its jump target.
pub fn next(code: &Code, index: usize) -> [Option<usize>; 2] {
    let instruction = &code.instructions()[index];
    let jumps = !instruction.names_function();
    [instruction.falls_through().then_some(index + 1), code.target(index).filter(|_| jumps)]
}
