//! Section 4.7: floods of exceptional packets, and their effect on regular ones: by time, and by
//! instructions, which no other program on the machine influences.

use super::callgrind::counted_between;
use super::robust::{UP_PORT, upward};
use crate::Settings;
use crate::book::{Book, paper};
use crate::plot::{Plot, Style};
use longwire_bench::guest::{Guest, NAME, RATE};
use longwire_bench::rig::{Frame, FrameSpec, PORTS, Rig};
use longwire_bench::{BenchError, Sample};
use longwire_packet::BATCH;
use longwire_punt::client::{Control, Hello};
use longwire_punt::{
    AttachmentId, Counts, Inline, InlineService, Limits, Punt, PuntedPacket, Service, ServiceOutput, TRIP,
    Turns, Verdict,
};
use longwire_report::Row;
use longwire_router::Admission;
use longwire_units::Nanos;
use std::time::{Duration, Instant};

/// Kind of exceptional packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exception {
    Options,
    Expired,
    /// For a control process that does not answer.
    Up,
    /// For a service that answers all, within its share of the worker.
    Answered,
}

/// Numbers of exceptional packets in a batch.
const SHARES: [usize; 4] = [16, 32, 48, 64];
const GROUPS: usize = 300;
const FEW_GROUPS: usize = 4;
/// Batches per time measurement.
const GROUP: usize = 64;
/// Packet time between two batches in nanoseconds: 64 packets at 3.47 Mpps.
const APART: u64 = 18_444;
/// Worker time reserved for a service that answers, in nanoseconds per second: 1 %.
const ASIDE: u64 = 10_000_000;
/// Required rate of regular packets during a flood, in percent of their rate without it.
const LEFT: f64 = 98.0;

/// Regular packets, of no program's flow.
const REGULAR: FrameSpec = FrameSpec { ports: [1024, 54], ..FrameSpec::UDP };

/// Whether a frame that the router sent is a regular packet: exceptional ones have options or another port,
/// and errors another protocol.
fn is_regular(frame: &[u8]) -> bool {
    frame.len() >= 38
        && (frame[14], frame[22], frame[23]) == (0x45, REGULAR.ttl - 1, REGULAR.protocol)
        && frame[36..38] == REGULAR.ports[1].to_be_bytes()
}

impl Exception {
    const ALL: [Self; 4] = [Self::Options, Self::Expired, Self::Up, Self::Answered];

    const fn name(self) -> &'static str {
        match self {
            Self::Options => "IP options",
            Self::Expired => "hop limit 1",
            Self::Up => "for a control process that answers nothing",
            Self::Answered => "for a service that answers all, 1 % of the worker set aside",
        }
    }

    /// What a flood of them exercises.
    const fn exercises(self) -> &'static str {
        match self {
            Self::Options => {
                "exercises what keeps full IP from taking more than its share: 1000 packets with options a \
                 second and port"
            }
            Self::Expired => {
                "exercises the limits of full IP and of errors: 20 000 exceptions and 1000 time-exceeded \
                 messages a second and port"
            }
            Self::Up => {
                "exercises the control level: 1024 packets are up and none is answered, all others are \
                 refused before their program runs"
            }
            Self::Answered => {
                "exercises shares by time: packets go up and come back for a hundredth of the worker's time, \
                 400 ns each, and all others are refused before their program runs; the service is a \
                 function in line"
            }
        }
    }

    const fn spec(self) -> FrameSpec {
        match self {
            Self::Options => FrameSpec { options: true, ..REGULAR },
            Self::Expired => FrameSpec { ttl: 1, ..REGULAR },
            Self::Up | Self::Answered => FrameSpec { ports: [1024, UP_PORT], ..REGULAR },
        }
    }

    /// A batch with this many of them, spread evenly.
    fn frames(self, count: usize) -> Vec<(u16, Frame)> {
        let spec = |at: usize| if at * count % BATCH + count >= BATCH { self.spec() } else { REGULAR };
        (0..BATCH).map(|place| (0, spec(place).frame())).collect()
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
                let FloodResults { plain, without, with, notes, correct } =
                    flood(settings, exception, share)?;
                let ratio = without.least() / with.least() * 100.0;
                points.push((percent as f64, ratio));
                let row = row.measured((ratio * 10.0).round() / 10.0).at_least().note(format!(
                    "a packet takes {:.1} ns, {:.1} ns without exceptional ones in the same router, {:.1} in \
                     one without programs: regular packets of an overload get through at this share of their \
                     rate",
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
    set_aside(book);
}

/// Worker time that a level uses in a flood, by the prices of its work and by packets' times: no clock
/// decides.
fn set_aside(book: &mut Book<'_>) {
    let settings = book.settings;
    let name = "robustness: 100 % for a service that answers all, part of the worker that moving them takes";
    // 1 % of the time, and of 10 ms of saved credit.
    let most = |time: u64| (time / 100 + 100_000 + TRIP) as f64 * 100.0 / time as f64;
    let batches = settings.choose(54_200, 5420);
    let time = batches as u64 * APART;
    book.row(Row::new(name, "%").expected((most(time) * 1e4).round() / 1e4), |row| {
        let mut side = FloodedRouter::new(Some(Exception::Answered))?;
        let frames = Exception::Answered.frames(BATCH);
        let mut now = BEGIN;
        for _ in 0..batches {
            settings.go_on()?;
            now += Nanos(APART);
            side.rig.tick(now);
            side.rig.time_batch(&frames);
        }
        side.rig.tick(now + Nanos(1));
        let counts = side.counts();
        let part = counts.worker_ns as f64 * 100.0 / time as f64;
        let whole = counts.up + counts.over_time == (batches * BATCH) as u64 && counts.up == counts.verdicts;
        Ok(row
            .measured((part * 1e4).round() / 1e4)
            .judged(part <= most(time) && part > 1.0 && whole)
            .extra("up", counts.up)
            .extra("refused", counts.over_time)
            .note(format!(
                "3.47 Mpps for {:.1} s of packets' time, 1 % set aside: {} packets of {TRIP} ns went up and \
                 came back, {} were refused",
                time as f64 / 1e9,
                counts.up,
                counts.over_time
            )))
    });
}

/// Instructions per packet if all are exceptional, and per regular packet in the same router.
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
            .note(format!(
                "{with:.0} and {without:.0}, counted by valgrind's callgrind as a difference of \
                two runs; bringing packets in and out is in both"
            )))
    });
}

fn per_packet(settings: &Settings<'_>, exception: Exception, share: usize) -> Result<f64, BenchError> {
    const GROUPS: [u64; 2] = [4, 20];
    let stage = |groups| format!("flood {} {share} {groups}", exception as usize);
    let counts = counted_between(settings, &[], GROUPS, stage)?;
    let packets = (GROUPS[1] - GROUPS[0]) * (GROUP * BATCH) as u64;
    Ok(counts.instructions as f64 / packets as f64)
}

/// Runs a flood in this process as specified by `words`: the exception, their number per batch, and the
/// number of groups.
pub(super) fn play<'w>(mut words: impl Iterator<Item = &'w str>) -> Option<()> {
    let mut number = || words.next()?.parse::<usize>().ok();
    let (exception, share, groups) = (*Exception::ALL.get(number()?)?, number()?, number()?);
    // The parent sees from the numbers if this failed.
    let mut side = FloodedRouter::new(Some(exception)).ok()?;
    let frames = exception.frames(share.min(BATCH));
    let mut now = BEGIN;
    for _ in 0..groups * GROUP {
        now += Nanos(APART);
        side.rig.tick(now);
        side.rig.time_batch(&frames);
    }
    Some(())
}

/// After any attachment has joined.
const BEGIN: Nanos = Nanos::from_secs(60);

struct FloodResults {
    /// Nanoseconds per packet: of a router without programs, of this one with regular packets only, and with
    /// exceptional ones.
    plain: Sample,
    without: Sample,
    with: Sample,
    /// Outcomes of exceptional packets.
    notes: String,
    /// Whether every regular packet was forwarded.
    correct: bool,
}

fn flood(settings: &Settings<'_>, exception: Exception, share: usize) -> Result<FloodResults, BenchError> {
    settings.require_real_time("speed")?;
    let frames = [exception.frames(0), exception.frames(0), exception.frames(share)];
    let mut sides = [
        FloodedRouter::new(None)?,
        FloodedRouter::new(Some(exception))?,
        FloodedRouter::new(Some(exception))?,
    ];
    let mut costs = [const { Vec::new() }; 3];
    let mut now = BEGIN;
    for _ in 0..settings.choose(GROUPS, FEW_GROUPS) {
        settings.go_on()?;
        let mut sums = [Duration::ZERO; 3];
        for _ in 0..GROUP {
            now += Nanos(APART);
            for ((side, frames), sum) in sides.iter_mut().zip(&frames).zip(&mut sums) {
                // Returned packets are received in the first of both.
                let begin = Instant::now();
                side.rig.tick(now);
                *sum += begin.elapsed();
                *sum += side.carry(frames);
            }
        }
        for (costs, sum) in costs.iter_mut().zip(sums) {
            costs.push(sum.as_nanos() as f64 / (GROUP * BATCH) as f64);
        }
    }
    let [plain, without, with] = costs.map(Sample::from_iter);
    let [_, regular, mixed] = sides;
    let (notes, got_through) = mixed.outcome(share);
    Ok(FloodResults { plain, without, with, notes, correct: got_through && regular.outcome(0).1 })
}

/// A flooded router, with its silent control process, if any.
struct FloodedRouter {
    rig: Rig,
    /// Regular packets that it sent.
    passed: u64,
    attachment: Option<AttachmentId>,
    /// The control process that does not answer.
    _silent: Option<(Guest, Control)>,
}

/// A service that answers each packet with "forward".
struct Passes;

impl Service for Passes {
    fn handle(&mut self, _: &mut PuntedPacket<'_>, _: &mut ServiceOutput) -> Verdict {
        Verdict::Pass
    }
}

impl FloodedRouter {
    /// Without programs and levels unless packets go up.
    fn new(exception: Option<Exception>) -> Result<Self, BenchError> {
        let mut rig = Rig::new(Admission::default())?;
        match exception {
            Some(Exception::Up) => {}
            Some(Exception::Answered) => return Self::answered(rig),
            _ => return Ok(Self { rig, passed: 0, attachment: None, _silent: None }),
        }
        let mut punt = Punt::new((0..PORTS).collect());
        let hour = Nanos::from_secs(3600);
        let limits = Limits { answer_within: hour, patience: hour, ..Limits::default() };
        let (guest, attachment) = Guest::expected(&mut punt, limits)?;
        rig.set_levels(punt);
        rig.install(upward()?, Exception::Up.spec().flow(), Some(attachment))?;
        let hello = Hello { name: NAME.into(), packets: RATE, cycles: 0, share: 1 };
        let silent = Control::connect(&guest.socket(), &hello)
            .map_err(|error| BenchError::failed("joining the router", error))?;
        let begin = Instant::now();
        while !rig.router.levels().is_some_and(|punt| punt.is_taken(attachment)) {
            if begin.elapsed() > Duration::from_secs(20) {
                return Err(BenchError::failed("joining the router", "nobody comes"));
            }
            rig.tick(Nanos::from_secs(1) + Nanos(begin.elapsed().as_nanos() as u64));
        }
        Ok(Self { rig, passed: 0, attachment: Some(attachment), _silent: Some((guest, silent)) })
    }

    /// With an inline service, limited to a share of the worker's time.
    fn answered(mut rig: Rig) -> Result<Self, BenchError> {
        let service = InlineService {
            name: "answers".into(),
            service: Box::new(Passes),
            time: Nanos::ZERO,
            weight: 1,
            limits: Limits::default(),
        };
        let turns = Turns::new("fifo").map_err(|error| BenchError::failed("making a slow path", error))?;
        let mut punt = Punt::simulated((0..PORTS).collect(), Inline::new(vec![service], turns));
        punt.set_aside(None, Some(ASIDE));
        rig.set_levels(punt);
        let attachment = AttachmentId::slow(0);
        rig.install(upward()?, Exception::Answered.spec().flow(), Some(attachment))?;
        Ok(Self { rig, passed: 0, attachment: Some(attachment), _silent: None })
    }

    /// Times a batch, and counts the regular packets that the router sends.
    fn carry(&mut self, frames: &[(u16, Frame)]) -> Duration {
        let passed = &mut self.passed;
        self.rig.time_batch_and(frames, |_, frame| *passed += u64::from(is_regular(frame)))
    }

    /// Counters of packets that go up.
    fn counts(&self) -> Counts {
        self.attachment
            .and_then(|attachment| Some(self.rig.router.levels()?.counts(attachment)))
            .unwrap_or_default()
    }

    /// Outcomes of exceptional packets, `share` of each batch, and whether every regular one was forwarded.
    fn outcome(&self, share: usize) -> (String, bool) {
        let (tally, stats) = (self.rig.tally(), self.rig.router.stats());
        let exceptional = tally.offered / BATCH as u64 * share as u64;
        let regular = tally.offered - exceptional;
        let counts = self.counts();
        let notes = format!(
            "of {exceptional} exceptional packets {} were for full IP (if its limits let them), {} were \
             answered with errors, {} went up, {} found no room there",
            stats.exceptions.iter().map(|(_, packets)| packets).sum::<u64>(),
            stats.errors,
            counts.up,
            counts.full + counts.over_rate + counts.over_time
        );
        (notes, self.passed == regular)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome of 100 batches of these frames, half of which are exceptional.
    fn flooded(exception: Exception, frames: &[(u16, Frame)]) -> (String, bool) {
        let mut side = FloodedRouter::new(Some(exception)).unwrap();
        let mut now = BEGIN;
        for _ in 0..100 {
            now += Nanos(APART);
            side.rig.tick(now);
            side.carry(frames);
        }
        side.outcome(BATCH / 2)
    }

    #[test]
    fn lost_regular_packets_are_not_made_up_for_by_exceptional_ones() {
        let mut frames = Exception::Answered.frames(BATCH / 2);
        let (_, frame) = frames.iter_mut().find(|(_, frame)| *frame == REGULAR.frame()).unwrap();
        // A wrong checksum.
        frame[24] ^= 1;
        assert!(!flooded(Exception::Answered, &frames).1);
    }

    #[test]
    fn floods_leave_regular_packets_alone() {
        for exception in Exception::ALL {
            let (notes, got_through) = flooded(exception, &exception.frames(BATCH / 2));
            assert!(got_through, "{notes}");
            assert!(notes.starts_with("of 3200 exceptional packets"), "{notes}");
            if exception == Exception::Answered {
                // 1 % of 10 ms of credit and of 99 times 18.444 us, in pieces of 400 ns.
                assert!(notes.ends_with("296 went up, 2904 found no room there"), "{notes}");
            }
            if exception == Exception::Up {
                assert!(notes.ends_with("1024 went up, 2176 found no room there"), "{notes}");
            }
        }
    }
}
