//! What a router says it has done.

use serde::Serialize;

/// What a router has counted. Packets; segments of a train count one each: received + made = forwarded +
/// consumed + dropped + kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NodeStats {
    /// Taken in.
    pub received: u64,
    /// Made: errors, answers, requests, fragments.
    pub made: u64,
    /// Given out to ports.
    pub forwarded: u64,
    /// For the router itself, or taken apart into fragments.
    pub consumed: u64,
    /// Dropped.
    pub dropped: u64,
    /// Waiting for neighbours now.
    pub kept: u64,
    /// ICMP errors made.
    pub errors: u64,
    /// Not made, though they should have been, for want of room.
    pub unmade: u64,
    /// Given to full IP, by reason, where any were.
    pub exceptions: Vec<(&'static str, u64)>,
    /// Not done because there was too much, by kind of work, where any was.
    pub policed: Vec<(&'static str, u64)>,
    /// Given to its control plane, by class, where any were.
    pub punted: Vec<(&'static str, u64)>,
    /// Taken from its control plane.
    pub from_control: u64,
    /// Destinations that the route caches knew.
    pub cache_hits: u64,
    /// Destinations that they did not.
    pub cache_misses: u64,
    /// Neighbours known, those being asked for included.
    pub neighbours: u64,
    /// Neighbours being asked for.
    pub asked: u64,
    /// Bytes of the prefix tables.
    pub table_bytes: u64,
    /// Its processors, if flows share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorStats>,
    /// Who is above it: services, control processes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<SeatStats>,
}

/// What a router's scheduler has counted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ProcessorStats {
    /// The scheduler's name.
    pub scheduler: &'static str,
    /// How many processors there are.
    pub processors: u32,
    /// Whether costs are measured; else they are those of a model.
    pub measured: bool,
    /// Packets that wait for a processor now.
    pub waiting: u64,
    /// Dropped because the ring before the scheduler was full, in virtual time. The scheduler never saw them:
    /// they are not among `refused`, of no flow and not of all.
    pub input_full: u64,
    /// Refused because their flow had as many waiting as it may.
    pub queue_full: u64,
    /// Refused because all flows known were busy or had names.
    pub table_full: u64,
    /// Refused because their flow had its share of the room for packets, or there was none left.
    pub no_room: u64,
    /// Idle flows that made room for others in the flow table: what they did is in `all` only.
    pub recycled: u64,
    /// Measurements above the budget, which counted as the budget.
    pub exploded: u64,
    /// Packets that cost more than a round gives.
    pub beyond_quantum: u64,
    /// Flows known of which a packet has come.
    pub flows_known: u64,
    /// How many of them are not among `flows`, as they have no name and others used more.
    pub flows_left_out: u64,
    /// Those that used most, in the order in which they became known; named ones always, once for each port
    /// that packets of theirs went to.
    pub flows: Vec<FlowStats>,
    /// All flows together, those known no more included.
    pub all: FlowStats,
}

/// What became of a flow's packets: in = out + consumed + abandoned + inside.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FlowStats {
    /// What it is called.
    pub flow: String,
    /// The place of the port it goes to; `u16::MAX` of one with a name of which no packet has come.
    pub port: u16,
    /// Its weight.
    pub weight: u32,
    /// Packets inside now.
    pub inside: u64,
    /// Accepted.
    pub in_packets: u64,
    /// Given to the port.
    pub out_packets: u64,
    /// Their bytes.
    pub out_bytes: u64,
    /// Refused.
    pub refused: u64,
    /// Ended when they were processed.
    pub consumed: u64,
    /// Stopped, because their program did not end within its budget.
    pub abandoned: u64,
    /// Processor time, in nanoseconds.
    pub processor_ns: u64,
    /// How long processing its next packet is foretold to take, in nanoseconds.
    pub estimate_ns: u64,
}

/// What became of packets that went up to a service or a control process. Packets; trains count as one:
/// up = verdicts + late + returned + kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SeatStats {
    /// `slow-path` or `control`.
    pub level: &'static str,
    /// Whose seat it is.
    pub name: Box<str>,
    /// Whether someone sits there now.
    pub there: bool,
    /// Gone up.
    pub up: u64,
    /// Answered.
    pub verdicts: u64,
    /// Taken by the default forwarder because there was no answer in time.
    pub late: u64,
    /// Taken by the default forwarder because who had them was cut off.
    pub returned: u64,
    /// Up now.
    pub kept: u64,
    /// Not gone up, and dropped: no room, or more than was promised.
    pub refused: u64,
    /// Those of them that did not go up because the process has had more of its processor than was promised.
    pub over_cycles: u64,
    /// Those of them that did not go up because moving packets has taken as much of the worker's time as is
    /// set aside.
    pub over_time: u64,
    /// The worker's time that moving packets has taken, in nanoseconds, as it is priced.
    pub worker_ns: u64,
    /// How often packets began not to go up because of processor time.
    pub throttled: u64,
    /// Processor time that processes there have used, in nanoseconds; 0 of services.
    pub processor_ns: u64,
    /// Not gone up, and forwarded: nobody there.
    pub absent: u64,
    /// Made there and sent.
    pub made: u64,
    /// Made there and not sent: too many, or no memory.
    pub unmade: u64,
    /// Answers about packets that are not up, or that can't be.
    pub faults: u64,
    /// Times someone came.
    pub came: u64,
    /// Times someone was cut off.
    pub cut: u64,
    /// Why, the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_cut: Option<&'static str>,
}

impl NodeStats {
    /// Packets that there were.
    pub fn come(&self) -> u64 {
        self.received + self.made
    }

    /// What became of them.
    pub fn gone(&self) -> u64 {
        self.forwarded + self.consumed + self.dropped + self.kept
    }
}
