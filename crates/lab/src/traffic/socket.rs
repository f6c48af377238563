//! Socket calls that the standard library lacks: kernel timestamps, batches, buffer sizes, TCP statistics.

#![allow(unsafe_code)]

use crate::socket_option;
use crate::system_call::checked;
use longwire_clock::{Mapping, monotonic};
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, connect, ipproto, send, socket_with, sockopt,
};
use std::io;
use std::mem::{size_of_val, zeroed};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// The longest that a wait for the other side takes before its end is looked at, in nanoseconds.
pub const TICK_NS: u64 = 200_000_000;
/// Packets of one `recvmmsg` or `sendmmsg`.
pub const BATCH: usize = 64;
/// Bytes kept of each received packet: an IPv4 header with options, an ICMP header and ours.
const KEPT: usize = 128;
/// Requested receive buffer: about a tenth of a second at a million small packets per second.
const RECEIVE_BUFFER: usize = 64 << 20;

/// Prepares a socket to receive a stream: kernel timestamps, and the largest permitted buffer.
pub fn prepare_to_receive(socket: &impl AsFd) -> io::Result<()> {
    socket_option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    // Beyond the system's limit with CAP_NET_ADMIN only.
    Ok(sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER))?)
}

/// Number of packets that the socket dropped because its buffer was full; 0 if unknown.
pub fn drops(socket: &impl AsFd) -> u64 {
    const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;
    let mut values = [0u32; DROPS + 1];
    let read = socket_option::read(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut values);
    read.map_or(0, |_| u64::from(values[DROPS]))
}

/// Whether there was nothing to do, or a signal came: the socket still works.
pub fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A descriptor to wait on.
pub fn interest(socket: &impl AsFd, events: i16) -> libc::pollfd {
    libc::pollfd { fd: socket.as_fd().as_raw_fd(), events, revents: 0 }
}

/// Waits until one of the descriptors is ready, `timeout_ns` have passed, or a signal arrives; readiness is
/// in `revents`.
pub fn poll(sockets: &mut [libc::pollfd], timeout_ns: u64) -> io::Result<()> {
    // Both parts fit: the quotient is below 2^35 and the remainder below 10^9.
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as _,
        tv_nsec: (timeout_ns % 1_000_000_000) as _,
    };
    // By libc: the descriptors are reused from wait to wait, and negative ones are ignored. SAFETY: pointer
    // and length describe `sockets`; the timeout outlives the call; no signal mask is given.
    let result = unsafe {
        libc::ppoll(sockets.as_mut_ptr(), sockets.len() as libc::nfds_t, &timeout, std::ptr::null())
    };
    match checked(result) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            sockets.iter_mut().for_each(|socket| socket.revents = 0);
            Ok(())
        }
        other => other.map(drop),
    }
}

/// Buffers for a batch of received packets with timestamps.
pub struct Incoming {
    packets: Box<[[u8; KEPT]]>,
    /// Control messages: a timestamp takes 32 bytes.
    control: Box<[[u64; 16]]>,
    places: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    mapping: Mapping,
}

impl Incoming {
    pub fn new() -> Self {
        // SAFETY: both structures are plain numbers and pointers, for which zero is a valid value.
        let (place, message): (libc::iovec, libc::mmsghdr) = unsafe { (zeroed(), zeroed()) };
        Self {
            packets: vec![[0; KEPT]; BATCH].into_boxed_slice(),
            control: vec![[0; 16]; BATCH].into_boxed_slice(),
            places: vec![place; BATCH].into_boxed_slice(),
            messages: vec![message; BATCH].into_boxed_slice(),
            mapping: Mapping::measure(),
        }
    }

    /// Receives up to a batch without blocking; returns the number of packets.
    pub fn receive(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        for at in 0..BATCH {
            self.places[at] = libc::iovec { iov_base: self.packets[at].as_mut_ptr().cast(), iov_len: KEPT };
            let header = &mut self.messages[at].msg_hdr;
            header.msg_iov = &mut self.places[at];
            header.msg_iovlen = 1;
            header.msg_control = self.control[at].as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&self.control[at]) as _;
        }
        // By libc: rustix has no recvmmsg, and its messages have no timestamps. MSG_TRUNC reports the whole
        // length of a truncated packet.
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: every message points to buffers of the stated lengths, owned by `self` and not moved during
        // the call.
        let result = unsafe {
            let messages = self.messages.as_mut_ptr();
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                messages,
                BATCH as u32,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        self.mapping.refine();
        match checked(result) {
            Err(error) if is_passing(&error) => Ok(0),
            // An ICMP error about an earlier packet of ours; the socket still works.
            Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => Ok(0),
            other => other.map(|count| count as usize),
        }
    }

    /// The beginning of packet `at` of the last batch, its whole length, and its arrival time on the
    /// monotonic clock.
    pub fn packet(&self, at: usize) -> (&[u8], usize, u64) {
        let length = self.messages[at].msg_len as usize;
        let arrival = self.stamp(at).map_or_else(
            || monotonic().0,
            // The seconds fit until 2106.
            |time| self.mapping.monotonic(time.tv_sec as u32, time.tv_nsec as u32).max(0).cast_unsigned(),
        );
        (&self.packets[at][..length.min(KEPT)], length, arrival)
    }

    /// The kernel's receive timestamp, on the wall clock.
    fn stamp(&self, at: usize) -> Option<libc::timespec> {
        let header = &self.messages[at].msg_hdr;
        // SAFETY: the kernel filled the control buffer of this message, which `self` still owns, up to
        // `msg_controllen`; the macros stay within that. The data of a stamp is a timespec, read without
        // assuming its alignment.
        unsafe {
            let mut message = libc::CMSG_FIRSTHDR(header);
            while !message.is_null() {
                if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_TIMESTAMPNS
                {
                    return Some(libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned());
                }
                message = libc::CMSG_NXTHDR(header, message);
            }
        }
        None
    }
}

/// A batch of packets of one size, to be sent on a connected socket.
pub struct Outgoing {
    size: usize,
    packets: Box<[u8]>,
    places: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
}

impl Outgoing {
    pub fn new(size: usize) -> Self {
        // SAFETY: both structures are plain numbers and pointers, for which zero is a valid value.
        let (place, message): (libc::iovec, libc::mmsghdr) = unsafe { (zeroed(), zeroed()) };
        Self {
            size,
            packets: vec![0; size * BATCH].into_boxed_slice(),
            places: vec![place; BATCH].into_boxed_slice(),
            messages: vec![message; BATCH].into_boxed_slice(),
        }
    }

    /// Packet `at` of the batch, to be filled.
    pub fn packet(&mut self, at: usize) -> &mut [u8] {
        &mut self.packets[at * self.size..][..self.size]
    }

    /// Sends the packets `from..to` of the batch; returns how many the kernel accepted, at least one.
    pub fn send(&mut self, socket: &UdpSocket, from: usize, to: usize) -> io::Result<usize> {
        for at in from..to {
            let base = self.packet(at).as_mut_ptr().cast();
            self.places[at] = libc::iovec { iov_base: base, iov_len: self.size };
            let header = &mut self.messages[at].msg_hdr;
            header.msg_iov = &mut self.places[at];
            header.msg_iovlen = 1;
        }
        let messages = &mut self.messages[from..to];
        // By libc: with rustix the messages would be rebuilt for each batch. SAFETY: every message points to
        // bytes of the stated length, owned by `self` and not moved during the call.
        let result =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), messages.len() as u32, 0) };
        checked(result).map(|count| count as usize)
    }
}

/// TCP's statistics of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpInfo {
    pub rtt_us: u32,
    pub min_rtt_us: Option<u32>,
    pub retransmits: u32,
}

/// Reads TCP_INFO, whose fields have fixed offsets (linux/tcp.h, `struct tcp_info`).
pub fn tcp_info(socket: &TcpStream) -> io::Result<TcpInfo> {
    const RTT: usize = 68 / 4;
    const TOTAL_RETRANS: usize = 100 / 4;
    const MIN_RTT: usize = 148 / 4;
    let mut words = [0u32; 64];
    let length = socket_option::read(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut words)?;
    let known = (length > MIN_RTT * 4).then_some(words[MIN_RTT]);
    Ok(TcpInfo {
        rtt_us: words[RTT],
        // The kernel's initial value is the largest number.
        min_rtt_us: known.filter(|rtt| *rtt != u32::MAX),
        retransmits: words[TOTAL_RETRANS],
    })
}

/// A socket for ICMP echo, raw or not.
pub struct IcmpSocket {
    pub fd: OwnedFd,
    pub raw: bool,
}

impl AsFd for IcmpSocket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl IcmpSocket {
    /// Opens a datagram ICMP socket, or a raw one where those are not allowed, and connects it to `target`.
    pub fn open(target: IpAddr) -> io::Result<Self> {
        let (family, protocol) = if target.is_ipv4() {
            (AddressFamily::INET, ipproto::ICMP)
        } else {
            (AddressFamily::INET6, ipproto::ICMPV6)
        };
        let open = |kind| socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol));
        let socket = match open(SocketType::DGRAM) {
            Ok(fd) => Self { fd, raw: false },
            Err(_) => Self { fd: open(SocketType::RAW)?, raw: true },
        };
        prepare_to_receive(&socket)?;
        connect(&socket.fd, &SocketAddr::new(target, 0))?;
        Ok(socket)
    }

    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        send(&self.fd, packet, SendFlags::empty())?;
        Ok(())
    }
}

/// The address, with IPv4-mapped IPv6 (`::ffff:192.0.2.1`) as IPv4.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::new(IpAddr::V4(v4), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// An unpredictable number that distinguishes this measurement's packets from others.
pub fn random_u32() -> io::Result<u32> {
    let mut bytes = [0; 4];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_cross_with_stamps_and_whole_lengths() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        prepare_to_receive(&receiver).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let mut out = Outgoing::new(1000);
        for at in 0..3 {
            out.packet(at).fill(at as u8);
        }
        let before = monotonic().0;
        assert_eq!(out.send(&sender, 1, 3).unwrap(), 2);
        let mut incoming = Incoming::new();
        // Loopback delivers within the call.
        assert_eq!(incoming.receive(&receiver).unwrap(), 2);
        for at in 0..2 {
            let (bytes, length, stamp) = incoming.packet(at);
            assert_eq!((bytes, length), (&[at as u8 + 1; KEPT][..], 1000));
            assert!(stamp + 1_000_000 > before && stamp < monotonic().0 + 1_000_000, "{before} {stamp}");
        }
        assert_eq!(incoming.receive(&receiver).unwrap(), 0);
        assert_eq!(drops(&receiver), 0);
    }

    #[test]
    fn a_full_buffer_is_counted() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        sockopt::set_socket_recv_buffer_size(&receiver, 1).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        for _ in 0..100 {
            sender.send(&[0; 1000]).unwrap();
        }
        let mut received = 0;
        let mut incoming = Incoming::new();
        while let count @ 1.. = incoming.receive(&receiver).unwrap() {
            received += count as u64;
        }
        assert_eq!(received + drops(&receiver), 100);
        assert!(received < 100);
    }

    #[test]
    fn addresses_lose_their_disguise() {
        assert_eq!(canonical("[::ffff:192.0.2.1]:5".parse().unwrap()), "192.0.2.1:5".parse().unwrap());
        assert_eq!(canonical("[::1]:5".parse().unwrap()), "[::1]:5".parse().unwrap());
    }
}
