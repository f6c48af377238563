//! The book's page on filters: its examples are parsed, and its error message is compared.

use longwire_expression::Expression;
use longwire_link::filter::RuleSet;

const PAGE: &str = include_str!("../../../docs/book/filters.md");

/// The page's blocks in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fenced = PAGE.split("\n```").skip(1).step_by(2);
    let divided = fenced.map(|block| block.split_once('\n').unwrap());
    divided.filter(|(found, _)| *found == language).map(|(_, text)| text).collect()
}

/// Code in the first column of the tables.
fn table_cells() -> impl Iterator<Item = &'static str> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| row.split(" | ").next().unwrap().split('`').skip(1).step_by(2))
}

#[test]
fn examples_are_read() {
    let (rules, expressions) = (blocks("rules"), blocks("expression"));
    assert!(!rules.is_empty() && !expressions.is_empty());
    for text in rules {
        text.parse::<RuleSet>().unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    for text in expressions.iter().flat_map(|block| block.lines()) {
        Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn tables_hold_what_there_is() {
    let mut seen = 0;
    for cell in table_cells() {
        let word = |word: &str| cell.split(' ').any(|found| found == word);
        let text = match cell.split(' ').next() {
            Some("drop" | "pass" | "mark" | "band" | "police" | "steer") => continue,
            Some("dscp") if word("N") => continue,
            _ if word("M") => cell.replace('M', "02:00:00:00:00:01"),
            _ if cell == "ip6 host A" => cell.replace('A', "fe80::1"),
            _ => cell.replace('A', "10.0.0.1"),
        };
        Expression::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
    let actions = ["drop", "pass", "steer b", "band 7", "mark", "dscp ef", "police 1 Mbit/s burst 2 kB"];
    let rules: String = actions.iter().map(|action| format!("{action} if ip\n")).collect();
    assert!(rules.parse::<RuleSet>().is_ok());
    assert!(actions.iter().all(|action| PAGE.contains(&format!("| `{}", action.split(' ').next().unwrap()))));
}

#[test]
fn the_error_is_told_as_shown() {
    let error = "pass\ndrop if tcp prot 80".parse::<RuleSet>().unwrap_err();
    assert_eq!(blocks("text"), [error.to_string()]);
}
