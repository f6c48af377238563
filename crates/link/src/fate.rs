//! What becomes of a packet that arrives at a link.

use longwire_block::{DropReason, Effects, Verdict};
use longwire_units::Nanos;

/// What becomes of a packet that arrives at a plain link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves at this very moment, and nothing is in front of it.
    Through,
    /// It is to join the delay line, and leave then; and whether it waits behind another until it is sent.
    Joins(Nanos, bool),
    /// It has joined the delay line, and whether it leaves before all others there.
    Joined(bool),
    /// It is lost, for this reason. It has not been dropped yet.
    Dropped(DropReason),
    /// Blocks are to be asked about it: [`Link::ask`]. Nothing has happened yet.
    Asked(Coming),
    /// Its judges do more to it: [`Link::arrive_affected`] is to go on with that.
    Affected,
    /// The judges on the wire do something to it, or drop it: [`Link::send_off_judged`] is to go on with
    /// that.
    Judged,
    /// Not all is decided when it arrives, or it is no plain packet: nothing has happened yet.
    NotPlain,
}

/// What the judges do to a packet that is more than to let it pass or drop it.
pub(crate) type Affected = (Verdict, Effects);

/// A packet that comes to a decided link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coming {
    pub(crate) now: Nanos,
    /// Bytes of its frame.
    pub(crate) frame: u32,
}

/// What has become of a packet that arrived at a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Arrival {
    /// It leaves at this very moment, with `Meta::leave` set, and nothing else does.
    Through,
    /// The link has it, or had it, and does not want to be looked at sooner than before.
    Kept,
    /// The same, and the link's deadline may be another.
    Stirred,
}
