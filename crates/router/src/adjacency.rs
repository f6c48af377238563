//! Adjacencies: how to rewrite a frame for a gateway. Stored by the next hop's number, so that neither port
//! nor neighbour is looked up per packet.

use crate::ports::RouterPort;
use longwire_units::Nanos;

/// How a gateway is reached, while this is known to be valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adjacency {
    /// Revision of ports and neighbours for which it was computed; any change of these invalidates it.
    revision: u64,
    /// When the gateway's MAC address must be confirmed.
    until: Nanos,
    /// The output port.
    pub place: u16,
    /// The longest IP packet, in bytes.
    pub mtu: u16,
    /// MAC addresses of destination and source, in the order of the Ethernet header.
    pub addresses: [u8; 12],
}

impl Adjacency {
    /// One that is never valid.
    pub const NONE: Self =
        Self { revision: u64::MAX, until: Nanos::ZERO, place: 0, mtu: 0, addresses: [0; 12] };

    /// Through this port to the neighbour with this MAC address, which is valid until then, at this revision
    /// of ports and neighbours.
    pub fn new(port: &RouterPort, (mac, until): ([u8; 6], Nanos), revision: u64) -> Self {
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&mac);
        addresses[6..].copy_from_slice(&port.mac);
        // Ports' MTUs are checked: they fit.
        Self { revision, until, place: port.place, mtu: port.mtu as u16, addresses }
    }

    /// Whether it is valid at this revision and time.
    #[inline]
    pub fn holds(&self, revision: u64, now: Nanos) -> bool {
        self.revision == revision && now < self.until
    }
}

#[cfg(test)]
mod tests {
    use crate::router::{Router, RouterConfig};
    use crate::support::{frame_v4, host_mac, three_ports};
    use crate::{NextHop, RouteHops};
    use longwire_block::{DropReason, Node, Outbox, refusal};
    use longwire_packet::{Batch, Pool};
    use std::net::IpAddr;

    /// The port of a packet, and the destination MAC address.
    fn sent(router: &mut Router) -> Result<(u16, [u8; 6]), Option<DropReason>> {
        let (mut pool, mut out) = (Pool::new(1 << 20).unwrap(), Outbox::default());
        let handle = pool.insert(&frame_v4([10, 0, 0, 9], [20, 0, 0, 1], 64, &[0; 26])).unwrap();
        pool.meta_mut(handle).in_port = 10;
        let mut batch = Batch::new();
        batch.push(handle);
        router.forward(&mut pool, &batch, &mut out);
        match refusal(pool.meta(handle)) {
            None if pool.meta(handle).out_port < 100 => {
                Ok((pool.meta(handle).out_port, pool.data(handle)[..6].try_into().unwrap()))
            }
            reason => Err(reason),
        }
    }

    #[test]
    fn an_adjacency_ends_with_what_it_was_made_of() {
        let config = RouterConfig { ports: three_ports(), ..RouterConfig::default() };
        let mut router = Router::new(config).unwrap();
        let prefix = "20.0.0.0/8".parse().unwrap();
        let gateway = |number: u8| IpAddr::from([10, 0, number, 9]);
        let way = |number: u8| RouteHops::One(NextHop::via(10 + 10 * u16::from(number), gateway(number)));
        router.set_neighbour(20, gateway(1), host_mac(1));
        router.set_neighbour(30, gateway(2), host_mac(2));
        router.add_route_v4(prefix, way(1)).unwrap();
        let twice = |router: &mut Router| [sent(router), sent(router)];
        assert_eq!(twice(&mut router), [Ok((20, host_mac(1))); 2]);
        router.set_neighbour(20, gateway(1), host_mac(7));
        assert_eq!(twice(&mut router), [Ok((20, host_mac(7))); 2]);
        assert!(router.set_up(20, false));
        assert_eq!(twice(&mut router), [Err(Some(DropReason::PortDown)); 2]);
        assert!(router.set_up(20, true));
        assert_eq!(twice(&mut router), [Ok((20, host_mac(7))); 2]);
        // The next hop's number is reused.
        assert!(router.remove_route_v4(prefix));
        router.add_route_v4(prefix, way(2)).unwrap();
        assert_eq!(twice(&mut router), [Ok((30, host_mac(2))); 2]);
    }
}
