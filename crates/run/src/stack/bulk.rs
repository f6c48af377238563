//! One connection of TCP that sends without end.

use std::net::Ipv4Addr;

use rustix::event::{PollFd, PollFlags};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};

use super::end::{Clock, End};
use super::{Relay, Wires};

/// The sink's port: the discard service (RFC 863).
const TO_PORT: u16 = 9;
/// The source's: a dynamic port (RFC 6335).
const FROM_PORT: u16 = 49_152;
/// Bytes under way, at most: more than a window of the receiver should bound.
const WINDOW: usize = 8 << 20;

pub struct Bulk {
    near: End,
    far: End,
    source: SocketHandle,
    sink: SocketHandle,
}

impl Bulk {
    /// Sends from the near end, at the first address, to the far one, at the second.
    pub fn new(clock: &Clock, wires: Wires, [from, to]: [Ipv4Addr; 2]) -> Self {
        let [mut near, mut far] = [(wires.near, from), (wires.far, to)].map(|(wire, own)| {
            let mut end = End::new(clock, wire, own);
            // Frames go to the one neighbour, whatever the address. There is room for a route.
            let _ = end.interface.routes_mut().add_default_ipv4_route(own);
            end
        });
        let mut listening = socket();
        // It can only fail for port 0.
        let _ = listening.listen((to, TO_PORT));
        let sink = far.sockets.add(listening);
        let mut connecting = socket();
        // It can only fail for port 0, or if it is open.
        let _ = connecting.connect(near.interface.context(), (to, TO_PORT), (from, FROM_PORT));
        let source = near.sockets.add(connecting);
        Self { near, far, source, sink }
    }
}

impl Relay for Bulk {
    fn ends(&mut self) -> [&mut End; 2] {
        [&mut self.near, &mut self.far]
    }

    fn awaited<'a>(&'a self, _polls: &mut Vec<PollFd<'a>>) {}

    fn ready(&mut self, _events: &[PollFlags]) {}

    fn turn(&mut self, clock: &Clock) {
        self.near.receive(clock, |_| ());
        self.far.receive(clock, |_| ());
        let sink = self.far.sockets.get_mut::<Socket<'_>>(self.sink);
        while sink.can_recv() && sink.recv(|bytes| (bytes.len(), ())).is_ok() {}
        let source = self.near.sockets.get_mut::<Socket<'_>>(self.source);
        // What is in the buffer is sent, whatever it is.
        while source.can_send() && source.send(|room| (room.len(), ())).is_ok() {}
    }
}

fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; WINDOW]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_congestion_control(CongestionControl::Cubic);
    socket
}
