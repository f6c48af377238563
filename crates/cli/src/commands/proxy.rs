//! `longwire proxy`

use super::exec::link::{LinkArgs, LinkEnds};
use crate::Outcome;
use crate::foreground::{Foreground, Wiring};
use anyhow::{Context, bail, ensure};
use longwire_drivers::HostDriver;
use longwire_lab::{
    CommandRole, ExecNet, ExecSpec, FAR, FarEnd, NEAR, OutsideSockets, PortRelay, SocketNetwork, abilities,
    enter_user_namespace, keep_for, may_make_hosts,
};
use longwire_run::entrance::{Entrance, is_at};
use longwire_run::open_ports::OwnPorts;
use longwire_run::outlook::outlook;
use longwire_run::real_run::RealRun;
use longwire_run::stack::{Stack, StackPort, Wires};
use longwire_run::test_hosts::{TestHosts, sweep, usual_driver, wiring};
use longwire_rundir::StopSignals;
use longwire_scenario::Plan;
use std::net::{SocketAddr, ToSocketAddrs};

/// Put a link in front of a TCP or UDP service
///
/// Clients connect to --listen instead of the service, and their packets cross the link between two ends made
/// for it, with a relay at each. Programs need no root and only another address. Up is towards the service,
/// down is towards the clients.
///
/// The packets are the kernel's, of two ends in namespaces: without root in a user namespace, if the system
/// allows that. Where it allows none, or with --stack process, they are of a TCP/IP in this process.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire proxy --listen 127.0.0.1:9000 --to 127.0.0.1:8000 --profile 3g
  longwire proxy --listen 9000 --to db.example.org:5432 --delay 40ms --rate 10mbit
  longwire proxy --udp --listen 5300 --to 192.0.2.53:53 --delay 80ms --loss 5%
  longwire proxy --listen 9000 --to localhost:8000 --delay 20ms --for 30s --json

While it runs, `longwire ctl set up delay=80ms` changes the link, and `longwire ctl stats` shows it.")]
pub struct Args {
    /// Where clients connect: an address and a port, or a port of the loopback.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    listen: SocketAddr,

    /// The service: an address or a name, and a port.
    #[arg(long, value_name = "HOST:PORT")]
    to: String,

    /// Relay UDP instead of TCP.
    #[arg(long)]
    udp: bool,

    /// Whose TCP/IP makes the packets: the kernel's, in namespaces, or one in this process, which needs
    /// nothing of the system. Default: the kernel's, where namespaces are allowed.
    #[arg(long, value_name = "WHOSE")]
    stack: Option<StackKind>,

    #[command(flatten)]
    link: Box<LinkArgs>,

    #[command(flatten)]
    foreground: Foreground,
}

/// Whose TCP/IP makes the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StackKind {
    Kernel,
    Process,
}

/// Longest IP packet between the two ends.
const MTU: u32 = 1500;

/// One at each end in namespaces, or one for both ends in this process.
type Relays = (Vec<PortRelay>, Option<Stack>);

impl Args {
    /// Relays between clients and the service, and reports on the link.
    ///
    /// # Errors
    /// If an address can't be used, or the system forbids it.
    pub fn run(self) -> anyhow::Result<Outcome> {
        // What is wrong with the options is said before anything is made.
        let plan = self.link.plan("proxy", self.foreground.seed, LinkEnds::Process)?;
        self.link.notes().iter().for_each(|note| self.foreground.say(&format!("--netem: {note}")));
        let service = self.service()?;
        // In this network, not in that of the ends.
        let entrance = Entrance::open(self.udp, self.listen)
            .with_context(|| format!("can't listen on {}", self.listen))?;
        let at = entrance.address()?;
        if let Some(to) = service.iter().find(|to| is_at(at, **to)) {
            bail!("--to {to} is where the proxy itself listens: connections would go round in it");
        }
        let means = self.means()?;
        keep_for(CommandRole::Carries).context("giving up what root need not keep")?;
        // From here on a signal while the ends are made leaves nothing behind.
        let signals = StopSignals::catch().context("catching signals")?;
        let outlook = outlook(&plan, "round trip will be");
        let (whose, packets, (run, relays)) = match means {
            Some(means) => ("kernel", "the kernel's packets", self.in_namespaces(entrance, means, &service)?),
            None => ("process", "packets of this process", self.in_process(plan, entrance, &service)?),
        };
        let to = service.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        self.foreground.say(&format!("{at} leads to {to}, by {packets} that cross the link; Ctrl-C ends it"));
        outlook.iter().for_each(|what| self.foreground.say(what));
        let over = self.foreground.wait(&run, &signals, || None);
        drop(relays);
        let own = [("listen", at.to_string()), ("to", to), ("stack", whose.to_owned())];
        self.foreground.report("proxy", run.stop(), &own, over)
    }

    /// From where the service is reached and the wiring, if the two ends are made in namespaces. Enters a
    /// user namespace if those are only possible there, which must happen before a second thread starts.
    fn means(&self) -> anyhow::Result<Option<(SocketNetwork, HostDriver)>> {
        if self.stack == Some(StackKind::Process) {
            return Ok(None);
        }
        if may_make_hosts() {
            return Ok(Some((SocketNetwork::Here, usual_driver())));
        }
        let can = abilities();
        if can.user_namespaces.available {
            let outside = OutsideSockets::stay().context("keeping this network's sockets at hand")?;
            enter_user_namespace()?;
            return Ok(Some((SocketNetwork::Outside(outside), usual_driver())));
        }
        let reason = format!("{}; {}", can.namespaces.reason, can.user_namespaces.reason);
        ensure!(
            self.stack.is_none(),
            "the kernel's TCP/IP needs namespaces: {reason}; --stack process needs none"
        );
        self.foreground.say(&format!("TCP/IP is this process's own, as there are no namespaces: {reason}"));
        Ok(None)
    }

    /// Two namespaces, with a relay in each.
    fn in_namespaces(
        &self,
        entrance: Entrance,
        (outside, driver): (SocketNetwork, HostDriver),
        service: &[SocketAddr],
    ) -> anyhow::Result<(RealRun, Relays)> {
        let plan = self.link.plan("proxy", self.foreground.seed, LinkEnds::Hosts { mtu: MTU })?;
        sweep()?;
        let spec = ExecSpec { far: FarEnd::Private, wiring: wiring(driver.wire), mtu: MTU };
        let hosts = TestHosts::Exec(ExecNet::create(&instance(), &spec)?);
        let run = self.foreground.start(instance(), plan, Wiring::Hosts(Box::new(hosts), driver))?;
        let relays = entrance.relays(&run, outside, service)?;
        Ok((run, (relays.into(), None)))
    }

    /// Two ends in this process.
    fn in_process(
        &self,
        plan: Plan,
        entrance: Entrance,
        service: &[SocketAddr],
    ) -> anyhow::Result<(RealRun, Relays)> {
        let [near, far] = [0, 1].map(|place: usize| plan.ports[place].mac.0);
        let made =
            StackPort::pair(NEAR, near, far).and_then(|one| Ok((one, StackPort::pair(FAR, far, near)?)));
        let ((near_port, near), (far_port, far)) = made.context("making the two ends")?;
        let ports = OwnPorts(vec![Box::new(near_port), Box::new(far_port)]);
        let run = self.foreground.start(instance(), plan, Wiring::Ports(ports))?;
        let wires = Wires { near, far };
        let stack = match entrance {
            Entrance::Tcp(listener) => Stack::tcp(wires, listener, service.to_vec()),
            Entrance::Udp(socket) => Stack::udp(wires, socket, service[0]),
        };
        Ok((run, (Vec::new(), Some(stack?))))
    }

    /// The service's addresses, at least one: for TCP all of its name, the first that accepts is used. Nobody
    /// says which of them accepts datagrams: they go to one, by IPv4 if there is that.
    fn service(&self) -> anyhow::Result<Vec<SocketAddr>> {
        let found = self.to.to_socket_addrs().with_context(|| {
            format!(
                "--to {} can't be found; write a name or an address and a port, such as 127.0.0.1:8000",
                self.to
            )
        })?;
        let mut service: Vec<_> = found.collect();
        service.dedup();
        ensure!(!service.is_empty(), "--to {} has no address", self.to);
        ensure!(service[0].port() > 0, "--to {}: nobody listens at port 0", self.to);
        if self.udp {
            service.sort_by_key(SocketAddr::is_ipv6);
            service.truncate(1);
        }
        Ok(service)
    }
}

/// Parses an address; a port alone is one of the loopback.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse()
        .map_err(|_| format!("\"{text}\" is not an address; write 127.0.0.1:9000, [::1]:9000 or 9000"))
}

/// The name under which `longwire ctl` finds it.
fn instance() -> String {
    format!("proxy-{}", std::process::id())
}
