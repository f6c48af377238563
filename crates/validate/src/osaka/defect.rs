//! A defect of the paper's RED: only accepted packets update the average, so once it has passed the upper
//! threshold it never falls, and nothing is accepted any more. In the default RED (Floyd and Jacobson 1993)
//! every arrival updates the average, and it decays over idle time. Always in virtual time.

use crate::book::Book;
use crate::experiment::{Experiment, base, blast, generator, paced};
use crate::kinds::require;
use crate::meter::Meter;
use longwire_bench::BenchError;
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_packet::{Batch, Pool};
use longwire_report::Row;
use longwire_units::Nanos;

/// A link of 10 Mbit/s with an offered load of 400 % for 5 s, then of 10 % for 20 s.
const LINK: u64 = 10_000_000;
const OVERLOAD: Nanos = Nanos(5_000_000_000);
const AFTER: Nanos = Nanos(20_000_000_000);
const SIZE: usize = 1000;
/// Packets of the light load that are not counted (one second): enough for the queue of the overload to
/// drain.
const SETTLING: u64 = 125;

pub(super) fn rows(book: &mut Book<'_>) {
    for (profile, expected) in [("osaka", 0), ("floyd", 100)] {
        let row =
            Row::new(format!("RED of profile {profile}: delivered of light load after an overload"), "%");
        book.row(row.expected(expected), |row| {
            let (delivered, sent) = recover(profile)?;
            let percent = delivered as f64 * 100.0 / sent as f64;
            let row = row.measured(percent).extra("sent", sent).extra("delivered", delivered);
            Ok(match profile {
                "osaka" => row.judged(delivered == 0).note(
                    "as printed: its average changes only when a packet is accepted, so that it never \
                        falls again",
                ),
                // The average needs some packets to fall after the overload.
                _ => row.judged(percent > 95.0).note(
                    "the average changes with every arrival, and over idle \
                    time",
                ),
            })
        });
    }
}

/// Packets of the light load that passed a RED of this profile, and packets sent.
fn recover(profile: &str) -> Result<(u64, u64), BenchError> {
    require("queue", "red")?;
    let overload = paced(blast(0, 1, SIZE), 4 * LINK, OVERLOAD);
    let light = paced(blast(0, 1, SIZE), LINK / 10, AFTER);
    let gap = light.gap.unwrap_or_default();
    let sent = light.count - SETTLING;
    let source = TwoSources { first: generator(0, overload)?, then: generator(0, light)?, from: OVERLOAD };
    let counted = Meter::new(base(1), 1).after(OVERLOAD + Nanos(gap.0 * SETTLING));
    let keys = format!(
        "rate = \"{LINK} bit/s\"\nqueue = {{ kind = \"red\", profile = \"{profile}\", limit = \"1000 \
         packets\" }}"
    );
    let link = Experiment::one_way(Box::new(source), counted, &keys, OVERLOAD)?;
    Ok((link.simulate()?.meters[1].packets(), sent))
}

/// One source, and another from a later time on.
struct TwoSources {
    first: Box<dyn Port>,
    then: Box<dyn Port>,
    from: Nanos,
}

impl Port for TwoSources {
    fn name(&self) -> &str {
        self.first.name()
    }

    fn describe(&self) -> String {
        self.first.describe()
    }

    fn stamp(&self) -> Stamp {
        Stamp::Source
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        self.first.receive(pool, now, batch)?;
        let before = batch.len();
        if now >= self.from {
            self.then.receive(pool, now - self.from, batch)?;
        }
        for &handle in &batch.as_slice()[before..] {
            pool.meta_mut(handle).arrival += self.from.0;
        }
        Ok(())
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        self.first.transmit(pool, batch)
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        let later = self.then.next_arrival()?;
        let later = if later == Nanos::NEVER { later } else { later + self.from };
        Some(self.first.next_arrival()?.min(later))
    }

    fn stats(&self) -> PortStats {
        self.first.stats()
    }
}
