//! Compiles programs to machine code, with Cranelift.
//!
//! A compiled program has the same values in its registers as an interpreted one: addresses are numbers made
//! of a region and an offset ([`longwire_program::memory`]). If the region of an access is known, subtracting
//! its first address gives the offset, and one comparison with the region's length validates both, whatever
//! the register holds. The comparison is kept even after verification: an error of the verifier ends a
//! program, but gives no access. If the region is not known, the access is carried out by [`Machine::load`]
//! and similar functions. Helpers are called through [`Machine::call`].
//!
//! - `order`: functions, and an order of instructions in which predecessors come first;
//! - `translate`: a function, with `visits`, the loop over packets;
//! - `arithmetic`, `access`, `call`: its instructions;
//! - `run`: the data of compiled code, and the functions it calls; `visit`: its results for packets;
//! - `memory`: executable memory and its lifetime.
//!
//! The decision behind it: `docs/adr/0016-compiling-programs.md`.

mod access;
mod arithmetic;
mod call;
mod memory;
mod order;
mod run;
mod translate;
mod visit;

use longwire_packet::{Handle, Pool};
use longwire_program::{
    Code, Context, Effects, Environment, Fact, Fault, Helper, Instruction, Item, Machine, Maps, Packet,
    Program, ProgramState, Region, Stack, Stopped, VerifiedProgram, Width,
};
use memory::Loaded;
use run::{Run, TOO_OFTEN};
use std::sync::Arc;
use thiserror::Error;
pub use visit::{Visit, VisitProgress};

/// A program as machine code, for these maps. Several workers may run it at once.
///
/// The code is in pages that are executable and not writable, and is freed when this is dropped.
pub struct CompiledProgram {
    loaded: Loaded,
    program: Program,
    maps: Arc<Maps>,
    /// Bytes of state that the code relies on.
    state_size: u32,
}

/// Reason why a program can't be compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The call depth of a function exceeds the limit.
    #[error("the function at instruction {slot} calls too deeply, or itself")]
    Depth {
        /// Its first instruction, in slots.
        slot: usize,
    },
    /// Its functions share code that would have to be compiled too often.
    #[error("the program's functions have more than {0} instructions together")]
    TooLarge(usize),
    /// Its machine code would take too much of the thread's stack.
    #[error("the machine code of the program and of what it calls needs more than {0} B of stack")]
    Stack(usize),
    /// There is no code generator for this processor.
    #[error("no code can be made for this processor: {0}")]
    Processor(String),
    /// The code generator failed.
    #[error("the code generator failed: {0}")]
    Generator(String),
}

/// Reason why a compiled program ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Halted {
    /// It attempted something that a verified program can't.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A helper panicked.
    #[error("instruction {slot}: the helper panicked")]
    Panicked {
        /// The instruction, in slots.
        slot: usize,
    },
    /// The machine's maps are not those for which it was compiled.
    #[error("the program was compiled for other maps")]
    OtherMaps,
    /// The machine's state is too short.
    #[error("the program needs {needed} bytes of state")]
    StateSize {
        /// The required size.
        needed: u32,
    },
}

/// What is known about a program's accesses before compilation.
#[derive(Clone, Copy)]
enum KnownAccesses<'a> {
    /// Proven by the verifier: a contradiction ends the program.
    Facts(&'a [Fact]),
    /// The probable region of an access; other regions take longer.
    Hints(&'a [Option<Region>]),
}

impl KnownAccesses<'_> {
    /// What the verifier knows about a helper call.
    fn call(self, index: usize) -> Option<longwire_program::Call> {
        match self {
            Self::Facts(facts) => facts.get(index)?.call,
            Self::Hints(_) => None,
        }
    }
}

/// Compiles a verified program for these maps.
///
/// # Errors
/// If the code generator fails, or there is none for this processor.
pub fn compile(verified: &VerifiedProgram, maps: Arc<Maps>) -> Result<CompiledProgram, CompileError> {
    let known = KnownAccesses::Facts(verified.facts());
    let turns = u64::from(verified.most()[Item::Instruction]);
    CompiledProgram::new(verified.program(), known, (verified.state_size(), turns), maps)
}

/// Compiles an unverified program. Everything that could go wrong is checked at run time, except that
/// unwritten registers read as 0, and unwritten parts of the stack as anything. Its loops may take
/// [`MOST_TURNS`] turns. `hints` has the probable region of each instruction's access; wrong or missing hints
/// make it slower.
///
/// # Errors
/// If it calls too deeply, or as [`compile`].
pub fn compile_unverified(
    program: &Program,
    hints: &[Option<Region>],
    maps: Arc<Maps>,
) -> Result<CompiledProgram, CompileError> {
    CompiledProgram::new(program, KnownAccesses::Hints(hints), (0, MOST_TURNS), maps)
}

/// Most backward jumps of an unverified program per packet.
pub const MOST_TURNS: u64 = 1 << 16;

impl CompiledProgram {
    fn new(
        program: &Program,
        known: KnownAccesses<'_>,
        (state_size, turns): (u32, u64),
        maps: Arc<Maps>,
    ) -> Result<Self, CompileError> {
        let bodies = order::bodies(&program.code)?;
        let repeats = !program.code.callbacks().is_empty();
        let turns = (repeats || bodies.iter().any(|body| !body.back.is_empty())).then_some(turns);
        let source = translate::Source { code: &program.code, known, state_size, turns, maps: &maps };
        let loaded = memory::load(&source, &bodies)?;
        Ok(Self { loaded, program: program.clone(), maps, state_size })
    }

    /// Runs it on `machine`, and returns its return value. The machine's stack should be
    /// [`Stack::trusting`](longwire_program::Stack::trusting): another one does not learn what compiled code
    /// writes.
    ///
    /// # Errors
    /// If it was stopped; the packet and all memory are then as it left them.
    #[inline]
    pub fn run(&self, machine: &mut Machine<'_>) -> Result<u64, Halted> {
        if !std::ptr::eq(machine.maps, &raw const *self.maps) {
            return Err(Halted::OtherMaps);
        }
        if machine.state.size() < self.state_size {
            return Err(Halted::StateSize { needed: self.state_size });
        }
        let result = self.enter(&mut Run::new(machine));
        if machine.has_records() {
            machine.abandon_records();
        }
        result
    }

    #[inline]
    fn enter(&self, run: &mut Run) -> Result<u64, Halted> {
        let ended = self.loaded.enter(run);
        match ended.number {
            0 => Ok(ended.returned),
            number => Err(self.halted(number - 1, run)),
        }
    }

    /// Prepares it for a [`Session`] with this state, which must be large enough. None if it calls helpers
    /// that are not inlined: the program has no effects except on the packet, the stack, this state, and
    /// values of maps.
    #[inline]
    pub fn alone<'r>(&'r self, state: &'r ProgramState) -> Option<PreparedProgram<'r>> {
        let fits = !self.loaded.code.asks && state.size() >= self.state_size;
        fits.then_some(PreparedProgram { compiled: self, state })
    }

    /// Prepares a program that calls helpers, as [`alone`](Self::alone) does; none if a helper may move the
    /// packet's ends.
    #[inline]
    pub fn helped<'r>(&'r self, state: &'r ProgramState) -> Option<PreparedWithHelpers<'r>> {
        let fits = !self.loaded.code.moves && state.size() >= self.state_size;
        fits.then_some(PreparedWithHelpers { compiled: self, state })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Size of the machine code in bytes.
    pub fn code_size(&self) -> usize {
        self.loaded.code.size
    }

    /// The reason for the stop at this instruction.
    #[cold]
    fn halted(&self, number: u64, run: &Run) -> Halted {
        let code = &self.program.code;
        let index = (number & !TOO_OFTEN) as usize;
        let slot = code.slot(index);
        if number & TOO_OFTEN != 0 {
            return Halted::Stopped(Stopped { slot, fault: Fault::Budget });
        }
        if run.panicked() {
            return Halted::Panicked { slot };
        }
        let fault = run.fault().unwrap_or_else(|| fault_of(code, index, run.address));
        Halted::Stopped(Stopped { slot, fault })
    }
}

/// A program prepared for packets (see [`CompiledProgram::alone`]).
#[derive(Clone, Copy)]
pub struct PreparedProgram<'r> {
    compiled: &'r CompiledProgram,
    state: &'r ProgramState,
}

/// A program with helpers, prepared for packets (see [`CompiledProgram::helped`]).
#[derive(Clone, Copy)]
pub struct PreparedWithHelpers<'r> {
    compiled: &'r CompiledProgram,
    state: &'r ProgramState,
}

/// Runs programs on packets one by one, without setup for each.
pub struct Session<'r> {
    run: Run,
    stack: &'r mut Stack,
    context: Context,
}

/// The per-packet part of the context in a [`Session`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// Ingress port.
    pub ingress: u32,
    /// Arrival time in nanoseconds.
    pub now: u64,
    /// Its mark.
    pub mark: u32,
}

/// A [`Session`] with a program that calls no helpers: its environment is the same for all packets.
pub struct BoundSession<'d> {
    run: &'d mut Run,
    compiled: &'d CompiledProgram,
}

/// A packet in a [`Session`], for one program after the other.
pub struct Shown<'d> {
    run: &'d mut Run,
    stack: &'d mut Stack,
    context: Context,
    frame: &'d mut [u8],
}

impl<'r> Session<'r> {
    /// With this stack, which should be [`Stack::trusting`], for packets whose contexts have these values
    /// apart from their arrivals.
    pub fn new(stack: &'r mut Stack, context: Context) -> Self {
        let mut run = Run::idle();
        run.lend_stack(stack);
        run.know(&context);
        Self { run, stack, context }
    }

    /// Presents a packet without headroom and tailroom to programs.
    #[inline]
    pub fn show<'d>(&'d mut self, arrival: Arrival, frame: &'d mut [u8]) -> Shown<'d> {
        let Arrival { ingress, now, mark } = arrival;
        self.run.take((ingress, now), frame);
        let context = Context { ingress, now, mark, ..self.context };
        Shown { run: &mut self.run, stack: self.stack, context, frame }
    }

    /// Binds it to one program.
    pub fn bind<'d>(&'d mut self, alone: PreparedProgram<'d>) -> BoundSession<'d> {
        self.run.use_state(alone.state);
        BoundSession { run: &mut self.run, compiled: alone.compiled }
    }
}

impl BoundSession<'_> {
    /// Runs the program on packets of a pool without headroom and tailroom, at most 64, up to the first that
    /// can't be passed as it is: a train, or one with an unfinished checksum. Returned bits mark packets for
    /// which the lower half of the return value is not `quiet`, or that were stopped: the [`Visit`] at the
    /// packet's index has the details. A handle outside the pool is treated as stopped. Frames and memory are
    /// as the program left them.
    #[inline]
    pub fn run(
        &mut self,
        pool: &mut Pool,
        packets: &[Handle],
        visits: &mut [Visit],
        quiet: u64,
    ) -> VisitProgress {
        self.compiled.loaded.visit(self.run, pool, (packets, visits), quiet)
    }
}

impl Shown<'_> {
    /// Its bytes.
    pub fn frame(&self) -> &[u8] {
        self.frame
    }

    /// Runs a program on it and returns its return value.
    ///
    /// # Errors
    /// If it was stopped; the frame and all memory are then as it left them.
    #[inline]
    pub fn run(&mut self, alone: &PreparedProgram<'_>) -> Result<u64, Halted> {
        self.run.use_state(alone.state);
        alone.compiled.enter(self.run)
    }

    /// Runs a program that calls helpers, and also returns its requests.
    #[inline]
    pub fn run_helped(
        &mut self,
        helped: &PreparedWithHelpers<'_>,
        environment: &mut dyn Environment,
    ) -> (Result<u64, Halted>, Effects) {
        let whole = 0..self.frame.len();
        let mut machine = Machine {
            context: self.context,
            packet: Packet::new(&mut *self.frame, whole),
            stack: &mut *self.stack,
            state: helped.state,
            maps: &helped.compiled.maps,
            environment,
            effects: Effects::default(),
        };
        self.run.lend(&mut machine);
        let result = helped.compiled.enter(self.run);
        self.run.forget();
        if machine.has_records() {
            machine.abandon_records();
        }
        (result, machine.effects)
    }
}

/// The fault of an instruction that was not carried out.
fn fault_of(code: &Code, index: usize, address: u64) -> Fault {
    let outside = |size| Fault::OutOfBounds { address, size };
    match code.instructions().get(index) {
        Some(Instruction::Call { helper }) if Helper::from_number(*helper).is_none() => {
            Fault::Helper(*helper)
        }
        // Its other arguments may have any value.
        Some(Instruction::Call { helper }) if *helper == Helper::Loop.number() => Fault::Argument(2),
        Some(Instruction::Call { helper }) if *helper == Helper::TailCall.number() => Fault::TailCall,
        Some(Instruction::CallKernel { .. }) => Fault::Kernel,
        Some(
            Instruction::Load { size, .. }
            | Instruction::LoadExtended { size, .. }
            | Instruction::Store { size, .. },
        ) => outside(size.bytes() as u32),
        Some(Instruction::Atomic { width, .. }) => outside(if *width == Width::W32 { 4 } else { 8 }),
        _ => Fault::End,
    }
}

#[cfg(test)]
mod tests;
