//! Arbitrary texts of rules, classes or lists never cause a panic: the fuzzer's corpus, and its words in any
//! order.

#[path = "../../../fuzz/corpus.rs"]
mod corpus;
#[path = "exercise/rules.rs"]
mod exercise;

use corpus::texts;
use proptest::prelude::*;
use std::path::Path;

#[test]
fn replays_the_corpus() {
    let files = texts("rules");
    assert!(files.len() >= 8 && exercise::grammars().len() >= 8);
    files.iter().for_each(|text| exercise::run(text.as_bytes()));
}

#[test]
fn reads_its_examples() {
    for (name, grammar) in exercise::grammars() {
        for example in grammar.examples {
            let read = (grammar.read)(example, Path::new("/nonexistent"));
            assert!(read.is_ok(), "{name}: {example}: {:?}", read.err());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn words_in_any_order(
        one in any::<prop::sample::Index>(),
        two in any::<prop::sample::Index>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let files = texts("rules");
        let (one, two) = (one.get(&files), two.get(&files));
        let words: Vec<&str> =
            one.split_inclusive([' ', '\n']).chain(two.split_inclusive([' ', '\n'])).collect();
        let places = places.iter().filter(|_| !words.is_empty());
        let text: String = places.map(|place| *place.get(&words)).collect();
        exercise::run(text.as_bytes());
    }
}
