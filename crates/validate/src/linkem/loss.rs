//! Table 5.6: a link's loss rate, and whether losses are bursty.

use crate::Settings;
use crate::book::{Book, paper};
use crate::chances::{missing, runs_interval};
use crate::experiment::{Experiment, Hosts, LONGEST, base, numbered};
use crate::meter::Meter;
use crate::plot::{Plot, Style};
use crate::seeds::{self, SEEDS};
use crate::trust::{like, reasons, void};
use longwire_bench::BenchError;
use longwire_port::driver::source::Interval;
use longwire_report::Row;
use longwire_report::chances::binomial_interval;
use longwire_units::Nanos;

/// Configured and observed, in percent.
const RATES: [(u32, f64); 4] = [(1, 1.0041), (3, 3.089), (7, 6.9983), (10, 10.0)];
const PACKETS: u64 = 120_000;
const PER_SECOND: u64 = 8000;
/// End of the name of a row that judges the draws of the row before it.
const RUNS: &str = ", runs of losses";

/// Losses among numbered packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Losses {
    pub sent: u64,
    pub lost: u64,
    /// Runs of successive lost packets.
    pub runs: u64,
}

/// Losses with several seeds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draws {
    pub seeds: [u64; SEEDS],
    pub each: [Losses; SEEDS],
}

/// A row has two tests, each with half of the 1 % error probability of a verdict.
const EACH_TEST: f64 = 0.995;

impl Draws {
    fn sum(&self, of: impl Fn(&Losses) -> u64) -> u64 {
        self.each.iter().map(of).sum()
    }

    /// The row of the loss rate. It passes if the losses of all seeds together fit independent losses, and so
    /// does their spread: both together in 99 % of all cases.
    pub(crate) fn judged(&self, row: Row, probability: f64) -> Row {
        let (sent, lost) = (self.sum(|one| one.sent), self.sum(|one| one.lost));
        let percent = |packets: u64, of: u64| packets as f64 * 100.0 / of.max(1) as f64;
        let (low, high) = binomial_interval(sent, probability, EACH_TEST);
        let counts = self.each.map(|one| one.lost);
        let (spread, chance) = seeds::spread(counts, self.each[0].sent, probability, EACH_TEST);
        let each = self.each.map(|one| format!("{:.4}", percent(one.lost, one.sent))).join(", ");
        row.measured(percent(lost, sent))
            .judged((low..=high).contains(&lost) && chance)
            .extra("sent", sent)
            .extra("lost", lost)
            .extra("interval_low", percent(low, sent))
            .extra("interval_high", percent(high, sent))
            .extra("spread", spread)
            .extra("seeds", self.seeds.to_vec())
            .extra("lost_by_seed", counts.to_vec())
            .note(format!(
                "{lost} of {sent} packets with {SEEDS} seeds: {each} %; together from {:.4} to {:.4} %, and \
                 spread {spread:.2} times a variance where chance has 0.145 to 16.4: 99 % of all cases",
                percent(low, sent),
                percent(high, sent)
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
        let shown = book.number(row, |row| {
            let probability = f64::from(configured) / 100.0;
            let (draws, row) = lose(settings, hosts, &format!("{configured} %"), PACKETS, row)?;
            seen = Some((draws, reasons(&row)));
            Ok(draws.judged(row, probability))
        });
        thesis.push((f64::from(configured), observed));
        ours.extend(shown.map(|shown| (f64::from(configured), shown)));
        let row = Row::new(format!("{name}{RUNS}"), "runs");
        book.row(row, |row| match &seen {
            Some((draws, void)) => Ok(judge_runs(like(row, void), draws)),
            None => {
                let (draws, row) = lose(settings, hosts, &format!("{configured} %"), PACKETS, row)?;
                Ok(judge_runs(row, &draws))
            }
        });
    }
    say_seed(book);
    book.plot(
        Plot::new("Table 5.6: loss against configured", "configured, %", "observed, %")
            .with("equal", Style::Reference, vec![(0.0, 0.0), (10.0, 10.0)])
            .with("Longwire", Style::Scatter, ours)
            .with("LinkEM", Style::Scatter, thesis),
    );
}

/// Says how to repeat the same losses.
pub(crate) fn say_seed(book: &mut Book<'_>) {
    let seed = book.settings.seed;
    book.say_of_all(format!("losses were drawn with --seed {seed}, which draws the same again"));
}

/// Numbered packets through a link with this `loss`, 8000 a second.
pub(crate) fn lose(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    loss: &str,
    packets: u64,
    row: Row,
) -> Result<(Draws, Row), BenchError> {
    lose_by(settings, hosts, &format!("loss = \"{loss}\""), packets, row)
}

/// Measures losses with any keys of a link. On real ports, which take time, the seeds share the packets,
/// except in a full run.
pub(crate) fn lose_by(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    keys: &str,
    packets: u64,
    mut row: Row,
) -> Result<(Draws, Row), BenchError> {
    let seeds = seeds::of_row(settings, row.name.strip_suffix(RUNS).unwrap_or(&row.name));
    let whole = settings.simulate || settings.full;
    let packets = if whole { packets } else { packets / SEEDS as u64 };
    let mut each = [Losses { sent: 0, lost: 0, runs: 0 }; SEEDS];
    for (losses, seed) in each.iter_mut().zip(seeds) {
        (*losses, row) = lose_once(settings, hosts, (keys, seed), packets, row)?;
    }
    Ok((Draws { seeds, each }, row))
}

/// With one seed.
fn lose_once(
    settings: &Settings<'_>,
    hosts: &mut Hosts,
    (keys, seed): (&str, u64),
    packets: u64,
    row: Row,
) -> Result<(Losses, Row), BenchError> {
    let sent = settings.choose(packets, packets / 10);
    let every =
        Interval::per_second(PER_SECOND).ok_or_else(|| BenchError::not_here("no packets a second"))?;
    let time = Nanos(sent * 1_000_000_000 / PER_SECOND);
    let meter = Meter::new(base(1), 1).with_sequences();
    let link = Experiment::one_way(numbered(every, LONGEST, sent)?, meter, keys, time)?;
    let drain = Nanos::from_millis(200);
    let seen = Experiment { seed, drain, ..link }.run(settings, hosts)?;
    let (runs, lost) = missing(sent, seen.meters[1].sequences.as_deref().unwrap_or_default());
    let in_links: u64 = seen.report.links.iter().map(|link| link.stats.dropped()).sum();
    let row = seen.checked(row);
    let row = if lost == in_links {
        row
    } else {
        void(row, format!("{} packets were lost outside the link", lost.abs_diff(in_links)))
    };
    Ok((Losses { sent, lost, runs }, row))
}

/// Independent losses have a random number of runs: with all seeds inside their intervals in 99 % of all
/// cases.
fn judge_runs(row: Row, draws: &Draws) -> Row {
    let share = 1.0 - 0.01 / SEEDS as f64;
    let intervals = draws.each.map(|one| runs_interval(one.sent, one.lost, share));
    let expected: f64 = intervals.iter().map(|(mean, _)| mean).sum();
    let inside = |(one, (_, (low, high))): (&Losses, &(f64, (u64, u64)))| (*low..=*high).contains(&one.runs);
    let within = draws.each.iter().zip(&intervals).all(inside);
    let text = draws.each.iter().zip(&intervals);
    let text: Vec<_> =
        text.map(|(one, (_, (low, high)))| format!("{} ({low} to {high})", one.runs)).collect();
    row.expected((expected * 10.0).round() / 10.0)
        .measured(draws.sum(|one| one.runs))
        .judged(within)
        .extra("seeds", draws.seeds.to_vec())
        .note(format!(
            "by seed: {}; losses that know nothing of each other lie between in 99 % of all cases; bursts \
             make fewer runs",
            text.join(", ")
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn draws(lost: [u64; SEEDS], runs: fn(u64) -> u64) -> Draws {
        let each = lost.map(|lost| Losses { sent: 120_000, lost, runs: runs(lost) });
        Draws { seeds: [1, 2, 3, 4, 5], each }
    }

    #[test]
    fn the_interval_and_the_spread_decide() {
        let pass = |lost| draws(lost, |lost| lost).judged(Row::new("x", "%").expected(1), 0.01).pass;
        assert_eq!(pass([1180, 1230, 1195, 1240, 1160]), Some(true));
        assert_eq!(pass([1280, 1330, 1295, 1340, 1260]), Some(false), "too many");
        assert_eq!(pass([1200; SEEDS]), Some(false), "one frozen draw, five times");
    }

    #[test]
    fn bursts_are_seen() {
        let pass =
            |runs| judge_runs(Row::new("x", "runs"), &draws([1180, 1230, 1195, 1240, 1160], runs)).pass;
        // 1200 of 120 000 losses: 1188 runs if independent, 600 in pairs.
        assert_eq!(pass(|lost| lost - lost / 100), Some(true));
        assert_eq!(pass(|lost| lost / 2), Some(false));
    }

    #[test]
    fn the_same_seed_loses_the_same_and_another_something_else() {
        let stop = AtomicBool::new(false);
        let lost = |seed| {
            let settings = Settings { seed, ..Settings::of_test(&stop) };
            let row = Row::new("table 5.6: loss of 10 %", "%");
            let (draws, _) = lose(&settings, &mut Hosts::default(), "10 %", 20_000, row).unwrap();
            draws.each.map(|one| one.lost)
        };
        assert_eq!(lost(1), lost(1));
        assert_ne!(lost(1), lost(2));
        assert!((1..SEEDS).any(|at| lost(1)[at] != lost(1)[0]), "seeds draw anew");
    }
}
