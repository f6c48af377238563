//! Sections with their templates expanded: an entry for each object.

use crate::template::expand;
use toml::{Table, Value};

/// The sections of a text, with an entry for each that a `count` makes.
///
/// # Errors
/// If the text is not TOML, or a template has a fault.
pub fn expanded(text: &str) -> Result<Table, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    table.into_iter().map(|(section, value)| Ok((section, section_of(value)?))).collect()
}

/// A section whose entries have no count.
fn section_of(section: Value) -> Result<Value, String> {
    let Value::Array(entries) = section else { return Ok(section) };
    let mut list = Vec::with_capacity(entries.len());
    for entry in entries {
        let Value::Table(mut table) = entry else {
            list.push(entry);
            continue;
        };
        let Some(count) = table.remove("count").as_ref().and_then(whole) else {
            list.push(Value::Table(table));
            continue;
        };
        let first = table.remove("first").as_ref().and_then(whole).unwrap_or(1);
        let template = Value::Table(table);
        for n in first..first.saturating_add(count) {
            list.push(filled(&template, n)?);
        }
    }
    Ok(Value::Array(list))
}

/// A whole number, which may be written as a text.
fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::String(text) => text.trim().replace('_', "").parse().ok(),
        _ => None,
    }
}

/// A value whose texts are expanded for the number `n`.
fn filled(value: &Value, n: u64) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(expand(text, Some(n))?.into_owned()),
        Value::Array(list) => {
            Value::Array(list.iter().map(|item| filled(item, n)).collect::<Result<_, _>>()?)
        }
        Value::Table(table) => {
            let each = table.iter().map(|(key, value)| Ok((key.clone(), filled(value, n)?)));
            Value::Table(each.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_makes_entries() {
        let text = "seed = 3\n[[link]]\nname = \"l{n}\"\ncount = 2\nfirst = 5\nbetween = [\"a{n}\", \"b\"]\n\
            forward = { delay = \"{n * 2} ms\" }\n[[link]]\nname = \"{x}\"\n";
        let table = expanded(text).unwrap();
        let links = table["link"].as_array().unwrap();
        let names: Vec<_> = links.iter().map(|link| link["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["l5", "l6", "{x}"]);
        assert_eq!(links[1]["between"][0].as_str(), Some("a6"));
        assert_eq!(links[1]["forward"]["delay"].as_str(), Some("12 ms"));
        assert!(links[1].get("count").is_none() && table["seed"].as_integer() == Some(3));
        assert!(expanded("[[link]]\ncount = 1\nname = \"{m}\"\n").unwrap_err().contains("'m'"));
        assert!(expanded("[[").is_err());
    }
}
