//! A connection of the kernel's and one of an end's, joined.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net::sockopt::set_socket_linger;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{RecvError, Socket, State};

/// Both of them. Each direction ends by itself; a reset ends both.
pub struct Splice {
    /// The end's.
    pub handle: SocketHandle,
    /// The kernel's, until nothing more crosses it.
    stream: Option<TcpStream>,
    /// Whether the kernel still connects it.
    connects: bool,
    /// Addresses of the service that the kernel has been asked to connect to.
    tried: usize,
    /// Whether it may have bytes, and whether it takes none.
    readable: bool,
    blocked: bool,
    /// Whether everything from it, and everything to it, has passed.
    read: bool,
    written: bool,
}

impl Splice {
    /// Joins the kernel's connection.
    pub fn new(handle: SocketHandle, stream: TcpStream) -> Self {
        Self { stream: Some(stream), readable: true, ..Self::alone(handle) }
    }

    /// A connection of the end's that nothing is joined to yet.
    pub fn alone(handle: SocketHandle) -> Self {
        Self {
            handle,
            stream: None,
            connects: false,
            tried: 0,
            readable: false,
            blocked: false,
            read: false,
            written: false,
        }
    }

    /// Joins a connection that the kernel makes to the next address of the service. False if none is left.
    pub fn dial(&mut self, service: &[SocketAddr], begin: fn(SocketAddr) -> io::Result<TcpStream>) -> bool {
        while let Some(to) = service.get(self.tried) {
            self.tried += 1;
            if let Ok(stream) = begin(*to) {
                (self.stream, self.connects, self.readable) = (Some(stream), true, true);
                return true;
            }
        }
        false
    }

    /// Whether nothing is joined to it, or nothing any more.
    pub fn is_alone(&self) -> bool {
        self.stream.is_none()
    }

    /// What to wait for at the kernel's connection.
    pub fn awaited(&self, socket: &Socket<'_>) -> Option<(&TcpStream, PollFlags)> {
        let stream = self.stream.as_ref()?;
        let mut flags = PollFlags::empty();
        if self.connects || self.blocked {
            flags |= PollFlags::OUT;
        }
        if !self.connects && !self.read && socket.can_send() {
            flags |= PollFlags::IN;
        }
        (!flags.is_empty()).then_some((stream, flags))
    }

    /// Receives the events at it.
    pub fn ready(&mut self, events: PollFlags) {
        let failed = events.intersects(PollFlags::ERR | PollFlags::HUP);
        if failed && self.connects {
            // Refused: another address of the service is tried.
            (self.stream, self.connects) = (None, false);
            return;
        }
        self.readable |= failed || events.contains(PollFlags::IN);
        if failed || events.contains(PollFlags::OUT) {
            self.blocked = false;
            self.connects = false;
        }
    }

    /// Moves what can be moved, in both directions.
    pub fn pass(&mut self, socket: &mut Socket<'_>) {
        if self.connects {
            if socket.state() == State::Closed {
                self.stream = None;
            }
            return;
        }
        let Some(stream) = self.stream.take() else { return };
        let passed = self.pass_to(&stream, socket).and_then(|()| self.pass_from(&stream, socket));
        match passed {
            Ok(()) if self.read && self.written => {}
            Ok(()) if socket.state() == State::Closed => {
                // It was reset from the other side, or that has been silent for too long.
                let _ = set_socket_linger(&stream, Some(Duration::ZERO));
            }
            Ok(()) => self.stream = Some(stream),
            Err(_) => socket.abort(),
        }
    }

    /// What has crossed the link.
    fn pass_to(&mut self, mut stream: &TcpStream, socket: &mut Socket<'_>) -> io::Result<()> {
        while !self.blocked && !self.written {
            if !socket.can_recv() && socket.may_recv() {
                return Ok(());
            }
            let written = socket.recv(|bytes| match stream.write(bytes) {
                Ok(count) => (count, Ok(())),
                Err(error) => (0, Err(error)),
            });
            match written {
                Ok(Ok(())) => {}
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Ok(Err(error)) if error.kind() == ErrorKind::WouldBlock => self.blocked = true,
                Ok(Err(error)) => return Err(error),
                Err(RecvError::Finished) => {
                    self.written = true;
                    return stream.shutdown(Shutdown::Write);
                }
                // Not open yet, or reset.
                Err(RecvError::InvalidState) => return Ok(()),
            }
        }
        Ok(())
    }

    /// What is to cross it.
    fn pass_from(&mut self, mut stream: &TcpStream, socket: &mut Socket<'_>) -> io::Result<()> {
        while self.readable && !self.read && socket.can_send() {
            let read = socket.send(|room| match stream.read(room) {
                Ok(count) => (count, Ok(count)),
                Err(error) => (0, Err(error)),
            });
            match read {
                Ok(Ok(0)) => {
                    self.read = true;
                    socket.close();
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Ok(Err(error)) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Ok(Err(error)) => return Err(error),
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Whether nothing is left of it but the end's own memory.
    pub fn is_over(&self, socket: &Socket<'_>) -> bool {
        let gone = match socket.state() {
            // A connection that is aborted has its remote end until that has been told.
            State::Closed => socket.remote_endpoint().is_none(),
            // All has arrived. Who sends its last packet again, because the answer was lost, is reset, which
            // ends it just as well.
            State::TimeWait => true,
            _ => false,
        };
        gone && self.is_alone()
    }
}
