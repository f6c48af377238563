//! The book's examples are valid: the scenarios in it and in the README are read, and the reference page has
//! every key.

use longwire_scenario::{parse, schema};
use serde_json::{Map, Value};
use std::path::Path;

const HOSTS: &str = "\n[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
    address = \"10.0.0.2/24\"\n";

fn page() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/scenario.md");
    std::fs::read_to_string(file).unwrap()
}

/// The page's blocks: language and text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

/// An example, with the two hosts that it implies.
fn whole(example: &str) -> String {
    let peopled = example.contains("[[host]]") || example.contains("[[port]]");
    if peopled { example.into() } else { format!("{example}{HOSTS}") }
}

/// The README and every page of the book: name and text.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let book = std::fs::read_dir(root.join("docs/book")).unwrap().map(|entry| entry.unwrap().path());
    let files = book.filter(|file| file.extension().is_some_and(|ending| ending == "md"));
    let files = files.chain([root.join("README.md")]);
    files.map(|file| (file.display().to_string(), std::fs::read_to_string(&file).unwrap())).collect()
}

#[test]
fn examples_are_scenarios() {
    let mut seen = 0;
    for (name, page) in pages() {
        for (_, example) in blocks(&page).into_iter().filter(|(language, _)| *language == "toml") {
            let plan = parse("example.toml", &whole(example))
                .unwrap_or_else(|error| panic!("{name}: {error}\nin:\n{example}"));
            // An example of one section need not have links, nor traffic for all of them.
            let usual = ["there is no link", "no packets take it"];
            let odd = plan.notes.iter().find(|note| !usual.iter().any(|usual| note.what.contains(usual)));
            assert!(odd.is_none(), "{name}: {}\nin:\n{example}", odd.unwrap());
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen}");
}

#[test]
fn errors_are_reported_as_shown() {
    let page = page();
    let mut shown = 0;
    for pair in blocks(&page).windows(2).filter(|pair| pair[0].0 == "toml wrong") {
        let error = parse("example.toml", &whole(pair[0].1)).unwrap_err();
        assert_eq!(error.to_string(), pair[1].1);
        shown += 1;
    }
    assert!(shown > 0);
}

#[test]
fn has_every_key() {
    let page = page();
    let schema = schema();
    let properties = |part: &Value| part["properties"].as_object().cloned().unwrap_or_default();
    for (section, part) in properties(&schema) {
        let keys = if part["items"].is_object() { properties(&part["items"]) } else { properties(&part) };
        let heading = [format!("## `[{section}]`"), format!("## `[[{section}]]`")];
        let start = heading.iter().find_map(|heading| page.find(heading.as_str()));
        if keys.is_empty() {
            assert!(page.contains(&format!("| `{section}` |")), "{section}");
            continue;
        }
        let rest = &page[start.unwrap_or_else(|| panic!("no heading for {section}"))..];
        let text = rest[4..].find("\n## ").map_or(rest, |end| &rest[..end + 4]);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        // Events change settings of links, sources and media, which have their own tables.
        let mut elsewhere = Map::new();
        if section == "at" {
            let sections =
                ["link", "source", "medium"].map(|other| properties(&schema["properties"][other]["items"]));
            elsewhere.extend(sections.into_iter().flatten());
        }
        for key in keys.keys().filter(|key| !elsewhere.contains_key(*key) || *key == "count") {
            let named = rows.iter().any(|row| row.split('|').nth(1).unwrap().contains(&format!("`{key}`")));
            assert!(named || section == "fidelity", "the page has no row for {section}.{key}");
        }
    }
}
