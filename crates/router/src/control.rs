//! The control plane beside a router: a system that runs routing protocols, and has a port of its own beside
//! each of the router's. It is given what is for the router itself, policed by what it is, and what it sends
//! goes out as it is.

mod changes;
mod path;

use crate::police::Work;
use longwire_units::Nanos;

/// A router's port and the port beside it, to the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlPort {
    /// The place in the plan of the router's port.
    pub port: u16,
    /// The place of the port beside it.
    pub control: u16,
}

/// How the control plane knows a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// It knows the neighbour from elsewhere, or has not heard of it for a while.
    Doubtful,
    /// It has answered just now.
    Answered,
    /// It was written down for good.
    Permanent,
}

/// Classes of packets for the control plane, in the order of their counters.
pub(crate) const PUNTED: [Work; 4] =
    [Work::ControlRouting, Work::ControlPing, Work::ControlOptions, Work::ControlOther];

/// Questions of the control plane for neighbours whose answers are waited for.
const AWAITED: usize = 64;
/// How long an answer is waited for: what the kernel takes between two questions (RFC 4861, 10), three times.
const PATIENCE: Nanos = Nanos::from_secs(3);

#[derive(Debug, Clone, Copy)]
struct Awaited {
    until: Nanos,
    port: u16,
    neighbour: u128,
}

/// The state of a router's control plane.
#[derive(Debug)]
pub(crate) struct Control {
    ports: Vec<ControlPort>,
    awaited: [Awaited; AWAITED],
    next: usize,
    /// Packets given to it, in the order of [`PUNTED`].
    pub punted: [u64; PUNTED.len()],
    /// Packets that came from it.
    pub sent: u64,
}

impl Control {
    pub fn new(ports: Vec<ControlPort>) -> Self {
        let none = Awaited { until: Nanos::ZERO, port: 0, neighbour: 0 };
        Self { ports, awaited: [none; AWAITED], next: 0, punted: [0; PUNTED.len()], sent: 0 }
    }

    /// The port of the control plane beside the router's port at `place`.
    fn beside(&self, place: u16) -> Option<u16> {
        self.ports.iter().find(|pair| pair.port == place).map(|pair| pair.control)
    }

    fn port_of(&self, control: u16) -> Option<u16> {
        self.ports.iter().find(|pair| pair.control == control).map(|pair| pair.port)
    }

    fn await_answer(&mut self, port: u16, neighbour: u128, now: Nanos) {
        self.awaited[self.next] = Awaited { until: now + PATIENCE, port, neighbour };
        self.next = (self.next + 1) % AWAITED;
    }

    /// Whether the control plane has asked for this neighbour. One question lets one answer through.
    fn take_answer(&mut self, port: u16, neighbour: u128, now: Nanos) -> bool {
        let asked = self
            .awaited
            .iter_mut()
            .find(|asked| asked.until > now && (asked.port, asked.neighbour) == (port, neighbour));
        asked.map(|asked| asked.until = Nanos::ZERO).is_some()
    }
}
