//! No bytes as a trace make anything panic: the fuzzer's corpus, and its characters changed.
#![forbid(unsafe_code)]

#[path = "exercise/trace.rs"]
mod exercise;

use proptest::prelude::*;
use std::path::Path;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/trace");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.map(|path| std::fs::read(path).unwrap()).collect();
    files.sort();
    files
}

#[test]
fn replays_the_corpus() {
    let files = corpus();
    assert!(files.len() >= 8);
    files.iter().for_each(|bytes| exercise::run(bytes));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn is_answered_when_changed(
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[0-9,;:.#% \n\tkMbits-]"), 0..6),
    ) {
        let files = corpus();
        let mut bytes = file.get(&files).clone();
        for (place, text) in changes {
            if !bytes.is_empty() {
                let at = place.index(bytes.len());
                bytes[at] = text.as_bytes()[0];
            }
        }
        exercise::run(&bytes);
    }
}
