//! Advice on what does not fit on the workers, and how to fix it.

use super::{Capacity, PortLoad, WHOLE, WorkerLoad};
use crate::price::Shortfall;
use longwire_drivers::Driver;
use longwire_prices::EnginePrices;
use longwire_scenario::Plan;
use std::collections::BTreeMap;

/// Load from which packets delay each other, in millionths of a core.
const BUSY: u64 = 800_000;

/// Adds shortfalls and notes.
pub(super) fn give(plan: &Plan, prices: &EnginePrices, capacity: &mut Capacity) {
    let total: u64 = capacity.workers.iter().map(|worker| worker.load_ppm).sum();
    for worker in &capacity.workers {
        if worker.load_ppm > WHOLE {
            let what = format!(
                "worker {} would be busy {} of the time: {} packets/s at {} ns each, and it carries {}",
                worker.worker,
                percent(worker.load_ppm),
                worker.packets_per_second,
                worker.packet_picoseconds / 1000,
                worker.saturated_at
            );
            capacity.shortfalls.push(Shortfall { what, fix: fix(prices, capacity, worker, total) });
        } else if worker.load_ppm >= BUSY {
            capacity.notes.push(format!(
                "worker {} is busy {} of the time: packets that come together wait for each other, and leave \
                 later than the lateness above",
                worker.worker,
                percent(worker.load_ppm)
            ));
        }
    }
    let within = plan.fidelity.within;
    let [_, p99] = capacity.lateness;
    if p99 > within {
        let spinning = prices.price("late-spin-p99") / 1000;
        let fix = if spinning <= within.0 {
            "set wait = \"spin\" in [engine], or allow more"
        } else {
            "spinning does not help: leave the workers' processors to them and calibrate again, or allow more"
        };
        capacity.notes.push(format!(
            "with wait = \"{}\" one packet in a hundred leaves {p99} late, and [fidelity] allows {within}: \
             {fix}",
            plan.engine.wait.word()
        ));
    }
    if capacity.unbounded {
        let note = "no link and no source bounds some of the packets: the load is that of the others, and \
            the worker's limit is what such paths share";
        capacity.notes.push(note.into());
    }
    if capacity.ways_left_out {
        let note = "there are too many paths through routers: the load is that of some of them";
        capacity.notes.push(note.into());
    }
}

/// How to relieve a worker.
fn fix(prices: &EnginePrices, capacity: &Capacity, worker: &WorkerLoad, total: u64) -> String {
    let mut fixes = Vec::new();
    if let Some((driver, saved)) = lighter_driver(prices, capacity, worker) {
        let left = worker.load_ppm.saturating_sub(saved);
        if saved > 0 && left <= WHOLE {
            fixes.push(format!("use driver = \"{driver}\" for its ports (then {})", percent(left)));
        }
    }
    let needed = total.div_ceil(BUSY);
    if needed > capacity.workers.len() as u64 {
        fixes.push(format!("set workers = {needed} in [engine] if the machine has them"));
    } else {
        let fix = "put its ports on bridges of their own, or give two ports of a bridge several queues, so \
            that other workers get some of the load";
        fixes.push(fix.into());
    }
    fixes.push("lower the rates".into());
    fixes.join(", or ")
}

/// The cheapest lighter driver for a worker's ports, and the saving in millionths of a core.
fn lighter_driver(
    prices: &EnginePrices,
    capacity: &Capacity,
    worker: &WorkerLoad,
) -> Option<(&'static str, u64)> {
    let frame = capacity.frame.0;
    let cost = |driver: &str, what: &str| {
        prices.price(&format!("{driver}-{what}")) + frame * prices.price(&format!("{driver}-{what}-byte"))
    };
    let is_own = |port: &&PortLoad| (port.worker..port.worker + port.queues).contains(&worker.worker);
    let mut saved: BTreeMap<&'static str, u128> = BTreeMap::new();
    for port in capacity.ports.iter().filter(is_own) {
        let Some(lighter) = Driver::named(port.driver).and_then(|driver| driver.lighter) else { continue };
        let of = |what: &str, packets: u64| {
            u128::from(cost(port.driver, what).saturating_sub(cost(lighter, what))) * u128::from(packets)
        };
        *saved.entry(lighter).or_default() += (of("receive", port.received_per_second)
            + of("transmit", port.sent_per_second))
            / u128::from(port.queues);
    }
    let most = saved.into_iter().max_by_key(|(_, saved)| *saved);
    most.map(|(driver, saved)| (driver, (saved / u128::from(WHOLE)) as u64))
}

/// Millionths as a percentage.
fn percent(ppm: u64) -> String {
    format!("{}.{} %", ppm / 10_000, ppm / 1_000 % 10)
}
