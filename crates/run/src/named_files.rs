//! The files that a scenario names, as far as its text shows them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The names in a scenario's text: what is in quotes. Nothing here knows which settings name files.
pub fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split(['"', '\''])
}

/// Longest file of a profile in bytes.
const LONGEST_PROFILE: u64 = 1 << 20;

/// The files in `folder` that have one of these names, or that a profile's file among them names: traces,
/// captures, programs.
pub fn named_files<'n>(folder: &Path, names: impl Iterator<Item = &'n str>) -> Vec<PathBuf> {
    // A file that is no profile may have a name that ends like a direction.
    let names: BTreeSet<&str> = names.flat_map(|name| [name, without_direction(name)]).collect();
    let named = names.into_iter().filter_map(|name| Some((name, file_in(folder, name)?)));
    let named: Vec<(&str, PathBuf)> = named.collect();
    let profiles = named.iter().filter(|(name, _)| name.ends_with(".toml") || name.contains('/'));
    let profiles: Vec<String> = profiles.filter_map(|(_, path)| profile_text(path)).collect();
    let inner = profiles.iter().flat_map(|text| quoted(text)).filter_map(|name| file_in(folder, name));
    named.into_iter().map(|(_, path)| path).chain(inner).collect()
}

/// The file of this name; none if there is none, or a pipe, which would be waited for.
fn file_in(folder: &Path, name: &str) -> Option<PathBuf> {
    Some(folder.join(name)).filter(|path| path.is_file())
}

/// The text of a file, if it may be a profile: a capture is longer.
fn profile_text(path: &Path) -> Option<String> {
    let may_be = std::fs::metadata(path).is_ok_and(|known| known.len() <= LONGEST_PROFILE);
    may_be.then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// The file of a profile of which one direction is named: `my.toml.backward`.
fn without_direction(name: &str) -> &str {
    name.strip_suffix(".forward").or_else(|| name.strip_suffix(".backward")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn profiles_lead_to_other_files() {
        let folder = std::env::temp_dir().join(format!("longwire-named-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let profile = "[forward]\nrate = { kind = \"trace\", file = \"down\" }\n";
        for (name, text) in [("mine.toml", profile), ("other", profile), ("down", ""), ("up.forward", "")] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        assert!(Command::new("mkfifo").arg(folder.join("pipe.toml")).status().unwrap().success());
        for (named, wanted) in [
            ("mine.toml", &["mine.toml", "down"][..]),
            ("mine.toml.backward", &["mine.toml", "down"]),
            ("./other.forward", &["./other", "down"]),
            ("up.forward", &["up.forward"]),
            ("pipe.toml", &[]),
            ("missing.toml", &[]),
        ] {
            let wanted: Vec<PathBuf> = wanted.iter().map(|name| folder.join(name)).collect();
            assert_eq!(named_files(&folder, [named].into_iter()), wanted, "{named}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
