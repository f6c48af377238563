//! `longwire traffic send`

use crate::outcome::print_report;
use crate::progress::Progress;
use crate::stop_flag::stop_flag;
use crate::usage::choice;
use crate::{Json, Outcome};
use anyhow::{Context, ensure};
use clap::Subcommand;
use longwire_lab::traffic::bulk::{self, Bulk};
use longwire_lab::traffic::ping::{self, Ping};
use longwire_lab::traffic::request::{self, Requests, Transport};
use longwire_lab::traffic::udp::{self, SendingRate, UdpStream};
use longwire_lab::traffic::{DEFAULT_PORT, Layer, OnProgress, Receiver, Recording, StopAfter, until};
use longwire_report::{Report, Row};
use longwire_units::{Bytes, Nanos, Rate};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// Send to a receiver and print what both sides measured
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: Protocol,
}

#[derive(Debug, Subcommand)]
enum Protocol {
    Udp(Udp),
    Tcp(Tcp),
    Request(Request),
    Ping(Echo),
}

/// Destination and output format.
#[derive(Debug, clap::Args)]
struct Destination {
    /// The receiver: a name or an address.
    host: String,

    /// The port of `longwire traffic receive` there.
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,

    /// Use an IPv4 address of the host.
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,

    /// Use an IPv6 address of the host.
    #[arg(short = '6', long)]
    ipv6: bool,

    #[command(flatten)]
    json: Json,
}

/// UDP at a set rate: loss, one-way delay, jitter, order, duplicates
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire traffic send udp 192.0.2.7 --rate 5mbit --for 10s
  longwire traffic send udp 192.0.2.7 --packets-per-second 1000 --size 100B --count 5000
  longwire traffic send udp host.example --rate 1gbit --layer ip --json
  longwire traffic send udp 192.0.2.7 --rate 12mbit --record sent.pcap

The rate counts whole Ethernet frames unless --layer says otherwise.")]
struct Udp {
    #[command(flatten)]
    to: Destination,

    /// The sending rate, or "unlimited". Default: 1 Mbit/s.
    #[arg(long, conflicts_with = "packets_per_second")]
    rate: Option<Rate>,

    /// The sending rate in packets per second.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    packets_per_second: Option<u64>,

    /// Payload of each packet: 18 to 65507 bytes.
    #[arg(long, default_value = "1000 B")]
    size: Bytes,

    /// The bytes that the rate counts.
    #[arg(long, value_parser = choice(LAYERS), default_value = "ethernet")]
    layer: Layer,

    #[command(flatten)]
    until: StopCondition,

    /// Time to wait for stragglers; more than the path's delay.
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    wait: Nanos,

    /// Record the packets as a capture, for "longwire distill".
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// Bytes counted by a rate.
const LAYERS: [(&str, Layer, &str); 4] = [
    ("payload", Layer::Payload, "UDP payload only"),
    ("ip", Layer::Ip, "IP packets"),
    ("ethernet", Layer::Ethernet, "Ethernet frames with their check sequence"),
    ("wire", Layer::Wire, "Ethernet frames with preamble and gap"),
];

/// When to stop.
#[derive(Debug, clap::Args)]
struct StopCondition {
    /// Duration. Default: 10 s.
    #[arg(long = "for", value_name = "TIME", conflicts_with = "count")]
    time: Option<Nanos>,

    /// Number of packets or requests to send.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// TCP at the highest rate of the path
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire traffic send tcp 192.0.2.7
  longwire traffic send tcp 192.0.2.7 --parallel 4 --congestion cubic --for 30s
  longwire traffic send tcp 192.0.2.7 --bytes 100MB --json")]
struct Tcp {
    #[command(flatten)]
    to: Destination,

    /// Duration. Default: 10 s.
    #[arg(long = "for", value_name = "TIME", conflicts_with = "bytes")]
    time: Option<Nanos>,

    /// Bytes to send, over all connections.
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Bytes>,

    /// Number of parallel connections, 1 to 64.
    #[arg(long, value_name = "N", default_value_t = 1)]
    parallel: u32,

    /// Congestion control: cubic, reno, bbr … Default: the system's.
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
}

/// Requests and their responses: latency seen by a program
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire traffic send request 192.0.2.7
  longwire traffic send request 192.0.2.7 --over udp --request 200B --response 10kB --parallel 8 --for 5s")]
struct Request {
    #[command(flatten)]
    to: Destination,

    /// Their transport.
    #[arg(long, value_parser = choice(TRANSPORTS), default_value = "tcp")]
    over: Transport,

    /// Bytes of a request: 18 to 65507.
    #[arg(long, value_name = "SIZE", default_value = "64 B")]
    request: Bytes,

    /// Bytes of a response: 18 to 65507.
    #[arg(long, value_name = "SIZE", default_value = "64 B")]
    response: Bytes,

    /// Number of requests in progress at a time, 1 to 1024.
    #[arg(long, value_name = "N", default_value_t = 1)]
    parallel: u32,

    #[command(flatten)]
    until: StopCondition,

    /// Time after which a request is given up; more than the path's round trip.
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    timeout: Nanos,
}

const TRANSPORTS: [(&str, Transport, &str); 2] =
    [("tcp", Transport::Tcp, "One connection"), ("udp", Transport::Udp, "A datagram each")];

/// Round trips of ICMP echoes; the other side needs no receiver
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire traffic send ping 192.0.2.7
  longwire traffic send ping 192.0.2.7 --count 1000 --interval 1ms --json")]
struct Echo {
    #[command(flatten)]
    to: Destination,

    /// Number of requests.
    #[arg(long, value_name = "N", default_value_t = 10)]
    count: u32,

    /// Time between requests, 10 us to 60 s; they overlap if it is less than the round trip.
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    interval: Nanos,

    /// Bytes after the echo header: 18 to 65507.
    #[arg(long, default_value = "56 B")]
    size: Bytes,

    /// Time to wait for replies after the last request.
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    timeout: Nanos,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        match self.what {
            Protocol::Udp(udp) => udp.run(),
            Protocol::Tcp(tcp) => tcp.run(),
            Protocol::Request(request) => request.run(),
            Protocol::Ping(echo) => echo.run(),
        }
    }
}

impl Udp {
    fn run(self) -> anyhow::Result<Outcome> {
        let pace = match (self.rate, self.packets_per_second) {
            (_, Some(packets)) => SendingRate::PacketsPerSecond(packets),
            (Some(Rate::UNLIMITED), _) => SendingRate::Unlimited,
            (rate, None) => {
                let rate = rate.unwrap_or(Rate(1_000_000));
                ensure!(rate != Rate::STALLED, "--rate: nothing is sent at {rate}; give a rate above 0");
                SendingRate::BitsPerSecond(rate.0)
            }
        };
        let until = self.until.get();
        let (layer, payload) = (self.layer, size(self.size));
        let stream = UdpStream { pace, layer, payload, until, quiet_ns: self.wait.0 };
        let mut recording = self.record.as_deref().map(Recording::create).transpose()?;
        self.to.measure("udp", until, |receiver, step| {
            let sent = udp::send_recorded(receiver, &stream, recording.as_mut(), step)?;
            if let Some(recording) = &mut recording {
                recording.flush()?;
            }
            Ok(sent.rows())
        })
    }
}

impl Tcp {
    fn run(self) -> anyhow::Result<Outcome> {
        let until = match self.bytes {
            Some(bytes) => StopAfter::Count(bytes.0),
            None => for_time(self.time),
        };
        let bulk = Bulk { streams: self.parallel, congestion: self.congestion.clone(), ..Bulk::new(until) };
        self.to.measure("tcp", until, |receiver, step| Ok(bulk::send(receiver, &bulk, step)?.rows()))
    }
}

impl Request {
    fn run(self) -> anyhow::Result<Outcome> {
        let until = self.until.get();
        let requests = Requests {
            request: size(self.request),
            response: size(self.response),
            outstanding: self.parallel,
            timeout_ns: self.timeout.0,
            ..Requests::new(self.over, until)
        };
        self.to
            .measure("request", until, |receiver, step| Ok(request::send(receiver, &requests, step)?.rows()))
    }
}

impl Echo {
    fn run(self) -> anyhow::Result<Outcome> {
        let until = StopAfter::DurationNs(self.interval.0.saturating_mul(u64::from(self.count)));
        let ping = |target| Ping {
            target,
            count: self.count,
            interval_ns: self.interval.0,
            payload: size(self.size),
            timeout_ns: self.timeout.0,
        };
        self.to.measure("ping", until, |receiver, step| {
            Ok(ping::ping(&ping(receiver.address.ip()), step)?.rows())
        })
    }
}

impl StopCondition {
    fn get(&self) -> StopAfter {
        self.count.map_or_else(|| for_time(self.time), StopAfter::Count)
    }
}

impl Destination {
    /// Resolves the host, measures, and prints the rows.
    fn measure(
        &self,
        what: &str,
        how_long: StopAfter,
        send: impl FnOnce(&Receiver, OnProgress<'_>) -> anyhow::Result<Vec<Row>>,
    ) -> anyhow::Result<Outcome> {
        let receiver = Receiver::at(self.address()?);
        let stop = stop_flag()?;
        let expected = match how_long {
            StopAfter::DurationNs(time) => Some(Duration::from_nanos(time)),
            StopAfter::Count(_) => None,
        };
        let progress = Progress::start(format!("{what} to {}", receiver.address.ip()), expected);
        let rows = send(&receiver, &mut until(&stop));
        drop(progress);
        let report = Report::new(format!("traffic send {what}"));
        let report = report.with("to", receiver.address.ip().to_string()).with_rows(rows?);
        print_report(&report, self.json.on)
    }

    fn address(&self) -> anyhow::Result<SocketAddr> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found: Vec<_> = found
            .with_context(|| {
                format!("can't find the host \"{}\"; give its address, or check the name", self.host)
            })?
            .collect();
        let wanted = |a: &&SocketAddr| (!self.ipv4 || a.is_ipv4()) && (!self.ipv6 || a.is_ipv6());
        let family = if self.ipv6 { "IPv6" } else { "IPv4" };
        found.iter().find(wanted).copied().with_context(|| {
            format!("the host \"{}\" has no {family} address; leave -4 and -6 out", self.host)
        })
    }
}

fn for_time(time: Option<Nanos>) -> StopAfter {
    StopAfter::DurationNs(time.unwrap_or(Nanos::from_secs(10)).0)
}

/// Converts a size to a length; a size that is too large exceeds every range.
fn size(bytes: Bytes) -> usize {
    usize::try_from(bytes.0).unwrap_or(usize::MAX)
}
