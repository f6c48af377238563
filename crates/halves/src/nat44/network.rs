//! Networks and ports in command-line syntax.

use longwire_scenario::Network;
use std::net::{IpAddr, Ipv4Addr};

/// A network of IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network4 {
    address: u32,
    mask: u32,
}

impl Network4 {
    /// Parses a network; the address may be any of its addresses.
    pub fn read(text: &str) -> Result<Self, String> {
        Self::with_address(text).map(|(network, _)| network)
    }

    /// Parses external addresses: one, or all of a network, which must begin with the address.
    pub fn external(text: &str) -> Result<Self, String> {
        let (network, address) = Self::with_address(text)?;
        let first = Ipv4Addr::from(network.address);
        if address != first {
            let count = network.count();
            let prefix = network.mask.count_ones();
            return Err(format!(
                "\"{text}\" would be all {count} addresses of its network: write {address} for that one, or \
                 {first}/{prefix} for all"
            ));
        }
        let why = match first.octets() {
            [0, ..] => "\"this network\" addresses",
            [127, ..] => "loopback addresses",
            [169, 254, ..] => "link-local addresses",
            [224..=239, ..] => "multicast addresses",
            [240..=255, ..] => "reserved addresses",
            _ => return Ok(network),
        };
        Err(format!(
            "\"{text}\" is one of the {why}, which no router forwards: give an address of the router"
        ))
    }

    /// Parses a network and the address as written.
    fn with_address(text: &str) -> Result<(Self, Ipv4Addr), String> {
        let written: Network = text.parse()?;
        let network = written.masked();
        let (IpAddr::V4(written), IpAddr::V4(address)) = (written.address, network.address) else {
            return Err(format!("\"{text}\" is not IPv4"));
        };
        match network.prefix {
            0 => Err(format!("\"{text}\" has all addresses")),
            prefix => Ok((Self { address: address.into(), mask: u32::MAX << (32 - prefix) }, written)),
        }
    }

    pub fn contains(&self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask == self.address
    }

    /// Whether they overlap.
    pub fn meets(&self, other: &Self) -> bool {
        let mask = self.mask & other.mask;
        self.address & mask == other.address & mask
    }

    /// The first address.
    pub fn first(&self) -> Ipv4Addr {
        self.address.into()
    }

    /// Number of addresses.
    pub fn count(&self) -> u64 {
        u64::from(!self.mask) + 1
    }

    pub fn addresses(&self) -> Vec<Ipv4Addr> {
        (self.address..=self.address | !self.mask).map(Ipv4Addr::from).collect()
    }

    /// The program's format: address, mask.
    pub fn bytes(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.address.to_be_bytes());
        bytes[4..].copy_from_slice(&self.mask.to_be_bytes());
        bytes
    }
}

/// A range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ports {
    pub first: u16,
    pub last: u16,
}

impl Ports {
    pub fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not a range of ports, such as 1024-65535");
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first > 0 && first <= last => Ok(Self { first, last }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_ports_are_read() {
        let network = Network4::read("10.1.2.3/8").unwrap();
        assert_eq!(network.bytes(), [10, 0, 0, 0, 255, 0, 0, 0]);
        assert!(
            network.contains(Ipv4Addr::new(10, 9, 9, 9)) && !network.contains(Ipv4Addr::new(11, 0, 0, 1))
        );
        let pool = Network4::external("192.0.2.4/30").unwrap();
        let last: Vec<u8> = pool.addresses().iter().map(|address| address.octets()[3]).collect();
        assert_eq!((last, pool.count()), (vec![4, 5, 6, 7], 4));
        assert!(pool.meets(&Network4::read("192.0.0.0/16").unwrap()) && !pool.meets(&network));
        for wrong in ["fd00::/8", "10.0.0.0/33", "a", "0.0.0.0/0"] {
            assert!(Network4::read(wrong).is_err() && Network4::external(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Ports::read("1024-2047"), Ok(Ports { first: 1024, last: 2047 }));
        for wrong in ["1024", "9-8", "0-9", "1-65536"] {
            assert!(Ports::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn external_addresses_are_such_as_packets_can_have() {
        assert_eq!(Network4::external("10.0.2.1"), Network4::external("10.0.2.1/32"));
        for (wrong, why) in [
            (
                "10.0.2.1/24",
                "would be all 256 addresses of its network: write 10.0.2.1 for that one, or 10.0.2.0/24 for \
                 all",
            ),
            ("0.1.2.3", "is one of the \"this network\" addresses"),
            ("127.0.0.1", "is one of the loopback addresses"),
            ("169.254.7.0/24", "is one of the link-local addresses"),
            ("224.0.0.5", "is one of the multicast addresses"),
            ("239.255.0.0/28", "is one of the multicast addresses"),
            ("255.255.255.255", "is one of the reserved addresses"),
        ] {
            let said = Network4::external(wrong).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        for well in ["1.0.0.0/24", "126.0.0.1", "128.0.0.1", "169.253.0.1", "169.255.0.1", "223.255.255.0/24"]
        {
            assert!(Network4::external(well).is_ok(), "{well}");
        }
    }
}
