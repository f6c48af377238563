//! The two levels that packets go up to, and their attachments as others name and see them.

use crate::attachment::Counts;

/// An attachment of a [`Punt`](crate::Punt).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttachmentId(pub(crate) Level, pub(crate) usize);

impl AttachmentId {
    /// The attachment for a process with this number: they are numbered as they are added, and freed numbers
    /// are reused.
    pub const fn control(number: usize) -> Self {
        Self(Level::Control, number)
    }

    /// The attachment for a service with this number.
    pub const fn slow(number: usize) -> Self {
        Self(Level::Slow, number)
    }

    /// Whether it is for a process.
    pub const fn is_control(self) -> bool {
        matches!(self.0, Level::Control)
    }
}

/// The two kinds of attachments.
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

/// An attachment for statistics.
#[derive(Debug, Clone, Copy)]
pub struct AttachmentView<'p> {
    /// Which.
    pub attachment: AttachmentId,
    /// `slow-path` or `control`.
    pub level: &'static str,
    /// Its name.
    pub name: &'p str,
    /// Whether someone sits there.
    pub is_taken: bool,
    /// Packets that are up now.
    pub kept: u64,
    /// What became of the others.
    pub counts: Counts,
}
