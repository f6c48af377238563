//! Where a program goes on after an instruction.

use super::state::State;
use super::value::Value;
use crate::Code;

/// Where a state goes on.
pub enum Flow {
    Next,
    Jump,
    /// The given state is that of falling through, if that can be.
    Branch {
        falls: bool,
        jumps: Option<Box<State>>,
    },
    Enter,
    /// It calls a function again and again.
    Repeat(Repeat),
    Exit,
}

/// How a function is called again and again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeat {
    /// Its first instruction.
    pub entry: usize,
    /// How often at least, if it never ends the loop, and at most.
    pub least: u32,
    pub most: u32,
    /// What it is given besides the round's number.
    pub data: Value,
}

/// The instructions that may follow one within its function: the next one, and where it jumps to.
pub fn next(code: &Code, index: usize) -> [Option<usize>; 2] {
    let instruction = &code.instructions()[index];
    let jumps = !instruction.names_function();
    [instruction.falls_through().then_some(index + 1), code.target(index).filter(|_| jumps)]
}
