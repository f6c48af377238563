//! Any input is refused with a fix, or becomes a valid scenario: the fuzz target's corpus, and its words in
//! any order.

#[path = "../../../fuzz/corpus.rs"]
mod corpus;
#[path = "exercise/import.rs"]
mod exercise;

use corpus::texts;
use proptest::prelude::*;

#[test]
fn replays_the_corpus() {
    let files = texts("import");
    assert!(files.len() >= 15);
    for text in files {
        exercise::run(text.as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None,
        ..ProptestConfig::default() })]

    /// Words of one file in another order, with some omitted and some repeated.
    #[test]
    fn words_in_any_order(
        file in any::<prop::sample::Index>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        prefix in 0usize..8,
    ) {
        let files = texts("import");
        let words: Vec<&str> = file.get(&files).split_inclusive([' ', '\n']).collect();
        let drawn = places.iter().map(|place| *place.get(&words));
        let text: String = words.iter().take(1 + prefix).copied().chain(drawn).collect();
        exercise::run(text.as_bytes());
    }
}
