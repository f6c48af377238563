//! Relays from a socket to a service elsewhere: TCP connections and UDP datagrams.
//!
//! A relay accepts in one network and connects in another, so that its own packets cross the path between.
//! What exceeds its limits is closed or dropped; nothing is queued.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use crate::outside::OutsideSockets;
use crate::socket_option::reset_on_close;
use crate::splicing::pending;
use crate::stoppable_thread::{StoppableThread, readable};
use crate::{Namespace, Result};

/// Most connections of a relay; further ones are closed at once.
const MAX_CONNECTIONS: usize = 512;
/// Most senders of datagrams; beyond, the one silent for longest is forgotten.
const MAX_SENDERS: usize = 512;
/// Time after which a silent sender of datagrams is forgotten (RFC 4787, section 4.3).
const SILENCE: Duration = Duration::from_secs(120);
/// Time limit for connecting.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause in accepting after a failure.
const PAUSE: Duration = Duration::from_millis(50);
/// Largest datagram.
const LARGEST: usize = 65_535;
/// Most datagrams of a socket that are passed on before it is another's turn.
const TURN: usize = 64;

/// The network in which a relay opens its sockets.
#[derive(Debug)]
pub enum SocketNetwork {
    /// In the network of this process.
    Here,
    /// In a namespace.
    Inside(Namespace),
    /// In this process's network before it entered a user namespace.
    Outside(OutsideSockets),
}

impl SocketNetwork {
    /// In a namespace, which is held open.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub fn inside(namespace: &Namespace) -> Result<Self> {
        Ok(Self::Inside(namespace.again()?))
    }

    fn socket(&self, to: SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let make = || Ok(socket_with(family, kind, SocketFlags::CLOEXEC, None)?);
        match self {
            Self::Here => make(),
            Self::Inside(namespace) => namespace.run(make).map_err(io::Error::other)?,
            Self::Outside(outside) => outside.socket(family, kind),
        }
    }

    /// A socket for datagrams to and from one address.
    fn udp(&self, to: SocketAddr) -> io::Result<UdpSocket> {
        let socket = UdpSocket::from(self.socket(to, SocketType::DGRAM)?);
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }
}

/// A relay that runs until dropped.
#[derive(Debug)]
pub struct PortRelay {
    _thread: StoppableThread,
}

impl PortRelay {
    /// Files that a relay of connections has open at most: four for each.
    pub const MOST_FILES: u64 = 4 * MAX_CONNECTIONS as u64;

    /// Relays connections to the first of `to` that accepts them.
    ///
    /// # Errors
    /// If the system refuses a thread or a descriptor.
    pub fn tcp(listener: TcpListener, dial: Arc<SocketNetwork>, to: Vec<SocketAddr>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let relay = Arc::new(Streams { dial, to, open: Mutex::default() });
        Self::start("relay-tcp", move |stop| accept(&relay, &listener, &stop))
    }

    /// Relays datagrams to the first of `to` at which somebody listens, and replies to their senders.
    ///
    /// # Errors
    /// If the system refuses a thread or a descriptor.
    pub fn udp(socket: UdpSocket, dial: Arc<SocketNetwork>, to: Vec<SocketAddr>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let mut relay = Datagrams { socket, dial, to, senders: Vec::new() };
        Self::start("relay-udp", move |stop| relay.run(&stop))
    }

    fn start(name: &str, run: impl FnOnce(OwnedFd) + Send + 'static) -> io::Result<Self> {
        Ok(Self { _thread: StoppableThread::start(name, run)? })
    }
}

/// Connections, each with two threads: one per direction.
struct Streams {
    dial: Arc<SocketNetwork>,
    to: Vec<SocketAddr>,
    /// Both ends of each connection, to end it.
    open: Mutex<OpenStreams>,
}

#[derive(Default)]
struct OpenStreams {
    next: u64,
    ends: HashMap<u64, Vec<TcpStream>>,
}

impl Streams {
    fn open(&self) -> MutexGuard<'_, OpenStreams> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection; none if there are too many.
    fn enter(&self, client: &TcpStream) -> Option<u64> {
        let mut open = self.open();
        if open.ends.len() >= MAX_CONNECTIONS {
            return None;
        }
        let id = open.next;
        open.next += 1;
        open.ends.insert(id, vec![client.try_clone().ok()?]);
        Some(id)
    }

    /// Serves a connection to its end. However it ends, both sides are closed.
    fn serve(&self, id: u64, client: &TcpStream) {
        if let Ok(server) = self.connect(id) {
            // Relays must not add the delay of Nagle's algorithm.
            if client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).is_ok() {
                std::thread::scope(|scope| {
                    let back = std::thread::Builder::new().name("relay-back".to_owned());
                    if back.spawn_scoped(scope, || copy(&server, client)).is_ok() {
                        copy(client, &server);
                    }
                });
            }
        } else {
            // Nobody listens there: reset the client's connection.
            let _ = reset_on_close(client);
        }
        self.open().ends.remove(&id);
    }

    fn connect(&self, id: u64) -> io::Result<TcpStream> {
        let mut failed = io::ErrorKind::AddrNotAvailable.into();
        for to in &self.to {
            let server = TcpStream::from(self.dial.socket(*to, SocketType::STREAM)?);
            // On Linux it also limits connecting.
            server.set_write_timeout(Some(PATIENCE))?;
            match self.open().ends.get_mut(&id) {
                Some(ends) => ends.push(server.try_clone()?),
                None => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
            match connect(&server, to) {
                Ok(()) => {
                    server.set_write_timeout(None)?;
                    return Ok(server);
                }
                Err(error) => failed = error.into(),
            }
        }
        Err(failed)
    }

    /// Ends all connections.
    fn end(&self) {
        for end in std::mem::take(&mut self.open().ends).into_values().flatten() {
            // It may already have ended.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// Copies one direction to its end, and closes the other side's.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    // The end may already be closed.
    if io::copy(&mut from, &mut to).is_ok() {
        let _ = to.shutdown(Shutdown::Write);
    } else {
        // A connection that was reset ends in both directions, and so does the other: by a reset, unless
        // that would lose bytes.
        for end in [from, to] {
            let has_all = pending(end).is_ok_and(|bytes| bytes.unacknowledged == 0);
            let is_reset = has_all && reset_on_close(end).is_ok();
            let _ = end.shutdown(if is_reset { Shutdown::Read } else { Shutdown::Both });
        }
    }
}

fn accept(relay: &Arc<Streams>, listener: &TcpListener, stop: &OwnedFd) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    loop {
        if readable([stop.as_fd(), listener.as_fd()], None)[0] {
            break;
        }
        loop {
            let client = match listener.accept() {
                Ok((client, _)) => client,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    // Probably out of descriptors: accept a little later.
                    readable([stop.as_fd()], Some(PAUSE));
                    break;
                }
            };
            threads.retain(|thread| !thread.is_finished());
            // Accepted sockets don't inherit it on Linux; set here to be safe.
            let Some(id) = client.set_nonblocking(false).ok().and_then(|()| relay.enter(&client)) else {
                continue;
            };
            let served = Arc::clone(relay);
            let started =
                std::thread::Builder::new().name("relay".to_owned()).spawn(move || served.serve(id, &client));
            match started {
                Ok(thread) => threads.push(thread),
                Err(_) => drop(relay.open().ends.remove(&id)),
            }
        }
    }
    relay.end();
    for thread in threads {
        let _ = thread.join();
    }
}

/// Datagrams, with a socket for each sender, so that replies reach it.
struct Datagrams {
    socket: UdpSocket,
    dial: Arc<SocketNetwork>,
    to: Vec<SocketAddr>,
    senders: Vec<DatagramSender>,
}

struct DatagramSender {
    address: SocketAddr,
    socket: UdpSocket,
    heard: Instant,
    /// The place of the address that its datagrams go to.
    place: usize,
    /// Until somebody has answered: the last datagram, which goes to the next address if this one refuses it.
    asked: Option<Vec<u8>>,
    /// How many addresses have not refused it.
    left: usize,
}

impl Datagrams {
    fn run(&mut self, stop: &OwnedFd) {
        let mut buffer = vec![0; LARGEST];
        loop {
            let ready = self.wait(stop);
            if ready[0] {
                return;
            }
            for (sender, ready) in self.senders.iter_mut().zip(&ready[2..]) {
                if *ready && sender.answer(&self.socket, &mut buffer).is_err() {
                    sender.ask_next(&self.dial, &self.to);
                }
            }
            if ready[1] {
                self.pass_on(&mut buffer);
            }
            let now = Instant::now();
            self.senders.retain(|sender| now.duration_since(sender.heard) < SILENCE);
        }
    }

    /// Which of stop, the relay's socket and the senders' are readable.
    fn wait(&self, stop: &OwnedFd) -> Vec<bool> {
        let fixed = [stop.as_fd(), self.socket.as_fd()];
        let all = fixed.into_iter().chain(self.senders.iter().map(|sender| sender.socket.as_fd()));
        readable(all, (!self.senders.is_empty()).then_some(SILENCE))
    }

    fn pass_on(&mut self, buffer: &mut [u8]) {
        for _ in 0..TURN {
            let Ok((length, from)) = self.socket.recv_from(buffer) else { return };
            let known = self.senders.iter().position(|sender| sender.address == from);
            let Some(at) = known.or_else(|| self.enter(from)) else { continue };
            let sender = &mut self.senders[at];
            sender.heard = Instant::now();
            if let Some(asked) = &mut sender.asked {
                asked.clear();
                asked.extend_from_slice(&buffer[..length]);
                sender.left = self.to.len();
            }
            // A datagram that can't be sent (nobody listens, too long) is lost, as in a network.
            if sender.socket.send(&buffer[..length]).is_err_and(|error| is_refusal(&error)) {
                sender.ask_next(&self.dial, &self.to);
            }
        }
    }

    fn enter(&mut self, address: SocketAddr) -> Option<usize> {
        let socket = self.dial.udp(*self.to.first()?).ok()?;
        if self.senders.len() >= MAX_SENDERS {
            let oldest = (0..self.senders.len()).min_by_key(|&at| self.senders[at].heard)?;
            self.senders.swap_remove(oldest);
        }
        let asked = (self.to.len() > 1).then(Vec::new);
        let heard = Instant::now();
        self.senders.push(DatagramSender { address, socket, heard, place: 0, asked, left: 0 });
        Some(self.senders.len() - 1)
    }
}

impl DatagramSender {
    /// Passes answers on; an error says that nobody listens.
    fn answer(&mut self, through: &UdpSocket, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..TURN {
            match self.socket.recv(buffer) {
                Ok(length) => {
                    (self.heard, self.asked) = (Instant::now(), None);
                    let _ = through.send_to(&buffer[..length], self.address);
                }
                Err(error) if is_refusal(&error) => return Err(error),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Sends the last datagram to the next address, unless all have refused it.
    fn ask_next(&mut self, dial: &SocketNetwork, to: &[SocketAddr]) {
        let Some(asked) = self.asked.as_ref().filter(|_| self.left > 1) else { return };
        self.left -= 1;
        self.place = (self.place + 1) % to.len();
        if let Ok(socket) = dial.udp(to[self.place]) {
            let _ = socket.send(asked);
            self.socket = socket;
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        (listener, at)
    }

    #[test]
    fn both_directions_and_each_end_pass() {
        let (server, to) = listener();
        let (listener, at) = listener();
        let relay = PortRelay::tcp(listener, Arc::new(SocketNetwork::Here), vec![to]).unwrap();
        let mut client = TcpStream::connect(at).unwrap();
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let (mut served, _) = server.accept().unwrap();
        let mut text = String::new();
        served.read_to_string(&mut text).unwrap();
        assert_eq!(text, "question", "the end of one direction is passed on, and the other still open");
        served.write_all(b"answer").unwrap();
        drop(served);
        text.clear();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "answer");
        // A reset is passed on.
        let mut reset = TcpStream::connect(at).unwrap();
        reset_on_close(&server.accept().unwrap().0).unwrap();
        assert_eq!(reset.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        // An open connection ends with the relay.
        let mut idle = TcpStream::connect(at).unwrap();
        let kept = server.accept().unwrap();
        drop(relay);
        assert_eq!(idle.read(&mut [0]).unwrap_or(0), 0);
        drop(kept);
    }

    #[test]
    fn the_second_address_is_tried_and_none_resets() {
        let (dead, refused) = listener();
        drop(dead);
        let (server, to) = listener();
        let (first, at) = listener();
        let _relay = PortRelay::tcp(first, Arc::new(SocketNetwork::Here), vec![refused, to]).unwrap();
        let _client = TcpStream::connect(at).unwrap();
        server.accept().unwrap();
        let (second, at) = listener();
        let _relay = PortRelay::tcp(second, Arc::new(SocketNetwork::Here), vec![refused]).unwrap();
        let error = TcpStream::connect(at).unwrap().read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn datagrams_go_to_the_address_at_which_somebody_listens() {
        let [server, other, relay] = [0; 3].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (to, refusing, at) =
            (server.local_addr().unwrap(), other.local_addr(), relay.local_addr().unwrap());
        drop(other);
        let _relay =
            PortRelay::udp(relay, Arc::new(SocketNetwork::Here), vec![refusing.unwrap(), to]).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        server.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut buffer = [0; 16];
        client.send_to(b"first", at).unwrap();
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"first");
        server.send_to(b"answer", from).unwrap();
        assert_eq!(client.recv(&mut buffer).unwrap(), 6);
        client.send_to(b"next", at).unwrap();
        assert_eq!(server.recv_from(&mut buffer).unwrap(), (4, from), "it stays there");
    }

    #[test]
    fn answers_go_to_whoever_asked() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = relay.local_addr().unwrap();
        let _relay =
            PortRelay::udp(relay, Arc::new(SocketNetwork::Here), vec![server.local_addr().unwrap()]).unwrap();
        let clients = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut buffer = [0; 16];
        for (client, text) in clients.iter().zip([b"a", b"b"]) {
            client.send_to(text, at).unwrap();
        }
        for _ in &clients {
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            server.send_to(&[&buffer[..length], b"!"].concat(), from).unwrap();
        }
        for (client, text) in clients.iter().zip([b"a!", b"b!"]) {
            let (length, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], from), (&text[..], at));
        }
    }

    #[test]
    fn a_flood_leaves_others_their_turn() {
        let [server, socket, client] = [0; 3].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (to, at) = (vec![server.local_addr().unwrap()], socket.local_addr().unwrap());
        for socket in [&server, &socket, &client] {
            socket.set_nonblocking(true).unwrap();
        }
        let dial = Arc::new(SocketNetwork::Here);
        let mut relay = Datagrams { socket, dial, to, senders: Vec::new() };
        let mut buffer = [0; 16];
        for _ in 0..=TURN {
            client.send_to(b"question", at).unwrap();
        }
        relay.pass_on(&mut buffer);
        let (_, from) = server.recv_from(&mut buffer).unwrap();
        let others = std::iter::from_fn(|| server.recv(&mut buffer).ok()).count();
        assert_eq!(others + 1, TURN);
        for _ in 0..=TURN {
            server.send_to(b"answer", from).unwrap();
        }
        relay.senders[0].answer(&relay.socket, &mut buffer).unwrap();
        assert_eq!(std::iter::from_fn(|| client.recv(&mut buffer).ok()).count(), TURN);
    }
}
