//! Wrong calls and misbehaving flows: a clear error or a counted drop, without harm to other flows.

use longwire_sched::model::{ClosedArrivals, Demand, FlowPlan, Machine, Refill, Setup};
use longwire_sched::{Estimator, FlowError, Refusal, Resource, SPECS, Scheduler, Settings, Weight};
use longwire_units::Nanos;

/// Takes a packet through the scheduler, and returns its flow.
fn through(scheduler: &mut Scheduler) -> Option<u32> {
    let granted = scheduler.dequeue(Resource::Processor)?;
    scheduler.processed(granted.ticket, Some(granted.estimate.0));
    scheduler.dequeue(Resource::Port(0)).map(|sent| sent.key)
}

#[test]
fn settings_out_of_range_name_field_and_fix() {
    let good = Settings::default();
    for (settings, text) in [
        (Settings { flows: 0, ..good.clone() }, "flows = 0 is out of range; give 1 to 4194304"),
        (Settings { packets: 1 << 25, ..good.clone() }, "packets = 33554432 is out of range"),
        (Settings { flow_limit: 0, ..good.clone() }, "flow_limit = 0"),
        (Settings { processors: 0, ..good.clone() }, "processors = 0"),
        (Settings { clock_mhz: 0, ..good.clone() }, "clock_mhz = 0"),
        (Settings { ports: 0, ..good.clone() }, "ports = 0"),
        (Settings { quantum: Nanos(0), ..good.clone() }, "quantum = 0 is out of range; give 1 ns to 4.29 s"),
        (Settings { quantum: Nanos(1 << 32), ..good.clone() }, "quantum = 4294967296"),
        (Settings { quantum_bytes: 0, ..good.clone() }, "quantum_bytes = 0"),
        (Settings { budget: 0, ..good.clone() }, "budget = 0"),
        (Settings { budget: 1 << 31, ..good.clone() }, "budget = 2147483648 is out of range"),
        (Settings { first_estimate: Some(2_000_000), ..good.clone() }, "first_estimate = 2000000"),
    ] {
        for spec in SPECS {
            let error = Scheduler::new(spec.name, &settings).unwrap_err().to_string();
            assert!(error.starts_with(text), "{error}");
        }
    }
    let error = Scheduler::new("cbsc", &good).unwrap_err().to_string();
    assert!(error.contains("\"cbsc\"") && error.contains("fifo, separate-drr, cbcs"), "{error}");
}

#[test]
fn a_quantum_below_the_largest_cost_is_warned_of_and_counted() {
    let settings =
        Settings { quantum: Nanos(500), quantum_bytes: 100, budget: 10_000, ..Settings::default() };
    for spec in SPECS {
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        let warnings: Vec<_> = scheduler.warnings().iter().map(ToString::to_string).collect();
        let expected = match spec.name {
            "separate-drr" => 2,
            "cbcs" | "cbcs-normalised" | "gmr3" => 1,
            _ => 0,
        };
        assert_eq!(warnings.len(), expected, "{}: {warnings:?}", spec.name);
        if let Some(first) = warnings.first() {
            assert!(first.starts_with("quantum = 500 is below the largest cost of a packet"), "{first}");
        }
        // It still works: rounds without service are skipped, and both flows are served equally.
        for handle in 0..100 {
            scheduler.enqueue_known(handle % 2, handle, 1000, Nanos::ZERO, Some(9000)).unwrap();
        }
        let counted = scheduler.happened().beyond_quantum;
        assert_eq!(counted, if expected > 0 { 100 } else { 0 }, "{}", spec.name);
        let first: u32 = (0..50).map(|_| through(&mut scheduler).unwrap()).sum();
        assert!((24..=26).contains(&first), "{}: {first} of 50", spec.name);
        let whole = Settings { quantum: Nanos(25_000), budget: 10_000, ..Settings::default() };
        assert_eq!(Scheduler::new(spec.name, &whole).unwrap().warnings(), [], "{}", spec.name);
    }
}

#[test]
fn costs_beyond_all_quanta_take_no_longer_to_choose() {
    // A quantum of 1 ns and packets of 1 s: one by one that would be a thousand million rounds per packet.
    let settings = Settings { quantum: Nanos(1), budget: 1_000_000_000, ..Settings::default() };
    for spec in SPECS {
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        for handle in 0..64 {
            let cycles = 1_000_000_000 - u64::from(handle % 4);
            scheduler.enqueue_known(handle % 4, handle, 60, Nanos::ZERO, Some(cycles)).unwrap();
        }
        let served: Vec<u32> = (0..64).map(|_| through(&mut scheduler).unwrap()).collect();
        for flow in 0..4 {
            let early = served[..32].iter().filter(|key| **key == flow).count();
            assert!((6..=10).contains(&early), "{}: {early} of flow {flow}", spec.name);
        }
    }
}

#[test]
fn costs_beyond_all_quanta_are_shared_by_weights_far_apart() {
    for quantum in [1, 50, 20_000] {
        for spec in SPECS.iter().filter(|spec| spec.name != "fifo") {
            let settings = Settings { quantum: Nanos(quantum), ..Settings::default() };
            let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
            let weights = [1, 3, 40, 1000];
            for (key, weight) in (0..).zip(weights) {
                scheduler.set_weight(key, Weight::new(weight).unwrap()).unwrap();
                (0..200).for_each(|_| _ = scheduler.enqueue_known(key, 0, 60, Nanos::ZERO, Some(50_000)));
            }
            let mut served = [0i64; 4];
            for _ in 0..20_880 {
                let key = through(&mut scheduler).unwrap();
                served[key as usize] += 1;
                scheduler.enqueue_known(key, 0, 60, Nanos::ZERO, Some(50_000)).unwrap();
            }
            // Twenty packets for a weight of 1.
            let near = |(served, weight): (i64, i64)| (served - 20 * weight).abs() <= 2 + weight;
            assert!(served.into_iter().zip(weights).all(near), "{}, {quantum} ns: {served:?}", spec.name);
        }
    }
}

#[test]
fn a_full_flow_table_refuses_new_flows_only() {
    let settings = Settings { flows: 4, ..Settings::default() };
    for spec in SPECS {
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        for key in 0..4 {
            scheduler.enqueue(key, key, 100, Nanos::ZERO).unwrap();
        }
        for key in 4..1000 {
            assert_eq!(scheduler.enqueue(key, key, 100, Nanos::ZERO), Err(Refusal::TableFull));
        }
        assert_eq!(scheduler.set_weight(9, Weight::ONE), Err(FlowError::TableFull { key: 9 }));
        assert_eq!((scheduler.happened().table_full, scheduler.totals().refused), (996, 996));
        scheduler.enqueue(2, 7, 100, Nanos::ZERO).unwrap();
        let mut served: Vec<_> = std::iter::from_fn(|| through(&mut scheduler)).collect();
        served.sort_unstable();
        assert_eq!(served, [0, 1, 2, 2, 3], "{}", spec.name);
        // Idle flows are evicted, but not one with an assigned weight.
        assert_eq!(scheduler.dequeue(Resource::Processor), None);
        scheduler.set_weight(1, Weight::new(3).unwrap()).unwrap();
        for key in 100..104 {
            let taken = scheduler.enqueue(key, key, 100, Nanos::ZERO);
            assert_eq!(taken.is_ok(), key < 103, "{}: {key}", spec.name);
        }
        assert!(scheduler.counters(1).is_some() && scheduler.counters(0).is_none());
        scheduler.forget(1);
        scheduler.enqueue(103, 1, 100, Nanos::ZERO).unwrap();
        assert_eq!(scheduler.happened().recycled, 4);
    }
}

#[test]
fn an_idle_flow_makes_room_wherever_it_stands() {
    const FLOWS: u32 = 5000;
    let settings = Settings { flows: FLOWS, packets: 4 * FLOWS, ..Settings::default() };
    for spec in SPECS {
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        for key in 0..FLOWS {
            scheduler.enqueue(key, key, 100, Nanos::ZERO).unwrap();
        }
        // All are busy except one that left and came back, and one that has left. With CBCS a flow becomes
        // idle at its next turn.
        let back = through(&mut scheduler).unwrap();
        scheduler.enqueue(back, 0, 100, Nanos::ZERO).unwrap();
        let served = through(&mut scheduler).unwrap();
        let stays = spec.name.starts_with("cbcs");
        let taken = scheduler.enqueue(FLOWS, 0, 100, Nanos::ZERO).err();
        assert_eq!(taken, stays.then_some(Refusal::TableFull), "{}", spec.name);
        assert_eq!(scheduler.counters(served).is_none(), !stays, "{}", spec.name);
        let taken = scheduler.enqueue(FLOWS + 1, 0, 100, Nanos::ZERO).err();
        assert_eq!(taken, Some(Refusal::TableFull), "{}", spec.name);
        while through(&mut scheduler).is_some() {}
        assert_eq!((scheduler.inside(), scheduler.dequeue(Resource::Processor)), (0, None));
        // Now all have left, and as many new ones find room, each once.
        for key in 0..FLOWS {
            scheduler.enqueue(2 * FLOWS + key, 0, 100, Nanos::ZERO).unwrap();
        }
        assert_eq!(scheduler.happened().recycled, u64::from(!stays) + u64::from(FLOWS), "{}", spec.name);
    }
}

#[test]
fn a_full_queue_and_a_full_house_are_counted() {
    for spec in SPECS {
        // The last of six places is for a flow without packets; one queue for all has no reservation.
        let packets = if spec.apart { 6 } else { 5 };
        let settings = Settings { flow_limit: 3, packets, ..Settings::default() };
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        let results: Vec<_> = (0..9).map(|n| scheduler.enqueue(n / 4, n, 100, Nanos::ZERO).err()).collect();
        let (full, room) = (Some(Refusal::QueueFull), Some(Refusal::NoRoom));
        let last = if spec.apart { None } else { room };
        assert_eq!(results, [None, None, None, full, None, None, room, room, last], "{}", spec.name);
        let counted = scheduler.happened();
        assert_eq!((counted.queue_full, counted.no_room), (1, if spec.apart { 2 } else { 3 }));
        assert_eq!(scheduler.counters(0).map(|flow| flow.refused), Some(1));
    }
}

#[test]
fn ports_are_changed_while_a_flow_is_idle() {
    let mut scheduler = Scheduler::new("gmr3", &Settings { ports: 2, ..Settings::default() }).unwrap();
    assert_eq!(scheduler.set_port(1, 2), Err(FlowError::NoPort { key: 1, port: 2, last: 1 }));
    scheduler.enqueue(1, 1, 100, Nanos::ZERO).unwrap();
    assert_eq!(scheduler.set_port(1, 1), Err(FlowError::Busy { key: 1 }));
    assert!(FlowError::Busy { key: 1 }.to_string().contains("change its port while it is idle"));
}

#[test]
fn estimates_that_explode_are_held_at_the_budget() {
    // Flow 0's measurements are absurd. The estimate is the budget, 1 ms, and its debt for one packet is at
    // most that.
    for spec in SPECS {
        for (name, estimator) in Estimator::ALL {
            let settings = Settings { estimator, flow_limit: 4096, ..Settings::default() };
            let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
            for _ in 0..100 {
                scheduler.enqueue(0, 1, 1000, Nanos::ZERO).unwrap();
                through(&mut scheduler).unwrap();
                scheduler.feedback(0, u64::MAX);
            }
            assert_eq!(scheduler.happened().exploded, 100);
            scheduler.enqueue(0, 1, 1000, Nanos::ZERO).unwrap();
            let granted = scheduler.dequeue(Resource::Processor).unwrap();
            assert!(granted.estimate <= Nanos(1_000_000), "{} {name}: {}", spec.name, granted.estimate);
            // The others are served.
            for n in 0..60 {
                scheduler.enqueue(1 + n % 3, n, 1000, Nanos::ZERO).unwrap();
            }
            scheduler.processed(granted.ticket, None);
            scheduler.dequeue(Resource::Port(0)).unwrap();
            let others = (0..60).filter(|_| through(&mut scheduler).is_some_and(|key| key > 0)).count();
            assert_eq!(others, 60, "{} {name}", spec.name);
        }
    }
}

#[test]
fn weights_change_while_packets_flow() {
    for spec in SPECS.iter().filter(|spec| spec.name != "fifo") {
        let settings =
            Settings { packets: 80_000, flow_limit: 40_000, quantum: Nanos(8_000), ..Settings::default() };
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        for handle in 0..50_000 {
            scheduler.enqueue_known(handle % 2, handle, 1000, Nanos::ZERO, Some(9000)).unwrap();
        }
        for (weight, share) in [(1, 0.5), (3, 0.75), (40, 40.0 / 41.0), (2, 2.0 / 3.0)] {
            scheduler.set_weight(1, Weight::new(weight).unwrap()).unwrap();
            let got = (0..4000).filter(|_| through(&mut scheduler) == Some(1)).count() as f64 / 4000.0;
            // A few rounds' worth at the change.
            assert!((got - share).abs() < 0.015, "{}: weight {weight} got {got}", spec.name);
        }
    }
}

#[test]
fn a_program_that_never_ends_is_stopped_and_the_others_go_on() {
    for spec in SPECS {
        let settings = Settings { processors: 2, budget: 50_000, ..Settings::default() };
        let mut flows: Vec<_> =
            (1..5).map(|key| FlowPlan { key, bytes: (500, 500), demand: Demand::PerPacket(2000) }).collect();
        flows.push(FlowPlan { key: 0, bytes: (500, 500), demand: Demand::Endless });
        let setup = Setup {
            input_ring: 64,
            request_ring: 4,
            feedback_ring: 4,
            ready_ring: 8,
            drop_at_input: false,
            ..Setup::new(spec.name, settings)
        };
        let mut machine = Machine::new(setup).unwrap();
        let mut traffic = ClosedArrivals::new(flows, 50, Refill::SameFlow, 1);
        let mut sent = [0u64; 5];
        machine.run(&mut traffic, Nanos::from_millis(50), &mut |departure| {
            sent[departure.packet.key as usize] += 1;
        });
        let stats = machine.stats();
        assert!(stats.stopped > 10 && sent[0] == 0, "{}: {stats:?}", spec.name);
        assert_eq!(stats.arrived, stats.sent + stats.stopped + machine.inside() as u64, "{}", spec.name);
        assert!(sent[1..].iter().all(|count| *count > 100), "{}: {sent:?}", spec.name);
    }
}
