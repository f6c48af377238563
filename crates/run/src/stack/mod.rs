//! TCP/IP in this process: a relay between a client and a service whose packets cross the engine, where the
//! kernel makes none because no namespaces are allowed; or a connection from one end to the other.
//!
//! A [`Stack`] is two ends, each with TCP, UDP and IP of its own (smoltcp) and a [`StackPort`] of the engine.
//! At the near end a client's bytes become packets; the engine carries them over its links; at the far end
//! they become bytes again, for the service. So a loss leads to a retransmission, a queue to delay, and a
//! reader that stops fills the window of its sender: nothing is imitated.

mod bulk;
mod datagrams;
mod end;
mod port;
mod sequence;
mod splice;
mod streams;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use longwire_lab::StoppableThread;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use bulk::Bulk;
use datagrams::Datagrams;
use end::{Clock, End};
pub use port::{StackPort, Wire};
use streams::Streams;

/// The ends' addresses: the network is theirs alone.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 2);
/// See [`NEAR`].
pub const FAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);

/// Connections of a relay at once; clients beyond wait in the kernel's queue of their listener.
pub const MAX_CONNECTIONS: usize = 256;
/// Bytes of a connection that wait in each direction at each end, at most.
pub const BUFFER: usize = 512 << 10;

/// A relay that runs until dropped.
#[derive(Debug)]
pub struct Stack {
    _thread: StoppableThread,
}

/// The wires of both ends.
pub struct Wires {
    /// That of the end which clients are at.
    pub near: Wire,
    /// That of the end which the service is at.
    pub far: Wire,
}

impl Stack {
    /// Passes on connections to the service at the first of `to` that accepts them; all have the same port.
    ///
    /// # Errors
    /// When the system refuses a thread or a descriptor.
    pub fn tcp(wires: Wires, listener: TcpListener, to: Vec<SocketAddr>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let clock = Clock::start();
        Self::start(clock, Streams::new(&clock, wires, listener, to))
    }

    /// Passes on datagrams to the service at `to`, and the answers to whoever asked.
    ///
    /// # Errors
    /// When the system refuses a thread or a descriptor.
    pub fn udp(wires: Wires, socket: UdpSocket, to: SocketAddr) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let clock = Clock::start();
        Self::start(clock, Datagrams::new(&clock, wires, socket, to))
    }

    /// Sends by one connection from the near end to the far one for as long as it lives, as fast as TCP may.
    /// The ends have these two addresses.
    ///
    /// # Errors
    /// When the system refuses a thread or a descriptor.
    pub fn bulk(wires: Wires, addresses: [Ipv4Addr; 2]) -> io::Result<Self> {
        let clock = Clock::start();
        Self::start(clock, Bulk::new(&clock, wires, addresses))
    }

    fn start(clock: Clock, mut relay: impl Relay + 'static) -> io::Result<Self> {
        let run = move |stop| run(&clock, &mut relay, &stop);
        Ok(Self { _thread: StoppableThread::start("stack", run)? })
    }
}

/// What lies between the sockets of the kernel and those of the two ends.
trait Relay: Send {
    /// The near and the far end.
    fn ends(&mut self) -> [&mut End; 2];

    /// Sockets of the kernel to wait for, in an order that stays until [`Relay::ready`].
    fn awaited<'a>(&'a self, polls: &mut Vec<PollFd<'a>>);

    /// Receives the events at them.
    fn ready(&mut self, events: &[PollFlags]);

    /// Takes the packets that have come, and moves bytes between both kinds of sockets.
    fn turn(&mut self, clock: &Clock);
}

/// First of the near end's ports: dynamic ports (RFC 6335).
const FIRST_PORT: u16 = 49_152;

/// A port of the near end's from `next` on that is not taken. Fewer are taken than there are.
fn free_port(next: &mut u16, is_taken: impl Fn(u16) -> bool) -> u16 {
    loop {
        let port = *next;
        *next = port.checked_add(1).unwrap_or(FIRST_PORT);
        if !is_taken(port) {
            return port;
        }
    }
}

/// The longest wait where there is something to do but no room for it.
const NO_ROOM: Duration = Duration::from_millis(1);

fn run(clock: &Clock, relay: &mut impl Relay, stop: &OwnedFd) {
    loop {
        relay.turn(clock);
        let mut wait: Option<Duration> = None;
        for end in relay.ends() {
            end.send(clock);
            let own = if end.wire.was_full() { Some(NO_ROOM) } else { end.wait(clock) };
            wait = [wait, own].into_iter().flatten().min();
        }
        let bells = relay.ends().map(|end| end.wire.bell());
        let mut polls = vec![PollFd::new(stop, PollFlags::IN)];
        polls.extend(bells.iter().map(|bell| PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)));
        let own = polls.len();
        relay.awaited(&mut polls);
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        // A signal wakes it with nothing ready.
        let called = poll(&mut polls, wait.as_ref());
        let events: Vec<_> = polls.iter().map(PollFd::revents).collect();
        drop(polls);
        if called.is_err() {
            continue;
        }
        if !events[0].is_empty() {
            return;
        }
        relay.ready(&events[own..]);
    }
}
