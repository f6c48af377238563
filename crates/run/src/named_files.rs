//! The files that a scenario names, as far as its text shows them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The names in a scenario's text: what is in quotes. Nothing here knows which settings name files.
pub fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split(['"', '\''])
}

/// The files in `folder` that have one of these names, or that a profile's file among them names: traces,
/// captures, programs.
pub fn named_files<'n>(folder: &Path, names: impl Iterator<Item = &'n str>) -> Vec<PathBuf> {
    let names: BTreeSet<&str> = names.map(without_direction).collect();
    let profiles = names.iter().filter(|name| name.ends_with(".toml"));
    let profiles: Vec<String> =
        profiles.filter_map(|name| std::fs::read_to_string(folder.join(name)).ok()).collect();
    let inner = profiles.iter().flat_map(|text| quoted(text));
    let paths = names.iter().copied().chain(inner).map(|name| folder.join(name));
    paths.filter(|path| path.is_file()).collect()
}

/// The file of a profile of which one direction is named: `my.toml.backward`.
fn without_direction(name: &str) -> &str {
    name.strip_suffix(".forward").or_else(|| name.strip_suffix(".backward")).unwrap_or(name)
}
