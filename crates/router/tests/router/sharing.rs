//! Processors shared by flows: departure times, order of service, losses, and measurements in a real run.

use crate::programs::{COUNT, prepared, program};
use crate::rig::{Rig, SECOND, Seen, config, host_mac, router_mac};
use etherparse::PacketBuilder;
use longwire_block::{DropReason, FlowStats, Node, ProcessorStats};
use longwire_router::{
    FlowFields, FlowKey, Installation, Key, Meter, NamedFlow, NextHop, Rings, Router, RouterConfig,
    RouterError, SharingConfig, SharingError,
};
use longwire_sched::model::Demand;
use longwire_sched::{Estimator, PerByte, Settings, Weight};
use longwire_units::Nanos;
use std::cell::Cell;

/// Length of the frames below: 14, 20 and 8 bytes of headers, 58 of payload.
const FRAME: u64 = 100;

/// A UDP frame from the host at port 1, from this source port, to the host at port 2.
pub fn udp(source_port: u16) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv4([10, 0, 1, 9], [10, 0, 2, 9], 64);
    let mut frame = Vec::new();
    builder.udp(source_port, 9).write(&mut frame, &[7; 58]).unwrap();
    assert_eq!(frame.len() as u64, FRAME);
    frame
}

pub fn named(name: &str, source_port: u16, weight: i64, cycles: Demand) -> NamedFlow {
    let key = FlowKey { source_port: Some(source_port), ..FlowKey::default() };
    NamedFlow { name: name.into(), key, weight: Weight::new(weight).unwrap(), cycles: Some(cycles) }
}

/// Flows "heavy" (from port 1, 10 µs) and "cheap" (from port 2, 1 µs), others at 1 µs; one processor of 1
/// GHz.
pub fn sharing(scheduler: &str) -> SharingConfig {
    SharingConfig {
        scheduler: scheduler.into(),
        settings: Settings {
            port: PerByte::of_ns(0),
            charged: PerByte::of_ns(0),
            quantum: Nanos(10_000),
            ..Settings::default()
        },
        fields: FlowFields::default(),
        flows: vec![
            named("heavy", 1, 1, Demand::PerPacket(10_000)),
            named("cheap", 2, 1, Demand::PerPacket(1000)),
        ],
        cycles: Some(Demand::PerPacket(1000)),
        rings: Rings::default(),
    }
}

pub fn rig(sharing: SharingConfig) -> Rig {
    Rig::of(RouterConfig { sharing: Some(sharing), ..config() })
}

pub fn stats(rig: &Rig) -> ProcessorStats {
    rig.router.processors().unwrap()
}

/// The flow of this name to the port with index 2.
pub fn flow(rig: &Rig, name: &str) -> FlowStats {
    let found = stats(rig).flows.into_iter().find(|flow| flow.flow == name && flow.port == 2);
    found.unwrap_or_else(|| panic!("no flow {name} in {:?}", stats(rig).flows))
}

#[test]
fn a_packet_waits_for_its_processor_and_then_for_its_port() {
    let mut own = sharing("gmr3");
    own.settings.port = PerByte::of_ns(8);
    let mut rig = rig(own);
    assert_eq!(rig.router.deadline(), Nanos::NEVER);
    assert_eq!(rig.send(SECOND, 1, &udp(1)), [Seen::Kept]);
    assert_eq!(rig.router.deadline(), Nanos(SECOND + 10_000));
    assert_eq!(rig.wait(SECOND + 10_000), []);
    assert_eq!(rig.router.deadline(), Nanos(SECOND + 10_000 + 8 * FRAME));
    let seen = rig.wait(SECOND + 10_000 + 8 * FRAME);
    let (port, frame) = seen[0].out();
    // TTL decremented, and the addresses of the next link.
    assert_eq!((port, &frame[..12], frame[22]), (2, &[host_mac(2), router_mac(2)].concat()[..], 63));
    assert_eq!((rig.router.deadline(), rig.router.kept()), (Nanos::NEVER, 0));
}

#[test]
fn separate_rounds_share_a_full_port_by_bytes() {
    // A port of 100 Mbit/s, for which flows of frames of 100 and of 1000 bytes, with equal processing cost,
    // each ask twice its rate for 100 ms.
    let mut own = sharing("separate-drr");
    own.settings.port = PerByte::of_ns(80);
    own.flows[0].cycles = Some(Demand::PerPacket(1000));
    let mut rig = rig(own);
    let long = {
        let builder = PacketBuilder::ethernet2(host_mac(1), router_mac(1));
        let mut frame = Vec::new();
        let builder = builder.ipv4([10, 0, 1, 9], [10, 0, 2, 9], 64).udp(2, 9);
        builder.write(&mut frame, &[7; 958]).unwrap();
        frame
    };
    for step in 0..1250 {
        let now = SECOND + step * 80_000;
        rig.wait(now);
        let short = (0..20).map(|_| (now, 1, udp(1)));
        rig.batch(&short.chain([(now, 1, long.clone()), (now, 1, long.clone())]).collect::<Vec<_>>());
    }
    rig.wait(SECOND + 100_000_000);
    let [short, long] = ["heavy", "cheap"].map(|name| flow(&rig, name).out_bytes);
    assert!(short + long > 1_240_000 && short.abs_diff(long) < 20_000, "{short} {long}");
}

#[test]
fn costs_are_those_of_programs_unless_it_is_said_what_they_are() {
    let mut own = sharing("fifo");
    (own.flows, own.cycles) = (Vec::new(), None);
    let mut rig = rig(own);
    // Classifying 30 ns and forwarding 95 ns, at 1 GHz.
    rig.send(SECOND, 1, &udp(1));
    assert_eq!(rig.router.deadline(), Nanos(SECOND + 125));
    rig.wait(SECOND + 125);
    let to_port = FlowKey { source_port: Some(1), ..FlowKey::default() };
    let installation = Installation { key: Key::Flow(to_port), ..Installation::default() };
    rig.router.install(prepared(program("count", COUNT), installation)).unwrap();
    let [own, others] = [(1, 2), (2, 4)].map(|(port, second)| {
        rig.send(second * SECOND, 1, &udp(port));
        let cost = rig.router.deadline().since(Nanos(second * SECOND)).0;
        rig.wait((second + 1) * SECOND);
        cost
    });
    // All packets pay for the lookup: at least two cache lines. Only the flow's packets pay for the program
    // and its state.
    assert!(others >= 125 + 180 && own > others, "{own} {others}");
}

/// Sends a heavy and a cheap packet each microsecond for 2 ms; returns the counts at port 2.
fn contest(scheduler: &str) -> [u64; 2] {
    let mut own = sharing(scheduler);
    // Packets queued before the first measurement would be free.
    own.settings.estimator = Estimator::Exact;
    let mut rig = rig(own);
    for step in 0..2000 {
        let now = SECOND + step * 1000;
        rig.wait(now);
        rig.batch(&[(now, 1, udp(1)), (now, 1, udp(2))]);
    }
    rig.wait(SECOND + 2_000_000);
    let sent = ["heavy", "cheap"].map(|name| flow(&rig, name).out_packets);
    assert!(stats(&rig).queue_full + stats(&rig).no_room > 0, "neither queue was ever full");
    sent
}

#[test]
fn cheap_flows_suffer_with_fifo_and_keep_their_share_with_others() {
    // First come, first served: equal numbers, 11 µs a pair.
    let [heavy, cheap] = contest("fifo");
    assert!(heavy.abs_diff(cheap) <= 1 && heavy.abs_diff(2000 / 11) <= 1, "{heavy} {cheap}");
    // Half of the processor each: 100 heavy ones and 1000 cheap ones, within a few turns.
    for scheduler in
        ["gmr3", "mr3", "drfq", "drfq-dovetail", "sfq", "cbcs", "cbcs-normalised", "separate-drr"]
    {
        let [heavy, cheap] = contest(scheduler);
        assert!(heavy.abs_diff(100) <= 3 && cheap.abs_diff(1000) <= 30, "{scheduler}: {heavy} {cheap}");
    }
}

#[test]
fn weights_divide_the_processor() {
    let mut own = sharing("gmr3");
    own.flows =
        vec![named("heavy", 1, 3, Demand::PerPacket(1000)), named("cheap", 2, 1, Demand::PerPacket(1000))];
    let mut rig = rig(own);
    for step in 0..2000 {
        let now = SECOND + step * 1000;
        rig.wait(now);
        rig.batch(&[(now, 1, udp(1)), (now, 1, udp(2))]);
    }
    rig.wait(SECOND + 2_000_000);
    let [heavy, light] = ["heavy", "cheap"].map(|name| flow(&rig, name).out_packets);
    // 1500 and 500 of 2000, within what queues of 256 can't hold back of the first.
    assert!(heavy.abs_diff(1500) <= 60 && light.abs_diff(500) <= 60, "{heavy} {light}");
}

#[test]
fn packets_of_a_flow_leave_in_order_though_several_processors_serve_it() {
    let mut own = sharing("drfq");
    own.settings.processors = 4;
    own.flows = vec![named("heavy", 1, 1, Demand::Drawn { from: 100, to: 10_000 })];
    let mut rig = rig(own);
    let mut seen = Vec::new();
    for mark in 0..200u8 {
        let mut frame = udp(1);
        // No UDP checksum.
        (frame[40], frame[41], frame[99]) = (0, 0, mark);
        let now = SECOND + u64::from(mark) * 1000;
        seen.extend(rig.wait(now));
        seen.extend(rig.send(now, 1, &frame));
    }
    seen.extend(rig.wait(2 * SECOND));
    let marks: Vec<u8> =
        seen.iter().filter(|seen| **seen != Seen::Kept).map(|seen| seen.out().1[99]).collect();
    assert_eq!(marks, (0..200).collect::<Vec<u8>>());
}

#[test]
fn a_program_that_never_ends_is_stopped_and_harms_nobody() {
    let mut own = sharing("gmr3");
    own.settings.budget = 50_000;
    own.flows[0].cycles = Some(Demand::Endless);
    let mut rig = rig(own);
    rig.batch(&[(SECOND, 1, udp(1)), (SECOND, 1, udp(2))]);
    let seen = rig.wait(2 * SECOND);
    assert!(seen.contains(&Seen::Dropped(DropReason::Aborted)), "{seen:?}");
    assert_eq!(seen.iter().filter(|seen| matches!(seen, Seen::Out(2, _))).count(), 1);
    let (endless, cheap) = (flow(&rig, "heavy"), flow(&rig, "cheap"));
    assert_eq!((endless.abandoned, endless.processor_ns, endless.estimate_ns), (1, 50_000, 50_000));
    assert_eq!((cheap.abandoned, cheap.out_packets), (0, 1));
}

#[test]
fn full_queues_and_a_full_flow_table_are_counted_drops_of_their_own_flow() {
    let mut own = sharing("gmr3");
    (own.settings.flow_limit, own.settings.flows) = (4, 7);
    let mut rig = rig(own);
    // Named flows to three ports take six slots: one is left for others.
    let frames: Vec<_> = (0..10).map(|_| (SECOND, 1, udp(1))).collect();
    let seen = rig.batch(&frames);
    let full =
        |seen: &[Seen]| seen.iter().filter(|seen| **seen == Seen::Dropped(DropReason::FlowFull)).count();
    // One at the processor, two selected for it, and four waiting.
    assert_eq!((full(&seen), stats(&rig).queue_full), (3, 3));
    assert_eq!(full(&rig.send(SECOND, 1, &udp(77))), 0);
    assert_eq!((full(&rig.send(SECOND, 1, &udp(78))), stats(&rig).table_full), (1, 1));
    assert_eq!(full(&rig.send(SECOND, 1, &udp(2))), 0);
    rig.wait(2 * SECOND);
    assert_eq!(flow(&rig, "cheap").out_packets, 1);
    assert_eq!(flow(&rig, "10.0.1.9:77 > 10.0.2.9:9 udp").out_packets, 1);
}

#[test]
fn flows_with_names_are_told_of_before_their_first_packet() {
    let mut rig = rig(sharing("gmr3"));
    let told = |rig: &Rig| {
        let flows = stats(rig).flows.into_iter();
        flows.map(|flow| (flow.flow, flow.port, flow.weight, flow.in_packets)).collect::<Vec<_>>()
    };
    assert_eq!(told(&rig), [("heavy".into(), u16::MAX, 1, 0), ("cheap".into(), u16::MAX, 1, 0)]);
    rig.router.set_flow_weight("cheap", Weight::new(5).unwrap()).unwrap();
    rig.send(SECOND, 1, &udp(1));
    assert_eq!(told(&rig), [("heavy".into(), 2, 1, 1), ("cheap".into(), u16::MAX, 5, 0)]);
    assert_eq!(stats(&rig).flows_known, 1);
}

#[test]
fn how_many_flows_are_not_told_of_is_said() {
    let mut rig = rig(sharing("gmr3"));
    let told = |rig: &Rig| {
        let all = stats(rig);
        (all.flows.len(), all.flows_known, all.flows_left_out)
    };
    // Both named flows are always reported, and the 64 most active others.
    for (flow, wanted) in [(1, (2, 1, 0)), (1000, (3, 2, 0)), (1063, (66, 65, 0)), (1064, (66, 66, 1))] {
        let first = if flow < 1000 { flow } else { 1000 };
        (first..=flow).for_each(|port| drop(rig.send(SECOND, 1, &udp(port))));
        assert_eq!(told(&rig), wanted, "{flow}");
    }
}

#[test]
fn what_is_not_ip_does_not_wait_and_what_ends_at_the_processor_is_counted() {
    let mut rig = rig(sharing("gmr3"));
    let mut arp = vec![0xff; 6];
    arp.extend(host_mac(1));
    arp.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    arp.extend([&host_mac(1)[..], &[10, 0, 1, 9], &[0; 6], &[10, 0, 1, 1]].concat());
    let seen = rig.send(SECOND, 1, &arp);
    assert!(matches!(seen[..], [Seen::Consumed, Seen::Out(1, _)]), "{seen:?}");
    let installation = Installation::default();
    rig.router.install(prepared(program("drop", "r0 = 1\nexit"), installation)).unwrap();
    rig.send(SECOND, 1, &udp(2));
    assert_eq!(rig.wait(2 * SECOND), [Seen::Dropped(DropReason::Program)]);
    let cheap = flow(&rig, "cheap");
    assert_eq!((cheap.in_packets, cheap.consumed, cheap.out_packets, cheap.processor_ns), (1, 1, 0, 1000));
}

/// As for the packets themselves, the last installation with a next hop counts.
#[test]
fn a_flow_belongs_to_the_port_to_which_installations_send_it() {
    let mut rig = rig(sharing("gmr3"));
    let install = |rig: &mut Rig, port: u16, key: Key| {
        let way = Some(NextHop::via(port, [10, 0, port as u8, 9].into()));
        let installation = Installation { key, way, ..Installation::default() };
        rig.router.install(prepared(program("pass", "r0 = 2\n exit"), installation)).unwrap();
    };
    // The port of a packet at this second, and the ports of its flow.
    let send = |rig: &mut Rig, second: u64| {
        rig.send(second * SECOND, 1, &udp(1));
        let port = rig.wait((second + 1) * SECOND)[0].out().0;
        let known = stats(rig).flows.into_iter().filter(|flow| flow.flow == "heavy");
        (port, known.map(|flow| (flow.port, flow.out_packets)).collect::<Vec<_>>())
    };
    install(&mut rig, 3, Key::Flow(FlowKey { source_port: Some(1), ..FlowKey::default() }));
    assert_eq!(send(&mut rig, 1), (3, vec![(3, 1)]));
    install(&mut rig, 1, Key::All);
    assert_eq!(send(&mut rig, 2), (1, vec![(1, 1), (3, 1)]));
}

#[test]
fn a_port_that_is_down_keeps_its_flows() {
    let mut rig = rig(sharing("gmr3"));
    assert!(rig.router.set_up(2, false));
    assert_eq!(rig.send(SECOND, 1, &udp(1)), [Seen::Kept]);
    assert_eq!(rig.wait(2 * SECOND), [Seen::Dropped(DropReason::PortDown)]);
    assert_eq!(flow(&rig, "heavy").consumed, 1);
}

#[test]
fn what_cannot_be_is_refused() {
    let of = |sharing: SharingConfig| match Router::new(RouterConfig { sharing: Some(sharing), ..config() }) {
        Err(RouterError::Sharing(error)) => error,
        other => panic!("{other:?}"),
    };
    let mut small = sharing("gmr3");
    small.settings.flows = 6;
    assert!(of(small).to_string().contains("give 7 or more"));
    assert!(of(sharing("best")).to_string().contains("gmr3"));
    let mut two = sharing("gmr3");
    (two.settings.processors, two.rings.requests) = (2, 256);
    let refused = rig(two).router.measure_processors(METER);
    assert_eq!(refused, Err(SharingError::Requests { processors: 2, requests: 256, most: 255 }));
}

thread_local! {
    static CYCLES: Cell<u64> = const { Cell::new(0) };
    static NOW: Cell<u64> = const { Cell::new(SECOND) };
}

/// A machine of 2 GHz on which each packet takes 3000 cycles, and each clock reading 1 µs.
const METER: Meter = Meter {
    cycles: || {
        CYCLES.set(CYCLES.get() + 3000);
        CYCLES.get()
    },
    per_microsecond: 2000,
    now: || {
        NOW.set(NOW.get() + 1000);
        Nanos(NOW.get())
    },
};

#[test]
fn a_real_run_measures_and_paces() {
    let mut own = sharing("gmr3");
    own.settings.port = PerByte::of_ns(80);
    let mut rig = rig(own);
    rig.router.measure_processors(METER).unwrap();
    NOW.set(SECOND);
    let seen = rig.batch(&[(SECOND, 1, udp(1)), (SECOND, 1, udp(2)), (SECOND, 1, udp(2))]);
    assert_eq!(seen, [Seen::Kept, Seen::Kept, Seen::Kept]);
    assert_eq!(rig.router.deadline(), Nanos(SECOND));
    // The port needs 8 µs for each of them.
    let seen = rig.wait(SECOND + 4_000_000);
    assert_eq!(seen.iter().filter(|seen| matches!(seen, Seen::Out(2, _))).count(), 3);
    let (all, cheap) = (stats(&rig), flow(&rig, "cheap"));
    assert!(all.measured && all.processors == 1);
    assert_eq!((cheap.out_packets, cheap.processor_ns), (2, 3000));
    assert_eq!((rig.router.deadline(), rig.router.kept()), (Nanos::NEVER, 0));
}

#[test]
fn a_flow_whose_first_packet_is_refused_is_told_of_by_its_own_name() {
    let mut own = sharing("fifo");
    own.settings.packets = 1;
    let mut rig = rig(own);
    rig.router.measure_processors(METER).unwrap();
    let seen = rig.batch(&[(SECOND, 1, udp(2)), (SECOND, 1, udp(77))]);
    assert_eq!(seen, [Seen::Kept, Seen::Dropped(DropReason::FlowFull)]);
    let refused = flow(&rig, "10.0.1.9:77 > 10.0.2.9:9 udp");
    assert_eq!((refused.refused, refused.in_packets), (1, 0));
}

#[test]
fn a_real_run_looks_for_packets_between_two_visits() {
    let mut rig = rig(sharing("fifo"));
    rig.router.measure_processors(METER).unwrap();
    NOW.set(SECOND);
    let frames: Vec<_> = (0..60).map(|_| (SECOND, 1, udp(2))).collect();
    rig.batch(&frames);
    // Nothing was done before, so this is the longest visit, 500 µs: 60 packets of 1 µs fit.
    assert_eq!((rig.tick(Nanos(SECOND)).len(), rig.router.kept()), (60, 0));
    rig.batch(&frames);
    let done = rig.tick(Nanos(NOW.get())).len();
    // This one is the shortest, 20 µs, because no time has passed; it ends after now, so that the worker
    // polls for packets.
    assert!((19..=21).contains(&done), "{done}");
    assert_eq!((rig.router.kept(), rig.router.deadline()), (60 - done as u64, Nanos(NOW.get() + 1)));
}

#[test]
fn weights_change_while_packets_wait() {
    let mut own = sharing("drfq");
    own.settings.estimator = Estimator::Exact;
    own.flows[0].cycles = Some(Demand::PerPacket(1000));
    let mut rig = rig(own);
    rig.batch(&(0..64).map(|n| (SECOND, 1, udp(1 + n % 2))).collect::<Vec<_>>());
    rig.router.set_flow_weight("heavy", Weight::new(3).unwrap()).unwrap();
    rig.wait(SECOND + 24_000);
    let [heavy, cheap] = ["heavy", "cheap"].map(|name| flow(&rig, name).out_packets);
    // Three quarters of 24 packets, except for those granted before.
    assert!(heavy.abs_diff(18) <= 2 && cheap.abs_diff(6) <= 2, "{heavy} {cheap}");
    assert_eq!(flow(&rig, "heavy").weight, 3);
    let error = rig.router.set_flow_weight("x", Weight::ONE).unwrap_err().to_string();
    assert!(error.contains("there are heavy, cheap"), "{error}");
    let plain = Rig::of(config()).router.set_flow_weight("x", Weight::ONE).unwrap_err().to_string();
    assert!(plain.contains("no scheduler"), "{plain}");
}

#[test]
fn rings_drop_what_the_scheduler_has_no_time_for() {
    let dropped = |input: usize, step: u64| {
        let mut own = sharing("gmr3");
        own.rings = Rings { input, step: Nanos(step), ..Rings::default() };
        let mut rig = rig(own);
        let mut seen = rig.batch(&(0..32).map(|_| (SECOND, 1, udp(2))).collect::<Vec<_>>());
        seen.extend(rig.wait(2 * SECOND));
        seen.iter().filter(|seen| **seen == Seen::Dropped(DropReason::FlowFull)).count()
    };
    // The first is admitted at once; during its microsecond the ring fills.
    assert_eq!([dropped(4, 1000), dropped(31, 1000), dropped(4, 0)], [32 - 1 - 4, 0, 0]);
}

#[test]
fn a_scheduler_that_takes_its_time_leaves_no_processor_idle() {
    // Two processors and packets of 4 µs, of which flows of weights 300 and 1 ask for more than both can
    // process, for 2 ms.
    for scheduler in ["gmr3", "mr3", "drfq"] {
        let mut own = sharing(scheduler);
        own.settings.processors = 2;
        own.rings.step = Nanos(500);
        own.flows = vec![
            named("heavy", 1, 1, Demand::PerPacket(4000)),
            named("cheap", 2, 300, Demand::PerPacket(4000)),
        ];
        let mut rig = rig(own);
        for step in 0..1000 {
            let now = SECOND + step * 2000;
            rig.wait(now);
            rig.batch(&[(now, 1, udp(1)), (now, 1, udp(2))]);
        }
        let busy = stats(&rig).all.processor_ns;
        assert!(busy > 3_950_000, "{scheduler}: {busy} of 4 ms");
    }
}
