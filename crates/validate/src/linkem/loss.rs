//! Table 5.6: the share of packets that a link loses, and whether losses come in bursts.

use crate::Settings;
use crate::book::{Book, paper};
use crate::chances::{binomial_interval, missing, runs_interval};
use crate::experiment::{End, Experiment, Hosts, LONGEST, base, generator, links, numbered, silent};
use crate::meter::Meter;
use crate::plot::{Plot, Style};
use longwire_bench::BenchError;
use longwire_port::driver::source::Interval;
use longwire_report::Row;
use longwire_units::Nanos;

/// Configured and observed, in percent.
const RATES: [(u32, f64); 4] = [(1, 1.0041), (3, 3.089), (7, 6.9983), (10, 10.0)];
const PACKETS: u64 = 120_000;
const PER_SECOND: u64 = 8000;

/// What became of numbered packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Losses {
    pub sent: u64,
    pub lost: u64,
    /// Runs of successive lost packets.
    pub runs: u64,
}

impl Losses {
    pub(crate) fn percent(&self) -> f64 {
        self.lost as f64 * 100.0 / self.sent.max(1) as f64
    }

    /// The row of the share lost, which passes inside the 99 % interval of independent losses.
    pub(crate) fn judged(&self, row: Row, probability: f64) -> Row {
        let (low, high) = binomial_interval(self.sent, probability, 0.99);
        let percent = |packets: u64| packets as f64 * 100.0 / self.sent.max(1) as f64;
        row.measured(self.percent())
            .judged((low..=high).contains(&self.lost))
            .extra("sent", self.sent)
            .extra("lost", self.lost)
            .extra("interval_low", percent(low))
            .extra("interval_high", percent(high))
            .note(format!(
                "{} of {} packets; 99 % of all cases lie from {:.4} to {:.4} %",
                self.lost,
                self.sent,
                percent(low),
                percent(high)
            ))
    }
}

pub(super) fn rows(book: &mut Book<'_>, hosts: &mut Hosts) {
    let (mut ours, mut thesis) = (Vec::new(), Vec::new());
    let settings = book.settings;
    for (configured, observed) in RATES {
        let name = format!("table 5.6: loss of {configured} %");
        let row = paper(Row::new(name.clone(), "%").expected(configured), observed);
        let mut seen = None;
        let shown = book.row(row, |row| {
            let probability = f64::from(configured) / 100.0;
            let (losses, row) = lose(settings, hosts, &format!("{configured} %"), PACKETS, row)?;
            seen = Some(losses);
            Ok(losses.judged(row, probability))
        });
        thesis.push((f64::from(configured), observed));
        ours.extend(shown.and_then(|row| Some((f64::from(configured), row.measured?.as_f64()?))));
        let row = Row::new(format!("{name}, runs of losses"), "runs");
        book.row(row, |row| match seen {
            Some(losses) => Ok(judge_runs(row, losses)),
            None => {
                let (losses, row) = lose(settings, hosts, &format!("{configured} %"), PACKETS, row)?;
                Ok(judge_runs(row, losses))
            }
        });
    }
    book.plot(
        Plot::new("Table 5.6: loss against configured", "configured, %", "observed, %")
            .with("equal", Style::Reference, vec![(0.0, 0.0), (10.0, 10.0)])
            .with("Longwire", Style::Scatter, ours)
            .with("LinkEM", Style::Scatter, thesis),
    );
}

/// Numbered packets through a link with this `loss`, 8000 a second.
pub(crate) fn lose(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    loss: &str,
    packets: u64,
    row: Row,
) -> Result<(Losses, Row), BenchError> {
    lose_by(settings, hosts, &format!("loss = \"{loss}\""), packets, row)
}

/// The same with any keys of a link.
pub(crate) fn lose_by(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    keys: &str,
    packets: u64,
    row: Row,
) -> Result<(Losses, Row), BenchError> {
    let sent = settings.choose(packets, packets / 10);
    let every =
        Interval::per_second(PER_SECOND).ok_or_else(|| BenchError::NotHere("no packets a second".into()))?;
    let ends = vec![
        End { source: numbered(every, LONGEST, sent)?, meter: Meter::default() },
        End { source: generator(1, silent(1))?, meter: Meter::new(base(1), 1).with_sequences() },
    ];
    let time = Nanos(sent * 1_000_000_000 / PER_SECOND);
    let experiment = Experiment {
        links: links(0, 1, keys),
        ends,
        time,
        settling: Nanos::ZERO,
        drain: Nanos::from_millis(200),
    };
    let seen = experiment.run(settings, hosts)?;
    let (runs, lost) = missing(sent, seen.meters[1].sequences.as_deref().unwrap_or_default());
    let in_links: u64 = seen.report.links.iter().map(|link| link.stats.dropped()).sum();
    let row = seen.checked(row);
    let row = if lost == in_links {
        row
    } else {
        row.note(format!("{} packets were lost outside the link", lost.abs_diff(in_links)))
    };
    Ok((Losses { sent, lost, runs }, row))
}

/// Losses that come alone make as many runs as chance does, inside the 99 % interval.
fn judge_runs(row: Row, losses: Losses) -> Row {
    let (expected, (low, high)) = runs_interval(losses.sent, losses.lost, 0.99);
    row.expected((expected * 10.0).round() / 10.0)
        .measured(losses.runs)
        .judged((low..=high).contains(&losses.runs))
        .extra("interval_low", low)
        .extra("interval_high", high)
        .note(format!(
            "{} losses that know nothing of each other make {low} to {high} runs in 99 % of all cases; bursts make fewer",
            losses.lost
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_decides() {
        let row = || Row::new("x", "%").expected(1);
        let with = |lost| Losses { sent: 120_000, lost, runs: lost };
        assert_eq!(with(1200).judged(row(), 0.01).pass, Some(true));
        assert_eq!(with(1300).judged(row(), 0.01).pass, Some(false));
    }

    #[test]
    fn bursts_are_seen() {
        let row = || Row::new("x", "runs");
        // 1200 of 120 000: alone they make 1188 runs, in pairs 600.
        assert_eq!(judge_runs(row(), Losses { sent: 120_000, lost: 1200, runs: 1190 }).pass, Some(true));
        assert_eq!(judge_runs(row(), Losses { sent: 120_000, lost: 1200, runs: 600 }).pass, Some(false));
    }
}
