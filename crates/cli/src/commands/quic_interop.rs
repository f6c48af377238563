//! `longwire quic-interop`

use crate::foreground::{Foreground, Wiring};
use crate::{Outcome, outcome};
use anyhow::{Context, ensure};
use longwire_block::Port;
use longwire_clock::monotonic;
use longwire_import::{InteropNetwork, TcpEnd, quic_interop};
use longwire_lab::traffic::quic::wait_for_server;
use longwire_lab::{CommandRole, keep_for};
use longwire_port::interface::Interface;
use longwire_run::open_ports::OwnPorts;
use longwire_run::stack::{Stack, StackPort, Wire, Wires};
use longwire_rundir::StopSignals;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use std::net::{Ipv4Addr, TcpListener, ToSocketAddrs};

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
    Wait {
        /// The server: an address or a name, and a UDP port.
        #[arg(value_name = "HOST:PORT")]
        server: String,

        /// How long to wait.
        #[arg(long = "for", value_name = "TIME", default_value = "10s")]
        time: Nanos,
    },
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

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// A mistake in the scenario, an interface that can't be opened, a name that has no address.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.action {
            Action::Run(args) => args.run(),
            Action::Wait { server, time } => wait(&server, time),
        }
    }
}

impl RunArgs {
    fn run(self) -> anyhow::Result<Outcome> {
        let link = quic_interop(&self.scenario.join(" "))?;
        if self.print {
            let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
            return outcome::print(link.scenario(&self.network(macs, Nanos::ZERO)).trim_end());
        }
        link.notes.iter().for_each(|note| self.foreground.say(&note.to_string()));
        let macs = [mac(&self.left)?, mac(&self.right)?];
        let text = link.scenario(&self.network(macs, monotonic()));
        let plan = longwire_scenario::parse("quic-interop", &text)?;
        keep_for(CommandRole::Carries).context("giving up what root need not keep")?;
        let signals = StopSignals::catch().context("catching signals")?;
        self.carry(plan, link.has_tcp, &signals)
    }

    fn network(&self, macs: [[u8; 6]; 2], start: Nanos) -> InteropNetwork<'_> {
        let (interfaces, seed) = ([&*self.left, &*self.right], self.foreground.seed);
        InteropNetwork { interfaces, macs, seed, start }
    }

    fn carry(&self, plan: Plan, has_tcp: bool, signals: &StopSignals) -> anyhow::Result<Outcome> {
        let name = format!("quic-interop-{}", std::process::id());
        let (mut ports, mut wires) = (OwnPorts::default(), None);
        if has_tcp {
            let ((source, near), (sink, far)) = (open(&TcpEnd::SOURCE)?, open(&TcpEnd::SINK)?);
            ports.0 = vec![source, sink];
            wires = Some(Wires { near, far });
        }
        let run = self.foreground.start(name, plan, Wiring::Ports(ports))?;
        let addresses = [TcpEnd::SOURCE.address(), TcpEnd::SINK.address()];
        let tcp = wires.map(|wires| Stack::bulk(wires, addresses)).transpose().context("starting TCP")?;
        // Nobody is accepted: for those who wait it is enough to be connected.
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.listen))
            .with_context(|| format!("can't listen on TCP port {}", self.listen))?;
        self.foreground.say(&format!("carrying packets between {} and {}", self.left, self.right));
        let over = self.foreground.wait(&run, signals, || None);
        drop((listener, tcp));
        self.foreground.report("quic-interop", run.stop(), &[("scenario", self.scenario.join(" "))], over)
    }
}

/// The end of the TCP cross traffic in this process.
fn open(end: &TcpEnd) -> anyhow::Result<(Box<dyn Port>, Wire)> {
    let [own, router] = end.macs();
    let (port, wire) = StackPort::pair(end.name, own, router).context("making the ends of TCP")?;
    Ok((Box::new(port), wire))
}

fn mac(interface: &str) -> anyhow::Result<[u8; 6]> {
    Ok(Interface::open(interface)?.mac()?)
}

fn wait(server: &str, time: Nanos) -> anyhow::Result<Outcome> {
    let mut addresses =
        server.to_socket_addrs().with_context(|| format!("{server} can't be found; write HOST:PORT"))?;
    let address = addresses.next().with_context(|| format!("{server} has no address"))?;
    ensure!(time > Nanos::ZERO, "--for 0s is no time to wait; write --for 10s");
    let answers = wait_for_server(address, time.as_duration())?;
    outcome::note(&match answers {
        true => format!("{server} answers"),
        false => format!("{server} does not answer within {time}"),
    });
    Ok(Outcome::of(answers))
}
