//! The nodes of a plan, and the first hop between them.

use crate::address::Mac;
use crate::plan_nodes::{Host, Port};
use crate::router_plan::{Router, RouterPort};
use std::net::IpAddr;

/// The plan's ports, hosts and routers.
#[derive(Debug, Clone, Copy)]
pub struct Places<'p> {
    /// The ports.
    pub ports: &'p [Port],
    /// The hosts.
    pub hosts: &'p [Host],
    /// The routers.
    pub routers: &'p [Router],
}

impl Places<'_> {
    /// The hardware address of the first hop from one port to another: the destination if only bridges are
    /// between, else a router. None if that is ambiguous.
    pub(crate) fn first_hop(&self, (from, to): (u16, u16), destination: IpAddr) -> Option<Mac> {
        let [here, there] = [from, to].map(|place| &self.ports[usize::from(place)]);
        let own = |router: u32| self.routers[router as usize].ports.iter().find(|port| port.place == from);
        match here.router {
            Some(router) => return own(router).map(|port| port.mac),
            None if here.segment == there.segment => return Some(there.mac),
            None => {}
        }
        let near = |port: &&RouterPort| {
            let far = self.ports[usize::from(port.place)].attachment.far();
            far.is_some_and(|far| self.ports[usize::from(far)].segment == here.segment)
        };
        let near: Vec<_> = self.routers.iter().flat_map(|router| &router.ports).filter(near).collect();
        let gateway = here.attachment.host().and_then(|host| {
            let gateways = &self.hosts[host as usize].gateways;
            gateways.iter().find(|gateway| gateway.is_ipv4() == destination.is_ipv4())
        });
        let has = |port: &&&RouterPort| port.addresses.iter().any(|net| Some(&net.address) == gateway);
        match (gateway, &near[..]) {
            (Some(_), _) => near.iter().find(has).map(|port| port.mac),
            (None, [only]) => Some(only.mac),
            _ => None,
        }
    }
}
