//! Links a program: its function, the functions it calls, and their relocations.

use super::Object;
use super::error::LinkFault;
use super::file::Reference;
use super::maps::{LEGACY, MAPS};
use crate::btf::External;
use crate::{Code, CodeError, Instruction, MapKind, Register};
use object::elf::{R_BPF_64_32, R_BPF_64_64};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A function of an object in its section.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub name: Box<str>,
    pub section: usize,
    /// In slots from the section's beginning.
    pub start: usize,
    pub slots: usize,
}

/// A program's functions in sequence.
#[derive(Debug, Default)]
pub(super) struct LinkedProgram {
    pub instructions: Vec<Instruction>,
    /// For each function: its index in the object, and its first instruction.
    pub functions: Vec<(usize, usize)>,
    /// For each instruction, the slot in its section.
    pub slots: Vec<usize>,
    /// Targets of tail calls, by number: the function's index in the object, and its first instruction.
    pub programs: BTreeMap<u32, (usize, usize)>,
    /// The program arrays that have them.
    arrays: BTreeSet<u32>,
}

/// An error, with its function and slot in the section.
#[derive(Debug)]
pub(super) struct LinkError {
    pub body: usize,
    pub slot: usize,
    pub fault: LinkFault,
}

/// A call, or a load of a function's address, to be resolved: the instruction, the next slot in the program,
/// and the function.
struct Call {
    instruction: usize,
    next: usize,
    body: usize,
}

/// An instruction, and the object's function that it calls or names, by index; its offset is set later.
type Referred = (Instruction, Option<usize>);

impl Object<'_> {
    /// Links the program that begins with this function.
    pub(super) fn link(&self, body: usize) -> Result<LinkedProgram, LinkError> {
        let (mut linked, mut calls) = (LinkedProgram::default(), Vec::new());
        // Start of each function of the program; those in the queue are not placed yet.
        let (mut waiting, mut placed) = (vec![body], HashMap::from([(body, 0)]));
        let mut slot = 0;
        // Each function is added once, in order of first calls.
        let mut done = 0;
        while done < waiting.len() {
            let body = waiting[done];
            done += 1;
            placed.insert(body, slot);
            linked.functions.push((body, linked.instructions.len()));
            let (first_call, arrays) = (calls.len(), linked.arrays.len());
            slot += self.add(body, slot, &mut linked, &mut calls)?;
            let called = calls[first_call..].iter().map(|call| call.body);
            // Without a new array the same programs.
            let named = linked.programs.values().filter(|_| linked.arrays.len() > arrays);
            for body in called.chain(named.map(|&(body, _)| body)) {
                placed.entry(body).or_insert_with(|| {
                    waiting.push(body);
                    0
                });
            }
            if slot > Code::MAX_SLOTS {
                break;
            }
        }
        let firsts: HashMap<usize, usize> = linked.functions.iter().copied().collect();
        for (body, first) in linked.programs.values_mut() {
            *first = firsts.get(body).copied().unwrap_or(linked.instructions.len());
        }
        for call in calls {
            let Some(&target) = placed.get(&call.body) else { continue };
            let offset = target as i64 - call.next as i64;
            let offset = offset as i32;
            let instruction = &mut linked.instructions[call.instruction];
            *instruction = match *instruction {
                Instruction::LoadFunction { dst, .. } => Instruction::LoadFunction { dst, offset },
                _ => Instruction::CallLocal { offset },
            };
        }
        Ok(linked)
    }

    /// Adds a function at slot `base` of the program. Returns its number of slots.
    fn add(
        &self,
        index: usize,
        base: usize,
        linked: &mut LinkedProgram,
        calls: &mut Vec<Call>,
    ) -> Result<usize, LinkError> {
        let body = &self.bodies[index];
        let fail = |slot, fault| LinkError { body: index, slot, fault };
        let end = body.start + body.slots;
        let section = &self.file.sections[body.section];
        let code = section.data.get(body.start * 8..end * 8).filter(|_| body.slots <= Code::MAX_SLOTS);
        let code = code.ok_or_else(|| fail(body.start, LinkFault::Extent(body.name.clone())))?;
        let relocations = self.ext.relocations.get(section.name).map_or(&[][..], |all| all);
        let mut slot = body.start;
        while slot < end {
            let fail = |fault| fail(slot, fault);
            let offset = slot as u64 * 8;
            if let Ok(found) = relocations.binary_search_by_key(&offset, |one| u64::from(one.offset)) {
                return Err(fail(LinkFault::CoRe(relocations[found].name.clone())));
            }
            let read = Instruction::decode(&code[(slot - body.start) * 8..], slot);
            let read = read.map_err(|error| fail(error.fault.into()))?;
            let next = slot + read.slots();
            let (instruction, named) = match (section.references.get(&offset), read) {
                (Some(&reference), _) => self.refer(read, reference).map_err(fail)?,
                (None, Instruction::CallLocal { offset }) => {
                    let named = self.function_at(body.section, next as i64 + i64::from(offset));
                    (Instruction::CallLocal { offset: 0 }, Some(named.map_err(fail)?))
                }
                (None, plain) => (plain, None),
            };
            if let Some(named) = named {
                let next = base + next - body.start;
                calls.push(Call { instruction: linked.instructions.len(), next, body: named });
            } else {
                let target = instruction.jump().map(|offset| next as i64 + i64::from(offset));
                if target.is_some_and(|to| to < body.start as i64 || to >= end as i64) {
                    return Err(fail(LinkFault::Leaves));
                }
                if let Instruction::CallKernel { id } = instruction {
                    return Err(fail(LinkFault::KernelFunction(id.to_string().into())));
                }
                if let Instruction::LoadMap { map, .. } | Instruction::LoadMapValue { map, .. } = instruction
                {
                    self.use_map(map, linked).map_err(fail)?;
                }
            }
            linked.instructions.push(instruction);
            linked.slots.push(slot);
            slot = next;
        }
        Ok(body.slots)
    }

    /// Checks a map that the program loads, and adds the programs of a program array.
    fn use_map(&self, map: u32, linked: &mut LinkedProgram) -> Result<(), LinkFault> {
        // Instructions may name maps by number, without a relocation.
        let spec = self.specs.get(map as usize).ok_or(LinkFault::NoMapNumber(map))?;
        if spec.max_entries == 0 {
            return Err(LinkFault::NoEntries(spec.name.clone()));
        }
        if spec.kind == MapKind::ProgArray && linked.arrays.insert(map) {
            for number in spec.programs(0, u32::MAX) {
                if let Some(&body) = self.programs.get(number as usize - 1) {
                    linked.programs.insert(number, (body, 0));
                }
            }
        }
        Ok(())
    }

    /// Applies a relocation to an instruction.
    fn refer(&self, instruction: Instruction, reference: Reference) -> Result<Referred, LinkFault> {
        let symbol = self.file.symbols.get(reference.symbol).ok_or(LinkFault::Misplaced)?;
        let name = || Box::from(self.file.symbol_name(symbol));
        match (reference.kind, instruction) {
            (R_BPF_64_32, Instruction::CallLocal { offset }) => {
                let section =
                    symbol.section.ok_or_else(|| self.undefined(name(), LinkFault::UndefinedFunction))?;
                // A call has -1, or its target's slot minus 1 within a section.
                let target = i64::try_from(symbol.value / 8).map_err(|_| LinkFault::NoFunction)?;
                let target = target.checked_add(i64::from(offset) + 1).ok_or(LinkFault::NoFunction)?;
                Ok((Instruction::CallLocal { offset: 0 }, Some(self.function_at(section, target)?)))
            }
            (R_BPF_64_64, Instruction::LoadWide { dst, value }) => {
                let section = symbol.section.ok_or_else(|| self.undefined(name(), LinkFault::Undefined))?;
                let offset = symbol.value.checked_add(u64::from(value as u32)).ok_or(LinkFault::Misplaced)?;
                if self.file.sections[section].executable {
                    let function = i64::try_from(offset / 8).map_err(|_| LinkFault::NoFunction)?;
                    let function = self.function_at(section, function).ok().filter(|_| offset % 8 == 0);
                    let function = function.ok_or_else(|| LinkFault::FunctionAddress(name()))?;
                    return Ok((Instruction::LoadFunction { dst, offset: 0 }, Some(function)));
                }
                Ok((self.address(dst, section, offset, &name)?, None))
            }
            (R_BPF_64_32 | R_BPF_64_64, _) => Err(LinkFault::Misplaced),
            (kind, _) => Err(LinkFault::Relocation(kind)),
        }
    }

    /// The error for an undefined symbol: the kernel's, if the types say so.
    fn undefined(&self, name: Box<str>, otherwise: fn(Box<str>) -> LinkFault) -> LinkFault {
        match self.externals.get(&name) {
            Some(External::Function) => LinkFault::KernelFunction(name),
            Some(External::Variable) => LinkFault::KernelVariable(name),
            Some(External::Configuration) => LinkFault::Configuration(name),
            None => otherwise(name),
        }
    }

    /// Load of an address in a section.
    fn address(
        &self,
        dst: Register,
        index: usize,
        offset: u64,
        name: &dyn Fn() -> Box<str>,
    ) -> Result<Instruction, LinkFault> {
        let section = &self.file.sections[index];
        match section.name {
            MAPS => {
                let map = self.declared.by_offset.get(&offset).ok_or(LinkFault::NoMap(offset))?;
                Ok(Instruction::LoadMap { dst, map: map.clone()? })
            }
            LEGACY => Err(LinkFault::LegacyMap(name())),
            other => {
                let map = self.declared.by_section.get(&index);
                let map = map.ok_or_else(|| LinkFault::Section(other.into()))?.clone()?;
                if !section.references.is_empty() {
                    return Err(LinkFault::Addresses(other.into()));
                }
                let beyond = || LinkFault::Beyond { section: other.into(), offset };
                let offset = u32::try_from(offset).ok().filter(|&o| u64::from(o) <= section.size);
                Ok(Instruction::LoadMapValue { dst, map, offset: offset.ok_or_else(beyond)? })
            }
        }
    }

    fn function_at(&self, section: usize, slot: i64) -> Result<usize, LinkFault> {
        let slot = usize::try_from(slot).map_err(|_| LinkFault::NoFunction)?;
        self.starts.get(&(section, slot)).copied().ok_or(LinkFault::NoFunction)
    }
}

impl LinkedProgram {
    /// The instructions as code.
    pub(super) fn code(&mut self) -> Result<Code, CodeError> {
        let code = Code::new(std::mem::take(&mut self.instructions))?;
        Ok(code.with_programs(self.programs.iter().map(|(&number, &(_, first))| (number, first))))
    }
}
