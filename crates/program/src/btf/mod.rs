//! BPF Type Format: the types in an object, from which map declarations are read (the kernel's
//! Documentation/bpf/btf.rst).
//!
//! The input is untrusted: every offset and number is checked, and chains of types are followed to a limited
//! depth.

mod ext;
mod shape;

pub(crate) use ext::Ext;
pub use shape::{Field, Shape, ShapeError, Types};
pub(crate) use shape::{MapTypes, ValueType};

use std::collections::BTreeMap;
use thiserror::Error;

/// Maximum length of chains of typedefs and qualifiers.
const DEPTH: usize = 32;
/// Maximum bytes of a name, and maximum members inspected, because of hostile files.
const NAME: usize = 256;
const MEMBERS: usize = 64;
/// BTF_KIND_VOLATILE.
const VOLATILE: u32 = 9;
const MAGIC: u16 = 0xeb9f;
/// Bytes of the header, of a type, and of a member or a variable.
const HEADER: usize = 24;
const TYPE: usize = 12;
const MEMBER: usize = 12;

/// An error in type information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("byte {offset}: {what}")]
pub struct BtfError {
    /// Offset in its section.
    pub offset: usize,
    /// The error.
    pub what: &'static str,
}

/// The types of an object.
#[derive(Debug)]
pub(crate) struct Btf<'d> {
    data: &'d [u8],
    strings: &'d [u8],
    /// Offsets of the types in `data`; the first is type 1.
    types: Vec<usize>,
}

/// Kinds of types used in map declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    Pointer,
    Array,
    Struct,
    Enum,
    Alias,
    Var,
    DataSection,
    Other,
}

/// A member of a structure, or a variable of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member<'d> {
    pub name: &'d str,
    pub type_id: u32,
    /// Bit offset of a structure's member; in structures with bit fields the upper 8 bits have the width.
    pub offset: u32,
}

/// Kind of a kernel symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum External {
    Function,
    Variable,
    Configuration,
}

/// Consecutive whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Bytes of each.
    pub size: u32,
    /// How many.
    pub count: u32,
    /// Whether they are signed.
    pub signed: bool,
}

impl<'d> Btf<'d> {
    /// Parses the section `.BTF`.
    pub(crate) fn parse(section: &'d [u8]) -> Result<Self, BtfError> {
        let (length, parts) = header(section, HEADER)?;
        let types = part(section, length, parts[0], parts[1])?;
        let strings = part(section, length, parts[2], parts[3])?;
        let mut btf = Self { data: types, strings, types: Vec::new() };
        let mut at = 0;
        while at < types.len() {
            let (kind, members) =
                btf.kind_at(at).ok_or(BtfError { offset: at, what: "a type is cut off" })?;
            btf.types.push(at);
            at +=
                TYPE + extra(kind, members).ok_or(BtfError { offset: at, what: "a type of unknown kind" })?;
        }
        if at > types.len() {
            return Err(BtfError { offset: types.len(), what: "a type is cut off" });
        }
        Ok(btf)
    }

    /// The string at this offset.
    pub(crate) fn text(&self, offset: u32) -> &'d str {
        let bytes = self.strings.get(offset as usize..).unwrap_or(&[]);
        let bytes = &bytes[..bytes.len().min(NAME)];
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).unwrap_or("")
    }

    /// The variables of the section with this name, with the types of their values.
    pub(crate) fn variables(&self, section: &str) -> Vec<Member<'d>> {
        let is_section = |&id: &u32| self.kind(id) == Some(Kind::DataSection) && self.name(id) == section;
        let Some(id) = (1..=self.types.len() as u32).find(is_section) else { return Vec::new() };
        let variables = self.contents(id).filter(|&variable| self.kind(variable) == Some(Kind::Var));
        variables
            .map(|v| Member { name: self.name(v), type_id: self.word(v, 8).unwrap_or(0), offset: 0 })
            .collect()
    }

    /// The variables and functions of a section.
    fn contents(&self, section: u32) -> impl Iterator<Item = u32> {
        (0..self.count(section)).filter_map(move |index| self.word(section, TYPE + index * MEMBER))
    }

    /// External symbols, by name: the variables and functions of the sections `.ksyms` and `.kconfig`.
    pub(crate) fn externals(&self) -> BTreeMap<Box<str>, External> {
        let mut externals = BTreeMap::new();
        for section in (1..=self.types.len() as u32).filter(|&id| self.kind(id) == Some(Kind::DataSection)) {
            let configuration = match self.name(section) {
                ".ksyms" => false,
                ".kconfig" => true,
                _ => continue,
            };
            for id in self.contents(section) {
                let kind = match self.kind(id) {
                    _ if configuration => External::Configuration,
                    Some(Kind::Var) => External::Variable,
                    _ => External::Function,
                };
                externals.insert(self.name(id).into(), kind);
            }
        }
        externals
    }

    /// The first members of a structure; empty for other types.
    pub(crate) fn members(&self, id: u32) -> Vec<Member<'d>> {
        let id = self.resolved(id);
        if self.kind(id) != Some(Kind::Struct) {
            return Vec::new();
        }
        let member = |index| {
            let at = TYPE + index * MEMBER;
            let (type_id, offset) = (self.word(id, at + 4)?, self.word(id, at + 8)?);
            Some(Member { name: self.text(self.word(id, at)?), type_id, offset })
        };
        (0..self.count(id).min(MEMBERS)).filter_map(member).collect()
    }

    /// The target type of a pointer.
    pub(crate) fn pointee(&self, id: u32) -> Option<u32> {
        let id = self.resolved(id);
        (self.kind(id)? == Kind::Pointer).then(|| self.word(id, 8)).flatten()
    }

    /// The element type of an array.
    pub(crate) fn element(&self, id: u32) -> Option<u32> {
        let id = self.resolved(id);
        (self.kind(id)? == Kind::Array).then(|| self.word(id, TYPE)).flatten()
    }

    /// Byte offset of a structure's lock.
    pub(crate) fn lock(&self, id: u32) -> Option<u32> {
        let is_lock = |member: &Member<'_>| {
            self.type_name(member.type_id) == "bpf_spin_lock" && self.size(member.type_id) == Some(4)
        };
        self.members(id).into_iter().find(is_lock).map(|member| (member.offset & 0xff_ffff) / 8)
    }

    /// Number of elements of an array.
    pub(crate) fn elements(&self, id: u32) -> Option<u32> {
        let id = self.resolved(id);
        (self.kind(id)? == Kind::Array).then(|| self.word(id, TYPE + 8)).flatten()
    }

    /// Size of a value of this type in bytes.
    pub(crate) fn size(&self, id: u32) -> Option<u32> {
        let (mut id, mut factor) = (self.resolved(id), 1u32);
        for _ in 0..DEPTH {
            let size = match self.kind(id)? {
                Kind::Int | Kind::Struct | Kind::Enum => self.word(id, 8)?,
                Kind::Pointer => 8,
                Kind::Array => {
                    factor = factor.checked_mul(self.word(id, TYPE + 8)?)?;
                    id = self.resolved(self.word(id, TYPE)?);
                    continue;
                }
                _ => return None,
            };
            return factor.checked_mul(size);
        }
        None
    }

    /// The volatile whole numbers, one or an array, of a variable of this type.
    pub(crate) fn volatile_numbers(&self, mut id: u32) -> Option<Numbers> {
        const INT: u32 = 1;
        const SIGNED: u32 = 1 << 24;
        let (mut volatile, mut count) = (false, 1u32);
        for _ in 0..DEPTH {
            match self.kind(id)? {
                Kind::Alias => {
                    volatile |= self.start(id).and_then(|at| self.kind_at(at))?.0 == VOLATILE;
                    id = self.word(id, 8)?;
                }
                Kind::Array => {
                    count = count.checked_mul(self.word(id, TYPE + 8)?)?;
                    id = self.word(id, TYPE)?;
                }
                Kind::Int if volatile && self.start(id).and_then(|at| self.kind_at(at))?.0 == INT => {
                    let (size, encoding) = (self.word(id, 8)?, self.word(id, TYPE)?);
                    return Some(Numbers { size, count, signed: encoding & SIGNED != 0 });
                }
                _ => return None,
            }
        }
        None
    }

    /// The name of a type, or of the resolved type.
    pub(crate) fn type_name(&self, id: u32) -> &'d str {
        match self.name(id) {
            "" => self.name(self.resolved(id)),
            name => name,
        }
    }

    fn name(&self, id: u32) -> &'d str {
        self.word(id, 0).map_or("", |offset| self.text(offset))
    }

    fn kind(&self, id: u32) -> Option<Kind> {
        Some(match self.kind_at(self.start(id)?)?.0 {
            1 | 16 => Kind::Int,
            2 => Kind::Pointer,
            3 => Kind::Array,
            4 | 5 => Kind::Struct,
            6 | 19 => Kind::Enum,
            8..=11 | 18 => Kind::Alias,
            14 => Kind::Var,
            15 => Kind::DataSection,
            _ => Kind::Other,
        })
    }

    /// The type behind typedefs and qualifiers.
    fn resolved(&self, mut id: u32) -> u32 {
        for _ in 0..DEPTH {
            match (self.kind(id), self.word(id, 8)) {
                (Some(Kind::Alias), Some(next)) => id = next,
                _ => return id,
            }
        }
        0
    }

    fn start(&self, id: u32) -> Option<usize> {
        self.types.get(id.checked_sub(1)? as usize).copied()
    }

    fn count(&self, id: u32) -> usize {
        self.start(id).and_then(|at| self.kind_at(at)).map_or(0, |(_, count)| count)
    }

    fn kind_at(&self, at: usize) -> Option<(u32, usize)> {
        let info = word(self.data, at + 4).filter(|_| self.data.len() - at >= TYPE)?;
        Some((info >> 24 & 0x1f, info as usize & 0xffff))
    }

    /// The word at this offset of a type.
    fn word(&self, id: u32, offset: usize) -> Option<u32> {
        word(self.data, self.start(id)? + offset)
    }
}

/// Bytes after a type of this kind with this many members.
fn extra(kind: u32, members: usize) -> Option<usize> {
    match kind {
        2 | 7..=12 | 16 | 18 => Some(0),
        1 | 14 | 17 => Some(4),
        3 => Some(12),
        6 | 13 => Some(members * 8),
        4 | 5 | 15 | 19 => Some(members * MEMBER),
        _ => None,
    }
}

/// The length of a header, and the numbers after it: offsets and lengths of parts.
fn header(section: &[u8], least: usize) -> Result<(usize, [u32; 6]), BtfError> {
    let fault = |offset, what| Err(BtfError { offset, what });
    let length = word(section, 4).map_or(0, |length| length as usize);
    if section.len() < least || length < least || length > section.len() {
        return fault(4, "the header is cut off");
    }
    if section[..2] != MAGIC.to_le_bytes() {
        return fault(0, "it is no little-endian BTF");
    }
    if section[2] != 1 {
        return fault(2, "its version is not 1");
    }
    let parts = std::array::from_fn(|i| word(&section[..length], 8 + i * 4).unwrap_or(0));
    Ok((length, parts))
}

/// A part of a section at this offset from the header's end.
fn part(section: &[u8], header: usize, offset: u32, length: u32) -> Result<&[u8], BtfError> {
    let start = header.checked_add(offset as usize);
    let end = start.and_then(|start| start.checked_add(length as usize));
    let range = start.zip(end).and_then(|(start, end)| section.get(start..end));
    range.ok_or(BtfError { offset: offset as usize, what: "a part lies beyond the end" })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section with these type words and strings.
    fn section(types: &[u32], strings: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let length = types.len() as u32 * 4;
        for value in [24, 0, length, length, strings.len() as u32].iter().chain(types) {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    const INT: u32 = 1 << 24;
    const POINTER: u32 = 2 << 24;
    const ARRAY: u32 = 3 << 24;
    const TYPEDEF: u32 = 8 << 24;

    #[test]
    fn sizes_follow_typedefs_and_arrays() {
        let types = [
            &[1, INT, 4, 32][..],         // 1: int
            &[0, ARRAY, 0, 3, 1, 6],      // 2: type3[6]
            &[0, ARRAY, 0, 4, 1, 7],      // 3: type4[7]
            &[5, TYPEDEF, 1],             // 4: typedef int word
            &[0, POINTER, 2],             // 5: type2 *
            &[0, TYPEDEF, 7],             // 6: typedef type7
            &[0, TYPEDEF, 6],             // 7: typedef type6
            &[0, ARRAY, 0, 8, 1, 0xffff], // 8: type8[65535]
        ];
        let bytes = section(&types.concat(), b"\0int\0word\0");
        let btf = Btf::parse(&bytes).unwrap();
        let sizes: Vec<_> = (0..9).map(|id| btf.size(id)).collect();
        let none = None;
        assert_eq!(sizes, [none, Some(4), Some(168), Some(28), Some(4), Some(8), none, none, none]);
        assert_eq!((btf.type_name(4), btf.pointee(5), btf.elements(2)), ("word", Some(2), Some(6)));
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let bytes = section(&[1, INT, 4, 32], b"\0int\0");
        assert!(Btf::parse(&bytes).is_ok());
        for end in 0..bytes.len() {
            assert!(Btf::parse(&bytes[..end]).is_err(), "{end}");
        }
        assert_eq!(Btf::parse(&section(&[1, INT, 4], b"\0")).unwrap_err().what, "a type is cut off");
        assert_eq!(
            Btf::parse(&section(&[1, 31 << 24, 4], b"\0")).unwrap_err().what,
            "a type of unknown kind"
        );
    }
}
