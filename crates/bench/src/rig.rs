//! A router between eight memory ports, driven batch by batch without an engine, so that its own time can be
//! measured.

use crate::{BenchError, Sample};
use longwire_block::{CONSUMED, KEPT, Node, Outbox, refusal};
use longwire_packet::{BATCH, Batch, Handle, Pool};
use longwire_program::Program;
use longwire_punt::{AttachmentId, Punt};
use longwire_router::prefix::Prefix;
use longwire_router::{
    Admission, Fid, FlowKey, Forwarder, Installation, InterfaceAddress, Key, NextHop, Router, RouterConfig,
    RouterPort,
};
use longwire_units::Nanos;
use longwire_wire::checksum::Sum;
use longwire_wire::{Ipv4Header, ethernet_header, ethertype};
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Bytes of a frame without FCS: 64 with it.
pub const FRAME: usize = 60;
/// Ports of the router, 10.0.N.1/24 each, with a host 10.0.N.9 behind it.
pub const PORTS: u16 = 8;

/// A frame of 64 bytes with FCS.
pub type Frame = [u8; FRAME];

/// Contents of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameSpec {
    /// Ingress port.
    pub from: u16,
    /// Port of the destination host.
    pub to: u16,
    /// Transport protocol.
    pub protocol: u8,
    /// TTL.
    pub ttl: u8,
    /// Source and destination port.
    pub ports: [u16; 2],
    /// TCP flags.
    pub flags: u8,
    /// Whether its IPv4 header has options: four bytes without effect.
    pub options: bool,
}

impl FrameSpec {
    /// UDP from port 0 to port 1.
    pub const UDP: Self =
        Self { from: 0, to: 1, protocol: 17, ttl: 64, ports: [1024, 53], flags: 0, options: false };

    /// Address of the host behind a port.
    pub const fn host(port: u16) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, port as u8, 9)
    }

    /// The key of its flow: all five fields.
    pub fn flow(&self) -> Key {
        Key::Flow(FlowKey {
            source: Some(Self::host(self.from).into()),
            source_port: Some(self.ports[0]),
            destination: Some(Self::host(self.to).into()),
            destination_port: Some(self.ports[1]),
            protocol: Some(self.protocol),
        })
    }

    /// Its bytes.
    pub fn frame(&self) -> Frame {
        let options = 4 * usize::from(self.options);
        let header = Ipv4Header {
            source: Self::host(self.from).into(),
            destination: Self::host(self.to).into(),
            protocol: self.protocol,
            ttl: self.ttl,
            traffic_class: 0,
            id: 0,
            payload_len: (FRAME - 34) as u16,
        };
        let mut frame = [0; FRAME];
        frame[..14].copy_from_slice(&ethernet_header(
            router_mac(self.from),
            host_mac(self.from),
            ethertype::IPV4,
        ));
        frame[14..34].copy_from_slice(&header.bytes());
        if self.options {
            // Three no-operation options and the end of the list (RFC 791, 3.1).
            (frame[14], frame[24], frame[25]) = (0x46, 0, 0);
            frame[34..38].copy_from_slice(&[1, 1, 1, 0]);
            let checksum = Sum::ZERO.bytes(&frame[14..38]).checksum();
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
        let transport = &mut frame[34 + options..];
        transport[..2].copy_from_slice(&self.ports[0].to_be_bytes());
        transport[2..4].copy_from_slice(&self.ports[1].to_be_bytes());
        if self.protocol == 6 {
            (transport[12], transport[13]) = (0x50, self.flags);
        } else {
            let len = (FRAME - 34 - options) as u16;
            transport[4..6].copy_from_slice(&len.to_be_bytes());
        }
        frame
    }

    /// Its bytes, with another destination address.
    pub fn to(&self, address: u32) -> Frame {
        let mut frame = self.frame();
        frame[30..34].copy_from_slice(&address.to_be_bytes());
        frame[24..26].copy_from_slice(&[0, 0]);
        let end = 34 + 4 * usize::from(self.options);
        let checksum = Sum::ZERO.bytes(&frame[14..end]).checksum();
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame
    }
}

/// The n-th of addresses spread between 32.0.0.0 and 63.255.255.255. The first 2²¹ are in different /24s.
pub const fn destination(n: u32) -> u32 {
    // An odd factor permutes the lower 21 bits, which are the /24.
    let spread = n.wrapping_mul(0x9e37_79b1);
    32 << 24 | (spread & 0x001f_ffff) << 8 | spread >> 24
}

pub(crate) const fn router_mac(port: u16) -> [u8; 6] {
    [2, 0, 0, 0, 0xff, port as u8]
}

pub(crate) const fn host_mac(port: u16) -> [u8; 6] {
    [2, 0, 0, 0, 0, port as u8]
}

/// Outcomes of packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Passed to the router.
    pub offered: u64,
    /// Created by the router.
    pub made: u64,
    /// Sent to a port.
    pub forwarded: u64,
    /// Dropped.
    pub dropped: u64,
    /// Addressed to the router, or fragmented.
    pub consumed: u64,
}

/// The router, its packet memory, and its counters.
pub struct Rig {
    /// The router.
    pub router: Router,
    pool: Pool,
    outbox: Outbox,
    now: Nanos,
    tally: Tally,
}

impl Rig {
    /// A router that knows the hosts behind its ports, with this admission of programs.
    ///
    /// # Errors
    /// If memory is lacking.
    pub fn new(admission: Admission) -> Result<Self, BenchError> {
        let port = |place: u16| RouterPort {
            place,
            mac: router_mac(place),
            mtu: 1500,
            v4: vec![InterfaceAddress { address: Ipv4Addr::new(10, 0, place as u8, 1).into(), len: 24 }],
            v6: vec![],
        };
        let ports = (0..PORTS).map(port).collect();
        let config = RouterConfig { ports, admission, seed: 1, ..RouterConfig::default() };
        let mut router = Router::new(config)?;
        for port in 0..PORTS {
            router.set_neighbour(port, FrameSpec::host(port).into(), host_mac(port));
        }
        Self::of(router)
    }

    /// Wraps this router.
    ///
    /// # Errors
    /// If memory is lacking.
    pub fn of(router: Router) -> Result<Self, BenchError> {
        let pool = Pool::new(16 << 20)?;
        Ok(Self {
            router,
            pool,
            outbox: Outbox::default(),
            now: Nanos::from_secs(1),
            tally: Tally::default(),
        })
    }

    /// Adds a default route and this many /24 prefixes, to which packets to [`destination`]s go.
    ///
    /// # Errors
    /// If there are too many.
    pub fn add_routes(&mut self, prefixes: u32) -> Result<(), BenchError> {
        let hop = |n: u32| {
            let port = (n % u32::from(PORTS)) as u16;
            NextHop::via(port, FrameSpec::host(port).into())
        };
        self.router.add_route_v4(Prefix::new(0, 0)?, hop(1))?;
        for n in 0..prefixes {
            self.router.add_route_v4(Prefix::new(destination(n), 24)?, hop(n))?;
        }
        Ok(())
    }

    /// Installs a program.
    ///
    /// # Errors
    /// If it is refused.
    pub fn install(
        &mut self,
        program: Program,
        key: Key,
        above: Option<AttachmentId>,
    ) -> Result<Fid, BenchError> {
        let installation = Installation { name: program.name.clone(), key, above, ..Installation::default() };
        let prices = self.router.forwarders().admission().prices.clone();
        let forwarder = Forwarder::prepare(program, installation, &prices, 1)?;
        Ok(self.router.install(forwarder)?)
    }

    /// Attaches levels above.
    pub fn set_levels(&mut self, punt: Punt) {
        self.router.set_levels(punt);
    }

    /// Outcomes so far.
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    /// Packets without an outcome yet.
    pub fn inside(&self) -> u64 {
        self.pool.live()
    }

    /// Advances to this time, and does what is due. Time never goes back.
    pub fn tick(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        if self.router.deadline() <= self.now {
            self.router.tick(&mut self.pool, self.now, &mut self.outbox);
            self.settle(&mut |_, _| ());
        }
    }

    /// Copies frames into packets, at most a batch. Frames without memory are dropped.
    pub fn take_in<'f>(&mut self, frames: impl IntoIterator<Item = (u16, &'f Frame)>) -> Batch {
        let mut batch = Batch::new();
        for (port, frame) in frames.into_iter().take(BATCH) {
            self.tally.offered += 1;
            let Some(handle) = self.pool.insert(frame) else {
                self.tally.dropped += 1;
                continue;
            };
            let meta = self.pool.meta_mut(handle);
            (meta.in_port, meta.arrival) = (port, self.now.0);
            batch.push(handle);
        }
        batch
    }

    /// The measured part: the router's processing of a batch.
    #[inline]
    pub fn forward(&mut self, batch: &Batch) {
        self.router.forward(&mut self.pool, batch, &mut self.outbox);
    }

    /// Sends the batch's packets, and those created because of them, to their ports: `sent` receives each
    /// frame.
    pub fn give_out(&mut self, batch: &Batch, mut sent: impl FnMut(u16, &[u8])) {
        for &handle in batch.as_slice() {
            let code = self.pool.meta(handle).out_port;
            self.give(handle, code, &mut sent);
        }
        self.settle(&mut sent);
    }

    fn settle(&mut self, sent: &mut impl FnMut(u16, &[u8])) {
        for at in 0..self.outbox.packets().len() {
            let (handle, code) = self.outbox.packets()[at];
            self.pool.meta_mut(handle).out_port = code;
            self.give(handle, code, sent);
        }
        self.tally.made += self.outbox.clear();
    }

    fn give(&mut self, handle: Handle, code: u16, sent: &mut impl FnMut(u16, &[u8])) {
        match code {
            KEPT => return,
            CONSUMED => self.tally.consumed += 1,
            _ if refusal(self.pool.meta(handle)).is_some() => self.tally.dropped += 1,
            port => {
                self.tally.forwarded += 1;
                sent(port, self.pool.data(handle));
            }
        }
        self.pool.free(handle);
    }

    /// Time that the router takes for a batch of these frames, without copying them in and out. All packets
    /// have the same arrival time.
    pub fn time_batch(&mut self, frames: &[(u16, Frame)]) -> Duration {
        self.time_batch_and(frames, |_, frame| {
            black_box(frame);
        })
    }

    /// As [`Self::time_batch`]; `sent` receives each frame that is sent, when the time is over.
    pub fn time_batch_and(&mut self, frames: &[(u16, Frame)], sent: impl FnMut(u16, &[u8])) -> Duration {
        let batch = self.take_in(frames.iter().map(|(port, frame)| (*port, frame)));
        let before = Instant::now();
        self.forward(&batch);
        let spent = before.elapsed();
        self.give_out(&batch, sent);
        spent
    }
}

/// Nanoseconds per packet in each of several routers that alternate batch by batch, so that disturbances
/// affect all alike. Each has its own frames, at most a batch.
///
/// # Errors
/// What `go_on` returns, which is called now and then.
pub fn in_turns(
    rigs: &mut [(&mut Rig, &[(u16, Frame)])],
    batches: usize,
    go_on: impl Fn() -> Result<(), BenchError>,
) -> Result<Vec<Sample>, BenchError> {
    let mut costs = vec![Vec::with_capacity(batches); rigs.len()];
    for round in 0..batches {
        if round.is_multiple_of(256) {
            go_on()?;
        }
        for ((rig, frames), costs) in rigs.iter_mut().zip(&mut costs) {
            let spent = rig.time_batch(frames).as_nanos() as f64;
            costs.push(spent / frames.len().clamp(1, BATCH) as f64);
        }
    }
    Ok(costs.into_iter().map(Sample::from_iter).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_program::assemble;

    #[test]
    fn packets_are_forwarded_and_all_are_in_the_books() {
        let mut rig = Rig::new(Admission::default()).unwrap();
        let plain = FrameSpec::UDP;
        let frames = [
            (0, plain.frame()),
            (3, FrameSpec { from: 3, to: 7, protocol: 6, ..plain }.frame()),
            (0, FrameSpec { options: true, ..plain }.frame()),
            (0, FrameSpec { ttl: 1, ..plain }.frame()),
        ];
        let batch = rig.take_in(frames.iter().map(|(port, frame)| (*port, frame)));
        rig.forward(&batch);
        let mut seen = Vec::new();
        rig.give_out(&batch, |port, frame| seen.push((port, frame[14], frame[22])));
        // The last one is an error to its sender.
        assert_eq!(seen, [(1, 0x45, 63), (7, 0x45, 63), (1, 0x46, 63), (0, 0x45, 64)]);
        let expected = Tally { offered: 4, made: 1, forwarded: 4, dropped: 1, consumed: 0 };
        assert_eq!((rig.tally(), rig.inside()), (expected, 0));
    }

    #[test]
    fn a_million_destinations_are_in_a_million_networks() {
        let mut seen = vec![false; 1 << 21];
        for address in (0..1_000_000).map(destination) {
            assert_eq!(address >> 29, 1, "outside 32.0.0.0/3");
            seen[(address >> 8 & 0x001f_ffff) as usize] = true;
        }
        assert_eq!(seen.iter().filter(|seen| **seen).count(), 1_000_000);
    }

    #[test]
    fn routes_lead_where_they_should() {
        let mut rig = Rig::new(Admission::default()).unwrap();
        rig.add_routes(100).unwrap();
        let frames: Vec<_> = (0..64).map(|n| FrameSpec::UDP.to(destination(n))).collect();
        let batch = rig.take_in(frames.iter().map(|frame| (0, frame)));
        rig.forward(&batch);
        let mut ports = Vec::new();
        rig.give_out(&batch, |port, _| ports.push(port));
        assert_eq!(ports, (0..64).map(|n| n % 8).collect::<Vec<u16>>());
    }

    #[test]
    fn programs_meet_their_packets() {
        let (mut plain, mut filtered) =
            (Rig::new(Admission::default()).unwrap(), Rig::new(Admission::default()).unwrap());
        let drop = Program::new("drop", assemble("r0 = 1\n exit").unwrap(), []);
        filtered.install(drop, FrameSpec::UDP.flow(), None).unwrap();
        let frames = vec![(0, FrameSpec::UDP.frame()); 64];
        let costs = in_turns(&mut [(&mut plain, &frames), (&mut filtered, &frames)], 3, || Ok(())).unwrap();
        assert!(costs.iter().all(|cost| cost.median() > 0.0));
        assert_eq!((plain.tally().forwarded, filtered.tally().dropped), (192, 192));
        let stop = || Err(BenchError::Stopped);
        assert!(in_turns(&mut [(&mut plain, &frames)], 1, stop).is_err());
    }
}
