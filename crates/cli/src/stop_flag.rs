//! Asking a command that measures to stop and clean up.

use longwire_lab::traffic::Progress;
use longwire_rundir::{asking, interrupt_flag};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that is set when the user asks this process to end (Ctrl-C, SIGTERM, a terminal that is closed), so
/// that test hosts are taken down. Asked a second time, it ends at once.
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

/// A progress function that shows nothing, and stops when the flag is set.
pub fn until(stop: &AtomicBool) -> impl FnMut(Progress) -> ControlFlow<()> {
    move |_| if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
