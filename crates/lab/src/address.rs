//! Addresses with their prefix, routes and Ethernet addresses of test hosts.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::LabError;

/// An IP address with the length of its network's prefix, written `10.0.0.1/24` or `fd00::1/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// `address` in a network of `prefix` bits.
    ///
    /// # Errors
    /// When `prefix` is more than 32 (IPv4) or 128 (IPv6).
    pub fn new(address: IpAddr, prefix: u8) -> Result<Self, LabError> {
        if prefix > width(address) {
            return Err(LabError::Address {
                text: format!("{address}/{prefix}"),
                reason: "the prefix is longer than the address: at most /32 for IPv4, /128 for IPv6",
            });
        }
        Ok(Self { address, prefix })
    }

    /// The address, including its host part.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Bits of the network's prefix.
    #[must_use]
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether `other` is in this address's network.
    #[must_use]
    pub fn contains(self, other: IpAddr) -> bool {
        self.address.is_ipv4() == other.is_ipv4()
            && masked(self.address, self.prefix) == masked(other, self.prefix)
    }

    /// Whether the two networks share an address.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        if self.prefix <= other.prefix { self.contains(other.address) } else { other.contains(self.address) }
    }

    /// The network: the same prefix with the host part zero.
    #[must_use]
    pub fn network(self) -> Self {
        let bits = masked(self.address, self.prefix);
        let address = match self.address {
            // The bits of an IPv4 address fit: there are 32.
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(bits as u32)),
            IpAddr::V6(_) => IpAddr::V6(bits.into()),
        };
        Self { address, prefix: self.prefix }
    }
}

const fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, prefix: u8) -> u128 {
    let bits = match address {
        IpAddr::V4(a) => u128::from(u32::from(a)),
        IpAddr::V6(a) => u128::from(a),
    };
    let host_bits = u32::from(width(address).saturating_sub(prefix));
    bits.checked_shr(host_bits).and_then(|b| b.checked_shl(host_bits)).unwrap_or(0)
}

impl FromStr for Cidr {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let error = |reason| LabError::Address { text: text.to_owned(), reason };
        let (address, prefix) = text.split_once('/').ok_or_else(|| {
            error("no prefix length: write an address with its prefix, such as 10.0.0.1/24")
        })?;
        let address = address.parse().map_err(|_| error("not an IP address before the \"/\""))?;
        let prefix =
            prefix.parse().map_err(|_| error("the prefix length after the \"/\" is not a number"))?;
        Self::new(address, prefix)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl TryFrom<String> for Cidr {
    type Error = LabError;

    fn try_from(text: String) -> Result<Self, LabError> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> Self {
        cidr.to_string()
    }
}

/// A route of a test host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The destination network; its host part is ignored.
    pub to: Cidr,
    /// The next hop; `None` if the destination is on the link itself.
    pub via: Option<IpAddr>,
}

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The default address of the host with this index in its lab: locally administered and the same in every
    /// run, so that captures can be compared.
    #[must_use]
    pub const fn of_place(index: u32) -> Self {
        let i = index.to_be_bytes();
        Self([0x02, 0x4c, i[0], i[1], i[2], i[3]])
    }

    /// Whether an interface can have this address: it is not zero and not a group address.
    #[must_use]
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl FromStr for Mac {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let error = || LabError::Address {
            text: text.to_owned(),
            reason: "not an Ethernet address: write six pairs of hexadecimal digits, such as \
                02:00:00:00:00:01",
        };
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|p| p.len() == 2).ok_or_else(error)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| error())?;
        }
        if parts.next().is_some() { Err(error()) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn networks_contain_and_overlap() {
        for (a, b, overlap) in [
            ("10.0.0.1/24", "10.0.0.200/32", true),
            ("10.0.0.1/24", "10.0.1.0/24", false),
            ("0.0.0.0/0", "192.0.2.1/32", true),
            ("0.0.0.0/0", "fd00::1/64", false),
            ("fd00::/8", "fd12:3456::1/64", true),
            ("::/0", "2001:db8::1/128", true),
            ("100.64.0.0/30", "100.64.0.4/30", false),
        ] {
            assert_eq!(cidr(a).overlaps(cidr(b)), overlap, "{a} {b}");
            assert_eq!(cidr(b).overlaps(cidr(a)), overlap, "{b} {a}");
        }
        assert_eq!(cidr("10.1.2.3/20").network().to_string(), "10.1.0.0/20");
        assert_eq!(cidr("fd00::1:2/112").network().to_string(), "fd00::1:0/112");
        assert_eq!(cidr("fd00::1/0").network().to_string(), "::/0");
    }

    #[test]
    fn text_that_is_no_address_is_refused_with_the_fix() {
        for text in ["10.0.0.1", "10.0.0.1/33", "fd00::1/129", "10.0.0/24", "/24", "10.0.0.1/x", ""] {
            let error = text.parse::<Cidr>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("\"{text}\": ")), "{error}");
        }
        for text in ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "2:0:0:0:0:1", "zz:00:00:00:00:01"] {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
        assert_eq!("02:4c:00:00:01:00".parse::<Mac>().unwrap(), Mac::of_place(256));
        assert_eq!(Mac::of_place(1).to_string(), "02:4c:00:00:00:01");
    }
}
