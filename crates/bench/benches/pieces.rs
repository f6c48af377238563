//! Parts of the packet path, in batches of 64 packets: for comparison before and after a change.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use longwire_block::{Dice, Node, Outbox, Port};
use longwire_link::classify::Classifier;
use longwire_link::{Fifo, LinkConfig, Links};
use longwire_packet::{BATCH, Batch, Pool};
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_router::Bridge;
use longwire_units::Nanos;
use std::hint::black_box;
use std::net::Ipv4Addr;

const MACS: ([u8; 6], [u8; 6]) = ([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);

/// A pool with a batch of 60-byte frames, with the addresses of `pairs` rules in random order.
fn packets(pairs: u32) -> (Pool, Batch) {
    let mut pool = Pool::new(4 << 20).expect("4 MiB are to be had");
    let pairs =
        (0..pairs).map(|n| (Ipv4Addr::from(0x0a00_0001 + n), Ipv4Addr::from(0x0b00_0001 + n))).collect();
    let plan = BlastPlan { pairs, shuffle: Some(1), count: u64::MAX, macs: MACS, ..BlastPlan::sink() };
    let mut source = Blast::new("source", plan).expect("60-byte frames are in range");
    let mut batch = Batch::new();
    source.receive(&mut pool, Nanos(1), &mut batch).expect("a source does not fail");
    (pool, batch)
}

fn pool(c: &mut Criterion) {
    let mut pool = Pool::new(4 << 20).expect("4 MiB are to be had");
    c.benchmark_group("pool").throughput(Throughput::Elements(BATCH as u64)).bench_function(
        "take and free",
        |b| {
            b.iter(|| {
                let mut batch = Batch::new();
                (0..BATCH).filter_map(|_| pool.alloc(60)).for_each(|handle| batch.push(handle));
                batch.as_slice().iter().for_each(|&handle| pool.free(handle));
            });
        },
    );
}

fn bridge(c: &mut Criterion) {
    let (mut pool, batch) = packets(8);
    let mut bridge = Bridge::new(vec![0, 1], Nanos::from_secs(300), 4096);
    let mut outbox = Outbox::default();
    c.benchmark_group("bridge").throughput(Throughput::Elements(BATCH as u64)).bench_function(
        "forward",
        |b| {
            b.iter(|| bridge.forward(&mut pool, black_box(&batch), &mut outbox));
        },
    );
}

fn classify(c: &mut Criterion) {
    let mut group = c.benchmark_group("classify");
    group.throughput(Throughput::Elements(BATCH as u64));
    for rules in [8, 1_000_000] {
        let table: Vec<_> = (0..rules).map(|n| ((0x0a00_0001 + n, 0x0b00_0001 + n), n)).collect();
        let classifier = Classifier::new(&table, &[], &[]);
        let (mut pool, batch) = packets(rules);
        group.bench_function(format!("{rules} pairs"), |b| {
            b.iter(|| classifier.classify(&mut pool, black_box(&batch)));
        });
    }
}

fn link(c: &mut Criterion) {
    let mut group = c.benchmark_group("link");
    group.throughput(Throughput::Elements(BATCH as u64));
    for (name, keys) in [
        ("unlimited, dice", &[("loss", "0 %")][..]),
        ("rate and delay, dice", &[("loss", "0 %"), ("rate", "100 Gbit/s"), ("delay", "10 ms")]),
    ] {
        let config = keys.iter().fold(LinkConfig::default(), |config, (key, value)| {
            config.with_text(key, value).expect("these are values")
        });
        let make = || {
            let mut links = Links::with_capacity(1, 1, Nanos::from_micros(10));
            links.add(0, "up", &config);
            (links, packets(1))
        };
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                make,
                |(links, (pool, batch))| {
                    let mut out = Fifo::EMPTY;
                    for &handle in batch.as_slice() {
                        links.arrive_and_leave(pool, 0, handle, &mut out);
                    }
                    links.expire(pool, 0, Nanos::from_secs(1), &mut out);
                    black_box(out.first());
                },
                BatchSize::PerIteration,
            );
        });
    }
}

fn dice(c: &mut Criterion) {
    let mut dice = Dice::named(1, "links/up/loss");
    c.bench_function("dice/draw", |b| b.iter(|| dice.draw()));
}

criterion_group!(benches, pool, bridge, classify, link, dice);
criterion_main!(benches);
