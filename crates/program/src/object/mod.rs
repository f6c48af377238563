//! Objects: the output of `clang -O2 -g -target bpf -c`, parsed and linked into programs.
//!
//! The file is untrusted: everything in it is checked. ELF is parsed by the `object` crate; the conventions
//! of BPF objects are implemented here: programs are functions in their own sections, maps are types in
//! `.BTF`, variables are maps of one value, and instructions get their maps, variables and functions by
//! relocations (LLVM's "BPF Relocations" and libbpf's conventions).
//!
//! Unsupported parts are refused only when a program uses them, so an object may contain what only the kernel
//! can load.

mod constants;
mod error;
mod exits;
mod file;
mod link;
mod maps;
mod values;

pub use error::{LinkFault, ObjectError};

use crate::btf::{Btf, Ext, External};
use crate::{Exit, ExitKind, Function, Line, MapSpec, Program, Types};
use constants::Constant;
use file::File;
use link::{Body, LinkError, LinkedProgram};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

const TEXT: &str = ".text";
/// Prefixes of section names for programs of other kernel hooks (libbpf's table). Any other name may be an
/// XDP program's: not all are called `xdp`.
const OTHERS: &str = "\
    action cgroup cgroup_skb classifier fentry fexit flow_dissector fmod_ret freplace iter kprobe \
    kretprobe ksyscall lsm lwt_in lwt_out lwt_seg6local lwt_xmit netfilter netkit perf_event raw_tp \
    raw_tracepoint sk_lookup sk_msg sk_reuseport sk_skb socket sockops struct_ops syscall tc tcx tp \
    tp_btf tracepoint uprobe uretprobe usdt";

/// An object: programs and the maps that they share.
#[derive(Debug)]
pub struct Object<'d> {
    file: File<'d>,
    declared: maps::ObjectMaps,
    specs: Arc<[MapSpec]>,
    types: Types,
    /// Those that can be set, by name.
    constants: BTreeMap<Box<str>, Constant>,
    ext: Ext,
    externals: BTreeMap<Box<str>, External>,
    /// All functions.
    bodies: Vec<Body>,
    starts: BTreeMap<(usize, usize), usize>,
    /// Indices of the programs.
    programs: Vec<usize>,
    /// The programs that entries of maps may name, by number from 1.
    exits: Vec<(ExitKind, usize)>,
}

impl<'d> Object<'d> {
    /// Parses an object file.
    ///
    /// # Errors
    /// If it is no ELF object for BPF, its types are damaged, or maps are declared without types.
    pub fn parse(bytes: &'d [u8]) -> Result<Self, ObjectError> {
        let file = File::parse(bytes)?;
        let data = |name| file.section(name).map(|(_, section)| section.data);
        let types = |section| move |fault| ObjectError::Types { section, fault };
        let btf = data(".BTF").map(Btf::parse).transpose().map_err(types(".BTF"))?;
        let ext = match (data(".BTF.ext"), &btf) {
            (Some(data), Some(btf)) => Ext::parse(data, btf).map_err(types(".BTF.ext"))?,
            _ => Ext::default(),
        };
        let mut declared = maps::declared(&file, btf.as_ref())?;
        let types = Types::new(data(".BTF").unwrap_or_default(), std::mem::take(&mut declared.types));
        let (mut bodies, mut starts, mut programs) = (Vec::new(), BTreeMap::new(), Vec::new());
        for symbol in &file.symbols {
            let Some(section) = symbol.section.filter(|&s| file.sections[s].executable) else { continue };
            if !symbol.is_function || symbol.value % 8 != 0 || symbol.size == 0 {
                continue;
            }
            let (start, slots) = (symbol.value / 8, symbol.size.div_ceil(8));
            let within = start.checked_add(slots).is_some_and(|end| end <= file.sections[section].size / 8);
            let (start, slots) = if within { (start as usize, slots as usize) } else { continue };
            if symbol.global && file.sections[section].name != TEXT {
                programs.push(bodies.len());
            }
            starts.entry((section, start)).or_insert(bodies.len());
            bodies.push(Body { name: symbol.name.into(), section, start, slots });
        }
        values::fill(&file, &mut declared, |section, value| {
            let body = starts.get(&(section, usize::try_from(value / 8).ok()?))?;
            // They are in the order of their functions.
            let place = programs.binary_search(body).ok()?;
            Some(place as u32 + 1)
        });
        let specs: Arc<[MapSpec]> = std::mem::take(&mut declared.specs).into();
        let constants = constants::found(&file, &declared, &specs, btf.as_ref());
        let externals = btf.as_ref().map(Btf::externals).unwrap_or_default();
        let exits = Vec::new();
        Ok(Self { file, declared, specs, types, constants, ext, externals, bodies, starts, programs, exits })
    }

    /// The programs' names and sections.
    pub fn programs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.programs
            .iter()
            .map(|&p| (&*self.bodies[p].name, self.file.sections[self.bodies[p].section].name))
    }

    /// The valid maps, by index in programs.
    pub fn maps(&self) -> &Arc<[MapSpec]> {
        &self.specs
    }

    /// Sets a map's number of entries, for programs linked after this.
    ///
    /// # Errors
    /// If there is no such map, or the number is invalid.
    pub fn set_entries(&mut self, name: &str, entries: u32) -> Result<(), ObjectError> {
        let is_data = |spec: &MapSpec| spec.name.starts_with('.');
        let place = self.specs.iter().position(|spec| *spec.name == *name && !is_data(spec));
        let Some(place) = place else {
            let known: Vec<&str> =
                self.specs.iter().filter(|spec| !is_data(spec)).map(|spec| &*spec.name).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            return Err(ObjectError::NoMap { name: name.into(), known });
        };
        let spec = &mut Arc::make_mut(&mut self.specs)[place];
        spec.max_entries = MapSpec::rounded(spec.kind, entries);
        spec.check().map_err(ObjectError::Entries)
    }

    /// Links the program of this name, with those that entries of its maps may name ([`Object::set_exits`]).
    ///
    /// # Errors
    /// If there is none, or it contains something that can't be loaded: the instruction, its line if known,
    /// and the fix.
    pub fn program(&self, name: &str) -> Result<Program, ObjectError> {
        let first = self.named(name)?;
        if let (section, Some(kind)) = self.section_of(first)? {
            let section = section.into();
            return Err(ObjectError::Attached { program: name.into(), section, kind });
        }
        let exit = |&(kind, body): &(ExitKind, usize)| Ok(Exit { kind, program: self.together(body)? });
        let exits = self.exits.iter().map(exit).collect::<Result<_, _>>()?;
        Ok(Program { exits, ..self.together(first)? })
    }

    /// The function of the program with this name.
    fn named(&self, name: &str) -> Result<usize, ObjectError> {
        let program = self.programs.iter().find(|&&p| *self.bodies[p].name == *name);
        program.copied().ok_or_else(|| self.no_program(name))
    }

    /// Links the program that begins with this function.
    fn together(&self, first: usize) -> Result<Program, ObjectError> {
        let name = &*self.bodies[first].name;
        let (section, kind) = self.section_of(first)?;
        let mut linked = self.link(first).map_err(|error| self.link_error(name, error))?;
        linked.programs.values().try_for_each(|&(body, _)| self.can_follow(body, kind))?;
        let code = linked.code().map_err(|fault| ObjectError::Code { program: name.into(), fault })?;
        let function =
            |&(body, entry): &(usize, usize)| Function { name: self.bodies[body].name.clone(), entry };
        Ok(Program {
            name: name.into(),
            section: section.into(),
            functions: linked.functions.iter().map(function).collect(),
            maps: self.specs.clone(),
            types: self.types.clone(),
            constants: self.constant_values(),
            exits: Box::default(),
            lines: self.lines(&linked),
            workers: 1,
            code,
        })
    }

    /// Section of a program, and where it runs unless it is an ordinary one.
    fn section_of(&self, program: usize) -> Result<(&'d str, Option<ExitKind>), ObjectError> {
        let (name, section) =
            (&self.bodies[program].name, self.file.sections[self.bodies[program].section].name);
        if section.split(['/', '.']).next().is_some_and(|kind| OTHERS.split(' ').any(|other| other == kind)) {
            return Err(ObjectError::Kind { program: name.clone(), section: section.into() });
        }
        Ok((section, ExitKind::of_section(section)))
    }

    /// Whether a program may be the target of a tail call from one of this kind.
    fn can_follow(&self, program: usize, before: Option<ExitKind>) -> Result<(), ObjectError> {
        let (section, own) = self.section_of(program)?;
        if own == before {
            return Ok(());
        }
        let (program, section) = (self.bodies[program].name.clone(), section.into());
        Err(match own {
            Some(kind) => ObjectError::Attached { program, section, kind },
            None => ObjectError::NoExit { program, section },
        })
    }

    fn no_program(&self, name: &str) -> ObjectError {
        let names: Vec<&str> = self.programs().map(|(name, _)| name).collect();
        ObjectError::NoProgram { name: name.into(), programs: names.join(", ") }
    }

    fn link_error(&self, program: &str, error: LinkError) -> ObjectError {
        let body = &self.bodies[error.body];
        // Counted from the function's beginning, like the program's own functions.
        let mut place = format!("instruction {}", error.slot - body.start);
        if *body.name != *program {
            write!(place, " of function {}", body.name).ok();
        }
        if let Some((file, line)) = self.line_at(body.section, error.slot) {
            write!(place, ", {file}:{line}").ok();
        }
        ObjectError::Program { program: program.into(), place, fault: error.fault }
    }

    /// Source line of a slot of a section.
    fn line_at(&self, section: usize, slot: usize) -> Option<(&Arc<str>, u32)> {
        let lines = self.ext.lines.get(self.file.sections[section].name)?;
        let after = lines.partition_point(|line| u64::from(line.offset) <= slot as u64 * 8);
        let line = lines.get(after.checked_sub(1)?)?;
        Some((&line.file, line.line))
    }

    /// The first instruction of each line.
    fn lines(&self, linked: &LinkedProgram) -> Box<[Line]> {
        let mut lines: Vec<Line> = Vec::new();
        let mut functions = linked.functions.iter().peekable();
        let mut section = 0;
        for (instruction, &slot) in linked.slots.iter().enumerate() {
            let begins = functions.next_if(|&&(_, entry)| entry == instruction);
            if let Some(&(body, _)) = begins {
                section = self.bodies[body].section;
            }
            let Some((file, line)) = self.line_at(section, slot) else { continue };
            let last = lines.last().is_some_and(|last| last.line == line && last.file == *file);
            if !last || begins.is_some() {
                lines.push(Line { instruction, file: file.clone(), line });
            }
        }
        lines.into()
    }
}
