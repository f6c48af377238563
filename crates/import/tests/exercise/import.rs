//! What must hold for any bytes as something to import; also the fuzz target of this name.

use longwire_import::{Format, Source, import, netem_links};
use longwire_scenario::parse;

/// Imports the bytes, as the format that the first of them says. Either they are refused, with a fix, or the
/// scenario that is written can be read, unless it names files.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut letters = text.chars();
    let format = match letters.next() {
        Some('i') => Format::Ipfw,
        Some('s') => Format::Ns,
        Some('m') => Format::Mahimahi,
        Some('t') => Format::Theaterq,
        _ => Format::Netem,
    };
    let text = letters.as_str().trim_start_matches(' ');
    for file in [None, Some("some.file".to_owned())] {
        match import(format, &[Source { file, text: text.to_owned() }]) {
            Ok(imported) => {
                let scenario = imported.scenario;
                assert!(scenario.starts_with("# "), "{scenario}");
                if !names_files(&scenario) {
                    parse("imported.toml", &scenario)
                        .unwrap_or_else(|error| panic!("{text:?}\n{error}\nin\n{scenario}"));
                }
            }
            Err(error) => assert!(!error.fix.is_empty() && !error.what.is_empty(), "{error}"),
        }
    }
    let _ = netem_links(text);
}

/// Whether there is a trace, or a distribution that is none of those with names.
fn names_files(scenario: &str) -> bool {
    let known = ["uniform", "normal", "pareto", "pareto-normal"];
    let mut distributions = scenario.split("distribution = \"").skip(1);
    scenario.contains("file = \"")
        || distributions.any(|rest| !rest.split('"').next().is_some_and(|name| known.contains(&name)))
}
