//! Datagrams of UDP.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};

use super::end::{Clock, End};
use super::{FAR, FIRST_PORT, NEAR, Relay, Wires, free_port};

/// Senders at once; beyond, the one that has been silent for longest is forgotten.
const MAX_SENDERS: usize = 256;
/// Time after which a sender that is silent is forgotten (RFC 4787, section 4.3).
const SILENCE: Duration = Duration::from_secs(120);
/// Largest datagram.
const LARGEST: usize = 65_535;
/// Datagrams that wait at an end, and their bytes.
const WAITING: usize = 256;
const WAITING_BYTES: usize = 512 << 10;
/// Datagrams that are taken from a socket of the kernel's before others have their turn: who floods one must
/// not hold up the rest.
const AT_ONCE: usize = 64;

pub struct Datagrams {
    socket: UdpSocket,
    service: SocketAddr,
    near: End,
    far: End,
    /// The far end's socket, which all senders' datagrams come to.
    server: SocketHandle,
    senders: Vec<Sender>,
    next_port: u16,
    buffer: Vec<u8>,
}

/// A sender, with a port of the near end's and a socket towards the service, so that answers find their way.
struct Sender {
    address: SocketAddr,
    port: u16,
    handle: SocketHandle,
    /// None until its first datagram has crossed the link.
    towards: Option<UdpSocket>,
    heard: Instant,
}

impl Datagrams {
    pub fn new(clock: &Clock, wires: Wires, socket: UdpSocket, service: SocketAddr) -> Self {
        let near = End::new(clock, wires.near, NEAR);
        let mut far = End::new(clock, wires.far, FAR);
        let server = bind(&mut far.sockets, FAR, service.port());
        let (senders, next_port, buffer) = (Vec::new(), FIRST_PORT, vec![0; LARGEST]);
        Self { socket, service, near, far, server, senders, next_port, buffer }
    }

    /// From the clients to the near end.
    fn take(&mut self) {
        for _ in 0..AT_ONCE {
            let Ok((length, from)) = self.socket.recv_from(&mut self.buffer) else { return };
            let known = self.senders.iter().position(|sender| sender.address == from);
            let at = known.unwrap_or_else(|| self.enter(from));
            let sender = &mut self.senders[at];
            sender.heard = Instant::now();
            let socket = self.near.sockets.get_mut::<Socket<'_>>(sender.handle);
            // One that there is no room for is lost, as in a network.
            let _ = socket.send_slice(&self.buffer[..length], (FAR, self.service.port()));
        }
    }

    fn enter(&mut self, address: SocketAddr) -> usize {
        if self.senders.len() >= MAX_SENDERS
            && let Some(oldest) = (0..self.senders.len()).min_by_key(|&at| self.senders[at].heard)
        {
            let forgotten = self.senders.swap_remove(oldest);
            self.near.sockets.remove(forgotten.handle);
        }
        let has = |port: u16| self.senders.iter().any(|sender| sender.port == port);
        let port = free_port(&mut self.next_port, has);
        let handle = bind(&mut self.near.sockets, NEAR, port);
        self.senders.push(Sender { address, port, handle, towards: None, heard: Instant::now() });
        self.senders.len() - 1
    }

    /// From the far end to the service.
    fn deliver(&mut self) {
        let server = self.far.sockets.get_mut::<Socket<'_>>(self.server);
        while let Ok((bytes, from)) = server.recv() {
            // A sender that was forgotten meanwhile gets no answer.
            let sender = self.senders.iter_mut().find(|sender| sender.port == from.endpoint.port);
            let Some(sender) = sender else { continue };
            if sender.towards.is_none() {
                sender.towards = towards(self.service).ok();
            }
            if let Some(towards) = &sender.towards {
                // One that can't be sent (nobody listens, too long) is lost, as in a network.
                let _ = towards.send(bytes);
            }
        }
    }

    /// From the service to the far end.
    fn answer(&mut self, at: usize) {
        let sender = &mut self.senders[at];
        let server = self.far.sockets.get_mut::<Socket<'_>>(self.server);
        let Some(towards) = &sender.towards else { return };
        for _ in 0..AT_ONCE {
            let Ok(length) = towards.recv(&mut self.buffer) else { return };
            sender.heard = Instant::now();
            let _ = server.send_slice(&self.buffer[..length], (NEAR, sender.port));
        }
    }

    /// From the near end to the clients.
    fn give_back(&mut self) {
        for sender in &self.senders {
            let socket = self.near.sockets.get_mut::<Socket<'_>>(sender.handle);
            while let Ok((bytes, _)) = socket.recv() {
                let _ = self.socket.send_to(bytes, sender.address);
            }
        }
    }

    fn forget(&mut self) {
        let now = Instant::now();
        let sockets = &mut self.near.sockets;
        self.senders.retain(|sender| {
            let keeps = now.duration_since(sender.heard) < SILENCE;
            if !keeps {
                sockets.remove(sender.handle);
            }
            keeps
        });
    }
}

impl Relay for Datagrams {
    fn ends(&mut self) -> [&mut End; 2] {
        [&mut self.near, &mut self.far]
    }

    fn awaited<'a>(&'a self, polls: &mut Vec<PollFd<'a>>) {
        polls.push(PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN));
        for towards in self.senders.iter().filter_map(|sender| sender.towards.as_ref()) {
            polls.push(PollFd::from_borrowed_fd(towards.as_fd(), PollFlags::IN));
        }
    }

    fn ready(&mut self, events: &[PollFlags]) {
        let Some((own, events)) = events.split_first() else { return };
        let open: Vec<usize> =
            (0..self.senders.len()).filter(|&at| self.senders[at].towards.is_some()).collect();
        for (at, event) in open.into_iter().zip(events) {
            if !event.is_empty() {
                self.answer(at);
            }
        }
        if !own.is_empty() {
            self.take();
        }
        self.forget();
    }

    fn turn(&mut self, clock: &Clock) {
        self.near.receive(clock, |_| ());
        self.give_back();
        self.far.receive(clock, |_| ());
        self.deliver();
    }
}

fn bind(sockets: &mut SocketSet<'static>, address: Ipv4Addr, port: u16) -> SocketHandle {
    let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; WAITING], vec![0; WAITING_BYTES]);
    let mut socket = Socket::new(buffer(), buffer());
    // It can only fail for port 0, at which nobody can be reached either.
    let _ = socket.bind((address, port));
    sockets.add(socket)
}

/// A socket for datagrams to and from the service.
fn towards(service: SocketAddr) -> std::io::Result<UdpSocket> {
    let any: SocketAddr = if service.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(service)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::super::StackPort;
    use super::*;

    #[test]
    fn a_flood_does_not_keep_the_relay() {
        const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
        let (_near, near) = StackPort::pair("near", MACS[0], MACS[1]).unwrap();
        let (_far, far) = StackPort::pair("far", MACS[1], MACS[0]).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let own = socket.try_clone().unwrap();
        let service = SocketAddr::from(([127, 0, 0, 1], 9));
        let mut relay = Datagrams::new(&Clock::start(), Wires { near, far }, own, service);
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..=AT_ONCE {
            client.send_to(&[1], socket.local_addr().unwrap()).unwrap();
        }
        relay.take();
        assert!(socket.recv(&mut [0]).is_ok(), "the last one has to wait");
        assert!(socket.recv(&mut [0]).is_err(), "the others were taken");
    }
}
