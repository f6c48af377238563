use super::*;
use longwire_packet::Handle;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const KEY: &str = "000102030405060708090a0b0c0d0e0f";

/// Addresses of this test and process: other tests have others.
fn address(test: u8, port: u16) -> SocketAddr {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, test, high, low], port))
}

fn open(name: &str, (listen, peer): (SocketAddr, SocketAddr)) -> TunnelPort {
    TunnelPort::open(name, (listen, peer), Key::read(KEY).unwrap()).unwrap()
}

struct Pair {
    pool: Pool,
    ports: [TunnelPort; 2],
}

impl Pair {
    fn connected(test: u8) -> Self {
        let (one, two) = (address(test, 7000), address(test, 7001));
        let ports = [open("one", (one, two)), open("two", (two, one))];
        let mut pair = Self { pool: Pool::new(4 << 20).unwrap(), ports };
        pair.until(|pair| pair.ports.iter().all(|port| port.end.is_connected()));
        pair
    }

    /// Polls both ends until something holds, and frees what comes.
    fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !holds(self) {
            assert!(Instant::now() < end, "it takes too long");
            for at in 0..2 {
                for handle in self.receive(at) {
                    self.pool.free(handle);
                }
            }
            std::thread::yield_now();
        }
    }

    fn receive(&mut self, at: usize) -> Vec<Handle> {
        let mut batch = Batch::new();
        _ = self.ports[at].receive(&mut self.pool, monotonic(), &mut batch);
        batch.as_slice().to_vec()
    }

    fn receive_some(&mut self, at: usize) -> Vec<Handle> {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let came = self.receive(at);
            if !came.is_empty() {
                return came;
            }
            assert!(Instant::now() < end, "nothing comes");
        }
    }

    /// Sends frames that left at `leave`.
    fn send(&mut self, at: usize, leave: u64, frames: &[&[u8]]) -> Result<(), PortError> {
        let mut batch = Batch::new();
        for frame in frames {
            let handle = self.pool.insert(frame).unwrap();
            self.pool.meta_mut(handle).set_leave(leave);
            batch.push(handle);
        }
        self.ports[at].transmit(&mut self.pool, &batch)
    }
}

#[test]
fn a_frame_arrives_at_the_time_at_which_it_left() {
    let mut pair = Pair::connected(50);
    let leave = monotonic().0 - 3_000_000;
    let long = vec![7; 9000];
    pair.send(0, leave, &[&[1; 60], &long]).unwrap();
    let mut came = Vec::new();
    while came.len() < 2 {
        came.extend(pair.receive_some(1));
    }
    assert_eq!((pair.pool.data(came[0]), pair.pool.data(came[1])), (&[1; 60][..], &long[..]));
    let error = pair.ports[1].underlay().unwrap().clock_error.unwrap().0;
    for &handle in &came {
        let arrival = pair.pool.meta(handle).arrival;
        assert!(arrival.abs_diff(leave) <= error, "{arrival} is not {leave} within {error}");
        pair.pool.free(handle);
    }
    let (out, in_) = (pair.ports[0].stats(), pair.ports[1].stats());
    assert_eq!((out.out_frames, out.out_bytes, in_.in_frames, in_.in_bytes), (2, 9060, 2, 9060));
    assert_eq!((in_.in_bad, in_.in_missed, out.out_full, pair.pool.live()), (0, 0, 0, 0));
}

#[test]
fn frames_of_the_future_arrive_when_they_come() {
    let mut pair = Pair::connected(51);
    pair.send(0, monotonic().0 + 1_000_000_000, &[&[1; 60]]).unwrap();
    let handle = pair.receive_some(1)[0];
    assert!(pair.pool.meta(handle).arrival <= monotonic().0);
}

#[test]
fn what_can_not_be_carried_is_counted() {
    let mut pair = Pair::connected(52);
    let longest = vec![7; 65_507 - OVERHEAD];
    let longer = vec![7; 65_508 - OVERHEAD];
    pair.send(0, 1, &[&longer, &longest]).unwrap();
    let came = pair.receive_some(1);
    assert_eq!(pair.pool.data(came[0]).len(), longest.len());
    let stats = pair.ports[0].stats();
    assert_eq!((stats.out_frames, stats.out_oversize), (1, 1));
}

/// A program that took the place of the peer.
#[test]
fn strangers_at_the_address_of_the_peer_are_counted() {
    let Pair { mut pool, ports: [mut here, there] } = Pair::connected(53);
    drop(there);
    let stranger = UdpSocket::bind(address(53, 7001)).unwrap();
    let sent =
        [&b""[..], b"LT", &[0; 1500], &[b'L', b'T', VERSION, 2, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 1, 9]];
    for message in sent {
        stranger.send_to(message, address(53, 7000)).unwrap();
    }
    let end = Instant::now() + Duration::from_secs(20);
    while here.stats().in_bad < sent.len() as u64 {
        assert!(Instant::now() < end, "{:?}", here.stats());
        let mut batch = Batch::new();
        _ = here.receive(&mut pool, monotonic(), &mut batch);
        assert!(batch.is_empty());
    }
    let underlay = here.underlay().unwrap();
    assert_eq!((underlay.malformed, underlay.other_session), (3, 1));
}

/// Without a peer, frames are counted as for a port that is down.
#[test]
fn without_a_peer_it_is_down() {
    let addresses = (address(54, 7000), address(54, 7001));
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut port = open("far", addresses);
    let mut batch = Batch::new();
    let fault = port.receive(&mut pool, monotonic(), &mut batch).unwrap_err();
    let wanted = format!("port far: its peer {} does not answer", addresses.1);
    assert!(fault.to_string().starts_with(&wanted), "{fault}");
    batch.push(pool.insert(&[1; 60]).unwrap());
    assert!(port.transmit(&mut pool, &batch).is_err());
    assert_eq!((port.stats().out_down, port.stats().out_frames, pool.live()), (1, 0, 0));
}

#[test]
fn another_version_at_the_peer_is_named_with_both() {
    let addresses = (address(55, 7000), address(55, 7001));
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut port = open("far", addresses);
    let other = UdpSocket::bind(addresses.1).unwrap();
    let signed = [b'L', b'T', VERSION + 1, 1, 0, 0, 0, 0];
    let tag = Key::read(KEY).unwrap().derive(&[b"LWT hello"]).tag(&signed);
    other.send_to(&[&signed[..], &tag].concat(), addresses.0).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let wanted = format!("speaks version {} of the tunnel protocol, this end version {VERSION}", VERSION + 1);
    loop {
        let fault = port.receive(&mut pool, monotonic(), &mut Batch::new()).unwrap_err().to_string();
        if fault.contains(&wanted) {
            return;
        }
        assert!(Instant::now() < end, "{fault}");
    }
}
