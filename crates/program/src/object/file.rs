//! The relevant parts of an object file: sections, symbols, and relocations.

use super::ObjectError;
use object::elf::{EM_BPF, ET_REL, SHF_EXECINSTR, STT_FUNC};
use object::read::elf::{ElfFile64, FileHeader};
use object::{LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _};
use object::{RelocationFlags, RelocationTarget, SectionFlags, SymbolFlags};
use std::collections::BTreeMap;

/// Most relocations of an object: in hostile files many sections share one table.
const MAX_REFERENCES: usize = 1 << 20;

/// A section.
#[derive(Debug)]
pub(super) struct Section<'d> {
    pub name: &'d str,
    pub data: &'d [u8],
    /// Its length; `.bss` has no data.
    pub size: u64,
    pub executable: bool,
    /// Relocations by offset.
    pub references: BTreeMap<u64, Reference>,
}

/// A relocation: a reference to a symbol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    pub symbol: usize,
    /// R_BPF_64_64 for an address in a 64-bit load, R_BPF_64_32 for the target of a call, or another one.
    pub kind: u32,
}

/// A symbol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol<'d> {
    pub name: &'d str,
    /// Its section; none if undefined.
    pub section: Option<usize>,
    pub value: u64,
    pub size: u64,
    pub is_function: bool,
    pub global: bool,
}

/// An object file's contents.
#[derive(Debug)]
pub(super) struct File<'d> {
    /// By index from 0.
    pub sections: Vec<Section<'d>>,
    /// By index from 0.
    pub symbols: Vec<Symbol<'d>>,
}

impl<'d> File<'d> {
    pub(super) fn parse(bytes: &'d [u8]) -> Result<Self, ObjectError> {
        let malformed = |error: object::Error| ObjectError::File(error.to_string());
        let elf = ElfFile64::<LittleEndian>::parse(bytes).map_err(malformed)?;
        let header = elf.elf_header();
        let (machine, kind) = (header.e_machine(LittleEndian), header.e_type(LittleEndian));
        if machine != EM_BPF || kind != ET_REL {
            return Err(ObjectError::Machine { machine, kind });
        }
        let empty =
            || Section { name: "", data: &[], size: 0, executable: false, references: BTreeMap::new() };
        let (mut sections, mut room) = (Vec::new(), MAX_REFERENCES);
        for section in elf.sections() {
            let index = section.index().0;
            sections.resize_with(sections.len().max(index), empty);
            let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
            sections.push(Section {
                name: section.name().map_err(malformed)?,
                data: section.data().map_err(malformed)?,
                size: section.size(),
                executable: sh_flags & u64::from(SHF_EXECINSTR) != 0,
                references: references(section.relocations(), &mut room)?,
            });
        }
        let mut symbols = Vec::new();
        let undefined =
            Symbol { name: "", section: None, value: 0, size: 0, is_function: false, global: false };
        for symbol in elf.symbols() {
            let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
            symbols.resize(symbols.len().max(symbol.index().0), undefined);
            symbols.push(Symbol {
                name: symbol.name().map_err(malformed)?,
                section: symbol.section_index().map(|index| index.0).filter(|&index| index < sections.len()),
                value: symbol.address(),
                size: symbol.size(),
                is_function: st_info & 0xf == STT_FUNC,
                global: symbol.is_global(),
            });
        }
        Ok(Self { sections, symbols })
    }

    /// The section of this name.
    pub(super) fn section(&self, name: &str) -> Option<(usize, &Section<'d>)> {
        self.sections.iter().enumerate().find(|(_, section)| section.name == name)
    }

    /// Offsets of a section's symbols, by name.
    pub(super) fn offsets(&self, section: usize) -> BTreeMap<&'d str, u64> {
        let here = self.symbols.iter().filter(|symbol| symbol.section == Some(section));
        here.map(|symbol| (symbol.name, symbol.value)).collect()
    }

    /// Name of a symbol in messages: section symbols have none of their own.
    pub(super) fn symbol_name(&self, symbol: &Symbol<'d>) -> &'d str {
        match (symbol.name, symbol.section) {
            ("", Some(section)) => self.sections[section].name,
            (name, _) => name,
        }
    }
}

/// Parses a section's relocations; subtracts their number from `room`.
fn references(
    relocations: impl Iterator<Item = (u64, object::Relocation)>,
    room: &mut usize,
) -> Result<BTreeMap<u64, Reference>, ObjectError> {
    let mut references = BTreeMap::new();
    for (offset, relocation) in relocations {
        *room = room.checked_sub(1).ok_or(ObjectError::TooManyRelocations(MAX_REFERENCES))?;
        let (RelocationTarget::Symbol(symbol), RelocationFlags::Elf { r_type }) =
            (relocation.target(), relocation.flags())
        else {
            continue;
        };
        references.insert(offset, Reference { symbol: symbol.0, kind: r_type });
    }
    Ok(references)
}
