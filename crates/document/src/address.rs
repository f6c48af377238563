//! Addresses as a scenario writes them: networks and hardware addresses.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IP address with its prefix length, as `10.0.0.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    /// The address, host bits included.
    pub address: IpAddr,
    /// Prefix length in bits: 0 to 32, or to 128 for IPv6.
    pub prefix: u8,
}

impl Network {
    /// The network of a single address (/32 or /128).
    pub const fn single(address: IpAddr) -> Self {
        Self { address, prefix: bits(address) }
    }

    /// Whether it holds a single address.
    pub const fn is_single(&self) -> bool {
        self.prefix == bits(self.address)
    }

    /// Whether `address` lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (first, last) = self.range();
        self.address.is_ipv4() == address.is_ipv4() && (first..=last).contains(&number(address))
    }

    /// Whether the two share an address.
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.prefix <= other.prefix { self.contains(other.address) } else { other.contains(self.address) }
    }

    /// The network with its host bits cleared.
    #[must_use]
    pub fn masked(&self) -> Self {
        let (first, _) = self.range();
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4((first as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(first.into()),
        };
        Self { address, prefix: self.prefix }
    }

    /// All addresses of IPv4, and all of IPv6.
    pub const EVERYTHING: [Self; 2] = [v4([0; 4], 0), v6(0, 0)];

    /// Whether `address` is the subnet's broadcast address, or its all-zeros or any-router address (RFC 1812,
    /// 4.2.3.1; RFC 4291, 2.6.1). Networks of two addresses have none of these (RFC 3021, RFC 6164).
    pub fn means_all(&self, address: IpAddr) -> bool {
        let ((lowest, highest), number) = (self.range(), number(address));
        let v4 = self.address.is_ipv4();
        let for_all = number == lowest || (v4 && number == highest);
        v4 == address.is_ipv4() && highest - lowest > 1 && for_all
    }

    /// Why a route to it is never used: routers never forward to such addresses (RFC 6890; RFC 3927, 7).
    pub fn unused_route(&self) -> Option<String> {
        let what = self.unforwarded()?;
        Some(format!("the route to {self} is never used: nothing is forwarded to {what}"))
    }

    /// What its addresses are, if they are never forwarded to.
    fn unforwarded(&self) -> Option<&'static str> {
        let holds = |(net, _): &&(Self, _)| net.prefix <= self.prefix && net.contains(self.address);
        UNFORWARDED.iter().find(holds).map(|(_, what)| *what)
    }

    /// Its first and last address as numbers.
    pub fn range(&self) -> (u128, u128) {
        let host_bits = u32::from(bits(self.address) - self.prefix);
        let hosts = if host_bits == 128 { u128::MAX } else { (1u128 << host_bits) - 1 };
        let first = number(self.address) & !hosts;
        (first, first | hosts)
    }
}

impl FromStr for Network {
    type Err = String;

    /// Reads `address/prefix`; an address alone is a network of one.
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.trim(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| {
            format!("\"{text}\" is not an address; write one such as \"10.0.0.1/24\" or \"fd00::1/64\"")
        })?;
        let most = bits(address);
        let prefix = match prefix.map(str::parse) {
            None => most,
            Some(Ok(prefix)) if prefix <= most => prefix,
            Some(_) => return Err(format!("\"{text}\" has no valid prefix length; it is 0 to {most}")),
        };
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

/// Networks that are never forwarded to, and what they are.
const UNFORWARDED: [(Network, &str); 9] = [
    (v4([0, 0, 0, 0], 8), "addresses of this network"),
    (v4([127, 0, 0, 0], 8), "loopback addresses"),
    (v4([169, 254, 0, 0], 16), "addresses within a link"),
    (v4([224, 0, 0, 0], 4), "groups"),
    (v4([240, 0, 0, 0], 4), "reserved addresses"),
    (v6(0, 127), "the unspecified and the loopback address"),
    (v6(0xffff << 32, 96), "IPv4 addresses in IPv6 form"),
    (v6(0xfe80 << 112, 10), "addresses within a link"),
    (v6(0xff00 << 112, 8), "groups"),
];

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Network {
    Network { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
}

const fn v6(address: u128, prefix: u8) -> Network {
    Network { address: IpAddr::V6(Ipv6Addr::from_bits(address)), prefix }
}

/// The destination of a route as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteTarget {
    /// This network.
    Network(Network),
    /// `default`: all addresses of IPv4 or IPv6.
    Default,
}

impl RouteTarget {
    /// The network that a route with these gateways leads to: `default` is all of IPv6 if any gateway is
    /// IPv6, else all of IPv4.
    pub fn by(self, mut gateways: impl Iterator<Item = IpAddr>) -> Network {
        let [v4, v6] = Network::EVERYTHING;
        match self {
            Self::Network(network) => network,
            Self::Default if gateways.any(|gateway| gateway.is_ipv6()) => v6,
            Self::Default => v4,
        }
    }
}

impl FromStr for RouteTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "default" => Ok(Self::Default),
            text => text.parse().map(Self::Network),
        }
    }
}

/// A hardware (Ethernet) address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The default address of the port at `place` of the plan: locally administered, with the letters `LW`.
    pub const fn of_port(place: u16) -> Self {
        let [high, low] = place.to_be_bytes();
        Self([0x02, b'L', b'W', 0, high, low])
    }

    /// The default address of a router at that port.
    pub const fn of_router(place: u16) -> Self {
        let [high, low] = place.to_be_bytes();
        Self([0x02, b'L', b'W', 1, high, low])
    }

    /// Whether an interface can have this address: it is not zero and not a group address.
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("\"{text}\" is not a hardware address; write one such as \"02:00:00:00:00:01\"");
        let mut bytes = [0; 6];
        let mut parts = text.trim().split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| matches!(part.len(), 1 | 2)).ok_or_else(wanted)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| wanted())?;
        }
        if parts.next().is_some() || text.contains('+') {
            return Err(wanted());
        }
        if !Self(bytes).is_unicast() {
            return Err(format!(
                "\"{text}\" is a group address or zero; a host's own address has an even first byte"
            ));
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Bits of an address of this family.
const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Whether an address is link-local, so that each link may have one like it.
pub const fn is_within_a_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// An address as a number.
pub fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        let net: Network = "10.1.2.3/16".parse().unwrap();
        assert_eq!(net.to_string(), "10.1.2.3/16");
        for (address, inside) in
            [("10.1.0.0", true), ("10.1.255.255", true), ("10.2.0.0", false), ("::10.1.0.0", false)]
        {
            assert_eq!(net.contains(address.parse().unwrap()), inside, "{address}");
        }
        assert!("0.0.0.0/0".parse::<Network>().unwrap().contains("255.255.255.255".parse().unwrap()));
        assert!("::/0".parse::<Network>().unwrap().contains("fd00::1".parse().unwrap()));
        assert!("10.0.0.1".parse::<Network>().unwrap().is_single());
        for bad in ["", "10.0.0/8", "10.0.0.0/33", "fd00::/129", "10.0.0.1/", "10.0.0.1/-1"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }

    #[test]
    fn networks_overlap_if_one_holds_the_other() {
        for (a, b, overlap) in [
            ("10.0.0.1/24", "10.0.0.200/32", true),
            ("10.0.0.1/24", "10.0.1.0/24", false),
            ("0.0.0.0/0", "192.0.2.1/32", true),
            ("0.0.0.0/0", "fd00::1/64", false),
            ("fd00::/8", "fd12:3456::1/64", true),
            ("::/0", "2001:db8::1/128", true),
            ("100.64.0.0/30", "100.64.0.4/30", false),
        ] {
            let [a, b]: [Network; 2] = [a, b].map(|text| text.parse().unwrap());
            assert_eq!([a.overlaps(&b), b.overlaps(&a)], [overlap; 2], "{a} {b}");
        }
    }

    #[test]
    fn in_json_networks_are_texts() {
        let network: Network = serde_json::from_str("\"fd00::1:2/112\"").unwrap();
        assert_eq!(serde_json::to_string(&network.masked()).unwrap(), "\"fd00::1:0/112\"");
        assert!(serde_json::from_str::<Network>("\"10.0.0.1/33\"").is_err());
    }

    #[test]
    fn some_networks_are_never_forwarded_to() {
        for (net, what) in [
            ("224.0.0.0/4", Some("groups")),
            ("239.1.0.0/16", Some("groups")),
            ("224.0.0.0/3", None),
            ("255.255.255.255", Some("reserved addresses")),
            ("127.0.0.1", Some("loopback addresses")),
            ("126.0.0.0/7", None),
            ("169.254.0.0/16", Some("addresses within a link")),
            ("169.254.0.0/15", None),
            ("0.0.0.0/0", None),
            ("10.0.0.0/8", None),
            ("ff02::/16", Some("groups")),
            ("::1", Some("the unspecified and the loopback address")),
            ("::/0", None),
            ("fe80::/64", Some("addresses within a link")),
            ("fec0::/10", None),
            ("::ffff:10.0.0.0/104", Some("IPv4 addresses in IPv6 form")),
            ("fd00::/8", None),
        ] {
            assert_eq!(net.parse::<Network>().unwrap().unforwarded(), what, "{net}");
        }
    }

    #[test]
    fn some_addresses_mean_all_or_any_router() {
        for (net, address, all) in [
            ("10.0.0.1/24", "10.0.0.0", true),
            ("10.0.0.1/24", "10.0.0.255", true),
            ("10.0.0.1/24", "10.0.0.2", false),
            ("10.0.0.1/24", "10.0.1.255", false),
            ("10.0.0.0/31", "10.0.0.1", false),
            ("10.0.0.1/32", "10.0.0.1", false),
            ("fd00::1/64", "fd00::", true),
            ("fd00::1/64", "fd00::ffff:ffff:ffff:ffff", false),
            ("fd00::1/127", "fd00::", false),
            ("fd00::1/64", "10.0.0.0", false),
        ] {
            assert_eq!(
                net.parse::<Network>().unwrap().means_all(address.parse().unwrap()),
                all,
                "{net}, {address}"
            );
        }
    }

    #[test]
    fn hardware_addresses() {
        assert_eq!("2:0:0:0:0:A".parse::<Mac>().unwrap().to_string(), "02:00:00:00:00:0a");
        assert_eq!(Mac::of_port(258).to_string(), "02:4c:57:00:01:02");
        for bad in ["", "01:00:00:00:00:01", "00:00:00:00:00:00", "02:00:00:00:00", "02:00:00:00:00:+1"] {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }
}
