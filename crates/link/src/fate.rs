//! Fates of packets that arrive at a link.

use longwire_block::{DropReason, Effects, Verdict};
use longwire_units::Nanos;

/// Fate of a packet that arrives at a plain link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves immediately, with nothing in front of it.
    Through,
    /// It has joined the delay line; whether it leaves before all others there.
    Joined(bool),
    /// It is lost for this reason, but not dropped yet.
    Dropped(DropReason),
    /// Blocks must be asked about it: [`Link::ask`]. Nothing has happened yet.
    Asked,
    /// The queue has room for it, and it is sent on arrival: continue with [`Link::send_at_once`].
    Admitted,
    /// Its discipline decides when it is sent: continue with [`Link::wait_served`].
    Waits,
    /// Its judges have further effects: continue with [`Link::arrive_affected`].
    Affected,
    /// The judges on the wire have effects, or drop it: continue with [`Link::send_off_judged`].
    Judged,
    /// Not everything is decided on arrival, or the packet is not plain: nothing has happened yet.
    NotPlain,
}

/// A verdict with effects beyond passing or dropping.
pub(crate) type VerdictWithEffects = (Verdict, Effects);

/// Such a verdict, if judges gave one.
pub(crate) type Affected = Option<VerdictWithEffects>;

/// A packet that arrives at a link, or at its wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coming {
    pub(crate) now: Nanos,
    /// Bytes of its frame.
    pub(crate) frame: u32,
}

/// Result of a packet's arrival at a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Arrival {
    /// It leaves immediately, with `Meta::leave` set, and nothing else does.
    Through,
    /// The link has it, or had it, and its deadline is not earlier than before.
    Kept,
    /// The link has it, or had it, and its deadline may have changed.
    DeadlineChanged,
}
