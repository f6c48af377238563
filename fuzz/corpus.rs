//! Corpora of the fuzz targets, for the tests that replay them.
#![allow(dead_code, reason = "each test program includes this module and uses its own part")]

use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// The files of a target's corpus, in the order of their names.
pub fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// The files of a target's corpus as texts.
pub fn texts(target: &str) -> Vec<String> {
    corpus(target).into_iter().map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect()
}

/// A file of a target's corpus with up to five of its bytes replaced by characters that match `characters`.
pub fn changed(target: &str, characters: &'static str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let files: Vec<_> = corpus(target).into_iter().map(|(_, bytes)| bytes).collect();
    let changes = prop::collection::vec((any::<prop::sample::Index>(), characters), 0..6);
    (prop::sample::select(files), changes).prop_map(|(mut bytes, changes)| {
        for (place, text) in changes {
            if !bytes.is_empty() {
                let at = place.index(bytes.len());
                bytes[at] = text.as_bytes()[0];
            }
        }
        bytes
    })
}
