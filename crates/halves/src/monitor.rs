//! `longwire control monitor`: counts packets by their properties, and sends summaries to a collector.

use crate::session::{RouterSession, address_at, address_bytes, double_at, fid_of, shipped, word_at};
use crate::{Interval, ResidentArgs, protocol_name};
use anyhow::Context;
use longwire_units::counted;
use serde_json::json;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Count packets by their properties, and send a summary of each interval to a collector
///
/// Installs the performance monitor for all packets. In each interval it reports packets and bytes for each
/// property: a JSON object per line, on standard output or in UDP datagrams of whole lines. Counters can be
/// added while it runs: the same command with --add changes the running monitor, and ends.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire control monitor r1 --by protocol,flags
  longwire control monitor r1 --collector 192.0.2.7:9000 --interval '10 s'
  longwire control monitor r1 --add port --add source=10.0.1.9 --add destination=10.0.2.9")]
pub struct Args {
    #[command(flatten)]
    target: ResidentArgs,

    /// Properties to count by: port, protocol, flags, source=ADDRESS, destination=ADDRESS. Default: protocol.
    #[arg(long, value_name = "PROPERTY", value_delimiter = ',', value_parser = Counter::read)]
    by: Vec<Counter>,

    /// Add this property to the running monitor; can be given several times.
    #[arg(long, value_name = "PROPERTY", value_delimiter = ',', value_parser = Counter::read,
        conflicts_with_all = ["by", "collector"])]
    add: Vec<Counter>,

    /// Destination of summaries. Default: standard output.
    #[arg(long, value_name = "ADDRESS:PORT")]
    collector: Option<SocketAddr>,

    /// How often counters are read.
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    interval: Interval,

    /// Print a JSON object for each counter, instead of text.
    #[arg(long)]
    json: bool,
}

/// The property by which packets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counter {
    Port,
    Protocol,
    Flags,
    Source(IpAddr),
    Destination(IpAddr),
}

/// Most bytes of a datagram: fits an Ethernet frame with IPv6.
const DATAGRAM: usize = 1400;
/// The properties in the order of the program's bits: bit, map, name.
const PROPERTIES: [(u32, &str, &str); 5] = [
    (1, "ports", "port"),
    (2, "protocols", "protocol"),
    (4, "flags", "flags"),
    (8, "addresses", "source"),
    (16, "addresses", "destination"),
];

impl Counter {
    fn read(text: &str) -> Result<Self, String> {
        let address = |text: &str| text.parse().map_err(|_| format!("\"{text}\" is no address"));
        match text.split_once('=') {
            None if text == "port" => Ok(Self::Port),
            None if text == "protocol" => Ok(Self::Protocol),
            None if text == "flags" => Ok(Self::Flags),
            Some(("source", text)) => address(text).map(Self::Source),
            Some(("destination", text)) => address(text).map(Self::Destination),
            _ => Err("write port, protocol, flags, source=ADDRESS or destination=ADDRESS".into()),
        }
    }

    /// The program's bit for it.
    fn bit(self) -> u32 {
        match self {
            Self::Port => 1,
            Self::Protocol => 2,
            Self::Flags => 4,
            Self::Source(_) => 8,
            Self::Destination(_) => 16,
        }
    }

    /// Its entry in the map of addresses.
    fn entry(self) -> Option<[u8; 20]> {
        let (address, side) = match self {
            Self::Source(address) => (address, 0u32),
            Self::Destination(address) => (address, 1),
            _ => return None,
        };
        let mut key = [0; 20];
        key[..16].copy_from_slice(&address_bytes(address));
        key[16..].copy_from_slice(&side.to_le_bytes());
        Some(key)
    }
}

impl Args {
    /// Sends summaries until it is stopped.
    ///
    /// # Errors
    /// If the program is refused, the collector can't be sent to, or the instance does not answer.
    pub fn run(self) -> anyhow::Result<()> {
        let session = RouterSession::take(&self.target, self.json)?;
        if !self.add.is_empty() {
            let list = session.list()?;
            let running = list.iter().find(|one| one["name"] == "performance-monitor");
            let none = "no monitor is running; start one with longwire control monitor";
            return count_by(&session, running.and_then(fid_of).context(none)?, &self.add);
        }
        let collector = self.collector.map(connected).transpose()?;
        let fid = session.install(&shipped("performance-monitor", None, None))?;
        let by = if self.by.is_empty() { &[Counter::Protocol][..] } else { &self.by };
        count_by(&session, fid, by)?;
        let mut before = HashMap::new();
        session.every(self.interval.nanos(), |time| {
            let mut lines = Vec::new();
            for (property, key, total) in read(&session, fid)? {
                let last = before.insert((property, key.clone()), total).unwrap_or_default();
                let packets = total.0.saturating_sub(last.0);
                if packets == 0 {
                    continue;
                }
                let bytes = total.1.saturating_sub(last.1);
                lines.push((
                    json!({
                        "event": "summary", "router": self.target.router, "by": property, "key": key,
                        "packets": packets, "bytes": bytes,
                        "time_ns": u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
                    }),
                    format!("{property} {key}: {}, {}", counted(packets, "packet"), counted(bytes, "byte")),
                ));
            }
            let Some(collector) = &collector else {
                return lines.iter().try_for_each(|(line, text)| session.tell(line, text));
            };
            for datagram in datagrams(lines.iter().map(|(line, _)| line.to_string())) {
                // A collector that is unreachable now may be reachable later.
                let _ = collector.send(&datagram);
            }
            Ok(())
        })
    }
}

/// Adds counters to a monitor.
fn count_by(session: &RouterSession, fid: u32, counters: &[Counter]) -> anyhow::Result<()> {
    let known = session.entries(fid, "addresses")?;
    for entry in counters.iter().filter_map(|counter| counter.entry()) {
        // Existing counters continue.
        if !known.iter().any(|(key, _)| *key == entry) {
            session.fill(fid, "addresses", &[(entry.to_vec(), vec![0; 16])])?;
        }
    }
    let properties = u32::from_le_bytes(session.data(fid)?);
    let more = counters.iter().fold(properties, |bits, counter| bits | counter.bit());
    if more == properties { Ok(()) } else { session.set(fid, &more.to_le_bytes()) }
}

/// Packets and bytes.
type TrafficCount = (u64, u64);

/// All counters of a monitor: property, value, count.
fn read(session: &RouterSession, fid: u32) -> anyhow::Result<Vec<(&'static str, String, TrafficCount)>> {
    let properties = u32::from_le_bytes(session.data(fid)?);
    let mut found = Vec::new();
    for (bit, map, property) in PROPERTIES {
        if properties & bit == 0 {
            continue;
        }
        for (key, value) in session.entries(fid, map)? {
            let (Some(key), Some(total)) = (named(property, &key), traffic_count(&value)) else { continue };
            found.push((property, key, total));
        }
    }
    Ok(found)
}

/// The sum of a value's counters, one per processor of the router.
fn traffic_count(value: &[u8]) -> Option<TrafficCount> {
    let sum = |place| value.as_chunks::<16>().0.iter().filter_map(|own| double_at(own, place)).sum();
    (!value.is_empty()).then(|| (sum(0), sum(8)))
}

/// The name of a map's key; none if it belongs to another property.
fn named(property: &str, key: &[u8]) -> Option<String> {
    let number = word_at(key, if key.len() == 20 { 16 } else { 0 })?;
    match (property, number) {
        ("source", 0) | ("destination", 1) => Some(address_at(key, 0)?.to_string()),
        ("source" | "destination", _) => None,
        ("protocol", number) => Some(protocol_name(u8::try_from(number).ok()?)),
        ("flags", flags) => Some(flag_names(flags)),
        _ => Some(number.to_string()),
    }
}

/// Names of TCP flags (RFC 9293, section 3.1).
fn flag_names(flags: u32) -> String {
    const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
    let set = NAMES.iter().enumerate().filter(|(bit, _)| flags >> bit & 1 == 1);
    let set: Vec<&str> = set.map(|(_, name)| *name).collect();
    if set.is_empty() { "none".into() } else { set.join("+") }
}

/// A socket for summaries to a collector.
fn connected(to: SocketAddr) -> anyhow::Result<UdpSocket> {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let doing = || format!("sending to the collector {to}");
    let socket = UdpSocket::bind((any, 0)).with_context(doing)?;
    socket.connect(to).with_context(doing)?;
    Ok(socket)
}

/// Packs lines into datagrams without splitting any.
fn datagrams(lines: impl Iterator<Item = String>) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for line in lines {
        match all.last_mut() {
            Some(last) if last.len() + line.len() < DATAGRAM => last.extend_from_slice(line.as_bytes()),
            _ => all.push(line.into_bytes()),
        }
        all.last_mut().into_iter().for_each(|last| last.push(b'\n'));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_as_they_are_written() {
        assert_eq!(Counter::read("flags"), Ok(Counter::Flags));
        let source = Counter::read("source=10.0.1.9").unwrap();
        let key = [&[0; 10][..], &[0xff, 0xff, 10, 0, 1, 9], &[0; 4]].concat();
        assert_eq!((source.bit(), source.entry().unwrap().to_vec()), (8, key.clone()));
        assert_eq!((named("source", &key), named("destination", &key)), (Some("10.0.1.9".into()), None));
        for wrong in ["source", "colour", "port=7", "source=b"] {
            assert!(Counter::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_have_names() {
        for (property, number, name) in [
            ("protocol", 6, "tcp"),
            ("protocol", 89, "89"),
            ("port", 1, "1"),
            ("flags", 0x12, "SYN+ACK"),
            ("flags", 0, "none"),
        ] {
            assert_eq!(named(property, &u32::to_le_bytes(number)).as_deref(), Some(name));
        }
    }

    #[test]
    fn counters_of_all_processors_are_one() {
        let value: Vec<u8> = [3u64, 300, 4, 1000].iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(
            (traffic_count(&value), traffic_count(&value[..16]), traffic_count(&[])),
            (Some((7, 1300)), Some((3, 300)), None)
        );
    }

    #[test]
    fn datagrams_have_whole_lines() {
        let line = |length| "x".repeat(length);
        let sent = datagrams([line(1000), line(398), line(399), line(999)].into_iter());
        let lengths: Vec<_> = sent.iter().map(Vec::len).collect();
        assert_eq!(lengths, [1400, 1400]);
        assert!(sent.iter().all(|datagram| datagram.ends_with(b"\n")));
    }
}
