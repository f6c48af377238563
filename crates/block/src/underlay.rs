//! The network under a tunnel.

use longwire_units::Nanos;

/// The network under a tunnel, as one end knows it. Messages are the peer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Underlay {
    /// Whether the peer answers.
    pub is_connected: bool,
    /// Sessions with the peer so far.
    pub sessions: u64,
    /// Packets that came after they should have left here, by more than is tolerated. The engine counts them.
    pub overdue: u64,
    /// Messages lost on the way.
    pub lost: u64,
    /// Messages that later ones overtook.
    pub reordered: u64,
    /// Messages received before, or too old to tell.
    pub replayed: u64,
    /// Messages whose authenticator is wrong.
    pub forged: u64,
    /// Messages that break the rules of the protocol.
    pub malformed: u64,
    /// Messages of no session, or of an ended one.
    pub other_session: u64,
    /// Messages of another version of the protocol.
    pub other_version: u64,
    /// How often one of the clocks was set, or stood still.
    pub clock_jumps: u64,
    /// The least round trip of late.
    pub round_trip: Option<Nanos>,
    /// The peer's clock minus the own clock, in nanoseconds.
    pub clock_offset: Option<i64>,
    /// The largest possible error of the offset.
    pub clock_error: Option<Nanos>,
}

impl Underlay {
    /// The counters of two tunnels together. What is known of one at a time is left out.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            is_connected: false,
            sessions: self.sessions + other.sessions,
            overdue: self.overdue + other.overdue,
            lost: self.lost + other.lost,
            reordered: self.reordered + other.reordered,
            replayed: self.replayed + other.replayed,
            forged: self.forged + other.forged,
            malformed: self.malformed + other.malformed,
            other_session: self.other_session + other.other_session,
            other_version: self.other_version + other.other_version,
            clock_jumps: self.clock_jumps + other.clock_jumps,
            round_trip: None,
            clock_offset: None,
            clock_error: None,
        }
    }
}
