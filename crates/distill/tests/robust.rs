//! Any two captures are refused with a reason, or become a valid scenario: the fuzz target's corpus, and
//! changed bytes.

#[path = "../../../fuzz/corpus.rs"]
mod corpus;
#[path = "exercise/distill.rs"]
mod exercise;

use corpus::corpus;
use proptest::prelude::*;

#[test]
fn replays_the_corpus() {
    let files = corpus("distill");
    assert!(files.len() >= 7);
    for (_, bytes) in files {
        exercise::run(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_captures_are_answered(
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        options in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let files = corpus("distill");
        let mut bytes = file.get(&files).1.clone();
        for (place, byte) in changes {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        bytes[0] = options;
        exercise::run(&bytes);
        exercise::run(&bytes[..cut.index(bytes.len())]);
    }
}
