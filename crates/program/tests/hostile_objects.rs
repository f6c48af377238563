//! Objects that no compiler makes: with parts that contain themselves, lie beyond their section, or have the
//! name of another.

use longwire_program::{Object, Shape, ShapeError};

const INT: u32 = 1 << 24;
const POINTER: u32 = 2 << 24;
const ARRAY: u32 = 3 << 24;
const STRUCT: u32 = 4 << 24;
const VARIABLE: u32 = 14 << 24;
const SECTION: u32 = 15 << 24;
/// All names of types.
const NAMES: &str = "\0.maps\0outer\0type\0max_entries\0key_size\0values\0.data\0int\0x\0";

const ARRAY_OF_MAPS: u32 = 12;
const PROGRAMS: u32 = 3;

/// `r1 = 0 ll`, to be relocated.
const LOAD: [u8; 16] = [0x18, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// `r0 = 2`, `exit`.
const PASS: [u8; 16] = [0xb7, 0, 0, 0, 2, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];

/// A section of an object file.
struct Section {
    name: &'static str,
    /// SHT_PROGBITS (1), SHT_SYMTAB (2), SHT_STRTAB (3) or SHT_REL (9).
    kind: u32,
    /// SHF_EXECINSTR (4).
    flags: u64,
    /// Of relocations: the section that they are in.
    info: u32,
    bytes: Vec<u8>,
}

/// A global symbol.
struct Symbol {
    name: &'static str,
    /// STT_OBJECT (1) or STT_FUNC (2).
    kind: u8,
    section: u16,
    size: u64,
}

fn numbers(numbers: &[u64]) -> impl Iterator<Item = u8> + '_ {
    numbers.iter().flat_map(|number| number.to_le_bytes())
}

fn words(words: &[u32]) -> impl Iterator<Item = u8> + '_ {
    words.iter().flat_map(|word| word.to_le_bytes())
}

/// An object file for BPF (ELF-64) with these sections and symbols, both numbered from 1.
fn object(mut sections: Vec<Section>, symbols: &[Symbol]) -> Vec<u8> {
    let (table, strings) = (sections.len() as u32 + 1, sections.len() as u32 + 2);
    let mut names = vec![0];
    let mut named = |name: &str| {
        let at = names.len() as u32;
        names.extend(name.bytes().chain([0]));
        at
    };
    let mut rows = vec![0; 24];
    for symbol in symbols {
        rows.extend(words(&[named(symbol.name)]));
        rows.extend([1 << 4 | symbol.kind, 0]);
        rows.extend(symbol.section.to_le_bytes());
        rows.extend(numbers(&[0, symbol.size]));
    }
    sections.push(Section { name: ".symtab", kind: 2, flags: 0, info: 1, bytes: rows });
    sections.push(Section { name: ".strtab", kind: 3, flags: 0, info: 0, bytes: Vec::new() });
    let places: Vec<u32> = sections.iter().map(|section| named(section.name)).collect();
    sections[strings as usize - 1].bytes = names;
    let (mut file, mut headers) = (vec![0; 64], vec![0; 64]);
    for (section, name) in sections.iter().zip(places) {
        let (link, row) = match section.kind {
            2 => (strings, 24),
            9 => (table, 16),
            _ => (0, 0),
        };
        headers.extend(words(&[name, section.kind]));
        headers.extend(numbers(&[section.flags, 0, file.len() as u64, section.bytes.len() as u64]));
        headers.extend(words(&[link, section.info]));
        headers.extend(numbers(&[8, row]));
        file.extend(&section.bytes);
        file.resize(file.len().next_multiple_of(8), 0);
    }
    // Little-endian, relocatable, for machine 247, version 1.
    file[..21].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\xf7\0\x01");
    let start = file.len() as u64;
    file[40..48].copy_from_slice(&start.to_le_bytes());
    let count = sections.len() as u16 + 1;
    file[52..64].copy_from_slice(&[64, 0, 0, 64, count, count - 1].map(u16::to_le_bytes).concat());
    file.extend(headers);
    file
}

fn data(name: &'static str, bytes: Vec<u8>) -> Section {
    Section { name, kind: 1, flags: 0, info: 0, bytes }
}

fn code(parts: &[[u8; 16]]) -> Section {
    Section { flags: 4, ..data("xdp", parts.concat()) }
}

/// An address of this symbol at this place of a section.
fn relocation(section: u32, place: u64, symbol: u64) -> Section {
    let bytes = numbers(&[place, symbol << 32 | 1]).collect();
    Section { name: ".rel", kind: 9, flags: 0, info: section, bytes }
}

fn name(text: &str) -> u32 {
    NAMES.find(&format!("\0{text}\0")).unwrap() as u32 + 1
}

fn types(types: &[&[u32]]) -> Section {
    let all = types.concat();
    let length = all.len() as u32 * 4;
    let mut bytes = vec![0x9f, 0xeb, 1, 0];
    bytes.extend(words(&[24, 0, length, length, NAMES.len() as u32]).chain(words(&all)));
    bytes.extend(NAMES.bytes());
    data(".BTF", bytes)
}

/// The types of a map `outer` of this kind, whose values are declared to be like itself.
fn outer(kind: u32) -> Section {
    let members = [("type", 2, 0), ("max_entries", 4, 64), ("key_size", 6, 128), ("values", 9, 192)];
    let members = members.iter().flat_map(|&(text, id, place)| [name(text), id, place]);
    let structure: Vec<u32> = [0, STRUCT | 4, 24].into_iter().chain(members).collect();
    types(&[
        &[0, ARRAY, 0, 1, 1, kind],
        &[0, POINTER, 1],
        &[0, ARRAY, 0, 1, 1, 1 << 20],
        &[0, POINTER, 3],
        &[0, ARRAY, 0, 1, 1, 4],
        &[0, POINTER, 5],
        &structure,
        &[0, POINTER, 7],
        &[0, ARRAY, 0, 8, 1, 0],
        &[name("outer"), VARIABLE, 7, 1],
        &[name(".maps"), SECTION | 1, 24, 10, 0, 24],
    ])
}

/// A program `f` that loads the map `outer` of this kind, which has room for one value. If `value` is given,
/// there is a reference to the program at this place of `.maps`.
fn with_outer(kind: u32, value: Option<u64>) -> Vec<u8> {
    let mut sections =
        vec![data(".maps", vec![0; 32]), code(&[LOAD, PASS]), relocation(2, 0, 1), outer(kind)];
    sections.extend(value.map(|place| relocation(1, place, 2)));
    let map = Symbol { name: "outer", kind: 1, section: 1, size: 32 };
    object(sections, &[map, Symbol { name: "f", kind: 2, section: 2, size: 32 }])
}

fn error(bytes: &[u8]) -> String {
    Object::parse(bytes).unwrap().program("f").unwrap_err().to_string()
}

#[test]
fn maps_of_maps_of_their_own_type_are_refused() {
    let message = error(&with_outer(ARRAY_OF_MAPS, None));
    assert!(message.contains("map outer: the maps in it can't be of this type"), "{message}");
}

#[test]
fn maps_are_named_by_numbers_that_there_are() {
    let mut load = LOAD;
    (load[1], load[4]) = (0x51, 9);
    let program = Symbol { name: "f", kind: 2, section: 1, size: 32 };
    let message = error(&object(vec![code(&[load, PASS])], &[program]));
    assert!(message.contains("it names map 9 by number, and the object has no such map"), "{message}");
}

#[test]
fn values_lie_within_their_section() {
    let object = with_outer(PROGRAMS, Some(24));
    assert_eq!(*Object::parse(&object).unwrap().program("f").unwrap().maps[0].initial, [1, 0, 0, 0]);
    for beyond in [32, 24 + (8 << 10)] {
        let message = error(&with_outer(PROGRAMS, Some(beyond)));
        assert!(message.contains("is beyond the bytes of section .maps"), "{message}");
    }
}

#[test]
fn sections_with_the_name_of_another_have_no_types() {
    let section = || data(".data", vec![1; 8]);
    let types = types(&[
        &[name("int"), INT, 8, 64],
        &[name("x"), VARIABLE, 1, 1],
        &[name(".data"), SECTION | 1, 8, 2, 0, 8],
    ]);
    let variable = |section| Symbol { name: "x", kind: 1, section, size: 8 };
    let symbols = [variable(1), variable(2), Symbol { name: "f", kind: 2, section: 3, size: 16 }];
    let bytes = object(vec![section(), section(), code(&[PASS]), types], &symbols);
    let program = Object::parse(&bytes).unwrap().program("f").unwrap();
    let shape = |place: usize| program.types.value(place, &program.maps[place]);
    assert!(matches!(shape(0), Ok(Shape::Struct { size: 8, fields }) if fields.len() == 1));
    assert_eq!(shape(1), Err(ShapeError::None));
}
