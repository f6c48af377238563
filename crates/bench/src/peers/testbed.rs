//! Two hosts and the two interfaces between which a peer is started.

use super::program::Program;
use crate::flood::{Flood, PATIENCE, received};
use crate::world::{BenchHosts, Driver};
use crate::{BenchError, Settings};
use longwire_lab::Host;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Addresses of the sending and of the receiving host.
pub const ADDRESSES: [&str; 2] = ["10.0.0.1", "10.0.0.2"];

/// Hosts `a`, which sends, and `b`, which receives; and a namespace with the other ends of their veth pairs.
pub struct Testbed {
    pub world: BenchHosts,
    ports: [String; 2],
    macs: [String; 2],
}

impl Testbed {
    /// Creates the hosts, with offloads off, because few peers can finish checksums. The hosts know each
    /// other's Ethernet address.
    ///
    /// # Errors
    /// If something can't be created.
    pub fn new(addresses: bool) -> Result<Self, BenchError> {
        let world = BenchHosts::new(Driver::AfXdp, addresses)?;
        let [a, b] = [world.host("a")?, world.host("b")?];
        let port = |host: &Host| host.port().unwrap_or_default().to_owned();
        let mac = |host: &Host| host.spec().mac.map(|mac| mac.to_string()).unwrap_or_default();
        let (ports, macs) = ([port(a), port(b)], [mac(a), mac(b)]);
        for (host, other) in [(a, 1), (b, 0)] {
            let arguments = neighbour(ADDRESSES[other], &macs[other], host.interface());
            host.run(|| run("ip", &arguments))??;
        }
        Ok(Self { world, ports, macs })
    }

    /// The interfaces to `a` and to `b`.
    pub fn interfaces(&self) -> [&str; 2] {
        [&self.ports[0], &self.ports[1]]
    }

    /// Runs a tool in the interfaces' namespace, with space-separated arguments, and returns its output.
    ///
    /// # Errors
    /// If it is missing or fails.
    pub fn tool(&self, line: &str) -> Result<String, BenchError> {
        let mut words = line.split_ascii_whitespace();
        let program = words.next().unwrap_or_default();
        let arguments: Vec<&str> = words.collect();
        self.world.lab().in_core(|| run(program, &arguments))?
    }

    /// Sets a value below `/proc/sys/net/ipv4` in the interfaces' namespace.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set(&self, name: &str, value: &str) -> Result<(), BenchError> {
        let path = format!("/proc/sys/net/ipv4/{name}");
        let written = self.world.lab().in_core(|| std::fs::write(path, value))?;
        written.map_err(BenchError::system("setting up forwarding of IP"))
    }

    /// Starts a program in the interfaces' namespace.
    ///
    /// # Errors
    /// If it is missing.
    pub fn spawn(&self, command: Command) -> Result<Program, BenchError> {
        self.world.lab().in_core(|| Program::start(command))?
    }

    /// Runs `f` while the hosts' addresses are occupied in the interfaces' namespace, so that a program that
    /// looks for free addresses chooses others.
    ///
    /// # Errors
    /// What `f` returns, or if the kernel refuses.
    pub fn shielded<R>(&self, f: impl FnOnce() -> Result<R, BenchError>) -> Result<R, BenchError> {
        self.set("ip_forward", "1")?;
        for address in ADDRESSES {
            self.tool(&format!("ip addr add {address}/32 dev lo"))?;
        }
        let done = f()?;
        for address in ADDRESSES {
            self.tool(&format!("ip addr del {address}/32 dev lo"))?;
        }
        Ok(done)
    }

    /// Enables IP forwarding between the interfaces. Each interface has the Ethernet address of the far host,
    /// so that hosts need not know about the router.
    ///
    /// # Errors
    /// If a tool is missing, or the kernel refuses.
    pub fn route(&self) -> Result<(), BenchError> {
        self.set("ip_forward", "1")?;
        self.set("conf/all/rp_filter", "0")?;
        for side in [0, 1] {
            let port = &self.ports[side];
            self.set(&format!("conf/{port}/rp_filter"), "0")?;
            self.tool(&format!("ip link set {port} address {}", self.macs[1 - side]))?;
            self.attach(side, "")?;
        }
        Ok(())
    }

    /// Commands that add the host behind an interface to a namespace's routes and neighbours, each with
    /// `prefix` before it.
    ///
    /// # Errors
    /// If a tool is missing, or the kernel refuses.
    pub fn attach(&self, side: usize, prefix: &str) -> Result<(), BenchError> {
        let (port, address) = (&self.ports[side], ADDRESSES[side]);
        self.tool(&format!("{prefix} ip route replace {address}/32 dev {port}"))?;
        let neighbour = neighbour(address, &self.macs[side], port).join(" ");
        self.tool(&format!("{prefix} ip {neighbour}")).map(|_| ())
    }

    /// Makes the kernel process received frames on the first processor, where Longwire's worker runs, instead
    /// of within the generator's system call (receive packet steering).
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn steer_to_first_processor(&self) -> Result<(), BenchError> {
        // /sys shows the interfaces of the namespace in which it was mounted.
        let lines =
            self.ports.iter().map(|port| format!("echo 1 > /sys/class/net/{port}/queues/rx-0/rps_cpus"));
        let script = ["mount -t sysfs sysfs /sys".to_owned()].into_iter().chain(lines);
        let script = script.collect::<Vec<_>>().join(" && ");
        self.world.lab().in_core(|| run("unshare", &["--mount", "sh", "-c", &script]))?.map(|_| ())
    }

    /// Sends single frames until one arrives.
    ///
    /// # Errors
    /// If none arrives within ten seconds.
    pub fn wait_until_it_carries(&self, settings: &Settings<'_>) -> Result<(), BenchError> {
        let mut flood = Flood::open(&self.world)?;
        flood.greet()?;
        let (before, _) = received(&self.world)?;
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            flood.probe()?;
            settings.pause(Duration::from_millis(20))?;
            if received(&self.world)?.0 > before {
                return Ok(());
            }
        }
        Err(BenchError::Silent(PATIENCE))
    }
}

fn neighbour<'a>(address: &'a str, mac: &'a str, interface: &'a str) -> [&'a str; 9] {
    ["neigh", "replace", address, "lladdr", mac, "dev", interface, "nud", "permanent"]
}

/// Runs a tool in this thread's namespace.
fn run(program: &str, arguments: &[&str]) -> Result<String, BenchError> {
    let failed = |reason| BenchError::Tool { command: format!("{program} {}", arguments.join(" ")), reason };
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.trim().lines().next().unwrap_or("failed, and does not say why").to_owned()))
}
