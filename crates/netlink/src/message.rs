//! Messages: a header, a part of fixed layout, and attributes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLA_TYPE_MASK: u16 = 0x3fff;

/// A message that is too short, or has invalid values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Builder of a request: header, fixed part, attributes.
#[derive(Debug)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A request of a type, with flags in addition to `NLM_F_REQUEST`.
    pub fn new(kind: u16, flags: libc::c_int) -> Self {
        let mut m = Self { bytes: vec![0; HEADER] };
        m.bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        m.add_flags(flags | libc::NLM_F_REQUEST);
        m
    }

    /// Attributes without a header, for inclusion in a request.
    pub fn part() -> Self {
        Self { bytes: Vec::new() }
    }

    /// The bytes of a [`Message::part`].
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The finished request with this sequence number.
    pub fn finish(&mut self, sequence: u32) -> &[u8] {
        let length = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        &self.bytes
    }

    pub(crate) fn add_flags(&mut self, flags: libc::c_int) {
        let flags = u16::from_ne_bytes([self.bytes[6], self.bytes[7]]) | flags as u16;
        self.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    }

    /// Appends a fixed-layout part. Each is a multiple of four bytes long, so attributes that follow stay
    /// aligned.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends an attribute with a plain value.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |m| m.bytes(value));
    }

    /// Appends a zero-terminated string.
    pub fn string(&mut self, kind: u16, text: &str) {
        self.nested(kind, |m| {
            m.bytes(text.as_bytes());
            m.bytes(&[0]);
        });
    }

    /// Appends a 32-bit number in native byte order.
    pub fn number(&mut self, kind: u16, number: u32) {
        self.attribute(kind, &number.to_ne_bytes());
    }

    /// Appends an IP address.
    pub fn ip(&mut self, kind: u16, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.attribute(kind, &address.octets()),
            IpAddr::V6(address) => self.attribute(kind, &address.octets()),
        }
    }

    /// Appends a nested attribute.
    pub fn nested(&mut self, kind: u16, content: impl FnOnce(&mut Self)) {
        self.measured(|m| {
            m.bytes(&kind.to_ne_bytes());
            content(m);
        });
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Appends content preceded by its own 16-bit length.
    pub(crate) fn measured(&mut self, content: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes(&[0; 2]);
        content(self);
        // Names have at most 255 bytes and everything else has fixed size, so a length always fits 16 bits.
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    }
}

/// One message of a datagram.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// Its type (`RTM_…`, `NLMSG_…`).
    pub kind: u16,
    /// Its flags (`NLM_F_…`).
    pub flags: u16,
    /// The sequence number of the request it answers.
    pub sequence: u32,
    /// The message without its header.
    pub body: &'a [u8],
}

/// Splits off the first message of a datagram. None at the end, or at malformed data.
pub fn split_reply(bytes: &[u8]) -> Option<(Reply<'_>, &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let body = bytes.get(HEADER..length)?;
    let tail = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    let (kind, flags, sequence) = (u16_at(bytes, 4)?, u16_at(bytes, 6)?, u32_at(bytes, 8)?);
    Some((Reply { kind, flags, sequence, body }, tail))
}

/// (type, value) of each attribute, up to the first that is malformed.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u16_at(bytes, 0)? as usize;
        let value = bytes.get(4..length)?;
        let kind = u16_at(bytes, 2)? & NLA_TYPE_MASK;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// The value of the first attribute of a type.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

/// The text of the first attribute of a type, without its terminating zero.
pub fn attribute_text(bytes: &[u8], wanted: u16) -> Option<&str> {
    Some(std::str::from_utf8(attribute(bytes, wanted)?).ok()?.trim_end_matches('\0'))
}

/// Result of an acknowledgement: success, or the error with its reason.
pub(crate) fn acknowledgement(flags: u16, body: &[u8]) -> io::Result<()> {
    let code = u32_at(body, 0).ok_or(io::ErrorKind::UnexpectedEof)?.cast_signed();
    if code == 0 {
        return Ok(());
    }
    let error = io::Error::from_raw_os_error(code.wrapping_neg());
    // With NETLINK_CAP_ACK, only the request's header is echoed before the attributes.
    let has_words = i32::from(flags) & libc::NLM_F_ACK_TLVS != 0;
    let words = body.get(4 + HEADER..).filter(|_| has_words).and_then(|a| {
        let text = attribute(a, NLMSGERR_ATTR_MSG)?;
        Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
    });
    // The kernel's text replaces only error numbers on which no caller depends.
    match words {
        Some(words) if code == -libc::EINVAL => Err(io::Error::new(io::ErrorKind::InvalidInput, words)),
        _ => Err(error),
    }
}

/// Result of a dump at its end: success, or the error that has cut it short.
pub(crate) fn end_of_dump(body: &[u8]) -> io::Result<()> {
    let code = u32_at(body, 0).map_or(0, u32::cast_signed);
    if code < 0 { Err(io::Error::from_raw_os_error(code.wrapping_neg())) } else { Ok(()) }
}

/// The 16-bit number at an offset.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The 32-bit number at an offset.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Value of a 32-bit attribute.
pub(crate) fn number(value: &[u8]) -> Result<u32, Malformed> {
    value.try_into().map(u32::from_ne_bytes).map_err(|_| Malformed)
}

/// Value of an address attribute of this family.
pub(crate) fn ip(family: u8, value: &[u8]) -> Result<IpAddr, Malformed> {
    match libc::c_int::from(family) {
        libc::AF_INET => <[u8; 4]>::try_from(value).map(IpAddr::from).map_err(|_| Malformed),
        libc::AF_INET6 => <[u8; 16]>::try_from(value).map(IpAddr::from).map_err(|_| Malformed),
        _ => Err(Malformed),
    }
}

/// Address family of an address.
pub(crate) const fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

/// The unspecified address of an IP family; none for other families.
pub(crate) const fn zero(family: u8) -> Option<IpAddr> {
    match family as libc::c_int {
        libc::AF_INET => Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        libc::AF_INET6 => Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        _ => None,
    }
}

/// Number of bits of an address.
pub(crate) const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested() {
        let mut m = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE);
        m.nested(7, |m| m.attribute(9, b"abc"));
        let (reply, tail) = split_reply(m.finish(5)).unwrap();
        assert_eq!((reply.kind, reply.sequence, tail), (libc::RTM_NEWLINK, 5, &[][..]));
        assert_eq!(i32::from(reply.flags), libc::NLM_F_CREATE | libc::NLM_F_REQUEST);
        let outer: Vec<_> = attributes(reply.body).collect();
        assert_eq!(outer.len(), 1);
        assert_eq!(outer[0].0, 7);
        assert_eq!(attributes(outer[0].1).collect::<Vec<_>>(), [(9, &b"abc"[..])]);
    }

    #[test]
    fn cut_short_replies_are_not_read_past_their_end() {
        let mut m = Message::new(libc::RTM_NEWROUTE, 0);
        m.attribute(1, &[10, 1, 2, 0]);
        let bytes = m.finish(1);
        for length in 0..bytes.len() {
            assert!(split_reply(&bytes[..length]).is_none());
            assert!(attributes(&bytes[HEADER.min(length)..length]).next().is_none());
            let _ = acknowledgement(u16::MAX, &bytes[..length]);
        }
    }

    #[test]
    fn refusals_have_the_kernels_words_where_the_number_says_little() {
        let refusal = |code: i32| {
            let mut m = Message::part();
            m.bytes(&code.to_ne_bytes());
            m.bytes(&[0; HEADER]);
            m.string(NLMSGERR_ATTR_MSG, "no such thing");
            m.into_bytes()
        };
        let said = |code, flags| acknowledgement(flags, &refusal(code)).unwrap_err();
        let words = libc::NLM_F_ACK_TLVS as u16;
        assert_eq!(said(-libc::EINVAL, words).to_string(), "no such thing");
        assert_eq!(said(-libc::EINVAL, 0).raw_os_error(), Some(libc::EINVAL));
        assert_eq!(said(-libc::ENOENT, words).raw_os_error(), Some(libc::ENOENT));
        assert!(acknowledgement(words, &refusal(0)).is_ok());
        // An impossible error number.
        assert!(acknowledgement(words, &refusal(i32::MIN)).is_err());
    }
}
