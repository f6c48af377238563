//! The budget of the paper's virtual router processor, and Longwire's own forwarders within it.

use crate::book::{Book, paper, paper_if};
use longwire_bench::BenchError;
use longwire_program::{Budget, Object, Program, Resource, ShippedForwarder, assemble};
use longwire_report::Row;
use longwire_router::{Admission, FlowKey, Forwarder, Forwarders, Installation, Key};
use std::sync::Arc;

/// A forwarder of table 5.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// Its name in Longwire.
    pub name: &'static str,
    pub bytes: u64,
    pub operations: u64,
    pub registers: u64,
}

/// Table 5, as printed in the paper; no values of ours.
pub(super) const TABLE_5: [Line; 6] = [
    Line { name: "tcp-splicer", bytes: 24, operations: 45, registers: 7 },
    Line { name: "wavelet", bytes: 8, operations: 28, registers: 4 },
    Line { name: "ack-monitor", bytes: 12, operations: 15, registers: 4 },
    Line { name: "syn-monitor", bytes: 4, operations: 5, registers: 0 },
    Line { name: "port-filter", bytes: 20, operations: 26, registers: 2 },
    Line { name: "minimal-ip", bytes: 24, operations: 32, registers: 2 },
];

/// The output port that admits.
const PORT: u16 = 0;

/// A program that ships with Longwire.
pub(super) fn shipped(name: &str) -> Result<Program, BenchError> {
    let shipped = ShippedForwarder::named(name)
        .ok_or_else(|| BenchError::NotHere(format!("{name} does not come with this version")))?;
    Ok(Object::parse(shipped.object)?.program(shipped.function)?)
}

/// An empty table of programs with the paper's budget.
fn empty() -> Arc<Forwarders> {
    Arc::new(Forwarders::none(Admission { budget: Budget::VRP, ..Admission::default() }, &[PORT], 1))
}

/// This table with another program, for all packets or for those of a flow; or the reason for refusal.
fn with(
    table: &Arc<Forwarders>,
    program: Program,
    per_flow: bool,
) -> Result<Result<Arc<Forwarders>, String>, BenchError> {
    let flow = FlowKey { destination_port: Some(80), protocol: Some(6), ..FlowKey::default() };
    let key = if per_flow { Key::Flow(flow) } else { Key::All };
    let installation = Installation { name: program.name.clone(), key, ..Installation::default() };
    let prices = table.admission().prices.clone();
    let forwarder = Forwarder::prepare(program, installation, &prices, 1)?;
    Ok(table.with(forwarder).map(|(_, table)| table).map_err(|refused| refused.to_string()))
}

/// One for a flow, and others for all packets: their total with classifier and minimal IP, or the reason for
/// refusal.
fn together(flow: &str, general: &[&str]) -> Result<Result<Arc<Forwarders>, String>, BenchError> {
    let mut table = match with(&empty(), shipped(flow)?, true)? {
        Ok(table) => table,
        refused => return Ok(refused),
    };
    for name in general {
        table = match with(&table, shipped(name)?, false)? {
            Ok(table) => table,
            refused => return Ok(refused),
        };
    }
    Ok(Ok(table))
}

pub(super) fn rows(book: &mut Book<'_>) {
    let four = ("tcp-splicer", &["port-filter", "syn-monitor"][..]);
    let monitors = ("ack-monitor", &["port-filter", "syn-monitor"][..]);
    for (what, (flow, general), resource, limit, sum) in [
        ("splicer, port filter, SYN monitor, minimal IP", four, Resource::Cycles, 240, 164),
        ("splicer, port filter, SYN monitor, minimal IP", four, Resource::Transfers, 24, 23),
        ("splicer, port filter, SYN monitor, minimal IP", four, Resource::StateBytes, 96, 92),
        ("ACK monitor, port filter, SYN monitor, minimal IP", monitors, Resource::Cycles, 240, 134),
        ("ACK monitor, port filter, SYN monitor, minimal IP", monitors, Resource::StateBytes, 96, 80),
    ] {
        let row = Row::new(format!("budget: {what}, {}", resource.name()), "").expected(limit);
        book.row(row, |row| {
            Ok(match together(flow, general)? {
                Ok(table) => row.measured(table.need().amount(resource)).at_most().note(format!(
                    "worst cases that the verifier finds in Longwire's own programs, and what the router \
                     charges for classifying and minimal IP, which is what the paper says of its own and \
                     more than programs need that do the same (rows below); the paper prints no sum: its own \
                     of table 5, with 56 and 20 for the classifier, make {sum}"
                )),
                Err(refused) => row.measured("refused").judged(false).note(refused),
            })
        });
    }
    let row = Row::new("budget: ACK monitor for all packets beside these four", "bytes").expected("refused");
    book.row(row, |row| {
        Ok(match together("tcp-splicer", &["port-filter", "syn-monitor", "ack-monitor"])? {
            Ok(_) => row.measured("admitted").judged(false),
            Err(refused) => row.measured("refused").judged(true).note(refused),
        })
    });
    own_minimal_ip(book);
    limits(book);
}

/// The router's charge for its own minimal IP, and the needs of the equivalent program.
fn own_minimal_ip(book: &mut Book<'_>) {
    for (resource, charged, printed) in
        [(Resource::Cycles, 32, true), (Resource::Transfers, 6, false), (Resource::StateBytes, 24, true)]
    {
        let row = Row::new(format!("budget: minimal IP as a program, {}", resource.name()), "");
        book.row(paper_if(row, printed.then_some(charged)).expected(charged), |row| {
            let none = empty().need().amount(resource);
            Ok(match with(&empty(), shipped("minimal-ip")?, false)? {
                Ok(table) => row.measured(table.need().amount(resource) - none).at_most().note(
                    "the router charges its own minimal IP, which is no program, what the paper says of its, \
                     4 bytes a transfer: not less than this one needs",
                ),
                Err(refused) => row.measured("refused").judged(false).note(refused),
            })
        });
    }
}

/// Resources, and a program whose every step needs more of one resource, and as little as possible of the
/// others.
const PROBES: [(Resource, u64, &str); 5] = [
    (Resource::Cycles, 240, "r0 = 1\n"),
    (Resource::Transfers, 24, "r3 = *(u8 *)(r7 + 0)\n"),
    (Resource::Hashes, 3, "r1 = r10\n r1 += -8\n r2 = 8\n r3 = 0\n call lw_hash\n"),
    (Resource::StateBytes, 96, "r3 = *(u32 *)(r7 + 0)\n"),
    (Resource::Slots, 650, "r8 = r6\n"),
];

/// A program that repeats this.
fn probe(line: &str, times: usize) -> Result<Program, BenchError> {
    let head = "r6 = r1\n *(u64 *)(r10 - 8) = 0\n r1 = 4\n call lw_flow_state\n r7 = r0\n";
    let text = format!("{head}{}r0 = 2\n exit", line.repeat(times));
    Ok(Program::new("probe", assemble(&text)?, []))
}

/// The most that the router admits of a resource, by trial: classifier and minimal IP included.
fn admitted(resource: Resource, line: &str) -> Result<u64, BenchError> {
    let (table, mut most) = (empty(), 0);
    for times in 0.. {
        match with(&table, probe(line, times)?, false)? {
            Ok(table) => most = table.need().amount(resource),
            Err(_) => break,
        }
    }
    Ok(most)
}

fn limits(book: &mut Book<'_>) {
    for (resource, limit, line) in PROBES {
        let row = paper(Row::new(format!("budget: most {} that are admitted", resource.name()), ""), limit);
        book.row(row.expected(limit), |row| {
            let most = admitted(resource, line)?;
            Ok(row.measured(most).within(0.0).note(
                "programs that need more and more, until one is refused; classifier and minimal IP included",
            ))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_probe_is_refused_for_what_it_probes() {
        for (resource, limit, line) in PROBES {
            assert_eq!(admitted(resource, line).unwrap(), limit, "{}", resource.name());
            let beyond =
                (0..).find_map(|times| with(&empty(), probe(line, times).unwrap(), false).unwrap().err());
            assert!(beyond.unwrap().contains(&format!("{}, {limit} allowed", resource.name())));
        }
    }

    #[test]
    fn own_forwarders_fit_and_one_more_does_not() {
        let general = ["port-filter", "syn-monitor"];
        let table = together("tcp-splicer", &general).unwrap().unwrap();
        let need = table.need();
        assert_eq!((need.amount(Resource::Cycles), need.amount(Resource::StateBytes)), (203, 93));
        assert!(together("ack-monitor", &general).unwrap().is_ok());
        let refused = together("tcp-splicer", &["port-filter", "syn-monitor", "ack-monitor"]).unwrap();
        assert!(refused.unwrap_err().contains("105 bytes of state, 96 allowed"));
    }
}
