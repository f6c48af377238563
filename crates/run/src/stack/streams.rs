//! Connections of TCP.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::Socket as AnySocket;
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Duration;

use super::end::{Clock, End};
use super::splice::Splice;
use super::{BUFFER, FAR, FIRST_PORT, MAX_CONNECTIONS, NEAR, NO_ROOM, Relay, Wires, free_port};

/// How long what has been sent may stay without an answer before a connection is given up.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time without a packet after which one is sent to be answered: smoltcp's patience ends for connections on
/// which nothing is to be sent as well.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

pub struct Streams {
    listener: TcpListener,
    /// Its addresses, all with this port.
    service: Vec<SocketAddr>,
    port: u16,
    near: End,
    far: End,
    /// The far end's socket that the next connection becomes.
    listening: SocketHandle,
    clients: Vec<Splice>,
    servers: Vec<Splice>,
    next_port: u16,
}

impl Streams {
    pub fn new(clock: &Clock, wires: Wires, listener: TcpListener, service: Vec<SocketAddr>) -> Self {
        let near = End::new(clock, wires.near, NEAR);
        let mut far = End::new(clock, wires.far, FAR);
        let port = service.first().map_or(0, SocketAddr::port);
        let listening = listen(&mut far.sockets, port);
        Self {
            listener,
            service,
            port,
            near,
            far,
            listening,
            clients: Vec::new(),
            servers: Vec::new(),
            next_port: FIRST_PORT,
        }
    }

    fn accept(&mut self) {
        while self.clients.len() < MAX_CONNECTIONS {
            let client = match self.listener.accept() {
                Ok((client, _)) => client,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Out of descriptors, most likely: who waits is accepted a little later.
                Err(_) => return std::thread::sleep(NO_ROOM),
            };
            // Nagle's algorithm is for the client and the service, not for what lies between.
            if client.set_nonblocking(true).and_then(|()| client.set_nodelay(true)).is_err() {
                continue;
            }
            let own = (NEAR, self.free_port());
            let mut socket = new_socket();
            if socket.connect(self.near.interface.context(), (FAR, self.port), own).is_ok() {
                let handle = self.near.sockets.add(socket);
                self.clients.push(Splice::new(handle, client));
            }
        }
    }

    /// A port that no connection has.
    fn free_port(&mut self) -> u16 {
        let has = |socket: &AnySocket<'_>, port: u16| match socket {
            AnySocket::Tcp(socket) => socket.local_endpoint().is_some_and(|own| own.port == port),
            AnySocket::Udp(_) => false,
        };
        let sockets = &self.near.sockets;
        free_port(&mut self.next_port, |port| sockets.iter().any(|(_, socket)| has(socket, port)))
    }

    /// Takes what has come at the far end. Each packet may open a connection, after which another socket
    /// listens.
    fn receive_far(&mut self, clock: &Clock) {
        let (listening, servers, port) = (&mut self.listening, &mut self.servers, self.port);
        self.far.receive(clock, |sockets| {
            if sockets.get::<Socket<'_>>(*listening).state() != State::Listen {
                servers.push(Splice::alone(*listening));
                *listening = listen(sockets, port);
            }
        });
    }

    /// Connects to the service for connections that have just been established, or that it refused at another
    /// of its addresses.
    fn dial(&mut self) {
        for splice in &mut self.servers {
            let socket = self.far.sockets.get_mut::<Socket<'_>>(splice.handle);
            match socket.state() {
                State::Established | State::CloseWait
                    if splice.is_alone() && !splice.dial(&self.service, begin) =>
                {
                    socket.abort();
                }
                // Reset before it was established: smoltcp would have it listen again.
                State::Listen => socket.abort(),
                _ => {}
            }
        }
    }
}

impl Relay for Streams {
    fn ends(&mut self) -> [&mut End; 2] {
        [&mut self.near, &mut self.far]
    }

    fn awaited<'a>(&'a self, polls: &mut Vec<PollFd<'a>>) {
        let accepts = self.clients.len() < MAX_CONNECTIONS;
        let flags = if accepts { PollFlags::IN } else { PollFlags::empty() };
        polls.push(PollFd::from_borrowed_fd(self.listener.as_fd(), flags));
        for (splices, end) in [(&self.clients, &self.near), (&self.servers, &self.far)] {
            for splice in splices {
                if let Some((stream, flags)) = splice.awaited(end.sockets.get(splice.handle)) {
                    polls.push(PollFd::from_borrowed_fd(stream.as_fd(), flags));
                }
            }
        }
    }

    fn ready(&mut self, events: &[PollFlags]) {
        let Some((listener, mut events)) = events.split_first() else { return };
        for (splices, end) in [(&mut self.clients, &self.near), (&mut self.servers, &self.far)] {
            for splice in splices {
                // Nothing has changed since they were awaited, so that the same ones are.
                if splice.awaited(end.sockets.get(splice.handle)).is_some()
                    && let Some((event, rest)) = events.split_first()
                {
                    splice.ready(*event);
                    events = rest;
                }
            }
        }
        if !listener.is_empty() {
            self.accept();
        }
    }

    fn turn(&mut self, clock: &Clock) {
        self.near.receive(clock, |_| ());
        self.receive_far(clock);
        self.dial();
        for (splices, end) in [(&mut self.clients, &mut self.near), (&mut self.servers, &mut self.far)] {
            for splice in &mut *splices {
                splice.pass(end.sockets.get_mut(splice.handle));
            }
            splices.retain(|splice| {
                let over = splice.is_over(end.sockets.get(splice.handle));
                if over {
                    end.sockets.remove(splice.handle);
                }
                !over
            });
        }
    }
}

fn new_socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_congestion_control(CongestionControl::Cubic);
    socket.set_nagle_enabled(false);
    socket.set_timeout(Some(PATIENCE));
    socket.set_keep_alive(Some(KEEP_ALIVE));
    socket
}

/// A socket that takes the next connection.
fn listen(sockets: &mut SocketSet<'static>, port: u16) -> SocketHandle {
    let mut socket = new_socket();
    // It can only fail for port 0, at which nobody can be reached either.
    let _ = socket.listen((FAR, port));
    sockets.add(socket)
}

/// Begins to connect to the service.
fn begin(to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}
