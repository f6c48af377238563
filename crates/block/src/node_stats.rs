//! Statistics of a router.

use serde::Serialize;

/// Counters of a router, in packets, where each segment of a train is counted: received + made = forwarded +
/// consumed + dropped + kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NodeStats {
    /// Received.
    pub received: u64,
    /// Made: errors, replies, requests, fragments.
    pub made: u64,
    /// Sent to ports.
    pub forwarded: u64,
    /// Addressed to the router itself, or split into fragments.
    pub consumed: u64,
    /// Dropped.
    pub dropped: u64,
    /// Waiting for neighbours now.
    pub kept: u64,
    /// ICMP errors made.
    pub errors: u64,
    /// Packets that should have been made but were not, for lack of room.
    pub unmade: u64,
    /// Handed to full IP, by reason; only reasons with a count.
    pub exceptions: Vec<(&'static str, u64)>,
    /// Skipped because of rate limits, by kind of work; only kinds with a count.
    pub policed: Vec<(&'static str, u64)>,
    /// Handed to the control plane, by class; only classes with a count.
    pub punted: Vec<(&'static str, u64)>,
    /// Received from its control plane.
    pub from_control: u64,
    /// Hits of the route caches.
    pub cache_hits: u64,
    /// Misses of the route caches.
    pub cache_misses: u64,
    /// Known neighbours, those being resolved included.
    pub neighbours: u64,
    /// Neighbours being asked for.
    pub asked: u64,
    /// Bytes of the prefix tables.
    pub table_bytes: u64,
    /// Its processors, if flows share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorStats>,
    /// Services and control processes above it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<AttachmentStats>,
}

/// Counters of a router's scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ProcessorStats {
    /// The scheduler's name.
    pub scheduler: &'static str,
    /// Number of processors.
    pub processors: u32,
    /// Whether costs are measured rather than modelled.
    pub measured: bool,
    /// Packets waiting for a processor now.
    pub waiting: u64,
    /// Dropped because the ring before the scheduler was full, in virtual time. The scheduler never saw them:
    /// they are not in `refused`, and belong to no flow and not to `all`.
    pub input_full: u64,
    /// Refused because their flow's queue was full.
    pub queue_full: u64,
    /// Refused because all known flows were busy or named.
    pub table_full: u64,
    /// Refused because their flow had used its share of the packet memory, or none was left.
    pub no_room: u64,
    /// Idle flows evicted from the flow table: their counts are only in `all`.
    pub recycled: u64,
    /// Measurements above the budget, which were treated as the budget.
    pub exploded: u64,
    /// Packets that cost more than a round's quantum.
    pub beyond_quantum: u64,
    /// Known flows that have had a packet.
    pub flows_known: u64,
    /// Flows that are not listed in `flows`, because they are unnamed and others used more.
    pub flows_left_out: u64,
    /// The flows with the highest use, in the order in which they became known. Named flows are always
    /// listed, once for each port that their packets went to.
    pub flows: Vec<FlowStats>,
    /// All flows together, evicted ones included.
    pub all: FlowStats,
}

/// Outcome of a flow's packets: in = out + consumed + abandoned + inside.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FlowStats {
    /// Name of the flow.
    pub flow: String,
    /// Place of its output port; `u16::MAX` for a named flow that has had no packet.
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
    /// Consumed by their processing.
    pub consumed: u64,
    /// Stopped because their program exceeded its budget.
    pub abandoned: u64,
    /// Processor time, in nanoseconds.
    pub processor_ns: u64,
    /// Predicted processing time of its next packet, in nanoseconds.
    pub estimate_ns: u64,
}

/// Outcome of packets sent up to a service or a control process. Packets, where a train is counted once: up =
/// verdicts + late + returned + kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AttachmentStats {
    /// `slow-path` or `control`.
    pub level: &'static str,
    /// Name of the attachment.
    pub name: Box<str>,
    /// Whether a process is attached now.
    pub there: bool,
    /// Packets sent up.
    pub up: u64,
    /// Verdicts received.
    pub verdicts: u64,
    /// Handled by the default forwarder because no verdict came in time.
    pub late: u64,
    /// Handled by the default forwarder because the process that had them was cut off.
    pub returned: u64,
    /// Packets that are up now.
    pub kept: u64,
    /// Not sent up, and dropped: no room, or above the guaranteed rate.
    pub refused: u64,
    /// Of these, not sent up because the process has used more processor time than its guarantee.
    pub over_cycles: u64,
    /// Of these, not sent up because moving packets has used the worker time that is set aside.
    pub over_time: u64,
    /// Worker time spent on moving packets, in nanoseconds, as priced by the router.
    pub worker_ns: u64,
    /// Number of times that throttling by processor time began.
    pub throttled: u64,
    /// Processor time used by the attached processes, in nanoseconds; 0 for services.
    pub processor_ns: u64,
    /// Not sent up, and forwarded: no process attached.
    pub absent: u64,
    /// New packets, sent.
    pub made: u64,
    /// New packets, not sent: too many, or no memory.
    pub unmade: u64,
    /// Invalid verdicts: for packets that are not up, or with impossible values.
    pub faults: u64,
    /// Number of times that a process attached.
    pub came: u64,
    /// Number of times that a process was cut off.
    pub cut: u64,
    /// Reason for the last cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_cut: Option<&'static str>,
}

impl NodeStats {
    /// Packets that entered.
    pub fn come(&self) -> u64 {
        self.received + self.made
    }

    /// Packets that left, by any outcome.
    pub fn gone(&self) -> u64 {
        self.forwarded + self.consumed + self.dropped + self.kept
    }
}
