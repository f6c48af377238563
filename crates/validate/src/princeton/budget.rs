//! The budget of the paper's virtual router processor, and the arithmetic of table 5 within it.

use crate::book::{Book, paper};
use longwire_bench::BenchError;
use longwire_program::{Budget, Demand, Installed, Resource, admit};
use longwire_report::Row;

/// A forwarder of table 5.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// What it is called in Longwire.
    pub name: &'static str,
    pub bytes: u64,
    pub operations: u64,
    pub registers: u64,
}

/// Table 5.
pub(super) const TABLE_5: [Line; 6] = [
    Line { name: "tcp-splicer", bytes: 24, operations: 45, registers: 7 },
    Line { name: "wavelet", bytes: 8, operations: 28, registers: 4 },
    Line { name: "ack-monitor", bytes: 12, operations: 15, registers: 4 },
    Line { name: "syn-monitor", bytes: 4, operations: 5, registers: 0 },
    Line { name: "port-filter", bytes: 20, operations: 26, registers: 2 },
    Line { name: "minimal-ip", bytes: 24, operations: 32, registers: 2 },
];

impl Line {
    fn installed(&self) -> Installed {
        let mut demand = Demand::default();
        demand
            .with(Resource::StateBytes, self.bytes)
            .with(Resource::Transfers, self.bytes / 4)
            .with(Resource::Cycles, self.operations)
            .with(Resource::Slots, self.operations);
        Installed { name: self.name.into(), demand }
    }
}

/// The splicer, the port filter, the SYN monitor and minimal IP together, with the classifier.
fn together() -> Result<Demand, BenchError> {
    let lines = |wanted: &[&str]| -> Vec<Installed> {
        TABLE_5.iter().filter(|line| wanted.contains(&line.name)).map(Line::installed).collect()
    };
    let (flows, general) = (lines(&["tcp-splicer"]), lines(&["port-filter", "syn-monitor", "minimal-ip"]));
    admit(&Budget::VRP, Demand::VRP_CLASSIFIER, &flows, &general)
        .map_err(|error| super::failed("admitting table 5", error))
}

pub(super) fn rows(book: &mut Book<'_>) {
    let limits = [(Resource::Cycles, 240, 164), (Resource::StateBytes, 96, 92)];
    for (resource, limit, sum) in limits {
        let name = format!("budget: splicer, port filter, SYN monitor, minimal IP, {}", resource.name());
        let row = paper(Row::new(name, ""), limit).expected(sum);
        book.row(row, |row| {
            let amount = together()?.amount(resource);
            Ok(row.measured(amount).within(0.0).note(format!("classifier included; {limit} are allowed")))
        });
    }
    let row = Row::new("budget: ACK monitor for all packets beside them", "bytes").expected("refused");
    book.row(row, |row| {
        let general: Vec<_> = TABLE_5[2..].iter().map(Line::installed).collect();
        let flows = [TABLE_5[0].installed()];
        Ok(match admit(&Budget::VRP, Demand::VRP_CLASSIFIER, &flows, &general) {
            Ok(_) => row.measured("admitted").judged(false),
            Err(error) => row.measured("refused").judged(true).note(error.to_string()),
        })
    });
    for (resource, limit) in [
        (Resource::Cycles, 240),
        (Resource::Transfers, 24),
        (Resource::Hashes, 3),
        (Resource::StateBytes, 96),
        (Resource::Slots, 650),
    ] {
        let row = paper(Row::new(format!("budget: profile vrp, {}", resource.name()), ""), limit);
        book.row(row.expected(limit), |row| {
            Ok(row.measured(Budget::VRP.limit(resource).unwrap_or(u64::MAX)).within(0.0))
        });
    }
}
