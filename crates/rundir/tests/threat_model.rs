//! Each attack in the book's threat model names a test that exists.

use std::fs;
use std::path::Path;

#[test]
fn each_line_of_the_threat_model_has_its_test() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book");
    let page = fs::read_to_string(book.join("threat-model.md")).unwrap();
    let attacks = page.split("\n## ").filter(|part| part.contains("| test |"));
    let rows: Vec<_> = attacks.flat_map(str::lines).filter(|line| line.starts_with("| ")).collect();
    let rows: Vec<_> = rows.into_iter().filter(|line| !line.ends_with("| test |")).collect();
    assert!(rows.len() > 30, "{}", rows.len());
    for row in rows {
        let test = row.split("[`").nth(1).unwrap_or_else(|| panic!("no test: {row}"));
        let (name, rest) = test.split_once("`](").unwrap();
        let file = rest.split(')').next().unwrap();
        let text = fs::read_to_string(book.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(&format!("fn {name}(")), "{file} has no test {name}");
    }
}
