//! `longwire proxy`

use super::exec::link::{LinkArgs, round_trip};
use crate::Outcome;
use crate::foreground::Foreground;
use anyhow::{Context, ensure};
use longwire_drivers::HostDriver;
use longwire_lab::{
    Dial, ExecNet, ExecSpec, FarEnd, Outside, PortRelay, abilities, enter_user_namespace, may_make_hosts,
    taps,
};
use longwire_report::shown;
use longwire_run::real_run::RealRun;
use longwire_run::test_hosts::{TestHosts, sweep, wiring};
use longwire_rundir::StopSignals;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

/// Put a link in front of a TCP or UDP service
///
/// Clients connect to --listen instead of the service, and their packets cross the link between two ends made
/// for it, with a relay at each. Programs need no root and only another address. Up is towards the service,
/// down is towards the clients.
///
/// Without root the ends are made in a user namespace, if the system allows that.
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

    #[command(flatten)]
    link: Box<LinkArgs>,

    #[command(flatten)]
    foreground: Foreground,
}

/// Longest IP packet between the two ends.
const MTU: u32 = 1500;

/// A socket that clients reach.
enum Entrance {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

impl Args {
    /// Relays between clients and the service, and reports on the link.
    ///
    /// # Errors
    /// If an address can't be used, or the system forbids it.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let plan = self.link.plan("proxy", self.foreground.seed, MTU)?;
        self.link.notes().iter().for_each(|note| self.foreground.say(&format!("--netem: {note}")));
        let service = self.service()?;
        // In this network, not in that of the ends.
        let entrance = Entrance::open(self.udp, self.listen)
            .with_context(|| format!("can't listen on {}", self.listen))?;
        let at = entrance.address()?;
        let (outside, driver) = ends()?;
        // From here on a signal while the ends are made leaves nothing behind.
        let signals = StopSignals::catch().context("catching signals")?;
        sweep()?;
        let instance = format!("proxy-{}", std::process::id());
        let spec = ExecSpec { far: FarEnd::Private, wiring: wiring(driver.wire), mtu: MTU };
        let hosts = TestHosts::Exec(ExecNet::create(&instance, &spec)?);
        let trip = round_trip(&plan);
        let run = self.foreground.start(instance, plan, (hosts, driver))?;
        let relays = relays(&run, entrance, outside, service)?;
        self.foreground
            .say(&format!("{at} leads to {service}, by packets that cross the link; Ctrl-C ends it"));
        if let Some(time) = trip {
            self.foreground.say(&format!("round trip will be about {}", shown::time(time.0 as f64)));
        }
        self.foreground.wait(&run, &signals, || None);
        drop(relays);
        let own = [("listen", at.to_string()), ("to", service.to_string())];
        self.foreground.report("proxy", run.stop(), &own)
    }

    /// The service's address: the first of its name.
    fn service(&self) -> anyhow::Result<SocketAddr> {
        let found = self.to.to_socket_addrs().with_context(|| {
            format!(
                "--to {} can't be found; write a name or an address and a port, such as 127.0.0.1:8000",
                self.to
            )
        })?;
        let service = found.into_iter().next().with_context(|| format!("--to {} has no address", self.to))?;
        ensure!(service.port() > 0, "--to {}: nobody listens at port 0", self.to);
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

/// The network from which the service is reached, and the wiring of the ends. Enters a user namespace if ends
/// are only possible there, which must happen before a second thread starts.
fn ends() -> anyhow::Result<(Dial, HostDriver)> {
    let mut outside = Dial::Here;
    if !may_make_hosts() {
        let can = abilities();
        ensure!(
            can.user_namespaces.available,
            "a link can't be made here: {}; {}",
            can.namespaces.reason,
            can.user_namespaces.reason
        );
        outside = Dial::Outside(Outside::stay().context("keeping this network's sockets at hand")?);
        enter_user_namespace()?;
    }
    Ok((outside, if taps().available { HostDriver::TAP } else { HostDriver::VETH }))
}

/// The relays: from the clients to the near end and across the link, and from the far end to the service.
fn relays(
    run: &RealRun,
    entrance: Entrance,
    outside: Dial,
    service: SocketAddr,
) -> anyhow::Result<[PortRelay; 2]> {
    let Some(TestHosts::Exec(net)) = run.hosts() else { anyhow::bail!("the two ends are not up") };
    let across = SocketAddr::new(net.far_address(), service.port());
    let is_udp = matches!(entrance, Entrance::Udp(_));
    let exit = net.far().run(|| Entrance::open(is_udp, across))?.context("listening at the far end")?;
    let near = Dial::inside(net.near().namespace())?;
    Ok([exit.relay(outside, service)?, entrance.relay(near, across)?])
}

impl Entrance {
    fn open(udp: bool, at: SocketAddr) -> std::io::Result<Self> {
        if udp { UdpSocket::bind(at).map(Self::Udp) } else { TcpListener::bind(at).map(Self::Tcp) }
    }

    fn address(&self) -> std::io::Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Udp(socket) => socket.local_addr(),
        }
    }

    fn relay(self, dial: Dial, to: SocketAddr) -> std::io::Result<PortRelay> {
        match self {
            Self::Tcp(listener) => PortRelay::tcp(listener, Arc::new(dial), vec![to]),
            Self::Udp(socket) => PortRelay::udp(socket, Arc::new(dial), to),
        }
    }
}
