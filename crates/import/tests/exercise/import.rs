//! Invariants for arbitrary bytes as an input; also the fuzz target `import`.

use longwire_import::{Format, Source, import, netem_links, quic_interop};
use longwire_scenario::parse;

/// Imports the bytes in the format given by the first of them. Either they are refused, with a fix, or the
/// written scenario is valid, unless it names files.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut letters = text.chars();
    let format = match letters.next() {
        Some('i') => Format::Ipfw,
        Some('s') => Format::Ns,
        Some('m') => Format::Mahimahi,
        Some('t') => Format::Theaterq,
        Some('x') => Format::Matrix,
        Some('c') => Format::Containerlab,
        Some('d') => Format::Compose,
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
    if let Err(error) = quic_interop(text) {
        assert!(!error.fix.is_empty() && !error.what.is_empty(), "{error}");
    }
}

/// Whether it names a trace or a custom distribution.
fn names_files(scenario: &str) -> bool {
    let known = ["uniform", "normal", "pareto", "pareto-normal"];
    let mut distributions = scenario.split("distribution = \"").skip(1);
    scenario.contains("file = \"")
        || distributions.any(|rest| !rest.split('"').next().is_some_and(|name| known.contains(&name)))
}
