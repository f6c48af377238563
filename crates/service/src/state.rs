//! The state of a service: for each scenario its file as given, and the scenario that ran last.
//!
//! It is in three files, all replaced as a whole. `NAME.json` has both as of the last time that the scenario
//! was applied, or objects were added or removed. The changes of settings since then, which are usually far
//! less, are in two files with its number. `NAME.now` has every change that was answered: it survives any end
//! of the process, but nothing waits for the disk. `NAME.changes` is on the disk, as `NAME.json` is, and
//! survives a power cut too; it is read if the other one is damaged.

use anyhow::{Context, anyhow};
use longwire_run::comparison::with_changes;
use longwire_run::instance::RunningInstance;
use longwire_rundir::{Lock, prepare};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The state of a scenario.
#[derive(Debug)]
pub struct SavedState {
    /// The scenario.
    path: PathBuf,
    /// Its changes since, in a file that survives the end of the process.
    now: PathBuf,
    /// Its changes since, in a file that survives a power cut, too.
    changes: PathBuf,
    known: Mutex<KnownState>,
    /// Keeps a second service from writing the same state.
    _lock: Lock,
}

/// What a state is about.
#[derive(Debug)]
struct KnownState {
    /// The scenario's file as last applied.
    given: String,
    /// The scenario that a request has applied last, which the file may have become.
    applied: Option<String>,
    /// The scenario that was written, and its number, if it is with these.
    written: Option<(Arc<str>, u64)>,
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

impl SavedState {
    /// The state of the scenario `name` in `folder`, made if missing.
    ///
    /// # Errors
    /// If the folder can't hold it, or another service has it.
    pub fn open(folder: &Path, name: &str) -> anyhow::Result<Self> {
        prepare(folder)
            .map_err(|error| anyhow!("the state directory: {error}; name another with --state"))?;
        let path = folder.join(format!("{name}.lock"));
        let lock = Lock::take(&path)?;
        let lock = lock.with_context(|| {
            format!("another service keeps the state of \"{name}\" in {}: end it first", folder.display())
        })?;
        let known = Mutex::new(KnownState { given: String::new(), applied: None, written: None });
        let [path, now, changes] = ["json", "now", "changes"].map(|end| folder.join(format!("{name}.{end}")));
        Ok(Self { path, now, changes, known, _lock: lock })
    }

    /// The scenario that ran last, if its file, which has the text `given` now, has not changed since, or was
    /// applied as it is now by a request.
    ///
    /// # Errors
    /// If there is a state that can't be read.
    pub fn last_of(&self, given: &str) -> anyhow::Result<Option<String>> {
        self.give(given);
        let state = self.on_disk()?.filter(|state| {
            [&state["given"], &state["applied"]].into_iter().any(|text| text.as_str() == Some(given))
        });
        Ok(state.and_then(|state| self.after(&state)))
    }

    /// The scenario that ran last, whose file had the text that it had when it was applied.
    ///
    /// # Errors
    /// As [`SavedState::last_of`].
    pub fn last(&self) -> anyhow::Result<Option<String>> {
        let Some(state) = self.on_disk()? else { return Ok(None) };
        self.give(state["given"].as_str().unwrap_or_default());
        Ok(self.after(&state))
    }

    /// The scenario of a state with its changes since. What a request has applied stays known.
    fn after(&self, state: &Value) -> Option<String> {
        let base = state["running"].as_str()?;
        self.known().applied = state["applied"].as_str().map(String::from);
        let since = [&self.now, &self.changes].into_iter().find_map(|path| {
            let later: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
            // Others belong to an earlier scenario.
            (later["of"] == state["number"]).then(|| later["changes"].as_str().map(String::from))?
        });
        let changes = since.as_deref().or_else(|| state["changes"].as_str()).unwrap_or_default();
        Some(with_changes(base, changes))
    }

    /// The scenario and its file.
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
        let mut known = self.known();
        if known.given != given {
            *known = KnownState { given: given.into(), applied: None, written: None };
        }
    }

    /// Notes that a request has applied this scenario.
    pub fn applied(&self, text: String) {
        let mut known = self.known();
        (known.applied, known.written) = (Some(text), None);
    }

    /// Writes the running scenario, which survives what `survives` says: only its changes, if the rest is as
    /// before.
    ///
    /// # Errors
    /// If it can't be read or written.
    pub fn write(&self, instance: &RunningInstance, survives: Survives) -> anyhow::Result<()> {
        // Held while writing, so that an older state does not replace a newer one.
        let mut known = self.known();
        let running = instance.written()?;
        let replaced = |path: &Path, state: &Value, survives| {
            let written = replace(path, &state.to_string(), survives);
            written.with_context(|| format!("can't write {}", path.display()))
        };
        let same = known.written.as_ref().filter(|(text, _)| Arc::ptr_eq(text, &running.text));
        let Some((_, number)) = same else {
            let number = new_number();
            let state = json!({
                "number": number, "given": known.given, "applied": known.applied,
                "running": running.base(), "changes": running.changes,
            });
            replaced(&self.path, &state, Survives::PowerCut)?;
            known.written = Some((running.text, number));
            return Ok(());
        };
        let state = json!({ "of": number, "changes": running.changes });
        replaced(&self.now, &state, Survives::Kill)?;
        match survives {
            Survives::Kill => Ok(()),
            Survives::PowerCut => replaced(&self.changes, &state, survives),
        }
    }

    /// The data are consistent even after a panic of another thread.
    fn known(&self) -> std::sync::MutexGuard<'_, KnownState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that no other scenario of a state has, also after a restart: the time in ns.
fn new_number() -> u64 {
    longwire_clock::realtime().0
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
        let state = SavedState::open(&folder, "net").unwrap();
        assert_eq!((state.last_of("seed = 1\n").unwrap(), state.last().unwrap()), (None, None));
        let error = SavedState::open(&folder, "net").unwrap_err().to_string();
        assert!(error.starts_with("another service keeps the state of \"net\""), "{error}");
        let write = |path: &Path, text: Value| replace(path, &text.to_string(), Survives::PowerCut).unwrap();
        let end = |text: String| text.rsplit('\n').next().unwrap_or_default().to_owned();
        let last = || state.last_of("seed = 1\n").unwrap().map(end);
        write(&state.path, json!({ "number": 1, "given": "seed = 1\n", "running": "x", "changes": "first" }));
        assert_eq!(last().as_deref(), Some("first"));
        write(&state.changes, json!({ "of": 1, "changes": "second" }));
        write(&state.now, json!({ "of": 1, "changes": "third" }));
        assert_eq!(last().as_deref(), Some("third"));
        // As a power cut may leave it.
        fs::write(&state.now, "").unwrap();
        assert_eq!(last().as_deref(), Some("second"));
        // What was applied is not what runs: objects were added since.
        let applied = json!({
            "number": 2, "given": "seed = 1\n", "applied": "seed = 3\n", "running": "y", "changes": "",
        });
        write(&state.path, applied);
        let whole = Some("y\n");
        assert_eq!(state.last_of("seed = 1\n").unwrap().as_deref(), whole, "changes of the scenario before");
        assert_eq!(state.last_of("seed = 2\n").unwrap(), None, "the file was changed meanwhile");
        assert_eq!(state.last_of("seed = 3\n").unwrap().as_deref(), whole, "as changed, it was applied");
        assert_eq!(state.last().unwrap().as_deref(), whole, "the file can't be read");
        assert_eq!(state.known().given, "seed = 1\n");
        assert_eq!(state.known().applied.as_deref(), Some("seed = 3\n"));
        fs::write(&state.path, "{").unwrap();
        assert!(state.last().unwrap_err().to_string().starts_with("the state "));
        drop(state);
        assert!(SavedState::open(&folder, "net").is_ok());
        let refused = SavedState::open(Path::new("/dev/null"), "net").unwrap_err().to_string();
        assert!(refused.ends_with("; name another with --state"), "{refused}");
        fs::remove_dir_all(folder).unwrap();
    }
}
