//! The state of each lab, kept in `/run/longwire/<lab>/` so that later runs can list it, open it, or remove
//! leftovers.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longwire_rundir::{Lock, LockError, Patience, own_uid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::directory::Directory;
use crate::host::HostState;
use crate::names::{check_instance, check_name, is_interface};
use crate::namespace::NamespaceId;
use crate::{LabError, Network, Result, processes};

/// The directory of labs' states.
pub const ROOT: &str = "/run/longwire";
const RUN: &str = "/run";
const FOLDER: &str = "longwire";
const FILE: &str = "state.json";
/// The temporary file of [`write_whole`].
const NEW: &str = "state.new";

/// Everything that a lab has created or is about to create: written before anything is created.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LabState {
    /// The lab's name.
    pub instance: String,
    /// The process that takes it down; `None` for a lab left up until `longwire lab down`.
    pub owner: Option<OwnerProcess>,
    /// The namespace that holds the engine's ends of the wires.
    pub core: String,
    /// The hosts, in the order of the plan.
    pub hosts: Vec<HostState>,
    /// Changes in the machine's own namespace; `None` for an isolated lab.
    pub forwarding: Option<Forwarding>,
    /// The existing interface whose packets are diverted, if any.
    #[serde(default)]
    pub attached: Option<AttachedInterface>,
}

impl LabState {
    /// Names of the namespaces that this lab creates.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().filter_map(|h| h.namespace.as_deref()).chain([self.core.as_str()])
    }

    /// Whether its owner has ended without taking it down.
    pub fn is_left(&self) -> bool {
        self.owner.as_ref().is_some_and(OwnerProcess::is_dead)
    }

    /// Writes the state, atomically for readers.
    pub fn write(&self, _guard: &LabLock) -> Result<()> {
        let folder = folder_of(&self.instance);
        let doing = || LabError::system(format!("writing {}", folder.display()));
        fs::create_dir_all(&folder).map_err(doing())?;
        let text = serde_json::to_vec_pretty(self).map_err(|e| doing()(e.into()))?;
        write_whole(&folder.join(FILE), &text).map_err(doing())
    }

    /// Reads the state of a lab; `None` when there is no such lab.
    pub fn read(instance: &str) -> Result<Option<Self>> {
        match Self::root()? {
            Some(root) => Self::read_in(&root, instance),
            None => Ok(None),
        }
    }

    fn read_in(root: &Directory, instance: &str) -> Result<Option<Self>> {
        // As shown to people; `root` may be another process's.
        let path = folder_of(instance).join(FILE);
        let text = match root.inside(instance).and_then(|folder| folder.read(FILE)) {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            other => other.map_err(LabError::system(format!("reading {}", path.display())))?,
        };
        let state: Self = serde_json::from_slice(&text)
            .map_err(|e| LabError::State { path: path.clone(), reason: e.to_string() })?;
        match state.check(instance) {
            Ok(()) => Ok(Some(state)),
            Err(reason) => Err(LabError::State { path, reason }),
        }
    }

    /// Checks that it only names what [`crate::Lab`] creates for a lab of this name: names become paths and
    /// are printed.
    fn check(&self, instance: &str) -> Result<(), String> {
        let expected = |what: &str, is: bool| {
            if is { Ok(()) } else { Err(format!("{what} is none that a lab called \"{instance}\" has")) }
        };
        check_instance(instance).map_err(|e| e.to_string())?;
        expected("instance", self.instance == instance)?;
        expected("core", self.core == format!("lw-{instance}-core"))?;
        let uplink = self.forwarding.as_ref().map(|f| f.uplink.as_str());
        expected("uplink", uplink.is_none_or(is_interface))?;
        let attached = self.attached.as_ref().map(|a| a.interface.as_str());
        expected("interface", attached.is_none_or(is_interface))?;
        for host in &self.hosts {
            check_name("host", &host.spec.name, 63).map_err(|e| e.to_string())?;
            expected("a host's interface", is_interface(&host.interface))?;
            expected("a host's port", host.port.as_deref().is_none_or(is_interface))?;
            let own = match &host.namespace {
                Some(name) => *name == format!("lw-{instance}-{}", host.spec.name),
                None => uplink.is_some() || self.attached.is_some(),
            };
            expected("a host's namespace", own)?;
        }
        Ok(())
    }

    /// Every lab's state, by name. Folders without a readable state are ignored: they may not be ours.
    pub fn read_all() -> Result<Vec<Self>> {
        let Some(root) = Self::root()? else { return Ok(Vec::new()) };
        Self::read_all_in(&root).map_err(LabError::system(format!("reading {ROOT}")))
    }

    /// Every lab's state under another root, such as that of a process with its own `/run`. Nothing is read
    /// from another user's directory.
    pub fn read_all_in(root: &Directory) -> io::Result<Vec<Self>> {
        if root.owner()? != own_uid() {
            return Ok(Vec::new());
        }
        let names = match root.names() {
            // Another user's private directory is not ours to list or sweep.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(Vec::new()),
            other => other?,
        };
        Ok(names.iter().filter_map(|name| Self::read_in(root, name).ok()?).collect())
    }

    /// The folder of this user's labs; none if it does not exist or is another user's.
    fn root() -> Result<Option<Directory>> {
        let doing = || LabError::system(format!("reading {ROOT}"));
        let opened = Directory::open(Path::new(RUN)).and_then(|run| run.inside(FOLDER));
        let root = match opened {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
                return Ok(None);
            }
            other => other.map_err(doing())?,
        };
        Ok((root.owner().map_err(doing())? == own_uid()).then_some(root))
    }

    /// Folders with an unfinished state: of a process that is writing its first one, or was killed while it
    /// did.
    pub fn unfinished() -> Result<Vec<PathBuf>> {
        let Some(root) = Self::root()? else { return Ok(Vec::new()) };
        let names = root.names().map_err(LabError::system(format!("listing {ROOT}")))?;
        let is_unfinished = |folder: &PathBuf| {
            !folder.join(FILE).exists()
                && fs::read_dir(folder).is_ok_and(|mut found| {
                    found.all(|entry| entry.is_ok_and(|entry| *entry.file_name() == *NEW))
                })
        };
        Ok(names.iter().map(|name| folder_of(name)).filter(is_unfinished).collect())
    }

    /// Removes unfinished states of killed processes. Nobody writes one now: that requires the guard.
    pub fn remove_unfinished(_guard: &LabLock) -> Result<()> {
        for folder in Self::unfinished()? {
            let new = folder.join(NEW);
            let removed = if new.exists() { fs::remove_file(new) } else { Ok(()) };
            removed
                .and_then(|()| fs::remove_dir(&folder))
                .map_err(LabError::system(format!("removing {}", folder.display())))?;
        }
        Ok(())
    }

    /// Removes the state, last of all.
    pub fn remove(&self, _guard: &LabLock) -> Result<()> {
        let folder = folder_of(&self.instance);
        let doing = LabError::system(format!("removing {}", folder.display()));
        unless_missing(fs::remove_dir_all(&folder)).map_err(doing)
    }
}

/// A run's use of the machine's network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Forwarding {
    /// The machine's namespace, as the run found it.
    pub machine: NamespaceId,
    /// The interface in the machine's namespace.
    pub uplink: String,
    /// The networks behind it.
    pub networks: Vec<Network>,
    /// Whether their packets leave the machine by IPv6 as well.
    pub out_by_ipv6: bool,
}

/// A link on an existing interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedInterface {
    /// The namespace it is in.
    pub namespace: NamespaceId,
    /// Its name.
    pub interface: String,
}

/// The folder of a lab's state and of the files shown inside its hosts.
pub fn folder_of(instance: &str) -> PathBuf {
    Path::new(ROOT).join(instance)
}

/// Result of removing a file or folder, which may be gone already.
pub fn unless_missing(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// What is saved in a file; nothing if there is none.
pub fn read_saved<T: Default + DeserializeOwned>(
    path: &Path,
    doing: impl FnOnce(io::Error) -> LabError,
) -> Result<T> {
    match fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        text => serde_json::from_slice(&text.map_err(doing)?)
            .map_err(|e| LabError::State { path: path.to_owned(), reason: e.to_string() }),
    }
}

/// Writes a file atomically for readers.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)?;
    fs::rename(&new, path)
}

/// The process that takes a lab down when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerProcess {
    /// Its process id.
    pub pid: u32,
    /// Its start time in clock ticks since boot, which distinguishes it from a later process with the same
    /// id.
    started: u64,
    /// The namespace of its process id.
    pid_namespace: NamespaceId,
    /// That of its start time: another one may show another time. `None` where the kernel has no such
    /// namespaces, and in states of earlier versions.
    #[serde(default)]
    time_namespace: Option<NamespaceId>,
    boot: String,
}

impl OwnerProcess {
    /// This process.
    pub fn this_process() -> Result<Self> {
        let pid = std::process::id();
        let doing = || LabError::system("reading this process's entry in /proc");
        let pid_namespace = NamespaceId::at(Path::new("/proc/self/ns/pid")).map_err(doing())?;
        let started = started(pid).map_err(doing())?;
        Ok(Self { pid, started, pid_namespace, time_namespace: own_time_namespace(), boot: boot() })
    }

    /// Opens the process, if it runs and is visible from here.
    pub fn hold(&self) -> Option<OwnedFd> {
        let process = processes::open(self.pid).ok()?;
        // Checked once it is held: the id may have been reused before.
        self.is_process(self.pid).then_some(process)
    }

    /// Whether this is the running process with this id.
    pub fn is_process(&self, pid: u32) -> bool {
        self.pid == pid && self.same_ids() && !self.is_dead()
    }

    /// Whether its id belongs to this process's PID namespace.
    fn same_ids(&self) -> bool {
        NamespaceId::at(Path::new("/proc/self/ns/pid")).is_ok_and(|id| id == self.pid_namespace)
    }

    /// Whether its start time is comparable with those that this process reads.
    fn same_clock(&self) -> bool {
        self.time_namespace.is_none() || self.time_namespace == own_time_namespace()
    }

    /// Whether the process has certainly ended. One that is not visible from here is treated as running.
    pub fn is_dead(&self) -> bool {
        let boot = boot();
        if !boot.is_empty() && boot != self.boot {
            return true;
        }
        self.same_ids()
            && match started(self.pid) {
                Ok(started) => self.same_clock() && started != self.started,
                Err(e) => e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH),
            }
    }
}

fn own_time_namespace() -> Option<NamespaceId> {
    NamespaceId::at(Path::new("/proc/self/ns/time")).ok()
}

/// An id that changes with every boot; empty if it can't be read.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Field 22 of proc_pid_stat(5). A process that has ended but is not reaped yet is treated as gone.
fn started(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_started(&stat).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn parse_started(stat: &str) -> Option<u64> {
    // The second field is the program's name in parentheses, and may contain anything, including parentheses.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Held while labs are created, listed for removal or removed: one process at a time.
#[derive(Debug)]
pub struct LabLock {
    _lock: Lock,
}

/// Time limit for another process: creating or removing ten thousand hosts takes a minute.
const PATIENCE: Duration = Duration::from_secs(120);

impl LabLock {
    /// Waits for the lock, unless the user ends this process.
    pub fn acquire() -> Result<Self> {
        Self::within(Patience { limit: PATIENCE, interruptible: true })
    }

    /// Waits for the lock to remove something, also after a signal, because removal follows it.
    pub fn acquire_to_remove() -> Result<Self> {
        Self::within(Patience { limit: PATIENCE, interruptible: false })
    }

    fn within(patience: Patience) -> Result<Self> {
        let doing = || LabError::system(format!("locking {ROOT}"));
        let root = Path::new(ROOT);
        longwire_rundir::prepare(root).map_err(|error| doing()(error.into()))?;
        match Lock::acquire(&root.join(".lock"), patience) {
            Ok(lock) => Ok(Self { _lock: lock }),
            Err(LockError::Io { source, .. }) => Err(doing()(source)),
            Err(other) => Err(other.into()),
        }
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
    fn start_times_are_compared_within_a_time_namespace_only() {
        let own = OwnerProcess::this_process().unwrap();
        assert!(!own.is_dead());
        let another = NamespaceId::at(Path::new("/proc/self/ns/net")).unwrap();
        let later = |time_namespace| OwnerProcess { started: own.started + 1, time_namespace, ..own.clone() };
        assert!(later(own.time_namespace).is_dead() && later(None).is_dead());
        assert!(!later(Some(another)).is_dead());
    }

    #[test]
    fn a_state_names_only_what_its_lab_makes() {
        let host = |name: &str| HostState {
            spec: crate::HostSpec::new(name, "10.0.0.1/24".parse().unwrap()),
            namespace: Some(format!("lw-x-{name}")),
            interface: "eth0".to_owned(),
            port: Some("port0".to_owned()),
        };
        let good = LabState {
            instance: "x".to_owned(),
            owner: None,
            core: "lw-x-core".to_owned(),
            hosts: vec![host("a")],
            forwarding: None,
            attached: None,
        };
        assert_eq!(good.check("x"), Ok(()));
        let refused = |change: &dyn Fn(&mut LabState)| {
            let mut state = good.clone();
            change(&mut state);
            state.check("x").unwrap_err()
        };
        assert!(good.check("y").unwrap_err().contains("instance"));
        assert!(refused(&|s| s.core = "../../etc".to_owned()).contains("core"));
        assert!(refused(&|s| s.hosts[0].spec.name = "a\u{1b}[2J".to_owned()).contains("host name"));
        assert!(refused(&|s| s.hosts[0].namespace = Some("../x".to_owned())).contains("namespace"));
        assert!(refused(&|s| s.hosts[0].namespace = None).contains("namespace"));
        assert!(refused(&|s| s.hosts[0].interface = "eth0 up".to_owned()).contains("interface"));
        assert!(refused(&|s| s.hosts[0].port = Some("..".to_owned())).contains("port"));
    }

    #[test]
    fn an_owner_is_known_by_its_start_not_only_its_id() {
        let owner = OwnerProcess::this_process().unwrap();
        assert!(!owner.is_dead() && owner.hold().is_some());
        let later = OwnerProcess { started: owner.started + 1, ..owner.clone() };
        assert!(later.hold().is_none() && !later.is_process(owner.pid), "a process with the same id");
        assert!(OwnerProcess { started: owner.started + 1, ..owner.clone() }.is_dead());
        assert!(OwnerProcess { boot: "another".to_owned(), ..owner }.is_dead());
    }
}
