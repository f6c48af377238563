//! The page of link characteristics has a row for every kind of the registry: a link to its settings, which
//! are generated from the declarations, and an example. The page of profiles is the library's list.

use longwire_block::Spec;
use longwire_scenario::library::{Figures, SHIPPED};
use longwire_scenario::plan_of;
use std::path::Path;

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book").join(name)).unwrap()
}

/// A row of a table of kinds: ``| [`KIND`](LINK) | `EXAMPLE` | …``, under the heading of its key.
struct Row<'p> {
    key: &'p str,
    kind: &'p str,
    link: &'p str,
    example: &'p str,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let mut key = "";
    let mut rows = Vec::new();
    for line in page.lines() {
        key = line.strip_prefix("## `").map_or(key, |heading| heading.trim_end_matches('`'));
        let Some((kind, rest)) = line.strip_prefix("| [`").and_then(|row| row.split_once("`](")) else {
            continue;
        };
        let (link, rest) = rest.split_once(") | `").unwrap_or_else(|| panic!("no example: {line}"));
        rows.push(Row { key, kind, link, example: rest.split('`').next().unwrap() });
    }
    rows
}

/// Whether a link with this example has the block that `spec` describes.
fn shows(example: &str, spec: &Spec) -> bool {
    let host = |name, last| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{last}/24\"\n");
    let hosts = host("a", 1) + &host("b", 2);
    let plan = plan_of(&format!("[[link]]\nfrom = \"a\"\nto = \"b\"\n{example}\n{hosts}"));
    plan.profiles.iter().any(|profile| profile.blocks.iter().any(|(other, _)| other.is(spec)))
}

#[test]
fn every_kind_has_a_row() {
    let page = page("links.md");
    let rows = rows(&page);
    for spec in longwire_link::registry() {
        let (key, kind) = (spec.key, spec.kind);
        // Queues have a page of their own, with tests of its own.
        if key == "queue" {
            assert!(page.contains(&format!("`{kind}`")), "queue {kind}");
            continue;
        }
        let row = rows.iter().find(|row| (row.key, row.kind) == (key, kind));
        let row = row.unwrap_or_else(|| panic!("no row for {key} {kind}"));
        assert_eq!(row.link, format!("reference.md#{key}-{kind}"));
        assert!(shows(row.example, spec), "{key} {kind}: {}", row.example);
    }
}

#[test]
fn every_row_is_of_a_kind() {
    let registry = longwire_link::registry();
    for Row { key, kind, .. } in rows(&page("links.md")) {
        assert!(registry.iter().any(|spec| (spec.key, spec.kind) == (key, kind)), "{key} {kind}");
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
