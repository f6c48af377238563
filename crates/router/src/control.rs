//! The control plane beside a router: a system that runs routing protocols, with a port beside each of the
//! router's. It receives packets for the router itself, policed by kind; packets that it sends leave
//! unchanged.

mod path;

use crate::police::PolicedWork;
use longwire_settings::Choice;
use longwire_units::Nanos;

/// A router's port, and the port beside it that leads to the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlPort {
    /// Index of the router's port in the plan.
    pub port: u16,
    /// Index of the port beside it.
    pub control: u16,
}

/// State of a neighbour in the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confirmation {
    /// Known from elsewhere, or not confirmed for a while.
    Doubtful,
    /// Just confirmed.
    Answered,
    /// Permanent.
    Permanent,
}

/// Maximum number of pending neighbour requests of the control plane.
const AWAITED: usize = 64;
/// Timeout of a request: three times the kernel's interval between two of them (RFC 4861, 10).
const PATIENCE: Nanos = Nanos::from_secs(3);

#[derive(Debug, Clone, Copy)]
struct AwaitedAnswer {
    until: Nanos,
    port: u16,
    neighbour: u128,
}

/// The state of a router's control plane.
#[derive(Debug)]
pub(crate) struct Control {
    ports: Vec<ControlPort>,
    awaited: [AwaitedAnswer; AWAITED],
    next: usize,
    /// Packets passed to it, by the number of their kind of work.
    pub punted: [u64; PolicedWork::ALL.len()],
    /// Packets that came from it.
    pub sent: u64,
}

impl Control {
    pub fn new(ports: Vec<ControlPort>) -> Self {
        let none = AwaitedAnswer { until: Nanos::ZERO, port: 0, neighbour: 0 };
        Self { ports, awaited: [none; AWAITED], next: 0, punted: [0; PolicedWork::ALL.len()], sent: 0 }
    }

    /// The port of the control plane beside this port of the router.
    fn beside(&self, place: u16) -> Option<u16> {
        self.ports.iter().find(|pair| pair.port == place).map(|pair| pair.control)
    }

    fn port_of(&self, control: u16) -> Option<u16> {
        self.ports.iter().find(|pair| pair.control == control).map(|pair| pair.port)
    }

    fn await_answer(&mut self, port: u16, neighbour: u128, now: Nanos) {
        self.awaited[self.next] = AwaitedAnswer { until: now + PATIENCE, port, neighbour };
        self.next = (self.next + 1) % AWAITED;
    }

    /// Whether the control plane has a pending request for this neighbour. Each request admits one answer.
    fn take_answer(&mut self, port: u16, neighbour: u128, now: Nanos) -> bool {
        let asked = self
            .awaited
            .iter_mut()
            .find(|asked| asked.until > now && (asked.port, asked.neighbour) == (port, neighbour));
        asked.map(|asked| asked.until = Nanos::ZERO).is_some()
    }
}
