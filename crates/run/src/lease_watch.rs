//! The thread that ends leases of programs.

use crate::instance::RunningInstance;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;

impl RunningInstance {
    /// Removes programs with expired leases, on a separate thread, until the instance is gone.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn watch_leases(this: &Arc<Self>) -> std::io::Result<()> {
        let (line, this) = (this.state().objects.routers.leases().line(), Arc::downgrade(this));
        let watch = move || {
            while let Some(instance) = this.upgrade() {
                let routers = Arc::clone(&instance.state().objects.routers);
                let next = routers.end_leases(instance.remote());
                drop(instance);
                let gone = match next {
                    Some(wait) => line.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected),
                    None => line.recv().is_err(),
                };
                if gone {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("leases".into()).spawn(watch).map(drop)
    }
}
