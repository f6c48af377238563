//! What `exec` changes in the machine's own namespace, and how it is put back: forwarding, and address
//! translation.
//!
//! Forwarding is one setting that several runs may need at once, so its value from before is kept with the
//! list of those who use it, and the last one puts it back. Where it was off, a table of the firewall drops
//! whatever would not have been forwarded before, but the runs' own packets: the machine does not become a
//! router for others.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use longwire_netlink::{Socket, interface_index, link};
use serde::{Deserialize, Serialize};

use crate::namespace::{NAMES, Namespace, NamespaceId};
use crate::state::{Forwarding, Guard, ROOT, write_whole};
use crate::{LabError, firewall};

const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";
const INTERFACES: &str = "/proc/sys/net/ipv4/conf";

/// Lets packets from behind the uplink out, under the machine's own address.
pub fn prepare(instance: &str, forwarding: &Forwarding, guard: &Guard) -> Result<(), LabError> {
    let machine = Namespace::current()?;
    let mut shared = Shared::read(machine.id())?;
    shared.users.push(instance.to_owned());
    if shared.users.len() == 1 {
        shared.before = settings().map_err(LabError::system(format!("reading {FORWARD}")))?;
    }
    shared.write(machine.id(), guard)?;
    if fs::read_to_string(FORWARD).is_ok_and(|v| v.trim() == "0") {
        firewall::restrict(&shared.forwarding_before())?;
        fs::write(FORWARD, "1").map_err(LabError::system(format!("turning forwarding on in {FORWARD}")))?;
    }
    firewall::open(instance, &forwarding.uplink, forwarding.network)
}

/// Undoes [`prepare`], whether or not it came to its end.
pub fn restore(instance: &str, forwarding: &Forwarding, guard: &Guard) -> Result<(), LabError> {
    let id = forwarding.machine;
    let Some(machine) = find(id) else {
        // The namespace is gone and its settings with it.
        return Shared::default().write(id, guard);
    };
    machine.run(|| {
        let closed = firewall::close(instance).and(delete_link(&forwarding.uplink));
        let mut shared = Shared::read(id)?;
        shared.users.retain(|user| user != instance);
        if shared.users.is_empty() {
            put_back(&shared.before).map_err(LabError::system("putting the machine's forwarding back"))?;
            firewall::unrestrict()?;
        }
        shared.write(id, guard)?;
        closed
    })?
}

/// The name is this run's while its state stands, so an interface of this name is, too.
fn delete_link(name: &str) -> Result<(), LabError> {
    let Ok(index) = interface_index(name) else { return Ok(()) };
    Socket::route()
        .and_then(|socket| link::unless_gone(socket.request(link::delete(index))))
        .map_err(LabError::system(format!("removing interface {name}")))
}

/// Values from before, kept while somebody uses forwarding in one namespace.
#[derive(Default, Serialize, Deserialize)]
struct Shared {
    users: Vec<String>,
    before: BTreeMap<PathBuf, String>,
}

impl Shared {
    fn path(id: NamespaceId) -> PathBuf {
        Path::new(ROOT).join(format!(".forwarding-{}", id.inode()))
    }

    fn read(id: NamespaceId) -> Result<Self, LabError> {
        let path = Self::path(id);
        match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(LabError::system(format!("reading {}", path.display()))(e)),
            Ok(text) => {
                serde_json::from_slice(&text).map_err(|e| LabError::State { path, reason: e.to_string() })
            }
        }
    }

    /// The interfaces from which packets were forwarded before.
    fn forwarding_before(&self) -> Vec<String> {
        let on = self.before.iter().filter(|(_, value)| value.trim() != "0");
        on.filter_map(|(path, _)| {
            Some(path.strip_prefix(INTERFACES).ok()?.iter().next()?.to_str()?.to_owned())
        })
        .filter(|name| name != "default")
        .collect()
    }

    /// Without users there is nothing to keep.
    fn write(&self, id: NamespaceId, _guard: &Guard) -> Result<(), LabError> {
        let path = Self::path(id);
        let written = if self.users.is_empty() {
            match fs::remove_file(&path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other,
            }
        } else {
            serde_json::to_vec(self).map_err(io::Error::from).and_then(|text| write_whole(&path, &text))
        };
        written.map_err(LabError::system(format!("writing {}", path.display())))
    }
}

/// Forwarding as a whole, and of each interface: writing the first overwrites the others.
fn settings() -> io::Result<BTreeMap<PathBuf, String>> {
    let mut found = BTreeMap::from([(PathBuf::from(FORWARD), fs::read_to_string(FORWARD)?)]);
    for entry in fs::read_dir(INTERFACES)? {
        let path = entry?.path().join("forwarding");
        // "all" is the setting as a whole under another name; an interface may vanish while we look.
        if path != Path::new(INTERFACES).join("all/forwarding")
            && let Ok(value) = fs::read_to_string(&path)
        {
            found.insert(path, value);
        }
    }
    Ok(found)
}

fn put_back(before: &BTreeMap<PathBuf, String>) -> io::Result<()> {
    let changed = |path: &Path, value: &str| fs::read_to_string(path).is_ok_and(|now| now != value);
    if let Some(value) = before.get(Path::new(FORWARD))
        && changed(Path::new(FORWARD), value)
    {
        fs::write(FORWARD, value)?;
    }
    for (path, value) in before {
        if changed(path, value) {
            fs::write(path, value)?;
        }
    }
    Ok(())
}

/// The namespace with this id, if it is still there: the calling thread's, a named one, or that of a process.
pub fn find(id: NamespaceId) -> Option<Namespace> {
    let matches = |path: &Path| NamespaceId::at(path).is_ok_and(|found| found == id);
    let own = PathBuf::from("/proc/thread-self/ns/net");
    let entries =
        |folder: &str| fs::read_dir(folder).into_iter().flatten().filter_map(|e| Some(e.ok()?.path()));
    let processes = entries("/proc")
        .filter(|p| p.file_name().is_some_and(|n| n.as_encoded_bytes().iter().all(u8::is_ascii_digit)))
        .map(|p| p.join("ns/net"));
    let path = std::iter::once(own).chain(entries(NAMES)).chain(processes).find(|p| matches(p))?;
    Namespace::at(&path).ok().filter(|n| n.id() == id)
}
