//! The state of a service: for each scenario its file as given, and the scenario that ran last.
//!
//! It is in two files, both replaced as a whole. `NAME.now` has every change that was answered, unless there
//! are very many links: it survives any end of the process, but nothing waits for the disk. `NAME.json` is on
//! the disk, and survives a power cut too; it is read if the other one is damaged.

use anyhow::Context;
use longwire_control::Instance;
use longwire_rundir::{Lock, prepare};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The state of a scenario.
#[derive(Debug)]
pub struct State {
    /// What survives the end of the process.
    now: PathBuf,
    /// What survives a power cut, too.
    path: PathBuf,
    /// The scenario's file as last applied.
    given: Mutex<String>,
    /// Keeps a second service from writing the same state.
    _lock: Lock,
}

/// What a written state survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survives {
    /// The end of the process at any moment.
    Kill,
    /// A power cut too, for which the disk is waited for.
    PowerCut,
}

/// The folder of states: as requested, else the service manager's, if any.
pub fn folder(asked: Option<&Path>) -> Option<PathBuf> {
    let managed = || {
        let all = std::env::var("STATE_DIRECTORY").ok()?;
        all.split(':').next().filter(|first| !first.is_empty()).map(PathBuf::from)
    };
    asked.map(PathBuf::from).or_else(managed)
}

impl State {
    /// The state of the scenario `name` in `folder`, made if missing. `given` is the present text of the
    /// scenario's file.
    ///
    /// # Errors
    /// If the folder can't hold it, or another service has it.
    pub fn open(folder: &Path, name: &str, given: &str) -> anyhow::Result<Self> {
        prepare(folder).with_context(|| format!("the state directory {}", folder.display()))?;
        let path = folder.join(format!("{name}.lock"));
        let lock = Lock::take(&path)?;
        let lock = lock.with_context(|| {
            format!("another service keeps the state of \"{name}\" in {}: end it first", folder.display())
        })?;
        let given = Mutex::new(given.to_owned());
        let [now, path] = ["now", "json"].map(|end| folder.join(format!("{name}.{end}")));
        Ok(Self { now, path, given, _lock: lock })
    }

    /// The scenario that ran last, if its file has not changed since.
    ///
    /// # Errors
    /// If there is a state that can't be read.
    pub fn last(&self) -> anyhow::Result<Option<String>> {
        let read = |path: &Path| serde_json::from_str::<Value>(&fs::read_to_string(path).ok()?).ok();
        let state = match read(&self.now) {
            Some(state) => state,
            None => match self.on_disk()? {
                Some(state) => state,
                None => return Ok(None),
            },
        };
        let same = state["given"].as_str() == Some(&*self.given());
        Ok(state["running"].as_str().filter(|_| same).map(String::from))
    }

    /// The state that survives a power cut.
    fn on_disk(&self) -> anyhow::Result<Option<Value>> {
        let failed = || format!("the state {}", self.path.display());
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(failed)?,
        };
        let damaged = || format!("{}; remove it to start from the scenario's file", failed());
        serde_json::from_str(&text).map(Some).with_context(damaged)
    }

    /// Sets the text of the scenario's file.
    pub fn give(&self, given: &str) {
        *self.given() = given.into();
    }

    /// Writes the running scenario, which survives what `survives` says.
    ///
    /// # Errors
    /// If it can't be read or written.
    pub fn write(&self, instance: &dyn Instance, survives: Survives) -> anyhow::Result<()> {
        // Held while writing, so that an older state does not replace a newer one.
        let given = self.given();
        let state = json!({ "given": *given, "running": instance.scenario()? }).to_string();
        let replaced = |path: &Path, survives| {
            replace(path, &state, survives).with_context(|| format!("can't write {}", path.display()))
        };
        replaced(&self.now, Survives::Kill)?;
        match survives {
            Survives::Kill => Ok(()),
            Survives::PowerCut => replaced(&self.path, survives),
        }
    }

    /// The text is valid even after a panic of another thread.
    fn given(&self) -> std::sync::MutexGuard<'_, String> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces a file atomically.
fn replace(path: &Path, text: &str, survives: Survives) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    if survives == Survives::Kill {
        return fs::rename(&new, path);
    }
    // The text is on the disk before it gets the name.
    file.sync_all()?;
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_belongs_to_one_file_and_one_service() {
        let folder = std::env::temp_dir().join(format!("longwire-state-{}", std::process::id()));
        let state = State::open(&folder, "net", "seed = 1\n").unwrap();
        assert_eq!(state.last().unwrap(), None);
        let error = State::open(&folder, "net", "").unwrap_err().to_string();
        assert!(error.starts_with("another service keeps the state of \"net\""), "{error}");
        let write = |path: &Path, running: &str| {
            let text = json!({ "given": "seed = 1\n", "running": running }).to_string();
            replace(path, &text, Survives::PowerCut).unwrap();
        };
        write(&state.path, "seed = 1\n# changed\n");
        assert_eq!(state.last().unwrap().as_deref(), Some("seed = 1\n# changed\n"));
        write(&state.now, "seed = 1\n# later\n");
        assert_eq!(state.last().unwrap().as_deref(), Some("seed = 1\n# later\n"));
        // As a power cut may leave it.
        fs::write(&state.now, "").unwrap();
        assert_eq!(state.last().unwrap().as_deref(), Some("seed = 1\n# changed\n"));
        state.give("seed = 2\n");
        assert_eq!(state.last().unwrap(), None, "the file was changed meanwhile");
        fs::write(&state.path, "{").unwrap();
        assert!(state.last().unwrap_err().to_string().starts_with("the state "));
        drop(state);
        assert!(State::open(&folder, "net", "").is_ok());
        fs::remove_dir_all(folder).unwrap();
    }
}
