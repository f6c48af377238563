//! The API's description: the generic endpoints of objects are expanded for each kind, with the settings that
//! changes accept.

use crate::changes::MAX_CHANGES;
use crate::object::{Bounds, Kind, Quantity, Settable};
use serde_json::{Map, Value, json};

/// The generic endpoints.
const GENERIC: [&str; 2] = ["/v1/{kind}", "/v1/{kind}/{name}"];

/// The document with the endpoints of each kind, and the settings that changes accept.
pub(crate) fn for_each_kind(mut document: Value, settable: impl Fn(Kind) -> Vec<Settable>) -> Value {
    for path in GENERIC {
        let generic =
            document["paths"].as_object_mut().and_then(|paths| paths.remove(path)).unwrap_or_default();
        for kind in Kind::ALL {
            let path = path.replace("{kind}", kind.collection());
            document["paths"][path] = of_kind(&generic, kind);
        }
    }
    for kind in Kind::ALL {
        document["components"]["schemas"][schema_name(kind)] = schema(kind, &settable(kind));
    }
    document
}

fn schema_name(kind: Kind) -> String {
    let word = kind.word();
    format!("{}{}Settings", word[..1].to_uppercase(), &word[1..])
}

/// A generic endpoint for one kind.
fn of_kind(generic: &Value, kind: Kind) -> Value {
    let mut methods = generic.clone();
    if let Some(methods) = methods.as_object_mut() {
        methods.retain(|method, _| kind == Kind::Link || !["post", "delete"].contains(&&**method));
    }
    for (method, operation) in methods.as_object_mut().into_iter().flatten() {
        let summary = operation["summary"].as_str().unwrap_or_default();
        let plural = summary.replace("{kind}s", kind.collection());
        operation["summary"] = plural.replace("{kind}", kind.word()).into();
        operation["operationId"] =
            format!("{}_{}", operation["operationId"].as_str().unwrap_or_default(), kind.word()).into();
        if let Some(parameters) = operation["parameters"].as_array_mut() {
            parameters.retain(|parameter| parameter["name"] != "kind");
        }
        if method == "patch" {
            let schema = json!({ "$ref": format!("#/components/schemas/{}", schema_name(kind)) });
            operation["requestBody"] =
                json!({ "content": { "application/json": { "schema": schema } }, "required": true });
        }
    }
    methods
}

/// Describes the quantity of a setting's values and their range: `x-least` and `x-most`, because the values
/// themselves are texts.
fn measure(value: &mut Value, quantity: &Quantity) {
    let (format, bounds) = match quantity {
        Quantity::Rate => ("rate", Bounds::NONE),
        Quantity::Time(bounds) => ("time", *bounds),
        Quantity::Share => ("share", Bounds { least: 0, most: 1 }),
        Quantity::Integer(bounds) => ("integer", *bounds),
        Quantity::Decimal(bounds) => ("decimal", *bounds),
        Quantity::Size(bounds) => ("size", *bounds),
        Quantity::Limit => ("limit", Bounds::NONE),
        // Not as `enum`: some accept other texts, such as the file of a profile.
        Quantity::Words(words) => return value["examples"] = words.as_slice().into(),
        Quantity::Other => return,
    };
    let written = |bound: u64| match quantity {
        Quantity::Decimal(_) => Value::from(bound as f64 / 1e6),
        _ => Value::from(bound),
    };
    value["format"] = format.into();
    if bounds.least > 0 {
        value["x-least"] = written(bounds.least);
    }
    if bounds.most < u64::MAX {
        value["x-most"] = written(bounds.most);
    }
}

/// The schema of a change.
fn schema(kind: Kind, settable: &[Settable]) -> Value {
    let (mut properties, mut patterns) = (Map::new(), Map::new());
    for Settable { key, help, takes, quantity, only_new } in settable {
        let mut value =
            json!({ "type": "string", "description": format!("{help}: {takes}"), "x-takes": takes });
        measure(&mut value, quantity);
        if *only_new {
            value["x-only-new"] = true.into();
        }
        match key.split_once('.') {
            Some((first, name)) if name.chars().all(|c| c.is_ascii_uppercase()) => {
                patterns.insert(format!("^{first}\\..+"), value);
            }
            _ => drop(properties.insert(key.clone(), value)),
        }
    }
    json!({
        "type": "object",
        "description": format!("Settings of a {} that can change while it runs, each as text.", kind.word()),
        "properties": properties,
        "patternProperties": patterns,
        "maxProperties": MAX_CHANGES,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settings_measure_is_described() {
        let half = Quantity::Decimal(Bounds { least: 500_000, most: u64::MAX });
        let fresh =
            Settable { only_new: true, ..Settable::new("key.NAME", "", "a key".into(), Quantity::Other) };
        let schema =
            schema(Kind::Flow, &[Settable::new("share", "how much", "0.5 or more".into(), half), fresh]);
        let share = json!({
            "type": "string", "description": "how much: 0.5 or more", "x-takes": "0.5 or more",
            "format": "decimal", "x-least": 0.5,
        });
        assert_eq!(schema["properties"], json!({ "share": share }));
        assert_eq!(schema["patternProperties"]["^key\\..+"]["x-only-new"], true);
    }
}
