//! Redirections at the near end of `exec`, by nf_tables: from ports of the loopback to the other end, and
//! from ports of the end to its loopback.

use std::io;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use crate::nftables::{Chain, Hook, INET, Rule, apply, delete_table, insert_rule, new_nat_chain, new_table};

/// The table, in the near end's namespace.
const REDIRECTION: &str = "longwire-localhost";

/// Redirected ports at the near end of `exec`.
#[derive(Debug, Clone, Default)]
pub struct Redirections {
    /// Ports of the loopback redirected to the other end.
    pub out: Vec<RangeInclusive<u16>>,
    /// Ports of the end's own address redirected to its loopback.
    pub back: Vec<RangeInclusive<u16>>,
}

/// Sets redirections in the calling thread's namespace, replacing earlier ones.
pub fn redirect(own: Ipv4Addr, other: Ipv4Addr, redirections: &Redirections) -> io::Result<()> {
    const PROTOCOLS: [u8; 2] = [libc::IPPROTO_TCP as u8, libc::IPPROTO_UDP as u8];
    const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;
    let chain = |hook: Hook| Chain {
        family: INET,
        table: REDIRECTION.to_owned(),
        name: format!("{hook:?}").to_lowercase(),
        kind: "nat".to_owned(),
        hook: Some(hook as u32),
    };
    // Create, delete, create: this replaces any earlier table.
    let new = || new_table(INET, REDIRECTION);
    let mut requests = vec![new(), delete_table(INET, REDIRECTION), new()];
    let hooks = [Hook::Output, Hook::PreRouting, Hook::PostRouting];
    requests.extend(hooks.map(|hook| new_nat_chain(&chain(hook), hook)));
    let mut rule = |hook, rule| requests.push(insert_rule(&chain(hook), &rule, REDIRECTION));
    for protocol in PROTOCOLS {
        for ports in &redirections.out {
            let sent = Rule::default().sent_to(LOOPBACK).at_ports(protocol, ports.clone());
            rule(Hook::Output, sent.redirect_to(other));
        }
        for ports in &redirections.back {
            let come = Rule::default().sent_to(own).at_ports(protocol, ports.clone());
            rule(Hook::PreRouting, come.redirect_to(LOOPBACK));
        }
    }
    // Leaving packets need an address that replies can reach.
    let leaves = Rule::default().sent_from(Ipv4Addr::new(127, 0, 0, 0).into(), 8).goes_not_by("lo");
    rule(Hook::PostRouting, leaves.masquerade());
    apply(requests)
}
