//! A learning bridge (IEEE 802.1D-2004, 7.7 to 7.9), without a spanning tree: the plan refuses loops.

use crate::classify::ETHERNET;
use longwire_block::{DropReason, FLOOD, Node, Outbox, Stations, refuse};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;

/// Default ageing time: 300 s (802.1D, table 7-5).
pub const DEFAULT_AGEING: Nanos = Nanos::from_secs(300);

/// Default size of the address table.
pub const DEFAULT_STATIONS: usize = 4096;

/// The group bit of an address read as a 48-bit number.
const GROUP: u64 = 1 << 40;
/// The first of sixteen addresses that no bridge forwards to (802.1D, table 7-10).
const RESERVED: u64 = 0x0180_c200_0000;

/// Forwards frames to the port of their destination, and floods those to unknown destinations.
///
/// The output of a frame depends only on the frames before it and their arrival times. VLAN tags are ignored:
/// all VLANs share the address table.
#[derive(Debug)]
pub struct Bridge {
    ports: Box<[u16]>,
    stations: Stations,
    cable: bool,
    learns: bool,
}

impl Bridge {
    /// A bridge with these ports (indices in the plan). Stations expire after `ageing`, and at most `table`
    /// are remembered, 32 to 64 bytes each. With an ageing time of zero it floods everything.
    pub fn new(mut ports: Vec<u16>, ageing: Nanos, table: usize) -> Self {
        ports.sort_unstable();
        ports.dedup();
        let stations = Stations::new(table, ageing);
        Self { ports: ports.into(), stations, cable: false, learns: true }
    }

    /// Makes it a cable between two ports, which also forwards frames reserved for bridges. If it learns
    /// nothing either ([`Bridge::as_relay`]), it is a wire: every whole frame goes to the other port.
    #[must_use]
    pub fn as_cable(self) -> Self {
        Self { cable: true, ..self }
    }

    /// Makes it a relay between two ports that learns nothing: every frame goes to the other port, even if
    /// its destination is behind its ingress port. So several relays, each with a part of the frames, are
    /// equivalent to one with all.
    ///
    /// # Panics
    /// If it does not have exactly two ports.
    #[must_use]
    pub fn as_relay(self) -> Self {
        assert_eq!(self.ports.len(), 2, "a relay has two ports");
        Self { learns: false, ..self }
    }

    /// Adds the station `mac` at `port` before it has sent anything. It does not expire until it has sent, so
    /// that traffic to a silent station isn't flooded.
    pub fn expect(&mut self, mac: [u8; 6], port: u16) {
        let [a, b, c, d, e, f] = mac;
        let address = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        if address != 0 && address & GROUP == 0 {
            self.stations.learn(address, port, Nanos::NEVER);
        }
    }

    /// Takes the ports of `other`, and whether it is a cable; what was learnt stays. `other` has what this
    /// one had.
    pub fn exchange_ports(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.ports, &mut other.ports);
        std::mem::swap(&mut self.cable, &mut other.cable);
    }

    /// Decides about a frame received at `now` on `in_port`, and learns its source if the table has room:
    /// frames to others are flooded. A frame with an incomplete header is invalid.
    #[inline]
    fn decide(
        &mut self,
        in_port: u16,
        header: Option<&[u8; ETHERNET]>,
        now: Nanos,
    ) -> Result<u16, DropReason> {
        let (destination, source) = valid(header)?;
        self.stations.learn(source, in_port, now);
        if destination & GROUP != 0 {
            return if self.keeps_out(destination) { Err(DropReason::Reserved) } else { Ok(FLOOD) };
        }
        match self.stations.find(destination, now) {
            Some(port) if port == in_port => Err(DropReason::Hairpin),
            Some(port) => Ok(port),
            None => Ok(FLOOD),
        }
    }

    /// Decides as a relay.
    fn relay(&self, in_port: u16, header: Option<&[u8; ETHERNET]>) -> Result<u16, DropReason> {
        if self.cable {
            header.ok_or(DropReason::BadFrame)?;
        } else if self.keeps_out(valid(header)?.0) {
            return Err(DropReason::Reserved);
        }
        Ok(self.ports[usize::from(self.ports[0] == in_port)])
    }

    /// Whether frames to this address are reserved for bridges, and this is one.
    fn keeps_out(&self, destination: u64) -> bool {
        destination & !0xf == RESERVED && !self.cable
    }
}

/// Destination and source of a frame that a bridge may forward.
#[inline]
fn valid(header: Option<&[u8; ETHERNET]>) -> Result<(u64, u64), DropReason> {
    let (destination, source) = addresses(header.ok_or(DropReason::BadFrame)?);
    if source == 0 || source & GROUP != 0 { Err(DropReason::BadFrame) } else { Ok((destination, source)) }
}

/// Destination and source as 48-bit numbers.
#[inline]
fn addresses(header: &[u8; ETHERNET]) -> (u64, u64) {
    // Two overlapping loads of eight bytes.
    let (Some(first), Some(last)) = (header.first_chunk(), header.last_chunk()) else { return (0, 0) };
    (u64::from_be_bytes(*first) >> 16, u64::from_be_bytes(*last) >> 16)
}

impl Node for Bridge {
    fn forward(&mut self, pool: &mut Pool, batch: &Batch, _out: &mut Outbox) {
        for &handle in batch.as_slice() {
            let (meta, line) = pool.head_mut(handle);
            debug_assert!(
                self.ports.binary_search(&meta.in_port).is_ok(),
                "a frame from another node's port"
            );
            let header = if meta.len < ETHERNET as u32 { None } else { line.first_chunk() };
            let decided = if self.learns {
                self.decide(meta.in_port, header, Nanos(meta.arrival))
            } else {
                self.relay(meta.in_port, header)
            };
            match decided {
                Ok(port) => meta.out_port = port,
                Err(reason) => refuse(meta, reason),
            }
        }
    }

    fn ports(&self) -> &[u16] {
        &self.ports
    }

    fn stations(&mut self) -> Option<&mut Stations> {
        self.learns.then_some(&mut self.stations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::{REFUSED, refusal};
    use proptest::prelude::*;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
    const C: [u8; 6] = [2, 0, 0, 0, 0, 0xc];
    const ALL: [u8; 6] = [0xff; 6];
    const GROUP_ADDRESS: [u8; 6] = [1, 0, 0x5e, 0, 0, 1];

    fn bridge(ageing: Nanos, table: usize) -> (Bridge, Pool) {
        (Bridge::new(vec![30, 10, 20, 10], ageing, table), Pool::new(1 << 20).unwrap())
    }

    /// The decision for a frame: a port, FLOOD or a drop reason.
    fn pass(
        bridge: &mut Bridge,
        pool: &mut Pool,
        at: u64,
        in_port: u16,
        frame: &[u8],
    ) -> Result<u16, DropReason> {
        let handle = pool.insert(frame).unwrap();
        (pool.meta_mut(handle).in_port, pool.meta_mut(handle).arrival) = (in_port, at);
        let mut batch = Batch::new();
        batch.push(handle);
        bridge.forward(pool, &batch, &mut Outbox::default());
        let meta = *pool.meta(handle);
        pool.free(handle);
        refusal(&meta).map_or(Ok(meta.out_port), Err)
    }

    fn frame(destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
        [&destination[..], &source, &[0x08, 0x00], &[0; 46]].concat()
    }

    #[test]
    fn an_expected_station_is_known_until_heard_elsewhere_and_ages_from_then() {
        let (mut bridge, mut pool) = bridge(Nanos(100), 8);
        bridge.expect(B, 20);
        bridge.expect(GROUP_ADDRESS, 20);
        assert_eq!(pass(&mut bridge, &mut pool, 1_000_000, 10, &frame(B, A)), Ok(20));
        assert_eq!(pass(&mut bridge, &mut pool, 1_000_001, 10, &frame(GROUP_ADDRESS, A)), Ok(FLOOD));
        pass(&mut bridge, &mut pool, 1_000_002, 30, &frame(A, B)).unwrap();
        assert_eq!(pass(&mut bridge, &mut pool, 1_000_003, 10, &frame(B, A)), Ok(30));
        assert_eq!(pass(&mut bridge, &mut pool, 1_000_200, 10, &frame(B, A)), Ok(FLOOD));
    }

    #[test]
    fn an_expected_station_is_not_flooded_to_and_ages_once_it_was_heard() {
        let (mut bridge, mut pool) = bridge(Nanos(100), 10);
        bridge.expect(B, 20);
        assert_eq!(pass(&mut bridge, &mut pool, 1_000_000, 10, &frame(B, A)), Ok(20));
        assert_eq!(pass(&mut bridge, &mut pool, 1_000_001, 20, &frame(A, B)), Ok(10));
        assert_eq!(pass(&mut bridge, &mut pool, 1_000_200, 10, &frame(B, A)), Ok(FLOOD));
    }

    #[test]
    fn learns_floods_and_moves() {
        let (mut bridge, mut pool) = bridge(Nanos(100), 10);
        assert_eq!(bridge.ports(), [10, 20, 30]);
        // (time, in port, source, destination, where to)
        let table = [
            (0, 10, A, B, Ok(FLOOD)),
            (1, 20, B, A, Ok(10)),
            (2, 10, A, B, Ok(20)),
            (3, 10, A, ALL, Ok(FLOOD)),
            (4, 10, A, GROUP_ADDRESS, Ok(FLOOD)),
            (5, 20, C, B, Err(DropReason::Hairpin)),
            (6, 30, A, C, Ok(20)),
            (7, 20, B, A, Ok(30)),
            (8, 30, A, A, Err(DropReason::Hairpin)),
            // B was last heard at 7, and refreshes itself at 106.
            (106, 30, A, B, Ok(20)),
            (106, 20, B, C, Ok(FLOOD)),
            (107, 30, A, B, Ok(20)),
            (206, 30, A, B, Ok(FLOOD)),
        ];
        for (at, in_port, source, destination, expected) in table {
            let result = pass(&mut bridge, &mut pool, at, in_port, &frame(destination, source));
            assert_eq!(result, expected, "at {at}");
        }
    }

    #[test]
    fn refuses_what_no_bridge_forwards() {
        let (mut bridge, mut pool) = bridge(DEFAULT_AGEING, 10);
        let mut result = |frame: &[u8]| pass(&mut bridge, &mut pool, 0, 10, frame);
        for last in 0..=0xf {
            assert_eq!(result(&frame([1, 0x80, 0xc2, 0, 0, last], A)), Err(DropReason::Reserved));
        }
        assert_eq!(result(&frame([1, 0x80, 0xc2, 0, 0, 0x10], A)), Ok(FLOOD));
        assert_eq!(result(&frame(B, GROUP_ADDRESS)), Err(DropReason::BadFrame));
        assert_eq!(result(&frame(B, ALL)), Err(DropReason::BadFrame));
        assert_eq!(result(&frame(B, [0; 6])), Err(DropReason::BadFrame));
        assert_eq!(result(&frame([0; 6], A)), Ok(FLOOD));
        for len in 0..14 {
            assert_eq!(result(&frame(B, A)[..len]), Err(DropReason::BadFrame));
        }
        assert_eq!(result(&frame(B, A)[..14]), Ok(FLOOD));
    }

    #[test]
    fn a_full_table_floods() {
        let (mut bridge, mut pool) = bridge(Nanos(100), 2);
        let mut send = |at, in_port, destination, source| {
            pass(&mut bridge, &mut pool, at, in_port, &frame(destination, source))
        };
        assert_eq!(send(0, 10, ALL, A), Ok(FLOOD));
        assert_eq!(send(1, 20, A, B), Ok(10));
        assert_eq!(send(2, 30, A, C), Ok(10));
        assert_eq!(send(3, 10, C, A), Ok(FLOOD));
        // B is old at 101 and makes room.
        assert_eq!(send(101, 30, A, C), Ok(10));
        assert_eq!(send(102, 10, C, A), Ok(30));
    }

    /// Frames in sequence, and each as the first that its relay sees: a relay's decision depends on no other
    /// frame.
    #[test]
    fn a_relay_sends_all_to_the_other_port_and_learns_nothing() {
        let new = || Bridge::new(vec![20, 10], DEFAULT_AGEING, 16).as_relay();
        let (mut one, mut pool) = (new(), Pool::new(1 << 20).unwrap());
        assert!(one.stations().is_none());
        let reserved = [1, 0x80, 0xc2, 0, 0, 0];
        let table = [
            (10, frame(B, A), Ok(20)),
            (20, frame(A, B), Ok(10)),
            (10, frame(ALL, A), Ok(20)),
            // To a station behind the ingress port: a learning bridge would drop it.
            (20, frame(B, C), Ok(10)),
            (10, frame(reserved, A), Err(DropReason::Reserved)),
            (10, frame(B, ALL), Err(DropReason::BadFrame)),
            (20, frame(B, A)[..13].to_vec(), Err(DropReason::BadFrame)),
        ];
        for (in_port, frame, expected) in table {
            assert_eq!(pass(&mut one, &mut pool, 0, in_port, &frame), expected);
            assert_eq!(pass(&mut new(), &mut pool, 0, in_port, &frame), expected);
        }
    }

    /// Whatever its addresses are.
    #[test]
    fn a_wire_carries_every_whole_frame() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut wire = Bridge::new(vec![20, 10], DEFAULT_AGEING, 16).as_cable().as_relay();
        for last in 0..=0xf {
            let reserved = frame([1, 0x80, 0xc2, 0, 0, last], A);
            assert_eq!(pass(&mut wire, &mut pool, 0, 10, &reserved), Ok(20));
            assert_eq!(pass(&mut wire, &mut pool, 0, 20, &reserved), Ok(10));
        }
        for odd in
            [frame(B, ALL), frame(B, [0; 6]), frame([0; 6], A), frame(A, A), frame(B, A)[..14].to_vec()]
        {
            assert_eq!(pass(&mut wire, &mut pool, 0, 10, &odd), Ok(20));
        }
        assert_eq!(pass(&mut wire, &mut pool, 0, 10, &frame(B, A)[..13]), Err(DropReason::BadFrame));
    }

    #[test]
    fn the_default_is_five_minutes() {
        let (mut bridge, mut pool) = bridge(DEFAULT_AGEING, DEFAULT_STATIONS);
        let second = 1_000_000_000;
        assert_eq!(pass(&mut bridge, &mut pool, 0, 10, &frame(ALL, A)), Ok(FLOOD));
        assert_eq!(pass(&mut bridge, &mut pool, 300 * second - 1, 20, &frame(A, B)), Ok(10));
        assert_eq!(pass(&mut bridge, &mut pool, 300 * second, 20, &frame(A, B)), Ok(FLOOD));
    }

    /// Frames between a handful of addresses, valid or not, and arbitrary bytes.
    fn frames() -> impl Strategy<Value = Vec<u8>> {
        let address =
            || prop::sample::select(vec![A, B, C, ALL, GROUP_ADDRESS, [0; 6], [1, 0x80, 0xc2, 0, 0, 1]]);
        let between = (address(), address()).prop_map(|(destination, source)| frame(destination, source));
        prop_oneof![3 => between, 1 => prop::collection::vec(any::<u8>(), 0..30)]
    }

    proptest! {
        /// A frame goes to another port of the bridge, to all, or is refused; batches behave like single
        /// frames.
        #[test]
        fn never_leaves_by_a_foreign_port(
            frames in prop::collection::vec((frames(), 0..3usize, 0..50u64), 1..64),
        ) {
            let (mut one_by_one, mut pool) = bridge(Nanos(100), 8);
            let (mut at_once, _) = bridge(Nanos(100), 8);
            let (mut batch, mut now, mut expected) = (Batch::new(), 0, Vec::new());
            for (frame, port, step) in &frames {
                now += step;
                let in_port = one_by_one.ports()[*port];
                expected.push(pass(&mut one_by_one, &mut pool, now, in_port, frame));
                let handle = pool.insert(frame).unwrap();
                (pool.meta_mut(handle).in_port, pool.meta_mut(handle).arrival) = (in_port, now);
                batch.push(handle);
            }
            at_once.forward(&mut pool, &batch, &mut Outbox::default());
            for (&handle, expected) in batch.as_slice().iter().zip(expected) {
                let meta = pool.meta(handle);
                prop_assert_eq!(refusal(meta).map_or(Ok(meta.out_port), Err), expected);
                let own = at_once.ports().contains(&meta.out_port) && meta.out_port != meta.in_port;
                prop_assert!(own || meta.out_port == FLOOD
                || (meta.out_port >= REFUSED && expected.is_err()));
            }
        }
    }
}
