//! Stopping a command that measures, with cleanup.

use longwire_rundir::{asking, interrupt_flag};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that is set when the user ends this process (Ctrl-C, SIGTERM, a closed terminal), so that test
/// hosts are removed. A second request ends it at once.
///
/// # Errors
/// If the system refuses.
pub fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in asking() {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(interrupt_flag()))?;
    }
    Ok(stop)
}
