//! `longwire quic-interop`

use crate::foreground::{Foreground, Wiring};
use crate::{Outcome, outcome};
use anyhow::{Context, ensure};
use longwire_block::Port;
use longwire_clock::monotonic;
use longwire_import::{InteropLink, LinkText, Rebinding, quic_interop};
use longwire_lab::{CommandRole, Mac, keep_for};
use longwire_port::interface::Interface;
use longwire_run::open_ports::OwnPorts;
use longwire_run::stack::{Stack, StackPort, Wire, Wires};
use longwire_rundir::StopSignals;
use longwire_scenario::{Plan, digits, quoted};
use longwire_units::Nanos;
use std::fmt::Write;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

/// Stand in for the network simulator of quic-interop-runner
///
/// Takes its scenarios, and puts their link between the interfaces of the client's and of the server's
/// network, whose addresses are those of the runner. packaging/quic-interop makes a container of it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire quic-interop run 'simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25'
  longwire quic-interop run --print 'blackhole --delay=15ms --bandwidth=10Mbps --queue=25 --on=5s --off=2s'
  longwire quic-interop wait server:443 --for 10s")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Carry packets between two interfaces over the link of a scenario
    ///
    /// The interfaces have no addresses of the kernel: Longwire has a router at each, for 193.167.0.0/24,
    /// fd00:cafe:cafe::/64 and 193.167.100.0/24, fd00:cafe:cafe:100::/64, and the link between both. While it
    /// carries packets, it listens on a TCP port, on which clients of the runner wait for the simulator.
    #[command(after_long_help = "\
Examples:
  longwire quic-interop run 'simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25'
  longwire quic-interop run --left eth0 --right eth1 --for 60s 'droplist --delay=15ms --bandwidth=10Mbps \
--queue=25 --drops_to_server=2,3'")]
    Run(Box<RunArgs>),
    /// Wait until a QUIC server answers
    ///
    /// Sends packets of a version that no server has, until one is answered with the versions that it has
    /// (RFC 9000, section 6). Exit status 1 if none is in time.
    #[command(after_long_help = "\
Examples:
  longwire quic-interop wait server:443 --for 10s")]
    Wait(WaitArgs),
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The interface of the client's network.
    #[arg(long, value_name = "INTERFACE", default_value = "eth0")]
    left: String,

    /// The interface of the server's network.
    #[arg(long, value_name = "INTERFACE", default_value = "eth1")]
    right: String,

    /// The TCP port on which clients wait.
    #[arg(long, value_name = "PORT", default_value_t = 57_832)]
    listen: u16,

    /// Print the scenario as Longwire's, and end.
    #[arg(long)]
    print: bool,

    #[command(flatten)]
    foreground: Foreground,

    /// The scenario: its name and its options, as one argument or as several, behind all others.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    scenario: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct WaitArgs {
    /// The server: an address or a name, and a UDP port.
    #[arg(value_name = "HOST:PORT")]
    server: String,

    /// How long to wait.
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    time: Nanos,
}

/// A side of the simulator: a router with an interface, at the end of the link.
struct Side {
    name: &'static str,
    /// The last octets of its network, after 193.167 and fd00:cafe:cafe.
    third_octet: u8,
    subnet: &'static str,
    /// Its host at the link, in 193.167.50.0/30 and fd00:cafe:cafe:50::/64, and the one opposite.
    hosts: [u8; 2],
    /// Its end of the TCP cross traffic.
    tcp: TcpEnd,
}

/// An end of the TCP cross traffic: a port of this process, behind a link.
struct TcpEnd {
    name: &'static str,
    /// The network 193.167.N.0/30, in which the router is 1.
    third_octet: u8,
}

const SINK: TcpEnd = TcpEnd { name: "tcp-sink", third_octet: 51 };
const SOURCE: TcpEnd = TcpEnd { name: "tcp-source", third_octet: 49 };
const LEFT: Side = Side { name: "left", third_octet: 0, subnet: "0", hosts: [1, 2], tcp: SINK };
const RIGHT: Side = Side { name: "right", third_octet: 100, subnet: "100", hosts: [2, 1], tcp: SOURCE };
/// The client.
const CLIENT: Ipv4Addr = Ipv4Addr::new(193, 167, 0, 100);
/// Addresses behind the client's that it can get: the router has one further on.
const OTHER_ADDRESSES: u32 = 150;

impl TcpEnd {
    const fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(193, 167, self.third_octet, 2)
    }

    /// Its hardware address, and that of the router's port.
    const fn macs(&self) -> [[u8; 6]; 2] {
        [[2, 0, 0, 0, self.third_octet, 2], [2, 0, 0, 0, self.third_octet, 1]]
    }

    fn open(&self) -> anyhow::Result<(Box<dyn Port>, Wire)> {
        let [own, router] = self.macs();
        let (port, wire) = StackPort::pair(self.name, own, router).context("making the ends of TCP")?;
        Ok((Box::new(port), wire))
    }
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// A mistake in the scenario, an interface that can't be opened, a name that has no address.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.action {
            Action::Run(args) => args.run(),
            Action::Wait(args) => args.run(),
        }
    }
}

impl RunArgs {
    fn run(self) -> anyhow::Result<Outcome> {
        let link = quic_interop(&self.scenario.join(" "))?;
        if self.print {
            let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
            outcome::print(self.text(&link, macs, Nanos::ZERO).trim_end())?;
            return Ok(Outcome::Well);
        }
        link.notes.iter().for_each(|note| self.foreground.say(&note.to_string()));
        let macs = [mac(&self.left)?, mac(&self.right)?];
        let plan = longwire_scenario::parse("quic-interop", &self.text(&link, macs, monotonic()))?;
        keep_for(CommandRole::Carries).context("giving up what root need not keep")?;
        let signals = StopSignals::catch().context("catching signals")?;
        self.carry(plan, link.has_tcp, &signals)
    }

    fn carry(&self, plan: Plan, has_tcp: bool, signals: &StopSignals) -> anyhow::Result<Outcome> {
        let name = format!("quic-interop-{}", std::process::id());
        let (mut ports, mut wires) = (OwnPorts::default(), None);
        if has_tcp {
            let ((source, near), (sink, far)) = (SOURCE.open()?, SINK.open()?);
            ports.0 = vec![source, sink];
            wires = Some(Wires { near, far });
        }
        let run = self.foreground.start(name, plan, Wiring::Ports(ports))?;
        let addresses = [SOURCE.address(), SINK.address()];
        let tcp = wires.map(|wires| Stack::bulk(wires, addresses)).transpose().context("starting TCP")?;
        // Nobody is accepted: for those who wait it is enough to be connected.
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.listen))
            .with_context(|| format!("can't listen on TCP port {}", self.listen))?;
        self.foreground.say(&format!("carrying packets between {} and {}", self.left, self.right));
        self.foreground.wait(&run, signals, || None);
        drop((listener, tcp));
        self.foreground.report("quic-interop", run.stop(), &[("scenario", self.scenario.join(" "))])
    }

    /// The scenario: the interfaces, which have these hardware addresses, and what lies between. It begins at
    /// the time `start`.
    fn text(&self, link: &InteropLink, macs: [[u8; 6]; 2], start: Nanos) -> String {
        let scenario = self.scenario.join(" ");
        let mut text =
            format!("# {}\nseed = {}\n", longwire_report::printable(&scenario), self.foreground.seed);
        for (side, interface, mac) in [(&LEFT, &self.left, macs[0]), (&RIGHT, &self.right, macs[1])] {
            side.push_ports(&mut text, interface, mac, link.has_tcp);
        }
        for (name, from, to, keys) in [
            ("to-server", LEFT.name, RIGHT.name, &link.to_server),
            ("to-client", RIGHT.name, LEFT.name, &link.to_client),
        ] {
            let ends = format!("from = \"{from}-link\"\nto = \"{to}-link\"");
            let _ = write!(text, "\n[[link]]\nname = \"{name}\"\n{ends}\n");
            push_keys(&mut text, keys);
        }
        if let Some((time, keys)) = &link.later {
            let _ = write!(text, "\n[[at]]\ntime = \"{time}\"\nlink = \"to-client\"\n");
            push_keys(&mut text, keys);
        }
        if let Some(rebinding) = &link.rebinding {
            for (side, at_client) in [(&LEFT, 1), (&RIGHT, 0)] {
                let state = state(rebinding, start, at_client);
                let name = side.name;
                let _ = write!(
                    text,
                    "\n[[forwarder]]\nrouter = \"{name}-router\"\nprogram = \"rebind\"\ndata = \"{state}\"\n"
                );
            }
        }
        text
    }
}

impl Side {
    /// Its interface, its router, and its end of the TCP cross traffic.
    fn push_ports(&self, text: &mut String, interface: &str, mac: [u8; 6], has_tcp: bool) {
        let Self { name, third_octet, subnet, hosts: [own, other], tcp } = self;
        let interface = quoted(interface);
        let mac = Mac(mac);
        let _ = write!(
            text,
            "
[[port]]
name = \"{name}\"
driver = \"af_packet\"
interface = {interface}

[[router]]
name = \"{name}-router\"
routes = [
    {{ to = \"default\", via = \"193.167.50.{other}\" }},
    {{ to = \"default\", via = \"fd00:cafe:cafe:50::{other}\" }},
    # The kernel has this address, at which clients wait.
    {{ to = \"193.167.{third_octet}.2/32\", discard = true }},
]
ports = [
    {{ port = \"{name}\", mac = \"{mac}\", addresses = [\"193.167.{third_octet}.254/24\", \
             \"fd00:cafe:cafe:{subnet}::2/64\"] }},
    {{ port = \"{name}-link\", addresses = [\"193.167.50.{own}/30\", \"fd00:cafe:cafe:50::{own}/64\"] }},
"
        );
        if !has_tcp {
            text.push_str("]\n");
            return;
        }
        let (end, octet, address, [own, router]) =
            (tcp.name, tcp.third_octet, tcp.address(), tcp.macs().map(Mac));
        let _ = write!(
            text,
            "    {{ port = \"{name}-tcp\", mac = \"{router}\", addresses = \"193.167.{octet}.1/30\" }},
]
neighbours = [{{ address = \"{address}\", mac = \"{own}\" }}]

[[port]]
name = \"{end}\"
driver = \"memory\"

[[link]]
name = \"{end}\"
between = [\"{end}\", \"{name}-tcp\"]
rate = \"100 Mbit/s\"
delay = \"1 ms\"
"
        );
    }
}

/// The state of the program `rebind`, as its source describes it.
fn state(rebinding: &Rebinding, start: Nanos, at_client: u32) -> String {
    let times = [start + rebinding.first, rebinding.again].map(|time| time.0.to_le_bytes());
    let addresses = if rebinding.addresses { OTHER_ADDRESSES } else { 0 };
    let rest = [CLIENT.octets(), addresses.to_le_bytes(), at_client.to_le_bytes(), [0; 4]];
    digits(&[times.as_flattened(), rest.as_flattened()].concat())
}

fn push_keys(text: &mut String, keys: &LinkText) {
    keys.settings.iter().for_each(|(key, value)| {
        let _ = writeln!(text, "{key} = {value}");
    });
}

fn mac(interface: &str) -> anyhow::Result<[u8; 6]> {
    Ok(Interface::open(interface)?.mac()?)
}

/// Time between two packets of a wait.
const AGAIN: Duration = Duration::from_millis(500);

impl WaitArgs {
    fn run(self) -> anyhow::Result<Outcome> {
        let server = &self.server;
        let mut addresses =
            server.to_socket_addrs().with_context(|| format!("{server} can't be found; write HOST:PORT"))?;
        let address = addresses.next().with_context(|| format!("{server} has no address"))?;
        let own = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(own).context("can't open a UDP socket")?;
        socket.connect(address).with_context(|| format!("there is no way to {address}"))?;
        ensure!(self.time > Nanos::ZERO, "--for 0s is no time to wait; write --for 10s");
        let end = Instant::now() + self.time.as_duration();
        let mut buffer = [0; 2048];
        while Instant::now() < end {
            // A refusal (nobody listens yet) is reported by the next call, too; it only means to go on.
            let _ = socket.send(&unknown_version());
            let next = (Instant::now() + AGAIN).min(end);
            while let Some(left) = next.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            {
                socket.set_read_timeout(Some(left)).context("can't wait for an answer")?;
                match socket.recv(&mut buffer) {
                    Ok(length) if is_negotiation(&buffer[..length]) => {
                        outcome::note(&format!("{server} answers"));
                        return Ok(Outcome::Well);
                    }
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                        std::thread::park_timeout(left);
                    }
                    _ => {}
                }
            }
        }
        outcome::note(&format!("{server} does not answer within {}", self.time));
        Ok(Outcome::Failed)
    }
}

/// A packet with a long header of a version that is reserved for this (RFC 9000, section 15), two empty
/// connection IDs, and the least length of a first packet (section 14.1).
fn unknown_version() -> [u8; 1200] {
    let mut packet = [0; 1200];
    packet[..7].copy_from_slice(&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 0, 0]);
    packet
}

/// Whether it is a Version Negotiation packet (RFC 8999, section 6): a long header with version 0.
fn is_negotiation(packet: &[u8]) -> bool {
    matches!(packet, [first, 0, 0, 0, 0, ..] if first & 0x80 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn args(scenario: &str) -> RunArgs {
        let words = ["longwire", "quic-interop", "run", "--left", "veth0", scenario];
        match crate::Cli::try_parse_from(words).unwrap().command {
            crate::commands::Command::QuicInterop(Args { action: Action::Run(args) }) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_scenario_is_a_plan() {
        let usual = "--delay=15ms --bandwidth=10Mbps --queue=25";
        for scenario in [
            format!("simple-p2p {usual}"),
            format!("blackhole {usual} --on=5s --off=2s"),
            format!("drop-rate {usual} --rate_to_server=30 --rate_to_client=30 --burst_to_server=3"),
            format!("corrupt-rate {usual} --rate_to_server=2 --rate_to_client=2"),
            format!("droplist {usual} --drops_to_server=2,3,4"),
            format!("udp-cross-traffic {usual} --crossdatarate=1Mbps"),
            format!("tcp-cross-traffic {usual}"),
            format!("rebind {usual} --first-rebind=1s --rebind-freq=5s --rebind-addr"),
        ] {
            let args = args(&scenario);
            let link = quic_interop(&scenario).unwrap();
            let text = args.text(&link, [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]], Nanos::ZERO);
            let plan = longwire_scenario::plan_of(&text);
            let links = if link.has_tcp { 6 } else { 2 };
            assert_eq!((plan.links.len(), plan.routers.len()), (links, 2), "{text}");
            assert!(text.contains("interface = \"veth0\""), "{text}");
        }
    }

    #[test]
    fn only_a_version_negotiation_is_an_answer() {
        let packet = unknown_version();
        assert!(!is_negotiation(&packet) && packet.len() == 1200);
        assert!(is_negotiation(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
        assert!(!is_negotiation(&[0x40, 0, 0, 0, 0]) && !is_negotiation(&[0x80, 0, 0, 0]));
    }
}
