//! What can be set, from the description of the API.

use longwire_control::Kind;
use serde_json::Value;

/// A setting that a change may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// Its name; one that ends with a dot is to be continued: `route.`.
    pub(crate) key: String,
    /// What it sets, and which values it takes.
    pub(crate) about: String,
    /// Values that it takes, if they are words.
    pub(crate) words: Vec<String>,
}

/// The settings of objects of a kind, in the order of their names.
pub(crate) fn of(description: &Value, kind: Kind) -> Vec<Field> {
    let schema = &description["components"]["schemas"][kind.settings_schema()];
    let field = |key: String, about: &Value| Field {
        key,
        about: about["description"].as_str().unwrap_or_default().into(),
        words: about["examples"].as_array().into_iter().flatten().filter_map(text).collect(),
    };
    let named = schema["properties"].as_object().into_iter().flatten();
    // Some only a new object can be given.
    let named = named.filter(|(_, about)| about["x-only-new"] != true);
    let named = named.map(|(key, about)| field(key.clone(), about));
    // Such as ^route\..+
    let open = schema["patternProperties"].as_object().into_iter().flatten();
    let open = open.filter_map(|(pattern, about)| {
        let first = pattern.strip_prefix('^')?.strip_suffix("\\..+")?;
        Some(field(format!("{first}."), about))
    });
    let mut all: Vec<Field> = named.chain(open).collect();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    /// A description with a few settings of links and routers.
    pub(crate) fn description() -> Value {
        let about = |text: &str| json!({ "type": "string", "description": text });
        json!({ "components": { "schemas": {
            "LinkSettings": { "properties": {
                "rate": about("the rate: a rate such as \"10 Mbit/s\""),
                "delay": about("how long a packet takes: a time such as \"20 ms\""),
                "queue": about("the limit: a number of packets"),
                "queue.kind": { "description": "which kind it is: codel, red, tail-drop",
                    "examples": ["codel", "red", "tail-drop"] },
            } },
            "RouterSettings": { "properties": {}, "patternProperties": { "^route\\..+": about("a route") } },
        } } })
    }

    #[test]
    fn fields_come_from_the_description() {
        let links = of(&description(), Kind::Link);
        let keys: Vec<_> = links.iter().map(|field| field.key.as_str()).collect();
        assert_eq!(keys, ["delay", "queue", "queue.kind", "rate"]);
        assert_eq!(links[2].words, ["codel", "red", "tail-drop"]);
        assert_eq!(of(&description(), Kind::Router)[0].key, "route.");
        assert!(of(&Value::Null, Kind::Link).is_empty());
    }
}
