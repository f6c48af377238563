//! A router with three ports, and the engine's part: passes packets in, takes the output, and checks
//! conservation.

use etherparse::PacketBuilder;
use longwire_block::{CONSUMED, DropReason, KEPT, Node, Outbox, refusal};
use longwire_packet::{Batch, Gso, Handle, Pool, Train};
use longwire_router::{Classify, InterfaceAddress, Router, RouterConfig, RouterPort};
use longwire_units::Nanos;
use std::net::{Ipv4Addr, Ipv6Addr};

pub const SECOND: u64 = 1_000_000_000;

/// Ports to a control plane have indices from here on, in the order of the router's.
pub const CONTROL: u16 = 100;

/// The outcome of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Out(u16, Vec<u8>),
    Kept,
    Consumed,
    Dropped(DropReason),
}

/// Programs' choices for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    pub mark: u32,
    pub link: Option<u16>,
    pub queue: u8,
}

impl Seen {
    /// Port and frame of a packet that was sent.
    pub fn out(&self) -> (u16, &[u8]) {
        match self {
            Self::Out(port, frame) => (*port, frame),
            other => panic!("a packet went out, not {other:?}"),
        }
    }
}

/// MAC address of the router's port with the index `port`.
pub const fn router_mac(port: u16) -> [u8; 6] {
    [2, 0, 0, 0, 0xff, port as u8]
}

/// MAC address of a host at the port with the index `port`.
pub const fn host_mac(port: u16) -> [u8; 6] {
    [2, 0, 0, 0, 0, port as u8]
}

/// A frame from the host at port 1 to that at port 2.
pub fn udp() -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv4([10, 0, 1, 9], [10, 0, 2, 9], 64);
    let mut frame = Vec::new();
    builder.udp(7, 9).write(&mut frame, &[7; 20]).unwrap();
    frame
}

/// Ports with the indices 1, 2 and 3: 10.0.N.1/24 and fd00:N::1/64, with MTUs of 1500, 1500 and 1280.
pub fn config() -> RouterConfig {
    let port = |place: u16| RouterPort {
        place,
        mac: router_mac(place),
        mtu: if place == 3 { 1280 } else { 1500 },
        v4: vec![InterfaceAddress { address: Ipv4Addr::new(10, 0, place as u8, 1).into(), len: 24 }],
        v6: vec![InterfaceAddress {
            address: Ipv6Addr::new(0xfd00, place, 0, 0, 0, 0, 0, 1).into(),
            len: 64,
        }],
    };
    RouterConfig { ports: (1..=3).map(port).collect(), seed: 5, ..RouterConfig::default() }
}

pub struct Rig<C = longwire_router::IpClassifier> {
    pub router: Router<C>,
    pub pool: Pool,
    /// Programs' choices for each packet sent, in order.
    pub chosen: Vec<Chosen>,
    outbox: Outbox,
    /// Whether there is a control plane.
    control: bool,
    seq: u64,
    taken: u64,
    made: u64,
    gone: u64,
}

impl Rig {
    /// A router that knows the hosts 10.0.N.9 and fd00:N::9.
    pub fn new() -> Self {
        Self::of(config())
    }

    pub fn of(config: RouterConfig) -> Self {
        let control = !config.control.is_empty();
        let mut router = Router::new(config).unwrap();
        for place in 1..=3 {
            assert!(router.set_neighbour(
                place,
                Ipv4Addr::new(10, 0, place as u8, 9).into(),
                host_mac(place)
            ));
            let v6 = Ipv6Addr::new(0xfd00, place, 0, 0, 0, 0, 0, 9);
            assert!(router.set_neighbour(place, v6.into(), host_mac(place)));
        }
        Self { control, ..Self::with(router) }
    }
}

impl<C: Classify> Rig<C> {
    pub fn with(router: Router<C>) -> Self {
        let pool = Pool::new(16 << 20).unwrap();
        let (chosen, outbox) = (Vec::new(), Outbox::default());
        Self { router, pool, chosen, outbox, control: false, seq: 0, taken: 0, made: 0, gone: 0 }
    }

    /// Passes in one frame, and returns the outcomes of it and of all packets created because of it.
    pub fn send(&mut self, at: u64, port: u16, frame: &[u8]) -> Vec<Seen> {
        self.batch(&[(at, port, frame.to_vec())])
    }

    /// Passes in a train of segments with `payload` bytes each, after 54 bytes of headers.
    pub fn train(&mut self, at: u64, port: u16, frame: &[u8], payload: u16) -> Vec<Seen> {
        let handle = self.pool.insert(frame).unwrap();
        let meta = self.pool.meta_mut(handle);
        (meta.arrival, meta.in_port) = (at, port);
        let segments = (frame.len() - 54).div_ceil(payload.into()) as u16;
        meta.set_train(Train { gso: Gso::TcpV4 as u8, segments, gso_size: payload, header_len: 54 });
        let mut batch = Batch::new();
        batch.push(handle);
        self.taken += u64::from(meta.segments);
        self.router.forward(&mut self.pool, &batch, &mut self.outbox);
        let mut seen = vec![self.see(handle)];
        seen.extend(self.empty_outbox());
        self.check();
        seen
    }

    /// Passes in a batch.
    pub fn batch(&mut self, frames: &[(u64, u16, Vec<u8>)]) -> Vec<Seen> {
        let mut batch = Batch::new();
        for (at, port, frame) in frames {
            let handle = self.pool.insert(frame).unwrap();
            let meta = self.pool.meta_mut(handle);
            (meta.arrival, meta.in_port, meta.place) = (*at, *port, u32::from(*port));
            self.seq += 1 << 16;
            meta.seq = self.seq;
            batch.push(handle);
        }
        self.taken += frames.len() as u64;
        self.router.forward(&mut self.pool, &batch, &mut self.outbox);
        let mut seen: Vec<_> = batch.as_slice().iter().map(|&handle| self.see(handle)).collect();
        seen.extend(self.empty_outbox());
        self.check();
        seen
    }

    /// Advances the time up to `until`, as often as the router requests.
    pub fn wait(&mut self, until: u64) -> Vec<Seen> {
        let mut seen = Vec::new();
        while self.router.deadline() <= Nanos(until) {
            seen.extend(self.tick(self.router.deadline()));
        }
        seen
    }

    /// Advances the time once.
    pub fn tick(&mut self, now: Nanos) -> Vec<Seen> {
        self.router.tick(&mut self.pool, now, &mut self.outbox);
        let seen = self.empty_outbox();
        self.check();
        seen
    }

    fn empty_outbox(&mut self) -> Vec<Seen> {
        let packets = self.outbox.packets().to_vec();
        self.made += self.outbox.clear();
        let each = packets.into_iter().map(|(handle, out_port)| {
            self.pool.meta_mut(handle).out_port = out_port;
            self.see(handle)
        });
        each.collect()
    }

    fn see(&mut self, handle: Handle) -> Seen {
        let meta = *self.pool.meta(handle);
        let seen = match (refusal(&meta), meta.out_port) {
            (Some(reason), _) => Seen::Dropped(reason),
            (None, KEPT) => return Seen::Kept,
            (None, CONSUMED) => Seen::Consumed,
            (None, port) => {
                let to_control = self.control && (CONTROL + 1..=CONTROL + 3).contains(&port);
                assert!(self.router.ports().contains(&port) || to_control, "{port:x} is no port");
                self.chosen.push(Chosen {
                    mark: meta.mark(),
                    link: meta.requested_link(),
                    queue: meta.band(),
                });
                Seen::Out(port, self.pool.data(handle).to_vec())
            }
        };
        self.gone += u64::from(meta.segments);
        self.pool.free(handle);
        seen
    }

    /// Checks conservation, and the router's counters against the engine's.
    fn check(&self) {
        let stats = self.router.stats();
        assert_eq!(self.taken + self.made, self.gone + self.router.kept());
        assert_eq!(self.pool.live(), self.router.kept());
        assert_eq!((stats.received, stats.made), (self.taken, self.made));
        assert_eq!(stats.forwarded + stats.consumed + stats.dropped, self.gone);
    }
}
