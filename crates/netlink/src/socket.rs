//! Sockets: requests and their answers, and multicast groups.

use crate::message::{Message, Reply, acknowledgement, end_of_dump, split_reply};
use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size_force, set_socket_timeout};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Timeout for the kernel's answer. The kernel answers at once, unless something is wrong with the request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Requests sent before their answers are read: the answers must fit the socket's buffer.
const TOGETHER: usize = 64;

/// Buffer size that fits every datagram of the kernel: it sends none longer than 32 KiB (netlink(7)).
pub const LONGEST: usize = 64 * 1024;

/// A netlink socket in the network namespace of the thread that opened it, even if its users move to another.
#[derive(Debug)]
pub struct Socket {
    socket: netlink_sys::Socket,
    /// Sequence number of the last request, locked until that is answered.
    sequence: Mutex<u32>,
}

impl Socket {
    /// A socket for links, addresses, routes and neighbours.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn route() -> io::Result<Self> {
        Self::open(netlink_sys::protocols::NETLINK_ROUTE)
    }

    /// A socket for the packet filter.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn netfilter() -> io::Result<Self> {
        Self::open(netlink_sys::protocols::NETLINK_NETFILTER)
    }

    fn open(protocol: isize) -> io::Result<Self> {
        let socket = netlink_sys::Socket::new(protocol)?;
        // Without extended acknowledgements, errors are bare numbers.
        socket.set_ext_ack(true)?;
        socket.set_cap_ack(true)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: Mutex::new(0) })
    }

    /// Sends a request and waits for its acknowledgement.
    ///
    /// # Errors
    /// The kernel's error, with its text if there is one.
    pub fn request(&self, mut m: Message) -> io::Result<()> {
        let mut last = self.lock();
        m.add_flags(libc::NLM_F_ACK);
        let sequence = next(&mut last);
        self.send(m.finish(sequence))?;
        self.replies(sequence..=sequence, |_| {})
    }

    /// Sends requests in one go, and returns the error of each that failed. An error does not stop the
    /// others.
    ///
    /// # Errors
    /// If the kernel does not accept them, or does not answer.
    pub fn requests(&self, mut requests: Vec<Message>) -> io::Result<Vec<Option<io::Error>>> {
        let mut last = self.lock();
        let mut ends = Vec::with_capacity(requests.len());
        for chunk in requests.chunks_mut(TOGETHER) {
            let mut bytes = Vec::new();
            let first = last.wrapping_add(1);
            for m in chunk {
                m.add_flags(libc::NLM_F_ACK);
                bytes.extend_from_slice(m.finish(next(&mut last)));
            }
            self.send(&bytes)?;
            for sequence in first..=*last {
                ends.push(self.replies(sequence..=sequence, |_| {}).err());
            }
        }
        Ok(ends)
    }

    /// Sends requests as an atomic batch between `begin` and `end`.
    ///
    /// # Errors
    /// The kernel's error; nothing has changed then.
    pub fn batch(&self, begin: Message, requests: Vec<Message>, end: Message) -> io::Result<()> {
        let mut last = self.lock();
        let acknowledged = requests.len();
        let first = last.wrapping_add(1);
        let mut bytes = Vec::new();
        for (i, mut m) in std::iter::once(begin).chain(requests).chain([end]).enumerate() {
            // Errors are always sent; the last request's acknowledgement follows all of them.
            if i == acknowledged {
                m.add_flags(libc::NLM_F_ACK);
            }
            bytes.extend_from_slice(m.finish(next(&mut last)));
        }
        self.send(&bytes)?;
        self.replies(first..=first.wrapping_add(acknowledged as u32), |_| {})
    }

    /// Sends a dump request and passes each entry's type and body to `each`, which must not use this socket.
    /// Returns whether the dump is consistent: if not, something changed during it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn dump(&self, mut m: Message, mut each: impl FnMut(u16, &[u8])) -> io::Result<bool> {
        let mut last = self.lock();
        m.add_flags(libc::NLM_F_DUMP);
        let sequence = next(&mut last);
        self.send(m.finish(sequence))?;
        let mut whole = true;
        self.replies(sequence..=sequence, |reply| {
            whole &= !is_interrupted(reply);
            if !is_end(reply) {
                each(reply.kind, reply.body);
            }
        })?;
        Ok(whole)
    }

    /// Sends a request with a single-message answer, and reads that into `buffer`. Allocates nothing and does
    /// not wait: the kernel has answered when the request has been sent.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn ask<'b>(&self, question: &mut Message, buffer: &'b mut [u8]) -> io::Result<Reply<'b>> {
        let mut last = self.lock();
        let sequence = next(&mut last);
        self.send(question.finish(sequence))?;
        let length = loop {
            let (datagram, of_the_kernel) = self.try_receive(buffer)?;
            let reply = split_reply(datagram).filter(|_| of_the_kernel);
            if reply.is_some_and(|(reply, _)| reply.sequence == sequence) {
                break datagram.len();
            }
        };
        let (reply, _) = split_reply(&buffer[..length]).ok_or(io::ErrorKind::InvalidData)?;
        if is_acknowledgement(reply) {
            acknowledgement(reply.flags, reply.body)?;
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(reply)
    }

    /// Subscribes to these multicast groups (`RTNLGRP_…`), with a receive buffer of `room` bytes, and a
    /// timeout of `patience` for each message.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn subscribe(&mut self, groups: &[u32], room: usize, patience: Duration) -> io::Result<()> {
        // Exceeding the machine's limit takes privileges; without them the limit applies.
        set_socket_recv_buffer_size_force(&self.socket, room)
            .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&self.socket, room))?;
        set_socket_timeout(&self.socket, Timeout::Recv, Some(patience))?;
        // The kernel does not deliver to port 0, so the socket needs a port number of its own.
        self.socket.bind_auto()?;
        groups.iter().try_for_each(|&group| self.socket.add_membership(group))
    }

    /// Waits for the next datagram: its bytes in `buffer`, and whether the kernel has sent it. A datagram
    /// longer than `buffer` is truncated.
    ///
    /// # Errors
    /// `WouldBlock` on a timeout; `ENOBUFS` if messages were lost because the buffer was full.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<(&'b [u8], bool)> {
        self.receive_with(buffer, 0)
    }

    /// Reads the next datagram as [`Socket::receive`] does, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; `ENOBUFS` if messages were lost because the buffer was full.
    pub fn try_receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<(&'b [u8], bool)> {
        self.receive_with(buffer, libc::MSG_DONTWAIT)
    }

    fn receive_with<'b>(&self, buffer: &'b mut [u8], flags: libc::c_int) -> io::Result<(&'b [u8], bool)> {
        let (length, from) = self.socket.recv_from(&mut &mut *buffer, flags)?;
        Ok((&buffer[..length.min(buffer.len())], from.port_number() == 0))
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.socket.send(bytes, 0).map(drop)
    }

    /// Passes every reply to `each`, up to and including the first acknowledgement, error, or end of a dump.
    fn replies(&self, sequences: RangeInclusive<u32>, mut each: impl FnMut(Reply<'_>)) -> io::Result<()> {
        let mut buffer = vec![0u8; LONGEST];
        loop {
            let (datagram, of_the_kernel) = self.receive(&mut buffer)?;
            if let Some(ended) = of_the_kernel.then(|| read(datagram, &sequences, &mut each)).flatten() {
                return ended;
            }
        }
    }

    /// A panic during an exchange leaves only a sequence number that nobody waits for.
    fn lock(&self) -> MutexGuard<'_, u32> {
        self.sequence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Passes the replies in a datagram to `each`, up to and including one that ends the exchange. Returns the
/// outcome of that, if there is one.
fn read(
    mut datagram: &[u8],
    sequences: &RangeInclusive<u32>,
    mut each: impl FnMut(Reply<'_>),
) -> Option<io::Result<()>> {
    while let Some((reply, tail)) = split_reply(datagram) {
        datagram = tail;
        if !sequences.contains(&reply.sequence) {
            continue;
        }
        each(reply);
        if is_acknowledgement(reply) {
            return Some(acknowledgement(reply.flags, reply.body));
        }
        if is_end(reply) {
            return Some(end_of_dump(reply.body));
        }
    }
    None
}

fn next(last: &mut u32) -> u32 {
    *last = last.wrapping_add(1);
    *last
}

fn is_acknowledgement(reply: Reply<'_>) -> bool {
    libc::c_int::from(reply.kind) == libc::NLMSG_ERROR
}

/// Whether this is the end of a dump.
fn is_end(reply: Reply<'_>) -> bool {
    is_acknowledgement(reply) || libc::c_int::from(reply.kind) == libc::NLMSG_DONE
}

fn is_interrupted(reply: Reply<'_>) -> bool {
    i32::from(reply.flags) & libc::NLM_F_DUMP_INTR != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Link, link};

    #[test]
    fn a_question_has_its_own_answer_after_one_that_was_refused() {
        let socket = Socket::route().unwrap();
        let mut buffer = vec![0; LONGEST];
        assert_eq!(
            socket.ask(&mut link::ask(1 << 30), &mut buffer).unwrap_err().raw_os_error(),
            Some(libc::ENODEV)
        );
        let reply = socket.ask(&mut link::ask(1), &mut buffer).unwrap();
        assert_eq!(Link::read(reply.body).unwrap().unwrap().index, 1);
    }

    #[test]
    fn a_list_that_is_cut_short_is_an_error() {
        let message = |kind: u16, sequence, body: &[u8]| {
            let mut m = Message::new(kind, 0);
            m.bytes(body);
            m.finish(sequence).to_vec()
        };
        let done = |sequence, code: i32| message(libc::NLMSG_DONE as u16, sequence, &code.to_ne_bytes());
        let of = |end: Vec<u8>| {
            let mut entries = 0;
            let datagram = [message(libc::RTM_NEWLINK, 7, &[0; 16]), end].concat();
            let outcome = read(&datagram, &(7..=7), |reply| entries += u32::from(!is_end(reply)));
            (outcome.map(|outcome| outcome.map_err(|error| error.raw_os_error())), entries)
        };
        assert_eq!(of(done(7, -libc::EMSGSIZE)), (Some(Err(Some(libc::EMSGSIZE))), 1));
        assert_eq!(of(done(7, 0)), (Some(Ok(())), 1));
        assert_eq!(of(message(libc::NLMSG_DONE as u16, 7, &[])), (Some(Ok(())), 1));
        assert_eq!(of(done(8, -libc::EMSGSIZE)), (None, 1), "of another request");
    }

    #[test]
    fn threads_share_a_socket() {
        let socket = Socket::route().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut buffer = vec![0; LONGEST];
                    for _ in 0..200 {
                        let refused = socket.request(link::change(1 << 30, &crate::LinkSettings::default()));
                        assert!(matches!(
                            refused.unwrap_err().raw_os_error(),
                            Some(libc::ENODEV | libc::EPERM)
                        ));
                        socket.ask(&mut link::ask(1), &mut buffer).unwrap();
                    }
                });
            }
        });
    }
}
