//! A program for verification, compilation and execution: its code with data for messages.

use crate::{Code, ExitKind, Helper, Instruction, MapSpec, Types};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A linked program: the functions it calls follow its own code, and its maps are known.
#[derive(Debug, Clone)]
pub struct Program {
    /// The name of its C function.
    pub name: Box<str>,
    /// Its section in the object, such as `xdp`.
    pub section: Box<str>,
    /// Its instructions. The first is where it starts.
    pub code: Code,
    /// Its functions, in the order of their first instructions. The first is the program itself.
    pub functions: Box<[Function]>,
    /// The maps of its object, by index in instructions.
    pub maps: Arc<[MapSpec]>,
    /// The types of its object, including those of maps.
    pub types: Types,
    /// Constants of its object that can be set, by name, with their current numbers.
    pub constants: BTreeMap<Box<str>, Box<[i128]>>,
    /// The programs that entries of its maps may name, by number from 1.
    pub exits: Box<[Exit]>,
    /// Source lines of its instructions, in order; empty if the object has none.
    pub lines: Box<[Line]>,
    /// Number of workers that run it, each with its own values of per-worker maps.
    pub workers: u32,
}

/// A function of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: Box<str>,
    /// Its first instruction.
    pub entry: usize,
}

/// Start of a source line: the code from this instruction to the next line's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The instruction.
    pub instruction: usize,
    /// The source file.
    pub file: Arc<str>,
    /// Its line, from 1.
    pub line: u32,
}

impl Program {
    /// A program of bare code, with maps. Functions are named after their first instruction.
    pub fn new(name: &str, code: Code, maps: impl Into<Arc<[MapSpec]>>) -> Self {
        let function = |entry| Function {
            name: if entry == 0 { name.into() } else { format!("function_{}", code.slot(entry)).into() },
            entry,
        };
        let functions = code.entries().into_iter().map(function).collect();
        Self {
            name: name.into(),
            section: "xdp".into(),
            functions,
            maps: maps.into(),
            types: Types::default(),
            constants: BTreeMap::new(),
            exits: Box::default(),
            lines: Box::default(),
            workers: 1,
            code,
        }
    }

    /// It and its exits, run by this many workers.
    #[must_use]
    pub fn for_workers(mut self, workers: u32) -> Self {
        self.workers = workers.max(1);
        self.exits.iter_mut().for_each(|exit| exit.program.workers = self.workers);
        self
    }

    /// The source line of an instruction, if known.
    pub fn line(&self, instruction: usize) -> Option<&Line> {
        let after = self.lines.partition_point(|line| line.instruction <= instruction);
        self.lines.get(after.checked_sub(1)?)
    }

    /// The function that contains an instruction.
    pub fn function(&self, instruction: usize) -> Option<&Function> {
        let after = self.functions.partition_point(|function| function.entry <= instruction);
        self.functions.get(after.checked_sub(1)?)
    }

    /// An instruction for messages: `instruction 12 (r0 = *(u8 *)(r1 + 3)), filter.c:40`.
    pub fn place(&self, instruction: usize) -> impl fmt::Display + '_ {
        fmt::from_fn(move |f| {
            write!(f, "instruction {}", self.code.slot(instruction))?;
            if let Some(instruction) = self.code.instructions().get(instruction) {
                write!(f, " ({instruction})")?;
            }
            match self.line(instruction) {
                Some(line) => write!(f, ", {}:{}", line.file, line.line),
                None => Ok(()),
            }
        })
    }
}

/// A listing: functions, source lines, and every instruction with its number.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = None;
        for (index, instruction) in self.code.instructions().iter().enumerate() {
            if let Some(function) = self.functions.iter().find(|function| function.entry == index) {
                writeln!(f, "{}:", function.name)?;
            }
            let here = self.line(index);
            if let Some(here) = here.filter(|_| here != line) {
                writeln!(f, "; {}:{}", here.file, here.line)?;
            }
            line = here;
            write!(f, "{:5}: {instruction}", self.code.slot(index))?;
            let callee = match instruction {
                Instruction::Call { helper } => Helper::from_number(*helper).map(Helper::name),
                Instruction::CallLocal { .. } => {
                    let callee = self.code.target(index).and_then(|target| self.function(target));
                    callee.map(|callee| &*callee.name)
                }
                _ => None,
            };
            match callee {
                Some(name) => writeln!(f, " <{name}>")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

/// A program that entries of maps may name.
#[derive(Debug, Clone)]
pub struct Exit {
    /// Where it runs.
    pub kind: ExitKind,
    /// The program. Its own list of exits is empty: it shares its owner's.
    pub program: Program,
}
