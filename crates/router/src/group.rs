//! Routes with several next hops (equal-cost multipath), and the choice of each flow.
//!
//! All packets of a flow take one path, so that none overtakes another. Flows are divided by *hash threshold*
//! (RFC 2992): each next hop has a region of the hash space in proportion to its weight, and a flow takes the
//! one of its hash. If a next hop goes, the other regions grow, and most of their flows stay.

use crate::classify::ETHERNET;
use crate::next_hop::NextHop;
use longwire_wire::{Ethernet, Ipv4, Ipv6, ethertype, protocol};
use std::sync::Arc;
use thiserror::Error;

/// Most next hops of a route.
pub const MOST_MEMBERS: usize = 256;
/// The highest weight of a next hop, as in Linux (linux/rtnetlink.h: `rtnh_hops` is a byte, and one less).
pub const MOST_WEIGHT: u16 = 256;

/// The destination of a route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteHops {
    /// To one next hop.
    One(NextHop),
    /// To several, among which flows are divided.
    Several(Group),
}

/// Next hops with weights: at least two, distinct, ordered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group(Arc<[Member]>);

/// One of several next hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// A neighbour: [`NextHop::Gateway`] or [`NextHop::Direct`].
    pub hop: NextHop,
    /// Its share of the flows, relative to the sum of all weights: 1 to [`MOST_WEIGHT`]; the sum if it was
    /// given several times.
    pub weight: u16,
}

/// Reason why a destination is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WayError {
    /// No next hop.
    #[error("a route leads to one next hop at least: name a gateway or a port")]
    None,
    /// Too many next hops.
    #[error("a route leads to {MOST_MEMBERS} next hops at most: name fewer")]
    TooMany,
    /// A weight out of range.
    #[error("a next hop's weight is {weight}, it must be 1 to {MOST_WEIGHT}")]
    Weight {
        /// The weight.
        weight: u16,
    },
    /// A next hop that is not a neighbour.
    #[error(
        "of several next hops each is a gateway or a port: what goes to the router or nowhere has a route of \
         its own"
    )]
    NoNeighbour,
}

impl From<NextHop> for RouteHops {
    fn from(hop: NextHop) -> Self {
        Self::One(hop)
    }
}

impl PartialEq<NextHop> for RouteHops {
    fn eq(&self, hop: &NextHop) -> bool {
        *self == Self::One(*hop)
    }
}

impl RouteHops {
    /// A destination with these next hops.
    ///
    /// # Errors
    /// If there are none or too many, a weight is out of range, or one of several is no neighbour.
    pub fn among(members: impl IntoIterator<Item = Member>) -> Result<Self, WayError> {
        let mut list: Vec<Member> = members.into_iter().collect();
        if let Some(&Member { weight, .. }) = list.iter().find(|one| !(1..=MOST_WEIGHT).contains(&one.weight))
        {
            return Err(WayError::Weight { weight });
        }
        list.sort_unstable();
        list.dedup_by(|next, first| {
            let same = next.hop == first.hop;
            first.weight = first.weight.saturating_add(if same { next.weight } else { 0 });
            same
        });
        if list.len() > MOST_MEMBERS {
            return Err(WayError::TooMany);
        }
        match &list[..] {
            [] => Err(WayError::None),
            [only] => Ok(Self::One(only.hop)),
            several if several.iter().all(|member| member.hop.port().is_some()) => {
                Ok(Self::Several(Group(list.into())))
            }
            _ => Err(WayError::NoNeighbour),
        }
    }

    /// All next hops.
    pub fn hops(&self) -> impl Iterator<Item = NextHop> {
        let (one, several) = match self {
            Self::One(hop) => (Some(*hop), None),
            Self::Several(group) => (None, Some(group.members())),
        };
        one.into_iter().chain(several.into_iter().flatten().map(|member| member.hop))
    }
}

impl Group {
    /// Its next hops, in order.
    pub fn members(&self) -> &[Member] {
        &self.0
    }
}

/// A group prepared for lookups: the end of each next hop's hash region.
#[derive(Debug, Default)]
pub(crate) struct Shares(Box<[(u32, NextHop)]>);

impl Shares {
    pub fn new(group: &Group) -> Self {
        let total: u64 = group.members().iter().map(|member| u64::from(member.weight)).sum();
        let mut sum = 0;
        let choice = |member: &Member| {
            sum += u64::from(member.weight);
            (((sum << 32) / total - 1) as u32, member.hop)
        };
        Self(group.members().iter().map(choice).collect())
    }

    /// The next hop of a flow with this hash.
    pub fn of(&self, hash: u32) -> NextHop {
        let at = self.0.partition_point(|(last, _)| *last < hash);
        self.0.get(at).map_or(NextHop::Discard, |(_, hop)| *hop)
    }
}

/// Hash of a packet's flow: addresses, protocol and ports. Ports of fragments are ignored, so that all of a
/// packet take one path. IPv6 flow labels replace protocol and ports, if set (RFC 6438). The seed differs
/// between routers, so that one does not divide flows the way another has.
pub(crate) fn flow_hash(frame: &[u8], seed: u64) -> u32 {
    let packet = frame.get(ETHERNET..).unwrap_or_default();
    let kind = Ethernet::check(frame).map_or(0, |ethernet| ethernet.ethertype());
    let words = match kind {
        ethertype::IPV4 => words_v4(packet),
        ethertype::IPV6 => words_v6(packet),
        _ => None,
    };
    let mixed = mixed(&words.unwrap_or_default(), seed).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 32) as u32
}

/// The words of a flow, multiplied into one; without the last step of a hash, in which high bits matter.
#[inline]
pub(crate) fn mixed(words: &[u64; 5], seed: u64) -> u64 {
    words.iter().fold(seed, |hash, word| {
        let next = (hash ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        next ^ next >> 29
    })
}

fn words_v4(packet: &[u8]) -> Option<[u64; 5]> {
    let ip = Ipv4::check(packet).ok()?;
    let transport = (!ip.is_fragment()).then(|| ip.payload());
    let rest = u64::from(ip.protocol()) << 32 | ports(ip.protocol(), transport);
    Some([ip.source().into(), ip.destination().into(), rest, 0, 0])
}

fn words_v6(packet: &[u8]) -> Option<[u64; 5]> {
    const LABEL: u32 = 0xf_ffff;
    let ip = Ipv6::check(packet).ok()?;
    let label = packet.first_chunk().map_or(0, |first| u32::from_be_bytes(*first) & LABEL);
    let rest = if label != 0 {
        1 << 63 | u64::from(label)
    } else {
        let whole = ip.transport().filter(|transport| !transport.is_fragment);
        whole.map_or(0, |transport| {
            u64::from(transport.protocol) << 32 | ports(transport.protocol, packet.get(transport.offset..))
        })
    };
    let (source, destination) = (ip.source(), ip.destination());
    Some([(source >> 64) as u64, source as u64, (destination >> 64) as u64, destination as u64, rest])
}

fn ports(number: u8, transport: Option<&[u8]>) -> u64 {
    let first =
        transport.and_then(|bytes| bytes.first_chunk()).filter(|_| protocol::WITH_PORTS.contains(&number));
    first.map_or(0, |ports| u32::from_be_bytes(*ports).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{fix, frame_v4, frame_v6};
    use std::net::IpAddr;

    fn via(last: u8, weight: u16) -> Member {
        Member { hop: NextHop::via(1, IpAddr::from([10, 0, 0, last])), weight }
    }

    fn shares(members: &[Member]) -> Shares {
        match RouteHops::among(members.iter().copied()) {
            Ok(RouteHops::Several(group)) => Shares::new(&group),
            other => panic!("{other:?}"),
        }
    }

    /// Evenly spread hashes.
    fn hashes() -> impl Iterator<Item = u32> {
        (0..10_000_u32).map(|n| n * (u32::MAX / 10_000))
    }

    #[test]
    fn ways_are_put_in_order() {
        let direct = NextHop::Direct { port: 1 };
        let one = RouteHops::among([via(2, 3), via(2, 4)]).unwrap();
        assert_eq!(one, RouteHops::One(via(2, 1).hop));
        let Ok(RouteHops::Several(group)) = RouteHops::among([via(3, 1), via(2, 2), via(3, 5)]) else {
            panic!()
        };
        assert_eq!(group.members(), [via(2, 2), via(3, 6)]);
        assert_eq!(RouteHops::among([]), Err(WayError::None));
        assert_eq!(RouteHops::among([via(2, 0)]), Err(WayError::Weight { weight: 0 }));
        assert_eq!(RouteHops::among([via(2, 257)]), Err(WayError::Weight { weight: 257 }));
        let local = Member { hop: NextHop::Local, weight: 1 };
        assert_eq!(RouteHops::among([local]), Ok(NextHop::Local.into()));
        assert_eq!(RouteHops::among([local, via(2, 1)]), Err(WayError::NoNeighbour));
        let many = |most: u16| (0..most).map(|port| Member { hop: NextHop::Direct { port }, weight: 1 });
        assert!(RouteHops::among(many(256)).is_ok_and(|way| way.hops().count() == 256));
        assert_eq!(RouteHops::among(many(257)), Err(WayError::TooMany));
        assert_eq!(RouteHops::from(direct).hops().collect::<Vec<_>>(), [direct]);
    }

    #[test]
    fn regions_are_as_wide_as_weights() {
        // 1 : 2 : 5 of 2^32: up to 2^29 - 1, then to 3 * 2^29 - 1, then to the end.
        let shares = shares(&[via(1, 1), via(2, 2), via(3, 5)]);
        for (hash, last) in
            [(0, 1), ((1 << 29) - 1, 1), (1 << 29, 2), ((3 << 29) - 1, 2), (3 << 29, 3), (u32::MAX, 3)]
        {
            assert_eq!(shares.of(hash), via(last, 1).hop, "{hash:x}");
        }
    }

    #[test]
    fn few_flows_move_when_a_next_hop_goes() {
        // Quarters become thirds: the second's flows (1/4) must move, and the part of the third's region that
        // the fourth takes (1/12). Hashing modulo the number of next hops would move 3/4.
        let before = shares(&[via(1, 1), via(2, 1), via(3, 1), via(4, 1)]);
        let after = shares(&[via(1, 1), via(3, 1), via(4, 1)]);
        let moved = hashes().filter(|&hash| before.of(hash) != after.of(hash)).count();
        assert!((3_330..=3_336).contains(&moved), "{moved}");
    }

    #[test]
    fn a_flow_is_told_by_what_all_its_packets_have() {
        let v4 = |bytes: &[(usize, u8)]| {
            let mut frame = frame_v4([10, 0, 0, 9], [10, 0, 1, 9], 64, &[0, 7, 0, 9, 1, 2, 3, 4]);
            bytes.iter().for_each(|&(at, byte)| frame[14 + at] = byte);
            fix(&mut frame);
            flow_hash(&frame, 5)
        };
        let same = [
            ("another TTL", v4(&[(8, 9)])),
            ("another identification", v4(&[(5, 9)])),
            ("another class", v4(&[(1, 9)])),
            ("other data", v4(&[(27, 9)])),
        ];
        same.iter().for_each(|(what, hash)| assert_eq!(*hash, v4(&[]), "{what}"));
        let others = [
            ("another source", v4(&[(15, 8)])),
            ("another destination", v4(&[(19, 8)])),
            ("another protocol", v4(&[(9, 6)])),
            ("without ports", v4(&[(9, 1)])),
            ("another source port", v4(&[(21, 8)])),
            ("another destination port", v4(&[(23, 8)])),
        ];
        others.iter().for_each(|(what, hash)| assert_ne!(*hash, v4(&[]), "{what}"));
        // The first fragment has ports, the others don't: all take one path.
        assert_eq!(v4(&[(6, 0x20)]), v4(&[(7, 3), (20, 9)]));
        let labelled = |label: u8, port: u8| {
            let mut frame = frame_v6(1, 2, 17, 64, &[0, port, 0, 9, 0, 8, 0, 0]);
            frame[17] = label;
            flow_hash(&frame, 5)
        };
        assert_eq!(labelled(1, 7), labelled(1, 8));
        assert!(labelled(1, 7) != labelled(2, 7) && labelled(0, 7) != labelled(0, 8));
        assert_ne!(flow_hash(&frame_v6(1, 2, 17, 64, &[]), 5), flow_hash(&frame_v6(1, 2, 17, 64, &[]), 6));
        assert_eq!(flow_hash(&[0; 5], 5), flow_hash(&[0; 60], 5), "what is no IP is one flow");
    }

    #[test]
    fn flows_of_one_host_are_shared_out_evenly() {
        let shares = shares(&[via(1, 1), via(2, 1), via(3, 1), via(4, 1)]);
        let mut counts = [0_u32; 5];
        for port in 0..4000_u16 {
            let [high, low] = port.to_be_bytes();
            let frame = frame_v4([10, 0, 0, 9], [10, 0, 1, 9], 64, &[high, low, 0, 80, 0, 8, 0, 0]);
            let NextHop::Gateway { gateway, .. } = shares.of(flow_hash(&frame, 1)) else { panic!() };
            counts[gateway as usize & 7] += 1;
        }
        // Binomial with n = 4000, p = 1/4: mean 1000, standard deviation 27.4; five of these.
        assert!(counts[1..].iter().all(|count| (863..=1137).contains(count)), "{counts:?}");
    }
}
