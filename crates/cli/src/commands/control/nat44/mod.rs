//! `longwire control nat44`: owns external addresses and ports, and gives them to flows from inside.

mod entry;
mod packet;
mod table;
mod translator;

use super::post::{Entry, Post};
use super::{Interval, Stay};
use crate::live_forwarders::digits;
use crate::{Outcome, outcome};
use anyhow::{bail, ensure};
use longwire_punt::client::{ClientError, Control, Event, Hello};
use longwire_punt::{Cut, Verdict};
use longwire_scenario::{Network, WrittenForwarder};
use longwire_units::Nanos;
use serde_json::json;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::{Duration, Instant};
use entry::{between, entries, key, told};
use packet::{ICMP, TCP, UDP};
use table::{Endpoint, Limits};
use translator::{Counts, Noted, Ruling, Times, Translator};

/// Give external addresses and ports to what comes from inside, and take them back when they are not used any more
///
/// Installs nat44, which translates on the data path what has a binding. The first packet of a new flow from inside comes up: it is given an external
/// port, its own if that is free, which is the same for all whom that endpoint speaks with (RFC 4787, RFC 5382, RFC 5508). ICMP errors, fragments and packets with options are
/// translated here, one by one; what from inside can't be, or finds no port, is dropped and counted.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire control nat44 r1 --inside 10.0.1.0/24 --external 10.0.2.1
  longwire control nat44 r1 --inside 10.0.0.0/8 --inside 192.168.0.0/16 --external 192.0.2.16/28 --ports 1024-65535 --each 500 --udp '3 min' --json")]
pub struct Args {
    #[command(flatten)]
    beside: Stay,

    /// A network inside; up to four can be given.
    #[arg(long, value_name = "NETWORK", required = true, value_parser = Network4::read)]
    inside: Vec<Network4>,

    /// The external address, or a network of up to 256 of them. They have to lead to the router: its own, or routed there.
    #[arg(long, value_name = "ADDRESS", value_parser = Network4::read)]
    external: Network4,

    /// The ports of each external address that may be given.
    #[arg(long, value_name = "FIRST-LAST", default_value = "1024-65535", value_parser = Ports::read)]
    ports: Ports,

    /// How many bindings there may be altogether, at most 32768.
    #[arg(long, value_name = "COUNT", default_value_t = MOST_BINDINGS)]
    bindings: usize,

    /// How many bindings each inside host may have.
    #[arg(long, value_name = "COUNT", default_value_t = 2048)]
    each: usize,

    /// After which time without a packet from inside a binding of UDP ends.
    #[arg(long, value_name = "TIME", default_value = "5 min")]
    udp: Nanos,

    /// After which time without a packet a binding of TCP ends whose connection is established.
    #[arg(long, value_name = "TIME", default_value = "124 min")]
    tcp: Nanos,

    /// The same of one that is being opened or has ended.
    #[arg(long, value_name = "TIME", default_value = "4 min")]
    tcp_transitory: Nanos,

    /// The same of ICMP queries.
    #[arg(long, value_name = "TIME", default_value = "1 min")]
    icmp: Nanos,

    /// New flows a second that the router is asked to promise.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    packets: u64,

    /// Tell of every binding, not only of how many there are.
    #[arg(long)]
    log: bool,

    /// How often it is told how many there are, if that has changed.
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    interval: Interval,

    /// Print a JSON object for each event.
    #[arg(long)]
    json: bool,
}

/// As many as the program's map has room for, with two entries each.
const MOST_BINDINGS: usize = 32_768;
/// As many as the program has room for.
const MOST_INSIDE: usize = 4;
/// The mark that packets have which the program leaves to this half: "NAT4".
const MARK: u32 = 0x4e41_5434;
/// The name by which it comes to the router.
const NAME: &str = "nat44";
/// Cycles for a packet: its entries are written through the API, with others', before it goes on. An assumption.
const CYCLES: u64 = 50_000;
/// How long a packet waits for its binding at most.
const WITHIN: &str = "5 s";
/// How long it sleeps at most before it looks whether it is still wanted.
const SLEEP: Duration = Duration::from_millis(100);
/// What RFCs ask for at least: 4787 (REQ-5), 5382 (REQ-5), 5508 (REQ-2).
const LEAST: [(&str, Nanos); 4] = [
    ("--udp", Nanos::from_secs(120)),
    ("--tcp", Nanos::from_secs(7440)),
    ("--tcp-transitory", Nanos::from_secs(240)),
    ("--icmp", Nanos::from_secs(60)),
];

/// A network of IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network4 {
    address: u32,
    mask: u32,
}

impl Network4 {
    fn read(text: &str) -> Result<Self, String> {
        let network: Network = text.parse()?;
        let network = network.masked();
        let IpAddr::V4(address) = network.address else {
            return Err(format!("\"{text}\" is not of IPv4"));
        };
        match network.prefix {
            0 => Err(format!("\"{text}\" has all addresses")),
            prefix => Ok(Self { address: address.into(), mask: u32::MAX << (32 - prefix) }),
        }
    }

    fn contains(&self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask == self.address
    }

    /// Whether they have an address in common.
    fn meets(&self, other: &Self) -> bool {
        let mask = self.mask & other.mask;
        self.address & mask == other.address & mask
    }

    fn addresses(&self) -> Vec<Ipv4Addr> {
        (self.address..=self.address | !self.mask).map(Ipv4Addr::from).collect()
    }

    /// As the program has it: address, mask.
    fn bytes(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.address.to_be_bytes());
        bytes[4..].copy_from_slice(&self.mask.to_be_bytes());
        bytes
    }
}

/// A range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no range of ports, such as 1024-65535");
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first > 0 && first <= last => Ok(Self { first, last }),
            _ => Err(wrong()),
        }
    }
}

impl Args {
    /// Translates until it is stopped.
    ///
    /// # Errors
    /// If the programs are refused, or the instance does not answer.
    pub fn run(self) -> anyhow::Result<Outcome> {
        self.check()?;
        let post = Post::take(&self.beside, self.json)?;
        let program = WrittenForwarder {
            program: "nat44".into(),
            data: Some(digits(&self.state())),
            ..WrittenForwarder::default()
        };
        let fid = post.install(&program)?;
        // Behind the program, which sets the mark.
        post.install(&self.seat())?;
        let socket = self.beside.socket()?;
        let hello = Hello { name: NAME.into(), packets: 0, cycles: 0, share: 1 };
        let control = Control::connect(Path::new(&socket), &hello)?;
        let mut nat = Nat {
            post: &post,
            control,
            translator: self.translator(),
            fid,
            args: &self,
            told: Counts::default(),
            next: Instant::now(),
            clock: None,
            fetching: HashMap::new(),
        };
        match post.every(Nanos(0), |_| nat.go_on()) {
            Err(error) if has_ended(&error) => {
                outcome::note(&error.to_string());
                Ok(Outcome::Well)
            }
            ended => ended.map(|()| Outcome::Well),
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.inside.len() <= MOST_INSIDE, "--inside can be given {MOST_INSIDE} times at most");
        let count = u64::from(!self.external.mask) + 1;
        ensure!(count <= 256, "--external has {count} addresses; 256 are the most: write a /24 or less");
        if let Some(inside) = self.inside.iter().find(|inside| inside.meets(&self.external)) {
            bail!("--external meets the inside network {}", Ipv4Addr::from(inside.address));
        }
        ensure!(
            (1..=MOST_BINDINGS).contains(&self.bindings),
            "--bindings {} is outside 1 to {MOST_BINDINGS}",
            self.bindings
        );
        ensure!(self.each > 0, "--each 0 would let nobody out; ask for at least 1");
        let times = [self.udp, self.tcp, self.tcp_transitory, self.icmp];
        for ((option, least), time) in LEAST.into_iter().zip(times) {
            if time < least {
                outcome::note(&format!("{option} {time} is less than the {least} that applications may count on"));
            }
        }
        Ok(())
    }

    /// The program's state: mark, external network, inside networks.
    fn state(&self) -> Vec<u8> {
        let mut state = [&MARK.to_le_bytes()[..], &[0; 4], &self.external.bytes()].concat();
        for place in 0..MOST_INSIDE {
            state.extend(self.inside.get(place).map_or([0; 8], Network4::bytes));
        }
        state
    }

    fn seat(&self) -> WrittenForwarder {
        WrittenForwarder {
            level: Some("control".into()),
            name: Some(NAME.into()),
            packets: Some(self.packets.to_string()),
            cycles: Some(CYCLES.to_string()),
            mark: Some(MARK.to_string()),
            within: Some(WITHIN.into()),
            // With an inside address it is to go nowhere.
            otherwise: Some("drop".into()),
            ..WrittenForwarder::default()
        }
    }

    fn translator(&self) -> Translator {
        let limits = Limits {
            external: self.external.addresses(),
            ports: self.ports.first..=self.ports.last,
            bindings: self.bindings,
            each: self.each,
        };
        let times = Times {
            udp: self.udp.0,
            established: self.tcp.0,
            transitory: self.tcp_transitory.0,
            icmp: self.icmp.0,
        };
        // Nobody is to guess which port is next.
        Translator::new(self.inside.clone(), self.external, limits, times, RandomState::new().hash_one(NAME))
    }
}

/// Whether the router is gone, or its run is over.
fn has_ended(error: &anyhow::Error) -> bool {
    let ended = error.downcast_ref::<ClientError>();
    matches!(ended, Some(ClientError::Ended(None | Some(Cut::Left | Cut::Stopped))))
}

/// The half while it runs.
struct Nat<'p> {
    post: &'p Post,
    control: Control,
    translator: Translator,
    fid: u32,
    args: &'p Args,
    /// What was told last.
    told: Counts,
    /// When it is told again.
    next: Instant,
    /// When the last packet came, by this clock and by the router's.
    clock: Option<(Instant, u64)>,
    /// Packets of which more bytes were asked for: when they came, and how long they are.
    fetching: HashMap<u64, (u64, usize)>,
}

/// The program's map.
const BINDINGS: &str = "bindings";
/// How many packets are served, and bindings looked at, in one go: their entries fit one request.
const TOGETHER: usize = 256;

/// What packets that came together need.
#[derive(Default)]
struct Work {
    /// What is said of each, once the entries are written: the token, the verdict, and what its first bytes are then.
    answers: Vec<(u64, Verdict, Vec<u8>)>,
    entries: Vec<Entry>,
    /// New bindings.
    bound: Vec<(Endpoint, Endpoint)>,
}

impl Work {
    /// Adds both entries of a binding.
    fn bind(&mut self, inside: Endpoint, external: Endpoint, flags: u8, time: u64) {
        self.entries.extend(entries((inside, external), flags, time));
        self.bound.push((inside, external));
    }
}

impl Nat<'_> {
    /// Serves what comes within a moment.
    fn go_on(&mut self) -> anyhow::Result<()> {
        let is_due = self.now().is_some_and(|now| self.translator.table.due(now).next().is_some());
        self.control.wait(if is_due { Duration::ZERO } else { SLEEP })?;
        let mut work = Work::default();
        for _ in 0..TOGETHER {
            let (token, time, length, mut frame) = match self.control.next()? {
                None => break,
                Some(Event::Packet(facts, bytes)) => (facts.token, facts.time, facts.len as usize, bytes.to_vec()),
                Some(Event::Body(token, _, bytes)) => match self.fetching.remove(&token) {
                    Some((time, length)) if !bytes.is_empty() => (token, time, length, bytes.to_vec()),
                    // It is not up any more.
                    _ => continue,
                },
            };
            self.clock = Some((Instant::now(), time));
            let ruling = self.translator.judge(&mut frame, time);
            let verdict = match ruling {
                Ruling::Needs(count) if count > frame.len() && count <= length => {
                    self.fetching.insert(token, (time, length));
                    while !self.control.fetch(token, 0, u32::try_from(count)?)? {
                        self.control.flush();
                    }
                    continue;
                }
                Ruling::Needs(_) => {
                    self.translator.counts.untranslatable += 1;
                    Verdict::Drop
                }
                Ruling::Dropped => Verdict::Drop,
                Ruling::Pass | Ruling::Rewritten => Verdict::Pass,
                Ruling::Bound(inside, external, flags) => {
                    work.bind(inside, external, flags, time);
                    Verdict::Pass
                }
            };
            if !matches!(ruling, Ruling::Rewritten | Ruling::Bound(..)) {
                frame.clear();
            }
            work.answers.push((token, verdict, frame));
        }
        self.finish(&work)?;
        self.expire()?;
        if Instant::now() >= self.next {
            self.next = Instant::now() + Duration::from_nanos(self.args.interval.nanos().0);
            self.tell()?;
        }
        Ok(())
    }

    /// Writes new bindings, then lets their packets go on: the answers have to find them.
    fn finish(&mut self, work: &Work) -> anyhow::Result<()> {
        if !work.entries.is_empty() {
            self.post.fill(self.fid, BINDINGS, &work.entries)?;
        }
        for (token, verdict, head) in &work.answers {
            while !self.control.answer(*token, *verdict, head)? {
                self.control.flush();
            }
        }
        self.control.flush();
        for &(inside, external) in work.bound.iter().filter(|_| self.args.log) {
            let event = told("bound", inside, external);
            self.post.tell(&event, &format!("bound: {}", between(inside, external)))?;
        }
        Ok(())
    }

    /// What time it is by the router's clock; none before a packet has come.
    fn now(&self) -> Option<u64> {
        let (at, time) = self.clock?;
        Some(time.saturating_add(u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Ends bindings that have not been used for long.
    fn expire(&mut self) -> anyhow::Result<()> {
        let Some(now) = self.now() else { return Ok(()) };
        let due: Vec<(Endpoint, Endpoint)> = self.translator.table.due(now).take(TOGETHER).collect();
        if due.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = due.iter().flat_map(|&(inside, external)| [key(inside, 0), key(external, 1)]).collect();
        let values = self.post.values(self.fid, BINDINGS, &keys)?;
        let noted = values.iter().map(|value| value.as_deref().and_then(Noted::read).unwrap_or_default());
        let noted: Vec<Noted> = noted.collect();
        let (mut over, mut ended) = (Vec::new(), Vec::new());
        for (&(inside, external), noted) in due.iter().zip(noted.as_chunks::<2>().0) {
            match self.translator.keep_until(inside, noted[0], noted[1], now) {
                Some(until) => self.translator.table.put_off(inside, until),
                None => {
                    over.extend([key(inside, 0), key(external, 1)]);
                    ended.push((inside, external, [noted[0].packets, noted[1].packets]));
                }
            }
        }
        if !over.is_empty() {
            self.post.prune(self.fid, BINDINGS, &over)?;
        }
        for (inside, external, packets) in ended {
            self.translator.table.release(inside);
            self.translator.counts.ended += 1;
            if self.args.log {
                let mut event = told("ended", inside, external);
                event["packets"] = packets.as_slice().into();
                let [out, back] = packets;
                let text = format!("ended: {}; {out} packets out, {back} back", between(inside, external));
                self.post.tell(&event, &text)?;
            }
        }
        Ok(())
    }

    /// Tells how much there is, if that has changed; and what was full.
    fn tell(&mut self) -> anyhow::Result<()> {
        let (before, now) = (self.told, self.translator.counts);
        if before == now {
            return Ok(());
        }
        self.told = now;
        for (what, count, text) in [
            ("host", now.host - before.host, "hosts had as many bindings as --each lets them have"),
            ("table", now.table - before.table, "there are as many bindings as there may be"),
            ("ports", now.ports - before.ports, "no port of their external address was free"),
        ] {
            if count > 0 {
                let event = json!({ "event": "full", "what": what, "packets": count });
                self.post.tell(&event, &format!("full: {count} packets dropped: {text}"))?;
            }
        }
        let table = &self.translator.table;
        let [udp, tcp, icmp] = [UDP, TCP, ICMP].map(|protocol| table.bindings(protocol));
        let refused = now.host + now.table + now.ports;
        let event = json!({
            "event": "counts", "bindings": { "udp": udp, "tcp": tcp, "icmp": icmp }, "hosts": table.hosts(),
            "made": now.made, "ended": now.ended,
            "translated": { "errors": now.errors, "parts": now.parts, "others": now.others },
            "refused": { "host": now.host, "table": now.table, "ports": now.ports },
            "untranslatable": now.untranslatable,
        });
        let hosts = table.hosts();
        let text = format!(
            "{udp} UDP, {tcp} TCP and {icmp} ICMP bindings of {hosts} hosts; {} made, {} ended; {refused} packets refused, {} untranslatable",
            now.made, now.ended, now.untranslatable
        );
        self.post.tell(&event, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_ports_are_read() {
        let network = Network4::read("10.1.2.3/8").unwrap();
        assert_eq!(network.bytes(), [10, 0, 0, 0, 255, 0, 0, 0]);
        assert!(network.contains(Ipv4Addr::new(10, 9, 9, 9)) && !network.contains(Ipv4Addr::new(11, 0, 0, 1)));
        let pool = Network4::read("192.0.2.4/30").unwrap();
        let last: Vec<u8> = pool.addresses().iter().map(|address| address.octets()[3]).collect();
        assert_eq!(last, [4, 5, 6, 7]);
        assert!(pool.meets(&Network4::read("192.0.0.0/16").unwrap()) && !pool.meets(&network));
        for wrong in ["fd00::/8", "10.0.0.0/33", "a", "0.0.0.0/0"] {
            assert!(Network4::read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Ports::read("1024-2047"), Ok(Ports { first: 1024, last: 2047 }));
        for wrong in ["1024", "9-8", "0-9", "1-65536"] {
            assert!(Ports::read(wrong).is_err(), "{wrong}");
        }
    }
}
