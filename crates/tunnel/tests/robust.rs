//! Arbitrary bytes never cause a panic, an answer or a frame.

mod exercise {
    pub mod tunnel;
}

use proptest::prelude::*;

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
