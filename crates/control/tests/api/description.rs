//! The description, and the examples of the book.

use crate::fake::Fake;
use crate::request;
use crate::scratch::Scratch;
use longwire_control::{Instance, Server};
use serde_json::Value;
use std::sync::Arc;

#[test]
fn every_endpoint_is_described_and_answers() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let (_, document) = request(server.path(), "GET", "/v1/openapi.json", "", "");
    let mut described = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            described += 1;
            let summary = operation["summary"].as_str().unwrap();
            assert!(!summary.is_empty() && !summary.contains('{'), "{method} {path}");
            assert!(!operation["responses"].as_object().unwrap().is_empty(), "{method} {path}");
            let body = match (method.as_str(), path.rsplit('/').next().unwrap()) {
                ("put" | "post", "forwarders" | "{fid}") => r#"{"forwarder": {}}"#,
                (_, "leases") => r#"{"fids": [1]}"#,
                ("put", "state") => r#"{"data": "00"}"#,
                ("put", "scenario") => r#"{"toml": "", "partial": true}"#,
                ("post", "differences") => r#"{"toml": ""}"#,
                (_, "values") => r#"{"keys": ["00"]}"#,
                _ => "{}",
            };
            let path = path.replace("{router}", "core").replace("{fid}", "1").replace("{map}", "m");
            let names = [
                ("links", "up"),
                ("sources", "video"),
                ("media", "cell"),
                ("routers", "core"),
                ("flows", "core%2Fvoice"),
            ];
            let name = names.iter().find(|(collection, _)| path.starts_with(&format!("/v1/{collection}/")));
            let path = path.replace("{name}", name.map_or("none", |(_, name)| name));
            let method = method.to_uppercase();
            let (status, _) = request(server.path(), &method, &path, "application/json", body);
            // The instance has no forwarders and no ports.
            let known = !path.ends_with("/none");
            assert_eq!((status < 300, status == 404), (known, !known), "{method} {path}: {status}");
        }
    }
    // Three for each kind's collection and object, two more for links, and those of the scenario, of routers
    // and of the instance.
    assert_eq!(described, 7 * 3 + 2 + 5 + 2 + 2 + 18);
    let schemas = &document["components"]["schemas"];
    for shape in
        ["Info", "MapChange", "NewForwarder", "Object", "ObjectPage", "Problem", "RoutePage", "Summary"]
    {
        assert!(schemas[shape].is_object(), "{shape}");
    }
    // The settings of a change come from the instance.
    let body = &document["paths"]["/v1/links/{name}"]["patch"]["requestBody"]["content"]["application/json"];
    assert_eq!(body["schema"]["$ref"], "#/components/schemas/LinkSettings");
    let keys: Vec<&String> = schemas["LinkSettings"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["delay", "ramp.step", "rate"]);
    assert_eq!(schemas["LinkSettings"]["properties"]["rate"]["description"], "a help: a text");
    assert!(schemas["RouterSettings"]["patternProperties"]["^route\\..+"].is_object());
}

/// The examples of docs/book/control.md: blocks marked `http` are requests, each with its answer in the
/// `json` block below it.
#[test]
fn the_book_shows_what_is_answered() {
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/control.md");
    let book = std::fs::read_to_string(book).unwrap();
    let scratch = Scratch::new();
    let fake: Arc<dyn Instance> = Fake::named("demo");
    let server = Server::start(scratch.path(), fake).unwrap();
    let mut examples = 0;
    for part in book.split("```http\n").skip(1) {
        let (asked, rest) = part.split_once("```").unwrap();
        let (line, body) = asked.split_once('\n').unwrap();
        let (method, path) = line.split_once(' ').unwrap();
        let answer = rest.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
        let (_, answered) = request(server.path(), method, path.trim(), "application/json", body.trim());
        let expected = answer.replace("4242", &std::process::id().to_string());
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(answered, expected, "{line}");
        examples += 1;
    }
    assert!(examples >= 4, "the page has {examples} examples");
}
