//! What the paper compares: plain forwarding, tail drop, RED; from memory to memory or through real ports.

use crate::Settings;
use crate::book::Book;
use crate::experiment::{Hosts, links};
use crate::kinds::require;
use crate::memory::Load;
use crate::trust::whole;
use longwire_bench::BenchError;
use longwire_report::Row;
use std::time::Duration;

/// A queue discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Discipline {
    /// None: ports without links between them, the paper's SRD.
    Plain,
    TailDrop,
    Red,
}

/// Kind of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Memory,
    Real,
}

/// The traffic.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traffic {
    pub ports: usize,
    /// Length of the frames with FCS.
    pub size: usize,
    /// Bits per second into each port; none for full speed.
    pub rate: Option<u64>,
}

impl Discipline {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::TailDrop, Self::Red];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain forwarding",
            Self::TailDrop => "tail drop",
            Self::Red => "RED",
        }
    }

    /// Links from this many ports, each to its partner. They have a rate, so that packets pass the queue, but
    /// no port can fill it, so that none is dropped.
    fn links(self, ports: usize) -> Result<String, BenchError> {
        let kind = match self {
            Self::Plain => return Ok(String::new()),
            Self::TailDrop => "tail-drop",
            Self::Red => "red",
        };
        require("queue", kind)?;
        let keys =
            format!("rate = \"100 Gbit/s\"\nqueue = {{ kind = \"{kind}\", limit = \"1000 packets\" }}");
        Ok((0..ports).map(|place| links(place, 1, &keys)).collect())
    }
}

impl Place {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Real => "real",
        }
    }
}

/// Measures the bits per second of a row, if it is requested.
pub(super) fn throughput(
    book: &mut Book<'_>,
    hosts: &mut Hosts,
    row: Row,
    (place, discipline): (Place, Discipline),
    traffic: Traffic,
) -> Option<f64> {
    let settings = book.settings;
    book.number(row, |row| {
        let (pps, row) = carried(settings, hosts, place, discipline, traffic, row)?;
        Ok(row.measured(pps * traffic.size as f64 * 8.0).extra("packets_per_second", pps))
    })
}

/// Packets per second received.
pub(super) fn carried(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    place: Place,
    discipline: Discipline,
    traffic: Traffic,
    row: Row,
) -> Result<(f64, Row), BenchError> {
    settings.require_real_time("a speed")?;
    let Traffic { ports, size, rate } = traffic;
    let load = Load { ports, links_a_port: 1, frame_bytes: size - 4, links: discipline.links(ports)?, rate };
    match place {
        Place::Memory => {
            let time = Duration::from_millis(settings.choose(400, 60));
            let carried = load.carry(settings, time)?;
            Ok((carried.packets_per_second, whole(row, &carried.report)))
        }
        Place::Real => {
            let world = hosts.world(settings, ports.next_multiple_of(2), false)?;
            let (pps, missed, row) = load.flood(settings, world, row)?;
            let row =
                if missed > 0 { row.note(format!("{missed} frames found a port's queue full")) } else { row };
            Ok((pps, row))
        }
    }
}
