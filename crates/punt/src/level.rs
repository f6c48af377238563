//! The two levels that packets go up to, and their seats as others name and see them.

use crate::seat::Counts;

/// A seat of a [`Punt`](crate::Punt).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeatId(pub(crate) Level, pub(crate) usize);

impl SeatId {
    /// The seat for a process with this number: they are numbered as they are added, and a number that was given back is used again.
    pub const fn control(number: usize) -> Self {
        Self(Level::Control, number)
    }

    /// The same for a service.
    pub const fn slow(number: usize) -> Self {
        Self(Level::Slow, number)
    }

    /// Whether it is one for a process.
    pub const fn is_control(self) -> bool {
        matches!(self.0, Level::Control)
    }
}

/// The two kinds of seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Level {
    Control,
    Slow,
}

impl Level {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Slow => "slow-path",
        }
    }
}

/// A seat as statistics show it.
#[derive(Debug, Clone, Copy)]
pub struct Seated<'p> {
    /// Which.
    pub seat: SeatId,
    /// `slow-path` or `control`.
    pub level: &'static str,
    /// Whose it is.
    pub name: &'p str,
    /// Whether someone sits there.
    pub is_taken: bool,
    /// Packets that are up now.
    pub kept: u64,
    /// What became of the others.
    pub counts: Counts,
}
