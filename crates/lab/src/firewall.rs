//! Address translation for the far end of `exec`, and a way past the machine's firewall.
//!
//! Translation lives in a table of the run's own. A packet must pass every table's chains, so rules that let
//! the uplink through are put at the head of the chains others have; they carry a comment by which they are
//! found again.

use std::io;

use crate::nftables::{
    Chain, Hook, INET, IPV4, Rule, apply, chains, delete_rule, delete_table, insert_rule, new_forward_chain,
    new_nat_chain, new_table, rules_with_comment,
};
use crate::{Cidr, LabError};

const CHAIN: &str = "out";
/// The table that restricts forwarding, of all runs in a namespace together.
const FORWARDING: &str = "longwire-forwarding";

/// Sets translation up for the IPv4 `network` behind `uplink`, in the calling thread's namespace.
pub fn open(instance: &str, uplink: &str, network: Cidr) -> Result<(), LabError> {
    let mark = mark_of(instance);
    translate(&mark, uplink, network)
        .map_err(LabError::system("setting address translation up in the kernel's nf_tables"))?;
    for chain in foreign_chains().map_err(LabError::system("listing the machine's firewall"))? {
        let mut requests = vec![insert_rule(&chain, &Rule::default().came_by(uplink).accept(), &mark)];
        if chain.hook == Some(Hook::Forward as u32) {
            let answers = Rule::default().goes_by(uplink).answers().accept();
            requests.push(insert_rule(&chain, &answers, &mark));
        }
        match apply(requests) {
            // A table that its owner (a firewall service) keeps for itself: whether packets pass is its
            // decision.
            Err(e) if e.raw_os_error() == Some(libc::EPERM) => {}
            other => other.map_err(LabError::system(format!(
                "letting {uplink} through chain {} of table {}",
                chain.name, chain.table
            )))?,
        }
    }
    Ok(())
}

/// Has only packets that came in by one of `interfaces` pass through the calling thread's namespace, and
/// those for which [`open`] makes way afterwards.
pub fn restrict(interfaces: &[String]) -> Result<(), LabError> {
    let chain = Chain {
        family: IPV4,
        table: FORWARDING.to_owned(),
        name: CHAIN.to_owned(),
        kind: "filter".to_owned(),
        hook: Some(Hook::Forward as u32),
    };
    let mut requests = vec![
        new_table(FORWARDING),
        delete_table(FORWARDING),
        new_table(FORWARDING),
        new_forward_chain(FORWARDING, CHAIN),
    ];
    let pass =
        |interface: &String| insert_rule(&chain, &Rule::default().came_by(interface).accept(), FORWARDING);
    requests.extend(interfaces.iter().map(pass));
    apply(requests).map_err(LabError::system("restricting forwarding in the kernel's nf_tables"))
}

/// Undoes [`restrict`].
pub fn unrestrict() -> Result<(), LabError> {
    let there = match chains() {
        // A kernel without nf_tables: nothing was set up.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EPROTONOSUPPORT)) => Ok(false),
        other => other.map(|all| all.iter().any(|c| c.family == IPV4 && c.table == FORWARDING)),
    };
    there
        .and_then(|there| if there { apply(vec![delete_table(FORWARDING)]) } else { Ok(()) })
        .map_err(LabError::system(format!("removing table {FORWARDING} from the kernel's nf_tables")))
}

/// Removes what [`open`] set up for this run, in the calling thread's namespace.
pub fn close(instance: &str) -> Result<(), LabError> {
    let mark = mark_of(instance);
    remove(&mark).map_err(LabError::system(format!("removing firewall rules \"{mark}\"")))
}

/// Tries whether tables can be made, in the calling thread's namespace; for one that is thrown away.
pub fn probe() -> io::Result<()> {
    let any = Cidr::new([100, 64, 0, 0].into(), 30).map_err(io::Error::other)?;
    translate("probe", "none", any)
}

/// The name of the run's own table, and the comment on its rules in others'.
fn mark_of(instance: &str) -> String {
    format!("longwire-{instance}")
}

fn translate(table: &str, uplink: &str, network: Cidr) -> io::Result<()> {
    let std::net::IpAddr::V4(address) = network.network().address() else { return Ok(()) };
    let out = Chain {
        family: IPV4,
        table: table.to_owned(),
        name: CHAIN.to_owned(),
        kind: "nat".to_owned(),
        hook: Some(Hook::PostRouting as u32),
    };
    let rule = Rule::default().sent_from(address, network.prefix()).goes_not_by(uplink).masquerade();
    apply(vec![
        // Made, removed, made: whatever a table of this name held, it now holds this.
        new_table(table),
        delete_table(table),
        new_table(table),
        new_nat_chain(table, CHAIN),
        insert_rule(&out, &rule, table),
    ])
}

fn remove(mark: &str) -> io::Result<()> {
    let mut requests = Vec::new();
    let all = match chains() {
        // A kernel without nf_tables: nothing was set up.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EPROTONOSUPPORT)) => return Ok(()),
        other => other?,
    };
    if all.iter().any(|c| c.family == IPV4 && c.table == mark) {
        requests.push(delete_table(mark));
    }
    for chain in all.iter().filter(|c| is_on_the_way(c)) {
        for handle in rules_with_comment(chain, mark)? {
            requests.push(delete_rule(chain, handle));
        }
    }
    if requests.is_empty() { Ok(()) } else { apply(requests) }
}

fn foreign_chains() -> io::Result<Vec<Chain>> {
    Ok(chains()?.into_iter().filter(is_on_the_way).collect())
}

/// Whether a chain could refuse packets from or to the uplink.
fn is_on_the_way(chain: &Chain) -> bool {
    let hooks = [Hook::Input, Hook::Forward].map(|hook| Some(hook as u32));
    matches!(chain.family, IPV4 | INET) && chain.kind == "filter" && hooks.contains(&chain.hook)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (10, "filter", Some(2), false),
        ] {
            assert_eq!(is_on_the_way(&chain(family, kind, hook)), on_the_way, "{family} {kind} {hook:?}");
        }
    }
}
