//! Keys: the packets that a forwarder handles.

use crate::group::mixed;
use crate::next_hop::{neighbour_key, v4_key};
use longwire_wire::{Ethernet, Ipv4, Ipv6, Ipv6Payload, ethertype, protocol};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// The packets that a forwarder handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Key {
    /// Every packet that the classifier has not dropped, IP or not.
    #[default]
    All,
    /// IP packets of a flow.
    Flow(FlowKey),
}

/// A flow: packets that have these values; a field without a value is a wildcard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FlowKey {
    /// The source address or prefix.
    pub source: Option<KeyAddress>,
    /// The source port. Packets without ports, such as later fragments, match only a wildcard.
    pub source_port: Option<u16>,
    /// The destination address or prefix.
    pub destination: Option<KeyAddress>,
    /// The destination port.
    pub destination_port: Option<u16>,
    /// The protocol after IP and its extension headers; for packets with too many headers, or truncated ones,
    /// the next-header value of the last one.
    pub protocol: Option<u8>,
}

/// An address or prefix of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyAddress {
    /// As given; IPv4-mapped addresses are IPv4.
    address: IpAddr,
    prefix: u8,
}

impl KeyAddress {
    /// All addresses with the same first `prefix` bits; none if the prefix is too long, or would match all
    /// IPv4 addresses, which is written as a wildcard.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let canonical = address.to_canonical();
        let prefix = if address.is_ipv6() && canonical.is_ipv4() { prefix.checked_sub(96)? } else { prefix };
        let own = Self { address: canonical, prefix };
        let fits = (1..=bits(canonical)).contains(&prefix);
        (fits && (canonical.is_ipv4() || own.words() != v4_key(0) & own.mask())).then_some(own)
    }

    /// Number of bits that are not compared.
    const fn open(self) -> u8 {
        bits(self.address) - self.prefix
    }

    fn mask(self) -> u128 {
        u128::MAX << self.open()
    }

    fn words(self) -> u128 {
        neighbour_key(self.address) & self.mask()
    }
}

const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl From<IpAddr> for KeyAddress {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, prefix: bits(address) }
    }
}

impl From<Ipv4Addr> for KeyAddress {
    fn from(address: Ipv4Addr) -> Self {
        IpAddr::V4(address).into()
    }
}

impl From<[u8; 4]> for KeyAddress {
    fn from(address: [u8; 4]) -> Self {
        IpAddr::from(address).into()
    }
}

/// The address, with its prefix length if not all bits are compared: `10.0.0.0/8`.
impl fmt::Display for KeyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first address of a prefix; IPv6 addresses that begin with zeros do not become IPv4.
        let first = Ipv6Addr::from(self.words());
        let first = if self.address.is_ipv6() { first.into() } else { first.to_canonical() };
        match self.open() {
            0 => first.fmt(f),
            _ => write!(f, "{first}/{}", self.prefix),
        }
    }
}

/// Reason why no packet can match a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Addresses of different families.
    #[error("the key's source {source_address} and destination {destination_address} are of different kinds")]
    Kinds {
        /// The source.
        source_address: KeyAddress,
        /// The destination.
        destination_address: KeyAddress,
    },
    /// Ports with a protocol that has none.
    #[error("the key names a port, which protocol {protocol} has not; leave it out, or choose tcp or udp")]
    Ports {
        /// The protocol.
        protocol: u8,
    },
}

/// A flow or mask as numbers: source, destination, and ports, protocol and a bit that is always set.
pub(crate) type Words = [u64; 5];

/// Value for the port of a packet that has none.
const NONE: u64 = 0x1_0000;
const PORT_BITS: u32 = 17;
const DESTINATION_PORT: u32 = PORT_BITS;
const PROTOCOL: u32 = 2 * PORT_BITS;
const ALWAYS: u64 = 1 << 63;

impl FlowKey {
    /// Checks that packets can match it.
    ///
    /// # Errors
    /// The contradictory fields.
    pub fn check(&self) -> Result<(), KeyError> {
        if let (Some(source_address), Some(destination_address)) = (self.source, self.destination)
            && source_address.address.is_ipv4() != destination_address.address.is_ipv4()
        {
            return Err(KeyError::Kinds { source_address, destination_address });
        }
        match self.protocol {
            Some(protocol)
                if !protocol::WITH_PORTS.contains(&protocol)
                    && (self.source_port.is_some() || self.destination_port.is_some()) =>
            {
                Err(KeyError::Ports { protocol })
            }
            _ => Ok(()),
        }
    }

    /// Number of wildcards among its five fields.
    pub fn wild(&self) -> u32 {
        let fixed = [
            self.source.is_some(),
            self.source_port.is_some(),
            self.destination.is_some(),
            self.destination_port.is_some(),
            self.protocol.is_some(),
        ];
        fixed.iter().filter(|&&fixed| !fixed).count() as u32
    }

    /// The rank of a key: among several that match, the one with the lowest is used. Wildcards count first,
    /// then the number of address bits that are not compared.
    pub(crate) fn rank(&self) -> u32 {
        let open = |address: Option<KeyAddress>| address.map_or(0, |address| u32::from(address.open()));
        self.wild() << 16 | (open(self.source) + open(self.destination))
    }

    /// Its values; wildcards are zero.
    pub(crate) fn words(&self) -> Words {
        let address = |address: Option<KeyAddress>| address.map_or(0, KeyAddress::words);
        let ports = self.source_port.map_or(0, u64::from)
            | self.destination_port.map_or(0, u64::from) << DESTINATION_PORT;
        let rest = ALWAYS | ports | self.protocol.map_or(0, u64::from) << PROTOCOL;
        joined(address(self.source), address(self.destination), rest)
    }

    /// All ones except for wildcards.
    pub(crate) fn mask(&self) -> Words {
        let address = |address: Option<KeyAddress>| address.map_or(0, KeyAddress::mask);
        let port = |fixed: bool| if fixed { (1 << PORT_BITS) - 1 } else { 0 };
        let rest = ALWAYS
            | port(self.source_port.is_some())
            | port(self.destination_port.is_some()) << DESTINATION_PORT
            | port(self.protocol.is_some()) << PROTOCOL;
        joined(address(self.source), address(self.destination), rest)
    }
}

fn joined(source: u128, destination: u128, rest: u64) -> Words {
    [(source >> 64) as u64, source as u64, (destination >> 64) as u64, destination as u64, rest]
}

/// The flow of a frame, none if it is not IP.
#[inline]
pub(crate) fn flow(frame: &[u8]) -> Option<Words> {
    let ethernet = Ethernet::check(frame).ok()?;
    let packet = ethernet.payload();
    let (source, destination, protocol, transport) = match ethernet.ethertype() {
        ethertype::IPV4 => {
            let ip = Ipv4::check(packet).ok()?;
            let transport = (!ip.is_later_fragment()).then(|| ip.payload());
            (v4_key(ip.source()), v4_key(ip.destination()), u64::from(ip.protocol()), transport)
        }
        ethertype::IPV6 => {
            let ip = Ipv6::check(packet).ok()?;
            let (protocol, transport) = match ip.walk() {
                Ipv6Payload::Transport(found) => (found.protocol, packet.get(found.offset..)),
                Ipv6Payload::Later { protocol }
                | Ipv6Payload::Closed { protocol, .. }
                | Ipv6Payload::Beyond { protocol, .. } => (protocol, None),
            };
            (ip.source(), ip.destination(), u64::from(protocol), transport)
        }
        _ => return None,
    };
    let has_ports = protocol::WITH_PORTS.contains(&(protocol as u8));
    let ports = match transport {
        Some([a, b, c, d, ..]) if has_ports => {
            let [source, destination] = [[*a, *b], [*c, *d]].map(|port| u64::from(u16::from_be_bytes(port)));
            source | destination << DESTINATION_PORT
        }
        _ => NONE | NONE << DESTINATION_PORT,
    };
    Some(joined(source, destination, ALWAYS | ports | protocol << PROTOCOL))
}

/// Hash of a flow, by which levels above distinguish flows; never 0. Collisions are possible.
pub(crate) fn hash(words: &Words) -> u64 {
    mixed(words, 0x9e37_79b9_7f4a_7c15).max(1)
}

/// The key made of a flow's fields covered by `mask`; ports are wildcards if the packet had none.
pub(crate) fn words_key(words: &Words, mask: &Words) -> FlowKey {
    let address = |at: usize| {
        let told = mask[at] == u64::MAX;
        let key = u128::from(words[at]) << 64 | u128::from(words[at + 1]);
        told.then(|| Ipv6Addr::from(key).to_canonical().into())
    };
    let field = |from: u32| {
        let told = mask[4] >> from & 1 == 1;
        let value = words[4] >> from & ((1 << PORT_BITS) - 1);
        u16::try_from(value).ok().filter(|_| told)
    };
    FlowKey {
        source: address(0),
        source_port: field(0),
        destination: address(2),
        destination_port: field(DESTINATION_PORT),
        protocol: field(PROTOCOL).map(|protocol| protocol as u8),
    }
}

/// `ALL`, or the fields that are not wildcards: `10.0.0.1:* > 10.0.0.2:80 tcp`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Flow(flow) = self else { return f.write_str("ALL") };
        let side = |address: Option<KeyAddress>, port: Option<u16>| {
            let address = match address {
                None => "*".to_owned(),
                Some(address) if address.address.is_ipv6() && port.is_some() => format!("[{address}]"),
                Some(address) => address.to_string(),
            };
            port.map_or(address.clone(), |port| format!("{address}:{port}"))
        };
        let (source, destination) =
            (side(flow.source, flow.source_port), side(flow.destination, flow.destination_port));
        write!(f, "{source} > {destination}")?;
        match flow.protocol {
            None => Ok(()),
            Some(protocol::TCP) => f.write_str(" tcp"),
            Some(protocol::UDP) => f.write_str(" udp"),
            Some(other) => write!(f, " protocol {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{frame_v4, frame_v6};

    fn matches(key: &FlowKey, frame: &[u8]) -> bool {
        let (words, mask) = (key.words(), key.mask());
        flow(frame).is_some_and(|flow| (0..5).all(|at| flow[at] & mask[at] == words[at]))
    }

    const SOURCE: [u8; 4] = [10, 0, 0, 9];
    const DESTINATION: [u8; 4] = [10, 0, 1, 9];

    /// UDP from port 1000 to 53.
    fn udp() -> Vec<u8> {
        frame_v4(SOURCE, DESTINATION, 64, &[3, 232, 0, 53, 0, 8, 0, 0])
    }

    #[test]
    fn fields_match_or_are_wild() {
        let all = FlowKey {
            source: Some(SOURCE.into()),
            source_port: Some(1000),
            destination: Some(DESTINATION.into()),
            destination_port: Some(53),
            protocol: Some(17),
        };
        assert!(matches(&all, &udp()) && matches(&FlowKey::default(), &udp()));
        let table = [
            FlowKey { source: Some([10, 0, 0, 8].into()), ..all },
            FlowKey { source_port: Some(1001), ..all },
            FlowKey { destination: Some([10, 0, 1, 8].into()), ..all },
            FlowKey { destination_port: Some(0), ..all },
            FlowKey { protocol: Some(6), ..all },
        ];
        assert!(table.iter().all(|key| !matches(key, &udp())));
        assert_eq!((all.wild(), FlowKey::default().wild()), (0, 5));
    }

    #[test]
    fn prefixes_match_what_begins_so() {
        let within = |address: &str, prefix| FlowKey {
            source: Some(KeyAddress::new(address.parse().unwrap(), prefix).unwrap()),
            ..FlowKey::default()
        };
        // 10.0.0.9 is the source.
        for (address, prefix, fits) in [
            ("10.0.0.9", 32, true),
            ("10.0.0.8", 31, true),
            ("10.0.0.10", 31, false),
            ("10.255.255.255", 8, true),
            ("11.0.0.9", 8, false),
            ("0.0.0.0", 1, true),
            ("::ffff:10.0.0.0", 120, true),
            ("::ffff:10.0.1.0", 120, false),
            ("a00::", 8, false),
        ] {
            assert_eq!(matches(&within(address, prefix), &udp()), fits, "{address}/{prefix}");
        }
        let hosts = (0xfd00 << 112 | 9, 0xfd01 << 112 | 9);
        let frame = frame_v6(hosts.0, hosts.1, 17, 64, &[3, 232, 0, 53, 0, 8, 0, 0]);
        assert!(matches(&within("fd00::", 16), &frame) && !matches(&within("fd01::", 16), &frame));
        assert!(matches(&within("f000::", 4), &frame) && !matches(&within("0.0.0.0", 1), &frame));
        for (address, prefix) in
            [("10.0.0.9", 0), ("10.0.0.9", 33), ("fd00::", 129), ("::ffff:10.0.0.9", 96), ("::", 3)]
        {
            assert_eq!(KeyAddress::new(address.parse().unwrap(), prefix), None);
        }
        let key = FlowKey { source_port: Some(7), ..within("10.9.9.9", 8) };
        assert_eq!(Key::Flow(key).to_string(), "10.0.0.0/8:7 > *");
        assert_eq!(Key::Flow(within("fd00:1::9", 16)).to_string(), "fd00::/16 > *");
        assert_eq!((within("10.0.0.9", 32).rank(), within("10.0.0.9", 8).rank()), (4 << 16, 4 << 16 | 24));
    }

    #[test]
    fn what_has_no_ports_matches_no_port() {
        let port = |port| FlowKey { destination_port: Some(port), ..FlowKey::default() };
        let mut fragment = udp();
        fragment[21] = 1;
        let short = frame_v4(SOURCE, DESTINATION, 64, &[0; 3]);
        let mut icmp = udp();
        icmp[23] = 1;
        for frame in [&fragment, &short, &icmp] {
            assert!(!matches(&port(53), frame) && !matches(&port(0), frame), "{frame:?}");
            assert!(matches(&FlowKey::default(), frame));
        }
        assert!(matches(&FlowKey { protocol: Some(17), ..FlowKey::default() }, &fragment));
        let mut arp = udp();
        arp[13] = 6;
        assert!(!matches(&FlowKey::default(), &arp));
    }

    #[test]
    fn ipv6_extensions_are_walked_over() {
        let hosts = (0xfd00 << 112 | 9, 0xfd01 << 112 | 9);
        let with_options = [&[17, 0, 1, 4, 0, 0, 0, 0][..], &[3, 232, 0, 53, 0, 8, 0, 0]].concat();
        let frame = frame_v6(hosts.0, hosts.1, 60, 64, &with_options);
        let key = FlowKey { destination_port: Some(53), protocol: Some(17), ..FlowKey::default() };
        assert!(matches(&key, &frame));
        assert!(matches(&FlowKey { source: Some(IpAddr::V6(hosts.0.into()).into()), ..key }, &frame));
        let later = frame_v6(hosts.0, hosts.1, 44, 64, &[17, 0, 0, 8, 0, 0, 0, 1, 3, 232, 0, 53]);
        assert!(!matches(&key, &later) && matches(&FlowKey::default(), &later));
        // As for IPv4: its protocol is known.
        let of = |protocol| FlowKey { protocol: Some(protocol), ..FlowKey::default() };
        assert!(matches(&of(17), &later) && !matches(&of(44), &later));
        let encrypted = frame_v6(hosts.0, hosts.1, 50, 64, &[0; 16]);
        assert!(
            matches(&of(50), &encrypted) && !matches(&FlowKey { source_port: Some(0), ..of(50) }, &encrypted)
        );
        // Too many headers: the next one's number is known, but no ports.
        let mut many = [60, 0, 1, 4, 0, 0, 0, 0].repeat(9);
        many[64] = 17;
        let many = frame_v6(hosts.0, hosts.1, 60, 64, &[&many[..], &[3, 232, 0, 53, 0, 8, 0, 0]].concat());
        assert!(matches(&of(17), &many) && !matches(&key, &many));
    }

    #[test]
    fn keys_that_no_packet_has_are_refused() {
        let v6 = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 9]);
        let mixed =
            FlowKey { source: Some(SOURCE.into()), destination: Some(v6.into()), ..FlowKey::default() };
        assert!(matches!(mixed.check(), Err(KeyError::Kinds { .. })));
        let icmp = FlowKey { source_port: Some(1), protocol: Some(1), ..FlowKey::default() };
        assert_eq!(icmp.check(), Err(KeyError::Ports { protocol: 1 }));
        assert_eq!(FlowKey { protocol: None, ..icmp }.check(), Ok(()));
        let web =
            FlowKey { protocol: Some(6), destination_port: Some(80), destination: Some(v6.into()), ..icmp };
        assert_eq!(Key::Flow(web).to_string(), "*:1 > [fd00::9]:80 tcp");
        assert_eq!(Key::Flow(FlowKey::default()).to_string(), "* > *");
    }
}
