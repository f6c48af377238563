//! Policing of exceptional work: rate limits by the packets' times.

use longwire_punt::Bucket;
use longwire_units::Nanos;

/// Kinds of policed work, with separate limits for each port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicedWork {
    /// Packets for full IP, except multicast and neighbour messages.
    Exceptions,
    /// ICMP errors sent (RFC 1812, 4.3.2.8; RFC 4443, 2.4 f).
    Errors,
    /// Echo replies of the router itself.
    Echo,
    /// Packets with IP options or hop-by-hop headers.
    Options,
    /// Packets to be fragmented.
    Fragments,
    /// Unsolicited ARP and neighbour discovery messages.
    Neighbours,
    /// Requests sent for neighbours' addresses, with separate limits for gateways and known neighbours.
    Requests,
    /// Packets of routing protocols passed to the control plane.
    ControlRouting,
    /// ICMP passed to the control plane: replies to its own pings, and errors. Pings of the router are
    /// [`PolicedWork::Echo`].
    ControlPing,
    /// Packets with IP options or hop-by-hop headers passed to the control plane.
    ControlOptions,
    /// All others passed to the control plane.
    ControlOther,
}

impl PolicedWork {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Exceptions,
        Self::Errors,
        Self::Echo,
        Self::Options,
        Self::Fragments,
        Self::Neighbours,
        Self::Requests,
        Self::ControlRouting,
        Self::ControlPing,
        Self::ControlOptions,
        Self::ControlOther,
    ];

    /// Its name in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exceptions => "exceptions",
            Self::Errors => "errors",
            Self::Echo => "echo",
            Self::Options => "options",
            Self::Fragments => "fragments",
            Self::Neighbours => "neighbours",
            Self::Requests => "requests",
            Self::ControlRouting => "control-routing",
            Self::ControlPing => "control-ping",
            Self::ControlOptions => "control-options",
            Self::ControlOther => "control-other",
        }
    }
}

/// A rate limit: `rate` times per second on average, `burst` times at once. A rate of 0 means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Mean rate per second.
    pub rate: u32,
    /// Burst, at least 1.
    pub burst: u32,
}

/// The limits of each kind of work for each port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// See [`PolicedWork::Exceptions`].
    pub exceptions: Limit,
    /// See [`PolicedWork::Errors`].
    pub errors: Limit,
    /// See [`PolicedWork::Echo`].
    pub echo: Limit,
    /// See [`PolicedWork::Options`].
    pub options: Limit,
    /// See [`PolicedWork::Fragments`].
    pub fragments: Limit,
    /// See [`PolicedWork::Neighbours`].
    pub neighbours: Limit,
    /// See [`PolicedWork::Requests`].
    pub requests: Limit,
    /// See [`PolicedWork::ControlRouting`].
    pub control_routing: Limit,
    /// See [`PolicedWork::ControlPing`].
    pub control_ping: Limit,
    /// See [`PolicedWork::ControlOptions`].
    pub control_options: Limit,
    /// See [`PolicedWork::ControlOther`].
    pub control_other: Limit,
}

impl Default for Limits {
    /// Per second 20000 packets for full IP, 1000 errors, echo replies and packets with options, 10000 to be
    /// fragmented, 600 neighbour messages, 200 requests. To the control plane 20000 packets of routing
    /// protocols, 1000 of ICMP, 100 with options, 5000 others.
    fn default() -> Self {
        let thousand = Limit { rate: 1000, burst: 64 };
        Self {
            exceptions: Limit { rate: 20_000, burst: 1024 },
            errors: thousand,
            echo: thousand,
            options: thousand,
            fragments: Limit { rate: 10_000, burst: 256 },
            neighbours: Limit { rate: 600, burst: 128 },
            requests: Limit { rate: 200, burst: 64 },
            control_routing: Limit { rate: 20_000, burst: 1024 },
            control_ping: thousand,
            control_options: Limit { rate: 100, burst: 64 },
            control_other: Limit { rate: 5000, burst: 256 },
        }
    }
}

impl Limits {
    const fn of(&self, work: PolicedWork) -> Limit {
        match work {
            PolicedWork::Exceptions => self.exceptions,
            PolicedWork::Errors => self.errors,
            PolicedWork::Echo => self.echo,
            PolicedWork::Options => self.options,
            PolicedWork::Fragments => self.fragments,
            PolicedWork::Neighbours => self.neighbours,
            PolicedWork::Requests => self.requests,
            PolicedWork::ControlRouting => self.control_routing,
            PolicedWork::ControlPing => self.control_ping,
            PolicedWork::ControlOptions => self.control_options,
            PolicedWork::ControlOther => self.control_other,
        }
    }
}

/// Remaining allowances of all ports, and counts of refusals.
#[derive(Debug)]
pub(crate) struct Police {
    buckets: Vec<[Bucket; PolicedWork::ALL.len()]>,
    refused: [u64; PolicedWork::ALL.len()],
}

impl Police {
    pub fn new(limits: &Limits, ports: usize) -> Self {
        let each = PolicedWork::ALL.map(|work| {
            let Limit { rate, burst } = limits.of(work);
            Bucket::new(rate.into(), burst.into())
        });
        Self { buckets: vec![each; ports], refused: [0; PolicedWork::ALL.len()] }
    }

    /// Whether another operation is allowed at `now`, because of a packet from the router's port number
    /// `port`.
    pub fn allows(&mut self, port: usize, work: PolicedWork, now: Nanos) -> bool {
        let allowed = self.buckets[port][work as usize].take(now);
        self.refused[work as usize] += u64::from(!allowed);
        allowed
    }

    /// Number of refusals of each kind of work, in the order of [`PolicedWork::ALL`].
    pub const fn refused(&self) -> [u64; PolicedWork::ALL.len()] {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_kinds_have_their_own() {
        let (echo, errors) = (Limit { rate: 0, burst: 9 }, Limit { rate: 1, burst: 1 });
        let limits = Limits { echo, errors, ..Limits::default() };
        let mut police = Police::new(&limits, 2);
        assert!(!police.allows(0, PolicedWork::Echo, Nanos(5)));
        assert!(
            police.allows(0, PolicedWork::Errors, Nanos(5))
                && !police.allows(0, PolicedWork::Errors, Nanos(5))
        );
        assert!(
            police.allows(1, PolicedWork::Errors, Nanos(5))
                && police.allows(0, PolicedWork::Options, Nanos(5))
        );
        assert_eq!(police.refused(), [0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
