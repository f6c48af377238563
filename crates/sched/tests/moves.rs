//! Flows that come, go, change their port, weight or demand: none of it takes service from others, or from
//! themselves.

use longwire_sched::{PerByte, Resource, SPECS, Scheduler, Settings, Weight};
use longwire_units::Nanos;

/// A line of flows for each of `ports` ports, which take no time.
fn settings(ports: u16) -> Settings {
    let none = PerByte::of_ns(0);
    Settings { ports, ready_limit: Some(1000), port: none, charged: none, ..Settings::default() }
}

fn put(scheduler: &mut Scheduler, key: u32, cycles: u64) {
    scheduler.enqueue_known(key, 0, 100, Nanos::ZERO, Some(cycles)).unwrap();
}

/// Processes and sends the next packet. Returns its flow.
fn pass(scheduler: &mut Scheduler) -> Option<u32> {
    let granted = scheduler.dequeue(Resource::Processor)?;
    scheduler.processed(granted.ticket, None);
    while (0..3).any(|port| scheduler.dequeue(Resource::Port(port)).is_some()) {}
    Some(granted.key)
}

#[test]
fn idle_flows_make_room_whatever_their_port() {
    for spec in SPECS {
        let mut scheduler = Scheduler::new(spec.name, &Settings { flows: 4, ..settings(2) }).unwrap();
        (0..4).for_each(|key| put(&mut scheduler, key, 1000));
        while pass(&mut scheduler).is_some() {}
        for key in 10..110 {
            scheduler.aim(key, 1);
            put(&mut scheduler, key, 1000);
            assert_eq!(pass(&mut scheduler), Some(key), "{}", spec.name);
            assert_eq!(pass(&mut scheduler), None, "{}", spec.name);
        }
    }
}

#[test]
fn a_flow_that_goes_to_another_port_is_served_there() {
    for spec in SPECS {
        let mut scheduler = Scheduler::new(spec.name, &settings(2)).unwrap();
        // Ten seconds of a processor at port 0.
        for _ in 0..10_000 {
            scheduler.aim(1, 0);
            put(&mut scheduler, 1, 1_000_000);
            assert_eq!(pass(&mut scheduler), Some(1));
            assert_eq!(pass(&mut scheduler), None);
        }
        for key in [1, 2] {
            scheduler.aim(key, 1);
            (0..100).for_each(|_| put(&mut scheduler, key, 1_000_000));
        }
        let served = (0..100).filter(|_| pass(&mut scheduler) == Some(1)).count();
        // With one queue for all, the first ones are all of the first flow.
        let due = if spec.name == "fifo" { 100..=100 } else { 45..=55 };
        assert!(due.contains(&served), "{}: {served}", spec.name);
    }
}

#[test]
fn packets_that_cost_nothing_leave_others_their_turns() {
    for spec in SPECS.iter().filter(|spec| spec.name != "fifo") {
        let mut scheduler =
            Scheduler::new(spec.name, &Settings { quantum: Nanos(10), ..settings(1) }).unwrap();
        (0..8).for_each(|number| put(&mut scheduler, number % 2, 0));
        let mut served = [0u32; 2];
        for _ in 0..1000 {
            let key = pass(&mut scheduler).unwrap();
            served[key as usize] += 1;
            put(&mut scheduler, key, 0);
        }
        assert!(served[0].abs_diff(served[1]) <= 20, "{}: {served:?}", spec.name);
    }
}

#[test]
fn a_flow_that_needed_only_the_processor_has_saved_nothing_for_the_port() {
    for spec in SPECS.iter().filter(|spec| spec.dominant) {
        let settings = Settings { port: PerByte::of_ns(8), quantum: Nanos(10_000), ..Settings::default() };
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        // 8 µs each: flow 0 first on the processor, then at the port as the others.
        let packet = |scheduler: &mut Scheduler, key: u32, later: bool| {
            let (cycles, bytes) = if key == 0 && !later { (8000, 1) } else { (1, 1000) };
            scheduler.enqueue_known(key, 0, bytes, Nanos::ZERO, Some(cycles)).unwrap();
        };
        (0..12).for_each(|number| packet(&mut scheduler, number % 3, false));
        for _ in 0..30_000 {
            let key = pass(&mut scheduler).unwrap();
            packet(&mut scheduler, key, false);
        }
        let mut served = [0u32; 3];
        for _ in 0..9000 {
            let key = pass(&mut scheduler).unwrap();
            served[key as usize] += 1;
            packet(&mut scheduler, key, true);
        }
        assert!(served.iter().all(|served| (2950..=3050).contains(served)), "{}: {served:?}", spec.name);
    }
}

#[test]
fn another_weight_forgives_no_debt() {
    for spec in SPECS.iter().filter(|spec| spec.dominant) {
        let mut scheduler =
            Scheduler::new(spec.name, &Settings { quantum: Nanos(1000), ..settings(1) }).unwrap();
        (0..50).for_each(|_| put(&mut scheduler, 1, 1000));
        let (mut time, mut had, mut next, mut weight) = (0u64, 0u64, 0u64, 1);
        while time < 50_000_000 {
            if time >= next && scheduler.waiting() == 50 {
                // Alternating weights 1 and 2: never more than weight 2 has.
                weight = 3 - weight;
                scheduler.set_weight(0, Weight::new(weight).unwrap()).unwrap();
                put(&mut scheduler, 0, 100_000);
                next = time + 110_000;
            }
            if pass(&mut scheduler) == Some(0) {
                (time, had) = (time + 100_000, had + 100_000);
            } else {
                time += 1000;
                put(&mut scheduler, 1, 1000);
            }
        }
        assert!(had <= time * 2 / 3 + 100_000, "{}: {had} of {time}", spec.name);
    }
}

/// How often each of some flows is served that always have packets from now on.
fn served<const FLOWS: usize>(scheduler: &mut Scheduler) -> [u32; FLOWS] {
    (0..FLOWS as u32).for_each(|key| (0..20).for_each(|_| put(scheduler, key, 1000)));
    let mut served = [0; FLOWS];
    for _ in 0..1000 * FLOWS {
        let key = pass(scheduler).unwrap();
        served[key as usize] += 1;
        put(scheduler, key, 1000);
    }
    served
}

#[test]
fn turns_that_a_flow_missed_shrink_with_its_weight() {
    for spec in SPECS.iter().filter(|spec| spec.name != "fifo") {
        let settings = Settings { processors: 2, quantum: Nanos(1000), ..settings(1) };
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        scheduler.set_weight(0, Weight::MOST).unwrap();
        (0..50).for_each(|_| put(&mut scheduler, 0, 1000));
        // A packet stays with one processor, and the other serves those whose turn it is.
        let long = scheduler.dequeue(Resource::Processor).unwrap();
        (0..50).for_each(|_| put(&mut scheduler, 1, 1000));
        for _ in 0..60 {
            let key = pass(&mut scheduler).unwrap();
            put(&mut scheduler, key, 1000);
        }
        assert!(scheduler.processed(long.ticket, None));
        scheduler.set_weight(0, Weight::ONE).unwrap();
        let [one, other] = served(&mut scheduler);
        assert!(one.abs_diff(other) <= 150, "{}: {one} and {other}", spec.name);
    }
}

/// Each time a packet is taken one line has packets, and it is another than before.
#[test]
fn ports_that_alternate_for_long_take_nothing_from_a_third() {
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        let mut scheduler = Scheduler::new(spec.name, &settings(3)).unwrap();
        (0..3).for_each(|key| scheduler.set_port(key, key as u16).unwrap());
        for number in 0..33_000 {
            put(&mut scheduler, number % 2, 1000);
            assert_eq!(pass(&mut scheduler), Some(number % 2));
        }
        let served: [u32; 3] = served(&mut scheduler);
        assert!(served.iter().all(|count| (950..=1050).contains(count)), "{}: {served:?}", spec.name);
    }
}

#[test]
fn a_flow_that_came_while_its_port_was_full_has_nothing_to_catch_up() {
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        let settings = Settings { ready_limit: Some(2), ..settings(2) };
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        scheduler.set_port(1, 1).unwrap();
        (0..2).for_each(|_| put(&mut scheduler, 0, 1000));
        while let Some(granted) = scheduler.dequeue(Resource::Processor) {
            scheduler.processed(granted.ticket, None);
        }
        put(&mut scheduler, 0, 1000);
        assert_eq!(scheduler.dequeue(Resource::Processor), None, "{}", spec.name);
        (0..20).for_each(|_| put(&mut scheduler, 1, 1000));
        let granted = scheduler.dequeue(Resource::Processor).unwrap();
        assert_eq!(granted.key, 1, "{}", spec.name);
        scheduler.processed(granted.ticket, None);
        // From now on both ports are fast.
        while (0..2).any(|port| scheduler.dequeue(Resource::Port(port)).is_some()) {}
        let [one, other] = served(&mut scheduler);
        assert!(one.abs_diff(other) <= 100, "{}: {one} and {other}", spec.name);
    }
}

#[test]
fn a_flow_that_was_idle_for_months_of_virtual_time_is_served() {
    // Packets of 4.29 s, so that tags reach half of their range.
    for spec in SPECS.iter().filter(|spec| spec.apart) {
        let mut scheduler =
            Scheduler::new(spec.name, &Settings { clock_mhz: 1, budget: 1 << 30, ..settings(1) }).unwrap();
        let expensive = |scheduler: &mut Scheduler, key: u32| put(scheduler, key, 1 << 30);
        (0..4).for_each(|_| expensive(&mut scheduler, 0));
        expensive(&mut scheduler, 1);
        for _ in 0..2_200_000 {
            if pass(&mut scheduler) == Some(0) {
                expensive(&mut scheduler, 0);
            }
        }
        (0..4).for_each(|_| expensive(&mut scheduler, 1));
        let mut served = [0u32; 2];
        for _ in 0..100 {
            let key = pass(&mut scheduler).unwrap();
            served[key as usize] += 1;
            expensive(&mut scheduler, key);
        }
        assert!(served[0].abs_diff(served[1]) <= 2, "{}: {served:?}", spec.name);
    }
}
