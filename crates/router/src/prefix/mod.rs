//! Longest-prefix tables for IPv4 and IPv6: the next hop of a destination.

mod arena;
mod v4;
mod v6;

pub use v4::V4Table;
pub use v6::V6Table;

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;
use std::str::FromStr;
use thiserror::Error;

/// An IPv4 (`u32`) or IPv6 (`u128`) address as a number in network order.
pub trait Address: Copy + Ord + fmt::Debug + From<<Self as Address>::Written> {
    /// Its number of bits.
    const BITS: u8;

    /// Its type in the usual notation.
    type Written: fmt::Display + FromStr + From<Self>;

    /// Its first `len` bits followed by zeros. `len` is at most [`Address::BITS`].
    #[must_use]
    fn masked(self, len: u8) -> Self;
}

impl Address for u32 {
    const BITS: u8 = 32;

    type Written = Ipv4Addr;

    #[inline]
    fn masked(self, len: u8) -> Self {
        if len == 0 { 0 } else { self & (Self::MAX << (32 - len)) }
    }
}

impl Address for u128 {
    const BITS: u8 = 128;

    type Written = Ipv6Addr;

    #[inline]
    fn masked(self, len: u8) -> Self {
        if len == 0 { 0 } else { self & (Self::MAX << (128 - len)) }
    }
}

/// An address prefix; the bits after the first `len` are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    address: A,
    len: u8,
}

/// Reason why a prefix is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrefixError {
    /// More bits than the address has.
    #[error("prefix length {len}: it must be at most {most}")]
    TooLong {
        /// The prefix length.
        len: u8,
        /// The maximum.
        most: u8,
    },
    /// Not of the form address/length.
    #[error("`{text}` is no prefix: write an address and a length, as 10.0.0.0/8 or fd00::/64")]
    Unreadable {
        /// The text.
        text: String,
    },
}

impl<A: Address> Prefix<A> {
    /// The prefix of the first `len` bits of `address`; its other bits are ignored.
    ///
    /// # Errors
    /// If `len` exceeds the address length.
    pub fn new(address: A, len: u8) -> Result<Self, PrefixError> {
        if len > A::BITS {
            return Err(PrefixError::TooLong { len, most: A::BITS });
        }
        Ok(Self { address: address.masked(len), len })
    }

    /// The prefix of a single address.
    pub fn host(address: A) -> Self {
        Self { address, len: A::BITS }
    }

    /// Its first address.
    pub fn address(self) -> A {
        self.address
    }

    /// Its length.
    pub fn bits(self) -> u8 {
        self.len
    }

    /// Whether it matches `address`.
    pub fn holds(self, address: A) -> bool {
        address.masked(self.len) == self.address
    }
}

impl<A: Address> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", A::Written::from(self.address), self.len)
    }
}

impl<A: Address> FromStr for Prefix<A> {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let unreadable = || PrefixError::Unreadable { text: text.into() };
        let (address, len) = text.split_once('/').ok_or_else(unreadable)?;
        let address: A::Written = address.parse().map_err(|_| unreadable())?;
        Self::new(address.into(), len.parse().map_err(|_| unreadable())?)
    }
}

/// Number of a next hop in the table of next hops: 1 to 65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HopId(pub NonZeroU16);

impl HopId {
    #[inline]
    pub(crate) fn from_raw(raw: u16) -> Option<Self> {
        NonZeroU16::new(raw).map(Self)
    }

    /// Its index in a table of next hops.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0.get() as usize
    }
}

/// The table has reached its limit of prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the table has its {limit} prefixes: raise its limit, or aggregate them")]
pub struct TableFull {
    /// The limit.
    pub limit: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_and_written() {
        for text in ["0.0.0.0/0", "10.0.0.0/8", "10.1.2.3/32"] {
            assert_eq!(text.parse::<Prefix<u32>>().unwrap().to_string(), text);
        }
        for text in ["::/0", "fd00::/64", "fd00::1/128"] {
            assert_eq!(text.parse::<Prefix<u128>>().unwrap().to_string(), text);
        }
        assert_eq!("10.1.2.3/8".parse::<Prefix<u32>>().unwrap().to_string(), "10.0.0.0/8");
        for text in ["10.0.0.0", "10.0.0/8", "10.0.0.0/x", "10.0.0.0/33", "fd00::/8", ""] {
            assert!(text.parse::<Prefix<u32>>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_prefix_holds_its_addresses() {
        let prefix: Prefix<u32> = "10.1.0.0/16".parse().unwrap();
        assert!(prefix.holds(0x0a01_ffff) && !prefix.holds(0x0a02_0000));
        assert!(Prefix::new(7u32, 0).unwrap().holds(u32::MAX));
        assert!(Prefix::host(7u128).holds(7) && !Prefix::host(7u128).holds(6));
    }
}
