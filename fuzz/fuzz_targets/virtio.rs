//! Arbitrary bytes as a virtio header and its frame, split into segments if it is a train.
#![no_main]

#[path = "../../crates/wire/tests/exercise/virtio.rs"]
mod exercise;

use longwire_packet::Pool;
use std::cell::RefCell;

thread_local! {
    static POOL: RefCell<Pool> = RefCell::new(Pool::new(2 << 20).expect("two mebibytes"));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| POOL.with_borrow_mut(|pool| exercise::run(pool, bytes)));
