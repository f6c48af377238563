//! Whether the user has asked this process to end, for what waits; and where it says for whom it waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

static ASKED_TO_END: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
static SAY: OnceLock<fn(&str)> = OnceLock::new();

/// The flag that ends waiting. A handler of SIGINT or SIGTERM sets it.
pub fn interrupt_flag() -> &'static Arc<AtomicBool> {
    &ASKED_TO_END
}

/// Ends waiting, from now on.
pub fn interrupt() {
    ASKED_TO_END.store(true, Ordering::SeqCst);
}

pub(crate) fn is_interrupted() -> bool {
    ASKED_TO_END.load(Ordering::SeqCst)
}

/// Has `say` called with what is waited for, when that takes longer than a moment. The first one given stays.
pub fn on_wait(say: fn(&str)) {
    let _ = SAY.set(say);
}

pub(crate) fn say(what: &str) {
    if let Some(say) = SAY.get() {
        say(what);
    }
}
