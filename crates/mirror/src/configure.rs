//! Configuration of a new namespace from the scenario's router: interfaces up, with addresses and routes.

use longwire_lab::Network;
use longwire_netlink::{
    Address, Hop, LinkSettings, Message, Route, Socket, address, interface_index, link, route,
};
use std::io;
use std::net::IpAddr;

/// An interface of the namespace, beside a port of the router.
#[derive(Debug, Clone)]
pub struct PortSpec {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<Network>,
}

/// A route of the namespace.
#[derive(Debug, Clone)]
pub struct RouteSpec {
    /// The destination.
    pub to: Network,
    /// Next hops that share the flows; packets are dropped if it is empty.
    pub hops: Vec<HopSpec>,
}

/// A next hop of a route.
#[derive(Debug, Clone)]
pub struct HopSpec {
    /// The gateway.
    pub via: Option<IpAddr>,
    /// The name of the interface.
    pub port: String,
    /// Its share of the flows: 1 to 256; more is treated as 256.
    pub weight: u16,
}

/// Configures the calling thread's namespace, and returns the interfaces' indices in order.
///
/// # Errors
/// The kernel's refusal, with the request.
pub fn configure(ports: &[PortSpec], routes: &[RouteSpec]) -> io::Result<Vec<u32>> {
    let socket = Socket::route()?;
    let up = LinkSettings { up: true, ..LinkSettings::default() };
    let mut indices = Vec::with_capacity(ports.len());
    for port in ports {
        let index = interface_index(&port.name)?;
        socket.request(link::change(index, &up)).map_err(telling(&format!("bringing {} up", port.name)))?;
        for own in &port.addresses {
            let what = format!("giving {} the address {own}", port.name);
            let Network { address, prefix } = *own;
            let request = address::add(&Address { index, address, prefix });
            socket.request(request).map_err(telling(&what))?;
        }
        indices.push(index);
    }
    let requests = routes.iter().map(RouteSpec::request).collect::<io::Result<_>>()?;
    let refused = socket.requests(requests)?.into_iter().zip(routes).find_map(|(end, one)| Some((end?, one)));
    match refused {
        Some((error, one)) => Err(telling(&format!("adding the route to {}", one.to))(error)),
        None => Ok(indices),
    }
}

fn telling(what: &str) -> impl FnOnce(io::Error) -> io::Error {
    let what = what.to_owned();
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

impl RouteSpec {
    fn request(&self) -> io::Result<Message> {
        // Gateways are on the link, whatever the addresses say.
        let hop = |hop: &HopSpec| {
            let index = interface_index(&hop.port)?;
            Ok(Hop { weight: hop.weight, is_on_link: hop.via.is_some(), ..Hop::new(index, hop.via) })
        };
        let Network { address, prefix } = self.to.masked();
        let hops = self.hops.iter().map(hop).collect::<io::Result<_>>()?;
        Ok(route::add(&Route::new(address, prefix, hops)))
    }
}
