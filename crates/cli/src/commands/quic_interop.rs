//! `longwire quic-interop`

use crate::foreground::{Foreground, Wiring};
use crate::{Outcome, outcome};
use anyhow::{Context, ensure};
use longwire_import::{InteropLink, LinkText, quic_interop};
use longwire_lab::{CommandRole, Mac, keep_for};
use longwire_port::interface::Interface;
use longwire_run::open_ports::OwnPorts;
use longwire_rundir::StopSignals;
use longwire_scenario::Plan;
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
    /// The interfaces have no addresses of the kernel: Longwire is the router between 193.167.0.0/24,
    /// fd00:cafe:cafe::/64 and 193.167.100.0/24, fd00:cafe:cafe:100::/64. While it carries packets, it
    /// listens on a TCP port, on which clients of the runner wait for the simulator.
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

/// A side of the simulator: the last octets of its networks, after 193.167 and fd00:cafe:cafe.
struct Side {
    name: &'static str,
    third_octet: u8,
    subnet: &'static str,
}

const LEFT: Side = Side { name: "left", third_octet: 0, subnet: "0" };
const RIGHT: Side = Side { name: "right", third_octet: 100, subnet: "100" };

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
            outcome::print(self.text(&link, [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]]).trim_end())?;
            return Ok(Outcome::Well);
        }
        link.notes.iter().for_each(|note| self.foreground.say(&note.to_string()));
        let macs = [mac(&self.left)?, mac(&self.right)?];
        let plan = longwire_scenario::parse("quic-interop", &self.text(&link, macs))?;
        keep_for(CommandRole::Carries).context("giving up what root need not keep")?;
        let signals = StopSignals::catch().context("catching signals")?;
        self.carry(plan, &signals)
    }

    fn carry(&self, plan: Plan, signals: &StopSignals) -> anyhow::Result<Outcome> {
        let name = format!("quic-interop-{}", std::process::id());
        let run = self.foreground.start(name, plan, Wiring::Ports(OwnPorts::default()))?;
        // Nobody is accepted: for those who wait it is enough to be connected.
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.listen))
            .with_context(|| format!("can't listen on TCP port {}", self.listen))?;
        self.foreground.say(&format!("carrying packets between {} and {}", self.left, self.right));
        self.foreground.wait(&run, signals, || None);
        drop(listener);
        self.foreground.report("quic-interop", run.stop(), &[("scenario", self.scenario.join(" "))])
    }

    /// The scenario: a router with both interfaces, which have these hardware addresses.
    fn text(&self, link: &InteropLink, macs: [[u8; 6]; 2]) -> String {
        let mut text = format!(
            "# {}\nseed = {}\n",
            longwire_report::printable(&self.scenario.join(" ")),
            self.foreground.seed
        );
        for (side, interface) in [(&LEFT, &self.left), (&RIGHT, &self.right)] {
            let name = side.name;
            let interface = toml_text(interface);
            let _ = write!(
                text,
                "\n[[port]]\nname = \"{name}\"\ndriver = \"af_packet\"\ninterface = {interface}\n"
            );
        }
        text.push_str("\n[[router]]\nname = \"sim\"\nports = [\n");
        for (side, mac) in [(&LEFT, macs[0]), (&RIGHT, macs[1])] {
            let Side { name, third_octet, subnet } = side;
            // The kernel has 193.167.N.2, at which clients wait.
            let _ = writeln!(
                text,
                "    {{ port = \"{name}\", mac = \"{}\", addresses = [\"193.167.{third_octet}.254/24\", \
                 \"fd00:cafe:cafe:{subnet}::2/64\"] }},",
                Mac(mac)
            );
        }
        text.push_str("]\nroutes = [\n");
        for Side { third_octet, .. } in [LEFT, RIGHT] {
            let _ = writeln!(text, "    {{ to = \"193.167.{third_octet}.2/32\", discard = true }},");
        }
        text.push_str("]\n");
        for (name, ends, keys) in [
            ("to-server", ("left", "right"), &link.to_server),
            ("to-client", ("right", "left"), &link.to_client),
        ] {
            let (from, to) = ends;
            let _ = write!(text, "\n[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n");
            push_keys(&mut text, keys);
        }
        if let Some((time, keys)) = &link.later {
            let _ = write!(text, "\n[[at]]\ntime = \"{time}\"\nlink = \"to-client\"\n");
            push_keys(&mut text, keys);
        }
        text
    }
}

fn push_keys(text: &mut String, keys: &LinkText) {
    keys.settings.iter().for_each(|(key, value)| {
        let _ = writeln!(text, "{key} = {value}");
    });
}

/// A text in quotation marks: JSON's are TOML's, too.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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
        ] {
            let args = args(&scenario);
            let link = quic_interop(&scenario).unwrap();
            let text = args.text(&link, [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]]);
            let plan = longwire_scenario::plan_of(&text);
            assert_eq!((plan.links.len(), plan.routers.len()), (2, 1), "{text}");
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
