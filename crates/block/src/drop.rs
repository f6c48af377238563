//! Reasons for drops: every drop has one.

use std::ops::{Deref, DerefMut};

macro_rules! reasons {
    ($($variant:ident $name:literal $help:literal),+ $(,)?) => {
        /// Reason why a packet was dropped. The number is the index in arrays of counters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DropReason { $(#[doc = $help] $variant),+ }

        impl DropReason {
            /// Every reason, in order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in statistics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Its meaning, in one sentence.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help),+ }
            }
        }
    };
}

reasons! {
    QueueFull "queue-full" "The link's queue had reached its limit.",
    Loss "loss" "The link's loss model took it.",
    Corrupted "corrupted" "Bits of it were wrong, and a card would have dropped it.",
    Aqm "aqm" "The link's active queue management dropped it early.",
    Filtered "filtered" "A filter of the link took it.",
    Policed "policed" "It exceeded a filter's rate limit.",
    LinkDown "link-down" "The link was down.",
    Collisions "collisions" "The shared medium gave it up after too many collisions.",
    Mtu "mtu" "It was longer than the link's MTU.",
    PoolFull "pool-full" "The packet pool had no room: the emulation is not faithful.",
    PortDown "port-down" "The port it was bound for is down or gone.",
    PortMtu "port-mtu" "It was longer than the port it was bound for can carry.",
    PortFull "port-full" "The port it was bound for would not take it: the emulation is not faithful.",
    RingFull "ring-full" "The ring to another worker had no room: the emulation is not faithful.",
    BadFrame "bad-frame" "It was no valid frame: too short, too long, or a bad source address.",
    Reserved "reserved" "Its destination is reserved for bridges (IEEE 802.1D, 01-80-C2-00-00-0X).",
    Hairpin "hairpin" "Its destination lies behind the port it came from.",
    BadHeader "bad-header" "Its IP header can't be: version, length or checksum (RFC 1812, 5.2.2; RFC 8200).",
    Martian "martian" "Its source or destination is an address that no router forwards (RFC 1812, 5.3.7).",
    Group "group" "It was for many stations, and routers do not forward such packets.",
    OtherStation "other-station" "The frame was for another station on the port's network.",
    Unserved "unserved" "It was for the router itself, which does not serve its protocol.",
    HopLimit "hop-limit" "It had been through as many routers as it may.",
    Options "ip-options" "Its IP options or extension headers are refused, or are malformed.",
    NoNeighbour "no-neighbour" "The next hop did not answer when its address was asked for.",
    NeighbourFull "neighbour-full" "Too many packets or addresses waited for answers of neighbours.",
    SlowPath "slow-path" "It needed more than plain forwarding, of which there was too much.",
    FlowFull "flow-full" "A router's scheduler had no room for it: its flow, all flows together, or the flow \
        table was full.",
    LevelFull "level-full"
        "The service or control process that it was for had no room, or was promised less.",
    LevelLate "level-late" "The service or control process that it was for did not answer in time, or was \
        not there, and without an answer it was not to go on.",
    Service "service" "A service or a control process dropped it.",
    Discard "discard" "A route says that it goes nowhere.",
    Program "program" "A program on the router's path dropped it.",
    Aborted "aborted" "A program on the router's path gave up on it, or sent it where no port is.",
    NoRoute "no-route" "Nothing leads from where it came in to where it wants to go.",
    Loop "loop" "Too much came of one packet at one moment: it went in a circle, or links duplicated it one \
        behind the other.",
    Stopped "stopped" "It was still waiting when the run was stopped.",
    LinkRemoved "link-removed" "It was still in a link that was removed.",
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = Self::ALL.len();

    /// The reason with this number.
    pub const fn from_index(index: usize) -> Option<Self> {
        if index < Self::COUNT { Some(Self::ALL[index]) } else { None }
    }
}

/// A counter per reason, indexed by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropCounts([u64; DropReason::COUNT]);

impl Default for DropCounts {
    fn default() -> Self {
        Self([0; DropReason::COUNT])
    }
}

impl Deref for DropCounts {
    type Target = [u64; DropReason::COUNT];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for DropCounts {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique() {
        for (index, &reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(DropReason::from_index(index), Some(reason));
            assert!(DropReason::ALL.iter().filter(|r| r.name() == reason.name()).count() == 1);
        }
        assert_eq!(DropReason::from_index(DropReason::COUNT), None);
    }
}
