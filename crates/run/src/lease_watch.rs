//! The log of changes of settings and of routers' programs, and the thread that ends leases.

use crate::instance::RunningInstance;
use crate::objects::{NoticedChange, ObjectChange};
use crate::programs::change::ProgramChange;
use longwire_units::Nanos;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;

impl RunningInstance {
    /// Removes programs with expired leases, on a separate thread, until the instance is gone.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn watch_leases(this: &Arc<Self>) -> std::io::Result<()> {
        let (line, this) = (this.state().objects.routers.leases.line(), Arc::downgrade(this));
        let watch = move || {
            while let Some(instance) = this.upgrade() {
                let routers = Arc::clone(&instance.state().objects.routers);
                let (ended, next) = routers.end_leases(instance.remote());
                ended.into_iter().for_each(|change| instance.note_program(change));
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

    /// Logs changes of settings, which are made now or so long after the start.
    pub(crate) fn note_set(&self, changes: &[ObjectChange], at: Option<Nanos>) {
        let when = at.map(|at| format!(" at {at}")).unwrap_or_default();
        for ObjectChange { name, pairs, .. } in changes {
            let each: Vec<_> = pairs.iter().map(|(key, text)| format!("{key} {text}")).collect();
            self.log().note(self.elapsed(), "change", format!("{name}: {}{when}", each.join(", ")));
        }
    }

    /// Reports a change of a router's programs, and logs it.
    pub(crate) fn note_program(&self, change: ProgramChange) {
        let what = change.to_string();
        // It is not saved, and nobody waits for that.
        drop(self.state().objects.tell(|| NoticedChange::Program(change)));
        self.log().note(self.elapsed(), "change", what);
    }
}
