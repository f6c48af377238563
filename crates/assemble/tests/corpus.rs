//! The fuzz target's corpus, unmodified and with pieces changed.

#[path = "exercise/scenario.rs"]
mod exercise;

use proptest::prelude::*;
use std::path::Path;

/// The files of the corpus, and the examples.
fn corpus() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["fuzz/corpus/scenario", "scenarios"] {
        let paths = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        files.extend(paths.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap()));
    }
    files
}

#[test]
fn is_answered() {
    let files = corpus();
    assert!(files.len() > 10);
    for bytes in files {
        exercise::run(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Lines of two files mixed, with some left out.
    #[test]
    fn is_answered_when_mixed(
        one in any::<prop::sample::Index>(),
        two in any::<prop::sample::Index>(),
        keep in prop::collection::vec(any::<bool>(), 60),
    ) {
        let files = corpus();
        let (one, two) = (one.get(&files), two.get(&files));
        let lines = one.split(|b| *b == b'\n').chain(two.split(|b| *b == b'\n'));
        let kept = lines.zip(keep.iter().cycle()).filter(|(_, keep)| **keep).map(|(line, _)| line);
        exercise::run(&kept.collect::<Vec<_>>().join(&b'\n'));
    }
}
