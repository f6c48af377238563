//! Random bytes never cause a panic. `crates/hostile` has the fuzzers' corpora and mutations of them.

mod exercise;

use longwire_packet::Pool;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn random_frames_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise::frame::run(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_headers_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise::virtio::run(&mut Pool::new(2 << 20).unwrap(), &bytes);
    }
}
