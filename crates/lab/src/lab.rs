//! A lab: hosts in namespaces, their wires, and the core namespace with the engine's ends.

mod changes;

use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longwire_netlink::{LinkSettings, Socket, interface_index, link};
use rustix::process::Signal;

use crate::address::mac_of_place;
use crate::host::{HostState, INTERFACE, KernelTraffic};
use crate::machine;
use crate::names::check_instance;
use crate::namespace::Namespace;
use crate::processes;
use crate::quiet;
use crate::state::{Forwarding, LabLock, LabState, OwnerProcess, folder_of, write_whole};
use crate::{Host, HostSpec, LabError, Result, Wiring};

/// The interface group of the engine's ends in the core namespace.
const PORTS: u32 = 1;

/// The start of every host's `/etc/hosts`, before the lab's names.
const LOCAL_NAMES: &str = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";

/// A lab that is up. Dropping it takes it down, unless it was opened rather than created, or left up with
/// [`Lab::persist`].
#[derive(Debug)]
pub struct Lab {
    state: LabState,
    core: Namespace,
    hosts: Vec<Host>,
    owned: bool,
}

impl Lab {
    /// Creates the hosts and wires those that use veth; a host wired by TAP needs [`Lab::configure`].
    /// Namespaces are named `lw-<instance>-<host>`; leftovers of a killed lab of the same name are removed
    /// first.
    ///
    /// # Errors
    /// If a name or field is invalid, the lab is already up, or the kernel refuses; then nothing is left
    /// behind.
    pub fn create(instance: &str, hosts: &[HostSpec]) -> Result<Self> {
        check_instance(instance)?;
        for (i, spec) in hosts.iter().enumerate() {
            spec.check()?;
            if hosts[..i].iter().any(|other| other.name == spec.name) {
                let reason = "two hosts have this name; rename one".to_owned();
                return Err(LabError::Host { host: spec.name.clone(), field: "name", reason });
            }
        }
        let hosts = (0u32..).zip(hosts).map(|(i, spec)| host_state(instance, i, spec)).collect();
        let guard = LabLock::acquire()?;
        Self::build(new_state(instance, hosts)?, &guard, |state| {
            write_hosts_file(state)?;
            let folder = folder_of(&state.instance);
            let doing = || LabError::system(format!("writing the hosts' files in {}", folder.display()));
            // Name servers are unreachable from inside; trying them would take seconds per query.
            write_whole(&folder.join("resolv.conf"), b"# A test host has no name server.\n").map_err(doing())
        })
    }

    /// Creates what a state describes; `prepare` writes the files shown inside the hosts.
    pub(crate) fn build(
        state: LabState,
        guard: &LabLock,
        prepare: impl FnOnce(&LabState) -> Result<()>,
    ) -> Result<Self> {
        claim(&state.instance, guard)?;
        if let Some(taken) = state.namespaces().find(|n| Namespace::exists(n)) {
            return Err(LabError::NamespaceExists(taken.to_owned()));
        }
        state.write(guard)?;
        let made = prepare(&state).and_then(|()| make(&state));
        match made {
            Ok((core, hosts)) => Ok(Self { state, core, hosts, owned: true }),
            Err(e) => {
                // The first error is reported; a later sweep finds what can't be removed now.
                let _ = take_down(&state, guard);
                Err(e)
            }
        }
    }

    /// Opens a lab that is up, created by this or another process, without hosts that are just being added or
    /// removed. Dropping it leaves the lab up.
    ///
    /// # Errors
    /// If no lab of this name is up, or its namespaces can't be opened.
    pub fn open(instance: &str) -> Result<Self> {
        check_instance(instance)?;
        let state = LabState::read(instance)?.ok_or_else(|| LabError::UnknownLab(instance.to_owned()))?;
        let core = Namespace::open(&state.core)?;
        let is_there = |host: &&HostState| host.namespace.as_deref().is_none_or(Namespace::exists);
        let there = state.hosts.iter().filter(is_there);
        let hosts = there.map(|h| open_host(&state, h)).collect::<Result<_, _>>()?;
        Ok(Self { state, core, hosts, owned: false })
    }

    /// The lab's name.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.state.instance
    }

    /// Its changes in the machine's own namespace.
    pub(crate) const fn forwarding(&self) -> Option<&Forwarding> {
        self.state.forwarding.as_ref()
    }

    /// Its hosts, in the given order.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// One host.
    ///
    /// # Errors
    /// If the lab has none of this name.
    pub fn host(&self, name: &str) -> Result<&Host> {
        self.hosts.iter().find(|h| h.name() == name).ok_or_else(|| LabError::UnknownHost {
            instance: self.state.instance.clone(),
            host: name.to_owned(),
            known: self.hosts.iter().map(Host::name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Runs `f` on a new thread inside the core namespace and waits for it. Sockets and TAP devices opened
    /// there keep working from any thread.
    ///
    /// # Errors
    /// If the kernel refuses to let the thread in.
    ///
    /// # Panics
    /// If `f` panics.
    pub fn in_core<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R> {
        self.core.run(f)
    }

    /// The core namespace, with the engine's ends of the wires.
    #[must_use]
    pub const fn core(&self) -> &Namespace {
        &self.core
    }

    /// Sets addresses and routes of a host's interface, which was created in the host's namespace: for hosts
    /// wired by TAP.
    ///
    /// # Errors
    /// If there is no such host or interface, or the kernel refuses.
    pub fn configure(&self, host: &str) -> Result<()> {
        self.host(host)?.configure()
    }

    /// Leaves the lab up when this process ends, until [`Lab::down`].
    ///
    /// # Errors
    /// If the lab's state can't be written; the lab is then taken down.
    pub fn persist(mut self) -> Result<()> {
        let guard = LabLock::acquire()?;
        self.state.owner = None;
        self.state.write(&guard)?;
        self.owned = false;
        Ok(())
    }

    /// Takes the lab down: ends the programs inside its hosts, removes its namespaces and its state.
    ///
    /// # Errors
    /// If something can't be removed; the rest is still removed.
    pub fn down(mut self) -> Result<()> {
        self.owned = false;
        let guard = LabLock::acquire_to_remove()?;
        take_down(&self.state_now(), &guard)
    }

    /// The labs that are up, by name, and those left by killed processes.
    ///
    /// # Errors
    /// If the folder of states can't be read.
    pub fn list() -> Result<Vec<LabInfo>> {
        Ok(LabState::read_all()?.into_iter().map(LabInfo::of).collect())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.owned {
            // Errors can't be reported; what can't be removed stays in the state for a later sweep.
            let _ = LabLock::acquire_to_remove().and_then(|guard| take_down(&self.state_now(), &guard));
        }
    }
}

/// A lab listed by [`Lab::list`].
#[derive(Clone, Debug)]
pub struct LabInfo {
    /// Its name.
    pub instance: String,
    /// The process that takes it down; `None` for a persistent one.
    pub owner: Option<u32>,
    /// Whether that process ended without taking it down.
    pub dead: bool,
    /// Its hosts.
    pub hosts: Vec<HostSpec>,
    /// The owner itself, held so that its id can't be reused.
    pub(crate) process: Option<Arc<OwnedFd>>,
}

impl LabInfo {
    fn of(state: LabState) -> Self {
        let process = state.owner.as_ref().and_then(OwnerProcess::hold).map(Arc::new);
        Self::held(state, process)
    }

    pub(crate) fn held(state: LabState, process: Option<Arc<OwnedFd>>) -> Self {
        Self {
            process,
            instance: state.instance,
            dead: state.owner.as_ref().is_some_and(OwnerProcess::is_dead),
            owner: state.owner.map(|o| o.pid),
            hosts: state.hosts.into_iter().map(|h| h.spec).collect(),
        }
    }

    /// Sends SIGTERM to this lab's owner; returns whether there was one.
    pub fn ask_to_end(&self) -> bool {
        self.process.iter().for_each(|process| processes::send(process, Signal::TERM));
        self.process.is_some()
    }

    /// Waits until this lab's owner has ended; returns whether it has. False if it is not visible from here,
    /// or the lab has no owner.
    pub fn wait_for_end(&self, patience: Duration) -> bool {
        match &self.process {
            Some(process) => processes::ends_before(process, Instant::now() + patience),
            None => self.dead,
        }
    }
}

/// Removes labs of killed processes, whose owner has certainly ended. Returns their names; none without the
/// privileges to remove anything.
///
/// # Errors
/// If something can't be removed; the rest is still removed.
pub fn sweep() -> Result<Vec<String>> {
    if !LabState::read_all()?.iter().any(LabState::is_left) && LabState::unfinished()?.is_empty() {
        return Ok(Vec::new());
    }
    let guard = match LabLock::acquire() {
        // Leftovers of root are root's to remove, and harmless.
        Err(LabError::System { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Vec::new());
        }
        other => other?,
    };
    let mut swept = Vec::new();
    let mut result = LabState::remove_unfinished(&guard);
    for state in LabState::read_all()?.into_iter().filter(LabState::is_left) {
        result = result.and(take_down(&state, &guard));
        swept.push(state.instance);
    }
    result.map(|()| swept)
}

/// The state of a lab owned by this process.
pub(crate) fn new_state(instance: &str, hosts: Vec<HostState>) -> Result<LabState> {
    Ok(LabState {
        instance: instance.to_owned(),
        owner: Some(OwnerProcess::this_process()?),
        core: format!("lw-{instance}-core"),
        hosts,
        forwarding: None,
        attached: None,
    })
}

/// Ensures that no other lab has this name, and removes leftovers of a killed one.
fn claim(instance: &str, guard: &LabLock) -> Result<()> {
    match LabState::read(instance)? {
        None => Ok(()),
        Some(state) if state.is_left() => take_down(&state, guard),
        Some(state) => Err(LabError::InUse {
            instance: instance.to_owned(),
            owner: state.owner.map_or_else(|| "left up".to_owned(), |o| format!("process {}", o.pid)),
        }),
    }
}

fn make(state: &LabState) -> Result<(Namespace, Vec<Host>)> {
    let core = Namespace::create(&state.core)?;
    core.run(|| {
        quiet::without_ipv6(quiet::NEW);
        loopback_up()
    })??;
    state.hosts.iter().try_for_each(make_namespace)?;
    let hosts = state.hosts.iter().map(|h| open_host(state, h)).collect::<Result<Vec<_>, _>>()?;
    hosts.iter().try_for_each(|host| wire_up(&core, host))?;
    Ok((core, hosts))
}

fn host_state(instance: &str, number: u32, spec: &HostSpec) -> HostState {
    HostState {
        spec: HostSpec { mac: Some(spec.mac.unwrap_or(mac_of_place(number + 1))), ..spec.clone() },
        namespace: Some(format!("lw-{instance}-{}", spec.name)),
        interface: INTERFACE.to_owned(),
        port: matches!(spec.wiring, Wiring::Veth { .. }).then(|| format!("port{number}")),
    }
}

/// Creates the namespace of a host that has its own.
fn make_namespace(host: &HostState) -> Result<()> {
    let Some(name) = &host.namespace else { return Ok(()) };
    Namespace::create(name)?.run(|| {
        if host.spec.wiring == Wiring::Own {
            quiet::as_router();
        } else if !host.spec.has_ipv6() {
            quiet::without_ipv6(quiet::NEW);
        } else if host.spec.kernel_traffic == KernelTraffic::None {
            quiet::silent_ipv6(quiet::NEW);
        } else {
            quiet::fixed_ipv6(quiet::NEW);
        }
        quiet::ping_for_all();
        loopback_up()
    })?
}

/// Wires a host that uses veth.
fn wire_up(core: &Namespace, host: &Host) -> Result<()> {
    let Some(port) = host.port() else { return Ok(()) };
    wire(core, host, port)?;
    host.configure()
}

/// Writes the names by which hosts know each other.
fn write_hosts_file(state: &LabState) -> Result<()> {
    let file = folder_of(&state.instance).join("hosts");
    let doing = LabError::system(format!("writing {}", file.display()));
    write_whole(&file, hosts_file(state).as_bytes()).map_err(doing)
}

pub(crate) fn loopback_up() -> Result<()> {
    set_up("lo").map_err(LabError::system("bringing the loopback up"))
}

fn set_up(interface: &str) -> io::Result<()> {
    let up = LinkSettings { up: true, ..LinkSettings::default() };
    Socket::route()?.request(link::change(interface_index(interface)?, &up))
}

/// Creates a veth pair with one end in the core and one in the host.
fn wire(core: &Namespace, host: &Host, port: &str) -> Result<()> {
    let spec = host.spec();
    let alike = LinkSettings { mtu: Some(spec.mtu), ..LinkSettings::default() };
    let outer = LinkSettings { name: Some(port), group: Some(PORTS), ..alike };
    let inner = LinkSettings {
        name: Some(host.interface()),
        mac: spec.mac.map(|mac| mac.0),
        namespace: Some(host.namespace().as_fd()),
        ..alike
    };
    core.run(|| {
        Socket::route()?.request(link::new_veth(&outer, &inner))?;
        set_up(port)
    })?
    .map_err(LabError::system(format!("wiring host {} with a veth pair", spec.name)))
}

fn open_host(state: &LabState, host: &HostState) -> Result<Host> {
    let namespace = match &host.namespace {
        Some(name) => Namespace::open(name)?,
        None => machine_of(state)?,
    };
    let folder = folder_of(&state.instance);
    let shown = if host.namespace.is_none() {
        Vec::new()
    } else {
        ["hosts", "resolv.conf"]
            .into_iter()
            .map(|file| (folder.join(file), PathBuf::from("/etc").join(file)))
            .filter(|(source, _)| source.exists())
            .collect()
    };
    Ok(Host { state: host.clone(), namespace, shown })
}

/// The namespace of a host without its own: the one in which the lab was created.
fn machine_of(state: &LabState) -> Result<Namespace> {
    let attached = state.attached.as_ref().map(|attached| attached.namespace);
    let id = state.forwarding.as_ref().map(|forwarding| forwarding.machine).or(attached);
    let found = id.and_then(machine::find);
    found.map_or_else(Namespace::current, Ok)
}

fn hosts_file(state: &LabState) -> String {
    let mut text = LOCAL_NAMES.to_owned();
    for spec in state.hosts.iter().map(|h| &h.spec) {
        for address in &spec.addresses {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{} {}", address.address, spec.name);
        }
    }
    text
}

/// Removes everything in a state. Missing parts are not an error; after a failure the rest is still removed,
/// and the state stays for another try.
fn take_down(state: &LabState, guard: &LabLock) -> Result<()> {
    processes::end_all_in(state.namespaces());
    let mut result = match &state.forwarding {
        Some(forwarding) => machine::restore(&state.instance, forwarding, guard),
        None => Ok(()),
    };
    result = result.and(delete_ports(state));
    for name in state.namespaces() {
        result = result.and(Namespace::remove(name));
    }
    result?;
    state.remove(guard)
}

/// Removes the veth pairs at once: a namespace is cleared only in the background, and not while an engine has
/// sockets in it.
fn delete_ports(state: &LabState) -> Result<()> {
    let Ok(core) = Namespace::open(&state.core) else { return Ok(()) };
    let entered = core.run(|| link::unless_gone(Socket::route()?.request(link::delete_group(PORTS))));
    match entered {
        Ok(result) => result.map_err(LabError::system("removing veth pairs")),
        // A run killed between creating and binding the name left an ordinary file: nothing to enter.
        Err(LabError::System { source, .. }) if source.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        Err(e) => Err(e),
    }
}
