//! A link on an existing interface, of a container or any other namespace.
//!
//! The interface keeps its name, addresses, routes and hardware address, and programs keep their connections.
//! Its packets take a detour ([`Diversion`]) over two veth pairs, whose other ends are in the lab's core
//! namespace: the near pair carries packets of the interface's machine, the far pair those of the network
//! behind the interface.

use std::io;

use longwire_netlink::{Link, Socket, interface_index, link};

use crate::address::mac_of_place;
use crate::diversion::{Detour, Diversion};
use crate::exec_net::{FAR, NEAR};
use crate::free_network::free_names;
use crate::host::{HostState, KernelTraffic};
use crate::lab::new_state;
use crate::names::{check_instance, is_interface};
use crate::namespace::Namespace;
use crate::state::{AttachedInterface, LabLock, LabState};
use crate::{Host, HostSpec, Lab, LabError, Result, Wiring};

/// Longest packets that a veth pair carries.
const LONGEST: u32 = 65_535;

/// An interface to which a link can be attached.
#[derive(Debug, Clone)]
pub struct Interface {
    name: String,
    index: u32,
    mtu: u32,
}

impl Interface {
    /// Finds an interface in the calling thread's namespace.
    ///
    /// # Errors
    /// If there is none of this name, or it is not an Ethernet interface.
    pub fn find(name: &str) -> Result<Self> {
        let doing = || LabError::system("listing the interfaces");
        let socket = Socket::route().map_err(doing())?;
        let refused = |reason: String| LabError::Interface { interface: name.to_owned(), reason };
        let index = is_interface(name).then(|| interface_index(name).ok()).flatten();
        let mut links = Vec::new();
        socket.dump(link::list(), |_, body| links.extend(Link::read(body).ok().flatten())).map_err(doing())?;
        let Some(link) = links.iter().find(|link| Some(link.index) == index) else {
            let names: Vec<_> =
                links.iter().filter_map(|l| longwire_netlink::interface_name(l.index).ok()).collect();
            let has = names.join(", ");
            return Err(refused(format!("there is none of this name in the namespace; it has {has}")));
        };
        if link.hardware != libc::ARPHRD_ETHER {
            let reason =
                "it is no Ethernet interface, and a link carries Ethernet frames; name one such as eth0";
            return Err(refused(reason.to_owned()));
        }
        Ok(Self { name: name.to_owned(), index: link.index, mtu: link.mtu.min(LONGEST) })
    }

    /// The longest IP packet that it carries, in bytes.
    #[must_use]
    pub const fn mtu(&self) -> u32 {
        self.mtu
    }
}

/// An interface with the ends of its detour. Dropping it removes them; after a crash, [`crate::sweep`] does.
#[derive(Debug)]
pub struct Attachment {
    interface: Interface,
    lab: Lab,
}

impl Attachment {
    /// Creates the ends for an interface of the calling thread's namespace. Its packets are unaffected until
    /// [`Attachment::divert`].
    ///
    /// # Errors
    /// If it already has a link, or the kernel refuses; then nothing is left behind.
    pub fn create(instance: &str, interface: Interface) -> Result<Self> {
        check_instance(instance)?;
        let guard = LabLock::acquire()?;
        let attached =
            AttachedInterface { namespace: Namespace::current()?.id(), interface: interface.name.clone() };
        let others = LabState::read_all()?;
        let same = |s: &&LabState| s.attached.as_ref() == Some(&attached) && s.instance != instance;
        if let Some(other) = others.iter().find(same).filter(|other| !other.is_left()) {
            let other = &other.instance;
            let reason =
                format!("it has a link already ({other}); end that first, with `longwire ctl stop {other}`");
            return Err(LabError::Interface { interface: interface.name, reason });
        }
        let names = free_names(others.iter().filter_map(|other| other.forwarding.as_ref()));
        let ends = [NEAR, FAR].into_iter().zip(names).zip(1..);
        let hosts = ends.map(|((name, interface_name), place)| HostState {
            spec: HostSpec {
                name: name.to_owned(),
                addresses: Vec::new(),
                mac: Some(mac_of_place(place)),
                mtu: interface.mtu,
                gateways: Vec::new(),
                routes: Vec::new(),
                wiring: Wiring::Veth { offload: true },
                kernel_traffic: KernelTraffic::None,
            },
            namespace: None,
            interface: interface_name,
            port: Some(name.to_owned()),
        });
        let state = LabState { attached: Some(attached), ..new_state(instance, hosts.collect())? };
        let lab = Lab::build(state, &guard, |_| Ok(()))?;
        Ok(Self { interface, lab })
    }

    /// The lab of the two ends; its core namespace holds the engine's ends of the wires.
    #[must_use]
    pub const fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Diverts the interface's packets over the ends, in both directions, until the returned value is
    /// dropped.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn divert(&self) -> Result<Diversion> {
        let [near, far] = [0, 1].map(|end| &self.lab.hosts()[end]);
        let begun = near.run(|| {
            let index = |host: &Host| interface_index(host.interface());
            let detour = Detour { interface: self.interface.index, inner: index(near)?, outer: index(far)? };
            Diversion::begin(detour)
        })?;
        begun.map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => LabError::Interface {
                interface: self.interface.name.clone(),
                reason: "the kernel can't send its packets elsewhere: that takes Linux 6.6 or newer"
                    .to_owned(),
            },
            _ => LabError::system(format!("taking the packets of {}", self.interface.name))(error),
        })
    }

    /// Whether the interface still exists.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let found = self.lab.hosts()[0].run(|| interface_index(&self.interface.name));
        !found.is_ok_and(|found| is_gone(&found, self.interface.index))
    }

    /// Removes the ends.
    ///
    /// # Errors
    /// If something can't be removed; the rest is still removed.
    pub fn down(self) -> Result<()> {
        self.lab.down()
    }
}

/// Whether an interface is certainly gone: looking for it may fail for another reason.
fn is_gone(found: &io::Result<u32>, index: u32) -> bool {
    match found {
        Ok(found) => *found != index,
        Err(error) => error.raw_os_error() == Some(libc::ENODEV),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_gone_only_if_the_kernel_says_so() {
        let error = |number| Err(io::Error::from_raw_os_error(number));
        for (found, gone) in
            [(Ok(3), false), (Ok(4), true), (error(libc::ENODEV), true), (error(libc::EMFILE), false)]
        {
            assert_eq!(is_gone(&found, 3), gone, "{found:?}");
        }
    }
}
