//! The options of IPv4 headers (RFC 791, 3.1) and of IPv6 hop-by-hop headers (RFC 8200, 4.2).

use crate::Malformed;

/// Types of IPv4 options, copy bit and class included.
pub mod option_kind {
    /// No option follows.
    pub const END: u8 = 0;
    /// Nothing.
    pub const NOTHING: u8 = 1;
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Time stamps.
    pub const TIMESTAMP: u8 = 68;
    /// Loose source route.
    pub const LOOSE_ROUTE: u8 = 131;
    /// Strict source route.
    pub const STRICT_ROUTE: u8 = 137;
}

/// Position of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderOption {
    /// Its type.
    pub kind: u8,
    /// Offset of its first byte within the options.
    pub offset: usize,
    /// Its length, type and length bytes included.
    pub len: usize,
}

/// The options of an IPv4 header in order, without padding; ends after the first malformed one.
#[derive(Debug, Clone)]
pub struct Ipv4Options<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Ipv4Options<'a> {
    /// The options in `bytes`, which follow the 20 bytes of the fixed header.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl Iterator for Ipv4Options<'_> {
    type Item = Result<HeaderOption, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while *self.bytes.get(self.at)? == option_kind::NOTHING {
            self.at += 1;
        }
        let (offset, kind) = (self.at, self.bytes[self.at]);
        if kind == option_kind::END {
            return None;
        }
        let len = usize::from(*self.bytes.get(offset + 1).unwrap_or(&0));
        if len < 2 || offset + len > self.bytes.len() {
            self.at = self.bytes.len();
            let wanted = "at least 2 and within the header";
            let (header, value) = ("IPv4 option", len as u32);
            return Some(Err(Malformed::Field { header, field: "length", value, wanted }));
        }
        self.at += len;
        Some(Ok(HeaderOption { kind, offset, len }))
    }
}

/// The options of an IPv6 hop-by-hop or destination header in order, without padding; ends after the first
/// malformed one.
#[derive(Debug, Clone)]
pub struct Ipv6Options<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Ipv6Options<'a> {
    /// The options of the header that begins with `bytes`. Offsets are from its first byte.
    ///
    /// # Errors
    /// The bytes end within the header.
    pub fn check(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let needed = 8 + usize::from(*bytes.get(1).unwrap_or(&0)) * 8;
        let header = "IPv6 options";
        let bytes = bytes.get(..needed).ok_or(Malformed::Short { header, needed, present: bytes.len() })?;
        Ok(Self { bytes, at: 2 })
    }

    /// Bytes of the header.
    pub fn header_len(&self) -> usize {
        self.bytes.len()
    }
}

impl Iterator for Ipv6Options<'_> {
    type Item = Result<HeaderOption, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        const PAD_1: u8 = 0;
        const PAD_N: u8 = 1;
        loop {
            let (offset, kind) = (self.at, *self.bytes.get(self.at)?);
            if kind == PAD_1 {
                self.at += 1;
                continue;
            }
            let len = 2 + usize::from(*self.bytes.get(offset + 1).unwrap_or(&255));
            if offset + len > self.bytes.len() {
                self.at = self.bytes.len();
                let wanted = "within its header";
                let (header, value) = ("IPv6 option", len as u32 - 2);
                return Some(Err(Malformed::Field { header, field: "length", value, wanted }));
            }
            self.at += len;
            if kind != PAD_N {
                return Some(Ok(HeaderOption { kind, offset, len }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn walks_options() {
        let bytes = [1, 7, 7, 4, 0, 0, 0, 0, 1, 148, 4, 0, 0, 0, 9, 9];
        let all: Result<Vec<_>, _> = Ipv4Options::new(&bytes).collect();
        let expected =
            [HeaderOption { kind: 7, offset: 1, len: 7 }, HeaderOption { kind: 148, offset: 9, len: 4 }];
        assert_eq!(all.unwrap(), expected);
        for bad in [&[7][..], &[7, 0], &[7, 1, 0], &[7, 4, 0]] {
            let all: Vec<_> = Ipv4Options::new(bad).collect();
            assert!(matches!(all[..], [Err(Malformed::Field { .. })]), "{bad:?}");
        }
    }

    #[test]
    fn walks_hop_by_hop_options() {
        let bytes = [6, 1, 0, 1, 1, 0, 5, 2, 0, 0, 1, 4, 0, 0, 0, 0, 99];
        let options = Ipv6Options::check(&bytes).unwrap();
        assert_eq!(options.header_len(), 16);
        let all: Result<Vec<_>, _> = options.collect();
        assert_eq!(all.unwrap(), [HeaderOption { kind: 5, offset: 6, len: 4 }]);
        assert!(Ipv6Options::check(&bytes[..15]).is_err());
        let long = [6, 0, 5, 5, 0, 0, 0, 0];
        assert!(matches!(Ipv6Options::check(&long).unwrap().next(), Some(Err(_))));
    }

    proptest! {
        #[test]
        fn options_stand_one_after_the_other_within_the_bytes(bytes in prop::collection::vec(any::<u8>(),
            0..48)) {
            let mut end = 0;
            for option in Ipv4Options::new(&bytes).flatten() {
                prop_assert!(option.offset >= end && option.len >= 2);
                end = option.offset + option.len;
            }
            prop_assert!(end <= bytes.len());
            let mut end = 2;
            for option in Ipv6Options::check(&bytes).into_iter().flatten().flatten() {
                prop_assert!(option.offset >= end);
                end = option.offset + option.len;
                prop_assert!(end <= bytes.len());
            }
        }
    }
}
