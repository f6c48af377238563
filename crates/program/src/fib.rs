//! Route lookups of programs: `struct bpf_fib_lookup` of linux/bpf.h, read and written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of the structure.
pub(crate) const PARAMETERS: usize = 64;
/// Accepted flags: BPF_FIB_LOOKUP_DIRECT and BPF_FIB_LOOKUP_OUTPUT, which have no effect because there is one
/// table, and BPF_FIB_LOOKUP_SKIP_NEIGH.
pub(crate) const FLAGS: u64 = 1 | 2 | SKIP_NEIGHBOUR;
const SKIP_NEIGHBOUR: u64 = 4;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// Errors that the helper returns, as in errno(3).
const ENODEV: i64 = 19;

/// Offsets in the structure.
const LENGTH: usize = 6;
const PORT: usize = 8;
const METRIC: usize = 12;
const SOURCE: usize = 16;
const DESTINATION: usize = 32;
const VLAN: usize = 48;
const SOURCE_MAC: usize = 52;
const NEIGHBOUR_MAC: usize = 58;

/// A route lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteQuery<'a> {
    /// Its source.
    pub source: IpAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// The ingress port's number.
    pub ingress: u32,
    /// Length from the IP header on; 0 for no comparison with the MTU.
    pub length: u16,
    /// Whether to skip the neighbour lookup.
    pub skips_neighbour: bool,
    /// The time, in nanoseconds.
    pub now: u64,
    /// The program's packet, whose flow selects one of several next hops.
    pub packet: &'a [u8],
}

/// A packet's next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The number of the port.
    pub port: u32,
    /// The MTU there.
    pub mtu: u32,
    /// The neighbour: a gateway, or the destination itself.
    pub neighbour: IpAddr,
    /// The port's address.
    pub mac: [u8; 6],
}

/// Answer of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAnswer {
    /// Forwarded to the neighbour with this MAC address, if requested.
    Forward(Hop, Option<[u8; 6]>),
    /// The neighbour's MAC address is unknown.
    NoNeighbour(Hop),
    /// The packet exceeds the port's MTU.
    TooLong(Hop),
    /// Dropped silently.
    Discarded,
    /// For the router itself, broadcast, multicast, within a link or a host, or without a route.
    NotForwarded,
    /// Forwarding is disabled.
    Disabled,
    /// The ingress port does not exist.
    NoPort,
}

/// The structure's bytes.
pub(crate) struct Parameters(pub [u8; PARAMETERS]);

impl Parameters {
    /// The lookup, if the address family is known.
    pub fn query<'a>(&self, flags: u64, now: u64, packet: &'a [u8]) -> Option<RouteQuery<'a>> {
        let family = self.0[0];
        let address = |at: usize| -> Option<IpAddr> {
            match family {
                AF_INET => Some(Ipv4Addr::from(self.part::<4>(at)).into()),
                AF_INET6 => Some(Ipv6Addr::from(self.part::<16>(at)).into()),
                _ => None,
            }
        };
        Some(RouteQuery {
            source: address(SOURCE)?,
            destination: address(DESTINATION)?,
            ingress: u32::from_le_bytes(self.part(PORT)),
            length: u16::from_le_bytes(self.part(LENGTH)),
            skips_neighbour: flags & SKIP_NEIGHBOUR != 0,
            now,
            packet,
        })
    }

    /// Writes an answer. Returns the helper's return value.
    pub fn answer(&mut self, answer: &RouteAnswer) -> i64 {
        match answer {
            RouteAnswer::Forward(hop, mac) => {
                self.lead_to(hop);
                self.put(LENGTH, &limit(hop));
                // Not requested: not written.
                if let Some(mac) = mac {
                    self.put(SOURCE_MAC, &hop.mac);
                    self.put(NEIGHBOUR_MAC, mac);
                }
                self.put(VLAN, &[0; 4]);
                0
            }
            RouteAnswer::Discarded => 1,
            RouteAnswer::NotForwarded => 4,
            RouteAnswer::Disabled => 5,
            RouteAnswer::NoNeighbour(hop) => {
                self.lead_to(hop);
                7
            }
            RouteAnswer::TooLong(hop) => {
                self.put(LENGTH, &limit(hop));
                8
            }
            RouteAnswer::NoPort => -ENODEV,
        }
    }

    fn lead_to(&mut self, hop: &Hop) {
        self.put(PORT, &hop.port.to_le_bytes());
        self.put(METRIC, &[0; 4]);
        match hop.neighbour {
            IpAddr::V4(address) => {
                self.0[0] = AF_INET;
                self.put(DESTINATION, &address.octets());
            }
            IpAddr::V6(address) => {
                self.0[0] = AF_INET6;
                self.put(DESTINATION, &address.octets());
            }
        }
    }

    fn part<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|i| self.0[at + i])
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

fn limit(hop: &Hop) -> [u8; 2] {
    u16::try_from(hop.mtu).unwrap_or(u16::MAX).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(family: u8) -> Parameters {
        let mut bytes = [0xee; PARAMETERS];
        bytes[0] = family;
        bytes[6..12].copy_from_slice(&[0x40, 0, 3, 0, 0, 0]);
        bytes[16..32].copy_from_slice(&[10, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        bytes[32..48].copy_from_slice(&[10, 0, 2, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        Parameters(bytes)
    }

    #[test]
    fn questions_are_read_as_the_kernel_reads_them() {
        let query = parameters(AF_INET).query(5, 7, &[1]).unwrap();
        assert_eq!((query.destination, query.ingress, query.length), ([10, 0, 2, 9].into(), 3, 64));
        assert!(query.skips_neighbour && query.now == 7 && query.packet == [1]);
        assert_eq!(query.source, IpAddr::from([10, 0, 1, 9]));
        let query = parameters(AF_INET6).query(0, 7, &[]).unwrap();
        assert_eq!(query.destination, "a00:209::1".parse::<IpAddr>().unwrap());
        assert_eq!(query.source, "a00:109::2".parse::<IpAddr>().unwrap());
        assert!(!query.skips_neighbour && parameters(1).query(0, 7, &[]).is_none());
    }

    #[test]
    fn answers_are_written_where_the_kernel_writes_them() {
        let hop = Hop { port: 5, mtu: 1500, neighbour: [10, 0, 1, 1].into(), mac: [2; 6] };
        let mut written = parameters(AF_INET);
        assert_eq!(written.answer(&RouteAnswer::Forward(hop, Some([4; 6]))), 0);
        assert_eq!(written.0[6..16], [0xdc, 5, 5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(written.0[32..36], [10, 0, 1, 1]);
        assert_eq!(written.0[48..], [0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4]);
        for (answer, code) in [
            (RouteAnswer::Discarded, 1),
            (RouteAnswer::NotForwarded, 4),
            (RouteAnswer::Disabled, 5),
            (RouteAnswer::NoNeighbour(hop), 7),
            (RouteAnswer::TooLong(Hop { mtu: 1280, ..hop }), 8),
            (RouteAnswer::NoPort, -19),
        ] {
            let mut written = parameters(AF_INET);
            assert_eq!(written.answer(&answer), code);
            assert_eq!(written.0[52..], [0xee; 12], "addresses are written only where they are known");
        }
    }
}
