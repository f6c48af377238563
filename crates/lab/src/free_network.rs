//! Free networks for the two ends of `exec`, and the machine's default routes.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use longwire_netlink::{Route, Socket, interface_index, interface_name, route};

use crate::state::Forwarding;
use crate::{LabError, Network, Result};

/// Ranges to choose from, best first: shared address space (RFC 6598), private (RFC 1918), benchmarks (RFC
/// 2544).
const RANGES: [(Ipv4Addr, u8); 3] =
    [(Ipv4Addr::new(100, 64, 0, 0), 10), (Ipv4Addr::new(10, 0, 0, 0), 8), (Ipv4Addr::new(198, 18, 0, 0), 15)];

/// Unique local addresses (RFC 4193): "Longw" is the global identifier. They are translated before they leave
/// the machine, so a random one is unnecessary.
const IPV6_RANGE: Ipv6Addr = Ipv6Addr::new(0xfd4c, 0x6f6e, 0x6777, 0, 0, 0, 0, 0);

/// The networks of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks {
    v4: Ipv4Addr,
    /// None without IPv6.
    v6: Option<Ipv6Addr>,
}

impl Networks {
    const V4_PREFIX: u8 = 30;
    const V6_PREFIX: u8 = 64;

    /// Networks without a route in this namespace that no other run uses.
    pub fn free(others: &[Forwarding], with_ipv6: bool) -> Result<Self> {
        // Including those of the machine's own addresses.
        let used = routes(|route| Some(Network { address: route.to, prefix: route.prefix }));
        let mut used = used.map_err(LabError::system("listing this machine's routes"))?;
        // Routes to half the Internet or more are treated as default routes: tunnels use them.
        used.retain(|route| route.prefix > 1);
        used.extend(others.iter().flat_map(|other| &other.networks));
        let v4 = first_free(&used).ok_or(LabError::NoFreeNetwork)?;
        Ok(Self { v4, v6: if with_ipv6 && has_ipv6() { first_free_v6(&used) } else { None } })
    }

    /// The addresses of a host with this number.
    pub fn hosts(&self, number: u8) -> Vec<Network> {
        let v4 = IpAddr::V4(Ipv4Addr::from(u32::from(self.v4) + u32::from(number)));
        let v6 = self.v6.map(|network| IpAddr::V6(Ipv6Addr::from(u128::from(network) + u128::from(number))));
        let v6 = v6.map(|address| Network { address, prefix: Self::V6_PREFIX });
        [Network { address: v4, prefix: Self::V4_PREFIX }].into_iter().chain(v6).collect()
    }
}

/// Whether this namespace has IPv6 turned on.
fn has_ipv6() -> bool {
    fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6").is_ok_and(|off| off.trim() == "0")
}

/// Whether this namespace has a default route of either family.
pub fn has_way_out() -> bool {
    way_out(true).is_some() || has_way_out_by_ipv6()
}

/// Whether this namespace has a default route for IPv6.
pub fn has_way_out_by_ipv6() -> bool {
    way_out(false).is_some()
}

/// The MTU of the interface of this namespace's default route, if there is one: that for IPv4, or else that
/// for IPv6.
#[must_use]
pub fn way_out_mtu() -> Option<u32> {
    let name = interface_name(way_out(true).or_else(|| way_out(false))?).ok()?;
    fs::read_to_string(format!("/sys/class/net/{name}/mtu")).ok()?.trim().parse().ok()
}

/// The interface of a family's best default route.
fn way_out(is_ipv4: bool) -> Option<u32> {
    let ways = routes(|route| {
        let is_default = route.prefix == 0 && route.kind == libc::RTN_UNICAST;
        let hop = route.hops.first().filter(|_| is_default && route.to.is_ipv4() == is_ipv4)?;
        Some((route.metric.unwrap_or(0), hop.index))
    });
    Some(ways.ok()?.into_iter().min_by_key(|(metric, _)| *metric)?.1)
}

/// What is picked of all routes in all tables.
fn routes<T>(pick: impl Fn(Route) -> Option<T>) -> io::Result<Vec<T>> {
    let mut found = Vec::new();
    Socket::route()?.dump(route::list(), |_, body| {
        found.extend(Route::read(body).ok().flatten().and_then(&pick));
    })?;
    Ok(found)
}

fn first_free(used: &[Network]) -> Option<Ipv4Addr> {
    RANGES.iter().find_map(|(start, prefix)| {
        let candidates = (0..1u32 << (30 - prefix)).map(|i| Ipv4Addr::from(u32::from(*start) + 4 * i));
        candidates.into_iter().find(|network| is_free((*network).into(), Networks::V4_PREFIX, used))
    })
}

fn first_free_v6(used: &[Network]) -> Option<Ipv6Addr> {
    let candidates = (0..=u128::from(u16::MAX)).map(|i| Ipv6Addr::from(u128::from(IPV6_RANGE) | i << 64));
    candidates.into_iter().find(|network| is_free((*network).into(), Networks::V6_PREFIX, used))
}

fn is_free(address: IpAddr, prefix: u8, used: &[Network]) -> bool {
    !used.iter().any(|used| used.overlaps(&Network { address, prefix }))
}

/// Names that no interface here has and no other run has planned for its uplink.
pub fn free_names<'a>(others: impl Iterator<Item = &'a Forwarding> + Clone) -> impl Iterator<Item = String> {
    let is_planned = move |name: &String| others.clone().any(|other| other.uplink == *name);
    let names = (0u32..).map(|i| format!("lw{i}"));
    names.filter(move |name| !is_planned(name) && interface_index(name).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(networks: &[&str]) -> Vec<Network> {
        networks.iter().map(|network| network.parse().unwrap()).collect()
    }

    #[test]
    fn the_first_network_without_a_route_is_taken() {
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
        for (networks, expected) in [
            (&["fd00::/64", "0.0.0.0/2"][..], Some("fd4c:6f6e:6777::")),
            (&["fd4c:6f6e:6777::/64", "fd4c:6f6e:6777:1::9/128"], Some("fd4c:6f6e:6777:2::")),
            (&["fd00::/8"], None),
        ] {
            assert_eq!(first_free_v6(&used(networks)), expected.map(|e| e.parse().unwrap()), "{networks:?}");
        }
    }

    #[test]
    fn the_error_names_every_range() {
        let text = LabError::NoFreeNetwork.to_string();
        for (start, prefix) in RANGES {
            assert!(text.contains(&format!("{start}/{prefix}")), "{text}");
        }
    }

    #[test]
    fn hosts_have_an_address_of_each_family() {
        let networks = Networks { v4: [100, 64, 0, 4].into(), v6: first_free_v6(&[]) };
        let texts: Vec<_> = networks.hosts(2).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["100.64.0.6/30", "fd4c:6f6e:6777::2/64"]);
        let alone = Networks { v6: None, ..networks };
        assert_eq!(alone.hosts(1).len(), 1);
    }
}
