//! Section 4.7: packets through the control level with the data path's budget in use, and floods of exceptional packets.

use super::clock;
use super::together::processors;
use crate::Settings;
use crate::book::{Book, paper};
use crate::plot::{Plot, Style};
use longwire_bench::guest::{Guest, NAME, RATE, Work, turns_of};
use longwire_bench::rig::{Frame, PORTS, Rig, Said};
use longwire_bench::{BenchError, Sample};
use longwire_packet::BATCH;
use longwire_program::{Budget, Program, Resource, assemble};
use longwire_punt::client::{Control, Hello};
use longwire_punt::{Limits, Punt};
use longwire_report::Row;
use longwire_router::{Admission, Key};
use longwire_units::Nanos;
use std::time::{Duration, Instant};

/// Packets a second of the paper's eight ports, and those of them that go up.
const OFFERED: u64 = 1_128_000;
const UP: u64 = 310_000;
/// Cycles of service of each of these.
const CYCLES: u32 = 1510;
const TIME: Duration = Duration::from_secs(3);
const QUICK: Duration = Duration::from_millis(200);
/// Its packets are for this port.
const UP_PORT: u16 = 53;

pub(super) fn rows(book: &mut Book<'_>) {
    control_level(book);
    floods(book);
}

fn control_level(book: &mut Book<'_>) {
    let settings = book.settings;
    let name = "robustness: 310 kpps through the control level out of 1.128 Mpps, packets lost";
    book.row(paper(Row::new(name, "packets"), 0).expected(0), |row| {
        settings.require_real_time("speed")?;
        if processors() < 2 {
            return Err(BenchError::NotHere("it needs two processors".into()));
        }
        let service = Duration::from_secs_f64(f64::from(CYCLES) / clock()?);
        let mut pipeline = Pipeline::new(service)?;
        let time = settings.choose(TIME, QUICK);
        let run = || {
            longwire_engine::clock::settle_thread(Some(0));
            pipeline.run(settings, time)
        };
        let seconds = std::thread::scope(|scope| {
            scope.spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        Ok(pipeline.judge(row, seconds))
    });
}

/// A router with the whole budget in use, a control process above it, and packets for both.
struct Pipeline {
    rig: Rig,
    seat: longwire_punt::SeatId,
    guest: Guest,
    up: u64,
    /// Packets from the first to the last.
    offered: u64,
    used: String,
}

impl Pipeline {
    fn new(service: Duration) -> Result<Self, BenchError> {
        let mut rig = Rig::new(Admission { budget: Budget::VRP, ..Admission::default() })?;
        let mut punt = Punt::new((0..PORTS).collect());
        let (mut guest, seat) = Guest::expected(&mut punt, patient())?;
        rig.set_levels(punt);
        rig.install(upward()?, Said { ports: [1024, UP_PORT], ..Said::UDP }.flow(), Some(seat))?;
        let used = fill(&mut rig)?;
        guest.start(Work { turns: turns_of(service).max(1), body: false, pass: true })?;
        let begin = Instant::now();
        while !rig.router.levels().is_some_and(|punt| punt.is_taken(seat)) {
            if guest.has_ended() || begin.elapsed() > Duration::from_secs(20) {
                return Err(BenchError::NotHere("the process above does not come".into()));
            }
            rig.tick(Nanos::from_secs(1) + Nanos(begin.elapsed().as_nanos() as u64));
        }
        Ok(Self { rig, seat, guest, up: 0, offered: 0, used })
    }

    /// Offers packets by the clock, and waits for the last ones. Answers for how many seconds they were offered.
    fn run(&mut self, settings: &Settings<'_>, time: Duration) -> Result<f64, BenchError> {
        let said = |port| Said { ports: [1024, port], ..Said::UDP };
        let [regular, up] = [said(54).frame(), said(UP_PORT).frame()];
        let from = Nanos::from_secs(30);
        let begin = Instant::now();
        let mut elapsed = begin.elapsed();
        while elapsed < time {
            settings.go_on()?;
            let due = (elapsed.as_nanos() * u128::from(OFFERED) / 1_000_000_000) as u64;
            while self.offered < due {
                let count = (due - self.offered).min(BATCH as u64);
                let goes_up = |at: u64| (at + 1) * UP / OFFERED > at * UP / OFFERED;
                let frames = (self.offered..self.offered + count)
                    .map(|at| (0, if goes_up(at) { &up } else { &regular }));
                self.rig.tick(from + Nanos(begin.elapsed().as_nanos() as u64));
                let batch = self.rig.take_in(frames);
                self.rig.forward(&batch);
                self.rig.give_out(&batch, |_, frame| {
                    std::hint::black_box(frame);
                });
                self.up += (self.offered..self.offered + count).filter(|&at| goes_up(at)).count() as u64;
                self.offered += count;
            }
            self.rig.tick(from + Nanos(elapsed.as_nanos() as u64));
            elapsed = begin.elapsed();
        }
        let seconds = begin.elapsed().as_secs_f64();
        while self.rig.inside() > 0 && begin.elapsed() < time + Duration::from_secs(2) {
            self.rig.tick(from + Nanos(begin.elapsed().as_nanos() as u64));
        }
        Ok(seconds)
    }

    fn judge(mut self, row: Row, seconds: f64) -> Row {
        let tally = self.rig.tally();
        let counts = self.rig.router.levels().map(|punt| punt.counts(self.seat)).unwrap_or_default();
        let lost = tally.offered - tally.forwarded.min(tally.offered);
        // Packets that nobody above decided about did not go through the control level.
        let served = counts.up == self.up && counts.verdicts == self.up;
        let kpps = |packets: u64| packets as f64 / seconds / 1e3;
        let kept_up = kpps(self.offered) >= 0.99 * OFFERED as f64 / 1e3;
        let ended = if self.guest.has_ended() { "; the process above has ended" } else { "" };
        row.measured(lost)
            .judged(lost == 0 && served && kept_up && tally.dropped == 0)
            .extra("offered", self.offered)
            .extra("up", counts.up)
            .extra("verdicts", counts.verdicts)
            .note(format!(
                "{:.0} kpps were offered, {:.0} kpps of them went up and {:.0} were decided about there, {CYCLES} cycles each; {} came too late, {} found no room; in use: {}{ended}",
                kpps(self.offered),
                kpps(counts.up),
                kpps(counts.verdicts),
                counts.late + counts.returned,
                counts.full + counts.over_rate,
                self.used
            ))
    }
}

/// Lets its packets pass, which go up then.
fn upward() -> Result<Program, BenchError> {
    Ok(Program::new("upward", assemble("r0 = 2\n exit")?, []))
}

/// Nobody is cut off for a pause of the machine.
fn patient() -> Limits {
    Limits {
        packets: 32_768,
        answer_within: Nanos::from_secs(2),
        patience: Nanos::from_secs(5),
        ..Limits::default()
    }
}

/// Installs a program for all packets that takes what is left of the budget; says what is in use then.
fn fill(rig: &mut Rig) -> Result<String, BenchError> {
    let table = rig.router.forwarders();
    let left =
        |resource| Budget::VRP.limit(resource).unwrap_or(0).saturating_sub(table.need().amount(resource));
    let loads = left(Resource::Transfers).min(left(Resource::StateBytes) / 4);
    let program = filler(left(Resource::Cycles), loads)?;
    rig.install(program, Key::All, None)?;
    let table = rig.router.forwarders();
    let used = |resource: Resource| {
        let limit = Budget::VRP.limit(resource).unwrap_or(0);
        format!("{} of {limit} {}", table.need().amount(resource), resource.name())
    };
    Ok([Resource::Cycles, Resource::Transfers, Resource::StateBytes].map(used).join(", "))
}

/// A program of exactly so many instructions, with so many loads of 4 bytes of state.
fn filler(instructions: u64, loads: u64) -> Result<Program, BenchError> {
    let mut text = format!(
        "r7 = *(u32 *)(r1 + 12)\n r8 = *(u32 *)(r1 + 16)\n r1 = {}\n call lw_flow_state\n r6 = r0\n",
        (loads * 4).max(4)
    );
    for load in 0..loads {
        text += &format!("r3 = *(u32 *)(r6 + {})\n r7 += r3\n", load * 4);
    }
    // What stands above, and five at the end.
    for at in 0..instructions.saturating_sub(5 + 2 * loads + 5) {
        text += if at % 2 == 0 { "r7 += r8\n" } else { "r8 ^= r7\n" };
    }
    text += "r7 ^= r8\n r0 = 2\n if r7 != 0x12345677 goto out\n r0 = 1\n out: exit";
    Ok(Program::new("suite", assemble(&text)?, []))
}

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

fn floods(book: &mut Book<'_>) {
    let settings = book.settings;
    let mut plot =
        Plot::new("Robustness: a flood of exceptional packets", "exceptional, %", "rate, % of that without");
    for (exception, what) in [
        (Exception::Options, "IP options"),
        (Exception::Expired, "hop limit 1"),
        (Exception::Up, "for a control process that answers nothing"),
    ] {
        let mut points = Vec::new();
        for share in SHARES {
            let percent = share * 100 / BATCH;
            let name = format!("robustness: {percent} % exceptional, {what}, rate of that without");
            book.row(paper(Row::new(name, "%"), 100).expected(98), |row| {
                let [without, with] = flood(settings, exception, share)?;
                let ratio = without.least() / with.least() * 100.0;
                points.push((percent as f64, ratio));
                Ok(row.measured((ratio * 10.0).round() / 10.0).at_least().note(format!(
                    "a packet takes {:.1} ns, {:.1} ns without exceptional ones: regular packets of an overload get through at this share of their rate",
                    with.least(),
                    without.least()
                )))
            });
        }
        plot = plot.with(what, Style::Line, points);
    }
    book.plot(plot.with("98 %", Style::Reference, vec![(25.0, 98.0), (100.0, 98.0)]));
}

/// Nanoseconds a packet, of regular packets alone, and with so many exceptional ones in each batch.
fn flood(settings: &Settings<'_>, exception: Exception, share: usize) -> Result<[Sample; 2], BenchError> {
    settings.require_real_time("speed")?;
    let regular = Said { ports: [1024, 54], ..Said::UDP };
    let said = match exception {
        Exception::Options => Said { options: true, ..regular },
        Exception::Expired => Said { ttl: 1, ..regular },
        Exception::Up => Said { ports: [1024, UP_PORT], ..regular },
    };
    let frames = |count: usize| -> Vec<(u16, Frame)> {
        let at = |at: usize| if at * count % BATCH + count >= BATCH { said } else { regular };
        (0..BATCH).map(|place| (0, at(place).frame())).collect()
    };
    let frames = [frames(0), frames(share)];
    let mut sides = [Flooded::new(exception)?, Flooded::new(exception)?];
    let mut costs = [Vec::new(), Vec::new()];
    // After all that joining may have taken.
    let mut now = Nanos::from_secs(60);
    for _ in 0..settings.choose(GROUPS, FEW_GROUPS) {
        settings.go_on()?;
        let mut sums = [Duration::ZERO; 2];
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
    Ok(costs.map(Sample::from_iter))
}

/// A router that is flooded, with who does not answer, if someone is to be there.
struct Flooded {
    rig: Rig,
    _above: Option<(Guest, Control)>,
}

impl Flooded {
    fn new(exception: Exception) -> Result<Self, BenchError> {
        let mut rig = Rig::new(Admission::default())?;
        if exception != Exception::Up {
            return Ok(Self { rig, _above: None });
        }
        let mut punt = Punt::new((0..PORTS).collect());
        let hour = Nanos::from_secs(3600);
        let limits = Limits { answer_within: hour, patience: hour, ..Limits::default() };
        let (guest, seat) = Guest::expected(&mut punt, limits)?;
        rig.set_levels(punt);
        let key = Said { ports: [1024, UP_PORT], ..Said::UDP }.flow();
        rig.install(upward()?, key, Some(seat))?;
        // Admission charges every packet the dearest program of a flow, so regular packets have one, too.
        rig.install(upward()?, Said { ports: [1024, 54], ..Said::UDP }.flow(), None)?;
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
        Ok(Self { rig, _above: Some((guest, silent)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_used_up() {
        let mut rig = Rig::new(Admission { budget: Budget::VRP, ..Admission::default() }).unwrap();
        rig.install(upward().unwrap(), Said::UDP.flow(), None).unwrap();
        let used = fill(&mut rig).unwrap();
        assert_eq!(used, "240 of 240 cycles, 24 of 24 4-byte transfers, 96 of 96 bytes of state");
        assert!(rig.install(upward().unwrap(), Key::All, None).is_err());
    }
}
