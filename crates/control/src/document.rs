//! The API's description: the generic endpoints of objects are expanded for each kind, with the settings that
//! changes accept.

use crate::changes::MAX_CHANGES;
use crate::object::{Bounds, Kind, Quantity, Settable};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

/// The methods that each path takes.
pub(crate) struct Methods(Vec<(String, String)>);

impl Methods {
    /// Those of a document.
    pub(crate) fn of(document: &Value) -> Self {
        let paths = document["paths"].as_object().into_iter().flatten();
        let of_path = |(path, methods): (&String, &Value)| {
            // HEAD is GET without the body (RFC 9110, section 9.3.2).
            let head = methods.get("get").is_some().then_some("HEAD".to_owned());
            let methods = methods.as_object().into_iter().flatten().map(|(method, _)| method.to_uppercase());
            (path.clone(), methods.chain(head).collect::<Vec<_>>().join(", "))
        };
        Self(paths.map(of_path).collect())
    }

    /// Those of a path of a request, as the header Allow lists them; none if the document has no such path.
    pub(crate) fn of_path(&self, path: &str) -> Option<&str> {
        let fits = |pattern: &str| {
            let fits = |(part, known): (&str, &str)| known.starts_with('{') || part == known;
            path.split('/').count() == pattern.split('/').count()
                && path.split('/').zip(pattern.split('/')).all(fits)
        };
        self.0.iter().find(|(pattern, _)| fits(pattern)).map(|(_, methods)| &**methods)
    }
}

/// The document with a description of every response, which OpenAPI requires: the words of its status, where
/// there is no other.
pub(crate) fn with_descriptions(mut document: Value) -> Value {
    let methods = document["paths"].as_object_mut().into_iter().flatten();
    let operations = methods.filter_map(|(_, methods)| methods.as_object_mut()).flatten();
    let responses = operations.filter_map(|(_, operation)| operation["responses"].as_object_mut()).flatten();
    for (status, response) in responses {
        let reason =
            StatusCode::from_bytes(status.as_bytes()).ok().and_then(|status| status.canonical_reason());
        if response.get("description").is_none() {
            response["description"] = reason.unwrap_or("An answer").into();
        }
    }
    document
}

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
        document["components"]["schemas"][kind.settings_schema()] = schema(kind, &settable(kind));
    }
    document
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
            parameters.retain(|parameter| match parameter["name"].as_str() {
                Some("kind") => false,
                Some("sort") => kind == Kind::Link,
                _ => true,
            });
        }
        let schema = match &**method {
            "patch" => json!({ "$ref": format!("#/components/schemas/{}", kind.settings_schema()) }),
            "post" => of_texts(),
            _ => continue,
        };
        operation["requestBody"] =
            json!({ "content": { "application/json": { "schema": schema } }, "required": true });
    }
    methods
}

/// What an object may be made of: the keys of its section, each as text.
fn of_texts() -> Value {
    json!({ "type": "object", "maxProperties": MAX_CHANGES, "additionalProperties": { "type": "string" } })
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
    fn paths_have_methods() {
        let document = json!({ "paths": {
            "/v1/links": { "get": {}, "post": {} },
            "/v1/links/{name}": { "get": {}, "patch": {} },
            "/v1/routers/{router}/leases": { "put": {} },
        } });
        let methods = Methods::of(&document);
        for (path, expected) in [
            ("/v1/links", Some("GET, POST, HEAD")),
            ("/v1/links/up", Some("GET, PATCH, HEAD")),
            ("/v1/routers/a%2Fb/leases", Some("PUT")),
            ("/v1/routers/a/b/leases", None),
            ("/v1/ports", None),
            ("/v1", None),
        ] {
            assert_eq!(methods.of_path(path), expected, "{path}");
        }
    }

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
