//! The page of link characteristics has every kind of the registry, with an example and a link to its
//! settings, which are generated from the declarations. The page of profiles is the library's list.
#![forbid(unsafe_code)]

use longwire_block::Spec;
use longwire_scenario::library::{Figures, SHIPPED};
use longwire_scenario::plan_of;
use std::path::Path;

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book").join(name)).unwrap()
}

/// The part of a page under a heading, up to the next of its level or above.
fn part<'p>(page: &'p str, level: &str, heading: &str) -> Option<&'p str> {
    let start = page.find(&format!("\n{level} `{heading}`\n"))?;
    let rest = &page[start + level.len() + 1..];
    let ends = ["\n## ", "\n### "].into_iter().filter(|end| end.trim().len() <= level.len());
    let end = ends.filter_map(|end| rest.find(end)).min();
    Some(end.map_or(rest, |end| &rest[..end]))
}

/// Whether the example in `text` has a link with the block that `spec` describes.
fn shows(text: &str, spec: &Spec) -> bool {
    let hosts = "\n[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
        address = \"10.0.0.2/24\"\n";
    let examples = text.split("\n```toml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    examples.into_iter().any(|example| {
        let plan = plan_of(&format!("{example}{hosts}"));
        plan.profiles.iter().any(|profile| profile.blocks.iter().any(|(other, _)| other.is(spec)))
    })
}

#[test]
fn every_kind_has_a_section() {
    let page = page("links.md");
    for spec in longwire_link::registry() {
        let (key, kind) = (spec.key, spec.kind);
        let section = part(&page, "##", key).unwrap_or_else(|| panic!("no heading for {key}"));
        // Queues have a page of their own, with tests of its own.
        if key == "queue" {
            assert!(section.contains(&format!("`{kind}`")), "queue {kind}");
            continue;
        }
        let text = part(section, "###", kind).unwrap_or_else(|| panic!("no heading for {key} {kind}"));
        let settings = format!("\n[Settings](reference.md#{key}-{kind})\n");
        assert!(text.contains(&settings), "{key} {kind} has no link to its settings");
        assert!(shows(text, spec), "{key} {kind} has no example");
    }
}

#[test]
fn every_section_is_of_a_kind() {
    let page = page("links.md");
    let registry = longwire_link::registry();
    let mut key = "";
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## `") {
            key = heading.trim_end_matches('`');
            assert!(registry.iter().any(|spec| spec.key == key), "{key}");
        } else if let Some(kind) = line.strip_prefix("### `") {
            let kind = kind.trim_end_matches('`');
            assert!(registry.iter().any(|spec| (spec.key, spec.kind) == (key, kind)), "{key} {kind}");
        }
    }
}

/// The table of profiles matches the library.
#[test]
fn the_profiles_are_listed() {
    let page = page("profiles.md");
    let direction = |figures: &Figures| {
        let Figures { rate, delay, loss, queue } = figures;
        format!("{rate}; {delay}; loss {loss}; {queue}")
    };
    let mut rows = Vec::new();
    for shipped in SHIPPED {
        let about = shipped.description().unwrap();
        let (down, up) = (direction(&about.forward), direction(&about.backward));
        let up = if up == down { "the same".into() } else { up };
        rows.push(format!("| `{}` | {} | {down} | {up} | {} |", shipped.name, about.summary, about.source));
    }
    let listed: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(listed, rows, "the table should be:\n{}\n", rows.join("\n"));
}

#[test]
fn the_reference_is_current() {
    let found = page("reference.md");
    let wanted = longwire_scenario::reference();
    let differs = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    assert_eq!(differs, None, "longwire blocks --markdown > docs/book/reference.md makes the page");
    assert_eq!(found, wanted);
}
