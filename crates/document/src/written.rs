//! A value as written in the file: text and place. It is read after its template is expanded.

use longwire_drivers::{DRIVERS, Driver};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::ops::Range;
use toml::Spanned;

use crate::address::{Mac, Network, RouteTarget};
use crate::finding::not_one_of;

/// A kind of value that can be read from a text.
pub trait Term: Sized {
    /// A description with its article: `a rate such as "10 Mbit/s"`.
    const WANTED: &'static str;

    /// Reads it; an error names the fault and the fix.
    fn read(text: &str) -> Result<Self, String>;

    /// Its JSON schema.
    fn schema() -> serde_json::Value;
}

/// A text to be read as a `T`, and its place.
pub struct Written<T> {
    /// Where it is in the file.
    pub span: Range<usize>,
    /// The text.
    pub text: String,
    kind: PhantomData<T>,
}

impl<T> Written<T> {
    /// A text at a place.
    pub fn new(span: Range<usize>, text: String) -> Self {
        Self { span, text, kind: PhantomData }
    }
}

/// One value, or a list of them.
pub struct Listed<T>(pub Vec<Written<T>>);

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Term> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Spanned::<Scalar<T>>::deserialize(deserializer)?;
        Ok(Self::new(text.span(), text.into_inner().0))
    }
}

impl<'de, T: Term> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = Spanned::<Items<T>>::deserialize(deserializer)?;
        let span = items.span();
        Ok(match items.into_inner() {
            Items::One(text) => Self(vec![Written::new(span, text)]),
            Items::Many(list) => Self(list),
        })
    }
}

/// A text or a number.
struct Scalar<T>(String, PhantomData<T>);

impl<'de, T: Term> Deserialize<'de> for Scalar<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor::<T>(PhantomData)).map(|text| Self(text, PhantomData))
    }
}

struct ScalarVisitor<T>(PhantomData<T>);

impl<T: Term> Visitor<'_> for ScalarVisitor<T> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WANTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

enum Items<T> {
    One(String),
    Many(Vec<Written<T>>),
}

impl<'de, T: Term> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemsVisitor::<T>(PhantomData))
    }
}

struct ItemsVisitor<T>(PhantomData<T>);

impl<'de, T: Term> Visitor<'de> for ItemsVisitor<T> {
    type Value = Items<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or a list of such", T::WANTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Items<T>, E> {
        Ok(Items::One(text.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Items<T>, E> {
        Ok(Items::One(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element()? {
            list.push(item);
        }
        Ok(Items::Many(list))
    }
}

impl<T: Term> JsonSchema for Written<T> {
    fn schema_name() -> Cow<'static, str> {
        "written".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::try_from(templated(T::schema())).expect("a schema is an object")
    }
}

impl<T: Term> JsonSchema for Listed<T> {
    fn schema_name() -> Cow<'static, str> {
        "listed".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = templated(T::schema());
        let schema = serde_json::json!({ "anyOf": [one, { "type": "array", "items": one }] });
        Schema::try_from(schema).expect("a schema is an object")
    }
}

/// Lets a schema also accept texts with template braces.
pub fn templated(schema: serde_json::Value) -> serde_json::Value {
    if schema["type"] == "string" && schema.get("pattern").is_none() {
        return schema;
    }
    serde_json::json!({ "anyOf": [schema, { "type": "string", "pattern": "\\{.*\\}" }] })
}

macro_rules! address {
    ($type:ty, $wanted:literal, $read:expr) => {
        impl Term for $type {
            const WANTED: &'static str = $wanted;

            fn read(text: &str) -> Result<Self, String> {
                $read(text)
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "type": "string", "description": $wanted })
            }
        }
    };
}

address!(Network, "an address such as \"10.0.0.1/24\"", str::parse);
address!(RouteTarget, "a network such as \"10.1.0.0/16\", or \"default\"", str::parse);
address!(Mac, "a hardware address such as \"02:00:00:00:00:01\"", str::parse);
address!(IpAddr, "an address such as \"10.0.0.1\" or \"fd00::1\"", |text: &str| {
    text.trim()
        .parse()
        .map_err(|_| format!("\"{text}\" is not an address; write one such as \"10.0.0.1\" or \"fd00::1\""))
});

impl Term for &'static Driver {
    const WANTED: &'static str = "a port's driver";

    fn read(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = DRIVERS.iter().map(|driver| driver.word()).collect();
        Driver::named(text).ok_or_else(|| not_one_of(Self::WANTED, text, &words))
    }

    fn schema() -> serde_json::Value {
        serde_json::json!({ "enum": DRIVERS.iter().map(|driver| driver.word()).collect::<Vec<_>>() })
    }
}

/// A whole number; the caller checks its range.
pub struct Whole(pub i128);

impl Term for Whole {
    const WANTED: &'static str = "a whole number";

    fn read(text: &str) -> Result<Self, String> {
        let number = text.trim().replace('_', "").parse();
        number.map(Self).map_err(|_| format!("\"{text}\" is not a whole number"))
    }

    fn schema() -> serde_json::Value {
        serde_json::json!({ "type": "integer", "minimum": 0 })
    }
}

/// A value for an object's constant, checked when the object is read.
pub struct Constant;

impl Term for Constant {
    const WANTED: &'static str = "a whole number";

    fn read(_: &str) -> Result<Self, String> {
        Ok(Self)
    }

    fn schema() -> serde_json::Value {
        serde_json::json!({ "type": ["integer", "string"] })
    }
}

/// Any text: a file, an interface.
pub struct Text(pub String);

impl Term for Text {
    const WANTED: &'static str = "a text";

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err("it is empty or has control characters; write a printable text".into());
        }
        Ok(Self(text.into()))
    }

    fn schema() -> serde_json::Value {
        serde_json::json!({ "type": "string" })
    }
}

/// The name of an object, in commands and statistics.
#[derive(Debug)]
pub struct Name(pub Box<str>);

/// Most characters of a name.
const LONGEST_NAME: usize = 64;

impl Term for Name {
    const WANTED: &'static str = "a name";

    fn read(text: &str) -> Result<Self, String> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        if text.is_empty() || text.len() > LONGEST_NAME || !text.chars().all(good) {
            let limits = "1 to 64 letters, digits and - _ . :";
            return Err(format!("\"{}\" can't be a name; a name has {limits}", shortened(text)));
        }
        if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(format!("\"{text}\" can't be a name; a name begins with a letter or a digit"));
        }
        Ok(Self(text.into()))
    }

    fn schema() -> serde_json::Value {
        serde_json::json!({ "type": "string" })
    }
}

/// A text for an error, cut to a name's length.
fn shortened(text: &str) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let short: String = printable.clone().take(LONGEST_NAME).collect();
    if printable.count() > LONGEST_NAME { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_everywhere() {
        for good in ["a", "dsl7.forward", "a-b", "eth0:1", &"x".repeat(64)] {
            assert!(Name::read(good).is_ok(), "{good}");
        }
        for bad in ["", "a/b", "a b", "ä", "-a", "..", "a\n", "a>b", &"x".repeat(65)] {
            assert!(Name::read(bad).unwrap_err().contains("name"), "{bad}");
        }
    }
}
