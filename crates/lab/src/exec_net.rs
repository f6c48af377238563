//! Two ends for one command: the *near* end is the command's own namespace; behind the emulated link, the
//! *far* end is this machine's network, or, without privileges, a closed namespace for services started
//! there.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;

use longwire_netlink::{Neighbour, Route, Socket, interface_index, interface_name, neighbour, route};

use crate::host::{HostState, INTERFACE};
use crate::lab::new_state;
use crate::machine;
use crate::names::check_instance;
use crate::namespace::Namespace;
use crate::relay::Relay;
use crate::resolver::{self, Resolver};
use crate::state::{Forwarding, Guard, State, folder_of, write_whole};
use crate::{Cidr, Host, HostSpec, Lab, LabError, Mac, Wiring};

/// Name of the near end, as a host of the lab.
pub const NEAR: &str = "near";
/// Name of the far end, as a host of the lab.
pub const FAR: &str = "far";
/// The environment variable that tells the command the far end's address.
pub const FAR_ADDRESS: &str = "LONGWIRE_FAR";

const DNS_PORT: u16 = 53;

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
    /// A namespace of its own, closed in itself.
    Private,
}

/// The two ends, up. Dropping it takes them down and puts the machine's settings back; after a crash,
/// [`crate::sweep`] does.
#[derive(Debug)]
pub struct ExecNet {
    // Before the lab: the relay ends before the address it listens on goes.
    relay: Option<Relay>,
    lab: Lab,
    resolver: Resolver,
}

impl ExecNet {
    /// Makes both ends. With [`Wiring::Veth`] they are ready, with [`Wiring::Tap`] they wait for
    /// [`ExecNet::adopt`].
    ///
    /// # Errors
    /// When no network is free, or the kernel refuses; nothing is left behind.
    pub fn create(instance: &str, spec: &ExecSpec) -> Result<Self, LabError> {
        check_instance(instance)?;
        let guard = Guard::acquire()?;
        let (state, far_address) = plan(instance, spec)?;
        let resolver = match spec.far {
            FarEnd::Machine => Resolver::of(&fs::read_to_string(resolver::PATH).unwrap_or_default()),
            FarEnd::Private => Resolver::None,
        };
        let lab = Lab::build(state, &guard, |state| {
            let folder = folder_of(instance);
            let doing = || LabError::system(format!("writing the command's files in {}", folder.display()));
            if let Some(text) = resolver.file(far_address) {
                write_whole(&folder.join("resolv.conf"), text.as_bytes()).map_err(doing())?;
            }
            if spec.far == FarEnd::Private {
                let names = fs::read_to_string("/etc/hosts").unwrap_or_default();
                let names = format!("{}\n{far_address} {FAR}\n", names.trim_end());
                write_whole(&folder.join("hosts"), names.as_bytes()).map_err(doing())?;
            }
            match &state.forwarding {
                Some(forwarding) => machine::prepare(instance, forwarding, &guard),
                None => Ok(()),
            }
        })?;
        // Given up before anything that may take the lab down again, which takes it itself.
        drop(guard);
        let mut net = Self { relay: None, lab, resolver };
        if matches!(spec.wiring, Wiring::Veth { .. }) {
            net.introduce(net.near(), net.far())?;
            net.introduce(net.far(), net.near())?;
            net.answer_names()?;
        }
        Ok(net)
    }

    /// Moves an interface from the core namespace to an end ([`NEAR`] or [`FAR`]), for [`Wiring::Tap`].
    ///
    /// # Errors
    /// When there is no such end or interface, or the kernel refuses.
    pub fn adopt(&mut self, end: &str, interface: &str) -> Result<(), LabError> {
        self.lab.adopt(end, interface)?;
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

    /// Whether the far end is a namespace of its own.
    #[must_use]
    pub fn far_is_private(&self) -> bool {
        self.far().state.namespace.is_some()
    }

    /// The far end's address, where the machine's own services are reached from the near end.
    #[must_use]
    pub fn far_address(&self) -> IpAddr {
        self.far().spec().addresses[0].address()
    }

    /// A command at the near end; `LONGWIRE_FAR` in its environment is the far end's address.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command, LabError> {
        let mut command = self.near().command(program)?;
        command.env(FAR_ADDRESS, self.far_address().to_string());
        Ok(command)
    }

    /// A command at the far end, for a service that the near end shall reach.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn far_command(&self, program: impl AsRef<OsStr>) -> Result<Command, LabError> {
        let mut command = self.far().command(program)?;
        command.env(FAR_ADDRESS, self.far_address().to_string());
        Ok(command)
    }

    /// Takes both ends down.
    ///
    /// # Errors
    /// When something can't be removed or put back; the rest is all the same.
    pub fn down(self) -> Result<(), LabError> {
        drop(self.relay);
        self.lab.down()
    }

    /// Tells one end the other's hardware address. Asked for over the link, it would cost a command's first
    /// packet another trip there and back, and a link that loses packets would lose the question.
    fn introduce(&self, end: &Host, other: &Host) -> Result<(), LabError> {
        let Some(mac) = other.spec().mac else { return Ok(()) };
        let doing = |what: &str| LabError::system(format!("{what} for the {} end's neighbour", end.name()));
        end.run(|| {
            let socket = Socket::route().map_err(doing("opening a netlink socket"))?;
            let index = interface_index(end.interface()).map_err(doing("finding the interface"))?;
            for own in &other.spec().addresses {
                let (address, mac, state) = (own.address(), Some(mac.0), libc::NUD_PERMANENT);
                socket
                    .request(neighbour::set(&Neighbour { index, address, mac, state }))
                    .map_err(doing("setting the hardware address"))?;
            }
            Ok(())
        })?
    }

    /// Starts answering for name servers that the near end can't reach, once the far end has its address.
    fn answer_names(&mut self) -> Result<(), LabError> {
        let Resolver::Relay { servers, .. } = &self.resolver else { return Ok(()) };
        let at = SocketAddr::new(self.far_address(), DNS_PORT);
        let started = self.far().run(|| Relay::start(at, servers.clone()))?;
        self.relay = match started {
            Ok(relay) => Some(relay),
            // A name server of this machine that listens on every address listens on this one, too.
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => None,
            Err(e) => return Err(LabError::system(format!("listening for name queries on {at}"))(e)),
        };
        Ok(())
    }
}

/// The state to be, and the far end's address.
fn plan(instance: &str, spec: &ExecSpec) -> Result<(State, IpAddr), LabError> {
    let others: Vec<Forwarding> = State::read_all()?.into_iter().filter_map(|s| s.forwarding).collect();
    let network = free_network(&others)?;
    let [far, near] = [1, 2].map(|host| IpAddr::V4(Ipv4Addr::from(u32::from(network) + host)));
    let end = |name: &str, address, place: u32| {
        let host = HostSpec {
            mac: Some(Mac::of_place(place)),
            mtu: spec.mtu,
            wiring: spec.wiring,
            ..HostSpec::new(name, Cidr::new(address, 30)?)
        };
        Ok::<_, LabError>(HostState {
            spec: host,
            namespace: Some(format!("lw-{instance}-{name}")),
            interface: INTERFACE.to_owned(),
            port: matches!(spec.wiring, Wiring::Veth { .. }).then(|| name.to_owned()),
        })
    };
    let (mut near, mut far_end) = (end(NEAR, near, 1)?, end(FAR, far, 2)?);
    near.spec.gateways = vec![far];
    let mut forwarding = None;
    if spec.far == FarEnd::Machine {
        let uplink = free_name(&others);
        far_end.namespace = None;
        far_end.interface.clone_from(&uplink);
        let network = Cidr::new(far, 30)?.network();
        forwarding = Some(Forwarding { machine: Namespace::current()?.id(), uplink, network });
    }
    near.spec.check()?;
    Ok((State { forwarding, ..new_state(instance, vec![near, far_end])? }, far))
}

/// Ranges to choose from, best first: shared address space (RFC 6598), private (RFC 1918), benchmarks (RFC
/// 2544).
const RANGES: [(Ipv4Addr, u8); 3] =
    [(Ipv4Addr::new(100, 64, 0, 0), 10), (Ipv4Addr::new(10, 0, 0, 0), 8), (Ipv4Addr::new(198, 18, 0, 0), 15)];

/// A network of four addresses that no route of this namespace leads to and no other run has taken.
fn free_network(others: &[Forwarding]) -> Result<Ipv4Addr, LabError> {
    let mut used = route_destinations().map_err(LabError::system("listing this machine's routes"))?;
    // Routes to half the Internet and more are treated as a default route: tunnels set such.
    used.retain(|route| route.prefix() > 1);
    used.extend(others.iter().map(|o| o.network));
    first_free(&used).ok_or(LabError::NoFreeNetwork)
}

/// The MTU of the interface that this namespace's default route for IPv4 leads to. None if there is no such
/// route.
#[must_use]
pub fn way_out_mtu() -> Option<u32> {
    let mut best: Option<(u32, u32)> = None;
    let socket = Socket::route().ok()?;
    let each = socket.dump(route::list(), |_, body| {
        let Ok(Some(route)) = Route::read(body) else { return };
        let (metric, hop) = (route.metric.unwrap_or(0), route.hops.first());
        if let (IpAddr::V4(_), 0, Some(hop)) = (route.to, route.prefix, hop)
            && best.is_none_or(|(other, _)| metric < other)
        {
            best = Some((metric, hop.index));
        }
    });
    each.ok()?;
    let name = interface_name(best?.1).ok()?;
    fs::read_to_string(format!("/sys/class/net/{name}/mtu")).ok()?.trim().parse().ok()
}

/// The destinations of every route in every table, those of the machine's own addresses included.
fn route_destinations() -> io::Result<Vec<Cidr>> {
    let mut found = Vec::new();
    Socket::route()?.dump(route::list(), |_, body| {
        if let Ok(Some(route)) = Route::read(body) {
            found.extend(Cidr::new(route.to, route.prefix));
        }
    })?;
    Ok(found)
}

fn first_free(used: &[Cidr]) -> Option<Ipv4Addr> {
    RANGES.iter().find_map(|(start, prefix)| {
        let candidates = (0..1u32 << (30 - prefix)).map(|i| Ipv4Addr::from(u32::from(*start) + 4 * i));
        candidates.into_iter().find(|network| {
            let network = Cidr::new(IpAddr::V4(*network), 30);
            network.is_ok_and(|n| !used.iter().any(|u| u.overlaps(n)))
        })
    })
}

/// A name for the uplink that no interface here has and no other run has planned.
fn free_name(others: &[Forwarding]) -> String {
    let taken = |name: &String| others.iter().any(|o| o.uplink == *name) || interface_index(name).is_ok();
    (0u32..).map(|i| format!("lw{i}")).find(|name| !taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_network_without_a_route_is_taken() {
        let used = |networks: &[&str]| networks.iter().map(|n| n.parse().unwrap()).collect::<Vec<Cidr>>();
        for (networks, expected) in [
            (&["192.0.2.0/24"][..], Some("100.64.0.0")),
            (&["100.64.0.0/30"], Some("100.64.0.4")),
            (&["100.64.0.0/30", "100.64.0.5/32", "100.64.0.8/29"], Some("100.64.0.16")),
            (&["100.64.0.0/10", "10.0.0.0/9"], Some("10.128.0.0")),
            (&["100.64.0.0/10", "10.0.0.0/8"], Some("198.18.0.0")),
            (&["100.64.0.0/10", "10.0.0.0/8", "198.18.0.0/15"], None),
            (&["fd00::/8"], Some("100.64.0.0")),
        ] {
            assert_eq!(first_free(&used(networks)), expected.map(|e| e.parse().unwrap()), "{networks:?}");
        }
    }
}
