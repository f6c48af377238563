//! Converts bytes of a program's memory to the fields of their type and back: JSON, as `forwarder map` shows
//! and accepts it.

use longwire_program::{Field, Shape};
use longwire_scenario::{digits, hexadecimal};
use serde_json::{Map, Value};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why fields don't match a type.
#[derive(Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// The field, as `source.port[2]`; empty for the whole value.
    path: String,
    why: String,
}

impl std::fmt::Display for FieldFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.why),
            path => write!(f, "{path}: {}", self.why),
        }
    }
}

/// A value by its fields; missing bytes are 0.
pub fn shown(shape: &Shape, bytes: &[u8]) -> Value {
    show(shape, &Bytes { bytes, first: 0 }, 0)
}

/// Parses a value: hexadecimal digits, if they have exactly the type's size, else JSON, or the text of a name
/// or address.
///
/// # Errors
/// If it is none of these.
pub fn read(shape: &Shape, text: &str) -> Result<Vec<u8>, FieldFault> {
    let size = usize::try_from(shape.size()).unwrap_or(0);
    if let Ok(bytes) = hexadecimal(text)
        && bytes.len() == size
    {
        return Ok(bytes);
    }
    let value =
        serde_json::from_str(text).or_else(|error| match text.trim_start().starts_with(['{', '[', '"']) {
            true => Err(fault(format!("it is not JSON: {error}"))),
            false => Ok(Value::from(text.trim())),
        })?;
    let mut bytes = vec![0; size];
    write(shape, &value, &mut Target { bytes: &mut bytes, first: 0 }, 0)?;
    Ok(bytes)
}

/// Bytes, with the value at `first`.
struct Bytes<'b> {
    bytes: &'b [u8],
    first: usize,
}

impl Bytes<'_> {
    fn take<const N: usize>(&self) -> [u8; N] {
        std::array::from_fn(|at| self.bytes.get(self.first + at).copied().unwrap_or(0))
    }

    fn all(&self, size: usize) -> &[u8] {
        let end = (self.first + size).min(self.bytes.len());
        self.bytes.get(self.first..end).unwrap_or_default()
    }

    fn at(&self, offset: usize) -> Self {
        Self { bytes: self.bytes, first: self.first + offset }
    }

    /// A number of `size` bytes.
    fn number(&self, size: u32, network: bool) -> u64 {
        let mut all: [u8; 8] = self.take();
        let size = size.min(8) as usize;
        all[size..].fill(0);
        if network {
            all[..size].reverse();
        }
        u64::from_le_bytes(all)
    }
}

fn show(shape: &Shape, at: &Bytes<'_>, bit: u32) -> Value {
    match shape {
        Shape::Number { size, signed, network } => number(at.number(*size, *network), size * 8, *signed),
        Shape::Truth(size) => match at.number(*size, false) {
            0 => false.into(),
            1 => true.into(),
            other => other.into(),
        },
        Shape::Character => number(at.number(1, false), 8, true),
        Shape::AddressV4 => Ipv4Addr::from(at.take::<4>()).to_string().into(),
        Shape::AddressV6 => Ipv6Addr::from(at.take::<16>()).to_string().into(),
        Shape::Enum { size, signed, names } => {
            let value = number(at.number(*size, false), size * 8, *signed);
            let named = names.iter().find(|(_, number)| value == *number);
            named.map_or(value, |(name, _)| Value::from(&**name))
        }
        Shape::Bytes(size) => digits(at.all(*size as usize)).into(),
        Shape::Bits { width, signed } => number(bits(at, bit, *width), *width, *signed),
        Shape::Array { element, count } if element.is_byte() => {
            let bytes = at.all(*count as usize);
            match **element {
                Shape::Character => text(bytes).map_or_else(|| digits(bytes).into(), Value::from),
                _ => digits(bytes).into(),
            }
        }
        Shape::Array { element, count } => {
            let size = element.size() as usize;
            (0..*count as usize).map(|index| show(element, &at.at(index * size), 0)).collect()
        }
        Shape::Struct { fields, .. } => {
            let each = fields.iter().map(|field| {
                let Field { name, bit, shape } = field;
                (name.to_string(), show(shape, &at.at(*bit as usize / 8), bit % 8))
            });
            Value::Object(each.collect::<Map<_, _>>())
        }
    }
}

fn number(value: u64, bits: u32, signed: bool) -> Value {
    match signed && (1..=64).contains(&bits) {
        true => ((value << (64 - bits)) as i64 >> (64 - bits)).into(),
        false => value.into(),
    }
}

/// Bits from the lowest of a byte on, which may continue in other bytes.
fn bits(at: &Bytes<'_>, bit: u32, width: u32) -> u64 {
    let mut all = [0; 16];
    all[..9].copy_from_slice(&at.take::<9>());
    let mask = u64::MAX >> (64 - width.clamp(1, 64));
    (u128::from_le_bytes(all) >> bit) as u64 & mask
}

/// The text up to the first 0, if only zeros follow and all characters are printable.
fn text(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (before, behind) = bytes.split_at(end);
    let plain = before.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    std::str::from_utf8(before).ok().filter(|_| plain && behind.iter().all(|&byte| byte == 0))
}

/// Bytes to be written, with the value at `first`.
struct Target<'b> {
    bytes: &'b mut [u8],
    first: usize,
}

impl Target<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.first..self.first + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn at(&mut self, offset: usize) -> Target<'_> {
        Target { first: self.first + offset, bytes: self.bytes }
    }
}

fn fault(why: impl Into<String>) -> FieldFault {
    FieldFault { path: String::new(), why: why.into() }
}

impl FieldFault {
    fn within(self, part: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{part}{dot}{}", self.path), why: self.why }
    }
}

fn write(shape: &Shape, value: &Value, to: &mut Target<'_>, bit: u32) -> Result<(), FieldFault> {
    match shape {
        Shape::Number { size, signed, network } => {
            let mut bytes = whole(value, size * 8, *signed)?.to_le_bytes();
            if *network {
                bytes[..*size as usize].reverse();
            }
            to.put(&bytes[..*size as usize]);
        }
        Shape::Truth(size) => {
            let number = match value {
                Value::Bool(truth) => u64::from(*truth),
                other => whole(other, size * 8, false)?,
            };
            to.put(&number.to_le_bytes()[..*size as usize]);
        }
        Shape::Character => to.put(&whole(value, 8, true)?.to_le_bytes()[..1]),
        Shape::AddressV4 => to.put(&address_v4(value)?),
        Shape::AddressV6 => to.put(&address_v6(value)?),
        Shape::Enum { size, signed, names } => {
            let named = value.as_str().and_then(|text| names.iter().find(|(name, _)| **name == *text));
            let number = match named {
                Some((_, number)) => *number as u64,
                None => whole(value, size * 8, *signed).map_err(|_| {
                    let known: Vec<&str> = names.iter().map(|(name, _)| &**name).collect();
                    fault(format!("{value} is none of {}, nor a number of {size} bytes", known.join(", ")))
                })?,
            };
            to.put(&number.to_le_bytes()[..*size as usize]);
        }
        Shape::Bytes(size) => to.put(&bytes_of(value, *size as usize)?),
        Shape::Bits { width, signed } => {
            let number = whole(value, *width, *signed)?;
            set_bits(to, bit, (*width, number));
        }
        Shape::Array { element, count } if element.is_byte() && value.is_string() => {
            to.put(&text_of(element, value, *count as usize)?);
        }
        Shape::Array { element, count } => {
            let wrong = || fault(format!("{value} is not a list of {count}"));
            let all = value.as_array().filter(|all| all.len() <= *count as usize).ok_or_else(wrong)?;
            for (index, one) in all.iter().enumerate() {
                let mut place = to.at(index * element.size() as usize);
                write(element, one, &mut place, 0).map_err(|fault| fault.within(&format!("[{index}]")))?;
            }
        }
        Shape::Struct { fields, .. } => {
            let names = || fields.iter().map(|field| &*field.name).collect::<Vec<_>>().join(", ");
            let wrong = || fault(format!("{value} is not an object with {}", names()));
            for (name, value) in value.as_object().ok_or_else(wrong)? {
                let unknown =
                    || fault(format!("there is no field \"{}\"; there are {}", name.escape_debug(), names()));
                let field = fields.iter().find(|field| *field.name == **name).ok_or_else(unknown)?;
                let mut place = to.at(field.bit as usize / 8);
                write(&field.shape, value, &mut place, field.bit % 8).map_err(|fault| fault.within(name))?;
            }
        }
    }
    Ok(())
}

/// The low bits of an integer that fits: a JSON number, or its text, as `0x1f`.
fn whole(value: &Value, bits: u32, signed: bool) -> Result<u64, FieldFault> {
    let read = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let number: Option<i128> = match value {
        Value::Number(number) => number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from)),
        Value::String(text) => read(text),
        _ => None,
    };
    let bits = bits.clamp(1, 64);
    let (low, high) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    let number = number.filter(|number| (low..=high).contains(number));
    number
        .map(|number| number as u64)
        .ok_or_else(|| fault(format!("{value} is not an integer from {low} to {high}")))
}

fn address_v4(value: &Value) -> Result<[u8; 4], FieldFault> {
    if let Some(address) = value.as_str().and_then(|text| text.parse::<Ipv4Addr>().ok()) {
        return Ok(address.octets());
    }
    let number = whole(value, 32, false);
    number
        .map(|number| (number as u32).to_be_bytes())
        .map_err(|_| fault(format!("{value} is not an IPv4 address")))
}

fn address_v6(value: &Value) -> Result<[u8; 16], FieldFault> {
    // An IPv4 address becomes the mapped one, as in Longwire's own forwarders.
    let mapped = |text: &str| text.parse::<Ipv4Addr>().ok().map(|address| address.to_ipv6_mapped());
    let address = value.as_str().and_then(|text| text.parse().ok().or_else(|| mapped(text)));
    address.map(|address| address.octets()).ok_or_else(|| fault(format!("{value} is not an IPv6 address")))
}

/// Bytes from hexadecimal digits; colons between them are allowed.
fn bytes_of(value: &Value, size: usize) -> Result<Vec<u8>, FieldFault> {
    let bytes = value.as_str().and_then(|text| hexadecimal(&text.replace(':', "")).ok());
    bytes
        .filter(|bytes| bytes.len() == size)
        .ok_or_else(|| fault(format!("{value} is not {size} bytes in hexadecimal digits")))
}

/// Bytes from a text: characters padded with zeros; else an address of this length, or digits.
fn text_of(element: &Shape, value: &Value, count: usize) -> Result<Vec<u8>, FieldFault> {
    let text = value.as_str().unwrap_or_default();
    if *element == Shape::Character {
        let mut bytes = text.as_bytes().to_vec();
        if bytes.len() > count {
            return Err(fault(format!("{value} has more than {count} characters")));
        }
        bytes.resize(count, 0);
        return Ok(bytes);
    }
    match (count, text.parse::<Ipv4Addr>(), text.parse::<Ipv6Addr>()) {
        (4, Ok(address), _) => Ok(address.octets().to_vec()),
        (16, _, Ok(address)) => Ok(address.octets().to_vec()),
        _ => bytes_of(value, count),
    }
}

fn set_bits(to: &mut Target<'_>, bit: u32, (width, number): (u32, u64)) {
    for index in 0..width {
        let at = (bit + index) as usize;
        if let Some(byte) = to.bytes.get_mut(to.first + at / 8) {
            let mask = 1 << (at % 8);
            *byte = if number >> index & 1 == 1 { *byte | mask } else { *byte & !mask };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const U16: Shape = Shape::Number { size: 2, signed: false, network: false };
    const BE16: Shape = Shape::Number { size: 2, signed: false, network: true };

    fn field(name: &str, bit: u32, shape: Shape) -> Field {
        Field { name: name.into(), bit, shape }
    }

    fn array(element: Shape, count: u32) -> Shape {
        Shape::Array { element: Box::new(element), count }
    }

    /// A structure with all kinds of fields, 48 bytes.
    fn flow() -> Shape {
        let state =
            Shape::Enum { size: 4, signed: false, names: Box::new([("NEW".into(), 0), ("OLD".into(), 7)]) };
        let fields = [
            field("source", 0, Shape::AddressV4),
            field("port", 32, BE16),
            field("low", 48, Shape::Bits { width: 4, signed: false }),
            field("high", 52, Shape::Bits { width: 12, signed: true }),
            field("counts", 64, array(U16, 2)),
            field("state", 96, state),
            field("name", 128, array(Shape::Character, 8)),
            field("mac", 192, array(Shape::Number { size: 1, signed: false, network: false }, 6)),
            field("on", 240, Shape::Truth(1)),
            field("less", 248, Shape::Number { size: 1, signed: true, network: false }),
            field("next", 256, Shape::AddressV6),
        ];
        Shape::Struct { size: 48, fields: fields.into() }
    }

    #[test]
    fn fields_are_shown_and_read_back() {
        let shown_as = json!({
            "source": "10.0.0.1", "port": 80, "low": 5, "high": -2, "counts": [1, 515], "state": "OLD",
                "name": "eth0",
            "mac": "020000000001", "on": true, "less": -1, "next": "2001:db8::1",
        });
        let bytes = hexadecimal(concat!(
            "0a000001 0050 e5ff 0100 0302 07000000 6574683000000000",
            "020000000001 01 ff 20010db8000000000000000000000001"
        ));
        let bytes = bytes.unwrap();
        assert_eq!(shown(&flow(), &bytes), shown_as);
        assert_eq!(read(&flow(), &shown_as.to_string()), Ok(bytes.clone()));
        assert_eq!(read(&flow(), &digits(&bytes)), Ok(bytes));
    }

    #[test]
    fn what_is_left_out_is_zero_and_what_is_wrong_is_named() {
        let mut bytes = vec![0; 48];
        bytes[4..6].copy_from_slice(&[0, 53]);
        assert_eq!(read(&flow(), r#"{"port": 53}"#), Ok(bytes));
        for (text, message) in [
            (r#"{"port": 65536}"#, "port: 65536 is not an integer from 0 to 65535"),
            (r#"{"port": -1}"#, "port: -1 is not an integer from 0 to 65535"),
            (r#"{"low": 16}"#, "low: 16 is not an integer from 0 to 15"),
            (r#"{"high": 2048}"#, "high: 2048 is not an integer from -2048 to 2047"),
            (r#"{"source": "10.0.0"}"#, "source: \"10.0.0\" is not an IPv4 address"),
            (r#"{"counts": [1, 2, 3]}"#, "counts: [1,2,3] is not a list of 2"),
            (r#"{"counts": [1, "x"]}"#, "counts[1]: \"x\" is not an integer from 0 to 65535"),
            (r#"{"state": "YOUNG"}"#, "state: \"YOUNG\" is none of NEW, OLD, nor a number of 4 bytes"),
            (r#"{"name": "wlp0s20f3"}"#, "name: \"wlp0s20f3\" has more than 8 characters"),
            (r#"{"mac": "0200"}"#, "mac: \"0200\" is not 6 bytes in hexadecimal digits"),
            ("{", "it is not JSON: EOF while parsing an object at line 1 column 1"),
        ] {
            assert_eq!(read(&flow(), text).unwrap_err().to_string(), message);
        }
        let unknown = read(&flow(), r#"{"sport": 1}"#).unwrap_err().to_string();
        assert!(unknown.starts_with("there is no field \"sport\"; there are source, port, "), "{unknown}");
    }

    #[test]
    fn numbers_names_and_addresses_need_no_quotes() {
        let word = Shape::Number { size: 4, signed: false, network: false };
        assert_eq!(read(&word, "5"), Ok(vec![5, 0, 0, 0]));
        assert_eq!(read(&word, "0x1ff"), Ok(vec![0xff, 1, 0, 0]));
        // As many digits as the bytes have mean bytes.
        assert_eq!(read(&word, "12345678"), Ok(vec![0x12, 0x34, 0x56, 0x78]));
        assert_eq!(read(&word, "\"12345678\""), Ok(12_345_678u32.to_le_bytes().to_vec()));
        assert_eq!(read(&Shape::AddressV4, "10.0.0.1"), Ok(vec![10, 0, 0, 1]));
        let state = Shape::Enum { size: 1, signed: true, names: Box::new([("OFF".into(), -1)]) };
        assert_eq!((read(&state, "OFF"), shown(&state, &[255])), (Ok(vec![255]), json!("OFF")));
        assert_eq!(
            read(&array(Shape::Number { size: 1, signed: false, network: false }, 4), "\"10.0.0.1\""),
            Ok(vec![10, 0, 0, 1])
        );
    }

    #[test]
    fn texts_that_are_none_are_bytes_and_missing_bytes_are_zero() {
        let name = array(Shape::Character, 4);
        assert_eq!(shown(&name, b"a\0b\0"), json!("61006200"));
        assert_eq!(shown(&name, b"a\x1b[\0"), json!("611b5b00"));
        assert_eq!(shown(&Shape::Number { size: 8, signed: false, network: true }, &[1]), json!(1u64 << 56));
        assert_eq!(shown(&flow(), &[])["source"], json!("0.0.0.0"));
    }
}
