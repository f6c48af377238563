//! Settings of routers: packet budgets, shared processors, levels above the data path.

use super::LevelWait;
use longwire_prices::{MachinePrices, PRICES};
use longwire_router::{FREQUENCY, Frequency, LEAST_MTU, Limits, MOST_WEIGHT, Rings};
use longwire_sched::model::Demand;
use longwire_sched::terms::{CLOCK, CYCLES, ESTIMATOR, PORT_RATE};
use longwire_sched::{Estimator, SPECS};
use longwire_settings::{Choice, Settings};
use longwire_units::{Nanos, Probability, Rate};
use std::sync::Arc;

/// The longest time that can be charged: schedulers compute in 32 bits.
pub(crate) const LONGEST: Nanos = Nanos::from_micros(4_290_000);
/// Most cycles of a program.
const MOST_BUDGET: u64 = 1 << 30;
/// Most messages of a ring.
const MOST_MESSAGES: u64 = 1 << 16;
/// Most packets and cycles per second of a level.
const MOST_PACKETS: u64 = 1_000_000_000;
const MOST_CYCLES: u64 = 1_000_000_000_000;

/// The budget of a router's packets, and how flows share its processors.
#[derive(Debug, Settings)]
#[settings(key = "router", kind = "router", source = "Longwire's own")]
pub(crate) struct RouterSettings {
    /// Budget of a packet, programs included: "vrp", the virtual router processor of Spalink and others.
    #[setting(default_is = "anything")]
    pub profile: Option<CostProfile>,
    /// Budget of a packet by the time of the shortest frame at this rate.
    #[setting(default_is = "anything")]
    pub line_rate: Option<Rate>,
    /// Prices: "calibrated" for those that longwire calibrate has measured on this machine, or a file that it
    /// wrote.
    #[setting(default = "assumed", grammar = PRICES)]
    pub prices: Arc<MachinePrices>,
    /// Scheduler of its processors.
    #[setting(default_is = "packets are forwarded when they arrive, and processors are not modelled")]
    pub scheduler: Option<SchedulerName>,
    /// Number of its processors. In real time one is the router's worker, and several are threads.
    #[setting(default = "1", min = 1, max = 256)]
    pub processors: u32,
    /// The clock of each processor in virtual time.
    #[setting(default = "1 GHz", grammar = CLOCK)]
    pub clock: Arc<u32>,
    /// Cost of a packet in virtual time.
    #[setting(default_is = "the prices of its programs and of forwarding", grammar = CYCLES)]
    pub cycles: Option<Arc<Demand>>,
    /// The rate at which each port sends.
    #[setting(default_is = "ports take no time", grammar = PORT_RATE)]
    pub port_rate: Option<Arc<Rate>>,
    /// The charge of cbcs for a byte, a whole number of nanoseconds.
    #[setting(default_is = "the port's time", max = LONGEST)]
    pub byte_charge: Option<Nanos>,
    /// Most cycles of a program, after which it is stopped; estimates are no higher.
    #[setting(default_is = "100 us of the clock", min = 1, max = MOST_BUDGET)]
    pub budget: Option<u64>,
    /// Processor time of a flow of weight 1 in a round.
    #[setting(
        default_is = "the largest known cost of a packet; at least 20 us if cycles and budget are not given",
        min = Nanos(1),
        max = LONGEST
    )]
    pub quantum: Option<Nanos>,
    /// Bytes that a flow of weight 1 may send in a round of the second half of separate-drr.
    #[setting(default_is = "1518, or the longest frame if that is more", min = 1, max = u32::MAX as u64)]
    pub quantum_bytes: Option<u32>,
    /// Largest difference between a flow's two resources with drfq-dovetail.
    #[setting(default_is = "no limit", max = Nanos::NEVER)]
    pub dovetail: Option<Nanos>,
    /// How the cost of a flow's next packet is predicted.
    #[setting(default = "ses", grammar = ESTIMATOR)]
    pub estimator: Arc<Estimator>,
    /// The predicted cost of a flow without measurements, in cycles; at most budget.
    #[setting(default_is = "the recent cost of packets of all flows", min = 0, max = MOST_BUDGET)]
    pub first_estimate: Option<u64>,
    /// Most packets of a flow that wait for a processor.
    #[setting(default_is = "256; with fifo the value of packets", min = 1, max = u32::MAX as u64)]
    pub flow_limit: Option<u32>,
    /// Flows known at once.
    #[setting(default = "1024", min = 1, max = 1 << 22)]
    pub flow_table: u32,
    /// Packets of all flows inside at once.
    #[setting(
        default_is = "4096, or four for each flow of flow-table, up to 65536, if that is more",
        min = 1,
        max = 1 << 20
    )]
    pub packets: Option<u32>,
}

/// A port of a router.
#[derive(Debug, Settings)]
#[settings(key = "router", kind = "ports", source = "RFC 8200, section 5")]
pub(crate) struct RouterPortSettings {
    /// Longest IP packet that it sends, in bytes.
    #[setting(default = "1500", min = LEAST_MTU as u64, max = 65_535)]
    pub mtu: u32,
}

/// One of the next hops of a route.
#[derive(Debug, Settings)]
#[settings(key = "router", kind = "next-hops", source = "RFC 2992")]
pub(crate) struct HopSettings {
    /// Its share of the flows; it changes with the route.
    #[setting(default = "1", min = 1, max = MOST_WEIGHT as u64, live)]
    pub weight: u16,
}

/// A named flow that shares a router's processors.
#[derive(Debug, Settings)]
#[settings(key = "router", kind = "flows", source = "Longwire's own")]
pub(crate) struct FlowSettings {
    /// Its share, relative to others'.
    #[setting(default = "1", min = 1, max = 65_535, live)]
    pub weight: u16,
    /// Cost of its packets in virtual time.
    #[setting(default_is = "as for all", grammar = CYCLES)]
    pub cycles: Option<Arc<Demand>>,
}

/// Capacities of the rings between a router's stages, and the scheduler's time for a message. Real time has
/// `ready`, and with several processors `requests` before each of them.
#[derive(Debug, Settings)]
#[settings(key = "router", kind = "rings", source = "Longwire's own")]
pub(crate) struct RingSettings {
    /// From the input to the scheduler: what comes when it is full is dropped.
    #[setting(default = "128", min = 1, max = MOST_MESSAGES)]
    pub input: usize,
    /// From the scheduler to the processors.
    #[setting(default = "1", min = 1, max = MOST_MESSAGES)]
    pub requests: usize,
    /// From the processors back to the estimator.
    #[setting(default = "128", min = 1, max = MOST_MESSAGES)]
    pub feedback: usize,
    /// Processed packets before each port: while there are as many, processors take none of its flows'
    /// packets.
    #[setting(default = "128", min = 1, max = MOST_MESSAGES)]
    pub ready: u32,
    /// The scheduler's time in virtual time for a message: to take a packet in, to give one out, to receive a
    /// measured cost. With 0 input and feedback are never full.
    #[setting(default = "0 ns", max = LONGEST)]
    pub step: Nanos,
}

impl RingSettings {
    /// As the router's type.
    pub(crate) const fn rings(&self) -> Rings {
        let Self { input, requests, feedback, ready, step } = *self;
        Rings { input, requests, feedback, ready, step }
    }
}

/// Rates of operations that cost more than forwarding, for each port.
#[derive(Debug, Settings)]
#[settings(key = "router", kind = "police", source = "Longwire's own")]
pub(crate) struct PoliceSettings {
    /// Packets given to full IP.
    #[setting(default = "20000/s burst 1024", grammar = FREQUENCY)]
    pub exceptions: Arc<Frequency>,
    /// ICMP errors made.
    #[setting(default = "1000/s burst 64", grammar = FREQUENCY)]
    pub errors: Arc<Frequency>,
    /// Answers to pings of the router itself.
    #[setting(default = "1000/s burst 64", grammar = FREQUENCY)]
    pub echo: Arc<Frequency>,
    /// Packets with IP options or hop-by-hop headers.
    #[setting(default = "1000/s burst 64", grammar = FREQUENCY)]
    pub options: Arc<Frequency>,
    /// Packets to be fragmented.
    #[setting(default = "10000/s burst 256", grammar = FREQUENCY)]
    pub fragments: Arc<Frequency>,
    /// ARP and neighbour discovery that was not asked for.
    #[setting(default = "600/s burst 128", grammar = FREQUENCY)]
    pub neighbours: Arc<Frequency>,
    /// Requests for neighbours' hardware addresses.
    #[setting(default = "200/s burst 64", grammar = FREQUENCY)]
    pub requests: Arc<Frequency>,
    /// Routing protocols' packets given to the control plane.
    #[setting(default = "20000/s burst 1024", grammar = FREQUENCY)]
    pub control_routing: Arc<Frequency>,
    /// ICMP given to the control plane.
    #[setting(default = "1000/s burst 64", grammar = FREQUENCY)]
    pub control_ping: Arc<Frequency>,
    /// Packets with options given to the control plane.
    #[setting(default = "100/s burst 64", grammar = FREQUENCY)]
    pub control_options: Arc<Frequency>,
    /// All else given to the control plane.
    #[setting(default = "5000/s burst 256", grammar = FREQUENCY)]
    pub control_other: Arc<Frequency>,
}

impl PoliceSettings {
    /// As the router's type; a missing burst is that of the default.
    pub(crate) fn limits(&self) -> Limits {
        let default = Self::defaults();
        let limit = |of: fn(&Self) -> &Frequency| of(self).limit(*of(&default));
        Limits {
            exceptions: limit(|row| &row.exceptions),
            errors: limit(|row| &row.errors),
            echo: limit(|row| &row.echo),
            options: limit(|row| &row.options),
            fragments: limit(|row| &row.fragments),
            neighbours: limit(|row| &row.neighbours),
            requests: limit(|row| &row.requests),
            control_routing: limit(|row| &row.control_routing),
            control_ping: limit(|row| &row.control_ping),
            control_options: limit(|row| &row.control_options),
            control_other: limit(|row| &row.control_other),
        }
    }
}

/// The slow path of a router: a thread with services.
#[derive(Debug, Settings)]
#[settings(key = "router", kind = "slow-path", source = "Longwire's own")]
pub(crate) struct SlowPathSettings {
    /// Packets a second that can be guaranteed to all services together; if it is not given, no more than
    /// worker has time for.
    #[setting(default = "1000000", min = 1, max = MOST_PACKETS)]
    pub packets: u64,
    /// Cycles a second.
    #[setting(default = "1000000000", min = 1, max = MOST_CYCLES)]
    pub cycles: u64,
    /// Scheduler of the services on their thread.
    #[setting(default = "sfq")]
    pub scheduler: SchedulerName,
    /// How the thread waits.
    #[setting(default = "woken")]
    pub wait: LevelWait,
    /// Share of the router's worker reserved for moving packets there and back: it is not in the budget of
    /// programs, and moving packets uses no more.
    #[setting(default_is = "no reserve and no limit")]
    pub worker: Option<Probability>,
}

/// The control level of a router: other processes.
#[derive(Debug, Settings)]
#[settings(key = "router", kind = "control", source = "Longwire's own")]
pub(crate) struct ControlSettings {
    /// Packets a second that can be guaranteed to all processes together; if it is not given, no more than
    /// worker has time for.
    #[setting(default = "1000000", min = 1, max = MOST_PACKETS)]
    pub packets: u64,
    /// Cycles a second.
    #[setting(default = "1000000000", min = 1, max = MOST_CYCLES)]
    pub cycles: u64,
    /// Share of the router's worker reserved for moving packets there and back: as for the slow path.
    #[setting(default_is = "no reserve and no limit")]
    pub worker: Option<Probability>,
}

/// A named budget for packets.
#[derive(Debug, Clone, Copy, Choice)]
pub(crate) enum CostProfile {
    Vrp,
}

/// The name of a scheduler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchedulerName(pub(crate) &'static str);

/// The names as words and as values.
const SCHEDULERS: ([&str; SPECS.len()], [SchedulerName; SPECS.len()]) = {
    let (mut words, mut names) = ([""; SPECS.len()], [SchedulerName(""); SPECS.len()]);
    let mut at = 0;
    while at < SPECS.len() {
        words[at] = SPECS[at].name;
        names[at] = SchedulerName(SPECS[at].name);
        at += 1;
    }
    (words, names)
};

impl Choice for SchedulerName {
    const WORDS: &'static [&'static str] = &SCHEDULERS.0;
    const ALL: &'static [Self] = &SCHEDULERS.1;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Routers that no scenario describes, in tests and examples of the crates below, do the same.
    #[test]
    fn defaults_are_those_of_a_router() {
        assert_eq!(PoliceSettings::defaults().limits(), Limits::default());
        assert_eq!(RingSettings::defaults().rings(), Rings::default());
        let settings = longwire_sched::Settings::default();
        let RouterSettings { processors, flow_table, clock, estimator, .. } = RouterSettings::defaults();
        assert_eq!((processors, flow_table), (settings.processors, settings.flows));
        assert_eq!((*clock, *estimator), (settings.clock_mhz, settings.estimator));
    }
}
