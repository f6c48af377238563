//! Redirections at the near end of `exec`, by nf_tables, from ports of the loopback to relays at the other
//! end.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::nftables::{Chain, Hook, INET, Rule, apply, delete_table, insert_rule, new_nat_chain, new_table};
use crate::port_map::PortMap;

/// The table, in the near end's namespace.
const REDIRECTION: &str = "longwire-localhost";
/// Its maps of ports.
const OUT_TCP: &str = "out-tcp";
const OUT_UDP: &str = "out-udp";
const IPV6_TCP: &str = "ipv6-tcp";
const IPV6_UDP: &str = "ipv6-udp";

/// Redirected ports at the near end of `exec`.
#[derive(Debug, Clone, Default)]
pub struct Redirections {
    /// Ports of the loopback redirected to the other end, and the ports there that relays for them listen at.
    pub out: Vec<(u16, RelayPorts)>,
    /// Ports of the loopback by IPv6, and the ports there that relays for them listen at: the kernel lets no
    /// packet from `::1` leave, whatever translation makes of it.
    pub by_ipv6: Vec<(u16, RelayPorts)>,
}

/// Where relays of the loopback listen.
#[derive(Debug, Clone, Copy)]
pub struct RelayPorts {
    pub tcp: u16,
    pub udp: u16,
}

/// Sets redirections in the calling thread's namespace, replacing earlier ones.
pub fn redirect(other: Ipv4Addr, redirections: &Redirections) -> io::Result<()> {
    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const IPV6_LOOPBACK: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let chain = |hook: Hook| Chain::new(INET, REDIRECTION, &format!("{hook:?}").to_lowercase(), "nat", hook);
    // Create, delete, create: this replaces any earlier table.
    let new = || new_table(INET, REDIRECTION);
    let mut requests = vec![new(), delete_table(INET, REDIRECTION), new()];
    let hooks = [Hook::Output, Hook::PostRouting];
    requests.extend(hooks.map(|hook| new_nat_chain(&chain(hook), hook)));
    let relayed = |ports: &[(u16, RelayPorts)], relay: fn(&RelayPorts) -> u16| {
        ports.iter().map(|(port, relays)| (*port, relay(relays))).collect::<Vec<_>>()
    };
    let maps = [
        (OUT_TCP, relayed(&redirections.out, |relays| relays.tcp)),
        (OUT_UDP, relayed(&redirections.out, |relays| relays.udp)),
        (IPV6_TCP, relayed(&redirections.by_ipv6, |relays| relays.tcp)),
        (IPV6_UDP, relayed(&redirections.by_ipv6, |relays| relays.udp)),
    ];
    for (id, (name, ports)) in (1..).zip(&maps) {
        requests.extend(PortMap { family: INET, table: REDIRECTION, name, id }.create(ports));
    }
    let mut rule = |hook, rule| requests.push(insert_rule(&chain(hook), &rule, REDIRECTION));
    for (protocol, out, by_ipv6) in
        [(libc::IPPROTO_TCP as u8, OUT_TCP, IPV6_TCP), (libc::IPPROTO_UDP as u8, OUT_UDP, IPV6_UDP)]
    {
        let redirected = |from: IpAddr, ports, to: IpAddr| {
            Rule::default().sent_to(from).at_ports(protocol, ports).redirect_to(to)
        };
        rule(Hook::Output, redirected(LOOPBACK, out, other.into()));
        rule(Hook::Output, redirected(IPV6_LOOPBACK, by_ipv6, IPV6_LOOPBACK));
    }
    // Leaving packets need an address that replies can reach.
    let leaves = Rule::default().sent_from(Ipv4Addr::new(127, 0, 0, 0).into(), 8).goes_not_by("lo");
    rule(Hook::PostRouting, leaves.masquerade());
    apply(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_ports_as_may_be_listed_fit() {
        if !crate::abilities().nft.available {
            println!("skipped as_many_ports_as_may_be_listed_fit: {}", crate::abilities().nft.reason);
            return;
        }
        let out: Vec<_> = (1..=1024).map(|port| (port, RelayPorts { tcp: port, udp: port })).collect();
        let redirections = Redirections { by_ipv6: out.clone(), out };
        let other = Ipv4Addr::new(100, 64, 0, 1);
        crate::abilities::in_a_new_namespace(|| {
            redirect(other, &redirections)?;
            // Once more, as when services begin to listen.
            redirect(other, &redirections)
        })
        .unwrap();
    }
}
