//! What a judge knows of packets to come.

use longwire_units::Nanos;

/// The next packets that a judge passes, without effects and whatever is in them: it need not be asked about
/// them. They are so many, no longer, and no later than this.
#[derive(Debug, Clone, Copy)]
pub struct Foresight {
    packets: u32,
    /// Frame bytes of the longest.
    longest: u32,
    /// They come before this.
    until: Nanos,
}

impl Foresight {
    pub(crate) const NONE: Self = Self { packets: 0, ..Self::ALL };
    pub(crate) const ALL: Self = Self { packets: u32::MAX, longest: u32::MAX, until: Nanos::NEVER };

    /// So many, of whatever length and time; none if there are none.
    #[inline]
    pub(crate) fn of_packets(packets: u32) -> Option<Self> {
        (packets > 0).then_some(Self { packets, ..Self::ALL })
    }

    /// All of at most so many frame bytes.
    pub(crate) const fn of_length(longest: u32) -> Self {
        Self { longest, ..Self::ALL }
    }

    /// Only those that come before `until`.
    #[inline]
    pub(crate) const fn before(self, until: Nanos) -> Self {
        Self { until, ..self }
    }

    /// How many are still to come.
    pub(crate) const fn packets(self) -> u32 {
        self.packets
    }

    /// Whether the packet of `frame` bytes that comes at `now` is one of them: then there is one less.
    #[inline(always)]
    pub(crate) fn has(&mut self, now: Nanos, frame: u32) -> bool {
        let has = self.packets > 0 && frame <= self.longest && now < self.until;
        self.packets -= u32::from(has);
        has
    }
}
