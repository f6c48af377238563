//! Runs a program instruction by instruction, checking every access and register: the reference for compiled
//! programs, and the fallback if there is no compiler.

use crate::call::rounds;
use crate::memory::{Fault, MAX_FRAMES, Region, frame_pointer};
use crate::{Code, Helper, Instruction, Machine, Operand, Register};
use thiserror::Error;

/// A program that ended normally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Its return value.
    pub returned: u64,
    /// Number of instructions executed.
    pub instructions: u64,
}

/// A program that was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("instruction {slot}: {fault}")]
pub struct Stopped {
    /// The instruction that failed, in slots.
    pub slot: usize,
    /// The reason.
    pub fault: Fault,
}

/// Runs `code` on `machine`, for at most `budget` instructions.
///
/// # Errors
/// If the program does what a verified program can't; the packet and all memory are then as it left them.
pub fn interpret(code: &Code, machine: &mut Machine<'_>, budget: u64) -> Result<Finished, Stopped> {
    machine.stack.reset();
    let mut thread = Thread::new(code);
    let done = thread.run(machine, budget);
    let left = machine.has_records();
    if left {
        machine.abandon_records();
    }
    match done {
        Ok(()) if left => Err(thread.stopped(Fault::Unreleased)),
        Ok(()) => Ok(Finished { returned: thread.registers[0], instructions: thread.executed }),
        Err(fault) => Err(thread.stopped(fault)),
    }
}

/// The state of a running program.
struct Thread<'c> {
    code: &'c Code,
    registers: [u64; Register::COUNT],
    /// The registers written so far, as a set.
    written: u16,
    /// The current instruction.
    at: usize,
    frames: [Frame; MAX_FRAMES],
    depth: usize,
    executed: u64,
    running: bool,
}

/// Saved state of a caller: its return address, and `r6` to `r9`.
#[derive(Clone, Copy, Default)]
struct Frame {
    resume: usize,
    saved: [u64; 4],
    written: u16,
    /// Remaining rounds, if a helper has called it.
    rounds: Option<Rounds>,
}

/// A callback of [`Helper::Loop`].
#[derive(Clone, Copy)]
struct Rounds {
    function: usize,
    /// Its argument besides the round's number.
    data: u64,
    /// Maximum and current number of rounds.
    count: u32,
    done: u32,
}

impl<'c> Thread<'c> {
    fn new(code: &'c Code) -> Self {
        let mut registers = [0; Register::COUNT];
        registers[1] = Machine::CONTEXT;
        registers[10] = frame_pointer(0);
        let written = Register::R1.bit() | Register::FRAME.bit();
        let frames = [Frame::default(); MAX_FRAMES];
        Self { code, registers, written, at: 0, frames, depth: 0, executed: 0, running: true }
    }

    fn run(&mut self, machine: &mut Machine<'_>, budget: u64) -> Result<(), Fault> {
        while self.running {
            if self.executed == budget {
                return Err(Fault::Budget);
            }
            self.step(machine)?;
            self.executed += 1;
        }
        Ok(())
    }

    fn stopped(&self, fault: Fault) -> Stopped {
        Stopped { slot: self.code.slot(self.at), fault }
    }

    fn step(&mut self, machine: &mut Machine<'_>) -> Result<(), Fault> {
        let instruction = *self.code.instructions().get(self.at).ok_or(Fault::End)?;
        // A function that the program calls need not return a value.
        let calls = |depth: usize| self.frames[depth].rounds.is_none();
        let void = instruction == Instruction::Exit && self.depth.checked_sub(1).is_some_and(calls);
        let missing = if void { 0 } else { instruction.reads() & !self.written };
        if missing != 0 {
            return Err(Fault::Register(missing.trailing_zeros() as u8));
        }
        let mut next = self.at + 1;
        match instruction {
            Instruction::Jump { .. } | Instruction::JumpLong { .. } => next = self.target()?,
            Instruction::Branch { width, condition, dst, source, .. } => {
                if condition.holds(width, self.read(dst), self.operand(source)) {
                    next = self.target()?;
                }
            }
            Instruction::Call { helper } => next = self.call(helper, machine)?,
            Instruction::CallLocal { .. } => {
                self.enter(None, machine)?;
                next = self.target()?;
            }
            Instruction::LoadFunction { dst, .. } => {
                let entry = self.target()?;
                self.write(dst, Region::Code.address(entry as u32));
            }
            Instruction::CallKernel { .. } => return Err(Fault::Kernel),
            Instruction::Exit => next = self.leave(machine),
            Instruction::Load { .. }
            | Instruction::LoadExtended { .. }
            | Instruction::Store { .. }
            | Instruction::Atomic { .. } => self.access(instruction, machine)?,
            plain => self.compute(plain),
        }
        self.at = next;
        Ok(())
    }

    /// Instructions that only access registers.
    fn compute(&mut self, instruction: Instruction) {
        match instruction {
            Instruction::Arithmetic { width, operation, dst, source } => {
                let result = operation.apply(width, self.read(dst), self.operand(source));
                self.write(dst, result);
            }
            Instruction::MoveExtended { width, from, dst, src } => {
                self.write(dst, width.size().cut(from.extend(self.read(src))));
            }
            Instruction::Negate { width, dst } => {
                let value = self.read(dst).wrapping_neg();
                self.write(dst, width.size().cut(value));
            }
            Instruction::Swap { order, size, dst } => self.write(dst, order.apply(size, self.read(dst))),
            Instruction::LoadWide { dst, value } => self.write(dst, value),
            Instruction::LoadMap { dst, map } => self.write(dst, Region::Handle(map as u16).address(0)),
            Instruction::LoadMapValue { dst, map, offset } => {
                self.write(dst, Region::Map(map as u16).address(offset));
            }
            _ => {}
        }
    }

    fn access(&mut self, instruction: Instruction, machine: &mut Machine<'_>) -> Result<(), Fault> {
        match instruction {
            Instruction::Load { size, dst, base, offset } => {
                let value = machine.load(self.address(base, offset), size)?;
                self.write(dst, value);
            }
            Instruction::LoadExtended { size, dst, base, offset } => {
                let value = machine.load_extended(self.address(base, offset), size)?;
                self.write(dst, value);
            }
            Instruction::Store { size, base, offset, source } => {
                machine.store(self.address(base, offset), size, self.operand(source))?;
            }
            Instruction::Atomic { width, operation, base, offset, src } => {
                let address = self.address(base, offset);
                let old = machine.change(address, width, operation, self.read(src), self.registers[0])?;
                if let Some(dst) = instruction.writes() {
                    self.write(dst, old);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Executes a helper call. Returns the next instruction.
    fn call(&mut self, helper: u32, machine: &mut Machine<'_>) -> Result<usize, Fault> {
        let wanted = Helper::from_number(helper).ok_or(Fault::Helper(helper))?.signature().arguments.len();
        let missing = ((1 << wanted) - 1) << 1 & !self.written;
        if missing != 0 {
            return Err(Fault::Register(missing.trailing_zeros() as u8));
        }
        let [_, a, b, c, d, e, ..] = self.registers;
        if helper == Helper::TailCall.number() {
            let number = machine.call(helper, [a, b, c, d, e])?;
            return self.tail_call(number as u32, machine);
        }
        let result = if helper == Helper::Loop.number() {
            match rounds(a, d) {
                Ok(count) => return self.repeat(count, (b, c), machine),
                Err(result) => result,
            }
        } else {
            machine.call(helper, [a, b, c, d, e])?
        };
        self.written &= !Register::ARGUMENT_BITS;
        self.write(Register::R0, result);
        Ok(self.at + 1)
    }

    /// Continues with the program of this number, or after the call if it is 0.
    fn tail_call(&mut self, number: u32, machine: &mut Machine<'_>) -> Result<usize, Fault> {
        self.written &= !(Register::ARGUMENT_BITS | Register::R0.bit());
        if number == 0 {
            return Ok(self.at + 1);
        }
        let start = self.code.program(number).filter(|_| self.depth == 0).ok_or(Fault::TailCall)?;
        machine.stack.reset();
        self.written = Register::FRAME.bit();
        self.write(Register::R1, Machine::CONTEXT);
        Ok(start)
    }

    /// Begins repeated calls of a function.
    fn repeat(
        &mut self,
        count: u32,
        (function, data): (u64, u64),
        machine: &mut Machine<'_>,
    ) -> Result<usize, Fault> {
        let function = match Region::of(function) {
            Some((Region::Code, entry)) if self.code.callbacks().contains(&(entry as usize)) => {
                entry as usize
            }
            _ => return Err(Fault::Argument(2)),
        };
        let rounds = Rounds { function, data, count, done: 0 };
        if count == 0 {
            self.written &= !Register::ARGUMENT_BITS;
            self.write(Register::R0, 0);
            return Ok(self.at + 1);
        }
        self.enter(Some(rounds), machine)?;
        Ok(self.begin_round(rounds))
    }

    /// Sets the callback's arguments.
    fn begin_round(&mut self, rounds: Rounds) -> usize {
        self.written = Register::FRAME.bit();
        self.write(Register::R1, rounds.done.into());
        self.write(Register::R2, rounds.data);
        rounds.function
    }

    /// Enters a function of the program, which sees its caller's arguments and an empty frame.
    fn enter(&mut self, rounds: Option<Rounds>, machine: &mut Machine<'_>) -> Result<(), Fault> {
        if self.depth + 1 == MAX_FRAMES {
            return Err(Fault::Depth);
        }
        let mut saved = [0; 4];
        saved.copy_from_slice(&self.registers[6..10]);
        let written = self.written & Register::SAVED_BITS;
        self.frames[self.depth] = Frame { resume: self.at + 1, saved, written, rounds };
        self.depth += 1;
        self.written &= Register::ARGUMENT_BITS | Register::FRAME.bit();
        self.registers[10] = frame_pointer(self.depth);
        machine.stack.set_frames(self.depth + 1);
        Ok(())
    }

    fn leave(&mut self, machine: &mut Machine<'_>) -> usize {
        let Some(depth) = self.depth.checked_sub(1) else {
            self.running = false;
            return self.at;
        };
        let frame = self.frames[depth];
        if let Some(rounds) = frame.rounds {
            let done = rounds.done + 1;
            if self.registers[0] == 0 && done < rounds.count {
                let rounds = Rounds { done, ..rounds };
                self.frames[depth].rounds = Some(rounds);
                // Its frame is empty in each round.
                machine.stack.set_frames(depth + 1);
                machine.stack.set_frames(depth + 2);
                return self.begin_round(rounds);
            }
            self.write(Register::R0, done.into());
        }
        self.depth = depth;
        self.registers[6..10].copy_from_slice(&frame.saved);
        self.registers[10] = frame_pointer(depth);
        self.written = self.written & Register::R0.bit() | Register::FRAME.bit() | frame.written;
        machine.stack.set_frames(depth + 1);
        frame.resume
    }

    fn read(&self, register: Register) -> u64 {
        self.registers[register.number()]
    }

    fn write(&mut self, register: Register, value: u64) {
        self.registers[register.number()] = value;
        self.written |= register.bit();
    }

    fn operand(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Register(register) => self.read(register),
            Operand::Immediate(value) => i64::from(value) as u64,
        }
    }

    fn address(&self, base: Register, offset: i16) -> u64 {
        self.read(base).wrapping_add_signed(i64::from(offset))
    }

    fn target(&self) -> Result<usize, Fault> {
        self.code.target(self.at).ok_or(Fault::End)
    }
}
