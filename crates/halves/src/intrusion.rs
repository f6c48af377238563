//! `longwire control intrusion`: detects port scans, and drops all packets from their sources for a while.

use crate::session::{Entry, RouterSession, address_at, address_bytes, double_at, shipped, word_at};
use crate::{Interval, ResidentArgs};
use anyhow::ensure;
use longwire_report::output;
use longwire_units::{Nanos, counted};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Detect scans of a host's ports or a network's hosts, and drop all packets from there for a while
///
/// Installs the detector with signatures: TCP connection requests, whose targets it records, and packets that
/// no valid sender sends (without flags, with only FIN, with FIN, PSH and URG). Reads its records in each
/// interval. A source that has tried many ports of one host, or one port of many hosts, within a while, or
/// has sent invalid packets, is reported and added to the detector's filters; it is removed when its time is
/// over.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire control intrusion r1
  longwire control intrusion r1 --ports 50 --within '1 min' --expiry '10 min' --spare 10.0.1.9 --json")]
pub struct Args {
    #[command(flatten)]
    target: ResidentArgs,

    /// Number of ports of one host that make a scan.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    ports: usize,

    /// Number of hosts on which one port makes a scan.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    hosts: usize,

    /// Number of invalid packets that make an intrusion.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    strange: u64,

    /// Within which time, more than 0.
    #[arg(long, value_name = "TIME", default_value = "10 s")]
    within: Nanos,

    /// How long a source's packets are dropped.
    #[arg(long, value_name = "TIME", default_value = "1 min")]
    expiry: Nanos,

    /// A source that is never filtered, such as a monitor; can be given several times.
    #[arg(long, value_name = "ADDRESS")]
    spare: Vec<IpAddr>,

    /// Polling interval of the detector.
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    interval: Interval,

    /// Print a JSON object for each event.
    #[arg(long)]
    json: bool,
}

/// A signature of reported packets: first port, count, protocol, flag mask, flags, whether targets are
/// recorded.
type Signature = (u16, u16, u8, u8, u8, u8);

const TCP: u8 = 6;
const FLAGS: u8 = 0x3f;
/// The signatures in the detector's order: the first match wins.
const SIGNATURES: [(&str, Signature); 4] = [
    ("connections asked for", (0, 0, TCP, 0x12, 0x02, 1)),
    ("packets without flags", (0, 0, TCP, FLAGS, 0x00, 0)),
    ("packets with FIN alone", (0, 0, TCP, FLAGS, 0x01, 0)),
    ("packets with FIN, PSH and URG", (0, 0, TCP, FLAGS, 0x29, 0)),
];

impl Args {
    /// Runs until it is stopped.
    ///
    /// # Errors
    /// If the program is refused, or the instance does not answer.
    pub fn run(self) -> anyhow::Result<()> {
        ensure!(self.ports > 1 && self.hosts > 1, "--ports and --hosts must be at least 2");
        ensure!(self.strange > 0, "--strange must be at least 1");
        ensure!(self.within > Nanos::ZERO, "--within must be more than 0");
        let session = RouterSession::take(&self.target, self.json)?;
        let fid = session.install(&shipped("detector", None, None))?;
        session.fill(fid, ".bss", &[(vec![0; 4], signatures().to_vec())])?;
        // The detector matches nothing before its signatures are there.
        session.tell(
            &json!({ "event": "watching", "router": self.target.router }),
            &format!("watching {}", self.target.router),
        )?;
        let mut watch = IntrusionWatch {
            session: &session,
            args: &self,
            fid,
            filtered: HashMap::new(),
            settled: HashMap::new(),
            unfiltered: HashSet::new(),
        };
        session.every(self.interval.nanos(), |_| watch.look())
    }

    fn limits(&self) -> Limits {
        Limits { ports: self.ports, hosts: self.hosts, within: self.within.0 }
    }
}

struct IntrusionWatch<'p> {
    session: &'p RouterSession,
    args: &'p Args,
    fid: u32,
    /// When each filter ends.
    filtered: HashMap<IpAddr, Instant>,
    /// For each filtered source: its packets and the time of its last packet when it was filtered.
    settled: HashMap<IpAddr, FilteredSource>,
    /// Reported sources for which there is no filter yet.
    unfiltered: HashSet<IpAddr>,
}

#[derive(Default)]
struct FilteredSource {
    packets: HashMap<u32, u64>,
    until: u64,
}

impl IntrusionWatch<'_> {
    fn look(&mut self) -> anyhow::Result<()> {
        self.expire()?;
        let events = self.session.entries(self.fid, "events")?;
        let probes = self.session.entries(self.fid, "probes")?;
        // What the detector has forgotten begins anew.
        let known: HashSet<IpAddr> =
            events.iter().chain(&probes).filter_map(|(key, _)| address_at(key, 0)).collect();
        self.settled.retain(|source, _| known.contains(source) || self.filtered.contains_key(source));
        self.unfiltered.retain(|source| known.contains(source));
        let since = |source: &IpAddr| self.settled.get(source).map_or(0, |settled| settled.until);
        let mut found = scans(&probes, &self.args.limits(), since);
        let settled = |source: &IpAddr, number| self.settled.get(source)?.packets.get(&number).copied();
        found.extend(strangers(&events, self.args.strange, settled));
        for (source, why) in found {
            if !self.filtered.contains_key(&source) && !self.args.spare.contains(&source) {
                self.filter(source, &why, &events, &probes)?;
            }
        }
        Ok(())
    }

    /// Adds a source to the filters. If they are full, that is reported, and tried again in each interval.
    fn filter(
        &mut self,
        source: IpAddr,
        why: &str,
        events: &[Entry],
        probes: &[Entry],
    ) -> anyhow::Result<()> {
        let entry = (address_bytes(source).to_vec(), vec![0; 8]);
        if let Err(error) = self.session.fill(self.fid, "filters", &[entry]) {
            if !self.unfiltered.insert(source) {
                return Ok(());
            }
            output::note(&format!("no filter for {source}: {}", output::chain(error.as_ref())));
            return self.report(source, why, None);
        }
        self.unfiltered.remove(&source);
        let settled = self.settled.entry(source).or_default();
        for (key, value) in events.iter().filter(|(key, _)| address_at(key, 0) == Some(source)) {
            if let (Some(number), Some(packets)) = (word_at(key, 16), double_at(value, 0)) {
                settled.packets.insert(number, packets);
            }
        }
        let own = probes.iter().filter(|(key, _)| address_at(key, 0) == Some(source));
        settled.until = own.filter_map(|(_, value)| double_at(value, 0)).max().unwrap_or(settled.until);
        self.filtered.insert(source, Instant::now() + Duration::from_nanos(self.args.expiry.0));
        self.report(source, why, Some(self.args.expiry))
    }

    fn report(&self, source: IpAddr, why: &str, filtered: Option<Nanos>) -> anyhow::Result<()> {
        let event = json!({ "event": "intrusion", "source": source.to_string(), "why": why,
            "filtered_ns": filtered.map(|time| time.0) });
        let outcome = filtered.map_or("not filtered".into(), |time| format!("filtered for {time}"));
        self.session.tell(&event, &format!("intrusion: {source}: {why}; {outcome}"))
    }

    /// Removes expired sources from the filters.
    fn expire(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        let over: Vec<IpAddr> =
            self.filtered.iter().filter(|(_, end)| **end <= now).map(|(&source, _)| source).collect();
        for source in over {
            self.filtered.remove(&source);
            let key = address_bytes(source);
            let entries = self.session.entries(self.fid, "filters")?;
            let dropped = entries.iter().find(|(filtered, _)| *filtered == key);
            let dropped = dropped.and_then(|(_, value)| double_at(value, 0)).unwrap_or(0);
            self.session.prune(self.fid, "filters", &[key.to_vec()])?;
            let event = json!({ "event": "expired", "source": source.to_string(), "dropped": dropped });
            let dropped = counted(dropped, "packet");
            let text = format!("expired: {source} is no longer filtered; {dropped} dropped");
            self.session.tell(&event, &text)?;
        }
        Ok(())
    }
}

struct Limits {
    ports: usize,
    hosts: usize,
    within: u64,
}

/// Finds sources of invalid packets: at least `most` of a signature beyond those that were `settled`. Fewer
/// than these are a count that has begun anew.
fn strangers(
    events: &[Entry],
    most: u64,
    settled: impl Fn(&IpAddr, u32) -> Option<u64>,
) -> Vec<(IpAddr, String)> {
    let strange = |(key, value): &Entry| {
        let (source, number) = (address_at(key, 0)?, word_at(key, 16)?);
        let (what, _) = SIGNATURES.get(number as usize).filter(|(_, signature)| signature.5 == 0)?;
        let all = double_at(value, 0)?;
        let packets = all - settled(&source, number).filter(|settled| *settled <= all).unwrap_or(0);
        (packets >= most).then(|| (source, format!("{packets} {what}")))
    };
    events.iter().filter_map(strange).collect()
}

/// Finds scans: among each source's probes, those no older than its last by more than the time window, and
/// newer than its last filtering.
fn scans(probes: &[Entry], limits: &Limits, since: impl Fn(&IpAddr) -> u64) -> Vec<(IpAddr, String)> {
    let mut by_source: HashMap<IpAddr, Vec<(IpAddr, u16, u64)>> = HashMap::new();
    for (key, value) in probes {
        let probe = || Some((address_at(key, 0)?, address_at(key, 16)?, port_at(key)?, double_at(value, 0)?));
        let Some((source, host, port, time)) = probe() else { continue };
        by_source.entry(source).or_default().push((host, port, time));
    }
    let mut found = Vec::new();
    for (source, mut tried) in by_source {
        let last = tried.iter().map(|&(_, _, time)| time).max().unwrap_or(0);
        let first = last.saturating_sub(limits.within).max(since(&source).saturating_add(1));
        tried.retain(|&(_, _, time)| time >= first);
        let (mut ports, mut hosts) = (HashMap::<_, HashSet<_>>::new(), HashMap::<_, HashSet<_>>::new());
        for (host, port, _) in tried {
            ports.entry(host).or_default().insert(port);
            hosts.entry(port).or_default().insert(host);
        }
        // The host with the most ports; of equals the first.
        let ports = ports.into_iter().map(|(host, ports)| (ports.len(), host)).max();
        let hosts = hosts.into_iter().map(|(port, hosts)| (hosts.len(), port)).max();
        if let Some((count, host)) = ports.filter(|&(count, _)| count >= limits.ports) {
            found.push((source, format!("tried {count} ports of {host}")));
        } else if let Some((count, port)) = hosts.filter(|&(count, _)| count >= limits.hosts) {
            found.push((source, format!("tried port {port} of {count} hosts")));
        }
    }
    found
}

fn port_at(key: &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes(key.get(32..34)?.try_into().ok()?))
}

/// The detector's eight signatures, in the format of its map.
fn signatures() -> [u8; 64] {
    let mut bytes = [0; 64];
    let places = bytes.as_chunks_mut::<8>().0;
    for (place, (_, (first, count, protocol, mask, flags, probe))) in places.iter_mut().zip(SIGNATURES) {
        let ([a, b], [c, d]) = (first.to_le_bytes(), count.to_le_bytes());
        *place = [a, b, c, d, protocol, mask, flags, probe];
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(source: u8, host: u8, port: u16, time: u64) -> Entry {
        let address = |last: u8| address_bytes([10, 0, 0, last].into());
        let key = [&address(source)[..], &address(host), &port.to_le_bytes(), &[TCP, 0]].concat();
        (key, time.to_le_bytes().to_vec())
    }

    fn seen(probes: &[Entry], since: u64) -> Vec<(IpAddr, String)> {
        scans(probes, &Limits { ports: 3, hosts: 3, within: 100 }, |_| since)
    }

    #[test]
    fn many_ports_of_a_host_or_many_hosts_are_a_scan() {
        let source = IpAddr::from([10, 0, 0, 1]);
        let ports = [probe(1, 9, 21, 500), probe(1, 9, 22, 550), probe(1, 9, 23, 600), probe(2, 9, 80, 600)];
        assert_eq!(seen(&ports, 0), [(source, "tried 3 ports of 10.0.0.9".to_owned())]);
        let hosts = [probe(1, 7, 22, 500), probe(1, 8, 22, 550), probe(1, 9, 22, 600)];
        assert_eq!(seen(&hosts, 0), [(source, "tried port 22 of 3 hosts".to_owned())]);
        // Two ports of one and one of another are not a scan.
        assert_eq!(seen(&[probe(1, 9, 21, 1), probe(1, 9, 22, 2), probe(1, 8, 23, 3)], 0), []);
    }

    #[test]
    fn slow_ones_and_those_that_were_held_against_it_are_none() {
        assert_eq!(seen(&[probe(1, 9, 21, 499), probe(1, 9, 22, 550), probe(1, 9, 23, 600)], 0), []);
        let ports = [probe(1, 9, 21, 500), probe(1, 9, 22, 550), probe(1, 9, 23, 600)];
        assert_eq!(seen(&ports, 500), []);
        assert_eq!(seen(&ports, 499).len(), 1);
    }

    #[test]
    fn what_was_settled_is_not_held_against_a_count_that_began_anew() {
        let source = IpAddr::from([10, 0, 0, 1]);
        let key = |number: u32| [&address_bytes(source)[..], &number.to_le_bytes()].concat();
        let event = |number, packets: u64| (key(number), packets.to_le_bytes().to_vec());
        for (packets, settled, wanted) in [
            (2, None, None),
            (3, None, Some(3)),
            (12, Some(10), None),
            (13, Some(10), Some(3)),
            (5, Some(10), Some(5)),
        ] {
            let wanted: Vec<_> = wanted
                .map(|count: u64| (source, format!("{count} packets with FIN alone")))
                .into_iter()
                .collect();
            // Connections asked for are none.
            let events = [event(0, 99), event(2, packets)];
            assert_eq!(
                strangers(&events, 3, |_, number| settled.filter(|_| number == 2)),
                wanted,
                "{packets}"
            );
        }
    }

    #[test]
    fn signatures_are_as_the_detector_has_them() {
        assert_eq!(signatures()[..16], [0, 0, 0, 0, 6, 0x12, 2, 1, 0, 0, 0, 0, 6, 0x3f, 0, 0]);
        assert_eq!(signatures()[32..], [0; 32]);
    }
}
