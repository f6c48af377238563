//! Section 3.5.1: the router between eight real ports.

use crate::book::{Book, paper_if};
use crate::trust::{trusted, whole};
use longwire_bench::require_two_processors;
use longwire_bench::router_ports::carry;
use longwire_report::Row;
use std::time::Duration;

/// Packets a second of the paper's eight generators together.
const OFFERED: u64 = 1_128_000;

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    let driver = settings.driver;
    let time = settings.choose(Duration::from_secs(2), Duration::from_millis(200));
    for (what, rate) in [("offered 1.128 Mpps", Some(OFFERED)), ("as fast as they go", None)] {
        let name = format!("real ports: 64 bytes, 8 interfaces in namespaces, {what}");
        book.row(paper_if(Row::new(name, "pps"), rate), |row| {
            settings.require_real("a row with real ports")?;
            require_two_processors("it needs two processors")?;
            let carried = carry(driver, rate, time, || settings.go_on())?;
            let row =
                if rate.is_some() { trusted(row, &carried.report) } else { whole(row, &carried.report) };
            let row = carried.told(row.measured(carried.rate));
            let row = if rate.is_none_or(|rate| carried.keeps(rate)) { row } else { row.judged(false) };
            let row = row.note(format!("{:.2} Mpps were offered", carried.offered / 1e6));
            Ok(row.note(format!(
                "{}; one processor routes, and all eight generators share the other: the kernel's \
                 interfaces, not wires, so that this rate is the machine's",
                driver.name()
            )))
        });
    }
}
