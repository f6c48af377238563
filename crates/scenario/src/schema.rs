//! The JSON schema of scenario files, from the structures that read them and the block registry; and the
//! book's reference page of all settings, from their declarations.

use crate::file::{At, Direction, File, Link};
use crate::read::BESIDE_RATE;
use crate::setting_schema::{add_row, param};
use crate::settings::{
    AtSettings, BridgeSettings, ControlSettings, DirectionSettings, EngineSettings, Fidelity, FlowSettings,
    ForwarderSettings, HopSettings, HostSettings, LinkSettings, NespSettings, PoliceSettings, RepeatSettings,
    RingSettings, RouterPortSettings, RouterSettings, ScenarioSettings, SlowPathSettings, SourceSettings,
};
use crate::source::{INTERVAL, MODEL, source_rows};
use crate::written::templated;
use longwire_block::{Param, Settings as _, Spec};
use longwire_drivers::{DRIVERS, Driver};
use longwire_link::{MEDIA, without};
use longwire_random::process;
use longwire_settings::markdown;
use longwire_units::Nanos;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The JSON schema (draft 2020-12) of scenario files.
pub fn schema() -> Value {
    let generator =
        || SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true).into_generator();
    let mut root: Value = generator().into_root_schema_for::<File>().into();
    let mut direction: Value = generator().into_root_schema_for::<Direction>().into();
    let mut link: Value = generator().into_root_schema_for::<Link>().into();
    let mut at: Value = generator().into_root_schema_for::<At>().into();
    for (key, schema) in blocks(&longwire_link::registry()) {
        at["properties"][&key] = schema.clone();
        direction["properties"][&key] = schema.clone();
        link["properties"][&key] = schema;
    }
    for part in [&mut direction, &mut link, &mut at] {
        let fields = part.as_object_mut().expect("a schema is an object");
        fields.remove("$schema");
        fields.remove("title");
    }
    for (way, what) in [("forward", "from the first end of between"), ("backward", "back")] {
        let mut schema = direction.clone();
        schema["description"] = json!(format!("Settings of the direction {what}."));
        link["properties"][way] = schema;
    }
    add_row(&mut root, &ScenarioSettings::SPEC);
    link["oneOf"] = json!([{ "required": ["from", "to"] }, { "required": ["between"] }]);
    root["properties"]["link"]["items"] = link;
    root["properties"]["at"]["items"] = at;
    let medium = &mut root["properties"]["medium"]["items"]["properties"];
    MEDIA.iter().flat_map(|spec| spec.params).for_each(|row| add_param(medium, row));
    add_drivers(&mut root["properties"]["port"]["items"]["properties"]);
    for section in ["source", "at"] {
        add_source(&mut root["properties"][section]["items"]["properties"]);
    }
    let at = &mut root["properties"]["at"]["items"]["properties"];
    let rows = MEDIA.iter().flat_map(|spec| spec.params);
    rows.for_each(|row| add_param(at, row));
    root["title"] = json!("Longwire scenario");
    root
}

/// Adds the drivers' settings to a port's keys, each with the drivers that have it.
fn add_drivers(port: &mut Value) {
    for row in DRIVERS.iter().flat_map(|driver| driver.spec.params) {
        let has = |driver: &&&Driver| driver.spec.params.iter().any(|other| other.name == row.name);
        let words: Vec<_> = DRIVERS.iter().filter(has).map(|driver| driver.word()).collect();
        if port[row.name].is_null() {
            port[row.name] = param(row);
            port[row.name]["description"] = json!(format!("{} ({})", row.help, words.join(", ")));
        }
    }
}

/// Adds the changeable settings of a traffic source.
fn add_source(at: &mut Value) {
    at[MODEL] = templated(json!({ "enum": process::SPECS.iter().map(|spec| spec.kind).collect::<Vec<_>>() }));
    at[MODEL]["description"] = json!("Model of a traffic source's frames from then on. Default: as before.");
    at[INTERVAL] = Nanos::json_schema(&mut SchemaGenerator::default()).into();
    at[INTERVAL]["description"] =
        json!("Time between a traffic source's frames, instead of the rate (cbr, poisson).");
    let rows = source_rows().flat_map(|spec| spec.params);
    for row in rows {
        // Keys of the section itself are described there.
        if at[row.name].get("anyOf").is_some() || at[row.name].is_null() {
            add_param(at, row);
        }
    }
}

/// Adds a parameter as one meaning of its name.
fn add_param(properties: &mut Value, row: &Param) {
    if properties[row.name].is_null() {
        properties[row.name] = json!({ "description": row.help, "anyOf": [] });
    }
    let (kinds, schema) = (properties[row.name]["anyOf"].as_array_mut(), param(row));
    let kinds = kinds.expect("made above, or of a link's key");
    if !kinds.contains(&schema) {
        kinds.push(schema);
    }
}

/// A schema for each link key.
fn blocks(registry: &[&'static Spec]) -> Map<String, Value> {
    let mut keys: Map<String, Value> = Map::new();
    for spec in registry.iter().filter(|spec| !spec.params.is_empty()) {
        let first = !keys.contains_key(spec.key);
        let known =
            keys.entry(spec.key).or_insert_with(|| json!({ "description": spec.summary, "anyOf": [] }));
        let list = known["anyOf"].as_array_mut().expect("made above");
        if first {
            list.push(param(&spec.params[0]));
        }
        list.push(table(spec));
    }
    for (key, known) in &mut keys {
        // The name of a kind selects that block with its defaults.
        let of_key = registry.iter().filter(|spec| spec.key == key);
        let bare = of_key.filter(|spec| spec.params.iter().all(|param| !param.default.is_required()));
        let none = without(key).map(|spec| spec.kind);
        let kinds: Vec<&str> = bare.map(|spec| spec.kind).chain(none).collect();
        let forms = known["anyOf"].as_array_mut().expect("made above");
        if !kinds.is_empty() {
            forms.push(json!({ "enum": kinds }));
        }
        if none.is_some() {
            forms.push(json!({ "type": "array", "maxItems": 0, "description": "none of it" }));
        }
    }
    let rate = registry.iter().find(|spec| spec.key == "rate");
    for name in BESIDE_RATE {
        if let Some(found) = rate.and_then(|spec| spec.params.iter().find(|param| param.name == name)) {
            keys.insert(name.into(), param(found));
        }
    }
    keys
}

/// The long form of a block: a table of its parameters. Without `kind` it is the first kind that has them
/// all.
fn table(spec: &Spec) -> Value {
    let kind = json!({ "const": spec.kind, "description": spec.summary });
    let mut table =
        json!({ "type": "object", "properties": { "kind": kind }, "additionalProperties": false });
    add_row(&mut table, spec);
    table
}

/// The page as Markdown. `longwire blocks --markdown` prints it, and a test compares it with the book's.
pub fn reference() -> String {
    let mut page = String::from(
        "# Settings\n\nEvery setting, with its values, its default, and whether it can change in a run.\n\
         `longwire blocks --markdown > docs/book/reference.md` generates this page from the \
         declarations.\n[Scenario files](scenario.md), [Link characteristics](links.md), \
         [Queues](queues.md) and\n[Shared media](media.md) say what the settings do.\n",
    );
    let sections = [
        ScenarioSettings::SPEC,
        RepeatSettings::SPEC,
        EngineSettings::SPEC,
        Fidelity::SPEC,
        NespSettings::SPEC,
        HostSettings::SPEC,
        BridgeSettings::SPEC,
        RouterSettings::SPEC,
        RouterPortSettings::SPEC,
        HopSettings::SPEC,
        FlowSettings::SPEC,
        RingSettings::SPEC,
        PoliceSettings::SPEC,
        SlowPathSettings::SPEC,
        ControlSettings::SPEC,
        ForwarderSettings::SPEC,
        LinkSettings::SPEC,
        DirectionSettings::SPEC,
        SourceSettings::SPEC,
        AtSettings::SPEC,
    ];
    let links = longwire_link::registry().into_iter().filter(|spec| spec.key != "background");
    page += &markdown("Sections", &sections);
    page += &markdown("Port drivers", DRIVERS.iter().map(|driver| &driver.spec));
    page += &markdown("Links", links);
    page += &markdown("Traffic sources, and background traffic of links", source_rows());
    page + &markdown("Shared media", MEDIA.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn has_every_key_of_the_registry() {
        let registry = longwire_link::registry();
        let schema = schema();
        let link = &schema["properties"]["link"]["items"];
        for spec in registry {
            for place in [link, &link["properties"]["forward"], &schema["properties"]["at"]["items"]] {
                assert!(place["properties"][spec.key]["anyOf"].is_array(), "{}", spec.key);
                assert_eq!(place["additionalProperties"], json!(false));
            }
        }
        assert_eq!(link["properties"]["framing"]["anyOf"][0]["enum"][0], "ethernet");
        assert!(link["properties"]["between"].is_object() && link["properties"]["match"].is_object());
        assert_eq!(link["properties"]["mtu"]["anyOf"][0]["anyOf"][0]["maximum"], 65_535);
    }

    /// The keys that reading knows, as it tells them to whoever writes one that it does not.
    fn known_to_reading(entry: &str) -> BTreeSet<String> {
        let error = crate::parse("s.toml", &format!("{entry}\nzzzzzzzz = 1\n")).unwrap_err();
        let told = error.findings.iter().find(|finding| finding.what.contains("zzzzzzzz")).unwrap();
        let known = told.fix.strip_prefix("there are ").unwrap_or_else(|| panic!("{told}"));
        known.split(", ").map(str::to_owned).collect()
    }

    #[test]
    fn has_the_keys_that_can_be_read_and_no_others() {
        let schema = schema();
        for (section, entries) in [
            ("host", &["[[host]]"][..]),
            ("port", &["[[port]]"]),
            ("bridge", &["[[bridge]]"]),
            ("link", &["[[link]]"]),
            ("medium", &["[[medium]]"]),
            ("path", &["[[path]]"]),
            ("source", &["[[source]]"]),
            ("at", &["[[at]]\nlink = \"a\"", "[[at]]\nsource = \"a\"", "[[at]]\nmedium = \"a\""]),
        ] {
            let read: BTreeSet<_> = entries.iter().flat_map(|entry| known_to_reading(entry)).collect();
            let properties = schema["properties"][section]["items"]["properties"].as_object().unwrap();
            assert_eq!(properties.keys().cloned().collect::<BTreeSet<_>>(), read, "{section}");
        }
    }

    #[test]
    fn describes_every_key() {
        let schema = schema();
        let sections = schema["properties"].as_object().unwrap();
        for (section, part) in sections {
            assert!(part["description"].is_string(), "{section}");
            let fields = part["items"]["properties"].as_object();
            for (key, field) in fields.into_iter().flatten() {
                assert!(field["description"].is_string(), "{section}.{key}: {field}");
            }
        }
        assert_eq!(sections.len(), 15);
        assert_eq!(sections["host"]["items"]["required"], json!(["name", "address"]));
    }

    #[test]
    fn all_settings_of_links_sources_and_media_are_said_to_change_in_a_run() {
        let links = longwire_link::registry();
        let all = links.into_iter().chain(source_rows()).chain(MEDIA.iter().copied());
        let fixed = all.filter(|spec| !spec.params.iter().all(|param| param.live));
        let fixed: Vec<_> = fixed.map(|spec| (spec.key, spec.kind)).collect();
        assert!(fixed.is_empty(), "{fixed:?}");
    }
}
