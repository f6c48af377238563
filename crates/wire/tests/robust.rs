//! Random bytes, modified real frames and the fuzzers' corpora never cause a panic.

#[path = "../../../fuzz/corpus.rs"]
mod corpus;
mod exercise;

use corpus::corpus;
use longwire_packet::Pool;
use proptest::prelude::*;

fn pool() -> Pool {
    Pool::new(2 << 20).unwrap()
}

#[test]
fn replays_the_corpora() {
    let frames = corpus("frame");
    assert!(frames.len() >= 10);
    for (path, bytes) in frames {
        println!("{}", path.display());
        exercise::frame::run(&bytes);
    }
    let headers = corpus("virtio");
    assert!(headers.len() >= 6);
    for (path, bytes) in headers {
        println!("{}", path.display());
        exercise::virtio::run(&mut pool(), &bytes);
    }
}

/// A corpus file with some bytes changed and its end truncated.
fn mutated(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let files: Vec<_> = corpus(target).into_iter().map(|(_, bytes)| bytes).collect();
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    (prop::sample::select(files), changes, any::<bool>(), any::<prop::sample::Index>()).prop_map(
        |(mut bytes, changes, is_cut, end)| {
            for (at, value) in changes {
                let len = bytes.len().clamp(1, 80);
                if let Some(byte) = bytes.get_mut(at.index(len)) {
                    *byte = value;
                }
            }
            if is_cut {
                bytes.truncate(end.index(bytes.len() + 1));
            }
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn random_frames_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise::frame::run(&bytes);
    }

    #[test]
    fn mutated_frames_are_read(bytes in mutated("frame")) {
        exercise::frame::run(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_headers_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise::virtio::run(&mut pool(), &bytes);
    }

    #[test]
    fn mutated_headers_are_read(bytes in mutated("virtio")) {
        exercise::virtio::run(&mut pool(), &bytes);
    }
}
