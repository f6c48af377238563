//! Whatever arrives, nothing panics, packets are conserved, and batching has no effect.

use crate::rig::{Rig, SECOND, Seen, config, host_mac, router_mac};
use longwire_block::Node;
use longwire_packet::{CountingAllocator, allocations};
use longwire_router::{Limit, NextHop};
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The address 10.0.N.H, or one further away.
fn v4() -> impl Strategy<Value = [u8; 4]> {
    prop_oneof![
        8 => (0..5u8, prop::sample::select(vec![0u8, 1, 9, 77, 78, 255])).prop_map(|(net, host)| [10, 0, net,
            host]),
        1 => prop::sample::select(vec![[224, 0, 0, 5], [255; 4], [127, 0, 0, 1], [192, 0, 2, 1], [0; 4]]),
    ]
}

fn fix(frame: &mut [u8]) {
    let end = (14 + usize::from(frame[14] & 15) * 4).clamp(34, frame.len());
    frame[24..26].fill(0);
    let checksum = longwire_wire::checksum::Sum::ZERO.bytes(&frame[14..end]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}

/// IPv4 frames that are nearly right, for the router's port 1.
fn ipv4() -> impl Strategy<Value = Vec<u8>> {
    let protocol = prop::sample::select(vec![1u8, 6, 17, 99]);
    let fields = (v4(), v4(), prop::sample::select(vec![0u8, 1, 2, 64]), protocol, any::<u16>());
    let options = prop::collection::vec(prop::sample::select(vec![0u8, 1, 3, 4, 7, 8, 68, 131]), 0..40);
    let shape = (prop::bool::weighted(0.8), options, 0..2000usize, prop::sample::select(vec![8u8, 0, 3, 99]));
    (fields, shape).prop_map(|((source, destination, ttl, protocol, id), (plain, options, len, kind))| {
        let options = if plain { &[] } else { &options[..options.len() / 4 * 4] };
        let total = (20 + options.len() + len) as u16;
        let mut frame = longwire_wire::ethernet_header(router_mac(1), host_mac(1), 0x0800).to_vec();
        frame.extend([0x45 + (options.len() / 4) as u8, 0, (total >> 8) as u8, total as u8]);
        let flags = if id % 3 == 0 { [0, 0] } else { [(id >> 8) as u8 & 0x60, (id % 5 == 0).into()] };
        frame.extend([id.to_be_bytes(), flags].concat());
        frame.extend([ttl, protocol, 0, 0]);
        frame.extend([source, destination].concat());
        frame.extend(options);
        frame.extend(std::iter::repeat_n(0, len));
        if len > 8 {
            let at = 34 + options.len();
            frame[at] = kind;
            let checksum = longwire_wire::checksum::Sum::ZERO.bytes(&frame[at..]).checksum();
            frame[at + 2..at + 4].copy_from_slice(&checksum.to_be_bytes());
        }
        fix(&mut frame);
        frame
    })
}

fn ipv6() -> impl Strategy<Value = Vec<u8>> {
    let address = || {
        let near = (0xfd00..0xfd01u16, 0..5u16, prop::sample::select(vec![0u16, 1, 9, 77]));
        let near = near
            .prop_map(|(top, net, host)| u128::from(top) << 112 | u128::from(net) << 96 | u128::from(host));
        prop_oneof![8 => near, 1 => prop::sample::select(vec![0u128, 1, 0xfe80 << 112 | 7,
            0xff02 << 112 | 1])]
    };
    let next = prop::sample::select(vec![0u8, 17, 43, 44, 58, 60, 99]);
    let body = prop::collection::vec(any::<u8>(), 0..1500);
    (address(), address(), next, prop::sample::select(vec![0u8, 1, 64, 255]), body).prop_map(
        |(source, destination, next_header, hop_limit, body)| {
            let payload_len = body.len() as u16;
            let header =
                longwire_wire::Ipv6Header { source, destination, next_header, hop_limit, payload_len };
            let ethernet = longwire_wire::ethernet_header(router_mac(1), host_mac(1), 0x86dd);
            [&ethernet[..], &header.bytes(), &body].concat()
        },
    )
}

fn arp() -> impl Strategy<Value = Vec<u8>> {
    (1..4u16, v4(), v4(), any::<u8>()).prop_map(|(operation, sender, target, mac)| {
        let sender = ([2, 0, 0, 0, 3, mac], u32::from_be_bytes(sender));
        let message = longwire_wire::arp_message(operation, sender, ([0; 6], u32::from_be_bytes(target)));
        [&longwire_wire::ethernet_header([0xff; 6], sender.0, 0x0806)[..], &message].concat()
    })
}

/// A frame for a port, at a time step after the previous one.
fn frames() -> impl Strategy<Value = Vec<(u64, u16, Vec<u8>)>> {
    let garbled = (ipv4(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut frame, at, byte)| {
        let at = at.index(frame.len());
        frame[at] = byte;
        frame
    });
    let any_bytes = prop::collection::vec(any::<u8>(), 0..100);
    let frame = prop_oneof![4 => ipv4(), 3 => ipv6(), 2 => arp(), 1 => garbled, 1 => any_bytes];
    let each = (0..SECOND / 20, 1..=3u16, frame).prop_map(|(step, port, mut frame)| {
        if frame.len() > 5 && frame[5] == 1 {
            frame[5] = port as u8;
        }
        (step, port, frame)
    });
    prop::collection::vec(each, 1..64).prop_map(|mut frames| {
        let mut now = 0;
        for frame in &mut frames {
            now += frame.0;
            frame.0 = now;
        }
        frames
    })
}

fn rig() -> Rig {
    let mut config = config();
    config.police.errors = Limit { rate: 5, burst: 5 };
    config.neighbours.queue = 2;
    config.neighbours.asked = 4;
    let mut rig = Rig::of(config);
    let gateway = NextHop::via(2, std::net::IpAddr::from([10, 0, 2, 78]));
    rig.router.add_route_v4("10.0.4.0/24".parse().unwrap(), gateway).unwrap();
    rig
}

/// The fuzzer's corpus of frames.
fn corpus() -> Vec<Vec<u8>> {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/frame")).unwrap();
    let mut files: Vec<_> = folder.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    files.sort();
    files
}

/// The outcomes, grouped by kind: a batch returns its own packets first, then all created ones.
fn sorted(mut seen: Vec<Seen>) -> Vec<String> {
    let mut written: Vec<_> = seen.drain(..).map(|seen| format!("{seen:?}")).collect();
    written.sort();
    written
}

proptest! {
    /// The rig checks conservation after every call.
    #[test]
    fn nothing_panics_and_batches_change_nothing(frames in frames()) {
        let (mut one_by_one, mut at_once) = (rig(), rig());
        // Time advances only at the batch's beginning, so the batch must be shorter than anything due.
        let mut frames = frames;
        frames.iter_mut().for_each(|frame| frame.0 /= 64);
        let single: Vec<_> = frames.iter().flat_map(|(at, port, frame)| one_by_one.send(*at, *port,
            frame)).collect();
        let together = at_once.batch(&frames);
        prop_assert_eq!(sorted(single), sorted(together));
        prop_assert_eq!(one_by_one.router.stats(), at_once.router.stats());
        let end = one_by_one.wait(1000 * SECOND);
        prop_assert_eq!(end, at_once.wait(1000 * SECOND));
        prop_assert_eq!(one_by_one.router.kept(), 0, "whoever waits is told in the end");
    }

    #[test]
    fn changed_frames_of_the_corpus_go_somewhere(
        file in prop::sample::select(corpus()),
        changes in prop::collection::vec((0..80usize, any::<u8>()), 0..6),
    ) {
        let mut bytes = file;
        for (at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        crate::exercise::run(&bytes);
    }

    #[test]
    fn time_may_pass_in_between(frames in frames()) {
        let mut rig = rig();
        for (at, port, frame) in &frames {
            rig.wait(*at);
            rig.send(*at, *port, frame);
        }
        rig.wait(1000 * SECOND);
        prop_assert_eq!(rig.router.kept(), 0);
    }
}

#[test]
fn replays_the_corpus_of_frames() {
    let frames = corpus();
    assert!(frames.len() >= 10);
    frames.iter().for_each(|bytes| crate::exercise::run(bytes));
}

#[test]
fn the_packet_path_allocates_nothing() {
    use longwire_block::Outbox;
    use longwire_packet::Batch;
    let mut rig = rig();
    let frame = |destination: [u8; 4], ttl: u8| {
        let header = longwire_wire::Ipv4Header {
            source: u32::from_be_bytes([10, 0, 1, 9]),
            destination: u32::from_be_bytes(destination),
            protocol: 17,
            ttl,
            traffic_class: 0,
            id: 0,
            payload_len: 1400,
        };
        let ethernet = longwire_wire::ethernet_header(router_mac(1), host_mac(1), 0x0800);
        [&ethernet[..], &header.bytes(), &[0; 1400]].concat()
    };
    // Regular, expired, without a route, to be fragmented, unresolved, for the router.
    let frames = [
        frame([10, 0, 2, 9], 64),
        frame([10, 0, 2, 9], 1),
        frame([192, 0, 2, 1], 64),
        frame([10, 0, 3, 9], 64),
        frame([10, 0, 2, 200], 64),
        frame([10, 0, 1, 1], 64),
    ];
    let mut outbox = Outbox::default();
    let mut batch = Batch::new();
    for frame in &frames {
        let handle = rig.pool.insert(frame).unwrap();
        rig.pool.meta_mut(handle).in_port = 1;
        batch.push(handle);
    }
    let before = allocations();
    rig.router.forward(&mut rig.pool, &batch, &mut outbox);
    rig.router.tick(&mut rig.pool, longwire_units::Nanos(10 * SECOND), &mut outbox);
    assert_eq!(allocations() - before, 0);
    let made = outbox.clear();
    // Errors for two; two fragments; two neighbour requests; a port unreachable.
    assert!(made >= 7, "{made}");
}
