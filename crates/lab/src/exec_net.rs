//! Two ends for one command: the *near* end is the command's own namespace; behind the emulated link, the
//! *far* end is this machine's network, or, without privileges, a closed namespace for services started
//! there.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::process::Command;

use longwire_netlink::{Neighbour, Socket, interface_index, neighbour};

use crate::address::mac_of_place;
use crate::firewall;
use crate::free_network::{Networks, free_names, has_way_out_by_ipv6};
use crate::host::{HostState, INTERFACE, KernelTraffic};
use crate::lab::new_state;
use crate::machine;
use crate::names::check_instance;
use crate::namespace::Namespace;
use crate::resolver::Resolver;
use crate::state::{Forwarding, LabLock, LabState, folder_of, write_whole};
use crate::{Host, HostSpec, Lab, LabError, Network, Result, StoppableThread, Wiring, relay};

/// Name of the near end, as a host of the lab.
pub const NEAR: &str = "near";
/// Name of the far end, as a host of the lab.
pub const FAR: &str = "far";
/// Environment variable with the far end's address, for the command.
pub const FAR_ADDRESS: &str = "LONGWIRE_FAR";
/// Environment variable with the far end's IPv6 address, if any, for the command.
pub const FAR_IPV6_ADDRESS: &str = "LONGWIRE_FAR_IPV6";

const DNS_PORT: u16 = 53;
/// RFC 8200 section 5.
const LEAST_MTU_OF_IPV6: u32 = 1280;

/// The specification of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecSpec {
    /// The network behind the link.
    pub far: FarEnd,
    /// How both ends are wired to the engine.
    pub wiring: Wiring,
    /// Largest IP packet, in bytes: 68 to 65535.
    pub mtu: u32,
}

/// The network behind the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// The network of the calling thread's namespace, with address translation.
    Machine,
    /// The network of this process's namespace, served by a [`crate::UserNetwork`], with address translation.
    User {
        /// The name server there, which resolves names as the machine does.
        name_server: IpAddr,
    },
    /// A separate, isolated namespace.
    Private,
}

/// The two ends, up. Dropping it takes them down and restores the machine's settings; after a crash,
/// [`crate::sweep`] does.
#[derive(Debug)]
pub struct ExecNet {
    // Dropped before the lab: relays end before their address is removed.
    relays: Vec<StoppableThread>,
    lab: Lab,
    resolver: Resolver,
    far: FarEnd,
}

impl ExecNet {
    /// Creates both ends. With [`Wiring::Veth`] they are ready, with [`Wiring::Tap`] they need
    /// [`ExecNet::configure`].
    ///
    /// # Errors
    /// If no network is free, or the kernel refuses; then nothing is left behind.
    pub fn create(instance: &str, spec: &ExecSpec) -> Result<Self> {
        check_instance(instance)?;
        let guard = LabLock::acquire()?;
        let (state, far) = plan(instance, spec)?;
        let resolver = match spec.far {
            FarEnd::Machine => Resolver::here(),
            FarEnd::User { name_server } => Resolver::here().by_way_of(name_server),
            FarEnd::Private => Resolver::None,
        };
        let lab = Lab::build(state, &guard, |state| {
            let folder = folder_of(instance);
            let doing = || LabError::system(format!("writing the command's files in {}", folder.display()));
            if let Some(text) = resolver.file(&far) {
                write_whole(&folder.join("resolv.conf"), text.as_bytes()).map_err(doing())?;
            }
            if spec.far != FarEnd::Machine {
                let names = with_far(&fs::read("/etc/hosts").unwrap_or_default(), &far);
                write_whole(&folder.join("hosts"), &names).map_err(doing())?;
            }
            if matches!(spec.far, FarEnd::User { .. }) {
                firewall::drop_strays()?;
            }
            match &state.forwarding {
                Some(forwarding) => machine::prepare(instance, forwarding, &guard),
                None => Ok(()),
            }
        })?;
        // Released before anything that may take the lab down, which acquires it itself.
        drop(guard);
        let mut net = Self { relays: Vec::new(), lab, resolver, far: spec.far };
        if matches!(spec.wiring, Wiring::Veth { .. }) {
            net.introduce(net.near(), net.far())?;
            net.introduce(net.far(), net.near())?;
            net.answer_names()?;
        }
        Ok(net)
    }

    /// Sets addresses and routes of an end's interface ([`NEAR`] or [`FAR`]), which was created in its
    /// namespace, for [`Wiring::Tap`].
    ///
    /// # Errors
    /// If there is no such end or interface, or the kernel refuses.
    pub fn configure(&mut self, end: &str) -> Result<()> {
        self.lab.configure(end)?;
        if end == FAR {
            self.introduce(self.far(), self.near())?;
            self.answer_names()
        } else {
            self.introduce(self.near(), self.far())
        }
    }

    /// The lab of the two ends; its core namespace holds the engine's ends of the wires.
    #[must_use]
    pub const fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The command's end.
    #[must_use]
    pub fn near(&self) -> &Host {
        &self.lab.hosts()[0]
    }

    /// The end behind the link.
    #[must_use]
    pub fn far(&self) -> &Host {
        &self.lab.hosts()[1]
    }

    /// Whether the far end is this machine itself, and not a namespace of the run.
    #[must_use]
    pub fn far_is_machine(&self) -> bool {
        self.far == FarEnd::Machine
    }

    /// The far end's IPv4 address, where the machine's own services are reached from the near end.
    #[must_use]
    pub fn far_address(&self) -> IpAddr {
        self.far().spec().addresses[0].address
    }

    /// The far end's IPv6 address; none if the machine has no IPv6, or the MTU is too small for it.
    #[must_use]
    pub fn far_ipv6_address(&self) -> Option<IpAddr> {
        self.far().spec().addresses.get(1).map(|own| own.address)
    }

    /// The index of the far end's interface in its network.
    ///
    /// # Errors
    /// If it is not there yet.
    pub fn far_interface(&self) -> Result<u32> {
        let doing = LabError::system("finding the far end's interface");
        self.far().run(|| interface_index(self.far().interface()))?.map_err(doing)
    }

    /// A command at the near end; `LONGWIRE_FAR` in its environment is the far end's address, and
    /// `LONGWIRE_FAR_IPV6` the one by IPv6.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        Ok(self.with_addresses(self.near().command(program)?))
    }

    /// A command at the far end, for a service for the near end.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub fn far_command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        Ok(self.with_addresses(self.far().command(program)?))
    }

    fn with_addresses(&self, mut command: Command) -> Command {
        command.env(FAR_ADDRESS, self.far_address().to_string());
        match self.far_ipv6_address() {
            Some(address) => command.env(FAR_IPV6_ADDRESS, address.to_string()),
            // An outer run's.
            None => command.env_remove(FAR_IPV6_ADDRESS),
        };
        command
    }

    /// Restores the machine's forwarding and firewall, while the ends are still up.
    ///
    /// # Errors
    /// If something can't be restored.
    pub fn close_way_out(&self) -> Result<()> {
        let Some(forwarding) = self.lab.forwarding() else { return Ok(()) };
        machine::close(self.lab.instance(), forwarding, &LabLock::acquire_to_remove()?)
    }

    /// Takes both ends down.
    ///
    /// # Errors
    /// If something can't be removed or restored; the rest still is.
    pub fn down(self) -> Result<()> {
        drop(self.relays);
        self.lab.down()
    }

    /// Sets the other end's hardware address at an end. Resolving it over the link would delay a command's
    /// first packet by a round trip, and fail on a link that loses the request.
    fn introduce(&self, end: &Host, other: &Host) -> Result<()> {
        let Some(mac) = other.spec().mac else { return Ok(()) };
        let doing = |what: &str| LabError::system(format!("{what} for the {} end's neighbour", end.name()));
        end.run(|| {
            let socket = Socket::route().map_err(doing("opening a netlink socket"))?;
            let index = interface_index(end.interface()).map_err(doing("finding the interface"))?;
            for own in &other.spec().addresses {
                let (address, mac, state) = (own.address, Some(mac.0), libc::NUD_PERMANENT);
                socket
                    .request(neighbour::set(&Neighbour { index, address, mac, state }))
                    .map_err(doing("setting the hardware address"))?;
            }
            Ok(())
        })?
    }

    /// Starts relays for name servers that the near end can't reach, once the far end has its address.
    fn answer_names(&mut self) -> Result<()> {
        let Resolver::Relay { servers, .. } = &self.resolver else { return Ok(()) };
        for own in self.far().spec().addresses.clone() {
            let at = SocketAddr::new(own.address, DNS_PORT);
            let start = || relay::start(UdpSocket::bind(at)?, TcpListener::bind(at)?, servers.clone());
            match self.far().run(start)? {
                Ok(relay) => self.relays.push(relay),
                // A name server of this machine that listens on every address also listens on this one.
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
                Err(e) => return Err(LabError::system(format!("listening for name queries on {at}"))(e)),
            }
        }
        Ok(())
    }
}

/// The machine's file of names, which may have any bytes in its comments, with the far end's.
fn with_far(names: &[u8], far: &[IpAddr]) -> Vec<u8> {
    let far: String = far.iter().map(|address| format!("{address} {FAR}\n")).collect();
    [names.trim_ascii_end(), b"\n", far.as_bytes()].concat()
}

/// The planned state, and the far end's addresses.
fn plan(instance: &str, spec: &ExecSpec) -> Result<(LabState, Vec<IpAddr>)> {
    let others: Vec<Forwarding> = LabState::read_all()?.into_iter().filter_map(|s| s.forwarding).collect();
    let networks = Networks::free(&others, spec.mtu >= LEAST_MTU_OF_IPV6)?;
    let (far, near) = (networks.hosts(1), networks.hosts(2));
    let out_by_ipv6 = spec.far != FarEnd::Private && has_way_out_by_ipv6() && machine::can_forward_ipv6();
    let end = |name: &str, addresses: &[Network], place: u32| HostState {
        spec: HostSpec {
            addresses: addresses.to_vec(),
            mac: Some(mac_of_place(place)),
            mtu: spec.mtu,
            wiring: spec.wiring,
            kernel_traffic: KernelTraffic::None,
            ..HostSpec::new(name, addresses[0])
        },
        namespace: Some(format!("lw-{instance}-{name}")),
        interface: INTERFACE.to_owned(),
        port: matches!(spec.wiring, Wiring::Veth { .. }).then(|| name.to_owned()),
    };
    let (mut near, mut far_end) = (end(NEAR, &near, 1), end(FAR, &far, 2));
    let far: Vec<IpAddr> = far.iter().map(|own| own.address).collect();
    // Without a way out programs should see that at once, and use IPv4.
    near.spec.gateways = far.iter().copied().filter(|far| far.is_ipv4() || out_by_ipv6).collect();
    let mut forwarding = None;
    if spec.far != FarEnd::Private {
        let uplink = free_names(others.iter()).next().unwrap_or_default();
        far_end.namespace = None;
        far_end.interface.clone_from(&uplink);
        let networks = far_end.spec.addresses.iter().map(Network::masked).collect();
        forwarding = Some(Forwarding { machine: Namespace::current()?.id(), uplink, networks, out_by_ipv6 });
    }
    near.spec.check()?;
    Ok((LabState { forwarding, ..new_state(instance, vec![near, far_end])? }, far))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_machine_are_kept_whatever_their_comments_are() {
        let far: [IpAddr; 2] = [[100, 64, 0, 1].into(), "fd00::1".parse().unwrap()];
        let names = with_far(b"127.0.0.1 localhost # K\xfcche\n\n", &far);
        assert_eq!(names, b"127.0.0.1 localhost # K\xfcche\n100.64.0.1 far\nfd00::1 far\n");
    }
}
