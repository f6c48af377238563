//! Reasons for cutting off a service or process.

use crate::ring::CorruptRing;

/// Reason why a service or process was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CutReason {
    /// It closed its socket, or died.
    Left,
    /// It wrote invalid contents into its memory.
    Broken,
    /// It was silent for longer than the limit.
    Stalled,
    /// Too many faults.
    Flood,
    /// The service panicked.
    Panicked,
    /// The run is over.
    Stopped,
    /// It used far more processor time than its guarantee, though no packets went up to it.
    Overrun,
}

impl CutReason {
    const ALL: [Self; 7] =
        [Self::Left, Self::Broken, Self::Stalled, Self::Flood, Self::Panicked, Self::Stopped, Self::Overrun];

    /// The cut with this number plus one; none for 0 and for invalid numbers.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Its name in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Broken => "broken",
            Self::Stalled => "stalled",
            Self::Flood => "flood",
            Self::Panicked => "panicked",
            Self::Stopped => "stopped",
            Self::Overrun => "overrun",
        }
    }
}

impl From<CorruptRing> for CutReason {
    fn from(_: CorruptRing) -> Self {
        Self::Broken
    }
}
