//! A test host: its specification, set-up, and programs inside it.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use longwire_netlink::{Address, Hop, LinkSettings, Socket, address, interface_index, link, route};
use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind, mount_change,
    move_mount, open_tree,
};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use crate::listening::{OWN_TABLES, listening};
use crate::names::check_name;
use crate::namespace::{enter, unshare};
use crate::{LabError, Mac, Namespace, Network, Result, Route, offload, quiet};

/// The name of a test host's interface, inside the host.
pub const INTERFACE: &str = "eth0";

/// The specification of a test host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Its name, which other hosts resolve: at most 63 letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Its interface's addresses; may be empty.
    pub addresses: Vec<Network>,
    /// Its interface's Ethernet address; `None` for one derived from its index in the lab.
    pub mac: Option<Mac>,
    /// Largest IP packet, in bytes: 68 to 65535, and at least 1280 with an IPv6 address.
    pub mtu: u32,
    /// Default gateways, at most one per address family.
    pub gateways: Vec<IpAddr>,
    /// Further routes.
    pub routes: Vec<Route>,
    /// How its interface is wired to the engine.
    pub wiring: Wiring,
    /// Packets that its kernel sends by itself.
    #[serde(default)]
    pub kernel_traffic: KernelTraffic,
}

/// Packets that a host's kernel sends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelTraffic {
    /// The usual ones: address resolution, reports of multicast groups.
    #[default]
    Usual,
    /// None: only programs' packets cross the link. Its neighbours must be set, and it has no link-local IPv6
    /// address.
    None,
}

impl HostSpec {
    /// A host with one address, a 1500-byte MTU, no gateway, and a veth pair.
    #[must_use]
    pub fn new(name: &str, address: Network) -> Self {
        Self {
            name: name.to_owned(),
            addresses: vec![address],
            mac: None,
            mtu: 1500,
            gateways: Vec::new(),
            routes: Vec::new(),
            wiring: Wiring::Veth { offload: true },
            kernel_traffic: KernelTraffic::Usual,
        }
    }

    /// Whether it has an IPv6 address.
    pub(crate) fn has_ipv6(&self) -> bool {
        self.addresses.iter().any(|a| a.address.is_ipv6())
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_name("host", &self.name, 63)?;
        let error = |field, reason: String| Err(LabError::Host { host: self.name.clone(), field, reason });
        let least = if self.has_ipv6() { 1280 } else { 68 };
        if !(least..=65_535).contains(&self.mtu) {
            return error("mtu", format!("{} is outside {least} to 65535 bytes", self.mtu));
        }
        if self.mac.is_some_and(|mac| !mac.is_unicast()) {
            let reason = "a group address or all zero; make the first byte even, such as 02";
            return error("mac", reason.to_owned());
        }
        for gateway in &self.gateways {
            self.check_next_hop("gateways", *gateway)?;
        }
        for family in [true, false] {
            if self.gateways.iter().filter(|g| g.is_ipv4() == family).count() > 1 {
                return error("gateways", "more than one of the same family; keep one".to_owned());
            }
        }
        for route in &self.routes {
            let Some(via) = route.via else { continue };
            if via.is_ipv4() != route.to.address.is_ipv4() {
                return error("routes", format!("{} and {via} are of different families", route.to));
            }
            self.check_next_hop("routes", via)?;
        }
        Ok(())
    }

    fn check_next_hop(&self, field: &'static str, hop: IpAddr) -> Result<()> {
        let link_local = matches!(hop, IpAddr::V6(a) if a.is_unicast_link_local());
        if link_local || self.addresses.iter().any(|a| a.contains(hop)) {
            return Ok(());
        }
        let reason =
            format!("{hop} is in none of the host's networks; give the host an address in the same network");
        Err(LabError::Host { host: self.name.clone(), field, reason })
    }

    /// All routes, including those of gateways.
    fn all_routes(&self) -> impl Iterator<Item = Route> {
        let default = |via: &IpAddr| {
            let [v4, v6] = Network::EVERYTHING;
            Route { to: if via.is_ipv4() { v4 } else { v6 }, via: Some(*via) }
        };
        self.routes.iter().copied().chain(self.gateways.iter().map(default))
    }
}

/// How a host's interface is wired to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wiring {
    /// A veth pair; the engine's end stays in the lab's core namespace.
    Veth {
        /// Whether the host may leave checksums and segmentation to its interface. `false` for ports that
        /// can't do them (AF_XDP, AF_PACKET without the virtio header).
        offload: bool,
    },
    /// A TAP device that the engine creates in the host's namespace, with the name of the host's interface,
    /// and [`crate::Lab::configure`] configures. Creating it elsewhere and moving it would take the kernel 20
    /// ms.
    Tap,
    /// None: the user of the host creates and configures interfaces in it. It is set up as a router.
    Own,
}

/// A created host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostState {
    /// The request.
    pub spec: HostSpec,
    /// The name of its namespace; `None` if it is the machine's own.
    pub namespace: Option<String>,
    /// The name of its interface, inside its namespace.
    pub interface: String,
    /// The name of the engine's end of its veth pair, in the core namespace.
    pub port: Option<String>,
}

/// A test host that is up.
#[derive(Debug)]
pub struct Host {
    pub(crate) state: HostState,
    pub(crate) namespace: Namespace,
    /// Files that replace files of the machine: (replacement, replaced).
    pub(crate) shown: Vec<(PathBuf, PathBuf)>,
}

impl Host {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.state.spec.name
    }

    /// The request.
    #[must_use]
    pub const fn spec(&self) -> &HostSpec {
        &self.state.spec
    }

    /// The name of its interface, inside the host.
    #[must_use]
    pub fn interface(&self) -> &str {
        &self.state.interface
    }

    /// The engine's interface in the core namespace; `None` for a host wired by TAP.
    #[must_use]
    pub fn port(&self) -> Option<&str> {
        self.state.port.as_deref()
    }

    /// Its network namespace.
    #[must_use]
    pub const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Runs `f` on a new thread inside the host and waits for it. It has the host's network but this
    /// process's files: names of hosts resolve only in a [`Host::command`].
    ///
    /// # Errors
    /// If the kernel refuses to let the thread in.
    ///
    /// # Panics
    /// If `f` panics.
    pub fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R> {
        self.namespace.run(f)
    }

    /// Number of listening sockets.
    ///
    /// # Errors
    /// As [`Host::run`].
    pub fn listening_sockets(&self) -> Result<usize> {
        self.run(|| listening(Path::new(OWN_TABLES)).len())
    }

    /// A command that runs inside the host, where the lab's host names resolve and `/sys` shows the host's
    /// interfaces. It is spawned and waited for like any other.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let doing = || LabError::system(format!("preparing a command in host {}", self.name()));
        let namespace: OwnedFd = self.namespace.as_fd().try_clone_to_owned().map_err(doing())?;
        let c = |path: &Path| CString::new(path.as_os_str().as_encoded_bytes()).map_err(io::Error::from);
        let shown: Result<Vec<_>, io::Error> =
            self.shown.iter().map(|(source, target)| Ok((c(source)?, c(target)?))).collect();
        let shown = shown.map_err(doing())?;
        // The machine's own network is already in its /sys.
        let own_network = self.state.namespace.is_some();
        let mut command = Command::new(program);
        // SAFETY: between fork and exec the closure only makes system calls on existing values; it neither
        // allocates nor locks.
        unsafe {
            command.pre_exec(move || {
                enter(namespace.as_fd())?;
                show(&shown, own_network)
            });
        }
        Ok(command)
    }

    /// Sets addresses and routes of the host's interface, which must be in its namespace.
    pub(crate) fn configure(&self) -> Result<()> {
        let spec = &self.state.spec;
        let doing = |what: String| LabError::system(format!("host {}: {what}", spec.name));
        self.run(|| {
            let name = &self.state.interface;
            let socket = Socket::route().map_err(doing("opening a netlink socket".to_owned()))?;
            let index = interface_index(name).map_err(doing(format!("finding interface {name}")))?;
            match self.state.namespace {
                None if spec.has_ipv6() => quiet::silent_ipv6(name),
                None => quiet::without_ipv6(name),
                Some(_) => {}
            }
            if spec.wiring == (Wiring::Veth { offload: false }) {
                offload::turn_off(name).map_err(doing(format!("turning offloads off on {name}")))?;
            }
            let mac = spec.mac.map(|mac| mac.0);
            let (mtu, without_arp) = (Some(spec.mtu), spec.kernel_traffic == KernelTraffic::None);
            let settings = LinkSettings { mac, mtu, up: true, without_arp, ..LinkSettings::default() };
            let done = |request, what| socket.request(request).map_err(doing(what));
            done(link::change(index, &settings), format!("bringing {name} up"))?;
            for own in &spec.addresses {
                let Network { address, prefix } = *own;
                let request = address::add(&Address { index, address, prefix });
                done(request, format!("giving it address {own}"))?;
            }
            for Route { to, via } in spec.all_routes() {
                let Network { address, prefix } = to.masked();
                let request = route::add(&route::Route::new(address, prefix, vec![Hop::new(index, via)]));
                done(request, format!("adding the route to {to}"))?;
            }
            Ok(())
        })?
    }
}

/// Mounts files over the machine's, and the `/sys` of this network namespace if `own_network`, for this
/// process and its children only. Runs between fork and exec.
fn show(files: &[(CString, CString)], own_network: bool) -> io::Result<()> {
    if files.is_empty() && !own_network {
        return Ok(());
    }
    unshare(UnshareFlags::NEWNS)?;
    mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)?;
    for (source, target) in files {
        match mount_bind(source.as_c_str(), target.as_c_str()) {
            // The machine lacks the file, such as /etc/resolv.conf: there is nothing to replace.
            Err(Errno::NOENT) => {}
            other => other?,
        }
    }
    if own_network {
        show_sys();
    }
    Ok(())
}

/// Mounts the `/sys` of this process's network namespace. Mounts below `/sys`, such as control groups, are
/// kept for programs. If the kernel refuses (in a container that masks parts of `/sys`), the machine's stays.
fn show_sys() {
    const KEPT: [&CStr; 4] =
        [c"/sys/fs/cgroup", c"/sys/fs/bpf", c"/sys/kernel/debug", c"/sys/kernel/tracing"];
    let all = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let kept = KEPT.map(|path| open_tree(CWD, path, all));
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if mount(c"sysfs", c"/sys", c"sysfs", flags, None).is_err() {
        return;
    }
    for (tree, path) in kept.into_iter().zip(KEPT) {
        // Missing or inaccessible mounts are skipped.
        let _ =
            tree.and_then(|tree| move_mount(tree, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> HostSpec {
        HostSpec::new("a", "10.0.0.1/24".parse().unwrap())
    }

    fn refused(change: impl FnOnce(&mut HostSpec)) -> String {
        let mut spec = spec();
        change(&mut spec);
        spec.check().unwrap_err().to_string()
    }

    #[test]
    fn impossible_hosts_are_refused_with_field_and_fix() {
        spec().check().unwrap();
        assert!(refused(|s| s.mtu = 67).starts_with("host a, mtu: 67 is outside 68 to 65535"));
        assert!(refused(|s| s.mtu = 65_536).contains("mtu"));
        assert!(refused(|s| s.mac = Some(Mac([1, 0, 0, 0, 0, 1]))).contains("mac"));
        assert!(
            refused(|s| s.gateways = vec!["10.0.1.1".parse().unwrap()])
                .contains("none of the host's networks")
        );
        let two = ["10.0.0.2", "10.0.0.3"].map(|a| a.parse().unwrap());
        assert!(refused(|s| s.gateways = two.to_vec()).contains("more than one"));
        let mixed = Route { to: "::/0".parse().unwrap(), via: Some("10.0.0.2".parse().unwrap()) };
        assert!(refused(|s| s.routes = vec![mixed]).contains("different families"));
        assert!(
            refused(|s| {
                s.addresses.push("fd00::1/64".parse().unwrap());
                s.mtu = 1279;
            })
            .contains("outside 1280")
        );
    }
}
