//! Test hosts with links between them on real ports of one driver, and their engine.

use crate::{BenchError, Settings, joined, processors};
use longwire_block::Port;
use longwire_engine::{OwnLosses, Report, Run};
use longwire_lab::traffic::{self, Receiver, Server};
use longwire_lab::{Host, HostSpec, Lab, Network, Wiring, abilities};
use longwire_port::Interface;
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions};
use longwire_port::driver::af_xdp::{AfXdpPlan, AfXdpPort, FarEnd};
use longwire_port::driver::tap::{Tap, TapOptions};
use longwire_report::Row;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Names of hosts, in order.
pub const HOSTS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// A driver of real ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// TAP interfaces with the virtio header.
    Tap,
    /// Packet sockets on veth pairs, with the virtio header.
    AfPacket,
    /// AF_XDP on veth pairs.
    AfXdp,
}

impl Driver {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tap, Self::AfPacket, Self::AfXdp];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tap => "tap",
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
        }
    }
}

/// Checks that this process may create test hosts.
///
/// # Errors
/// The reason why not, as [`BenchError::NotHere`].
pub fn require_hosts(bench: &str) -> Result<(), BenchError> {
    let ability = abilities().namespaces;
    if ability.available {
        Ok(())
    } else {
        Err(BenchError::NotHere(format!("{bench} needs test hosts: {}", ability.reason)))
    }
}

/// The rows of a bench that measures each driver between test hosts.
///
/// # Errors
/// If test hosts can't be made, or the bench is stopped.
pub(crate) fn with_each_driver(
    bench: &str,
    measure: impl Fn(Driver) -> Result<Vec<Row>, BenchError>,
) -> Result<Vec<Row>, BenchError> {
    require_hosts(bench)?;
    let mut rows = Vec::new();
    for driver in Driver::ALL {
        match measure(driver) {
            Ok(more) => rows.extend(more),
            Err(BenchError::Stopped) => return Err(BenchError::Stopped),
            Err(error) => rows.push(Settings::could_not(&format!("{bench}: {}", driver.name()), &error)),
        }
    }
    Ok(rows)
}

/// Address of the n-th host, from 0.
pub fn address(place: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, place as u8 + 1)
}

/// Hosts, the first of [`HOSTS`], and the engine's ends of their wires. Removed when dropped.
pub struct BenchHosts {
    lab: Lab,
    driver: Driver,
    mtu: u32,
    packet: AfPacketOptions,
}

impl BenchHosts {
    /// Two hosts, `a` and `b`; without addresses they answer nothing.
    ///
    /// # Errors
    /// If something can't be created.
    pub fn new(driver: Driver, with_addresses: bool) -> Result<Self, BenchError> {
        Self::of(driver, 2, with_addresses)
    }

    /// This many hosts, at most as many as [`HOSTS`] has; without addresses they answer nothing.
    ///
    /// # Errors
    /// If something can't be created.
    pub fn of(driver: Driver, hosts: usize, with_addresses: bool) -> Result<Self, BenchError> {
        Self::with_specs(driver, hosts, |_, spec| {
            if !with_addresses {
                spec.addresses.clear();
            }
        })
    }

    /// This many hosts, at most as many as [`HOSTS`] has, with specifications modified by `change`.
    ///
    /// # Errors
    /// If something can't be created.
    pub fn with_specs(
        driver: Driver,
        hosts: usize,
        change: impl Fn(usize, &mut HostSpec),
    ) -> Result<Self, BenchError> {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let mtu = 1500;
        let mut specs = Vec::new();
        for (place, name) in HOSTS.into_iter().enumerate().take(hosts) {
            let own = Network { address: address(place).into(), prefix: 24 };
            let mut spec = HostSpec::new(name, own);
            spec.mtu = mtu;
            spec.wiring = match driver {
                Driver::Tap => Wiring::Tap,
                Driver::AfPacket => Wiring::Veth { offload: true },
                Driver::AfXdp => Wiring::Veth { offload: false },
            };
            change(place, &mut spec);
            specs.push(spec);
        }
        let lab = Lab::create(&format!("bench-{}-{number}", std::process::id()), &specs)?;
        Ok(Self { lab, driver, mtu, packet: AfPacketOptions::default() })
    }

    /// Sets how packet sockets are opened.
    pub fn with_packet_options(self, packet: AfPacketOptions) -> Self {
        Self { packet, ..self }
    }

    /// A host by name.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn host(&self, name: &str) -> Result<&Host, BenchError> {
        Ok(self.lab.host(name)?)
    }

    /// The lab that holds the hosts.
    pub const fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Opens the ports in the hosts' order.
    ///
    /// # Errors
    /// If one can't be opened.
    pub fn open(&self) -> Result<Vec<Box<dyn Port>>, BenchError> {
        self.open_by(self.driver)
    }

    /// Opens the ports by another driver than the wires were made for: wires for AF_XDP also serve AF_PACKET.
    ///
    /// # Errors
    /// If one can't be opened.
    pub fn open_by(&self, driver: Driver) -> Result<Vec<Box<dyn Port>>, BenchError> {
        match driver {
            Driver::Tap => self.open_taps(),
            Driver::AfPacket => self.lab.in_core(|| {
                let open = |host: &Host| -> Result<Box<dyn Port>, BenchError> {
                    let interface = host.port().unwrap_or_default();
                    Ok(Box::new(AfPacket::open(host.name(), interface, &self.packet)?))
                };
                self.lab.hosts().iter().map(open).collect()
            })?,
            Driver::AfXdp => self.open_xdp(),
        }
    }

    /// All hosts, in the order of [`HOSTS`].
    pub fn hosts(&self) -> &[Host] {
        self.lab.hosts()
    }

    fn open_taps(&self) -> Result<Vec<Box<dyn Port>>, BenchError> {
        let mut ports: Vec<Box<dyn Port>> = Vec::new();
        for host in self.lab.hosts() {
            let options = TapOptions { mtu: self.mtu, ..TapOptions::default() };
            let tap = host.run(|| Tap::create(host.name(), host.interface(), &options))??;
            self.lab.configure(host.name())?;
            ports.push(Box::new(tap));
        }
        Ok(ports)
    }

    fn open_xdp(&self) -> Result<Vec<Box<dyn Port>>, BenchError> {
        let mut plans = Vec::new();
        for host in self.lab.hosts() {
            let far_end = FarEnd::Given(host.run(|| Interface::open(host.interface()))??);
            let plan = AfXdpPlan::on(host.port().unwrap_or_default());
            plans.push(AfXdpPlan { name: host.name().into(), far_end, ..plan });
        }
        let ports = self.lab.in_core(|| AfXdpPort::open_all(plans))??;
        Ok(ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect())
    }

    /// Starts the engine on new ports, with a link from `a` to `b` that has the keys `forward` (of a
    /// scenario's link, one a line), and a wire back. It spins on the first processor.
    ///
    /// # Errors
    /// If something can't be opened or built.
    pub fn start(&self, forward: &str) -> Result<Run, BenchError> {
        self.start_by(self.driver, forward)
    }

    /// As [`BenchHosts::start`], on ports opened by [`BenchHosts::open_by`].
    ///
    /// # Errors
    /// If something can't be opened or built.
    pub fn start_by(&self, driver: Driver, forward: &str) -> Result<Run, BenchError> {
        let ports = self.open_by(driver)?;
        let driver = driver.name();
        let mut text = "[engine]\nwait = \"spin\"\ncpus = [0]\npool = \"64 MiB\"\n".to_owned();
        for (place, host) in self.lab.hosts().iter().enumerate() {
            let (name, address) = (host.name(), address(place));
            text +=
                &format!("[[host]]\nname = \"{name}\"\naddress = \"{address}/24\"\ndriver = \"{driver}\"\n");
        }
        text += &format!("[[link]]\nname = \"go\"\nfrom = \"a\"\nto = \"b\"\n{forward}\n");
        text += "[[link]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\nloss = \"0 %\"\n";
        run(&text, ports)
    }

    /// Starts the engine on new ports with a whole scenario, which has a port or host for each of this
    /// world's, in order.
    ///
    /// # Errors
    /// If something can't be parsed, opened or built.
    pub fn start_scenario(&self, text: &str) -> Result<Run, BenchError> {
        run(text, self.open()?)
    }

    /// Runs `f` in host `a` with a traffic receiver in host `b`, both on the processor that the engine leaves
    /// free.
    ///
    /// # Errors
    /// What `f` returns, or if the receiver can't listen.
    pub fn with_receiver<R: Send>(
        &self,
        f: impl FnOnce(&Receiver) -> Result<R, traffic::Error> + Send,
    ) -> Result<R, BenchError> {
        self.between(0, 1, f)
    }

    /// Runs `f` in one host with a traffic receiver in another.
    ///
    /// # Errors
    /// As for [`BenchHosts::with_receiver`].
    pub fn between<R: Send>(
        &self,
        from: usize,
        to: usize,
        f: impl FnOnce(&Receiver) -> Result<R, traffic::Error> + Send,
    ) -> Result<R, BenchError> {
        let (a, b) = (&self.lab.hosts()[from], &self.lab.hosts()[to]);
        let address = SocketAddr::new(address(to).into(), traffic::DEFAULT_PORT);
        let server = b.run(|| Server::bind(address))??;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // A failed session is reported to its sender, whose error is returned.
            let served = scope.spawn(|| {
                b.run(|| {
                    settle_beside();
                    server.serve(&stop, &mut |_| ())
                })
            });
            let sent = a.run(|| {
                settle_beside();
                f(&Receiver::at(address))
            });
            stop.store(true, Ordering::Relaxed);
            let served = joined(served);
            let result = sent??;
            served??;
            Ok(result)
        })
    }
}

/// Starts the engine of a scenario on these ports.
pub(crate) fn run(scenario: &str, ports: Vec<Box<dyn Port>>) -> Result<Run, BenchError> {
    let plan = longwire_scenario::parse("bench", scenario)?;
    Ok(longwire_assemble::build(&plan, ports, |_| None)?.setup.start())
}

/// Pins this thread to the last processor: the engine has the first.
pub fn settle_beside() {
    // An already pinned thread sees only its own processor.
    static LAST: OnceLock<usize> = OnceLock::new();
    longwire_engine::clock::settle_thread(Some(*LAST.get_or_init(|| processors() - 1)));
}

/// The engine's own losses in words, if any: they invalidate a measurement.
pub fn own_losses(report: &Report) -> Option<String> {
    let OwnLosses { pool, port, down, oversize, ring } = report.own_losses();
    (pool + port + down + oversize + ring > 0).then(|| {
        format!(
            "lost by the engine's own fault: {pool} by the pool, {port} by ports, {down} by ports that were \
             down, {oversize} too long for a port, {ring} by rings"
        )
    })
}

/// The row with a note about the engine's own losses.
pub fn with_losses(row: Row, report: &Report) -> Row {
    let row = report.errors.iter().fold(row, |row, error| row.note(error.clone()));
    own_losses(report).into_iter().fold(row, Row::note)
}

/// The processors that this thread may run on.
#[cfg(test)]
pub(crate) fn allowed() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_tied_twice_stays_where_it_is() {
        let tied = || {
            settle_beside();
            allowed()
        };
        let both = std::thread::spawn(move || [tied(), tied()]).join().unwrap();
        assert_eq!(both[0], both[1]);
    }
}
