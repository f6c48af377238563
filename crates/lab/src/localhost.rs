//! Loopback services across the link of `exec`, in both directions.
//!
//! At the near end, the kernel translates the command's packets for 127.0.0.1 to the far end's address. There
//! a relay listens, only on the link's interface, and connects to the machine's 127.0.0.1: services see a
//! client of their own machine. In the other direction, a relay on the machine's 127.0.0.1 connects to the
//! near end's address, which the kernel there translates to the command's 127.0.0.1.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use longwire_netlink::interface_index;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use crate::port_relay::{Dial, PortRelay};
use crate::redirection::{Redirections, redirect};
use crate::{ExecNet, LabError, Namespace, quiet, socket_option};

/// Most ports of a list: each has its own sockets.
const MOST: usize = 1024;
/// Interval between checks for listening services.
const LOOK: Duration = Duration::from_millis(200);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Ports, as a list: `8000,5432,9000-9010`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ports(Vec<RangeInclusive<u16>>);

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = |text: &str| {
            let port: u16 = text.trim().parse().ok().filter(|port| *port > 0)?;
            Some(port)
        };
        let mut ranges = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match port(first).zip(port(last)) {
                Some((first, last)) if first <= last => ranges.push(first..=last),
                _ => {
                    return Err(format!(
                        "\"{part}\" is neither a port nor a range; write 8000,5432,9000-9010"
                    ));
                }
            }
        }
        let ports = Self(ranges);
        if ports.each().take(MOST + 1).count() > MOST {
            return Err(format!("these are more than {MOST} ports; name fewer"));
        }
        Ok(ports)
    }
}

impl Ports {
    /// A port that both have, if there is one.
    #[must_use]
    pub fn shared_with(&self, other: &Self) -> Option<u16> {
        self.each().find(|port| other.0.iter().any(|range| range.contains(port)))
    }

    /// Each port once per range that has it.
    fn each(&self) -> impl Iterator<Item = u16> {
        self.0.iter().cloned().flatten()
    }
}

/// The machine's loopback services that the command can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// Those at these ports, whether they already listen or not.
    Listed(Ports),
    /// All that listen at the time.
    Listening,
}

impl FromStr for Reached {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" { Ok(Self::Listening) } else { text.parse().map(Self::Listed) }
    }
}

/// Loopback services that are reached across the link, until dropped.
#[derive(Debug)]
pub struct Localhost {
    // Ends first, because it creates further relays.
    _watch: Option<Watch>,
    _relays: Vec<PortRelay>,
}

impl Localhost {
    /// Makes the machine's `reached` services available at the near end, and the near end's `published` ports
    /// on the machine's loopback.
    ///
    /// # Errors
    /// If the kernel refuses, or a published port is taken.
    pub fn start(net: &ExecNet, reached: Option<&Reached>, published: &Ports) -> Result<Self, LabError> {
        let (near, far) = (net.near(), net.far());
        let addresses = [near, far].map(|end| end.spec().addresses[0].address());
        let [IpAddr::V4(own), IpAddr::V4(other)] = addresses else { return Err(LabError::NoFreeNetwork) };
        let index =
            far.run(|| interface_index(far.interface()))?.map_err(LabError::system("finding the far end"))?;
        near.run(|| quiet::with_loopback_by(near.interface()))?;
        let mut relays = Vec::new();
        for port in published.each() {
            let doing = || LabError::system(format!("listening on port {port} of this machine's loopback"));
            relays.extend(far.run(|| publish(own, port))?.map_err(doing())?);
        }
        let mut ends = Ends {
            near: near.namespace().again()?,
            far: far.namespace().again()?,
            index,
            addresses: [own, other],
            back: published.0.clone(),
            relays: BTreeMap::new(),
        };
        let doing = || LabError::system("redirecting the loopback's ports in the kernel's nf_tables");
        let watch = match reached {
            Some(Reached::Listening) => Some(Watch::start(ends).map_err(doing())?),
            _ => {
                let listed = match reached {
                    Some(Reached::Listed(ports)) => ports.clone(),
                    _ => Ports::default(),
                };
                ends.reach(&listed.each().collect()).map_err(doing())?;
                ends.redirect(listed.0).map_err(doing())?;
                relays.extend(std::mem::take(&mut ends.relays).into_values().flatten());
                None
            }
        };
        Ok(Self { _watch: watch, _relays: relays })
    }
}

/// Both ends, and the relays at the far one by port.
#[derive(Debug)]
struct Ends {
    near: Namespace,
    far: Namespace,
    /// The far end's interface.
    index: u32,
    /// The near end's and the far end's.
    addresses: [Ipv4Addr; 2],
    back: Vec<RangeInclusive<u16>>,
    relays: BTreeMap<u16, Vec<PortRelay>>,
}

impl Ends {
    /// Sets the ports that have relays at the far end. A port at which a service listens on every address of
    /// the machine needs none.
    fn reach(&mut self, ports: &BTreeSet<u16>) -> io::Result<()> {
        self.relays.retain(|port, _| ports.contains(port));
        let new: Vec<u16> = ports.iter().copied().filter(|port| !self.relays.contains_key(port)).collect();
        let (at, index) = (self.addresses[1], self.index);
        let made: io::Result<Vec<_>> = self
            .far
            .run(|| new.iter().map(|&port| Ok((port, receive(at, index, port)?))).collect())
            .map_err(io::Error::other)?;
        self.relays.extend(made?);
        Ok(())
    }

    fn redirect(&self, out: Vec<RangeInclusive<u16>>) -> io::Result<()> {
        let redirections = Redirections { out, back: self.back.clone() };
        let [own, other] = self.addresses;
        self.near.run(|| redirect(own, other, &redirections)).map_err(io::Error::other)?
    }

    /// The ports at which the machine's services listen, without published ones.
    fn listening(&self) -> io::Result<BTreeSet<u16>> {
        let mut ports = self.far.run(listening).map_err(io::Error::other)?;
        ports.retain(|port| !self.back.iter().any(|published| published.contains(port)));
        while ports.len() > MOST {
            ports.pop_last();
        }
        Ok(ports)
    }

    /// Adjusts relays to the listening services.
    fn follow(&mut self) -> io::Result<BTreeSet<u16>> {
        let ports = self.listening()?;
        self.reach(&ports)?;
        self.redirect(ports.iter().map(|&port| port..=port).collect())?;
        Ok(ports)
    }
}

/// Watches for services that begin to listen.
#[derive(Debug)]
struct Watch {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    fn start(mut ends: Ends) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let stopped = stop.try_clone()?;
        let mut known = ends.follow()?;
        let watch = move || {
            let every = Timespec::try_from(LOOK).ok();
            loop {
                let mut polls = [PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN)];
                let _ = poll(&mut polls, every.as_ref());
                if !polls[0].revents().is_empty() {
                    return;
                }
                if ends.listening().is_ok_and(|now| now != known)
                    // Failures (no descriptors left) are retried.
                    && let Ok(now) = ends.follow()
                {
                    known = now;
                }
            }
        };
        let thread = std::thread::Builder::new().name("localhost".to_owned()).spawn(watch)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Eight bytes, as eventfd(2) requires; the first write can neither block nor fail.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Relays from a port of the machine's loopback to the near end.
fn publish(near: Ipv4Addr, port: u16) -> io::Result<[PortRelay; 2]> {
    let (at, to) = (SocketAddr::from((LOOPBACK, port)), SocketAddr::from((near, port)));
    let dial = Arc::new(Dial::Inside(Namespace::current().map_err(io::Error::other)?));
    let tcp = PortRelay::tcp(TcpListener::bind(at)?, Arc::clone(&dial), vec![to])?;
    Ok([tcp, PortRelay::udp(UdpSocket::bind(at)?, dial, to)?])
}

/// Relays from a port of the far end to the loopback of its machine; none if the port is already in use.
fn receive(at: Ipv4Addr, index: u32, port: u16) -> io::Result<Vec<PortRelay>> {
    let dial = Arc::new(Dial::Inside(Namespace::current().map_err(io::Error::other)?));
    let to = [IpAddr::V4(LOOPBACK), IpAddr::V6(Ipv6Addr::LOCALHOST)].map(|to| SocketAddr::new(to, port));
    let socket = |kind| {
        let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
        // Accepts neither the machine's networks nor the machine itself.
        socket_option::bind_to_interface(&socket, index)?;
        rustix::net::sockopt::set_socket_reuseaddr(&socket, kind == SocketType::STREAM)?;
        bind(&socket, &SocketAddr::from((at, port)))?;
        Ok::<_, io::Error>(socket)
    };
    let unless_taken = |made: io::Result<PortRelay>| match made {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        other => other.map(Some),
    };
    let tcp = socket(SocketType::STREAM).and_then(|socket| {
        listen(&socket, BACKLOG)?;
        PortRelay::tcp(TcpListener::from(socket), Arc::clone(&dial), to.to_vec())
    });
    let udp = socket(SocketType::DGRAM)
        .and_then(|socket| PortRelay::udp(UdpSocket::from(socket), Arc::clone(&dial), to[0]));
    Ok([unless_taken(tcp)?, unless_taken(udp)?].into_iter().flatten().collect())
}

/// The ports at which something listens on the loopback, or on every address, in the calling thread's
/// namespace.
fn listening() -> BTreeSet<u16> {
    // Tables of sockets, and the state of listening ones (proc_net_tcp(5); for UDP, that of an unconnected
    // socket).
    const TABLES: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
    let of = |(table, state): (&str, &str)| {
        // A system without IPv6 has no tables for it.
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        text.lines().filter_map(|line| port_of(line, state)).collect::<Vec<_>>()
    };
    TABLES.into_iter().flat_map(of).collect()
}

/// The port of a line of such a table, if its socket is in `state` and on the loopback or every address.
fn port_of(line: &str, state: &str) -> Option<u16> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, own) = (fields.next()?, fields.nth(1)?);
    let (address, port) = local.split_once(':')?;
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
    (own == state && (loopback || any)).then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ports() {
        let ports: Ports = "8000, 5432,9000-9002".parse().unwrap();
        assert_eq!(ports.each().collect::<Vec<_>>(), [8000, 5432, 9000, 9001, 9002]);
        for wrong in ["", "0", "70000", "9-8", "8000,", "http", "1-2-3", "-5"] {
            assert!(wrong.parse::<Ports>().is_err(), "{wrong}");
        }
        assert!("1-1024".parse::<Ports>().is_ok());
        assert!("1-1025".parse::<Ports>().unwrap_err().contains("1024"));
        assert_eq!("all".parse(), Ok(Reached::Listening));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn services_of_the_loopback_are_told_from_others() {
        let line = |local: &str, state: &str| format!("  0: {local} 00000000:0000 {state} 00000000:0 0");
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
            assert_eq!(port_of(&line(local, "0A"), "0A"), port, "{local}");
            assert_eq!(port_of(&line(local, "01"), "0A"), None);
        }
        assert_eq!(port_of("  sl  local_address rem_address   st", "0A"), None);
    }
}
