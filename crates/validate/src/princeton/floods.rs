//! Section 4.7: floods of exceptional packets, and what they leave to regular ones: by time, and by
//! instructions, which no other program on
//! the machine changes.

use super::robust::{UP_PORT, upward};
use super::stages::counted;
use crate::Settings;
use crate::book::{Book, paper};
use crate::plot::{Plot, Style};
use longwire_bench::guest::{Guest, NAME, RATE};
use longwire_bench::rig::{Frame, PORTS, Rig, Said};
use longwire_bench::{BenchError, Sample};
use longwire_packet::BATCH;
use longwire_punt::client::{Control, Hello};
use longwire_punt::{Limits, Punt, SeatId};
use longwire_report::Row;
use longwire_router::Admission;
use longwire_units::Nanos;
use std::time::{Duration, Instant};

/// Exceptional packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exception {
    Options,
    Expired,
    /// For a control process that answers nothing.
    Up,
}

/// Shares of exceptional packets, in packets of a batch.
const SHARES: [usize; 4] = [16, 32, 48, 64];
const GROUPS: usize = 300;
const FEW_GROUPS: usize = 4;
/// Batches whose times are added up.
const GROUP: usize = 64;
/// Nanoseconds of packets' time between two batches: 64 packets at 3.47 Mpps.
const APART: u64 = 18_444;
/// What a flood may leave regular packets, in percent of their rate without it.
const LEFT: f64 = 98.0;

/// Regular packets: of no program's flow.
const REGULAR: Said = Said { ports: [1024, 54], ..Said::UDP };

impl Exception {
    const ALL: [Self; 3] = [Self::Options, Self::Expired, Self::Up];

    const fn name(self) -> &'static str {
        match self {
            Self::Options => "IP options",
            Self::Expired => "hop limit 1",
            Self::Up => "for a control process that answers nothing",
        }
    }

    /// What a flood of them is a trial of.
    const fn exercises(self) -> &'static str {
        match self {
            Self::Options => {
                "exercises what keeps full IP from taking more than its share: 1000 packets with options a second and port"
            }
            Self::Expired => {
                "exercises the limits of full IP and of errors: 20 000 exceptions and 1000 time-exceeded messages a second and port"
            }
            Self::Up => {
                "exercises the control level: 1024 packets are up and none is answered, all others are refused before their program runs"
            }
        }
    }

    const fn said(self) -> Said {
        match self {
            Self::Options => Said { options: true, ..REGULAR },
            Self::Expired => Said { ttl: 1, ..REGULAR },
            Self::Up => Said { ports: [1024, UP_PORT], ..REGULAR },
        }
    }

    /// A batch with so many of them, spread evenly.
    fn frames(self, count: usize) -> Vec<(u16, Frame)> {
        let said = |at: usize| if at * count % BATCH + count >= BATCH { self.said() } else { REGULAR };
        (0..BATCH).map(|place| (0, said(place).frame())).collect()
    }
}

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    let mut plot =
        Plot::new("Robustness: a flood of exceptional packets", "exceptional, %", "rate, % of that without");
    for exception in Exception::ALL {
        let what = exception.name();
        let mut points = Vec::new();
        for share in SHARES {
            let percent = share * 100 / BATCH;
            let name = format!("robustness: {percent} % exceptional, {what}, rate of that without");
            book.row(paper(Row::new(name, "%"), 100).expected(LEFT), |row| {
                let Seen { plain, without, with, notes, correct } = flood(settings, exception, share)?;
                let ratio = without.least() / with.least() * 100.0;
                points.push((percent as f64, ratio));
                let row = row.measured((ratio * 10.0).round() / 10.0).at_least().note(format!(
                    "a packet takes {:.1} ns, {:.1} ns without exceptional ones in the same router, {:.1} in one without programs: regular packets of an overload get through at this share of their rate",
                    with.least(),
                    without.least(),
                    plain.least()
                ));
                let row = row.note(exception.exercises()).note(notes);
                Ok(if correct { row } else { row.judged(false).note("regular packets were lost") })
            });
        }
        plot = plot.with(what, Style::Line, points);
    }
    book.plot(plot.with("98 %", Style::Reference, vec![(25.0, LEFT), (100.0, LEFT)]));
    for exception in Exception::ALL {
        instructions(book, exception);
    }
}

/// Instructions of a packet where all are exceptional, beside those of a regular one in the same router.
fn instructions(book: &mut Book<'_>, exception: Exception) {
    let settings = book.settings;
    let name = format!("robustness: 100 % exceptional, {}, instructions of a packet", exception.name());
    book.row(Row::new(name, "% of a regular one's").expected(100.0 / LEFT * 100.0), |row| {
        let of = |share| per_packet(settings, exception, share);
        let [without, with] = [of(0)?, of(BATCH)?];
        Ok(row
            .measured((with / without * 1000.0).round() / 10.0)
            .at_most()
            .extra("instructions", with.round())
            .extra("regular", without.round())
            .note(format!("{with:.0} and {without:.0}, counted by valgrind's callgrind as a difference of two runs; bringing packets in and out is in both")))
    });
}

fn per_packet(settings: &Settings<'_>, exception: Exception, share: usize) -> Result<f64, BenchError> {
    const GROUPS: [usize; 2] = [4, 20];
    let place = Exception::ALL.iter().position(|one| *one == exception).unwrap_or(0);
    let mut counts = [0; 2];
    for (count, groups) in counts.iter_mut().zip(GROUPS) {
        settings.go_on()?;
        *count = counted(&format!("flood {place} {share} {groups}"), &[])?.instructions;
    }
    let packets = (GROUPS[1] - GROUPS[0]) * GROUP * BATCH;
    Ok(counts[1].saturating_sub(counts[0]) as f64 / packets as f64)
}

/// Runs a flood in this process, as `words` say: which exception, how many of a batch, how many groups of
/// batches.
pub(super) fn play<'w>(mut words: impl Iterator<Item = &'w str>) -> Option<()> {
    let mut number = || words.next()?.parse::<usize>().ok();
    let (exception, share, groups) = (*Exception::ALL.get(number()?)?, number()?, number()?);
    // Who started it sees from the numbers if nothing was done.
    let mut side = Flooded::new(Some(exception)).ok()?;
    let frames = exception.frames(share.min(BATCH));
    let mut now = BEGIN;
    for _ in 0..groups * GROUP {
        now += Nanos(APART);
        side.rig.tick(now);
        side.rig.time_batch(&frames);
    }
    Some(())
}

/// After all that joining may have taken.
const BEGIN: Nanos = Nanos::from_secs(60);

struct Seen {
    /// Nanoseconds a packet: of a router without programs, of this one with regular packets alone, and with
    /// exceptional ones.
    plain: Sample,
    without: Sample,
    with: Sample,
    /// What became of exceptional packets.
    notes: String,
    /// Whether every regular packet was forwarded.
    correct: bool,
}

fn flood(settings: &Settings<'_>, exception: Exception, share: usize) -> Result<Seen, BenchError> {
    settings.require_real_time("speed")?;
    let frames = [exception.frames(0), exception.frames(0), exception.frames(share)];
    let mut sides = [Flooded::new(None)?, Flooded::new(Some(exception))?, Flooded::new(Some(exception))?];
    let mut costs = [const { Vec::new() }; 3];
    let mut now = BEGIN;
    for _ in 0..settings.choose(GROUPS, FEW_GROUPS) {
        settings.go_on()?;
        let mut sums = [Duration::ZERO; 3];
        for _ in 0..GROUP {
            now += Nanos(APART);
            for ((side, frames), sum) in sides.iter_mut().zip(&frames).zip(&mut sums) {
                side.rig.tick(now);
                *sum += side.rig.time_batch(frames);
            }
        }
        for (costs, sum) in costs.iter_mut().zip(sums) {
            costs.push(sum.as_nanos() as f64 / (GROUP * BATCH) as f64);
        }
    }
    let [plain, without, with] = costs.map(Sample::from_iter);
    let [_, regular, mixed] = sides;
    let (notes, got_through) = mixed.outcome(share);
    Ok(Seen { plain, without, with, notes, correct: got_through && regular.outcome(0).1 })
}

/// A router that is flooded, with who does not answer, if someone is to be there.
struct Flooded {
    rig: Rig,
    above: Option<(Guest, Control, SeatId)>,
}

impl Flooded {
    /// Without programs and levels unless packets are to go up.
    fn new(exception: Option<Exception>) -> Result<Self, BenchError> {
        let mut rig = Rig::new(Admission::default())?;
        if exception != Some(Exception::Up) {
            return Ok(Self { rig, above: None });
        }
        let mut punt = Punt::new((0..PORTS).collect());
        let hour = Nanos::from_secs(3600);
        let limits = Limits { answer_within: hour, patience: hour, ..Limits::default() };
        let (guest, seat) = Guest::expected(&mut punt, limits)?;
        rig.set_levels(punt);
        rig.install(upward()?, Exception::Up.said().flow(), Some(seat))?;
        let hello = Hello { name: NAME.into(), packets: RATE, cycles: 0, share: 1 };
        let silent = Control::connect(&guest.socket(), &hello)
            .map_err(|error| super::failed("joining the router", error))?;
        let begin = Instant::now();
        while !rig.router.levels().is_some_and(|punt| punt.is_taken(seat)) {
            if begin.elapsed() > Duration::from_secs(20) {
                return Err(super::failed("joining the router", "nobody comes"));
            }
            rig.tick(Nanos::from_secs(1) + Nanos(begin.elapsed().as_nanos() as u64));
        }
        Ok(Self { rig, above: Some((guest, silent, seat)) })
    }

    /// What became of exceptional packets, `share` of each batch, and whether every regular one got through.
    fn outcome(&self, share: usize) -> (String, bool) {
        let (tally, stats) = (self.rig.tally(), self.rig.router.stats());
        let exceptional = tally.offered / BATCH as u64 * share as u64;
        let regular = tally.offered - exceptional;
        let counts =
            self.above.as_ref().and_then(|(_, _, seat)| Some(self.rig.router.levels()?.counts(*seat)));
        let counts = counts.unwrap_or_default();
        let notes = format!(
            "of {exceptional} exceptional packets {} were for full IP (if its limits let them), {} were answered with errors, {} went up, {} found no room there",
            stats.exceptions.iter().sum::<u64>(),
            stats.errors,
            counts.up,
            counts.full + counts.over_rate
        );
        // What full IP forwards of them, and errors, go out besides.
        (notes, tally.forwarded >= regular && tally.dropped <= exceptional)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floods_leave_regular_packets_alone() {
        for exception in Exception::ALL {
            let mut side = Flooded::new(Some(exception)).unwrap();
            let frames = exception.frames(32);
            let mut now = BEGIN;
            for _ in 0..100 {
                now += Nanos(APART);
                side.rig.tick(now);
                side.rig.time_batch(&frames);
            }
            let (notes, got_through) = side.outcome(32);
            assert!(got_through, "{notes}");
            assert!(notes.starts_with("of 3200 exceptional packets"), "{notes}");
            if exception == Exception::Up {
                assert!(notes.ends_with("1024 went up, 2176 found no room there"), "{notes}");
            }
        }
    }
}
