//! Sockets: requests with their answers, and what the kernel tells groups.

use crate::message::{Message, Reply, acknowledgement, split_reply};
use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size_force, set_socket_timeout};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the kernel may take to answer; it answers at once, unless something is wrong with the request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Requests that are sent before their answers are read: these must find room in the socket.
const TOGETHER: usize = 64;

/// Bytes that fit every datagram of the kernel's: it makes none longer than 32 KiB (netlink(7)).
pub const LONGEST: usize = 64 * 1024;

/// A netlink socket in the network namespace of the thread that opened it, whatever namespace its users are
/// in later.
#[derive(Debug)]
pub struct Socket {
    socket: netlink_sys::Socket,
    /// The number of the last request, locked until that is answered.
    sequence: Mutex<u32>,
}

impl Socket {
    /// A socket for links, addresses, routes and neighbours.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn route() -> io::Result<Self> {
        Self::open(netlink_sys::protocols::NETLINK_ROUTE)
    }

    /// A socket for the packet filter.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn netfilter() -> io::Result<Self> {
        Self::open(netlink_sys::protocols::NETLINK_NETFILTER)
    }

    fn open(protocol: isize) -> io::Result<Self> {
        let socket = netlink_sys::Socket::new(protocol)?;
        // Asks the kernel to say in words what it refuses; without it errors are bare numbers.
        socket.set_ext_ack(true)?;
        socket.set_cap_ack(true)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: Mutex::new(0) })
    }

    /// Sends a request and waits for its acknowledgement.
    ///
    /// # Errors
    /// What the kernel answers, in words where it has some.
    pub fn request(&self, mut m: Message) -> io::Result<()> {
        let mut last = self.lock();
        m.add_flags(libc::NLM_F_ACK);
        let sequence = next(&mut last);
        self.send(m.finish(sequence))?;
        self.replies(sequence..=sequence, |_| {})
    }

    /// Sends requests in one go, and answers with what error each of them ended, if it did. The rest is
    /// carried out all the same.
    ///
    /// # Errors
    /// When the kernel does not take them, or does not answer.
    pub fn requests(&self, mut requests: Vec<Message>) -> io::Result<Vec<Option<io::Error>>> {
        let mut last = self.lock();
        let mut ends = Vec::with_capacity(requests.len());
        for chunk in requests.chunks_mut(TOGETHER) {
            let mut bytes = Vec::new();
            let first = *last + 1;
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

    /// Sends requests that take effect together or not at all, between the two that mark their begin and end.
    ///
    /// # Errors
    /// What the kernel answers; nothing has changed then.
    pub fn batch(&self, begin: Message, requests: Vec<Message>, end: Message) -> io::Result<()> {
        let mut last = self.lock();
        let acknowledged = requests.len();
        let first = *last + 1;
        let mut bytes = Vec::new();
        for (i, mut m) in std::iter::once(begin).chain(requests).chain([end]).enumerate() {
            // Errors are told in any case; the last request's acknowledgement comes after all of them.
            if i == acknowledged {
                m.add_flags(libc::NLM_F_ACK);
            }
            bytes.extend_from_slice(m.finish(next(&mut last)));
        }
        self.send(&bytes)?;
        self.replies(first..=first + acknowledged as u32, |_| {})
    }

    /// Sends a request for a listing and hands each entry's type and body to `each`, which must not use this
    /// socket. Whether the listing is of one moment: if not, something changed while it was made.
    ///
    /// # Errors
    /// What the kernel answers.
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

    /// Sends a question that one message answers, and reads that into `buffer`. Allocates nothing.
    ///
    /// # Errors
    /// What the kernel answers instead.
    pub fn ask<'b>(&self, question: &mut Message, buffer: &'b mut [u8]) -> io::Result<Reply<'b>> {
        let mut last = self.lock();
        let sequence = next(&mut last);
        self.send(question.finish(sequence))?;
        let length = loop {
            let (length, of_the_kernel) = self.fill(buffer, 0)?;
            let reply = split_reply(&buffer[..length]).filter(|_| of_the_kernel);
            if reply.is_some_and(|(reply, _)| reply.sequence == sequence) {
                break length;
            }
        };
        let (reply, _) = split_reply(&buffer[..length]).ok_or(io::ErrorKind::InvalidData)?;
        if is_acknowledgement(reply) {
            acknowledgement(reply.flags, reply.body)?;
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(reply)
    }

    /// Listens to what the kernel tells these groups (`RTNLGRP_…`), with `room` bytes for what is not read
    /// yet, waiting at most `patience` for the next message.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn subscribe(&mut self, groups: &[u32], room: usize, patience: Duration) -> io::Result<()> {
        // Beyond the machine's limit only where there is the right to; else as much as there is.
        set_socket_recv_buffer_size_force(&self.socket, room)
            .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&self.socket, room))?;
        set_socket_timeout(&self.socket, Timeout::Recv, Some(patience))?;
        // A number of its own: the kernel tells groups' members nothing that have its own, which is none.
        self.socket.bind_auto()?;
        groups.iter().try_for_each(|&group| self.socket.add_membership(group))
    }

    /// Waits for the next datagram: its bytes in `buffer`, and whether the kernel itself has sent it. A
    /// datagram that was longer than `buffer` is cut short.
    ///
    /// # Errors
    /// `WouldBlock` if none comes within the socket's patience; `ENOBUFS` if some were lost for want of room.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<(&'b [u8], bool)> {
        let (length, of_the_kernel) = self.fill(buffer, 0)?;
        Ok((&buffer[..length], of_the_kernel))
    }

    /// Reads the next datagram as [`Socket::receive`] does, if there is one.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; `ENOBUFS` if some were lost for want of room.
    pub fn try_receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<(&'b [u8], bool)> {
        let (length, of_the_kernel) = self.fill(buffer, libc::MSG_DONTWAIT)?;
        Ok((&buffer[..length], of_the_kernel))
    }

    fn fill(&self, buffer: &mut [u8], flags: libc::c_int) -> io::Result<(usize, bool)> {
        let (length, from) = self.socket.recv_from(&mut &mut *buffer, flags)?;
        Ok((length.min(buffer.len()), from.port_number() == 0))
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.socket.send(bytes, 0).map(drop)
    }

    /// Hands every reply to `each`, up to the first acknowledgement, error, or end of a dump, and that one
    /// too.
    fn replies(&self, sequences: RangeInclusive<u32>, mut each: impl FnMut(Reply<'_>)) -> io::Result<()> {
        let mut buffer = vec![0u8; LONGEST];
        loop {
            let (mut rest, of_the_kernel) = self.receive(&mut buffer)?;
            if !of_the_kernel {
                continue;
            }
            while let Some((reply, tail)) = split_reply(rest) {
                rest = tail;
                if !sequences.contains(&reply.sequence) {
                    continue;
                }
                each(reply);
                if is_acknowledgement(reply) {
                    return acknowledgement(reply.flags, reply.body);
                }
                if is_end(reply) {
                    return Ok(());
                }
            }
        }
    }

    /// A panic in the midst of an exchange leaves a number that nobody waits for.
    fn lock(&self) -> MutexGuard<'_, u32> {
        self.sequence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn next(last: &mut u32) -> u32 {
    *last += 1;
    *last
}

fn is_acknowledgement(reply: Reply<'_>) -> bool {
    libc::c_int::from(reply.kind) == libc::NLMSG_ERROR
}

/// Whether nothing of a listing follows.
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
