//! JSON schemas of settings, from their declarations.

use crate::written::templated;
use longwire_settings::{Fallback, Grammar, Param, ParamKind, Spec};
use longwire_units::{Nanos, Probability, Rate};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

/// Adds a spec's settings to a section; switches also take booleans.
pub fn add_row(section: &mut Value, spec: &Spec) {
    for row in spec.params {
        let mut schema = param(row);
        if row.is_switch() {
            schema["anyOf"][0]["enum"] = json!(["no", "yes", false, true]);
        }
        section["properties"][row.name] = schema;
        if row.default.is_required() {
            let mut required = section["required"].as_array().cloned().unwrap_or_default();
            required.push(json!(row.name));
            section["required"] = json!(required);
        }
    }
}

/// The schema of a setting.
pub fn param(param: &Param) -> Value {
    let generator = &mut SchemaGenerator::default();
    let kind: Value = match param.kind {
        ParamKind::Rate => Rate::json_schema(generator).into(),
        ParamKind::Time { .. } => Nanos::json_schema(generator).into(),
        ParamKind::Probability => {
            json!({ "anyOf": [Probability::json_schema(generator), { "type": "number" }] })
        }
        ParamKind::Integer { min, max } => {
            let mut number = json!({ "type": ["integer", "string"], "minimum": min, "pattern": "^[0-9]+$" });
            if max < u64::MAX {
                number["maximum"] = json!(max);
            }
            number
        }
        ParamKind::Limit => {
            json!({ "anyOf": [{ "type": "string", "examples": ["100 packets", "64 KiB", "50 ms"] },
                { "type": "integer", "minimum": 0 }] })
        }
        ParamKind::Size { min, max } => {
            let description = format!("a size from {min} to {max}");
            json!({ "type": ["string", "integer"], "description": description, "examples": ["64 KiB"] })
        }
        ParamKind::Decimal { min, max } => {
            let number = |millionths: u64| millionths as f64 / 1e6;
            json!({ "anyOf": [
                { "type": "number", "minimum": number(min), "maximum": number(max) },
                { "type": "string", "pattern": "^[0-9]*\\.?[0-9]*$" },
            ] })
        }
        ParamKind::Parsed(Grammar { form: Some(form), examples, .. }) => {
            let text = json!({ "type": "string", "pattern": form.pattern, "examples": examples });
            match form.numbers {
                true => json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, text] }),
                false => text,
            }
        }
        ParamKind::Parsed(grammar) => json!({ "anyOf": [
            { "type": ["string", "number"], "description": grammar.wanted },
            { "type": "array", "items": { "type": "string" }, "description": grammar.wanted },
        ] }),
        ParamKind::Choice(words) => json!({ "enum": words }),
    };
    let mut schema = templated(kind);
    schema["description"] = json!(param.help);
    match param.default {
        Fallback::Required => {}
        Fallback::Value(default) => schema["default"] = json!(default),
        Fallback::Computed(words) => {
            schema["description"] = json!(format!("{} Default: {words}.", param.help));
        }
    }
    schema
}
