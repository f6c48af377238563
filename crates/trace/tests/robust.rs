//! Arbitrary bytes as a trace never cause a panic: the fuzzer's corpus, and mutations of it.
#![forbid(unsafe_code)]

#[path = "../../../fuzz/corpus.rs"]
mod corpus;
#[path = "exercise/trace.rs"]
mod exercise;

use corpus::{changed, corpus};
use proptest::prelude::*;

#[test]
fn replays_the_corpus() {
    let files = corpus("trace");
    assert!(files.len() >= 8);
    files.iter().for_each(|(_, bytes)| exercise::run(bytes));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn is_answered_when_changed(bytes in changed("trace", "[0-9,;:.#% \n\tkMbits-]")) {
        exercise::run(&bytes);
    }
}
