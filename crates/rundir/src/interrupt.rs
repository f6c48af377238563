//! The interrupt flag of this process, which ends waiting, and the callback that reports waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

static ASKED_TO_END: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
static SAY: OnceLock<fn(&str)> = OnceLock::new();

/// The flag that ends waiting. The handlers of SIGINT and SIGTERM set it.
pub fn interrupt_flag() -> &'static Arc<AtomicBool> {
    &ASKED_TO_END
}

/// Ends all waiting, from now on.
pub fn interrupt() {
    ASKED_TO_END.store(true, Ordering::SeqCst);
}

pub(crate) fn is_interrupted() -> bool {
    ASKED_TO_END.load(Ordering::SeqCst)
}

/// Registers `say`, which reports what is waited for when that takes longer than a moment. Later calls have
/// no effect.
pub fn on_wait(say: fn(&str)) {
    let _ = SAY.set(say);
}

pub(crate) fn say(what: &str) {
    if let Some(say) = SAY.get() {
        say(what);
    }
}
