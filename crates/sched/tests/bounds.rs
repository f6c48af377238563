//! The fairness bound of each scheduler, over random arrivals: how far two backlogged flows may differ in the
//! service that it counts.

use longwire_sched::{Estimator, PerByte, Resource, Scheduler, Settings, Weight};
use longwire_units::Nanos;
use proptest::prelude::*;

const FLOWS: u32 = 6;
const QUANTUM: u64 = 3000;
const PROCESSORS: u32 = 4;

/// A packet arrives, and then some are taken.
#[derive(Debug, Clone)]
struct Step {
    flow: u32,
    bytes: u32,
    cycles: u64,
    take: usize,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // More arrivals than departures at first, so that flows are backlogged together.
    let step = (0..FLOWS, 40u32..128, 0u64..40_000, 0usize..4, any::<bool>()).prop_map(
        |(flow, bytes, cycles, take, small)| Step {
            flow,
            bytes,
            cycles: if small { cycles / 20 } else { cycles },
            take: take.saturating_sub(2),
        },
    );
    prop::collection::vec(step, 50..400)
}

fn settings() -> Settings {
    Settings {
        processors: PROCESSORS,
        clock_mhz: 600,
        port: PerByte::of_ns(160),
        charged: PerByte::of_ns(80),
        quantum: Nanos(QUANTUM),
        estimator: Estimator::Exact,
        flow_limit: 1000,
        ..Settings::default()
    }
}

/// The service counted by a scheduler, and the largest difference per weight of two flows: given the weights,
/// the smallest weight, and the largest cost.
struct Promise {
    name: &'static str,
    weighted: bool,
    /// Only while no flow's queue becomes empty before its last packet.
    busy: bool,
    cost: fn(u64, u64) -> u64,
    bound: fn(f64, f64, f64, f64) -> f64,
}

fn dominant(processor: u64, bytes: u64) -> u64 {
    (processor / u64::from(PROCESSORS)).max(bytes * 160)
}

const PROMISES: &[Promise] = &[
    // Shreedhar and Varghese, theorem on fairness: Q + 2 Max for equal weights.
    Promise {
        name: "separate-drr",
        weighted: true,
        busy: false,
        cost: |processor, _| processor,
        bound: |a, b, _, most| QUANTUM as f64 + most / a + most / b,
    },
    // Surplus round robin: as DRR, with debts for deficits. The paper's rule for idle flows lets a flow hoard
    // credit (see `hoarding`), so that there is no bound.
    Promise {
        name: "cbcs",
        weighted: true,
        busy: true,
        cost: |processor, bytes| processor + bytes * 80,
        bound: |a, b, _, most| QUANTUM as f64 + most / a + most / b,
    },
    Promise {
        name: "cbcs-normalised",
        weighted: true,
        busy: true,
        cost: |processor, bytes| processor / u64::from(PROCESSORS) + bytes * 160,
        bound: |a, b, _, most| QUANTUM as f64 + most / a + most / b,
    },
    // Goyal, Vin and Cheng, theorem 1.
    Promise {
        name: "sfq",
        weighted: true,
        busy: false,
        cost: |processor, _| processor,
        bound: |a, b, _, most| most / a + most / b,
    },
    // Ghodsi et al.: the same with dominant service, 2 L for equal weights.
    Promise {
        name: "drfq",
        weighted: true,
        busy: false,
        cost: dominant,
        bound: |a, b, _, most| most / a + most / b,
    },
    // Kanhere, Sethu and Parekh: 3 Max. MR³ adds the difference in the resources' progress, 6 L in all, which
    // does not show where packets are taken.
    Promise { name: "mr3", weighted: false, busy: false, cost: dominant, bound: |_, _, _, most| 3.0 * most },
    // The same per weight: two excesses, and a round's lead.
    Promise {
        name: "mr3",
        weighted: true,
        busy: false,
        cost: dominant,
        bound: |a, b, least, most| most / a + most / b + most / least,
    },
    // As derived in the scheduler's own file.
    Promise {
        name: "gmr3",
        weighted: true,
        busy: false,
        cost: dominant,
        bound: |a, b, _, most| (6.0 * QUANTUM as f64 + most) * (1.0 / a + 1.0 / b),
    },
];

/// Service per weight of each flow after each packet, and the flows that were backlogged until then.
struct Run {
    scheduler: Scheduler,
    weights: Vec<u32>,
    cost: fn(u64, u64) -> u64,
    queued: Vec<std::collections::VecDeque<u64>>,
    /// Service so far, and its smallest and largest difference to each other flow since both have been
    /// backlogged.
    served: Vec<f64>,
    spans: Vec<Option<(f64, f64)>>,
    widest: Vec<f64>,
}

impl Run {
    fn new(promise: &Promise, weights: &[u32]) -> Self {
        let mut scheduler = Scheduler::new(promise.name, &settings()).unwrap();
        for (flow, weight) in weights.iter().enumerate() {
            scheduler.set_weight(flow as u32, Weight::new((*weight).into()).unwrap()).unwrap();
        }
        let count = weights.len();
        Self {
            scheduler,
            weights: weights.to_vec(),
            cost: promise.cost,
            queued: vec![Default::default(); count],
            served: vec![0.0; count],
            spans: vec![None; count * count],
            widest: vec![0.0; count * count],
        }
    }

    fn put(&mut self, step: &Step) {
        let processor = step.cycles * 1000 / 600;
        let cost = (self.cost)(processor, step.bytes.into());
        let taken = self.scheduler.enqueue_known(step.flow, 1, step.bytes, Nanos::ZERO, Some(step.cycles));
        taken.unwrap();
        self.queued[step.flow as usize].push_back(cost);
        self.look();
    }

    /// Takes a packet through. Returns whether there was one.
    fn take(&mut self) -> bool {
        let Some(granted) = self.scheduler.dequeue(Resource::Processor) else { return false };
        self.scheduler.processed(granted.ticket, None);
        assert_eq!(self.scheduler.dequeue(Resource::Port(0)).map(|sent| sent.key), Some(granted.key));
        let flow = granted.key as usize;
        let cost = self.queued[flow].pop_front().unwrap();
        self.served[flow] += cost as f64 / f64::from(self.weights[flow]);
        self.look();
        true
    }

    /// Updates the differences of all pairs; a pair with an empty flow starts again.
    fn look(&mut self) {
        let count = self.weights.len();
        for a in 0..count {
            for b in 0..a {
                let span = &mut self.spans[a * count + b];
                let difference = self.served[a] - self.served[b];
                // The packet that empties a queue was taken while it was backlogged.
                if let Some((low, high)) = span {
                    *low = low.min(difference);
                    *high = high.max(difference);
                    let widest = &mut self.widest[a * count + b];
                    *widest = widest.max(*high - *low);
                }
                if self.queued[a].is_empty() || self.queued[b].is_empty() {
                    *span = None;
                } else if span.is_none() {
                    *span = Some((difference, difference));
                }
            }
        }
    }
}

fn check(promise: &Promise, weights: &[u32], steps: &[Step]) -> Result<f64, TestCaseError> {
    let equal = vec![1; weights.len()];
    let weights = if promise.weighted { weights } else { &equal };
    let mut run = Run::new(promise, weights);
    let mut most = 0;
    for step in steps {
        most = most.max((promise.cost)(step.cycles * 1000 / 600, step.bytes.into()));
        run.put(step);
        (0..step.take).all(|_| !promise.busy && run.take());
    }
    while run.take() {}
    prop_assert_eq!(run.scheduler.waiting(), 0, "{}", promise.name);
    let (count, least) = (weights.len(), f64::from(*weights.iter().min().unwrap()));
    let mut tightest: f64 = 0.0;
    for a in 0..count {
        for b in 0..a {
            let bound = (promise.bound)(weights[a].into(), weights[b].into(), least, most as f64);
            let seen = run.widest[a * count + b];
            // Credits and tags are whole nanoseconds or fractions of them: two roundings per packet.
            prop_assert!(seen <= bound + 4.0, "{} {a} {b}: {seen} > {bound}", promise.name);
            tightest = tightest.max(seen / bound);
        }
    }
    Ok(tightest)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn backlogged_flows_stay_within_the_bounds(
        steps in steps(),
        weights in prop::collection::vec(prop_oneof![Just(1u32), 1u32..9, 1u32..2000], FLOWS as usize),
    ) {
        for promise in PROMISES {
            check(promise, &weights, &steps)?;
        }
    }
}

/// Bounds that are never approached would prove nothing: in these runs each scheduler gets within a third of
/// its own.
#[test]
fn the_bounds_are_not_empty() {
    let mut dice = longwire_block::Dice::seeded(7);
    for promise in PROMISES {
        let mut tightest: f64 = 0.0;
        for _ in 0..40 {
            let steps: Vec<Step> = (0..600)
                .map(|n| Step {
                    flow: dice.below(FLOWS.into()) as u32,
                    bytes: 40 + dice.below(88) as u32,
                    cycles: dice.below(2) * (38_000 + dice.below(2000)),
                    take: usize::from(n > 300),
                })
                .collect();
            let weights: Vec<u32> = (0..FLOWS).map(|_| 1 + dice.below(3) as u32).collect();
            tightest = tightest.max(check(promise, &weights, &steps).unwrap());
        }
        // GMR³'s bound covers the worst alignment of intervals, which random arrivals do not meet.
        let near = if promise.name == "gmr3" { 0.05 } else { 1.0 / 3.0 };
        assert!(tightest > near, "{}: {tightest}", promise.name);
    }
}

/// CBCS as published: credit becomes 0 only for a flow that is idle when its turn comes (figure 6). A flow
/// whose queue becomes empty in its turn, but gets a packet before the next, keeps the rest and gets another
/// quantum: a light flow hoards credit, and can then send a burst that no other may.
#[test]
fn a_light_flow_hoards_credit_under_the_papers_rule_only() {
    // A packet of 3000 cycles and 125 bytes costs 5 + 10 µs, normalised 1.25 + 20 µs. With a quantum of 30 µs
    // a round leaves 15 µs (8.75 µs); after 100 of them the credit is 1530 µs (905 µs), which is 102 (43)
    // packets. The others give no more than a round's: 6 of 5 µs, 2 of 20 µs, of which the second makes a
    // debt.
    for (name, burst) in [("cbcs", 102), ("cbcs-normalised", 43), ("separate-drr", 6), ("gmr3", 2)] {
        let settings = Settings { quantum: Nanos(30_000), flow_limit: 3000, ..settings() };
        let mut scheduler = Scheduler::new(name, &settings).unwrap();
        let put = |scheduler: &mut Scheduler, flow, count| {
            for _ in 0..count {
                scheduler.enqueue_known(flow, 1, 125, Nanos::ZERO, Some(3000)).unwrap();
            }
        };
        let take = |scheduler: &mut Scheduler| {
            let granted = scheduler.dequeue(Resource::Processor).unwrap();
            scheduler.processed(granted.ticket, None);
            scheduler.dequeue(Resource::Port(0)).unwrap().key
        };
        put(&mut scheduler, 0, 2000);
        // A packet per round for flow 1; a round of flow 0 gives it at least one.
        for _ in 0..100 {
            put(&mut scheduler, 1, 1);
            while take(&mut scheduler) != 1 {}
        }
        put(&mut scheduler, 1, 300);
        while take(&mut scheduler) != 1 {}
        let mut sent = 1;
        while sent < 300 && take(&mut scheduler) == 1 {
            sent += 1;
        }
        assert_eq!(sent, burst, "{name}");
    }
}
