//! Decoded programs: instructions with resolved jump targets.

use crate::{DecodeError, Instruction, Register};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// A sequence of instructions, in which all jumps and local calls lead to the beginning of an instruction.
///
/// Indices of instructions start at 0 without gaps, so that tables over them are plain arrays; [`Code::slot`]
/// gives the usual number, which counts a 16-byte instruction twice, as the kernel and llvm-objdump do.
///
/// A `Code` may still not terminate, run into another function, or do something forbidden. The verifier
/// checks that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    instructions: Box<[Instruction]>,
    /// The slot number of each instruction.
    slots: Box<[u32]>,
    /// Target of each instruction's jump or call; `NOWHERE` if none.
    targets: Box<[u32]>,
    /// First instructions of targets of tail calls, by their numbers in program arrays.
    programs: BTreeMap<u32, usize>,
}

const NOWHERE: u32 = u32::MAX;

/// Reason why instructions don't form a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CodeError {
    /// An instruction can't be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// There are none.
    #[error("the program has no instructions")]
    Empty,
    /// There are too many.
    #[error("the program has {0} slots; the limit is {limit}", limit = Code::MAX_SLOTS)]
    TooLong(usize),
    /// The length is not a whole number of slots.
    #[error("the program is {0} B long, which is no multiple of 8")]
    Length(usize),
    /// A jump or call leaves the program, or leads into a 16-byte instruction.
    #[error("instruction {slot}: `{instruction}` leads to slot {target}, where no instruction begins")]
    Target {
        /// Its number.
        slot: usize,
        /// What it is.
        instruction: Instruction,
        /// Its target.
        target: i64,
    },
    /// An instruction writes the frame pointer.
    #[error(
        "instruction {slot}: `{instruction}` writes r10; use another register and leave the frame pointer \
         alone"
    )]
    FramePointer {
        /// Its number.
        slot: usize,
        /// What it is.
        instruction: Instruction,
    },
}

impl Code {
    /// Maximum number of slots.
    pub const MAX_SLOTS: usize = 65_536;

    /// Decodes a program.
    ///
    /// # Errors
    /// If an instruction is malformed, a jump leads nowhere, `r10` is written, or the length is 0 or beyond
    /// [`Code::MAX_SLOTS`].
    pub fn decode(bytes: &[u8]) -> Result<Self, CodeError> {
        if !bytes.len().is_multiple_of(8) {
            return Err(CodeError::Length(bytes.len()));
        }
        if bytes.len() / 8 > Self::MAX_SLOTS {
            return Err(CodeError::TooLong(bytes.len() / 8));
        }
        let (mut instructions, mut slot) = (Vec::with_capacity(bytes.len() / 8), 0);
        while slot * 8 < bytes.len() {
            let instruction = Instruction::decode(&bytes[slot * 8..], slot)?;
            slot += instruction.slots();
            instructions.push(instruction);
        }
        Self::new(instructions)
    }

    /// A program of these instructions.
    ///
    /// # Errors
    /// As [`Code::decode`], but for malformed instructions.
    pub fn new(instructions: Vec<Instruction>) -> Result<Self, CodeError> {
        let total: usize = instructions.iter().map(Instruction::slots).sum();
        match total {
            0 => return Err(CodeError::Empty),
            1..=Self::MAX_SLOTS => {}
            _ => return Err(CodeError::TooLong(total)),
        }
        let mut slots = Vec::with_capacity(instructions.len());
        let mut places = vec![NOWHERE; total];
        let mut slot = 0;
        for (index, instruction) in instructions.iter().enumerate() {
            places[slot] = index as u32;
            slots.push(slot as u32);
            slot += instruction.slots();
        }
        let mut targets = Vec::with_capacity(instructions.len());
        for (&instruction, &slot) in instructions.iter().zip(&slots) {
            let slot = slot as usize;
            if instruction.writes() == Some(Register::FRAME) {
                return Err(CodeError::FramePointer { slot, instruction });
            }
            targets.push(match instruction.jump() {
                None => NOWHERE,
                Some(offset) => {
                    let target = slot as i64 + instruction.slots() as i64 + i64::from(offset);
                    let place = usize::try_from(target).ok().and_then(|t| places.get(t).copied());
                    place.filter(|&p| p != NOWHERE).ok_or(CodeError::Target { slot, instruction, target })?
                }
            });
        }
        let (instructions, slots, targets) = (instructions.into(), slots.into(), targets.into());
        Ok(Self { instructions, slots, targets, programs: BTreeMap::new() })
    }

    /// Adds targets of tail calls: their first instructions, by number in program arrays from 1. Invalid ones
    /// are left out.
    #[must_use]
    pub fn with_programs(mut self, programs: impl IntoIterator<Item = (u32, usize)>) -> Self {
        let there = programs.into_iter().filter(|&(number, start)| number > 0 && start < self.len());
        self.programs = there.collect();
        self
    }

    /// Targets of tail calls: numbers and first instructions.
    pub fn programs(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.programs.iter().map(|(&number, &start)| (number, start))
    }

    /// First instruction of the program with this number.
    pub fn program(&self, number: u32) -> Option<usize> {
        self.programs.get(&number).copied()
    }

    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Number of instructions; 16-byte ones count once.
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Never: a program has at least one instruction.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }

    /// Jump target of instruction `index`, or the first instruction of the function that it calls or names.
    pub fn target(&self, index: usize) -> Option<usize> {
        self.targets.get(index).filter(|&&t| t != NOWHERE).map(|&t| t as usize)
    }

    /// Possible successors of instruction `index` within its function: the next one, and its jump target.
    pub fn successors(&self, index: usize) -> [Option<usize>; 2] {
        let Some(instruction) = self.instructions.get(index) else { return [None, None] };
        let jumps = !instruction.names_function();
        [instruction.falls_through().then_some(index + 1), self.target(index).filter(|_| jumps)]
    }

    /// The number of instruction `index` as counted by the kernel and llvm-objdump, in slots of 8 bytes.
    /// Beyond the end: the number of slots.
    pub fn slot(&self, index: usize) -> usize {
        match self.slots.get(index) {
            Some(&slot) => slot as usize,
            None => self.slot_count(),
        }
    }

    /// Number of slots of 8 bytes.
    pub fn slot_count(&self) -> usize {
        let last = self.instructions.len() - 1;
        self.slots[last] as usize + self.instructions[last].slots()
    }

    /// First instructions of functions, in order: those of the program and of targets of tail calls, and
    /// those that are called or whose address is taken.
    pub fn entries(&self) -> Vec<usize> {
        let named = self.targets_of(Instruction::names_function);
        let all = named.chain([0]).chain(self.programs().map(|(_, start)| start));
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// First instructions of functions whose address is taken, in order: possible callbacks.
    pub fn callbacks(&self) -> Vec<usize> {
        let taken = self.targets_of(|one| matches!(one, Instruction::LoadFunction { .. }));
        taken.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn targets_of(&self, which: impl Fn(&Instruction) -> bool) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(move |&i| which(&self.instructions[i])).filter_map(move |i| self.target(i))
    }

    /// Its bytes, little endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.slot_count() * 8);
        for instruction in &self.instructions {
            instruction.encode(&mut bytes);
        }
        bytes
    }
}
