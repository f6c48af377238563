//! The two levels to which packets go up, and the public view of their attachments.

use crate::attachment::Counts;

/// An attachment of a [`Punt`](crate::Punt).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttachmentId(pub(crate) Level, pub(crate) usize);

impl AttachmentId {
    /// The attachment for a process. Processes are numbered as they are added, and freed numbers are reused.
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

/// An attachment's statistics.
#[derive(Debug, Clone, Copy)]
pub struct AttachmentView<'p> {
    /// Its number.
    pub attachment: AttachmentId,
    /// `slow-path` or `control`.
    pub level: &'static str,
    /// Its name.
    pub name: &'p str,
    /// Whether a process or service is attached.
    pub is_taken: bool,
    /// Packets that are up now.
    pub kept: u64,
    /// Outcomes of the other packets.
    pub counts: Counts,
}
