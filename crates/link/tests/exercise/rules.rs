//! Invariants for arbitrary text of a parameter with its own grammar: rules, classes, lists; also the fuzz
//! target `rules`.

use longwire_block::{Grammar, ParamKind};
use longwire_link::registry;
use std::path::Path;

/// The grammars of all kinds of links, with their parameters' names.
fn grammars() -> Vec<(&'static str, Grammar)> {
    let params = registry().into_iter().flat_map(|spec| spec.params);
    params
        .filter_map(|param| match param.kind {
            ParamKind::Parsed(grammar) => Some((param.name, grammar)),
            _ => None,
        })
        .collect()
}

/// Parses the bytes with each of them. Errors must be sentences.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // A long path is not opened; rules and lists do not begin with a slash.
    if text.trim_start().starts_with('/') {
        return;
    }
    for (name, grammar) in grammars() {
        if let Err(error) = (grammar.read)(&text, Path::new("/nonexistent")) {
            assert!(!error.is_empty() && error.len() < 2000, "{name}: {text:?}: {error}");
        }
    }
}
