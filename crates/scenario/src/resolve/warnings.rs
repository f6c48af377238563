//! Warnings: valid settings that look like mistakes.

use super::{Entry, Resolver};
use crate::contradictions::{Contradiction, contradictions, params};
use crate::plan::{Host, Plan, Profile};
use longwire_block::Value;
use longwire_link::medium_rate;
use longwire_units::{Nanos, Rate};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

/// An Ethernet header.
const HEADER: u64 = 14;
/// Most hosts that are compared with each other, and most addresses of theirs.
const MOST_COMPARED: usize = 1000;
const MOST_ADDRESSES: usize = 10 * MOST_COMPARED;
/// The longest packet of most networks.
const USUAL_MTU: u64 = 1500;

impl Resolver<'_, '_> {
    pub(super) fn warnings(&mut self, plan: &Plan, links: &[Range<usize>], ports: &[Range<usize>]) {
        if let [only] = &plan.ports[..] {
            self.warn(&ports[0], "port", &only.name, "it is the only one: nothing can cross", "add another");
        }
        if plan.links.is_empty() && plan.routers.is_empty() {
            let fix = "add [[link]] entries";
            self.warn(&(0..0), "", "", "there is no link: everything crosses unimpaired", fix);
        }
        let longest = plan.hosts.iter().map(|host| u64::from(host.mtu)).max();
        let shared = plan.media.iter().flat_map(|medium| {
            let rate = medium_rate(&medium.values);
            medium.links.iter().map(move |&link| (link as usize, rate))
        });
        let shared: HashMap<usize, Rate> = shared.collect();
        let mut told = vec![false; plan.profiles.len()];
        for (place, link) in plan.links.iter().enumerate() {
            if std::mem::replace(&mut told[link.profile as usize], true) {
                continue;
            }
            if let Some(what) = estimated_slots(plan.profile(place)) {
                self.warn(&links[place], "link", &link.name, &what, ESTIMATE_FIX);
            }
            let rate = shared.get(&place).copied().unwrap_or_else(|| plan.profile(place).rate());
            for (what, fix) in odd(plan.profile(place), rate, longest) {
                self.warn(&links[place], "link", &link.name, &what, fix);
            }
        }
        for medium in plan.media.iter().filter(|medium| medium.spec.kind != "half-duplex") {
            let mut stations = medium.links.iter().map(|link| *link as usize);
            let Some(place) = stations.find(|place| computes_with_rate(plan.profile(*place))) else {
                continue;
            };
            let what = format!(
                "its queue computes with the rate at which packets leave, which on the {} \"{}\" is an \
                 estimate: an equal share of what all its stations sent of late",
                medium.spec.kind, medium.name
            );
            self.warn(&links[place], "link", &plan.links[place].name, &what, ESTIMATE_FIX);
        }
        self.idle(plan, links);
        self.apart_from_links(plan, ports);
        self.without_router(plan, ports);
    }

    /// Hosts that no link leads to, where others have links.
    fn apart_from_links(&mut self, plan: &Plan, ports: &[Range<usize>]) {
        if plan.links.is_empty() || !plan.routers.is_empty() || plan.hosts.len() > MOST_COMPARED {
            return;
        }
        let mut linked = vec![false; plan.ports.len()];
        for rule in plan.pair_rules.iter().filter(|rule| !plan.routes.links(&rule.route).is_empty()) {
            linked[usize::from(rule.in_port)] = true;
            linked[usize::from(rule.out_port)] = true;
        }
        let each =
            plan.hosts.iter().flat_map(|host| host.addresses.iter().map(move |net| (net.address, host.port)));
        let homes: HashMap<IpAddr, u16> = each.collect();
        let named = plan.address_rules.iter().flat_map(|rule| [rule.source, rule.destination]);
        for port in named.filter_map(|address| homes.get(&address)) {
            linked[usize::from(*port)] = true;
        }
        for host in plan.hosts.iter().filter(|host| !linked[usize::from(host.port)]) {
            let (what, fix) = ("no link leads to it or from it", "add a [[link]], or remove the host");
            self.warn(&ports[usize::from(host.port)], "host", &host.name, what, fix);
        }
    }

    /// Hosts in networks without neighbours, where there is no router.
    fn without_router(&mut self, plan: &Plan, ports: &[Range<usize>]) {
        let others_know = plan.ports.iter().any(|port| port.attachment.driven().is_some());
        let addresses: usize = plan.hosts.iter().map(|host| host.addresses.len()).sum();
        let are_many = plan.hosts.len() > MOST_COMPARED || addresses > MOST_ADDRESSES;
        if !plan.routers.is_empty() || others_know || are_many {
            return;
        }
        for (at, host) in plan.hosts.iter().enumerate() {
            let segment = plan.ports[usize::from(host.port)].segment;
            let others = || {
                let others = plan.hosts.iter().enumerate().filter(|(other, _)| *other != at);
                let others = others.map(|(_, other)| other);
                others.filter(|other| plan.ports[usize::from(other.port)].segment == segment)
            };
            let near = |other: &Host| {
                let addresses = || other.addresses.iter().map(|net| net.address);
                host.addresses.iter().any(|net| addresses().any(|address| net.contains(address)))
            };
            let has_no_route = host.gateways.is_empty() && host.routes.is_empty();
            if has_no_route && others().next().is_some() && !others().any(near) {
                let what = "no other host is in a network of it, and no router joins them";
                let fix = "give hosts addresses of one network, such as 10.0.0.1/24 and 10.0.0.2/24, or add \
                    a [[router]]";
                self.warn(&ports[usize::from(host.port)], "host", &host.name, what, fix);
            }
        }
    }

    /// Links without packets.
    fn idle(&mut self, plan: &Plan, links: &[Range<usize>]) {
        let mut used = vec![false; plan.links.len()];
        let by_address = plan.address_rules.iter().map(|rule| &rule.route);
        for route in by_address.chain(plan.pair_rules.iter().map(|rule| &rule.route)) {
            for place in plan.routes.links(route).iter().filter(|_| route.exists()) {
                used[*place as usize] = true;
            }
        }
        for steer in &plan.steers {
            used[steer.target as usize] = true;
        }
        for request in &plan.link_requests {
            used[request.target as usize] = true;
        }
        for place in (0..used.len()).filter(|place| !used[*place]) {
            let name = &plan.links[place].name;
            let fix = "another path is shorter, or nothing is behind it; give a [[path]], or remove it";
            self.warn(&links[place], "link", name, "no packets take it", fix);
        }
    }

    fn warn(&mut self, span: &Range<usize>, section: &'static str, name: &str, what: &str, fix: &str) {
        let name = (!name.is_empty()).then_some(name);
        self.findings.note(span.clone(), &Entry { section, name, n: None }.field(""), what.into(), fix);
    }
}

/// The fix where a queue's rate is an estimate.
const ESTIMATE_FIX: &str =
    "expect waits to differ from the limit or target; a limit in packets or bytes, or codel, needs no rate";

/// Whether a link's queue depends on its departure rate: it has a limit in time, or such an algorithm.
fn computes_with_rate(profile: &Profile) -> bool {
    const BY_RATE: [&str; 5] = ["pie", "red", "ared", "rio", "fred"];
    profile.blocks.iter().filter(|(spec, _)| spec.key == "queue").any(|(spec, values)| {
        let mut all = (0..spec.params.len()).map(|at| values.at(at));
        BY_RATE.contains(&spec.kind) || all.any(|value| matches!(value, Value::Waiting(_)))
    })
}

/// Slots limited in bytes send as many packets as fit and one more, which depends on sizes.
fn estimated_slots(profile: &Profile) -> Option<String> {
    let slots = params(&profile.blocks, "rate", "slotted", ["bytes", "min"]);
    let [Some(Value::Integer(1..)), Some(Value::Time(_))] = slots else { return None };
    let what = "its queue computes with the rate at which packets leave, which for slots limited in bytes is \
        an estimate where packets differ in size";
    computes_with_rate(profile).then(|| what.to_owned())
}

/// Odd settings of a link, and the fixes.
fn odd(profile: &Profile, rate: Rate, longest: Option<u64>) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    let mtu = match profile.value("mtu") {
        Some(Value::Integer(mtu)) => Some(mtu),
        _ => None,
    };
    if let (Some(mtu), Some(longest)) = (mtu, longest)
        && mtu < longest
    {
        let what = format!("it drops packets above {mtu} bytes, but hosts send up to {longest}");
        found.push((what, "give the hosts mtu = the link's, unless that is what is tested"));
    }
    let frame = mtu.or(longest).unwrap_or(USUAL_MTU) + HEADER;
    match profile.value("queue") {
        Some(Value::Packets(0)) => {
            found.push(("a queue of 0 packets drops everything".into(), "write \"1 packet\" or more"));
        }
        Some(Value::Bytes(bytes)) if bytes.0 < frame => {
            let what = format!("a queue of {bytes} has no room for one frame of {frame} bytes");
            found.push((what, "make it larger than the longest frame"));
        }
        Some(Value::Waiting(_)) if rate == Rate::UNLIMITED => {
            let what = "a queue limited in time never fills at an unlimited rate";
            found.push((what.into(), "give the link a rate"));
        }
        Some(Value::Waiting(time)) if time < sending(frame, rate) => {
            let what = format!("one frame of {frame} bytes takes longer to send than the queue's {time}");
            found.push((what, "make the limit longer than the time to send a few frames"));
        }
        _ => {}
    }
    let of_blocks = contradictions(&profile.blocks).into_iter();
    found.extend(of_blocks.map(|Contradiction { what, fix }| (what, fix)));
    found
}

/// Transmission time of `bytes` at `rate`.
fn sending(bytes: u64, rate: Rate) -> Nanos {
    Nanos(bytes.saturating_mul(8_000_000_000).checked_div(rate.0).unwrap_or(u64::MAX))
}
