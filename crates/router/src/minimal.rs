//! Minimal IP: what most packets need, in batches, on the data path (T. Spalink and others, "Building a
//! robust software-based router using network processors", section 4.4). All other packets go to full IP with
//! the reason.

use crate::above::Above;
use crate::adjacency::Adjacency;
use crate::classify::{Class, Classify, ETHERNET, FullIpReason};
use crate::fib::Ahead;
use crate::forwarder::Programs;
use crate::group::flow_hash;
use crate::neighbour::Resolution;
use crate::next_hop::{NextHop, NextNeighbour, v4_key};
use crate::ports::RouterPort;
use crate::prefix::HopId;
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{BATCH, Batch, FirstLine, Handle, Meta, Pool};
use longwire_units::Nanos;

/// The counter of hops to decrement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hops {
    V4,
    V6,
    /// The classifier has done it.
    Label,
}

impl Hops {
    /// The protocol of a frame, from its Ethernet header.
    pub fn of(frame: &[u8]) -> Self {
        match frame.get(12..ETHERNET) {
            Some([8, 0]) => Self::V4,
            Some([0x86, 0xdd]) => Self::V6,
            _ => Self::Label,
        }
    }
}

/// Bytes of the shortest Ethernet frame without FCS: shorter ones are padded.
const SHORTEST_FRAME: u32 = 60;

/// Prefetch distance in packets.
const AHEAD: usize = 8;

impl Core {
    /// Decides about every packet of a batch, through the programs if there are any.
    pub fn forward<C: Classify>(
        &mut self,
        classifier: &mut C,
        (programs, mut above): (&mut Programs, Option<&mut Above>),
        pool: &mut Pool,
        batch: &Batch,
        out: &mut Outbox,
    ) {
        let handles = batch.as_slice();
        let mut classes = [Class::Dropped(DropReason::PortDown); BATCH];
        let dropped = self.classify(classifier, pool, handles, &mut classes);
        let mut left = handles;
        if !programs.table.is_empty() {
            let is_sampled = programs.is_sampled();
            if programs.table.plain && !is_sampled {
                left = programs.rule_plain((self, classifier), pool, (handles, dropped), &mut classes);
            } else {
                let packets = (handles, &mut classes);
                programs.forward((self, classifier), above.as_deref_mut(), pool, packets, out);
                left = &[];
            }
            if let Some(above) = above {
                above.flush(pool, handles);
            }
        }
        let ahead = self.look_ahead(&classes[..left.len()]);
        for (at, (&handle, &class)) in left.iter().zip(&classes).enumerate() {
            let fate = self.decide_ahead(pool, handle, class, (&ahead, at), out);
            self.book(pool.meta_mut(handle), fate);
        }
        self.before.clear();
    }

    /// Records a packet's fate in its metadata and in the counters.
    #[inline]
    pub fn book(&mut self, meta: &mut Meta, fate: Fate) {
        meta.out_port = fate.code();
        self.counts.received += u64::from(meta.segments);
        self.counts.note(fate, meta.segments);
    }

    /// Classifies packets, and prefetches the data of their route lookups. Returns a bit for each dropped
    /// packet, from the lowest on.
    #[inline]
    pub fn classify<C: Classify>(
        &self,
        classifier: &mut C,
        pool: &mut Pool,
        handles: &[Handle],
        classes: &mut [Class; BATCH],
    ) -> u64 {
        handles.iter().take(AHEAD).for_each(|&handle| pool.prefetch(handle));
        let (mut port, mut dropped) = (None, 0);
        for (at, (&handle, class)) in handles.iter().zip(classes).enumerate() {
            if let Some(&next) = handles.get(at + AHEAD) {
                pool.prefetch(next);
            }
            let (meta, frame) = pool.parts_mut(handle);
            // Usually that of the previous packet.
            port = port
                .filter(|port: &&RouterPort| port.place == meta.in_port)
                .or_else(|| self.ports.at(meta.in_port));
            let Some(port) = port else {
                dropped |= 1 << at;
                continue;
            };
            let mut found = classifier.classify(port, meta, frame);
            if self.refuse_source(&mut found, port, frame) {
                dropped |= 1 << at;
            }
            self.prefetch_route(&found);
            *class = found;
        }
        dropped
    }

    /// Classifies a single packet.
    #[inline]
    pub fn classify_one<C: Classify>(&self, classifier: &mut C, pool: &mut Pool, handle: Handle) -> Class {
        let (meta, frame) = pool.parts_mut(handle);
        match self.ports.at(meta.in_port) {
            Some(port) => {
                let mut class = classifier.classify(port, meta, frame);
                self.refuse_source(&mut class, port, frame);
                class
            }
            None => Class::Dropped(DropReason::PortDown),
        }
    }

    /// Classifies an admitted packet again, which may have changed: its source may be the router itself.
    #[inline]
    pub fn classify_again<C: Classify>(&self, classifier: &mut C, pool: &mut Pool, handle: Handle) -> Class {
        let (meta, frame) = pool.parts_mut(handle);
        match self.ports.at(meta.in_port) {
            Some(port) => classifier.classify(port, meta, frame),
            None => Class::Dropped(DropReason::PortDown),
        }
    }

    /// Prefetches the first access of a packet's route lookup.
    #[inline]
    pub fn prefetch_route(&self, class: &Class) {
        match *class {
            Class::V4 { destination } => self.fib.prefetch_v4(destination),
            Class::V6 { destination } => self.fib.prefetch_v6(destination),
            _ => {}
        }
    }

    /// Looks up the routes of packets, and prefetches the next accesses.
    #[inline]
    pub fn look_ahead(&self, classes: &[Class]) -> Ahead {
        self.fib.look_ahead_v4(classes.iter().map(|class| match *class {
            Class::V4 { destination } => Some(destination),
            _ => None,
        }))
    }

    /// Decides about a packet whose route has been looked up ahead.
    #[inline(always)]
    pub fn decide_ahead(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        class: Class,
        ahead: (&Ahead, usize),
        out: &mut Outbox,
    ) -> Fate {
        let Class::V4 { destination } = class else { return self.decide(pool, handle, class, out) };
        let found = self.fib.find_v4_ahead(destination, ahead);
        self.pass_on(pool, handle, (found, v4_key(destination)), Hops::V4, out)
    }

    /// Decides about a packet.
    #[inline(never)]
    pub fn decide(&mut self, pool: &mut Pool, handle: Handle, class: Class, out: &mut Outbox) -> Fate {
        match class {
            Class::V4 { destination } => {
                let found = self.fib.find_v4(destination);
                self.pass_on(pool, handle, (found, v4_key(destination)), Hops::V4, out)
            }
            Class::V6 { destination } => {
                let found = self.fib.find_v6(destination);
                self.pass_on(pool, handle, (found, destination), Hops::V6, out)
            }
            Class::Switched { hop } => self.pass_on(pool, handle, (Some(hop), 0), Hops::Label, out),
            Class::Exceptional(why) => self.exceptional(pool, handle, why, out),
            Class::Dropped(DropReason::PortDown) => self.send_for_control(pool, handle, out),
            Class::Dropped(reason) => Fate::Dropped(reason),
        }
    }

    /// Decides about a packet with a fixed next hop instead of its route, unless it is for the router itself
    /// or a broadcast to its neighbours.
    pub fn decide_bound(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        (class, way): (Class, NextHop),
        out: &mut Outbox,
    ) -> Fate {
        self.bound = Some(way);
        let fate = match class {
            Class::V4 { destination } => match self.bound_way(self.fib.way_v4(destination)) {
                Some(way) => self.pass_on_by(pool, handle, (way, v4_key(destination)), (Hops::V4, None), out),
                None => self.exceptional(pool, handle, FullIpReason::NoRoute, out),
            },
            Class::V6 { destination } => match self.bound_way(self.fib.way_v6(destination)) {
                Some(way) => self.pass_on_by(pool, handle, (way, destination), (Hops::V6, None), out),
                None => self.exceptional(pool, handle, FullIpReason::NoRoute, out),
            },
            _ => self.decide(pool, handle, class, out),
        };
        self.bound = None;
        fate
    }

    /// The next hop of a packet whose route leads to `routed`: the one to which it is bound, if any.
    pub fn bound_way(&self, routed: Option<NextHop>) -> Option<NextHop> {
        match routed {
            Some(NextHop::Local | NextHop::Broadcast) => routed,
            _ => self.bound.or(routed),
        }
    }

    /// The next hop of a packet whose route leads to `hop`: among several, that of its flow.
    #[inline]
    pub fn chosen(&self, hop: NextHop, frame: &[u8]) -> NextHop {
        if let NextHop::Group(_) = hop { self.chosen_of_several(hop, frame) } else { hop }
    }

    #[inline(never)]
    fn chosen_of_several(&self, hop: NextHop, frame: &[u8]) -> NextHop {
        self.fib.hops.member(hop, flow_hash(frame, self.seed))
    }

    /// Sends a packet to its next hop, if there is one: TTL and Ethernet addresses change.
    #[inline(always)]
    fn pass_on(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        (id, destination): (Option<HopId>, u128),
        hops: Hops,
        out: &mut Outbox,
    ) -> Fate {
        let Some(id) = id else { return self.exceptional(pool, handle, FullIpReason::NoRoute, out) };
        let adjacency = self.fib.hops.adjacency(id);
        let (meta, frame) = pool.head_mut(handle);
        if adjacency.holds(self.revision(), Nanos(meta.arrival)) {
            return send(meta, frame, adjacency, hops)
                .unwrap_or_else(|| self.exceptional(pool, handle, FullIpReason::TooBig, out));
        }
        self.pass_on_by(pool, handle, (self.fib.hops.at(id), destination), (hops, Some(id)), out)
    }

    /// Sends a packet to this next hop without its adjacency. Stores the adjacency if the next hop is a
    /// gateway with a number.
    #[inline(never)]
    fn pass_on_by(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        (hop, destination): (NextHop, u128),
        (hops, id): (Hops, Option<HopId>),
        out: &mut Outbox,
    ) -> Fate {
        let (place, neighbour) = match hop {
            NextHop::Gateway { port, gateway } => (port, gateway),
            NextHop::Direct { port } => (port, destination),
            NextHop::Group(_) => {
                let hop = self.chosen(hop, pool.data(handle));
                return self.pass_on_by(pool, handle, (hop, destination), (hops, None), out);
            }
            NextHop::Local => return self.exceptional(pool, handle, FullIpReason::Local, out),
            NextHop::Broadcast => return self.exceptional(pool, handle, FullIpReason::Group, out),
            NextHop::Discard => return Fate::Dropped(DropReason::Discard),
        };
        let Some(port) = self.ports.at(place) else { return Fate::Dropped(DropReason::PortDown) };
        let now = Nanos(pool.meta(handle).arrival);
        let (Resolution::Known(mac), until) = self.neighbours.find_until(place, neighbour, now) else {
            return self.exceptional_hop(pool, handle, (place, neighbour), hops == Hops::Label, out);
        };
        let adjacency = Adjacency::new(port, (mac, until), self.revision());
        if let (NextHop::Gateway { .. }, Some(id)) = (hop, id) {
            self.fib.hops.note_adjacency(id, adjacency);
        }
        let (meta, frame) = pool.head_mut(handle);
        send(meta, frame, &adjacency, hops)
            .unwrap_or_else(|| self.exceptional(pool, handle, FullIpReason::TooBig, out))
    }

    /// Revision of ports and neighbours: it grows with every change of these.
    #[inline]
    fn revision(&self) -> u64 {
        self.ports.revision() + self.neighbours.revision()
    }

    /// The exceptional next hops. Switched packets have no header for full IP: they wait, or go, unchanged.
    #[cold]
    fn exceptional_hop(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        (place, neighbour): (u16, u128),
        switched: bool,
        out: &mut Outbox,
    ) -> Fate {
        if switched {
            out.because_of(pool.meta(handle));
            let next = NextNeighbour { port: place, address: neighbour, is_gateway: true };
            return self.resolve(pool, handle, next, out);
        }
        self.exceptional(pool, handle, FullIpReason::Unresolved, out)
    }
}

/// Rewrites a packet for this adjacency. None if it is an IP packet that is too long.
#[inline]
fn send(meta: &mut Meta, frame: &mut FirstLine, adjacency: &Adjacency, hops: Hops) -> Option<Fate> {
    if longest_packet(meta, frame, hops) > adjacency.mtu.into() {
        return (hops == Hops::Label).then_some(Fate::Dropped(DropReason::Mtu));
    }
    if hops == Hops::Label && (meta.len as usize) < ETHERNET {
        return Some(Fate::Dropped(DropReason::BadFrame));
    }
    frame[..12].copy_from_slice(&adjacency.addresses);
    match hops {
        Hops::V4 => lower_ttl(frame),
        Hops::V6 => lower_hop_limit(frame),
        Hops::Label => return Some(Fate::Out(adjacency.place)),
    }
    let end = ETHERNET as u32 + packet_len(meta, frame, hops);
    trim(meta, end);
    Some(Fate::Out(adjacency.place))
}

/// Bytes of the longest IP packet that the frame becomes on the wire; for a train, of its first segment.
/// Padding or a trailer after the IP packet does not count: it is not forwarded (RFC 894), and does not make
/// the packet too long.
#[inline]
pub(crate) fn longest_packet(meta: &Meta, frame: &[u8], hops: Hops) -> u32 {
    if meta.is_train() {
        return meta.first_bytes().saturating_sub(ETHERNET as u32);
    }
    packet_len(meta, frame, hops)
}

/// Bytes of the packet in a frame by its IP header; without one, all after the Ethernet header.
#[inline]
fn packet_len(meta: &Meta, frame: &[u8], hops: Hops) -> u32 {
    let field = |at: usize| match frame.get(ETHERNET + at..ETHERNET + at + 2) {
        Some(&[high, low]) => u32::from(u16::from_be_bytes([high, low])),
        _ => 0,
    };
    match hops {
        Hops::V4 => field(2),
        Hops::V6 => 40 + field(4),
        Hops::Label => meta.wire_len.saturating_sub(ETHERNET as u32),
    }
}

/// Removes what follows the IP packet, which ends at `end`, in a frame; padding up to the shortest frame
/// stays.
#[inline]
fn trim(meta: &mut Meta, end: u32) {
    let end = end.max(SHORTEST_FRAME);
    if meta.wire_len > end && !meta.is_train() {
        (meta.wire_len, meta.len) = (end, meta.len.min(end));
    }
}

/// Removes what follows the IP packet in a frame that may leave, if it has one.
pub(crate) fn trim_packet(pool: &mut Pool, handle: Handle) {
    let (meta, frame) = pool.parts_mut(handle);
    let end = ETHERNET as u32 + packet_len(meta, frame, Hops::of(frame));
    trim(meta, end);
}

/// Decrements the TTL, which is above 0, and updates the checksum.
///
/// The word of TTL and protocol decreases by 0x100. By RFC 1624's equation 3 the checksum increases by 0x100,
/// with end-around carry; 0xffff becomes 0.
#[inline]
pub(crate) fn lower_ttl(frame: &mut [u8]) {
    if let Some([ttl, _, high, low]) = frame.get_mut(ETHERNET + 8..ETHERNET + 12) {
        let checksum = u32::from(u16::from_be_bytes([*high, *low]));
        *ttl = ttl.wrapping_sub(1);
        [*high, *low] = ((checksum + 0x100 + ((checksum + 0x101) >> 16)) as u16).to_be_bytes();
    }
}

/// Decrements the hop limit of IPv6, which has no checksum.
#[inline]
pub(crate) fn lower_hop_limit(frame: &mut [u8]) {
    if let Some(hop_limit) = frame.get_mut(ETHERNET + 7) {
        *hop_limit = hop_limit.wrapping_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::frame_v4;
    use longwire_wire::checksum::Sum;

    #[test]
    fn the_checksum_stays_right_at_every_ttl() {
        for id in 0..=u16::MAX {
            let mut frame = frame_v4([10, 0, 0, 9], [10, 0, 1, 9], (id as u8).max(2), &[]);
            frame[18..20].copy_from_slice(&id.to_be_bytes());
            crate::support::fix(&mut frame);
            lower_ttl(&mut frame);
            assert_eq!(frame[22], (id as u8).max(2) - 1);
            assert_eq!(Sum::ZERO.bytes(&frame[14..34]).checksum(), 0, "{id}");
        }
    }

    #[test]
    fn a_checksum_by_hand() {
        // 4500 001a 1234 0000 4011 .... 0a00 0009 0a00 0109 sums to ac71: checksum 538e, and 548e after the
        // decrement.
        let mut frame = frame_v4([10, 0, 0, 9], [10, 0, 1, 9], 64, &[0; 6]);
        assert_eq!(frame[24..26], [0x53, 0x8e]);
        lower_ttl(&mut frame);
        assert_eq!((frame[22], &frame[24..26]), (63, &[0x54, 0x8e][..]));
    }
}
