//! The judged rows: shares of the dominant resource between permanently backlogged flows, as programs get
//! more expensive.

use super::trial::{CHOSEN, PROCESSORS, setup};
use crate::Settings;
use crate::book::Book;
use crate::plot::{Plot, Style};
use longwire_bench::BenchError;
use longwire_report::Row;
use longwire_sched::SPECS;
use longwire_sched::fairness::{Service, jain, widest_gap};
use longwire_sched::model::{ClosedArrivals, Departure, Machine, Refill, table_7};
use longwire_units::Nanos;
use std::collections::BTreeMap;

/// Factors of the processor costs.
const FACTORS: [u64; 3] = [1, 10, 20];
/// Packets of each flow inside: more than all rings hold.
const EACH: usize = 64;
const INDEX: f64 = 0.99;
const TIME: Nanos = Nanos(4_000_000_000);
const QUICK: Nanos = Nanos(400_000_000);
const SETTLING: Nanos = Nanos(100_000_000);

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    let mut points: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for factor in FACTORS {
        for spec in SPECS {
            let title =
                format!("fairness, CPU cost ×{factor}: {}, Jain's index of dominant shares", spec.name);
            let row = Row::new(title, "");
            let row = if spec.dominant { row.expected(INDEX) } else { row };
            let index = book.number(row, |row| {
                let shares = shares(settings, spec.name, factor)?;
                let (index, gap) = (jain(&shares), widest_gap(&shares) * 100.0);
                let row = row.measured((index * 1e5).round() / 1e5);
                let row = if spec.dominant { row.at_least() } else { row };
                Ok(row.extra("widest_gap_percent", gap).note(format!(
                    "the largest share less the smallest is {gap:.1} % of the mean; of what there is of each \
                     resource a flow has {:.2} to {:.2} %",
                    shares.iter().copied().fold(f64::INFINITY, f64::min) * 100.0,
                    shares.iter().copied().fold(0.0, f64::max) * 100.0,
                )))
            });
            points.entry(spec.name).or_default().extend(index.map(|index| (factor as f64, index)));
        }
    }
    let mut plot =
        Plot::new("Dominant shares of backlogged flows", "factor of processor costs", "Jain's index");
    let mut least: Vec<(f64, f64)> = Vec::new();
    for spec in SPECS {
        let points = points.remove(spec.name).unwrap_or_default();
        if !spec.dominant {
            plot = plot.with(spec.name, Style::Line, points);
            continue;
        }
        for (factor, index) in points {
            match least.iter_mut().find(|(other, _)| *other == factor) {
                Some((_, known)) => *known = index.min(*known),
                None => least.push((factor, index)),
            }
        }
    }
    // Their lines would coincide.
    book.plot(plot.with("least of DRFQ, MR³ and GMR³", Style::Line, least));
}

/// Each flow's share of its dominant resource.
fn shares(settings: &Settings<'_>, scheduler: &str, factor: u64) -> Result<Vec<f64>, BenchError> {
    settings.go_on()?;
    let mut machine = Machine::new(setup(scheduler, factor, CHOSEN)?).map_err(BenchError::not_here)?;
    let flows = table_7(factor);
    let mut traffic = ClosedArrivals::new(flows.clone(), flows.len() * EACH, Refill::SameFlow, 1);
    let mut service: BTreeMap<u32, Service> =
        flows.iter().map(|flow| (flow.key, Service::default())).collect();
    let time = settings.choose(TIME, QUICK);
    machine.run(&mut traffic, time, &mut |departure: &Departure| {
        if departure.sent > SETTLING {
            let own = service.entry(departure.packet.key).or_default();
            own.processor += departure.processing.0 as f64 / f64::from(PROCESSORS);
            own.port += departure.transmission.0 as f64;
        }
    });
    let measured = (time.0 - SETTLING.0) as f64;
    Ok(service.values().map(|own| own.dominant() / measured).collect())
}
