//! The files that a scenario names, on whose contents the results depend, too.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The names in a scenario's text: what is in quotes. Nothing here knows which settings name files.
pub(crate) fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split(['"', '\''])
}

/// Adds the contents of those files to a hash that are in `folder` under one of these names, or in a
/// profile's file among them: traces, captures, programs.
pub(crate) fn add_contents<'n>(hash: &mut Sha256, folder: &Path, names: impl Iterator<Item = &'n str>) {
    let names: BTreeSet<&str> = names.map(without_direction).collect();
    let profiles = names.iter().filter(|name| name.ends_with(".toml"));
    let profiles: Vec<String> =
        profiles.filter_map(|name| std::fs::read_to_string(folder.join(name)).ok()).collect();
    let inner = profiles.iter().flat_map(|text| quoted(text));
    for name in names.iter().copied().chain(inner) {
        let path = folder.join(name);
        // A file that can't be read fails the tasks that need it.
        if path.is_file()
            && let Ok(content) = hash_of(&path)
        {
            hash.update(content);
        }
    }
}

/// The file of a profile of which one direction is named: `my.toml.backward`.
fn without_direction(name: &str) -> &str {
    name.strip_suffix(".forward").or_else(|| name.strip_suffix(".backward")).unwrap_or(name)
}

fn hash_of(path: &Path) -> io::Result<[u8; 32]> {
    let (mut file, mut hash, mut chunk) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hash.finalize().into()),
            length => hash.update(&chunk[..length]),
        }
    }
}
