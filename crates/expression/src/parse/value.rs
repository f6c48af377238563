//! Numbers and addresses as words.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A decimal number, a hexadecimal one with `0x`, an octal one with `0`.
pub(super) fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    // from_str_radix would take a sign.
    if digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        u32::from_str_radix(digits, radix).ok()
    } else {
        None
    }
}

/// Four decimal bytes.
pub(super) fn v4(text: &str) -> Option<u32> {
    text.parse::<Ipv4Addr>().ok().map(u32::from)
}

/// One to four decimal bytes: the address that they begin, and their number of bits.
pub(super) fn v4_prefix(text: &str) -> Option<(u32, u32)> {
    let (mut address, mut bits) = (0u32, 0);
    for part in text.split('.') {
        if bits == 32 || part.is_empty() || part.len() > 3 || !part.bytes().all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        address = address << 8 | u32::from(part.parse::<u8>().ok()?);
        bits += 8;
    }
    Some((address << (32 - bits), bits))
}

pub(super) fn v6(text: &str) -> Option<u128> {
    text.parse::<Ipv6Addr>().ok().map(u128::from)
}

/// An Ethernet address: six hexadecimal bytes separated by colons, hyphens or dots, or three groups of four
/// digits.
pub(super) fn mac(text: &str) -> Option<u64> {
    let separator = text.chars().find(|c| matches!(c, ':' | '-' | '.'))?;
    let parts: Vec<&str> = text.split(separator).collect();
    let digits = match parts.len() {
        6 => 2,
        3 if separator == '.' => 4,
        _ => return None,
    };
    parts.iter().try_fold(0u64, |address, part| {
        let is_hex =
            !part.is_empty() && part.len() <= digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = if is_hex { u64::from_str_radix(part, 16).ok()? } else { return None };
        Some(address << (digits * 4) | value)
    })
}

/// Two ports with a hyphen between them; names of ports may contain hyphens too.
pub(super) fn port_range(text: &str, port: impl Fn(&str) -> Option<u32>) -> Option<(u32, u32)> {
    let hyphens = text.match_indices('-').map(|(at, _)| at);
    hyphens.into_iter().find_map(|at| port(&text[..at]).zip(port(&text[at + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers() {
        let table = [
            ("0", Some(0)),
            ("80", Some(80)),
            ("0x1F", Some(31)),
            ("017", Some(15)),
            ("4294967295", Some(u32::MAX)),
            ("4294967296", None),
            ("0x", None),
            ("09", None),
            ("0x+1", None),
            ("", None),
            ("1a", None),
        ];
        for (text, wanted) in table {
            assert_eq!(number(text), wanted, "{text}");
        }
    }

    #[test]
    fn reads_addresses() {
        assert_eq!(v4_prefix("10"), Some((0x0a00_0000, 8)));
        assert_eq!(v4_prefix("10.1.2"), Some((0x0a01_0200, 24)));
        assert_eq!(v4_prefix("1.2.3.4"), Some((0x0102_0304, 32)));
        for text in ["", "256", "1..2", "1.2.3.4.5", "1.2.", "0x1"] {
            assert_eq!(v4_prefix(text), None, "{text}");
        }
        for text in ["1:2:3:4:5:ff", "01-02-03-04-05-ff", "01.02.03.04.05.ff", "0102.0304.05ff"] {
            assert_eq!(mac(text), Some(0x0102_0304_05ff), "{text}");
        }
        for text in ["1:2:3:4:5", "1:2:3:4:5:100", "1:2:3:4:5:", "1-2:3:4:5:6", "tcp-syn"] {
            assert_eq!(mac(text), None, "{text}");
        }
        let port = |text: &str| if text == "ftp-data" { Some(20) } else { number(text) };
        assert_eq!(port_range("80-90", port), Some((80, 90)));
        assert_eq!(port_range("ftp-data-22", port), Some((20, 22)));
        assert_eq!(port_range("80-", port), None);
    }
}
