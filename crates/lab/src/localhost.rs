//! Loopback services across the link of `exec`, in both directions.
//!
//! At the near end, the kernel translates the command's packets for 127.0.0.1 to the far end's address, and
//! to the port of a relay there. It listens only on the link's interface, and connects to the machine's
//! 127.0.0.1: services see a client of their own machine. The relay has a port of its own, because a socket
//! at the service's would keep services from listening there on every address. In the other direction, a
//! relay on the machine's 127.0.0.1 connects to such a relay at the near end, which connects to the
//! command's 127.0.0.1.
//!
//! What the command sends to `::1` can't leave its namespace. A relay beside the command takes it and sends
//! it to 127.0.0.1, with which it goes on as above.
//!
//! In a user namespace the machine is out of reach for all but sockets that were made there: see
//! [`SocketNetwork`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use longwire_netlink::interface_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use crate::listening::{OWN_TABLES, listening};
use crate::open_files::allow_open_files_if_possible;
use crate::port_relay::{PortRelay, SocketNetwork};
use crate::redirection::{Redirections, RelayPorts, redirect};
use crate::stoppable_thread::readable;
use crate::unanswered::forget_unanswered;
use crate::{ExecNet, Host, LabError, Namespace, Result, StoppableThread, quiet, socket_option};

/// Most ports of a list: each has its own sockets.
const MOST: usize = 1024;
/// Descriptors of a port: two sockets and their relays, at each end, with a few to spare.
const FILES_A_PORT: usize = 16;
/// All other descriptors of the process.
const OTHER_FILES: usize = 256;
/// Interval between checks for listening services.
const LOOK: Duration = Duration::from_millis(200);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// How a list is written.
const EXAMPLE: &str = "8000,5432,9000-9010";
const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Ports, from a list in which some may be twice: `8000,5432,9000-9010`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ports(BTreeSet<u16>);

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = |text: &str| {
            let port: u16 = text.trim().parse().ok().filter(|port| *port > 0)?;
            Some(port)
        };
        let mut ports = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match port(first).zip(port(last)) {
                Some((first, last)) if first <= last => ports.extend(first..=last),
                _ => return Err(format!("\"{part}\" is neither a port nor a range; write {EXAMPLE}")),
            }
            if ports.len() > MOST {
                return Err(format!("these are more than {MOST} ports; name fewer"));
            }
        }
        Ok(Self(ports))
    }
}

impl Ports {
    /// A port that both have, if there is one.
    #[must_use]
    pub fn shared_with(&self, other: &Self) -> Option<u16> {
        self.0.intersection(&other.0).next().copied()
    }
}

/// The machine's loopback services that the command can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopbackServices {
    /// Those at these ports, whether they already listen or not.
    Listed(Ports),
    /// All that listen at the time.
    Listening,
}

impl FromStr for LoopbackServices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" { Ok(Self::Listening) } else { text.parse().map(Self::Listed) }
    }
}

/// Loopback services that are reached across the link, until dropped.
#[derive(Debug)]
pub struct Localhost {
    // Ends first, because it creates further relays.
    _watch: Option<StoppableThread>,
    _relays: Vec<PortRelay>,
}

impl Localhost {
    /// Begins: `reached` of the machine's services from the near end, `published` ones of the near end from
    /// the machine's loopback. `machine` makes sockets of the machine's network.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn start(
        net: &ExecNet,
        reached: Option<&LoopbackServices>,
        published: PublishedPorts,
        machine: SocketNetwork,
    ) -> Result<Self> {
        let count = match reached {
            Some(LoopbackServices::Listening) => MOST,
            Some(LoopbackServices::Listed(ports)) => ports.0.len(),
            None => 0,
        };
        allow_files_for(count + published.0.len());
        let (near, far) = (net.near(), net.far());
        let addresses = [near, far].map(|end| end.spec().addresses[0].address);
        let [IpAddr::V4(own), IpAddr::V4(other)] = addresses else { return Err(LabError::NoFreeNetwork) };
        let index = |end: &Host| {
            end.run(|| interface_index(end.interface()))?
                .map_err(LabError::system("finding an end's interface"))
        };
        let [own_index, index] = [index(near)?, index(far)?];
        near.run(|| quiet::with_loopback_by(near.interface()))?;
        let doing = || LabError::system("relaying ports of the loopback");
        let back = published.0.iter().map(|(port, ..)| *port).collect();
        let beside = Arc::new(SocketNetwork::inside(near.namespace())?);
        let dial = Arc::new(SocketNetwork::inside(far.namespace())?);
        let inner = near.run(|| published.receive((own, own_index), &beside))?.map_err(doing())?;
        let mut relays = published.relays(own, inner, &dial).map_err(doing())?;
        let mut ends = LoopbackRelays {
            near: near.namespace().again()?,
            far: far.namespace().again()?,
            machine: Arc::new(machine),
            beside,
            index,
            address: other,
            back,
            relays: BTreeMap::new(),
            by_ipv6: BTreeMap::new(),
        };
        let watch = match reached {
            Some(LoopbackServices::Listening) => Some(watch(ends).map_err(doing())?),
            _ => {
                if let Some(LoopbackServices::Listed(Ports(listed))) = reached {
                    ends.reach(listed).map_err(doing())?;
                }
                ends.redirect().map_err(doing())?;
                let made = [&mut ends.relays, &mut ends.by_ipv6].map(std::mem::take);
                relays
                    .extend(made.into_iter().flat_map(BTreeMap::into_values).flat_map(|(_, relays)| relays));
                None
            }
        };
        Ok(Self { _watch: watch, _relays: relays })
    }
}

/// Raises the limit of open files for this many ports, of which one may have all the connections that its
/// relays at both ends take.
fn allow_files_for(ports: usize) {
    let idle = OTHER_FILES + FILES_A_PORT * ports;
    allow_open_files_if_possible(idle as u64 + 2 * PortRelay::MOST_FILES);
}

/// Ports of the machine's loopback that are to lead to the command's, taken.
#[derive(Debug, Default)]
pub struct PublishedPorts(Vec<(u16, TcpListener, UdpSocket)>);

impl PublishedPorts {
    /// Takes the ports in the network of the calling thread.
    ///
    /// # Errors
    /// When a port is taken already.
    pub fn take(ports: &Ports) -> Result<Self> {
        allow_files_for(ports.0.len());
        let take = |port| {
            let at = (LOOPBACK, port);
            let taken = TcpListener::bind(at).and_then(|tcp| Ok((port, tcp, UdpSocket::bind(at)?)));
            taken.map_err(LabError::system(format!("listening on port {port} of this machine's loopback")))
        };
        Ok(Self(ports.0.iter().copied().map(take).collect::<Result<_, _>>()?))
    }

    /// Relays at the near end for each port, in its network.
    fn receive(&self, near: (Ipv4Addr, u32), beside: &Arc<SocketNetwork>) -> io::Result<Vec<PortRelays>> {
        self.0.iter().map(|(port, ..)| receive(near, *port, beside)).collect()
    }

    /// Relays from the ports to those at the near end, and these.
    fn relays(
        self,
        near: Ipv4Addr,
        inner: Vec<PortRelays>,
        dial: &Arc<SocketNetwork>,
    ) -> io::Result<Vec<PortRelay>> {
        let mut relays = Vec::new();
        for ((_, tcp, udp), (ports, inner)) in self.0.into_iter().zip(inner) {
            let to = |port| vec![SocketAddr::from((near, port))];
            relays.push(PortRelay::tcp(tcp, Arc::clone(dial), to(ports.tcp))?);
            relays.push(PortRelay::udp(udp, Arc::clone(dial), to(ports.udp))?);
            relays.extend(inner);
        }
        Ok(relays)
    }
}

/// Both ends, and the relays at them.
#[derive(Debug)]
struct LoopbackRelays {
    near: Namespace,
    far: Namespace,
    /// Makes sockets of the machine's network.
    machine: Arc<SocketNetwork>,
    /// Makes sockets of the near end's.
    beside: Arc<SocketNetwork>,
    /// The far end's interface.
    index: u32,
    /// Its address.
    address: Ipv4Addr,
    /// Published ports, which are the command's.
    back: BTreeSet<u16>,
    /// Relays at the far end.
    relays: ByPort,
    /// Relays at the near end from `::1`.
    by_ipv6: ByPort,
}

/// Relays, by the ports that they are for.
type ByPort = BTreeMap<u16, PortRelays>;

/// Relays, and where they listen.
type PortRelays = (RelayPorts, Vec<PortRelay>);

impl LoopbackRelays {
    /// Has relays for these ports, and for no others.
    fn reach(&mut self, ports: &BTreeSet<u16>) -> io::Result<()> {
        self.relays.retain(|port, _| ports.contains(port));
        let new: Vec<u16> = ports.iter().copied().filter(|port| !self.relays.contains_key(port)).collect();
        let (at, index) = (self.address, self.index);
        let made: io::Result<Vec<_>> = self
            .far
            .run(|| new.iter().map(|&port| Ok((port, receive((at, index), port, &self.machine)?))).collect())
            .map_err(io::Error::other)?;
        self.relays.extend(made?);
        self.by_ipv6.retain(|port, _| ports.contains(port));
        let made = self.near.run(|| new.iter().filter_map(|&port| from_ipv6(port, &self.beside)).collect());
        let made: Vec<_> = made.map_err(io::Error::other)?;
        self.by_ipv6.extend(made);
        Ok(())
    }

    fn redirect(&self) -> io::Result<()> {
        let [out, by_ipv6] = [&self.relays, &self.by_ipv6]
            .map(|relays| relays.iter().map(|(&port, &(at, _))| (port, at)).collect());
        let redirections = Redirections { out, by_ipv6 };
        self.near.run(|| redirect(self.address, &redirections)).map_err(io::Error::other)?
    }

    /// The ports at which the machine's services listen, without published ones.
    fn listening(&self) -> io::Result<BTreeSet<u16>> {
        let mut ports = match &*self.machine {
            SocketNetwork::Outside(outside) => reachable(&outside.tables()),
            _ => self.far.run(|| reachable(Path::new(OWN_TABLES))).map_err(io::Error::other)?,
        };
        ports.retain(|port| !self.back.contains(port));
        while ports.len() > MOST {
            ports.pop_last();
        }
        Ok(ports)
    }

    /// Adjusts relays to the listening services.
    fn follow(&mut self) -> io::Result<BTreeSet<u16>> {
        let ports = self.listening()?;
        let new = ports.iter().copied().filter(|port| !self.relays.contains_key(port)).collect();
        self.reach(&ports)?;
        self.redirect()?;
        // Without it, who asks a service before it listens has to ask from another port then.
        let _ = self.near.run(|| forget_unanswered(&new));
        Ok(ports)
    }
}

/// Watches for services that begin to listen.
fn watch(mut ends: LoopbackRelays) -> io::Result<StoppableThread> {
    let mut known = ends.follow()?;
    StoppableThread::start("localhost", move |stopped| {
        while !readable([stopped.as_fd()], Some(LOOK))[0] {
            if ends.listening().is_ok_and(|now| now != known)
                // Failures (no descriptors left) are retried.
                && let Ok(now) = ends.follow()
            {
                known = now;
            }
        }
    })
}

/// Relays at the near end from a port of `::1` to the same of 127.0.0.1; none where there is no IPv6.
fn from_ipv6(port: u16, beside: &Arc<SocketNetwork>) -> Option<(u16, PortRelays)> {
    const ANY: (Ipv6Addr, u16) = (Ipv6Addr::LOCALHOST, 0);
    let to = SocketAddr::from((LOOPBACK, port));
    let relays = relays_at(TcpListener::bind(ANY).ok()?, UdpSocket::bind(ANY).ok()?, beside, &[to]);
    Some((port, relays.ok()?))
}

/// Relays from both sockets to the first of `to` where somebody listens.
fn relays_at(
    tcp: TcpListener,
    udp: UdpSocket,
    dial: &Arc<SocketNetwork>,
    to: &[SocketAddr],
) -> io::Result<PortRelays> {
    let ports = RelayPorts { tcp: tcp.local_addr()?.port(), udp: udp.local_addr()?.port() };
    let tcp = PortRelay::tcp(tcp, Arc::clone(dial), to.to_vec())?;
    let udp = PortRelay::udp(udp, Arc::clone(dial), to.to_vec())?;
    Ok((ports, vec![tcp, udp]))
}

/// Relays at an end, from ports of its interface's address that the kernel picks, to a port of the loopback
/// where `dial` is.
fn receive((at, index): (Ipv4Addr, u32), port: u16, dial: &Arc<SocketNetwork>) -> io::Result<PortRelays> {
    let to = [IpAddr::V4(LOOPBACK), IpAddr::V6(Ipv6Addr::LOCALHOST)].map(|to| SocketAddr::new(to, port));
    let socket = |kind| {
        let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
        // Accepts what comes by the link: neither the end's other networks nor the end itself.
        socket_option::bind_to_interface(&socket, index)?;
        bind(&socket, &SocketAddr::from((at, 0)))?;
        Ok::<_, io::Error>(socket)
    };
    let tcp = socket(SocketType::STREAM)?;
    listen(&tcp, BACKLOG)?;
    relays_at(tcp.into(), socket(SocketType::DGRAM)?.into(), dial, &to)
}

/// The ports at which something listens on the loopback, or on every address, in the network whose tables are
/// in `folder`.
fn reachable(folder: &Path) -> BTreeSet<u16> {
    listening(folder).iter().filter_map(|line| port_of(line)).collect()
}

/// The port of a line of such a table, if its socket is on the loopback or every address.
fn port_of(line: &str) -> Option<u16> {
    let (address, port) = line.split_whitespace().nth(1)?.split_once(':')?;
    // Words in the machine's own byte order: the loopback is 127.x.y.z, or ::1.
    let words: Vec<u32> = (0..address.len() / 8)
        .map(|at| u32::from_str_radix(address.get(8 * at..8 * at + 8)?, 16).ok())
        .collect::<Option<_>>()?;
    let loopback = match words[..] {
        [word] => word.to_ne_bytes()[0] == 127,
        [0, 0, 0, last] => u32::from_be(last) == 1,
        _ => false,
    };
    let any = matches!(words[..], [0] | [0, 0, 0, 0]);
    let port = u16::from_str_radix(port, 16).ok()?;
    (loopback || any).then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Makes a copy of this test program take ports.
    const TAKE: &str = "LONGWIRE_TEST_TAKE_PORTS";

    #[test]
    fn lists_of_ports() {
        let ports: Ports = "8000, 5432,9000-9002".parse().unwrap();
        assert_eq!(ports, Ports([5432, 8000, 9000, 9001, 9002].into()));
        assert_eq!("8000-8005,8003,8000".parse::<Ports>(), "8000-8005".parse::<Ports>());
        assert!("1-1024,5".parse::<Ports>().is_ok());
        for wrong in ["", "0", "70000", "9-8", "8000,", "http", "1-2-3", "-5"] {
            assert!(wrong.parse::<Ports>().is_err(), "{wrong}");
        }
        assert!("1-1024".parse::<Ports>().is_ok());
        assert!("1-1025".parse::<Ports>().unwrap_err().contains("1024"));
        assert_eq!("all".parse(), Ok(LoopbackServices::Listening));
    }

    /// Not a test: runs in a process with the limit that the next test sets.
    #[test]
    fn take_many_ports() {
        if std::env::var_os(TAKE).is_some() {
            let ports = PublishedPorts::take(&"21000-21099".parse().unwrap()).unwrap();
            println!("taken {}", ports.0.len());
        }
    }

    #[test]
    fn a_port_that_is_named_twice_is_taken_once() {
        let taken = PublishedPorts::take(&"21100,21100-21101".parse().unwrap()).unwrap();
        let ports: Vec<_> = taken.0.iter().map(|(port, ..)| *port).collect();
        assert_eq!(ports, [21100, 21101]);
    }

    #[test]
    fn many_ports_do_not_exceed_the_limit_of_open_files() {
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -Sn 100 && exec \"$@\"", "sh"]);
        limited.arg(std::env::current_exe().unwrap());
        limited.args(["--exact", "localhost::tests::take_many_ports", "--nocapture"]);
        let output = limited.env(TAKE, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("taken 100"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn services_of_the_loopback_are_told_from_others() {
        let line = |local: &str| format!("  0: {local} 00000000:0000 0A 00000000:0 0");
        for (local, port) in [
            ("0100007F:1F90", Some(8080)),
            ("3500007F:0035", Some(53)),
            ("00000000:0016", Some(22)),
            ("0101A8C0:1F90", None),
            ("00000000000000000000000001000000:1F90", Some(8080)),
            ("00000000000000000000000000000000:0016", Some(22)),
            ("000080FE000000000000000001000000:0016", None),
            ("0100007F", None),
            ("01:02", None),
        ] {
            assert_eq!(port_of(&line(local)), port, "{local}");
        }
        assert_eq!(port_of("  sl  local_address rem_address   st"), None);
    }
}
