//! Compiles programs to machine code, with Cranelift.
//!
//! A compiled program holds the same values in its registers as an interpreted one: addresses are numbers of
//! a region and a place ([`longwire_program::memory`]). Where the region of an access is known, subtracting
//! the region's first address gives the place, and one comparison with the region's length says that both are
//! right, whatever the register holds. That comparison stays in, verified or not: a mistake of the verifier's
//! ends a program, and opens nothing. Where the region is not known, the access is carried out by
//! [`Machine::load`] and its like. Helpers are called through [`Machine::call`].
//!
//! - `order`: functions, and an order of instructions in which nothing comes before what leads to it;
//! - `translate`: a function, with `visits`, the way from packet to packet;
//! - `arithmetic`, `access`, `call`: its instructions;
//! - `run`: what compiled code works on, and what it calls; `visit`: what it returned of packets;
//! - `memory`: where the code lies, and for how long.
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
    Program, Region, Stack, State, Stopped, Verified, Width,
};
use memory::Loaded;
use run::{Run, TOO_OFTEN};
use std::sync::Arc;
use thiserror::Error;
pub use visit::{Visit, Visited};

/// A program as machine code, for these maps. It may be run by several workers at once.
///
/// The code lies in pages that can be executed and not written, and is given back when this is dropped.
pub struct Compiled {
    loaded: Loaded,
    program: Program,
    maps: Arc<Maps>,
    /// How many bytes of state the code takes for granted.
    state_size: u32,
}

/// Why a program can't be compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// A function would need more frames than there are.
    #[error("the function at instruction {slot} calls too deeply, or itself")]
    Depth {
        /// The number of its first instruction, in slots.
        slot: usize,
    },
    /// Its functions share so much code that there would be too much of it.
    #[error("the program's functions have more than {0} instructions together")]
    TooLarge(usize),
    /// The processor is none that code can be made for.
    #[error("no code can be made for this processor: {0}")]
    Processor(String),
    /// The code generator refused it.
    #[error("the code generator failed: {0}")]
    Generator(String),
}

/// Why a compiled program did not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Halted {
    /// It was about to do what a verified program can't.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A helper failed in a way it never should.
    #[error("instruction {slot}: the helper panicked")]
    Panicked {
        /// The number of the instruction, in slots.
        slot: usize,
    },
    /// The machine's maps are not those that it was compiled for.
    #[error("the program was compiled for other maps")]
    OtherMaps,
    /// The machine's state is too short.
    #[error("the program needs {needed} bytes of state")]
    StateSize {
        /// How many it needs.
        needed: u32,
    },
}

/// What is known of the accesses of a program before it is compiled.
#[derive(Clone, Copy)]
enum Known<'a> {
    /// What the verifier has proven: whatever contradicts it ends the program.
    Facts(&'a [Fact]),
    /// Which region an access is probably in: elsewhere it takes longer.
    Hints(&'a [Option<Region>]),
}

/// Compiles a verified program for these maps.
///
/// # Errors
/// If the code generator can't, or there is none for this processor.
pub fn compile(verified: &Verified, maps: Arc<Maps>) -> Result<Compiled, CompileError> {
    let known = Known::Facts(verified.facts());
    let turns = u64::from(verified.most()[Item::Instruction]);
    Compiled::new(verified.program(), known, (verified.state_size(), turns), maps)
}

/// Compiles a program that nobody has verified. It checks at run time whatever a program could do wrong but
/// reading registers that were not written, which are 0, and parts of the stack that were not, which have any
/// value. Of its loops it may go round [`MOST_TURNS`] times. `hints` says for each instruction in which
/// region its access probably is; wrong or missing hints make it slower.
///
/// # Errors
/// If it calls too deeply, or as [`compile`].
pub fn compile_unverified(
    program: &Program,
    hints: &[Option<Region>],
    maps: Arc<Maps>,
) -> Result<Compiled, CompileError> {
    Compiled::new(program, Known::Hints(hints), (0, MOST_TURNS), maps)
}

/// How often a program that nobody has verified may lead back in its loops, all together, for one packet.
pub const MOST_TURNS: u64 = 1 << 16;

impl Compiled {
    fn new(
        program: &Program,
        known: Known<'_>,
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

    /// Runs it on what is in `machine`, and gives what it returned. The machine's stack should be
    /// [`Stack::trusting`](longwire_program::Stack::trusting): another one is not told what compiled code
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

    /// Gets it ready for a [`Session`], with this state, which has to be long enough; if it calls nothing
    /// that is not answered in place. Such a program has no effects but what it does to the packet, the
    /// stack, this state, and values of maps.
    #[inline]
    pub fn alone<'r>(&'r self, state: &'r State) -> Option<Alone<'r>> {
        let fits = !self.loaded.asks() && state.size() >= self.state_size;
        fits.then_some(Alone { compiled: self, state })
    }

    /// Prepares a program that calls helpers, as [`alone`](Self::alone) does; none if a helper may move the
    /// packet's ends.
    #[inline]
    pub fn helped<'r>(&'r self, state: &'r State) -> Option<Helped<'r>> {
        let fits = !self.loaded.moves() && state.size() >= self.state_size;
        fits.then_some(Helped { compiled: self, state })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// How many bytes of machine code it is.
    pub fn code_size(&self) -> usize {
        self.loaded.size()
    }

    /// Why it was stopped at this instruction.
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

/// A program that is ready for packets (see [`Compiled::alone`]).
#[derive(Clone, Copy)]
pub struct Alone<'r> {
    compiled: &'r Compiled,
    state: &'r State,
}

/// A program that is ready for packets, with helpers (see [`Compiled::helped`]).
#[derive(Clone, Copy)]
pub struct Helped<'r> {
    compiled: &'r Compiled,
    state: &'r State,
}

/// Where programs run on packet after packet, without anything being made anew for each.
pub struct Session<'r> {
    run: Run,
    stack: &'r mut Stack,
    context: Context,
}

/// What differs between the contexts of packets on a [`Session`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// The number of the port that it came in by.
    pub ingress: u32,
    /// Its time, in nanoseconds.
    pub now: u64,
    /// Its mark.
    pub mark: u32,
}

/// A [`Session`] with a program that calls nothing: what that finds there is the same for all packets.
pub struct Bound<'d> {
    run: &'d mut Run,
    compiled: &'d Compiled,
}

/// A packet on a [`Session`]: for one program after the other.
pub struct Shown<'d> {
    run: &'d mut Run,
    stack: &'d mut Stack,
    context: Context,
    frame: &'d mut [u8],
}

impl<'r> Session<'r> {
    /// One with this stack, which should be [`Stack::trusting`], for packets whose contexts have these values
    /// but for what arrivals say.
    pub fn new(stack: &'r mut Stack, context: Context) -> Self {
        let mut run = Run::idle();
        run.lend_stack(stack);
        run.know(&context);
        Self { run, stack, context }
    }

    /// Shows programs a packet that has no room before and behind.
    #[inline]
    pub fn show<'d>(&'d mut self, arrival: Arrival, frame: &'d mut [u8]) -> Shown<'d> {
        let Arrival { ingress, now, mark } = arrival;
        self.run.take((ingress, now), frame);
        let context = Context { ingress, now, mark, ..self.context };
        Shown { run: &mut self.run, stack: self.stack, context, frame }
    }

    /// Keeps it for one program.
    pub fn bind<'d>(&'d mut self, alone: Alone<'d>) -> Bound<'d> {
        self.run.use_state(alone.state);
        Bound { run: &mut self.run, compiled: alone.compiled }
    }
}

impl Bound<'_> {
    /// Runs the program on packets of a pool, which have no room before and behind, one after the other, at
    /// most 64 of them, until one can't be shown as it is: a train, or one with a checksum to be finished.
    /// Those are to be looked at of which it returned something else in its low half than `quiet`, or was
    /// stopped: the [`Visit`] in the packet's place tells what. One that is none of the pool's is treated as
    /// stopped; where the program was, frames and all memory are as it left them.
    #[inline]
    pub fn run(&mut self, pool: &mut Pool, packets: &[Handle], visits: &mut [Visit], quiet: u64) -> Visited {
        self.compiled.loaded.visit(self.run, pool, (packets, visits), quiet)
    }
}

impl Shown<'_> {
    /// Its bytes.
    pub fn frame(&self) -> &[u8] {
        self.frame
    }

    /// Runs a program on it, and gives what that returned.
    ///
    /// # Errors
    /// If it was stopped; the frame and all memory are then as it left them.
    #[inline]
    pub fn run(&mut self, alone: &Alone<'_>) -> Result<u64, Halted> {
        self.run.use_state(alone.state);
        alone.compiled.enter(self.run)
    }

    /// Runs a program that calls helpers, and returns what it has asked for, too.
    #[inline]
    pub fn run_helped(
        &mut self,
        helped: &Helped<'_>,
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
        // All else that it is given may be anything.
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
