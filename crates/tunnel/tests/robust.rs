//! Arbitrary bytes never cause a panic, an answer or a frame.

#[path = "../../../fuzz/corpus.rs"]
mod corpus;
mod exercise {
    pub mod tunnel;
}

use proptest::prelude::*;

#[test]
fn replays_the_corpus() {
    let files = corpus::corpus("tunnel");
    assert!(files.len() >= 4);
    files.iter().for_each(|(_, bytes)| exercise::tunnel::run(bytes));
}

proptest! {
    #[test]
    fn any_bytes_change_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise::tunnel::run(&bytes);
    }

    #[test]
    fn anything_after_a_beginning_changes_nothing(
        kind in 0u8..6,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        exercise::tunnel::run(&[&[b'L', b'T', 1, kind][..], &bytes].concat());
    }
}
