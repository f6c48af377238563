//! Relays over two ports that are joined by a thread in the place of the engine: it may lose packets.

use longwire_block::{Dice, Port};
use longwire_packet::{Batch, Pool};
use longwire_run::stack::{MAX_CONNECTIONS, Stack, StackPort, Wires};
use longwire_units::Nanos;
use rustix::net::sockopt::set_socket_linger;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// What carries packets between both ports, until dropped.
struct Link {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Loses `lost` packets of a thousand, at random.
    fn start(lost: u64) -> (Self, Wires) {
        let (mut near_port, near) = StackPort::pair("near", MACS[0], MACS[1]).unwrap();
        let (mut far_port, far) = StackPort::pair("far", MACS[1], MACS[0]).unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let mut pool = Pool::new(8 << 20).unwrap();
            let (mut dice, mut batch, mut kept) = (Dice::named(1, "link"), Batch::new(), Batch::new());
            while !end.load(Ordering::Relaxed) {
                let mut carry = |from: &mut StackPort, to: &mut StackPort| {
                    carry(from, to, &mut pool, (&mut batch, &mut kept), (&mut dice, lost))
                };
                let there = carry(&mut near_port, &mut far_port);
                let back = carry(&mut far_port, &mut near_port);
                let moved = there || back;
                if !moved {
                    std::thread::yield_now();
                }
            }
        });
        (Self { ends, thread: Some(thread) }, Wires { near, far })
    }
}

fn carry(
    from: &mut StackPort,
    to: &mut StackPort,
    pool: &mut Pool,
    (batch, kept): (&mut Batch, &mut Batch),
    (dice, lost): (&mut Dice, u64),
) -> bool {
    batch.clear();
    kept.clear();
    from.receive(pool, Nanos(1), batch).unwrap();
    for &packet in batch.as_slice() {
        if dice.below(1000) < lost {
            pool.free(packet);
        } else {
            kept.push(packet);
        }
    }
    if !kept.is_empty() {
        to.transmit(pool, kept).unwrap();
    }
    !batch.is_empty()
}

impl Drop for Link {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A service, and the address of a relay to it.
struct Set {
    service: TcpListener,
    at: SocketAddr,
    _stack: Stack,
    _link: Link,
}

impl Set {
    fn new(lost: u64) -> Self {
        let (link, wires) = Link::start(lost);
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let stack = Stack::tcp(wires, listener, vec![service.local_addr().unwrap()]).unwrap();
        Self { service, at, _stack: stack, _link: link }
    }

    /// Both ends of a connection.
    fn connection(&self) -> (TcpStream, TcpStream) {
        (TcpStream::connect(self.at).unwrap(), self.service.accept().unwrap().0)
    }
}

/// Has the kernel reset a connection.
fn reset(stream: TcpStream) {
    set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn each_direction_ends_by_itself() {
    let set = Set::new(0);
    let (mut client, mut server) = set.connection();
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    server.read_to_string(&mut text).unwrap();
    assert_eq!(text, "question", "one direction has ended, the other is open");
    server.write_all(b"answer").unwrap();
    drop(server);
    text.clear();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "answer");
}

#[test]
fn a_reset_crosses_in_both_directions() {
    let set = Set::new(0);
    for from_client in [true, false] {
        let (client, server) = set.connection();
        let (gone, mut left) = if from_client { (client, server) } else { (server, client) };
        // Something has crossed, so that the connection is open all along.
        (&gone).write_all(b"x").unwrap();
        left.read_exact(&mut [0]).unwrap();
        reset(gone);
        assert_eq!(left.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn where_nobody_listens_clients_are_reset() {
    let (_link, wires) = Link::start(0);
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let _stack = Stack::tcp(wires, listener, vec![dead]).unwrap();
    for _ in 0..3 {
        let error = TcpStream::connect(at).unwrap().read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn an_address_that_refuses_is_followed_by_the_next() {
    let (_link, wires) = Link::start(0);
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = service.local_addr().unwrap();
    // The loopback has other addresses, at which nobody listens.
    let dead = SocketAddr::from(([127, 0, 0, 2], to.port()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let _stack = Stack::tcp(wires, listener, vec![dead, to]).unwrap();
    let mut client = TcpStream::connect(at).unwrap();
    client.write_all(b"x").unwrap();
    service.accept().unwrap().0.read_exact(&mut [0]).unwrap();
}

/// More connections than there is room for, one after the other and at once.
#[test]
fn connections_come_and_go() {
    let set = Set::new(0);
    for round in 0..MAX_CONNECTIONS as u32 + 50 {
        let (mut client, mut server) = set.connection();
        client.write_all(&round.to_be_bytes()).unwrap();
        let mut number = [0; 4];
        server.read_exact(&mut number).unwrap();
        assert_eq!(u32::from_be_bytes(number), round);
        drop(client);
        assert_eq!(server.read(&mut number).unwrap(), 0);
    }
    // Who comes last waits until somebody leaves.
    let mut clients: Vec<_> = (0..=MAX_CONNECTIONS).map(|_| TcpStream::connect(set.at).unwrap()).collect();
    let servers: Vec<_> = (0..MAX_CONNECTIONS).map(|_| set.service.accept().unwrap().0).collect();
    let mut last = clients.pop().unwrap();
    last.write_all(b"last").unwrap();
    drop((clients, servers));
    let mut text = [0; 4];
    set.service.accept().unwrap().0.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"last");
}

/// A megabyte each way, of which one packet in fifty is lost.
#[test]
fn what_is_lost_is_sent_again() {
    for lost in [0, 20] {
        let set = Set::new(lost);
        let (mut client, mut server) = set.connection();
        let sent: Vec<u8> = (0..1_000_000u32).map(|i| (i / 7) as u8).collect();
        std::thread::scope(|scope| {
            for end in [client.try_clone().unwrap(), server.try_clone().unwrap()] {
                let sent = &sent;
                scope.spawn(move || (&end).write_all(sent).unwrap());
            }
            for end in [&mut client, &mut server] {
                let mut received = vec![0; sent.len()];
                end.read_exact(&mut received).unwrap();
                assert!(received == sent);
            }
        });
    }
}

/// Bytes of TCP that a frame carries.
fn carried(frame: &[u8]) -> usize {
    let (ip, tcp) = frame[14..].split_at(20);
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    total - ip.len() - usize::from(tcp[12] >> 4) * 4
}

/// Both ports, between which the test itself carries packets.
struct Hand {
    ports: [StackPort; 2],
    pool: Pool,
}

impl Hand {
    /// Takes each end's packets; `each` keeps or loses them, by end and bytes of TCP.
    fn take(&mut self, mut each: impl FnMut(usize, usize) -> bool) -> [Batch; 2] {
        let mut kept = [Batch::new(), Batch::new()];
        for (end, port) in self.ports.iter_mut().enumerate() {
            let mut came = Batch::new();
            port.receive(&mut self.pool, Nanos(1), &mut came).unwrap();
            for &packet in came.as_slice() {
                if each(end, carried(self.pool.data(packet))) {
                    kept[end].push(packet);
                } else {
                    self.pool.free(packet);
                }
            }
        }
        std::thread::yield_now();
        kept
    }

    /// Gives each end what the other has sent.
    fn give(&mut self, [from_near, from_far]: [Batch; 2]) {
        self.ports[0].transmit(&mut self.pool, &from_far).unwrap();
        self.ports[1].transmit(&mut self.pool, &from_near).unwrap();
    }

    fn carry(&mut self) {
        let packets = self.take(|_, _| true);
        self.give(packets);
    }

    /// Lets this many bytes of each end cross, then loses everything until both have sent some of it again.
    fn cross(&mut self, length: usize) {
        let mut sent = [0; 2];
        let mut crossing = [Batch::new(), Batch::new()];
        while sent.iter().any(|&sent| sent < length) {
            let packets = self.take(|end, bytes| {
                sent[end] += bytes;
                bytes > 0
            });
            for (all, some) in crossing.iter_mut().zip(packets) {
                some.as_slice().iter().for_each(|&packet| all.push(packet));
            }
        }
        self.give(crossing);
        let mut again = [0; 2];
        while again.contains(&0) {
            self.take(|end, bytes| {
                again[end] += bytes;
                false
            });
        }
    }
}

/// Data crosses, and all acknowledgements of it are lost: each end goes back to what the other has received.
#[test]
fn both_ends_may_go_back() {
    /// More than a packet, less than may be sent at the start.
    const LENGTH: usize = 2000;
    let (near_port, near) = StackPort::pair("near", MACS[0], MACS[1]).unwrap();
    let (far_port, far) = StackPort::pair("far", MACS[1], MACS[0]).unwrap();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let _stack = Stack::tcp(Wires { near, far }, listener, vec![service.local_addr().unwrap()]).unwrap();
    let mut hand = Hand { ports: [near_port, far_port], pool: Pool::new(8 << 20).unwrap() };

    let client = TcpStream::connect(at).unwrap();
    service.set_nonblocking(true).unwrap();
    let server = loop {
        hand.carry();
        if let Ok((server, _)) = service.accept() {
            break server;
        }
    };
    (&client).write_all(&[b'q'; LENGTH]).unwrap();
    (&server).write_all(&[b'a'; LENGTH]).unwrap();
    hand.cross(LENGTH);

    // From here on nothing is lost: whoever sends again is answered, and sends what follows.
    (&client).write_all(b"q").unwrap();
    (&server).write_all(b"a").unwrap();
    for (mut stream, byte) in [(&client, b'a'), (&server, b'q')] {
        stream.set_nonblocking(true).unwrap();
        let (mut text, mut bytes) = (Vec::new(), [0; LENGTH]);
        let start = std::time::Instant::now();
        while text.len() <= LENGTH {
            assert!(start.elapsed() < Duration::from_secs(60), "nothing moves");
            hand.carry();
            match stream.read(&mut bytes) {
                Ok(count) => text.extend_from_slice(&bytes[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        assert_eq!(text, [byte; LENGTH + 1]);
    }
}

/// A reader that stops takes no more memory than there is for it.
#[test]
fn a_stopped_reader_stops_the_writer() {
    let set = Set::new(0);
    let (mut client, mut server) = set.connection();
    client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let chunk = vec![7; 1 << 16];
    let mut sent = 0;
    let stopped = loop {
        match client.write(&chunk) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
        assert!(sent < 64 << 20, "nothing stops it");
    };
    assert_eq!(stopped.kind(), ErrorKind::WouldBlock);
    client.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    server.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), sent);
}

#[test]
fn datagrams_of_any_length_find_their_way_back() {
    let (_link, wires) = Link::start(0);
    let service = UdpSocket::bind("127.0.0.1:0").unwrap();
    let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = relay.local_addr().unwrap();
    let _stack = Stack::udp(wires, relay, service.local_addr().unwrap()).unwrap();
    let clients = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut buffer = vec![0; 65_535];
    for length in [0, 1, 1472, 1473, 20_000, 65_507] {
        for (client, byte) in clients.iter().zip([b'a', b'b']) {
            client.send_to(&vec![byte; length], at).unwrap();
            let (got, from) = service.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[..got], vec![byte; length]);
            service.send_to(&buffer[..got], from).unwrap();
            let (got, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..got], from), (&vec![byte; length][..], at));
        }
    }
}
