//! YAML documents, read with limits on depth, size and aliases, so that no small file becomes a large value.

use super::{ImportError, Result};
use serde_json::{Map, Value};

/// Longest scalar that is shown in an error or written to a scenario.
const LONGEST: usize = 200;

/// Reads a document whose top level is a map.
pub(super) fn read(text: &str, what: &str) -> Result<Map<String, Value>> {
    let fix = format!("correct the YAML of {what}");
    // As in YAML 1.2: n, y, on and off are names like others.
    let options = serde_saphyr::options! { strict_booleans: true };
    match serde_saphyr::from_str_with_options::<Value>(text, options) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(ImportError::new(0, format!("this is not {what}: its top level is not a map"), fix)),
        Err(error) => {
            let line = error.location().and_then(|place| usize::try_from(place.line()).ok());
            let said = error.to_string();
            let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it can't be read");
            Err(ImportError::new(line.unwrap_or_default(), format!("this is not YAML: {first}"), fix))
        }
    }
}

/// A map at a key; empty if there is none, or nothing in it.
pub(super) fn map<'v>(
    of: &'v Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (&'v String, &'v Value)> {
    of.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// A text, number or boolean as text; none for other values, or if it is too long.
pub(super) fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        _ => return None,
    };
    (text.len() <= LONGEST && !text.chars().any(char::is_control)).then_some(text)
}
