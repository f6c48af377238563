//! What each lab has made, kept in `/run/longwire/<lab>/` so that a later run can list it, join it, or remove what
//! a killed one left.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::host::HostState;
use crate::machine::Forwarding;
use crate::namespace::NamespaceId;

/// Where the labs' states are.
pub const ROOT: &str = "/run/longwire";
const FILE: &str = "state.json";

/// Everything a lab has made or is about to make: written before anything is made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// The lab's name.
    pub instance: String,
    /// Who takes it down; `None` for a lab left up until `longwire lab down`.
    pub owner: Option<Owner>,
    /// The namespace that holds the engine's ends of the wires.
    pub core: String,
    /// The hosts, in the order of the plan.
    pub hosts: Vec<HostState>,
    /// What was changed in the machine's own namespace; `None` for a lab that is closed in itself.
    pub forwarding: Option<Forwarding>,
}

impl State {
    /// Names of the namespaces this lab makes.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().filter_map(|h| h.namespace.as_deref()).chain([self.core.as_str()])
    }

    /// Writes the state, in one step for a reader.
    pub fn write(&self, _guard: &Guard) -> Result<(), LabError> {
        let folder = folder_of(&self.instance);
        let doing = || LabError::system(format!("writing {}", folder.display()));
        fs::create_dir_all(&folder).map_err(doing())?;
        let text = serde_json::to_vec_pretty(self).map_err(|e| doing()(e.into()))?;
        write_whole(&folder.join(FILE), &text).map_err(doing())
    }

    /// Reads the state of a lab; `None` when there is no such lab.
    pub fn read(instance: &str) -> Result<Option<Self>, LabError> {
        Self::read_in(Path::new(ROOT), instance)
    }

    fn read_in(root: &Path, instance: &str) -> Result<Option<Self>, LabError> {
        let path = root.join(instance).join(FILE);
        let text = match fs::read(&path) {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            other => other.map_err(LabError::system(format!("reading {}", path.display())))?,
        };
        let state: Self = serde_json::from_slice(&text)
            .map_err(|e| LabError::State { path: path.clone(), reason: e.to_string() })?;
        if state.instance == instance {
            Ok(Some(state))
        } else {
            Err(LabError::State { path, reason: format!("it is the state of lab {}", state.instance) })
        }
    }

    /// Every lab's state, by name. Folders without a state, or with one that can't be read, are left alone: they
    /// are not known to be ours.
    pub fn read_all() -> Result<Vec<Self>, LabError> {
        Self::read_all_in(Path::new(ROOT))
    }

    /// The same under another root, such as that of a process with a `/run` of its own.
    pub fn read_all_in(root: &Path) -> Result<Vec<Self>, LabError> {
        let entries = match fs::read_dir(root) {
            // What another user keeps to itself is not ours to show or to sweep.
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
                return Ok(Vec::new());
            }
            other => other.map_err(LabError::system(format!("reading {}", root.display())))?,
        };
        let mut names: Vec<String> = entries
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .filter(|n| !n.starts_with('.'))
            .collect();
        names.sort_unstable();
        Ok(names.iter().filter_map(|name| Self::read_in(root, name).ok()?).collect())
    }

    /// Removes the state, last of all.
    pub fn remove(&self, _guard: &Guard) -> Result<(), LabError> {
        let folder = folder_of(&self.instance);
        match fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(LabError::system(format!("removing {}", folder.display()))(e))
            }
            _ => Ok(()),
        }
    }
}

/// The folder of a lab's state and of the files shown inside its hosts.
pub fn folder_of(instance: &str) -> PathBuf {
    Path::new(ROOT).join(instance)
}

/// Writes a file so that a reader sees either the old or the new one.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)?;
    fs::rename(&new, path)
}

/// The process that takes a lab down when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot: tells it from a later process with the same id.
    started: u64,
    /// Process ids mean something only within their own namespace.
    pid_namespace: NamespaceId,
    boot: String,
}

impl Owner {
    /// This process.
    pub fn this_process() -> Result<Self, LabError> {
        let pid = std::process::id();
        let doing = || LabError::system("reading this process's entry in /proc");
        let pid_namespace = NamespaceId::at(Path::new("/proc/self/ns/pid")).map_err(doing())?;
        Ok(Self { pid, started: started(pid).map_err(doing())?, pid_namespace, boot: boot() })
    }

    /// Whether the process surely runs no more. One that can't be seen from here counts as running.
    pub fn is_dead(&self) -> bool {
        let boot = boot();
        if !boot.is_empty() && boot != self.boot {
            return true;
        }
        let same_ids =
            NamespaceId::at(Path::new("/proc/self/ns/pid")).is_ok_and(|id| id == self.pid_namespace);
        same_ids
            && match started(self.pid) {
                Ok(started) => started != self.started,
                Err(e) => e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH),
            }
    }
}

/// Changes with every start of the machine; empty where it can't be read.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Field 22 of proc_pid_stat(5). A process that has ended but isn't yet collected by its parent counts as gone.
fn started(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_started(&stat).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn parse_started(stat: &str) -> Option<u64> {
    // The second field is the program's name in brackets, and may hold anything, brackets included.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Held while labs are made, listed for removal or removed: one process at a time.
#[derive(Debug)]
pub struct Guard {
    _lock: File,
}

impl Guard {
    /// Waits for its turn.
    pub fn acquire() -> Result<Self, LabError> {
        let doing = || LabError::system(format!("locking {ROOT}"));
        fs::create_dir_all(ROOT).map_err(doing())?;
        let path = Path::new(ROOT).join(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(path).map_err(doing())?;
        lock.lock().map_err(doing())?;
        Ok(Self { _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_read_past_any_program_name() {
        let tail = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 424242 20 21";
        for name in ["bash", "a b", "a) S 1 (b", ""] {
            assert_eq!(parse_started(&format!("77 ({name}) {tail}")), Some(424_242));
        }
        assert_eq!(parse_started(&format!("77 (x) Z{}", &tail[1..])), None, "ended, not yet collected");
        assert_eq!(parse_started("77 (x) S 1"), None);
        assert_eq!(parse_started(""), None);
    }

    #[test]
    fn an_owner_is_known_by_its_start_not_only_its_id() {
        let owner = Owner::this_process().unwrap();
        assert!(!owner.is_dead());
        assert!(Owner { started: owner.started + 1, ..owner.clone() }.is_dead());
        assert!(Owner { boot: "another".to_owned(), ..owner }.is_dead());
    }
}
