//! The interface of drivers whose ports lead out of the process.

use super::af_xdp::AfXdpError;
use crate::interface::OpenError;
use longwire_block::{Port, Values};
use longwire_drivers::Netns;
use std::error::Error;

/// Why a port can't be opened; the message says what to do.
pub type OpenFault = Box<dyn Error + Send + Sync>;

/// A port to be opened.
#[derive(Debug, Clone, Copy)]
pub struct PortRequest<'a> {
    /// Its name in the scenario.
    pub name: &'a str,
    /// Its interface; empty if the driver has none.
    pub interface: &'a str,
    /// The namespace of its interface or socket, which is the calling thread's.
    pub netns: &'a Netns,
    /// Number of queues, each of which becomes a port.
    pub queues: u16,
    /// All its settings, in the order of the driver's declaration.
    pub values: &'a Values,
}

/// The engine's end of a test host's wire, to be opened.
#[derive(Debug, Clone)]
pub struct HostEnd<'a> {
    /// The host's name.
    pub name: &'a str,
    /// This end of the veth pair, or the name of the device to create as the host's interface.
    pub interface: String,
    /// The host's hardware address.
    pub mac: [u8; 6],
    /// The host's MTU in bytes.
    pub mtu: u32,
}

/// Opens ports of a driver, in the calling thread's network namespace.
pub trait Open: Sync {
    /// Opens the ports of one worker in one namespace, in order: for each a port per queue. They continue
    /// when their interface was gone and is back.
    ///
    /// # Errors
    /// The first one that can't be opened.
    fn ports(&self, wanted: &[PortRequest<'_>]) -> Result<Vec<Vec<Box<dyn Port>>>, OpenFault>;

    /// Opens the ends of hosts' wires that one worker serves in this namespace, in order. Not called for
    /// drivers that serve no hosts.
    ///
    /// # Errors
    /// The first one that can't be opened.
    fn hosts(&self, ends: &[HostEnd<'_>]) -> Result<Vec<Box<dyn Port>>, OpenFault> {
        ends.first()
            .map_or(Ok(Vec::new()), |end| Err(format!("no host such as \"{}\" is served", end.name).into()))
    }
}

/// A fault of an interface that is in `netns`: says so, because its commands only work there.
pub fn fault_in(netns: &Netns, fault: OpenFault) -> OpenFault {
    if *netns == Netns::Own {
        return fault;
    }
    let of_interface = match fault.downcast_ref::<AfXdpError>() {
        Some(AfXdpError::Interface(error)) => Some(error),
        _ => fault.downcast_ref::<OpenError>(),
    };
    let text = match of_interface {
        Some(OpenError::Missing { name }) => {
            let list = netns.command("ip link");
            let none = format!("there is none of that name in the network namespace {netns}");
            Some(format!("interface {name}: {none}; \"{list}\" lists them"))
        }
        Some(OpenError::Namespace { .. }) => None,
        _ if of_interface.is_some() || fault.is::<AfXdpError>() => {
            let there = netns.command("COMMAND");
            Some(format!("{fault} (in the network namespace {netns}, where commands run with: {there})"))
        }
        _ => None,
    };
    text.map_or(fault, Into::into)
}

/// Boxes ports for the engine.
pub(super) fn boxed(ports: Vec<impl Port + 'static>) -> Vec<Box<dyn Port>> {
    ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_the_namespace_and_commands_that_work_there() {
        let lab = Netns::Named("lab".into());
        let missing = || OpenError::Missing { name: "eth7".into() };
        let there = "interface eth7: there is none of that name in the network namespace lab; \
            \"ip -n lab link\" lists them";
        assert_eq!(fault_in(&lab, missing().into()).to_string(), there);
        assert_eq!(fault_in(&lab, AfXdpError::from(missing()).into()).to_string(), there);
        let here = fault_in(&Netns::Own, missing().into()).to_string();
        assert_eq!(here, missing().to_string());
        let occupied = || AfXdpError::Occupied { name: "eth7".into() };
        let claimed = || OpenError::Claimed { name: "eth7".into(), pid: Some(7) };
        for (fault, text) in
            [(occupied().into(), occupied().to_string()), (claimed().into(), claimed().to_string())]
        {
            let said = fault_in(&lab, fault).to_string();
            assert!(said.starts_with(&text), "{said}");
            assert!(said.ends_with("with: ip netns exec lab COMMAND)"), "{said}");
        }
        assert_eq!(fault_in(&lab, "port t: no key".into()).to_string(), "port t: no key");
    }
}
