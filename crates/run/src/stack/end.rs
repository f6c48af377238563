//! One end: its address, its sockets, and its wire.

use std::net::Ipv4Addr;
use std::time::Duration;

use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};

use super::port::Wire;

/// Prefix of the network of both ends.
const PREFIX: u8 = 30;

/// The time of the ends, which begins with the relay.
#[derive(Debug, Clone, Copy)]
pub struct Clock(std::time::Instant);

impl Clock {
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub fn now(&self) -> Instant {
        Instant::from_micros(i64::try_from(self.0.elapsed().as_micros()).unwrap_or(i64::MAX))
    }
}

/// An end.
pub struct End {
    pub wire: Wire,
    pub interface: Box<Interface>,
    pub sockets: SocketSet<'static>,
}

impl End {
    pub fn new(clock: &Clock, mut wire: Wire, address: Ipv4Addr) -> Self {
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Box::new(Interface::new(config, &mut wire, clock.now()));
        interface.update_ip_addrs(|own| {
            // There is room for two.
            let _ = own.push(IpCidr::new(address.into(), PREFIX));
        });
        Self { wire, interface, sockets: SocketSet::new(Vec::new()) }
    }

    /// Takes the packets that have come; `each` sees the sockets after each of them.
    pub fn receive(&mut self, clock: &Clock, mut each: impl FnMut(&mut SocketSet<'static>)) {
        self.wire.silence();
        let now = clock.now();
        self.interface.poll_maintenance(now);
        loop {
            match self.interface.poll_ingress_single(now, &mut self.wire, &mut self.sockets) {
                PollIngressSingleResult::None => return,
                PollIngressSingleResult::PacketProcessed => {}
                PollIngressSingleResult::SocketStateChanged => each(&mut self.sockets),
            }
        }
    }

    /// Sends what may be sent.
    pub fn send(&mut self, clock: &Clock) {
        let now = clock.now();
        while self.interface.poll_egress(now, &mut self.wire, &mut self.sockets) != PollResult::None {}
        self.wire.flush();
    }

    /// Time until it has something to do by itself; none if only when something comes.
    pub fn wait(&mut self, clock: &Clock) -> Option<Duration> {
        let wait = self.interface.poll_delay(clock.now(), &self.sockets)?;
        Some(Duration::from_micros(wait.total_micros()))
    }
}
