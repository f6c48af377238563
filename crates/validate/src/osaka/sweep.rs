//! Figures 3 and 4: throughput by the number of ports, and by the input rate of one port.

use super::discipline::{Discipline, Place, Traffic, throughput};
use crate::book::{Book, paper_if};
use crate::experiment::Hosts;
use crate::plot::{Plot, Style};
use longwire_report::Row;

/// Figure 3, bytes ("256 KBytes" in print), and with FCS.
const PORTS_SIZE: usize = 256;
/// Figure 4, bytes ("128 KBytes" in print).
const RATE_SIZE: usize = 128;
const PORT_RATE: u64 = 100_000_000;
/// Level of the paper's tail drop and RED in figure 4.
const RATE_LEVEL: u64 = 130_000_000;
const RATES: [u64; 6] = [50, 100, 150, 200, 250, 300];

/// Figure 3: 1 to 8 ports. Real ports get 100 Mbit/s each; memory ports run at full speed, to show their
/// limit.
pub(super) fn ports(book: &mut Book<'_>, hosts: &mut Hosts) {
    for place in [Place::Memory, Place::Real] {
        let title = format!("Figure 3: ports and throughput, {} ports, {PORTS_SIZE} bytes", place.name());
        let mut plot = Plot::new(title, "ports", "Mbit/s");
        for discipline in Discipline::ALL {
            let mut points = Vec::new();
            for ports in 1..=8 {
                let name = format!(
                    "fig 3: {}, {ports} {} ports, {PORTS_SIZE} bytes",
                    discipline.name(),
                    place.name()
                );
                // The text has a level for figure 2 only, and says about figure 3 that the three are alike.
                let row = Row::new(name, "bit/s");
                let (rate, row) = match place {
                    Place::Memory => (None, row),
                    Place::Real => (Some(PORT_RATE), row.expected(PORT_RATE * ports as u64)),
                };
                let traffic = Traffic { ports, size: PORTS_SIZE, rate };
                let bits = throughput(book, hosts, row, (place, discipline), traffic);
                points.extend(bits.map(|bits| (ports as f64, bits / 1e6)));
            }
            plot = plot.with(discipline.name(), Style::Line, points);
        }
        book.plot(plot);
    }
}

/// Figure 4: 50 to 300 Mbit/s into one port.
pub(super) fn input_rate(book: &mut Book<'_>, hosts: &mut Hosts) {
    for place in [Place::Memory, Place::Real] {
        let title =
            format!("Figure 4: input rate and throughput, one {} port, {RATE_SIZE} bytes", place.name());
        let mut plot = Plot::new(title, "input, Mbit/s", "throughput, Mbit/s");
        for discipline in Discipline::ALL {
            let mut points = Vec::new();
            for megabits in RATES {
                let name = format!(
                    "fig 4: {}, {megabits} Mbit/s into one {} port, {RATE_SIZE} bytes",
                    discipline.name(),
                    place.name()
                );
                let offered = megabits * 1_000_000;
                // "The maximum throughput is about 130 Mbps … in the TD and RED mechanisms"; plain
                // forwarding has no number.
                let known = (offered > RATE_LEVEL && discipline != Discipline::Plain).then_some(RATE_LEVEL);
                let traffic = Traffic { ports: 1, size: RATE_SIZE, rate: Some(offered) };
                let row = paper_if(Row::new(name, "bit/s").expected(offered), known);
                let bits = throughput(book, hosts, row, (place, discipline), traffic);
                points.extend(bits.map(|bits| (megabits as f64, bits / 1e6)));
            }
            plot = plot.with(discipline.name(), Style::Line, points);
        }
        let all = vec![(50.0, 50.0), (300.0, 300.0)];
        let level = vec![(130.0, RATE_LEVEL as f64 / 1e6), (300.0, RATE_LEVEL as f64 / 1e6)];
        let plot = plot.with("all of it", Style::Reference, all);
        book.plot(plot.with("the paper's level of tail drop and RED", Style::Reference, level));
    }
}
