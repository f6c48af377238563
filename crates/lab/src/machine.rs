//! Changes of `exec` in the machine's own namespace, and their restoring: forwarding and address translation.
//!
//! Forwarding is a setting per family that several runs may need at once, so its previous value is kept with
//! the list of users, and the last one restores it. Where it was off, a firewall table drops all packets but
//! the runs' own: the machine does not become a router for others.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use longwire_netlink::{Socket, attribute, attribute_text, link};
use serde::{Deserialize, Serialize};

use crate::firewall::Restriction;
use crate::namespace::{NAMES, Namespace, NamespaceId};
use crate::nftables::{IPV4, IPV6};
use crate::state::{Forwarding, LabLock, ROOT, read_saved, unless_missing, write_whole};
use crate::{LabError, Result, firewall};

/// A family's settings for forwarding.
struct Family {
    number: u8,
    /// The global setting: writing it overwrites those of the interfaces.
    whole: &'static str,
    /// Global settings that the kernel changes with it.
    along: &'static [&'static str],
    interfaces: &'static str,
    /// Further settings of interfaces that a change of forwarding affects.
    besides: &'static [&'static str],
}

const V4: Family = Family {
    number: IPV4,
    whole: "/proc/sys/net/ipv4/ip_forward",
    along: &["/proc/sys/net/ipv4/conf/all/accept_redirects"],
    interfaces: "/proc/sys/net/ipv4/conf",
    besides: &[],
};
const V6: Family = Family {
    number: IPV6,
    whole: "/proc/sys/net/ipv6/conf/all/forwarding",
    along: &[],
    interfaces: "/proc/sys/net/ipv6/conf",
    besides: &["accept_ra"],
};

/// Whether this machine can forward IPv4. In a container it may be impossible to turn on.
#[must_use]
pub fn can_forward() -> bool {
    V4.can_forward()
}

/// Whether this machine can forward IPv6.
pub fn can_forward_ipv6() -> bool {
    V6.can_forward()
}

/// Lets packets from behind the uplink out, with the machine's own addresses.
pub fn prepare(instance: &str, forwarding: &Forwarding, guard: &LabLock) -> Result<()> {
    let machine = Namespace::current()?;
    let mut shared = SavedSettings::read(machine.id())?;
    let families = if forwarding.out_by_ipv6 { vec![V4, V6] } else { vec![V4] };
    shared.users.push(instance.to_owned());
    for family in &families {
        if !shared.before.contains_key(Path::new(family.whole)) {
            let found = family.settings().map_err(LabError::system(format!("reading {}", family.whole)))?;
            shared.before.extend(found);
        }
    }
    shared.write(machine.id(), guard)?;
    let off: Vec<_> = families.into_iter().filter(|family| !family.is_on()).collect();
    let bridges = bridges().map_err(LabError::system("listing the machine's bridges"))?;
    let restrictions: Vec<_> =
        off.iter().map(|family| family.restriction(&shared.before, &bridges)).collect();
    firewall::open(instance, &forwarding.uplink, &forwarding.networks, &restrictions)?;
    off.iter().try_for_each(|family| {
        family.turn_on().map_err(LabError::system(format!("turning forwarding on in {}", family.whole)))
    })
}

/// Undoes [`prepare`], complete or not, and removes the uplink.
pub fn restore(instance: &str, forwarding: &Forwarding, guard: &LabLock) -> Result<()> {
    let closed = close(instance, forwarding, guard);
    let Some(machine) = find(forwarding.machine) else { return closed };
    // The name belongs to this run while its state exists, and so does an interface with it.
    let name = &forwarding.uplink;
    let doing = LabError::system(format!("removing interface {name}"));
    closed.and(machine.run(|| link::remove(name)).and_then(|removed| removed.map_err(doing)))
}

/// Undoes [`prepare`]. Idempotent.
pub fn close(instance: &str, forwarding: &Forwarding, guard: &LabLock) -> Result<()> {
    let id = forwarding.machine;
    let Some(machine) = find(id) else {
        // The namespace is gone and its settings with it.
        return SavedSettings::default().write(id, guard);
    };
    machine.run(|| {
        let mut shared = SavedSettings::read(id)?;
        shared.users.retain(|user| user != instance);
        let is_last = shared.users.is_empty();
        // Before the restrictions are removed, which stay where it fails.
        let back = if is_last { put_back(&shared.before) } else { Ok(()) };
        let closed = firewall::close(instance, is_last && back.is_ok());
        back.map_err(LabError::system("putting the machine's forwarding back"))?;
        shared.write(id, guard)?;
        closed
    })?
}

/// Previous values, kept while forwarding is in use in a namespace.
#[derive(Default, Serialize, Deserialize)]
struct SavedSettings {
    users: Vec<String>,
    before: BTreeMap<PathBuf, String>,
}

impl SavedSettings {
    fn path(id: NamespaceId) -> PathBuf {
        Path::new(ROOT).join(format!(".forwarding-{}", id.inode()))
    }

    fn read(id: NamespaceId) -> Result<Self> {
        let path = Self::path(id);
        read_saved(&path, LabError::system(format!("reading {}", path.display())))
    }

    /// Without users there is nothing to keep.
    fn write(&self, id: NamespaceId, _guard: &LabLock) -> Result<()> {
        let path = Self::path(id);
        let written = if self.users.is_empty() {
            unless_missing(fs::remove_file(&path))
        } else {
            serde_json::to_vec(self).map_err(io::Error::from).and_then(|text| write_whole(&path, &text))
        };
        written.map_err(LabError::system(format!("writing {}", path.display())))
    }
}

impl Family {
    /// Whether it forwards, or that can be turned on.
    fn can_forward(&self) -> bool {
        self.is_on() || fs::File::options().write(true).open(self.whole).is_ok()
    }

    fn is_on(&self) -> bool {
        // An unreadable setting is not turned on.
        fs::read_to_string(self.whole).is_ok_and(|value| value.trim() != "0")
    }

    /// The global settings, and those of each interface.
    fn settings(&self) -> io::Result<BTreeMap<PathBuf, String>> {
        let whole = Path::new(self.whole);
        let mut found = BTreeMap::from([(whole.to_owned(), fs::read_to_string(whole)?)]);
        let along = |path: &&str| Some((PathBuf::from(path), fs::read_to_string(path).ok()?));
        found.extend(self.along.iter().filter_map(along));
        for entry in fs::read_dir(self.interfaces)? {
            let folder = entry?.path();
            // "all" is the global setting, for IPv4 under another name.
            if folder.ends_with("all") {
                continue;
            }
            for setting in ["forwarding"].iter().chain(self.besides) {
                let path = folder.join(setting);
                // An interface may vanish while we look.
                found.extend(fs::read_to_string(&path).ok().map(|value| (path, value)));
            }
        }
        Ok(found)
    }

    /// The restriction to what was forwarded before, and what passes from one port of a bridge to another.
    fn restriction(&self, before: &BTreeMap<PathBuf, String>, bridges: &[String]) -> Restriction {
        let forwards = |(path, value): (&PathBuf, &String)| {
            let mut parts = path.strip_prefix(self.interfaces).ok()?.iter();
            let name = parts.next()?.to_str()?;
            let is_it = parts.next()? == "forwarding" && !["all", "default"].contains(&name);
            (is_it && value.trim() != "0").then(|| name.to_owned())
        };
        let but_from = before.iter().filter_map(forwards).collect();
        Restriction { family: self.number, but_from, bridges: bridges.to_vec() }
    }

    /// A machine that forwards IPv6 forgets routes learned from routers, unless it is set to accept them
    /// anyway.
    fn turn_on(&self) -> io::Result<()> {
        if self.number != IPV6 {
            return fs::write(self.whole, "1");
        }
        for (path, value) in self.settings()? {
            if path.ends_with("accept_ra") && value.trim() == "1" {
                // An interface may have vanished.
                let _ = fs::write(path, "2");
            }
        }
        fs::write(self.whole, "1")?;
        // New interfaces, such as the uplink, need not join the groups of routers: packets are forwarded by
        // the global setting.
        fs::write(Path::new(self.interfaces).join("default/forwarding"), "0")
    }
}

/// Bytes of `struct ifinfomsg`, which precedes the attributes of a link.
const LINK_HEADER: usize = 16;

/// The names of the bridges in the calling thread's namespace; `/sys` may show another one's.
fn bridges() -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    Socket::route()?.dump(link::list(), |_, body| found.extend(bridge_name(body)))?;
    Ok(found)
}

/// The name in a description of a link, if that is a bridge.
fn bridge_name(link: &[u8]) -> Option<String> {
    let of_link = link.get(LINK_HEADER..)?;
    let kind = attribute_text(attribute(of_link, libc::IFLA_LINKINFO)?, libc::IFLA_INFO_KIND)?;
    let name = attribute_text(of_link, libc::IFLA_IFNAME)?;
    (kind == "bridge").then(|| name.to_owned())
}

/// Global forwarding comes first: writing it changes the other settings. After a failure the rest is still
/// put back.
fn put_back(before: &BTreeMap<PathBuf, String>) -> io::Result<()> {
    let is_whole = |path: &Path| [V4.whole, V6.whole].iter().any(|whole| path == Path::new(whole));
    let (whole, single): (Vec<_>, Vec<_>) = before.iter().partition(|(path, _)| is_whole(path));
    let differs = |path: &Path, value: &str| fs::read_to_string(path).is_ok_and(|now| now != value);
    let mut result = Ok(());
    for (path, value) in whole.into_iter().chain(single) {
        // Missing settings need no value: an interface may vanish meanwhile.
        if differs(path, value)
            && let Err(error) = fs::write(path, value)
            && path.exists()
        {
            result = result.and(Err(error));
        }
    }
    result
}

/// The namespace with this id, if it still exists: the calling thread's, a named one, or that of a process.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abilities;
    use longwire_netlink::Message;

    #[test]
    fn what_can_be_put_back_is_put_back_after_a_failure() {
        let folder = std::env::temp_dir().join(format!("longwire-put-back-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let setting = folder.join("forwarding");
        fs::write(&setting, "1\n").unwrap();
        // The first can be read, and nobody can write it.
        let others = ["/proc/version".into(), folder.join("missing"), setting.clone()];
        let before: BTreeMap<_, _> = others.map(|path| (path, "0\n".to_owned())).into();
        assert!(put_back(&before).is_err());
        assert_eq!(fs::read_to_string(&setting).unwrap(), "0\n");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn bridges_are_found_among_the_links() {
        if !abilities().namespaces.available {
            return println!("skipped bridges_are_found_among_the_links: {}", abilities().namespaces.reason);
        }
        let new = |name: &str, kind: &str| {
            let mut m = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
            m.bytes(&[0; LINK_HEADER]);
            m.string(libc::IFLA_IFNAME, name);
            m.nested(libc::IFLA_LINKINFO, |m| m.string(libc::IFLA_INFO_KIND, kind));
            m
        };
        let found = abilities::in_a_new_namespace(|| {
            let socket = Socket::route()?;
            socket.request(new("wire", "veth"))?;
            socket.request(new("br0", "bridge"))?;
            bridges()
        });
        match found {
            Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                println!("skipped bridges_are_found_among_the_links: the kernel has no bridges");
            }
            other => assert_eq!(other.unwrap(), ["br0"]),
        }
    }
}
