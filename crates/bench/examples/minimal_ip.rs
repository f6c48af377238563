//! Minimal IP on one core: 64-byte frames (with FCS) from memory to memory, eight ports, a million random
//! prefixes.
//!
//! `cargo run --release -p longwire-bench --example minimal_ip`. Forwarding alone is the median of all
//! batches; memory to memory (copying in and out, and the pool) is the best of several rounds. Other load on
//! the machine makes both lower.

use longwire_bench::rig::{FRAME, Frame, FrameSpec, PORTS};
use longwire_block::{Dice, Node, Outbox};
use longwire_packet::{BATCH, Batch, Pool};
use longwire_router::prefix::Prefix;
use longwire_router::{InterfaceAddress, NextHop, Router, RouterConfig, RouterPort};
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

const GATEWAYS: u8 = 32;
const PREFIXES: usize = 1_000_000;
/// Frames of one round.
const FRAMES: usize = 1 << 20;
const ROUNDS: usize = 8;

fn main() {
    let mut dice = Dice::named(1, "bench/minimal-ip");
    let started = Instant::now();
    let mut router = router(&mut dice);
    let bytes = router.stats().table_bytes >> 20;
    println!("{PREFIXES} prefixes: {bytes} MiB, made in {:.2} s", started.elapsed().as_secs_f64());
    let random: Vec<_> = (0..FRAMES).map(|_| FrameSpec::UDP.to(destination(&mut dice))).collect();
    let few: Vec<u32> = (0..1000).map(|_| destination(&mut dice)).collect();
    let known: Vec<_> = (0..FRAMES).map(|_| FrameSpec::UDP.to(few[dice.below(1000) as usize])).collect();
    for (what, frames) in [("random destinations", &random), ("1000 destinations", &known)] {
        let before = router.stats();
        let mut batches = Vec::with_capacity(ROUNDS * FRAMES / BATCH);
        let best = (0..ROUNDS).map(|_| run(&mut router, frames, &mut batches)).min().unwrap_or_default();
        let after = router.stats();
        assert_eq!(after.forwarded - before.forwarded, (FRAMES * ROUNDS) as u64, "all are forwarded");
        batches.sort_unstable();
        let median = batches[batches.len() / 2];
        let hits = after.cache_hits - before.cache_hits;
        println!(
            "{what}: {:.2} Mpps forwarding, {:.2} Mpps memory to memory, {:.1} % cache hits",
            BATCH as f64 / median.as_secs_f64() / 1e6,
            FRAMES as f64 / best.as_secs_f64() / 1e6,
            100.0 * hits as f64 / (FRAMES * ROUNDS) as f64
        );
    }
}

fn router(dice: &mut Dice) -> Router {
    let port = |place: u16| RouterPort {
        place,
        mac: [2, 0, 0, 0, 0xff, place as u8],
        mtu: 1500,
        v4: vec![InterfaceAddress { address: Ipv4Addr::new(10, 0, place as u8, 1).into(), len: 24 }],
        v6: vec![],
    };
    let config = RouterConfig { ports: (0..PORTS).map(port).collect(), seed: 1, ..RouterConfig::default() };
    let mut router = Router::new(config).expect("ports can be");
    let gateway = |port: u16, host: u8| Ipv4Addr::new(10, 0, port as u8, 10 + host).into();
    for port in 0..PORTS {
        for host in 0..GATEWAYS {
            assert!(router.set_neighbour(port, gateway(port, host), [2, 0, 0, 1, port as u8, host]));
        }
    }
    let mut add = |prefix: Prefix<u32>, dice: &mut Dice| {
        let port = dice.below(PORTS.into()) as u16;
        let hop = NextHop::via(port, gateway(port, dice.below(GATEWAYS.into()) as u8));
        router.add_route_v4(prefix, hop).expect("there is room");
    };
    add(Prefix::new(0, 0).expect("a length"), dice);
    for _ in 0..PREFIXES {
        // Prefix lengths roughly as in the Internet's table: mostly 24, some shorter, few longer.
        let len = match dice.below(100) {
            0..60 => 24,
            60..95 => 16 + dice.below(8) as u8,
            95..98 => 25 + dice.below(8) as u8,
            _ => 8 + dice.below(8) as u8,
        };
        add(Prefix::new(destination(dice), len).expect("a length"), dice);
    }
    router
}

/// An address that is forwarded, outside the router's own networks.
fn destination(dice: &mut Dice) -> u32 {
    loop {
        let address = dice.draw() as u32;
        if !matches!(address >> 24, 0 | 10 | 127 | 224..) {
            return address;
        }
    }
}

/// Sends every frame once. Returns the total time, and adds the forwarding time of each batch to `batches`.
fn run(router: &mut Router, frames: &[Frame], batches: &mut Vec<Duration>) -> Duration {
    let mut pool = Pool::new(4 << 20).expect("memory");
    let mut outbox = Outbox::default();
    let mut sent = [0; FRAME];
    let started = Instant::now();
    for (turn, chunk) in frames.chunks(BATCH).enumerate() {
        let mut batch = Batch::new();
        let place = (turn % usize::from(PORTS)) as u16;
        for frame in chunk {
            let handle = pool.insert(frame).expect("room");
            let (meta, bytes) = pool.parts_mut(handle);
            (meta.in_port, meta.arrival, bytes[5]) = (place, turn as u64, place as u8);
            batch.push(handle);
        }
        let before = Instant::now();
        router.forward(&mut pool, &batch, &mut outbox);
        batches.push(before.elapsed());
        for &handle in batch.as_slice() {
            sent.copy_from_slice(pool.data(handle));
            black_box(&sent);
            pool.free(handle);
        }
    }
    started.elapsed()
}
