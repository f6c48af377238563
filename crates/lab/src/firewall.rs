//! Address translation for the far end of `exec`, and rules that pass the machine's firewall.
//!
//! Translation is in a table of the run. A packet must pass the chains of every table, so rules that accept
//! the uplink are inserted at the head of other programs' chains, with a comment by which they are found
//! again.
//!
//! Set-up is one request to the kernel, as is removal: after every removal the kernel waits for all
//! processors, 10 ms or more.

use std::io;

use longwire_netlink::Message;

use crate::nftables::{
    Chain, Hook, INET, IPV4, IPV6, Rule, apply, chains, delete_rule, delete_table, insert_rule,
    new_forward_chain, new_input_chain, new_nat_chain, new_table, rules_with_comment,
};
use crate::{LabError, Network, Result};

const CHAIN: &str = "out";
/// The tables that restrict forwarding, one per family, shared by all runs in a namespace.
const FORWARDING: &str = "longwire-forwarding";

/// Packets of one family that must not be forwarded, because the machine did not forward them before.
pub struct Restriction {
    /// [`IPV4`] or [`IPV6`].
    pub family: u8,
    /// The interfaces from which it did forward.
    pub but_from: Vec<String>,
    /// Bridges. With the kernel's module `br_netfilter`, packets between a bridge's ports pass the hook of
    /// forwarded ones, as if they came and went by the bridge.
    pub bridges: Vec<String>,
}

/// Sets up translation for the `networks` behind `uplink` and accepts their packets, in the calling thread's
/// namespace. Of the families in `restrictions` only these packets, and those forwarded before, pass.
pub fn open(instance: &str, uplink: &str, networks: &[Network], restrictions: &[Restriction]) -> Result<()> {
    let mark = mark_of(instance);
    let there = chains().map_err(LabError::system("listing the machine's firewall"))?;
    let mut first = own_table(&mark, uplink, networks, &there);
    let mut on_the_way: Vec<Chain> = there.iter().filter(|chain| is_on_the_way(chain)).cloned().collect();
    for restriction in restrictions {
        let chain = forward_chain(restriction.family);
        first.extend(restrict(&chain, restriction, &there));
        on_the_way.retain(|other| *other != chain);
        on_the_way.push(chain);
    }
    let passing = |chain: &Chain| {
        let mut requests = vec![insert_rule(chain, &Rule::default().came_by(uplink).accept(), &mark)];
        if chain.hook == Some(Hook::Forward as u32) {
            let answers = Rule::default().goes_by(uplink).answers().accept();
            requests.push(insert_rule(chain, &answers, &mark));
        }
        requests
    };
    let (own, foreign): (Vec<_>, Vec<_>) = on_the_way.iter().partition(|chain| chain.table == FORWARDING);
    first.extend(own.into_iter().flat_map(passing));
    apply(first).map_err(LabError::system("setting address translation up in the kernel's nf_tables"))?;
    for chain in foreign {
        match apply(passing(chain)) {
            // The table is locked by its owner (a firewall service), which decides whether packets pass.
            Err(e) if e.raw_os_error() == Some(libc::EPERM) => {}
            other => other.map_err(LabError::system(format!(
                "letting {uplink} through chain {} of table {}",
                chain.name, chain.table
            )))?,
        }
    }
    Ok(())
}

/// Removes the set-up of [`open`] for this run, and the restrictions if no other run needs them, in the
/// calling thread's namespace.
pub fn close(instance: &str, is_last: bool) -> Result<()> {
    let mark = mark_of(instance);
    remove(&mark, is_last).map_err(LabError::system(format!("removing firewall rules \"{mark}\"")))
}

/// Drops packets for the calling thread's namespace that belong to no connection, instead of answering them
/// with a reset. pasta sends such packets: window updates without flags.
pub fn drop_strays() -> Result<()> {
    let chain = Chain::new(INET, "longwire-strays", "in", "filter", Hook::Input);
    let drop = insert_rule(&chain, &Rule::default().stray().discard(), &chain.table);
    apply(vec![new_table(INET, &chain.table), new_input_chain(&chain), drop])
        .map_err(LabError::system("having the kernel's nf_tables drop stray packets"))
}

/// Tries whether tables can be created in the calling thread's namespace, which is temporary.
pub fn probe() -> io::Result<()> {
    let any = Network { address: [100, 64, 0, 0].into(), prefix: 30 };
    apply(own_table("probe", "none", &[any], &[]))
}

/// The name of the run's table, and the comment of its rules in others.
fn mark_of(instance: &str) -> String {
    format!("longwire-{instance}")
}

/// Requests that create the run's table, replacing any of this name.
fn own_table(table: &str, uplink: &str, networks: &[Network], there: &[Chain]) -> Vec<Message> {
    let out = Chain::new(INET, table, CHAIN, "nat", Hook::PostRouting);
    let mut requests = make_anew(&out, there);
    requests.push(new_nat_chain(&out, Hook::PostRouting));
    for network in networks {
        let Network { address, prefix } = network.masked();
        let rule = Rule::default().sent_from(address, prefix).goes_not_by(uplink).masquerade();
        requests.push(insert_rule(&out, &rule, table));
    }
    requests
}

/// The chain of a family's table that restricts forwarding.
fn forward_chain(family: u8) -> Chain {
    Chain::new(family, FORWARDING, CHAIN, "filter", Hook::Forward)
}

fn restrict(chain: &Chain, restriction: &Restriction, there: &[Chain]) -> Vec<Message> {
    let mut requests = make_anew(chain, there);
    requests.push(new_forward_chain(chain));
    let came = restriction.but_from.iter().map(|interface| Rule::default().came_by(interface));
    let bridged = restriction.bridges.iter().map(|bridge| Rule::default().came_by(bridge).goes_by(bridge));
    requests.extend(came.chain(bridged).map(|rule| insert_rule(chain, &rule.accept(), FORWARDING)));
    requests
}

/// Requests that create the table of a chain. Removal is slow, so only an existing table is removed.
fn make_anew(chain: &Chain, there: &[Chain]) -> Vec<Message> {
    let (family, table) = (chain.family, chain.table.as_str());
    let left = there.iter().any(|other| other.family == family && other.table == table);
    let old = left.then(|| delete_table(family, table));
    old.into_iter().chain([new_table(family, table)]).collect()
}

fn remove(mark: &str, restrictions: bool) -> io::Result<()> {
    let mut requests = Vec::new();
    let all = match chains() {
        // The kernel has no nf_tables: nothing was set up.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EPROTONOSUPPORT)) => return Ok(()),
        other => other?,
    };
    let is_there = |family: u8, table: &str| all.iter().any(|c| c.family == family && c.table == table);
    if is_there(INET, mark) {
        requests.push(delete_table(INET, mark));
    }
    for family in [IPV4, IPV6].into_iter().filter(|family| restrictions && is_there(*family, FORWARDING)) {
        requests.push(delete_table(family, FORWARDING));
    }
    let goes = |chain: &Chain| restrictions && chain.table == FORWARDING;
    for chain in all.iter().filter(|chain| is_on_the_way(chain) && !goes(chain)) {
        for handle in rules_with_comment(chain, mark)? {
            requests.push(delete_rule(chain, handle));
        }
    }
    if requests.is_empty() { Ok(()) } else { apply(requests) }
}

/// Whether a chain could refuse packets from or to the uplink.
fn is_on_the_way(chain: &Chain) -> bool {
    let hooks = [Hook::Input, Hook::Forward].map(|hook| Some(hook as u32));
    matches!(chain.family, IPV4 | IPV6 | INET) && chain.kind == "filter" && hooks.contains(&chain.hook)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_between_the_ports_of_a_bridge_pass() {
        let restriction =
            Restriction { family: IPV4, but_from: vec!["eth1".to_owned()], bridges: vec!["br0".to_owned()] };
        let requests = restrict(&forward_chain(IPV4), &restriction, &[]);
        let texts: Vec<_> = requests.into_iter().map(Message::into_bytes).collect();
        let rules = |interface: &str| {
            let name = |bytes: &&[u8]| *bytes == interface.as_bytes();
            texts.iter().map(|text| text.windows(interface.len()).filter(name).count()).collect::<Vec<_>>()
        };
        // A table, a chain, and two rules.
        assert_eq!(rules("eth1"), [0, 0, 1, 0]);
        assert_eq!(rules("br0"), [0, 0, 0, 2], "as the interface of arrival and of departure");
        let passing = Rule::default().came_by("br0").goes_by("br0").accept();
        let passing = insert_rule(&forward_chain(IPV4), &passing, FORWARDING);
        assert_eq!(texts[3], passing.into_bytes());
    }

    #[test]
    fn only_filter_chains_on_the_way_count() {
        let chain = |family, kind: &str, hook| Chain {
            family,
            table: "t".to_owned(),
            name: "c".to_owned(),
            kind: kind.to_owned(),
            hook,
        };
        for (family, kind, hook, on_the_way) in [
            (IPV4, "filter", Some(2), true),
            (INET, "filter", Some(1), true),
            (IPV4, "filter", None, false),
            (IPV4, "filter", Some(3), false),
            (IPV4, "nat", Some(1), false),
            (IPV6, "filter", Some(2), true),
            (7, "filter", Some(2), false),
        ] {
            assert_eq!(is_on_the_way(&chain(family, kind, hook)), on_the_way, "{family} {kind} {hook:?}");
        }
    }
}
