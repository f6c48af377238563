//! Processes that end with their test.

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command};

/// A process that is ended when dropped, if it still runs.
pub struct Guarded {
    child: Child,
    signal: &'static str,
}

impl Guarded {
    /// One that is killed.
    pub fn killed(child: Child) -> Self {
        Self { child, signal: "KILL" }
    }

    /// One that gets SIGTERM, and ends as it would end itself.
    pub fn terminated(child: Child) -> Self {
        Self { child, signal: "TERM" }
    }
}

impl Deref for Guarded {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // The number of one that was waited for may be another's by now.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = Command::new("kill").args(["-s", self.signal, &self.child.id().to_string()]).status();
            let _ = self.child.wait();
        }
    }
}
