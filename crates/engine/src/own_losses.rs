//! Packets lost by Longwire itself.

use longwire_block::PortStats;
use longwire_units::counted;

/// Packets lost by Longwire itself, by place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnLosses {
    /// The pool was full.
    pub pool: u64,
    /// A port refused them, or lost them before they were read.
    pub port: u64,
    /// A port's interface was down or gone.
    pub down: u64,
    /// They exceeded a port's maximum length.
    pub oversize: u64,
    /// A ring between workers was full.
    pub ring: u64,
}

impl OwnLosses {
    pub(crate) const fn of_port(stats: &PortStats) -> Self {
        let port = stats.in_missed + stats.out_full;
        Self { pool: 0, port, down: stats.out_down, oversize: stats.out_oversize, ring: 0 }
    }

    pub(crate) const fn total(self) -> u64 {
        self.pool + self.port + self.down + self.oversize + self.ring
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }

    /// Those since an earlier count. Counters of a port that was reopened may begin anew.
    pub(crate) fn since(self, earlier: Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    /// Combines each count with that of the same place.
    fn with(self, other: Self, combined: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            pool: combined(self.pool, other.pool),
            port: combined(self.port, other.port),
            down: combined(self.down, other.down),
            oversize: combined(self.oversize, other.oversize),
            ring: combined(self.ring, other.ring),
        }
    }

    /// What was lost and why, each in a brief and a full wording: what cost most first, because a verdict in
    /// one line names that.
    pub(crate) fn causes(self) -> Vec<(String, String)> {
        let mut causes = [
            (self.pool, "packet memory full", "the packet pool was full: raise engine.pool"),
            (
                self.port,
                "port overflowed",
                "a port lost packets: its queue overflowed; lower the load or add queues",
            ),
            (
                self.down,
                "interface down",
                "the interface of a port (see out_down), or a tunnel's peer, was down or gone: bring it up",
            ),
            (
                self.oversize,
                "packets too long for their port",
                "they were longer than their port (see out_oversize) can carry: raise the interface's MTU, \
                 or set mtu on the links that lead there",
            ),
            (
                self.ring,
                "worker overloaded",
                "a ring between workers was full: lower the load or add workers",
            ),
        ];
        causes.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
        let in_words = |(count, brief, what)| {
            let dropped = format!("{} dropped", counted(count, "packet"));
            (format!("{brief} ({dropped})"), format!("{dropped} because {what}"))
        };
        causes.into_iter().filter(|(count, ..)| *count > 0).map(in_words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_that_cost_most_comes_first() {
        let lost = OwnLosses { port: 1, down: 6, ..OwnLosses::default() };
        let causes = lost.causes();
        let brief: Vec<_> = causes.iter().map(|(brief, _)| brief.as_str()).collect();
        assert_eq!(brief, ["interface down (6 packets dropped)", "port overflowed (1 packet dropped)"]);
    }
}
