//! Why who sat in a seat was cut off.

use crate::ring::Broken;

/// Why who sat in a seat was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Cut {
    /// It closed its socket, or died.
    Left,
    /// It wrote what can't be into its memory.
    Broken,
    /// It said nothing, for as long as it is waited for.
    Stalled,
    /// It was at fault too often.
    Flood,
    /// The service panicked.
    Panicked,
    /// The run is over.
    Stopped,
    /// It took far more of its processor than it was promised, though no packets went up to it any more.
    Overrun,
}

impl Cut {
    const ALL: [Self; 7] =
        [Self::Left, Self::Broken, Self::Stalled, Self::Flood, Self::Panicked, Self::Stopped, Self::Overrun];

    /// The cut with this number plus one; none for 0, and for what is none.
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

impl From<Broken> for Cut {
    fn from(_: Broken) -> Self {
        Self::Broken
    }
}
