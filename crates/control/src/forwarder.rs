//! Requests about a router's programs, and their form in the API.

use hyper::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value, json};
use utoipa::openapi::schema::{Array, ArrayBuilder, Object, Type};
use utoipa::{IntoParams, ToSchema};

/// Unreserved characters of a path (RFC 3986, section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A name as a segment of a path, or a value of a query.
pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, UNRESERVED).to_string()
}

/// A request about a router's programs. Bytes are pairs of hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramRequest {
    /// Lists the programs with their counters and worst-case costs.
    List,
    /// Lists the services and control processes above the router, the outcomes of their packets, and the
    /// socket for control processes.
    Levels,
    /// Installs a program, and returns its number.
    Install(NewForwarder),
    /// Replaces a program. The new one gets its key and exit, equally declared maps, and the state if it has
    /// the same size. The answer lists what was kept and what is new.
    Replace(u32, NewForwarder),
    /// Renews the leases of these programs.
    Renew(Vec<u32>),
    /// Removes a program.
    Remove(u32),
    /// A program's state, and its fields if a type is named.
    Get(u32, TypeQuery),
    /// Writes a program's state.
    Set(u32, NewState),
    /// Takes records out of a program's rings, the oldest first.
    Events(u32, Rings),
    /// A program's maps.
    Maps(u32),
    /// The entries of a program's map, or one of them.
    Map(u32, String, Entries),
    /// Removes entries of a program's map as far as they are there, then writes others.
    Write(u32, String, MapChange),
    /// Reads the values of several keys of a program's map: null for missing ones.
    Values(u32, String, Vec<String>),
    /// Removes all entries of a program's map; sets all values of an array to zero.
    Clear(u32, String),
}

/// A program to be installed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewForwarder {
    /// What a scenario's `[[forwarder]]` says, but for the router; in the place of another, only `program`,
    /// `function`, `constants`, `name` and `state`.
    #[schema(value_type = Object, example = json!({"program": "syn-monitor"}))]
    pub forwarder: Value,
    /// The object's bytes, unless the program is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Time after which it is removed unless renewed, such as "30 s": 1 s to 1 h. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "30 s")]
    pub lease: Option<String>,
}

/// Programs whose leases begin again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Leases {
    /// Their numbers.
    #[serde(deserialize_with = "whole_numbers")]
    pub(crate) fids: Vec<u32>,
}

/// Reads numbers of programs. 7.0 is one, too: JSON does not distinguish it from 7.
fn whole_numbers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    let whole = |number: Number| {
        let float =
            number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=u32::MAX.into()).contains(float));
        let number = number.as_u64().and_then(|number| u32::try_from(number).ok());
        number.or(float.map(|float| float as u32))
    };
    let numbers = Vec::<Number>::deserialize(from)?;
    let read = |number: Number| whole(number.clone()).ok_or(number);
    numbers.into_iter().map(read).collect::<Result<_, _>>().map_err(|number| {
        D::Error::custom(format!("{number} is no number of a program: a whole number below 2^32"))
    })
}

/// A type of the program's object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct TypeQuery {
    /// A type of its object, such as the name of a structure, whose fields are shown in addition.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
}

/// A program's new state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewState {
    /// All of its bytes; with a type, as many digits as it has, or its fields as JSON.
    #[schema(example = "00ff")]
    pub data: String,
    /// A type of its object.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Which records are taken out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rings {
    /// The ring; default: all of its rings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// A type of its object, such as the name of a structure, whose fields are shown in addition.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Which entries are shown, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Entries {
    /// The entry's key: digits, or its fields as JSON. All entries without one.
    #[serde(default)]
    pub key: Option<String>,
    /// Whether entries are also shown by the fields of their types.
    #[serde(default)]
    pub fields: bool,
}

/// Entries of a map that go, and some that come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MapChange {
    /// Keys whose entries are removed first: digits, or their fields as JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Keys and values that are written then, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(schema_with = pairs)]
    pub write: Vec<(String, String)>,
}

/// The schema of pairs of texts.
fn pairs() -> Array {
    let text = Object::with_type(Type::String);
    let pair = ArrayBuilder::new().items(text).min_items(Some(2)).max_items(Some(2));
    ArrayBuilder::new().items(pair).build()
}

/// Keys of a map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    pub(crate) keys: Vec<String>,
}

impl ProgramRequest {
    /// The request that asks this of a router: method, path and body.
    pub(crate) fn request(&self, router: &str) -> (Method, String, Value) {
        let at_router = |rest: &str| format!("/v1/routers/{}/{rest}", segment(router));
        let at = |fid: &u32, rest: &str| at_router(&format!("forwarders/{fid}{rest}"));
        let at_map = |fid: &u32, map: &str, rest: &str| at(fid, &format!("/maps/{}{rest}", segment(map)));
        match self {
            Self::List => (Method::GET, at_router("forwarders"), Value::Null),
            Self::Levels => (Method::GET, at_router("levels"), Value::Null),
            Self::Install(new) => (Method::POST, at_router("forwarders"), body_of(new)),
            Self::Replace(fid, new) => (Method::PUT, at(fid, ""), body_of(new)),
            Self::Renew(fids) => (Method::PUT, at_router("leases"), json!({ "fids": fids })),
            Self::Remove(fid) => (Method::DELETE, at(fid, ""), Value::Null),
            Self::Get(fid, TypeQuery { kind }) => {
                let query = kind.as_ref().map(|kind| format!("?type={}", segment(kind))).unwrap_or_default();
                (Method::GET, at(fid, &format!("/state{query}")), Value::Null)
            }
            Self::Set(fid, state) => (Method::PUT, at(fid, "/state"), body_of(state)),
            Self::Events(fid, rings) => (Method::POST, at(fid, "/events"), body_of(rings)),
            Self::Maps(fid) => (Method::GET, at(fid, "/maps"), Value::Null),
            Self::Map(fid, map, Entries { key, fields }) => {
                let key = key.as_ref().map(|key| format!("&key={}", segment(key))).unwrap_or_default();
                (Method::GET, at_map(fid, map, &format!("?fields={fields}{key}")), Value::Null)
            }
            Self::Write(fid, map, change) => (Method::PATCH, at_map(fid, map, ""), body_of(change)),
            Self::Values(fid, map, keys) => {
                (Method::POST, at_map(fid, map, "/values"), json!({ "keys": keys }))
            }
            Self::Clear(fid, map) => (Method::DELETE, at_map(fid, map, "/entries"), Value::Null),
        }
    }
}

/// A body as JSON. These have nothing that JSON can't say.
fn body_of(body: &impl Serialize) -> Value {
    serde_json::to_value(body).unwrap_or_default()
}
