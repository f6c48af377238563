//! Programs on the path of packets: eBPF with the calling convention of the kernel's XDP programs.
//!
//! From an object to a packet:
//!
//! 1. [`Object`] parses the output of `clang -target bpf` into a [`Program`]: decoded [`Code`], with jumps,
//!    calls and maps resolved. Every [`Instruction`] is well-formed, but nothing is known about its effect.
//! 2. The verifier walks through the code forward, and then knows the value range of every register and the
//!    [`Region`] of every access; then backward, for the worst-case cost. Calls are checked by
//!    [`Helper::signature`].
//! 3. [`Maps`] are created, and a [`ProgramState`] for each installation. Nothing is allocated after this.
//! 4. Each packet has a [`Machine`]: the packet, the stack, the state, the maps, the time. [`interpret`] runs
//!    the code on it instruction by instruction, checking everything. The compiled program does the same
//!    without checks that the verifier has made, and calls helpers through [`Machine::call`].
//! 5. [`Verdict`] interprets the return code and the effects.
//!
//! **The address model** is in [`memory`]: pointers are numbers made of a region and an offset, the same for
//! interpreter and compiler. The results of operations are in `instruction/semantics.rs`, as pure functions.
//! An engine for these programs must agree with these two files; the interpreter is the reference.
//!
//! Programs receive the time and their random numbers: nothing here reads a clock.
#![forbid(unsafe_code)]

mod admission;
mod asm;
mod btf;
mod call;
mod code;
mod context;
mod cost;
mod exit;
mod fib;
mod hash;
mod instruction;
mod interpreter;
mod machine;
pub mod map;
pub mod memory;
mod object;
mod packet;
mod perform;
mod program;
mod record;
mod reserved;
mod shipped;
mod stack;
mod state;
mod verdict;
mod verify;
mod words;

pub use admission::{Budget, BudgetItem, Demand, Overdrawn, Resource, Sum, admit};
pub use asm::{AssemblyError, assemble};
pub use btf::{BtfError, Field, Shape, ShapeError, Types};
pub use call::{
    Argument, Helper, MAX_ROUNDS, MAX_SIZE, MAX_TAIL_CALLS, OWN_BASE, Returns, Signature, kernel_name,
};
pub use code::{Code, CodeError};
pub use context::{Context, ContextField};
pub use cost::{Counts, Item, Prices};
pub use exit::{ExitKind, MAX_EXITS};
pub use fib::{Hop, RouteAnswer, RouteQuery};
pub use hash::{fold, hash};
pub use instruction::{
    Arithmetic, Atomic, ByteOrder, Condition, DecodeError, DecodeFault, Instruction, Operand, Register, Size,
    Width,
};
pub use interpreter::{Finished, Stopped, interpret};
pub use machine::{Effects, Environment, Machine, Redirect};
pub use map::{Inner, Map, MapKind, MapSpec, Maps};
pub use memory::{Fault, Region};
pub use object::{LinkFault, Object, ObjectError};
pub use packet::{MIN_PACKET, Packet};
pub use program::{Exit, Function, Line, Program};
pub use shipped::ShippedForwarder;
pub use stack::Stack;
pub use state::ProgramState;
pub use verdict::{ABORTED, Abort, DROP, PASS, REDIRECT, TRANSMIT, Verdict};
pub use verify::{Access, Call, Callback, Fact, Rejected, Rejection, VerifiedProgram, WorstPath, verify};
pub use words::Words;
