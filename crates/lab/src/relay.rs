//! A small relay for name queries at the far end of `exec`, for machines whose name server listens only on
//! the loopback, where the link can't reach it.
//!
//! It relays queries and answers without parsing them, with one socket per query, so that answers can't be
//! mixed up.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::stoppable_thread::{StoppableThread, readable};

/// Most pending queries; beyond, the oldest is dropped.
const MAX_QUERIES: usize = 256;
/// Most queries that are taken before it is the answers' turn.
const TURN: usize = 64;
/// Most TCP connections; further ones are closed at once.
const MAX_CONNECTIONS: usize = 32;
/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time limit of a server that others follow: programs ask again after 5 s.
const BEFORE_NEXT: Duration = Duration::from_secs(2);
/// Largest message over UDP: more than RFC 6891, section 6.2.3.
const MAX_MESSAGE: usize = 65_535;

/// Listens by these, and queries `servers` in order from the calling thread's namespace.
pub fn start(udp: UdpSocket, tcp: TcpListener, servers: Vec<SocketAddr>) -> io::Result<StoppableThread> {
    udp.set_nonblocking(true)?;
    tcp.set_nonblocking(true)?;
    let serve = |stop| Service { stop, udp, tcp, servers, queries: Vec::new() }.run();
    StoppableThread::start("names", serve)
}

struct Query {
    socket: UdpSocket,
    client: SocketAddr,
    message: Vec<u8>,
    /// Index of the queried server.
    server: usize,
    deadline: Instant,
}

struct Service {
    stop: OwnedFd,
    udp: UdpSocket,
    tcp: TcpListener,
    servers: Vec<SocketAddr>,
    queries: Vec<Query>,
}

impl Service {
    fn run(&mut self) {
        let connections = Arc::new(());
        let mut buffer = vec![0; MAX_MESSAGE];
        loop {
            let ready = self.wait();
            if ready[0] {
                return;
            }
            if ready[1] {
                self.take_queries(&mut buffer);
            }
            if ready[2] {
                self.take_connections(&connections);
            }
            self.pass_answers(&ready[3..], &mut buffer);
        }
    }

    /// Which of stop, UDP, TCP and the queries' sockets are readable.
    fn wait(&self) -> Vec<bool> {
        let fixed = [self.stop.as_fd(), self.udp.as_fd(), self.tcp.as_fd()];
        let all = fixed.into_iter().chain(self.queries.iter().map(|q| q.socket.as_fd()));
        let first = self.queries.iter().map(|query| query.deadline).min();
        readable(all, first.map(|first| first.saturating_duration_since(Instant::now())))
    }

    fn take_queries(&mut self, buffer: &mut [u8]) {
        for _ in 0..TURN {
            let Ok((n, client)) = self.udp.recv_from(buffer) else { return };
            let message = buffer[..n].to_vec();
            if let Some(query) = self.ask(client, message, 0) {
                if self.queries.len() == MAX_QUERIES {
                    // This shifts the indices of ready ones; reading one that isn't is harmless.
                    self.queries.remove(0);
                }
                self.queries.push(query);
            }
        }
    }

    /// Queries the first server from index `from` on that accepts the query.
    fn ask(&self, client: SocketAddr, message: Vec<u8>, from: usize) -> Option<Query> {
        let (server, socket) =
            (from..self.servers.len()).find_map(|i| Some((i, send_to(self.servers[i], &message).ok()?)))?;
        let deadline = Instant::now() + time_limit(&self.servers, server);
        Some(Query { socket, client, message, server, deadline })
    }

    fn pass_answers(&mut self, ready: &[bool], buffer: &mut [u8]) {
        let now = Instant::now();
        for (i, query) in std::mem::take(&mut self.queries).into_iter().enumerate() {
            let answer =
                if ready.get(i).copied().unwrap_or(false) { query.socket.recv(buffer) } else { Ok(0) };
            match answer {
                Ok(0) if query.deadline > now => self.queries.push(query),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.queries.push(query),
                // Silent, or refused because nobody listens there: perhaps the next one answers.
                Ok(0) | Err(_) => {
                    self.queries.extend(self.ask(query.client, query.message, query.server + 1));
                }
                // A client that is gone needs no answer.
                Ok(n) => drop(self.udp.send_to(&buffer[..n], query.client)),
            }
        }
    }

    /// Serves connections, each of which holds a clone of `connections`.
    fn take_connections(&self, connections: &Arc<()>) {
        while let Ok((client, _)) = self.tcp.accept() {
            if Arc::strong_count(connections) > MAX_CONNECTIONS {
                continue;
            }
            let (servers, counted) = (self.servers.clone(), Arc::clone(connections));
            // However it ends, the client sees its connection close and asks again.
            let _ = std::thread::Builder::new().name("names".to_owned()).spawn(move || {
                let _ = serve(client, &servers);
                drop(counted);
            });
        }
    }
}

/// The time limit of the server at this place.
fn time_limit(servers: &[SocketAddr], place: usize) -> Duration {
    if place + 1 < servers.len() { BEFORE_NEXT } else { PATIENCE }
}

fn send_to(server: SocketAddr, message: &[u8]) -> io::Result<UdpSocket> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    socket.send(message)?;
    Ok(socket)
}

/// Relays messages one by one (RFC 7766: two bytes of length, then the message), until either side ends.
fn serve(mut client: TcpStream, servers: &[SocketAddr]) -> io::Result<()> {
    let connect = |(place, server)| TcpStream::connect_timeout(server, time_limit(servers, place)).ok();
    let mut server = servers.iter().enumerate().find_map(connect).ok_or(io::ErrorKind::NotConnected)?;
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
    }
    // Accepted sockets don't inherit it on Linux; set here to be safe.
    client.set_nonblocking(false)?;
    loop {
        pass_message(&mut client, &mut server)?;
        pass_message(&mut server, &mut client)?;
    }
}

fn pass_message(from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
    let mut length = [0; 2];
    from.read_exact(&mut length)?;
    let mut message = length.to_vec();
    message.resize(2 + usize::from(u16::from_be_bytes(length)), 0);
    from.read_exact(&mut message[2..])?;
    to.write_all(&message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_and_answers_pass_by_udp_and_tcp() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = server.local_addr().unwrap();
        let tcp_server = TcpListener::bind(at).unwrap();
        // Nobody listens on the first one's port: it was reserved and released.
        let dead = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at_relay = udp.local_addr().unwrap();
        let relay = start(udp, TcpListener::bind(at_relay).unwrap(), vec![dead, at]).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.send_to(b"query", at_relay).unwrap();
        let mut buffer = [0; 100];
        let (n, from) = server.recv_from(&mut buffer).unwrap();
        server.send_to(&[&buffer[..n], b" answered"].concat(), from).unwrap();
        let (n, from) = client.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..n], from), (&b"query answered"[..], at_relay));

        let mut client = TcpStream::connect(at_relay).unwrap();
        client.write_all(b"\x00\x03abc").unwrap();
        let (mut upstream, _) = tcp_server.accept().unwrap();
        upstream.read_exact(&mut buffer[..5]).unwrap();
        assert_eq!(&buffer[..5], b"\x00\x03abc");
        upstream.write_all(b"\x00\x01x").unwrap();
        client.read_exact(&mut buffer[..3]).unwrap();
        assert_eq!(&buffer[..3], b"\x00\x01x");
        drop(relay);
        assert!(UdpSocket::bind(at_relay).is_ok(), "the relay has given its port back");
    }

    #[test]
    fn the_second_server_is_asked_if_the_first_is_silent() {
        let [relay, silent, other, client] = [0; 4].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let servers = [&silent, &other].map(|server| server.local_addr().unwrap()).to_vec();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let stop = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let mut service = Service { stop, udp: relay, tcp, servers, queries: Vec::new() };
        let mut query = service.ask(client.local_addr().unwrap(), b"query".to_vec(), 0).unwrap();
        assert!(query.deadline < Instant::now() + PATIENCE / 2, "its client would ask again before");
        query.deadline = Instant::now();
        service.queries.push(query);
        let mut buffer = [0; 100];
        service.pass_answers(&[], &mut buffer);
        assert_eq!(service.queries[0].server, 1);
        let (n, from) = other.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..n], b"query");
        other.send_to(b"answer", from).unwrap();
        let ready = service.wait();
        service.pass_answers(&ready[3..], &mut buffer);
        assert_eq!(client.recv(&mut buffer).unwrap(), 6);
        assert!(service.queries.is_empty());
        // Nobody is left to be asked after the last one.
        let mut query = service.ask(client.local_addr().unwrap(), b"query".to_vec(), 1).unwrap();
        query.deadline = Instant::now();
        service.queries.push(query);
        service.pass_answers(&[], &mut buffer);
        assert!(service.queries.is_empty());
    }

    #[test]
    fn a_flood_of_queries_leaves_answers_their_turn() {
        let [relay, silent, client] = [0; 3].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (at, servers) = (relay.local_addr().unwrap(), vec![silent.local_addr().unwrap()]);
        relay.set_nonblocking(true).unwrap();
        for _ in 0..=TURN {
            client.send_to(b"query", at).unwrap();
        }
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let stop = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let mut service = Service { stop, udp: relay, tcp, servers, queries: Vec::new() };
        service.take_queries(&mut [0; 100]);
        assert_eq!(service.queries.len(), TURN);
    }
}
