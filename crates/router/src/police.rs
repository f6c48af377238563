//! Policing of exceptional work: rate limits by the packets' times.

use longwire_punt::Bucket;
use longwire_settings::{Choice, Form, Grammar};
use longwire_units::Nanos;
use std::sync::Arc;

/// Kinds of policed work, with separate limits for each port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Choice)]
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
    /// Its name in statistics.
    pub const fn name(self) -> &'static str {
        Self::WORDS[self as usize]
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

/// An average rate per second and a burst: `1000/s burst 64`. Without a burst, that of the default applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frequency {
    rate: u32,
    burst: Option<u32>,
}

impl Frequency {
    fn read(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("\"{text}\" is not a frequency; write one such as \"1000/s\" or \"1000/s burst 64\"");
        let (rate, burst) = match text.trim().split_once("burst") {
            Some((rate, burst)) => (rate, Some(burst.trim().parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        if burst == Some(0) {
            return Err("a burst of 0 allows nothing; write 1 or more".into());
        }
        let rate = rate.trim().strip_suffix("/s").ok_or_else(wrong)?.trim().replace('_', "");
        Ok(Self { rate: rate.parse().map_err(|_| wrong())?, burst })
    }

    /// The router's limit, with the burst of `default` if none is given.
    pub fn limit(self, default: Self) -> Limit {
        let burst = self.burst.or(default.burst).unwrap_or(self.rate);
        Limit { rate: self.rate, burst }
    }
}

/// A rate limit: a [`Frequency`].
pub const FREQUENCY: Grammar = Grammar {
    wanted: "a frequency such as \"1000/s\" or \"1000/s burst 64\"",
    read: |text, _| Ok(Arc::new(Frequency::read(text)?)),
    examples: &["1000/s", "20_000/s burst 1024"],
    form: Some(Form { pattern: "^ *[0-9_]+ */s *(burst +[0-9]+ *)?$", numbers: false }),
};

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
    /// Number of refusals of each kind of work, by its number.
    pub refused: [u64; PolicedWork::ALL.len()],
}

impl Police {
    pub fn new(limits: &Limits, ports: usize) -> Self {
        let each = std::array::from_fn(|work| {
            let Limit { rate, burst } = limits.of(PolicedWork::ALL[work]);
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
        assert_eq!(police.refused, [0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn frequencies_are_read() {
        let default = Frequency { rate: 7, burst: Some(9) };
        let limit = |text| Frequency::read(text).unwrap().limit(default);
        assert_eq!(limit("1000/s"), Limit { rate: 1000, burst: 9 });
        assert_eq!(limit("20_000 /s burst 1024"), Limit { rate: 20_000, burst: 1024 });
        assert_eq!(limit("0/s"), Limit { rate: 0, burst: 9 });
        for bad in ["", "1000", "-1/s", "1/s burst", "1/s burst 0", "5000000000/s", "1/ms"] {
            assert!(Frequency::read(bad).is_err(), "{bad}");
        }
    }
}
