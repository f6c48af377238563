//! The kernel's netlink sockets: messages with nested attributes, requests with acknowledgements, dumps
//! (netlink(7)).
//!
//! A socket belongs to the namespace of the thread that opened it.
#![allow(unsafe_code)]

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::namespace::check;

const HEADER: usize = size_of::<libc::nlmsghdr>();
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLA_TYPE_MASK: u16 = 0x3fff;

/// How long the kernel may take to answer; it answers at once, unless something is wrong with the request.
const PATIENCE: libc::timeval = libc::timeval { tv_sec: 10, tv_usec: 0 };

/// Requests that are sent before their answers are read: these must find room in the socket.
const TOGETHER: usize = 64;

/// Bytes that fit every datagram of the kernel's: it makes none longer than 32 KiB (netlink(7)).
pub const LONGEST: usize = 64 * 1024;

/// A netlink socket in one namespace.
#[derive(Debug)]
pub struct Socket {
    socket: OwnedFd,
    sequence: u32,
}

impl Socket {
    /// Opens a socket for one of the kernel's parts (`NETLINK_ROUTE` and the like) in the calling thread's
    /// namespace.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open(part: libc::c_int) -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked before it becomes an owned descriptor.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, part) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is a new descriptor that nothing else owns.
        let socket = Self { socket: unsafe { OwnedFd::from_raw_fd(fd) }, sequence: 0 };
        // Asks the kernel to say in words what it refuses; without it errors are bare numbers.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            socket.set(libc::SOL_NETLINK, option, &1i32)?;
        }
        socket.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &PATIENCE)?;
        Ok(socket)
    }

    fn set<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: a live value of the length given.
        check(unsafe {
            libc::setsockopt(self.socket.as_raw_fd(), level, option, (&raw const *value).cast(), length)
        })
    }

    /// Sends a request and waits for its acknowledgement.
    ///
    /// # Errors
    /// What the kernel answers, in words where it has some.
    pub fn request(&mut self, mut m: Message) -> io::Result<()> {
        m.add_flags(libc::NLM_F_ACK);
        let sequence = self.number(&mut m);
        self.send(&m.bytes)?;
        self.replies(sequence..=sequence, |_, _| {})
    }

    /// Sends requests in one go, and answers with what error each of them ended, if it did. The rest is carried out all the same.
    ///
    /// # Errors
    /// When the kernel does not take them, or does not answer.
    pub fn requests(&mut self, mut requests: Vec<Message>) -> io::Result<Vec<Option<io::Error>>> {
        let mut ends = Vec::with_capacity(requests.len());
        for chunk in requests.chunks_mut(TOGETHER) {
            let mut bytes = Vec::new();
            let first = self.sequence + 1;
            for m in chunk {
                m.add_flags(libc::NLM_F_ACK);
                self.number(m);
                bytes.extend_from_slice(&m.bytes);
            }
            self.send(&bytes)?;
            for sequence in first..=self.sequence {
                ends.push(self.replies(sequence..=sequence, |_, _| {}).err());
            }
        }
        Ok(ends)
    }

    /// Sends a request for a listing and hands each entry's type and body to `each`. Whether the listing is of one moment: if not, something
    /// changed while it was made.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn dump(&mut self, mut m: Message, each: impl FnMut(u16, &[u8])) -> io::Result<bool> {
        m.add_flags(libc::NLM_F_DUMP);
        let sequence = self.number(&mut m);
        self.send(&m.bytes)?;
        let mut whole = true;
        self.listen_to(sequence..=sequence, &mut whole, each)?;
        Ok(whole)
    }

    /// Listens to what the kernel tells these groups (`RTNLGRP_…`), with `buffer` bytes of room for what is not read yet, waiting at most
    /// `patience` for the next message.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn subscribe(
        &self,
        groups: &[libc::c_int],
        buffer: libc::c_int,
        patience: Duration,
    ) -> io::Result<()> {
        // Beyond the machine's limit only where there is the right to; else as much as there is.
        if self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &buffer).is_err() {
            self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &buffer)?;
        }
        let time = libc::timeval {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_usec: libc::suseconds_t::from(patience.subsec_micros() as i32),
        };
        self.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time)?;
        self.bind()?;
        groups.iter().try_for_each(|group| self.set(libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group))
    }

    /// Gives the socket a number of its own: the kernel tells groups' members nothing that have its own, which is none.
    fn bind(&self) -> io::Result<()> {
        // SAFETY: an address of the kernel's layout; zeros are valid, and let the kernel choose.
        let mut own: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        own.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: a live address of the length given.
        check(unsafe { libc::bind(self.socket.as_raw_fd(), (&raw const own).cast(), length) })
    }

    /// Waits for the next datagram: its bytes in `buffer`, and whether the kernel itself has sent it. A datagram that was longer than `buffer`
    /// is cut short.
    ///
    /// # Errors
    /// `WouldBlock` if none comes within the socket's patience (or at once, if not `waits`); `ENOBUFS` if some were lost for want of room.
    pub fn receive<'b>(&self, buffer: &'b mut [u8], waits: bool) -> io::Result<(&'b [u8], bool)> {
        // SAFETY: an address of the kernel's layout; zeros are valid.
        let mut from: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        let flags = if waits { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: both pointers describe live memory of the lengths given.
        let n = unsafe {
            libc::recvfrom(
                self.socket.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                flags,
                (&raw mut from).cast(),
                &raw mut length,
            )
        };
        let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
        Ok((&buffer[..n.min(buffer.len())], from.nl_pid == 0))
    }

    /// Sends requests that take effect together or not at all, between the two that mark their begin and end.
    ///
    /// # Errors
    /// What the kernel answers; nothing has changed then.
    pub fn batch(&mut self, begin: Message, requests: Vec<Message>, end: Message) -> io::Result<()> {
        let last = requests.len();
        let mut bytes = Vec::new();
        let mut numbers = Vec::new();
        for (i, mut m) in std::iter::once(begin).chain(requests).chain([end]).enumerate() {
            // Errors are told in any case; the last request's acknowledgement comes after all of them.
            if i == last {
                m.add_flags(libc::NLM_F_ACK);
            }
            numbers.push(self.number(&mut m));
            bytes.extend_from_slice(&m.bytes);
        }
        self.send(&bytes)?;
        self.replies(numbers[0]..=numbers[last], |_, _| {})
    }

    fn number(&mut self, m: &mut Message) -> u32 {
        self.sequence += 1;
        m.finish(self.sequence);
        self.sequence
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: pointer and length describe a live buffer; an unconnected netlink socket sends to the kernel.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Hands every reply to `each`, up to the first acknowledgement, error, or end of the dump.
    fn replies(&self, sequences: RangeInclusive<u32>, each: impl FnMut(u16, &[u8])) -> io::Result<()> {
        self.listen_to(sequences, &mut true, each)
    }

    /// The same; `whole` becomes false if what was listed changed meanwhile.
    fn listen_to(
        &self,
        sequences: RangeInclusive<u32>,
        whole: &mut bool,
        mut each: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        let mut buffer = vec![0u8; LONGEST];
        loop {
            let (mut rest, of_the_kernel) = self.receive(&mut buffer, true)?;
            if !of_the_kernel {
                continue;
            }
            while let Some((reply, tail)) = split_reply(rest) {
                rest = tail;
                if !sequences.contains(&reply.sequence) {
                    continue;
                }
                *whole &= i32::from(reply.flags) & libc::NLM_F_DUMP_INTR == 0;
                match libc::c_int::from(reply.kind) {
                    libc::NLMSG_ERROR => return acknowledgement(reply.flags, reply.body),
                    libc::NLMSG_DONE => return Ok(()),
                    _ => each(reply.kind, reply.body),
                }
            }
        }
    }
}

/// One message of a datagram.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// Its type (`RTM_…`, `NLMSG_…`).
    pub kind: u16,
    /// Its flags (`NLM_F_…`).
    pub flags: u16,
    /// The number of the request that it answers.
    pub sequence: u32,
    /// What follows its header.
    pub body: &'a [u8],
}

/// The first message of a datagram, and what follows it. None at its end, and where something else stands.
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

fn acknowledgement(flags: u16, body: &[u8]) -> io::Result<()> {
    let code = u32_at(body, 0).ok_or(io::ErrorKind::UnexpectedEof)?.cast_signed();
    if code == 0 {
        return Ok(());
    }
    let error = io::Error::from_raw_os_error(-code);
    // With NETLINK_CAP_ACK only the header of the request is echoed before the attributes.
    let has_words = i32::from(flags) & libc::NLM_F_ACK_TLVS != 0;
    let words = body.get(4 + HEADER..).filter(|_| has_words).and_then(|a| {
        let (_, text) = attributes(a).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG)?;
        Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
    });
    // The words replace the number only where the number carries no more meaning for a caller.
    match words {
        Some(words) if code == -libc::EINVAL => Err(io::Error::new(io::ErrorKind::InvalidInput, words)),
        _ => Err(error),
    }
}

/// The number of 16 bits at a place.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The number of 32 bits at a place.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A request being written: header, fixed part, attributes.
#[derive(Debug)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A request of a type, with flags; `NLM_F_REQUEST` is always among them.
    pub fn new(kind: u16, flags: libc::c_int) -> Self {
        let mut m = Self { bytes: vec![0; HEADER] };
        m.bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        m.add_flags(flags | libc::NLM_F_REQUEST);
        m
    }

    /// Attributes without a header, to become part of a request.
    pub fn part() -> Self {
        Self { bytes: Vec::new() }
    }

    /// The bytes of a [`Message::part`].
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn add_flags(&mut self, flags: libc::c_int) {
        let flags = u16::from_ne_bytes([self.bytes[6], self.bytes[7]]) | flags as u16;
        self.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    }

    fn finish(&mut self, sequence: u32) {
        let length = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    }

    /// A part of fixed layout. Every such part is a multiple of four bytes long, so attributes that follow stay aligned.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Text with a closing zero.
    pub fn string(&mut self, kind: u16, text: &str) {
        let mut value = text.as_bytes().to_vec();
        value.push(0);
        self.attribute(kind, &value);
    }

    /// An attribute with a plain value.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |m| m.bytes(value));
    }

    /// An attribute made of attributes.
    pub fn nested(&mut self, kind: u16, content: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes(&[0; 4]);
        content(self);
        // Names are at most 255 bytes and everything else is of fixed size: a length always fits 16 bits.
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested() {
        let mut m = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE);
        m.nested(7, |m| m.attribute(9, b"abc"));
        m.finish(5);
        let (reply, tail) = split_reply(&m.bytes).unwrap();
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
        m.finish(1);
        for length in 0..m.bytes.len() {
            assert!(split_reply(&m.bytes[..length]).is_none());
            assert!(attributes(&m.bytes[HEADER.min(length)..length]).next().is_none());
            let _ = acknowledgement(u16::MAX, &m.bytes[..length]);
        }
    }
}
