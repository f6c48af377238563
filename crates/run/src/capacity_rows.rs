//! Report of `check` on the load of workers and ports.

use longwire_assemble::{Capacity, PortLoad, WorkerLoad};
use longwire_report::Row;

/// Most ports listed in the table; the JSON has all.
const MOST_PORTS: usize = 24;
/// Most names of prices listed in a note.
const MOST_NAMES: usize = 8;

/// Rows for workers, for the ports with the most expensive drivers, and for lateness.
pub fn rows(capacity: &Capacity) -> Vec<Row> {
    let mut rows = vec![packets(capacity)];
    rows.extend(capacity.workers.iter().map(worker));
    let mut ports: Vec<&PortLoad> = capacity.ports.iter().filter(|port| port.load_ppm > 0).collect();
    ports.sort_by_key(|port| std::cmp::Reverse(port.load_ppm));
    rows.extend(ports.into_iter().take(MOST_PORTS).map(port));
    let [p50, p99] = capacity.lateness.map(|late| late.0);
    rows.push(Row::new("expected lateness of packets, p50", "ns").measured(p50));
    rows.push(Row::new("expected lateness of packets, p99", "ns").measured(p99));
    rows
}

fn packets(capacity: &Capacity) -> Row {
    let row = Row::new("packets a second that come in", "packets/s");
    let frame = format!(
        "links are full of frames of {} bytes without FCS (--frame-bytes); sources send what they are set to",
        capacity.frame.0
    );
    match (capacity.packets_per_second, capacity.unbounded) {
        (0, true) => row.measured("unlimited").note("no link has a rate, and no source sends"),
        (packets, true) => row.measured(packets).note(frame).note("and packets on unbounded paths"),
        (packets, false) => row.measured(packets).note(frame),
    }
}

fn worker(worker: &WorkerLoad) -> Row {
    let row = Row::new(format!("worker {}, load", worker.worker), "%");
    let limit = format!(
        "{:.1} ns a packet: saturated at {} packets/s",
        worker.packet_picoseconds as f64 / 1e3,
        worker.saturated_at
    );
    let row = match (worker.packets_per_second, worker.unbounded) {
        (0, true) => row.measured("unlimited").note(limit),
        (packets, unbounded) => {
            let more = if unbounded { ", and unbounded packets" } else { "" };
            row.measured(percent(worker.load_ppm)).note(format!("{packets} packets/s{more}; {limit}"))
        }
    };
    if worker.in_flight == 0 {
        row
    } else {
        row.note(format!("{} packets on their way at once", worker.in_flight))
    }
}

fn port(port: &PortLoad) -> Row {
    let workers = match port.queues {
        1 => format!("worker {}", port.worker),
        queues => format!("workers {} to {} together", port.worker, port.worker + queues - 1),
    };
    Row::new(format!("port {} ({}), driver's part of {workers}", port.port, port.driver), "%")
        .measured(percent(port.load_ppm))
        .note(format!("{} packets/s in, {} out", port.received_per_second, port.sent_per_second))
}

/// Millionths as percent, in tenths.
fn percent(ppm: u64) -> f64 {
    (ppm as f64 / 1e3).round() / 10.0
}

/// Further notes; `from` is the source of the prices.
pub fn notes(capacity: &Capacity, from: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if !capacity.measured {
        notes.push(
            "loads and lateness are computed from assumed prices; \"longwire calibrate\" \
            measures those of this machine"
                .into(),
        );
    } else if !capacity.assumed.is_empty() {
        let mut names = capacity.assumed.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
        if capacity.assumed.len() > MOST_NAMES {
            names += &format!(" and {} more", capacity.assumed.len() - MOST_NAMES);
        }
        notes.push(format!(
            "{from} has no price of {names}: assumed, or those of the most expensive block of the \
             stage; \"longwire calibrate\" measures ports as root"
        ));
    }
    notes.extend(capacity.notes.iter().cloned());
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_assemble::predict;
    use longwire_prices::{EnginePrices, Price};
    use longwire_units::Bytes;

    fn capacity(link: &str, prices: &EnginePrices) -> Capacity {
        let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
        let text = format!("{}{}[[link]]\nfrom = \"a\"\nto = \"b\"\n{link}", port("a"), port("b"));
        let plan = longwire_scenario::plan_of(&text);
        predict(&plan, prices, Bytes(1514))
    }

    #[test]
    fn unbounded_load_is_unlimited_and_has_its_limit() {
        let mut prices = EnginePrices::default();
        prices.set("packet", Price::exact(100_000));
        let text = |link: &str| format!("{:?}", rows(&capacity(link, &prices)));
        let unlimited = text("loss = \"1 %\"");
        assert!(unlimited.contains("unlimited") && unlimited.contains("saturated at"), "{unlimited}");
        let bounded = text("rate = \"1 Gbit/s\"");
        assert!(bounded.contains("frames of 1514 bytes") && !bounded.contains("unlimited"), "{bounded}");
    }

    #[test]
    fn assumed_prices_are_named_with_what_measures_them() {
        let none = notes(&capacity("", &EnginePrices::default()), "assumed");
        assert!(none[0].contains("longwire calibrate"), "{none:?}");
        let mut prices = EnginePrices::default();
        prices.set("packet", Price::exact(1));
        let some = notes(&capacity("queue = { kind = \"red\" }\nrate = \"1 Mbit/s\"", &prices), "p");
        assert!(some[0].contains("p has no price of block-queue-red"), "{some:?}");
    }
}
