//! Routes that come with a router's ports.

use crate::fib::RouteError;
use crate::link_local::is_link_local;
use crate::next_hop::NextHop;
use crate::ports::RouterPort;
use crate::prefix::Prefix;
use crate::router::{Router, RouterError};
use crate::state::Core;

impl<C> Router<C> {
    /// Removes an IPv4 route. If it replaced a port's connected route, that one is restored. Returns whether
    /// there was a route to remove.
    ///
    /// # Errors
    /// If the connected route can't be restored because there are too many next hops. The route is removed
    /// even then.
    pub fn withdraw_route_v4(&mut self, prefix: Prefix<u32>) -> Result<bool, RouteError> {
        let own = self.core().ports.near_v4(prefix).map(|port| NextHop::Direct { port });
        self.core_mut().fib.withdraw_v4(prefix, own)
    }

    /// Removes an IPv6 route, as [`Router::withdraw_route_v4`] does.
    ///
    /// # Errors
    /// As [`Router::withdraw_route_v4`].
    pub fn withdraw_route_v6(&mut self, prefix: Prefix<u128>) -> Result<bool, RouteError> {
        let own = self.core().ports.near_v6(prefix).map(|port| NextHop::Direct { port });
        self.core_mut().fib.withdraw_v6(prefix, own)
    }
}

impl Core {
    /// Adds the routes that come with a port: to its networks, to its own addresses, and to the broadcast
    /// (RFC 1812, 5.3.5) and subnet-router anycast addresses (RFC 4291, 2.6.1) of its networks.
    pub fn add_own_routes(&mut self, port: &RouterPort) -> Result<(), RouterError> {
        let (direct, local, broadcast) =
            (NextHop::Direct { port: port.place }.into(), NextHop::Local.into(), NextHop::Broadcast.into());
        for own in &port.v4 {
            let network = Prefix::new(own.address, own.len)?;
            if own.len < 32 {
                self.fib.insert_v4(network, &direct)?;
            }
            if own.len < 31 {
                let last = network.address() | (u32::MAX >> own.len);
                self.fib.insert_v4(Prefix::host(last), &broadcast)?;
                self.fib.insert_v4(Prefix::host(network.address()), &broadcast)?;
            }
            self.fib.insert_v4(Prefix::host(own.address), &local)?;
        }
        let global = |address| !is_link_local(address);
        for own in port.v6.iter().filter(|own| global(own.address)) {
            let network = Prefix::new(own.address, own.len)?;
            if own.len < 127 {
                self.fib.insert_v6(Prefix::host(network.address()), &local)?;
            }
            if own.len < 128 {
                self.fib.insert_v6(network, &direct)?;
            }
            self.fib.insert_v6(Prefix::host(own.address), &local)?;
        }
        Ok(())
    }
}
