//! Layout of values by their types, for displaying and writing them by fields.
//!
//! Types are untrusted: the cost of displaying a value is limited when its shape is built.

use super::{Btf, Kind, MEMBER, TYPE};
use crate::map::MapSpec;
use std::sync::Arc;
use thiserror::Error;

/// Maximum number of types of a shape, nested ones included.
const MOST_TYPES: usize = 4096;
/// Maximum number of numbers, texts and structures of a value.
const MOST_PARTS: u64 = 65_536;
/// Maximum nesting of types.
const DEPTH: usize = 16;

/// The layout of a value: little-endian, unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A whole number.
    Number {
        /// Bytes: 1, 2, 4 or 8.
        size: u32,
        /// Whether it is signed.
        signed: bool,
        /// Whether it is in network byte order (`__be16` and `__be64`).
        network: bool,
    },
    /// A boolean of this many bytes.
    Truth(u32),
    /// A character.
    Character,
    /// An IPv4 address in network byte order (`__be32`, `struct in_addr`).
    AddressV4,
    /// An IPv6 address (`struct in6_addr`, `__be32[4]`).
    AddressV6,
    /// An enumeration.
    Enum {
        /// Bytes: 1, 2, 4 or 8.
        size: u32,
        /// Whether it is signed.
        signed: bool,
        /// The names and their numbers.
        names: Box<[(Box<str>, i64)]>,
    },
    /// An array.
    Array {
        /// Its element.
        element: Box<Shape>,
        /// How many there are.
        count: u32,
    },
    /// A structure or a union; all members of a union begin at 0.
    Struct {
        /// Bytes.
        size: u32,
        /// Its members, in order.
        fields: Box<[Field]>,
    },
    /// A bit field of a structure.
    Bits {
        /// Its width, 1 to 64.
        width: u32,
        /// Whether it is signed.
        signed: bool,
    },
    /// Opaque bytes: pointers, and numbers of 16 bytes.
    Bytes(u32),
}

/// A member of a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: Box<str>,
    /// Its offset in bits; whole bytes except for [`Shape::Bits`].
    pub bit: u32,
    /// Its layout.
    pub shape: Shape,
}

/// Reason why values can't be displayed by fields.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// The object has no such type information.
    #[error("the object has no type for it")]
    None,
    /// No type has this name.
    #[error("the object has no type \"{0}\"")]
    NoSuchType(String),
    /// A type without values.
    #[error("its type is none that a value can have")]
    Kind,
    /// Unbounded nesting, or too many types.
    #[error("its type has too many parts to be shown one by one")]
    TooLarge,
    /// A member outside its structure.
    #[error("its type has a member beyond its end")]
    Beyond,
    /// A size different from the map's.
    #[error("its type has {type_size} bytes, and not {size}")]
    Size {
        /// The type's size.
        type_size: u64,
        /// The map's.
        size: u32,
    },
}

impl Shape {
    /// Size of a value in bytes; 0 for bit fields.
    pub fn size(&self) -> u64 {
        match self {
            Self::Number { size, .. } | Self::Truth(size) | Self::Enum { size, .. } | Self::Bytes(size) => {
                u64::from(*size)
            }
            Self::Struct { size, .. } => u64::from(*size),
            Self::Character => 1,
            Self::AddressV4 => 4,
            Self::AddressV6 => 16,
            Self::Bits { .. } => 0,
            Self::Array { element, count } => element.size().saturating_mul(u64::from(*count)),
        }
    }

    /// Whether it is a byte, of which arrays are displayed as one.
    pub fn is_byte(&self) -> bool {
        matches!(self, Self::Character | Self::Number { size: 1, .. })
    }

    /// Number of parts of a displayed value.
    fn parts(&self) -> u64 {
        match self {
            Self::Array { element, count } if element.is_byte() => 1 + u64::from(*count) / 64,
            Self::Array { element, count } => {
                element.parts().saturating_mul(u64::from(*count)).saturating_add(1)
            }
            Self::Struct { fields, .. } => {
                fields.iter().fold(1, |sum: u64, field| sum.saturating_add(field.shape.parts()))
            }
            _ => 1,
        }
    }
}

/// The types of an object, for displaying its maps. Empty for programs without an object.
#[derive(Debug, Clone, Default)]
pub struct Types {
    section: Arc<[u8]>,
    maps: Arc<[MapTypes]>,
}

/// Types of a map's keys and values.
#[derive(Debug, Clone, Default)]
pub(crate) struct MapTypes {
    pub key: u32,
    pub value: ValueType,
}

/// Type of a map's values.
#[derive(Debug, Clone)]
pub(crate) enum ValueType {
    /// The type with this number; 0 for none.
    One(u32),
    /// The variables of a section: name, type and offset.
    Variables(Vec<(Box<str>, u32, u32)>),
}

impl Default for ValueType {
    fn default() -> Self {
        Self::One(0)
    }
}

impl Types {
    /// From a section `.BTF`, and the maps in order.
    pub(crate) fn new(section: &[u8], maps: Vec<MapTypes>) -> Self {
        Self { section: section.into(), maps: maps.into() }
    }

    /// Layout of the keys of the map with this index.
    ///
    /// # Errors
    /// If the object does not say, or the types can't be displayed.
    pub fn key(&self, place: usize, map: &MapSpec) -> Result<Shape, ShapeError> {
        let types = self.maps.get(place).ok_or(ShapeError::None)?;
        let shape = Maker::new(&self.btf()?).whole(types.key)?;
        fitting(shape, map.key_size)
    }

    /// Layout of the values of the map with this index.
    ///
    /// # Errors
    /// As [`Types::key`].
    pub fn value(&self, place: usize, map: &MapSpec) -> Result<Shape, ShapeError> {
        let btf = self.btf()?;
        let mut maker = Maker::new(&btf);
        let shape = match &self.maps.get(place).ok_or(ShapeError::None)?.value {
            ValueType::One(id) => maker.whole(*id)?,
            // A section of texts has no variables, and would be displayed as a structure without members.
            ValueType::Variables(variables) if variables.is_empty() => return Err(ShapeError::None),
            ValueType::Variables(variables) => maker.section(variables, map.value_size)?,
        };
        fitting(shape, map.value_size)
    }

    /// Layout of the type with this name: a structure, union, enum, or typedef.
    ///
    /// # Errors
    /// If there is none, or it can't be displayed.
    pub fn named(&self, name: &str) -> Result<Shape, ShapeError> {
        let btf = self.btf()?;
        let kinds = [Kind::Struct, Kind::Alias, Kind::Enum, Kind::Int];
        let is_it =
            |&id: &u32| btf.name(id) == name && btf.kind(id).is_some_and(|kind| kinds.contains(&kind));
        let found = (1..=btf.types.len() as u32).find(is_it);
        let id = found.filter(|_| !name.is_empty()).ok_or_else(|| ShapeError::NoSuchType(name.into()))?;
        Maker::new(&btf).whole(id)
    }

    fn btf(&self) -> Result<Btf<'_>, ShapeError> {
        // The object was parsed with these types: they are valid.
        Btf::parse(&self.section).map_err(|_| ShapeError::None)
    }
}

fn fitting(shape: Shape, size: u32) -> Result<Shape, ShapeError> {
    let type_size = shape.size();
    if type_size == u64::from(size) { Ok(shape) } else { Err(ShapeError::Size { type_size, size }) }
}

/// Builds a shape from types.
struct Maker<'b, 'd> {
    btf: &'b Btf<'d>,
    left: usize,
}

const INT: u32 = 1;
const UNION: u32 = 5;
const FLOAT: u32 = 16;
const ENUM64: u32 = 19;
const SIGNED: u32 = 1 << 24;
const CHARACTER: u32 = 2 << 24;
const TRUTH: u32 = 4 << 24;
/// Flag in a type's second word: bit fields have their width in the upper byte of the offset; an enum is
/// signed.
const FLAG: u32 = 1 << 31;

impl<'b, 'd> Maker<'b, 'd> {
    fn new(btf: &'b Btf<'d>) -> Self {
        Self { btf, left: MOST_TYPES }
    }

    /// A complete shape.
    fn whole(&mut self, id: u32) -> Result<Shape, ShapeError> {
        let shape = self.shape(id, 0)?;
        if shape.parts() > MOST_PARTS { Err(ShapeError::TooLarge) } else { Ok(shape) }
    }

    /// The variables of a section as a structure.
    fn section(&mut self, variables: &[(Box<str>, u32, u32)], size: u32) -> Result<Shape, ShapeError> {
        let mut fields = Vec::new();
        for (name, id, offset) in variables {
            let shape = self.shape(*id, 0)?;
            let bit = within(*offset, &shape, size)?;
            fields.push(Field { name: name.clone(), bit, shape });
        }
        fields.sort_by_key(|field| field.bit);
        let shape = Shape::Struct { size, fields: fields.into() };
        if shape.parts() > MOST_PARTS { Err(ShapeError::TooLarge) } else { Ok(shape) }
    }

    fn shape(&mut self, mut id: u32, depth: usize) -> Result<Shape, ShapeError> {
        self.left = self.left.checked_sub(1).filter(|_| depth < DEPTH).ok_or(ShapeError::TooLarge)?;
        let btf = self.btf;
        for _ in 0..super::DEPTH {
            let name = btf.name(id);
            let next = |offset| btf.word(id, offset).ok_or(ShapeError::Kind);
            let kind = btf.start(id).and_then(|at| btf.kind_at(at)).map(|(kind, _)| kind);
            match btf.kind(id).ok_or(ShapeError::None)? {
                Kind::Alias => match (name, btf.size(id)) {
                    ("__be16", Some(size @ 2)) | ("__be64", Some(size @ 8)) => {
                        return Ok(Shape::Number { size, signed: false, network: true });
                    }
                    ("__be32", Some(4)) => return Ok(Shape::AddressV4),
                    _ => id = next(8)?,
                },
                Kind::Int if kind == Some(INT) => return integer(name, next(8)?, next(TYPE)?),
                Kind::Int if kind == Some(FLOAT) => return Ok(Shape::Bytes(next(8)?)),
                Kind::Pointer => return Ok(Shape::Bytes(8)),
                Kind::Enum => return self.names(id, kind == Some(ENUM64)),
                Kind::Array => {
                    let (element, count) = (next(TYPE)?, next(TYPE + 8)?);
                    let element = self.shape(element, depth + 1)?;
                    // The kernel's headers represent an IPv6 address by four of these.
                    if element == Shape::AddressV4 && count == 4 {
                        return Ok(Shape::AddressV6);
                    }
                    return Ok(Shape::Array { element: Box::new(element), count });
                }
                Kind::Struct => return self.structure(id, depth, kind == Some(UNION)),
                _ => return Err(ShapeError::Kind),
            }
        }
        Err(ShapeError::TooLarge)
    }

    fn names(&mut self, id: u32, wide: bool) -> Result<Shape, ShapeError> {
        let btf = self.btf;
        let size = btf.word(id, 8).filter(|size| matches!(size, 1 | 2 | 4 | 8)).ok_or(ShapeError::Kind)?;
        let (signed, count) = (self.flag(id), btf.count(id));
        self.left = self.left.checked_sub(count).ok_or(ShapeError::TooLarge)?;
        let step = if wide { MEMBER } else { 8 };
        let one = |index| {
            let at = TYPE + index * step;
            let low = btf.word(id, at + 4)?;
            let number = match wide {
                true => (u64::from(low) | u64::from(btf.word(id, at + 8)?) << 32) as i64,
                // Without the flag, numbers of the upper half are unsigned.
                false if signed => i64::from(low as i32),
                false => i64::from(low),
            };
            Some((btf.text(btf.word(id, at)?).into(), number))
        };
        Ok(Shape::Enum { size, signed, names: (0..count).filter_map(one).collect() })
    }

    fn structure(&mut self, id: u32, depth: usize, is_union: bool) -> Result<Shape, ShapeError> {
        let btf = self.btf;
        let size = btf.word(id, 8).ok_or(ShapeError::Kind)?;
        match (btf.name(id), size, is_union) {
            ("in_addr", 4, false) => return Ok(Shape::AddressV4),
            ("in6_addr", 16, false) => return Ok(Shape::AddressV6),
            _ => {}
        }
        let (has_widths, mut fields) = (self.flag(id), Vec::new());
        for index in 0..btf.count(id) {
            let at = TYPE + index * MEMBER;
            let word = |offset| btf.word(id, at + offset).ok_or(ShapeError::Kind);
            let (name, member, place) = (btf.text(word(0)?), word(4)?, word(8)?);
            let (bit, width) = if has_widths { (place & 0xff_ffff, place >> 24) } else { (place, 0) };
            let shape = self.shape(member, depth + 1)?;
            if width > 0 {
                let signed =
                    matches!(shape, Shape::Number { signed: true, .. } | Shape::Enum { signed: true, .. });
                let fits = width <= 64 && u64::from(bit) + u64::from(width) <= u64::from(size) * 8;
                let field = Field { name: name.into(), bit, shape: Shape::Bits { width, signed } };
                fields.push(fits.then_some(field).ok_or(ShapeError::Beyond)?);
                continue;
            }
            if bit % 8 != 0 {
                return Err(ShapeError::Kind);
            }
            let bit = within(bit / 8, &shape, size)?;
            match shape {
                // Members of an anonymous member are treated as members of this type.
                Shape::Struct { fields: inner, .. } if name.is_empty() => {
                    for field in inner {
                        let bit = bit.checked_add(field.bit).ok_or(ShapeError::Beyond)?;
                        fields.push(Field { bit, ..field });
                    }
                }
                shape => fields.push(Field { name: name.into(), bit, shape }),
            }
        }
        Ok(Shape::Struct { size, fields: fields.into() })
    }

    fn flag(&self, id: u32) -> bool {
        self.btf.word(id, 4).is_some_and(|info| info & FLAG != 0)
    }
}

fn integer(name: &str, size: u32, encoding: u32) -> Result<Shape, ShapeError> {
    let signed = encoding & SIGNED != 0;
    Ok(match size {
        1 if name == "char" || encoding & CHARACTER != 0 => Shape::Character,
        1 | 2 | 4 | 8 if encoding & TRUTH != 0 => Shape::Truth(size),
        1 | 2 | 4 | 8 => Shape::Number { size, signed, network: false },
        16 => Shape::Bytes(16),
        _ => return Err(ShapeError::Kind),
    })
}

/// Bit offset of a member at this byte, if it fits the size.
fn within(offset: u32, shape: &Shape, size: u32) -> Result<u32, ShapeError> {
    let fits = shape.size().saturating_add(offset.into()) <= u64::from(size);
    offset.checked_mul(8).filter(|_| fits).ok_or(ShapeError::Beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARRAY: u32 = 3 << 24;
    const STRUCT: u32 = 4 << 24;
    const TYPEDEF: u32 = 8 << 24;

    /// The shape of a type, in a section with these type words.
    fn shape(types: &[&[u32]], id: u32) -> Result<Shape, ShapeError> {
        let words = types.concat();
        let strings = b"\0int\0a\0b\0";
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let length = words.len() as u32 * 4;
        for value in [24, 0, length, length, strings.len() as u32].iter().chain(&words) {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(strings);
        let map = MapTypes { key: id, value: ValueType::One(0) };
        let types = Types::new(&bytes, vec![map]);
        let btf = types.btf()?;
        Maker::new(&btf).whole(types.maps[0].key)
    }

    /// A 4-byte number, which is type 1.
    const WORD: &[u32] = &[1, INT << 24, 4, 32];

    #[test]
    fn types_without_an_end_are_refused() {
        // A structure that contains itself, an array of itself, and circular typedefs.
        let itself = [WORD, &[0, STRUCT | 1, 8, 5, 2, 0]];
        assert_eq!(shape(&itself, 2), Err(ShapeError::TooLarge));
        assert_eq!(shape(&[WORD, &[0, ARRAY, 0, 2, 1, 1]], 2), Err(ShapeError::TooLarge));
        assert_eq!(shape(&[WORD, &[5, TYPEDEF, 3], &[7, TYPEDEF, 2]], 2), Err(ShapeError::TooLarge));
        // Each has two of the previous one: 2^14 in all.
        let two = |of: u32, size: u32| vec![0, STRUCT | 2, size, 5, of, 0, 7, of, size * 4];
        let doubled: Vec<Vec<u32>> = (1..15).map(|of| two(of, 4 << of)).collect();
        let all: Vec<&[u32]> = [WORD].into_iter().chain(doubled.iter().map(Vec::as_slice)).collect();
        assert_eq!(shape(&all, 15), Err(ShapeError::TooLarge));
        assert!(shape(&all, 8).is_ok());
    }

    #[test]
    fn values_of_too_many_parts_are_refused() {
        let array = |count: u32| shape(&[WORD, &[0, ARRAY, 0, 1, 1, count]], 2);
        assert!(array(65_535).is_ok());
        assert_eq!(array(65_536), Err(ShapeError::TooLarge));
        assert_eq!(array(u32::MAX), Err(ShapeError::TooLarge));
        // Nested arrays, and arrays of empty types.
        assert_eq!(
            shape(&[WORD, &[0, ARRAY, 0, 1, 1, 1 << 20], &[0, ARRAY, 0, 2, 1, 1 << 30]], 3),
            Err(ShapeError::TooLarge)
        );
        assert_eq!(
            shape(&[WORD, &[0, STRUCT, 0], &[0, ARRAY, 0, 2, 1, u32::MAX]], 3),
            Err(ShapeError::TooLarge)
        );
        // More than a number holds, also of empty types, in a structure of a key's size.
        let all = |of: u32| vec![0, ARRAY, 0, of, 1, u32::MAX];
        assert_eq!(shape(&[WORD, &all(1), &all(2), &all(3)], 4), Err(ShapeError::TooLarge));
        let key: &[u32] = &[0, STRUCT | 2, 4, 5, 1, 0, 7, 5, 0];
        let empty: &[u32] = &[0, STRUCT, 0];
        assert_eq!(shape(&[WORD, empty, &all(2), &all(3), &all(4), key], 6), Err(ShapeError::TooLarge));
        // Byte arrays are displayed as one part, however long; sixty members of a megabyte each are not.
        let byte: &[u32] = &[1, INT << 24, 1, 8];
        let bytes: &[u32] = &[0, ARRAY, 0, 1, 1, 1 << 20];
        assert!(shape(&[byte, bytes], 2).is_ok());
        let mut overlapping = vec![0, STRUCT | 60, 1 << 20];
        (0..60).for_each(|_| overlapping.extend([5, 2, 0]));
        assert_eq!(shape(&[byte, bytes, &overlapping], 3), Err(ShapeError::TooLarge));
    }

    #[test]
    fn members_lie_within_their_structure() {
        let at = |bit: u32| shape(&[WORD, &[0, STRUCT | 1, 8, 5, 1, bit]], 2);
        assert!(at(32).is_ok());
        assert_eq!(at(40), Err(ShapeError::Beyond));
        assert_eq!(at(33), Err(ShapeError::Kind));
        let bits = |place: u32| shape(&[WORD, &[0, STRUCT | FLAG | 1, 4, 5, 1, place]], 2);
        assert!(bits(29 | 3 << 24).is_ok());
        assert_eq!(bits(30 | 3 << 24), Err(ShapeError::Beyond));
        assert_eq!(bits(200 << 24), Err(ShapeError::Beyond));
        // Its place, and that of its own member, are together beyond any number of bits.
        let far: &[u32] = &[0, STRUCT | 1, 1 << 30, 5, 1, 0xffff_ffe0];
        let anonymous: &[u32] = &[0, STRUCT | 1, u32::MAX, 0, 2, 0xffff_fff8];
        assert_eq!(shape(&[WORD, far, anonymous], 3), Err(ShapeError::Beyond));
        // So is the size of a member.
        let huge = |of| vec![0, ARRAY, 0, of, 1, u32::MAX];
        let member: &[u32] = &[0, STRUCT | 1, 8, 5, 4, 8];
        assert_eq!(shape(&[WORD, &huge(1), &huge(2), &huge(3), member], 5), Err(ShapeError::Beyond));
        // Types without values: a function, and void.
        assert_eq!(shape(&[WORD, &[5, 12 << 24, 1]], 2), Err(ShapeError::Kind));
        assert_eq!(shape(&[WORD], 0), Err(ShapeError::None));
        assert_eq!(shape(&[WORD], 2), Err(ShapeError::None));
    }
}
