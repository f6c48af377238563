//! Requests to add objects to a running instance and remove them.

use longwire_document::quoting::{quoted, quoted_key};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Objects to add and remove at one instant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RewireRequest {
    /// Sections to add, as in a scenario's file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(example = "[[link]]\nname = \"c\"\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\n")]
    pub add: String,
    /// Names of objects to remove; a duplex link by its own name. A host's links and sources are removed with
    /// it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Whether removed links send their packets, instead of dropping them.
    #[serde(default)]
    pub drain: bool,
}

/// Added and removed objects; each direction of a duplex link is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RewireResponse {
    /// The added objects.
    pub added: Vec<RewiredObject>,
    /// The removed objects.
    pub removed: Vec<RewiredObject>,
}

/// An added or removed object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RewiredObject {
    /// Its section in a scenario.
    #[schema(example = "link")]
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl RewiredObject {
    /// Whether it is the link called `name`.
    pub fn is_link(&self, name: &str) -> bool {
        self.kind == "link" && self.name == name
    }
}

/// A section of a scenario's file with these keys and values. A value in brackets or braces, a number or a
/// truth value is as in TOML; all others are text.
pub fn section<K: AsRef<str>, V: AsRef<str>>(word: &str, pairs: &[(K, V)]) -> String {
    let mut text = format!("[[{word}]]\n");
    for (key, value) in pairs {
        let key = key.as_ref().split('.').map(quoted_key).collect::<Vec<_>>().join(".");
        text += &format!("{key} = {}\n", value_of(&key, value.as_ref()));
    }
    text
}

/// A value as TOML.
fn value_of(key: &str, value: &str) -> String {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_list = value.starts_with('[') && value.ends_with(']') && !value.contains('\n');
    let is_table = value.starts_with('{') && value.ends_with('}') && !value.contains('\n');
    match value {
        "true" | "false" => value.into(),
        _ if key == "between" && !is_list => {
            let ends = value.split(',').map(|end| quoted(end.trim()));
            format!("[{}]", ends.collect::<Vec<_>>().join(", "))
        }
        _ if is_list || is_table => value.into(),
        // A name may be a number.
        _ if is_number && value.len() < 18 && !value.starts_with('0') && key != "name" => value.into(),
        _ => quoted(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_written_as_in_a_file() {
        let pairs = [
            ("name", "7"),
            ("between", "a, b"),
            ("rate", "5mbit"),
            ("queue.kind", "red"),
            ("queue.limit", "200"),
            ("filter", "drop if \"x\"\n[engine]"),
            ("match", "[{ source = \"10.0.0.1\", destination = \"10.0.0.2\" }]"),
            ("histogram", "true"),
            ("a\"]\nb", "1"),
        ];
        let text = "[[link]]\nname = \"7\"\nbetween = [\"a\", \"b\"]\nrate = \"5mbit\"\n\
            queue.kind = \"red\"\nqueue.limit = 200\nfilter = \"drop if \\\"x\\\"\\n[engine]\"\n\
            match = [{ source = \"10.0.0.1\", destination = \"10.0.0.2\" }]\nhistogram = true\n\
            \"a\\\"]\\nb\" = 1\n";
        assert_eq!(section("link", &pairs), text);
    }
}
