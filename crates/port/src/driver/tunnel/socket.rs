//! The UDP socket of a tunnel: batches of datagrams with a system call each way, and the kernel's times of
//! those received.

use crate::system::{grow, read_option, set_option};
use longwire_packet::BATCH;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr;

/// Longest datagram over IPv4.
const LONGEST: usize = 65_507;
/// Bytes of a datagram's place.
const PLACE: usize = 1 << 16;
/// Words of control data of a datagram: one header and a time (64-bit systems).
const CONTROL: usize = 4;
/// Bytes of the socket's queues.
const QUEUES: i32 = 8 << 20;
/// Attempts to send without progress, per batch.
const PATIENCE: u32 = 16;

/// Datagrams of a batch that were not sent, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NotSent {
    /// The kernel's queue was full.
    pub full: u64,
    /// They are too long for the network.
    pub oversize: u64,
    /// The network is down.
    pub down: u64,
}

/// See the module.
pub struct Socket {
    socket: UdpSocket,
    incoming: Box<Datagrams>,
    outgoing: Box<Datagrams>,
    /// Datagrams waiting to be sent.
    waiting: usize,
}

/// Memory for a batch of datagrams.
struct Datagrams {
    bytes: Vec<u8>,
    lengths: [usize; BATCH],
    control: [[u64; CONTROL]; BATCH],
    vectors: [libc::iovec; BATCH],
    messages: [libc::mmsghdr; BATCH],
}

// SAFETY: the pointers point into the same box and its vector, which move with it.
unsafe impl Send for Datagrams {}

impl Datagrams {
    fn new() -> Box<Self> {
        let nothing = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: all-zero bytes are a valid mmsghdr: null pointers and zero lengths.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let mut all = Box::new(Self {
            // Zeroed by the kernel when it is first used.
            bytes: vec![0; BATCH * PLACE],
            lengths: [0; BATCH],
            control: [[0; CONTROL]; BATCH],
            vectors: [nothing; BATCH],
            messages: [message; BATCH],
        });
        let Self { bytes, vectors, messages, .. } = &mut *all;
        for ((place, vector), message) in bytes.chunks_exact_mut(PLACE).zip(vectors).zip(messages) {
            *vector = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: PLACE };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        all
    }

    fn place(&mut self, at: usize) -> &mut [u8] {
        &mut self.bytes[at * PLACE..(at + 1) * PLACE]
    }
}

impl Socket {
    /// A socket between two addresses, the own one first.
    ///
    /// # Errors
    /// It can't be opened; the text says what to do.
    pub fn open(listen: SocketAddr, peer: SocketAddr) -> Result<Self, String> {
        if listen.is_ipv4() != peer.is_ipv4() {
            return Err(format!("{listen} and {peer} are of different families; write both as IPv4 or IPv6"));
        }
        let socket = UdpSocket::bind(listen).map_err(|error| {
            format!("can't listen on {listen}: {error}; give a free UDP port of an address of this machine")
        })?;
        // Packets of others are dropped by the kernel.
        socket.connect(peer).map_err(|error| format!("can't reach {peer}: {error}"))?;
        socket.set_nonblocking(true).map_err(|error| error.to_string())?;
        let fd = socket.as_fd();
        set_option(fd, (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS), &1i32)
            .map_err(|error| format!("no timestamps: {error}"))?;
        // Frames are fragmented rather than refused.
        let (discovery, never) = match listen {
            SocketAddr::V4(_) => ((libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_DONT),
            SocketAddr::V6(_) => ((libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER), libc::IPV6_PMTUDISC_DONT),
        };
        set_option(fd, discovery, &never).map_err(|error| format!("can't fragment: {error}"))?;
        // Shorter queues only lose packets earlier.
        grow(fd, [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], QUEUES);
        grow(fd, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], QUEUES);
        Ok(Self { socket, incoming: Datagrams::new(), outgoing: Datagrams::new(), waiting: 0 })
    }

    /// Its descriptor.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Datagrams that the kernel dropped because the receive queue was full.
    pub fn dropped(&self) -> u64 {
        const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;
        let numbers = read_option::<{ DROPS + 1 }>(self.socket.as_fd(), (libc::SOL_SOCKET, libc::SO_MEMINFO));
        numbers.map_or(0, |numbers| numbers[DROPS].into())
    }

    /// Receives up to `most` waiting datagrams, at most a batch, and returns how many.
    pub fn receive(&mut self, most: usize) -> usize {
        let all = &mut *self.incoming;
        for (message, control) in all.messages.iter_mut().zip(&mut all.control).take(most) {
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of_val(control) as _;
        }
        let (first, count) = (all.messages.as_mut_ptr(), most.min(BATCH) as u32);
        // SAFETY: each message points to its vector and control data in the same box, and the vector to its
        // place in the same memory; nothing else uses them during the call.
        let got = unsafe {
            libc::recvmmsg(self.socket.as_raw_fd(), first, count, libc::MSG_DONTWAIT, ptr::null_mut())
        };
        // An error is that nothing waits, or that the peer's machine answered by ICMP: reading takes it away.
        let got = usize::try_from(got).unwrap_or(0);
        for (length, message) in all.lengths.iter_mut().zip(&all.messages).take(got) {
            *length = message.msg_len as usize;
        }
        got
    }

    /// A received datagram, and when the kernel received it: seconds and nanoseconds of real time.
    pub fn datagram(&mut self, at: usize) -> (&mut [u8], Option<(u32, u32)>) {
        let all = &mut *self.incoming;
        let time = time_in(&all.control[at], all.messages[at].msg_hdr.msg_controllen as _);
        let length = all.lengths[at].min(PLACE);
        (&mut all.place(at)[..length], time)
    }

    /// The place of the next datagram to be sent.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.outgoing.place(self.waiting)[..LONGEST]
    }

    /// Adds the datagram of `length` bytes in the room to those that [`Socket::flush`] sends. True if there
    /// is no room for another.
    pub fn push(&mut self, length: usize) -> bool {
        self.outgoing.lengths[self.waiting] = length;
        self.waiting += 1;
        self.waiting == BATCH
    }

    /// Datagrams that wait for [`Socket::flush`], by their lengths.
    pub fn waiting(&self) -> &[usize] {
        &self.outgoing.lengths[..self.waiting]
    }

    /// Sends the waiting datagrams.
    pub fn flush(&mut self) -> NotSent {
        let all = &mut *self.outgoing;
        for (vector, &length) in all.vectors.iter_mut().zip(&all.lengths).take(self.waiting) {
            vector.iov_len = length;
        }
        let (mut at, mut patience, mut not) = (0, PATIENCE, NotSent::default());
        while at < self.waiting {
            let messages = &mut all.messages[at..self.waiting];
            let (first, count) = (messages.as_mut_ptr(), messages.len() as u32);
            // SAFETY: each message points to its vector in the same box, and this to bytes of its place.
            let sent = unsafe { libc::sendmmsg(self.socket.as_raw_fd(), first, count, libc::MSG_DONTWAIT) };
            if sent > 0 {
                at += sent as usize;
                continue;
            }
            let rest = (self.waiting - at) as u64;
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EMSGSIZE) => (at, not.oversize) = (at + 1, not.oversize + 1),
                // ECONNREFUSED is of an earlier datagram: nobody listened there.
                Some(libc::EINTR | libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::ECONNREFUSED)
                    if patience > 0 =>
                {
                    patience -= 1;
                }
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => {
                    not.full += rest;
                    break;
                }
                _ => {
                    not.down += rest;
                    break;
                }
            }
        }
        self.waiting = 0;
        not
    }

    /// Sends a datagram of the tunnel itself; one that is lost is sent again later.
    pub fn send(&self, message: &[u8]) {
        if self.socket.send(message).is_err() {
            // It may be the error of an earlier datagram.
            _ = self.socket.send(message);
        }
    }
}

/// The time in a datagram's control data of `length` bytes.
fn time_in(control: &[u64; CONTROL], length: usize) -> Option<(u32, u32)> {
    let &[size, kind, seconds, nanoseconds] = control;
    let [l0, l1, l2, l3, k0, k1, k2, k3] = kind.to_ne_bytes();
    let (level, kind) = (i32::from_ne_bytes([l0, l1, l2, l3]), i32::from_ne_bytes([k0, k1, k2, k3]));
    let is_time = length >= size_of_val(control)
        && size as usize >= size_of_val(control)
        && (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
    is_time.then_some((seconds as u32, nanoseconds as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends, at addresses of this test and process.
    fn pair(test: u8) -> (Socket, Socket) {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let address = |port: u16| SocketAddr::from(([127, test, high, low], port));
        (
            Socket::open(address(7000), address(7001)).unwrap(),
            Socket::open(address(7001), address(7000)).unwrap(),
        )
    }

    #[test]
    fn a_batch_crosses_with_its_times() {
        let (mut here, mut there) = pair(40);
        for number in 0..BATCH {
            here.room()[..=number].fill(number as u8);
            assert_eq!(here.push(number + 1), number + 1 == BATCH);
        }
        assert_eq!((here.waiting().len(), here.flush()), (BATCH, NotSent::default()));
        let mut came = 0;
        while came < BATCH {
            let got = there.receive(BATCH);
            for at in 0..got {
                let (bytes, time) = there.datagram(at);
                let wanted = vec![came as u8; came + 1];
                assert_eq!(bytes, wanted);
                assert!(
                    time.is_some_and(|(seconds, nanoseconds)| seconds > 0 && nanoseconds < 1_000_000_000)
                );
                came += 1;
            }
        }
        assert_eq!((there.receive(BATCH), there.dropped()), (0, 0));
    }

    #[test]
    fn the_longest_datagram_crosses_and_nobody_is_no_error() {
        let (mut here, mut there) = pair(41);
        let length = here.room().len();
        here.push(length);
        assert_eq!(here.flush(), NotSent::default());
        while there.receive(1) == 0 {}
        assert_eq!(there.datagram(0).0.len(), LONGEST);
        drop(there);
        for _ in 0..3 {
            here.push(1);
            assert_eq!(here.flush(), NotSent::default(), "the peer's machine says that nobody listens");
            here.send(b"x");
            assert_eq!(here.receive(BATCH), 0);
        }
    }

    #[test]
    fn addresses_that_can_not_be_used_are_named() {
        let open = |listen: &str, peer: &str| {
            Socket::open(listen.parse().unwrap(), peer.parse().unwrap()).err().unwrap_or_default()
        };
        assert!(open("127.0.0.1:7000", "[::1]:7000").contains("different families"));
        assert!(open("192.0.2.1:7000", "192.0.2.2:7000").starts_with("can't listen on 192.0.2.1:7000"));
    }
}
