//! Section 4.7: packets through the control level with the data path's budget in use.

use super::clock;
use crate::Settings;
use crate::book::{Book, paper};
use longwire_bench::guest::{Guest, PacketWork, turns_of};
use longwire_bench::rig::{FrameSpec, PORTS, Rig};
use longwire_bench::{BenchError, apart, require_two_processors};
use longwire_packet::BATCH;
use longwire_program::{Budget, Program, Resource, assemble};
use longwire_punt::{Limits, Punt};
use longwire_report::Row;
use longwire_router::{Admission, Key};
use longwire_units::Nanos;
use std::time::{Duration, Instant};

/// Packets per second of the paper's eight ports, and of those that go up.
const OFFERED: u64 = 1_128_000;
const UP: u64 = 310_000;
/// Cycles of service per packet, and cycles per second of the paper's Pentium.
const CYCLES: u32 = 1510;
const CYCLES_A_SECOND: f64 = 733e6;
const TIME: Duration = Duration::from_secs(3);
const QUICK: Duration = Duration::from_millis(200);
/// Destination port of its packets.
pub(super) const UP_PORT: u16 = 53;

/// Returns the clock rate in cycles per second.
type Clock<'c> = &'c dyn Fn() -> Result<f64, BenchError>;

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    // The paper's cycles are its Pentium's, of 733 MHz (section 2.2): 2060 ns.
    let theirs = || Ok(CYCLES_A_SECOND);
    let clocks: [(&str, Clock<'_>); 2] = [
        ("1510 cycles at the paper's 733 MHz each", &theirs),
        ("1510 cycles of this processor each", &clock),
    ];
    for (what, clock) in clocks {
        let name =
            format!("robustness: 310 kpps of 1.128 Mpps through the control level, {what}, not served");
        book.row(paper(Row::new(name, "packets"), 0).expected(0), |row| {
            settings.require_real_time("speed")?;
            require_two_processors("it needs two processors")?;
            let service = Duration::from_secs_f64(f64::from(CYCLES) / clock()?);
            let mut pipeline = Pipeline::new(service)?;
            let time = settings.choose(TIME, QUICK);
            let seconds = apart(|| {
                longwire_engine::clock::settle_thread(Some(0));
                pipeline.run(settings, time)
            })?;
            let row = row.extra("service_ns", service.as_nanos() as u64);
            Ok(pipeline.judge(row, seconds).note(format!("{} ns of service for each", service.as_nanos())))
        });
    }
}

/// A router with its whole budget in use, a control process above it, and packets for both.
struct Pipeline {
    rig: Rig,
    attachment: longwire_punt::AttachmentId,
    guest: Guest,
    up: u64,
    /// Number of packets offered.
    offered: u64,
    /// The longest time between two clock readings.
    pause: Duration,
    used: String,
}

impl Pipeline {
    fn new(service: Duration) -> Result<Self, BenchError> {
        let mut rig = Rig::new(Admission { budget: Budget::VRP, ..Admission::default() })?;
        let mut punt = Punt::new((0..PORTS).collect());
        let (mut guest, attachment) = Guest::expected(&mut punt, limits())?;
        rig.set_levels(punt);
        rig.install(
            upward()?,
            FrameSpec { ports: [1024, UP_PORT], ..FrameSpec::UDP }.flow(),
            Some(attachment),
        )?;
        let used = fill(&mut rig)?;
        guest.start(PacketWork { turns: turns_of(service).max(1), body: false, pass: true })?;
        let begin = Instant::now();
        while !rig.router.levels().is_some_and(|punt| punt.is_taken(attachment)) {
            if guest.has_ended() || begin.elapsed() > Duration::from_secs(20) {
                return Err(BenchError::failed("joining the router", "the process above does not come"));
            }
            rig.tick(Nanos::from_secs(1) + Nanos(begin.elapsed().as_nanos() as u64));
        }
        Ok(Self { rig, attachment, guest, up: 0, offered: 0, pause: Duration::ZERO, used })
    }

    /// Offers packets by the clock, and waits for the last ones. Returns the seconds during which they were
    /// offered.
    fn run(&mut self, settings: &Settings<'_>, time: Duration) -> Result<f64, BenchError> {
        let spec = |port| FrameSpec { ports: [1024, port], ..FrameSpec::UDP };
        let [regular, up] = [spec(54).frame(), spec(UP_PORT).frame()];
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
            let now = begin.elapsed();
            self.pause = self.pause.max(now.saturating_sub(elapsed));
            elapsed = now;
        }
        let seconds = begin.elapsed().as_secs_f64();
        while self.rig.inside() > 0 && begin.elapsed() < time + Duration::from_secs(2) {
            self.rig.tick(from + Nanos(begin.elapsed().as_nanos() as u64));
        }
        Ok(seconds)
    }

    fn judge(mut self, row: Row, seconds: f64) -> Row {
        let tally = self.rig.tally();
        let counts = self.rig.router.levels().map(|punt| punt.counts(self.attachment)).unwrap_or_default();
        let lost = tally.offered - tally.forwarded.min(tally.offered);
        // Packets without an answer in time did not go through the control level.
        let unserved = self.up - counts.verdicts.min(self.up);
        let kpps = |packets: u64| packets as f64 / seconds / 1e3;
        let kept_up = kpps(self.offered) >= 0.99 * OFFERED as f64 / 1e3;
        let ended = if self.guest.has_ended() { "; the process above has ended" } else { "" };
        row.measured(lost.max(unserved))
            .judged(lost == 0 && unserved == 0 && kept_up && tally.dropped == 0)
            .extra("lost", lost)
            .extra("offered", self.offered)
            .extra("up", counts.up)
            .extra("verdicts", counts.verdicts)
            .note(format!(
                "{:.0} kpps were offered, {:.0} kpps of them went up and {:.0} were decided about there; {} \
                 answers came after 20 ms, {} packets found no room, {lost} were lost; the longest pause of \
                 this thread was {:.1} ms; in use: {}{ended}",
                kpps(self.offered),
                kpps(counts.up),
                kpps(counts.verdicts),
                counts.late + counts.returned,
                counts.full + counts.over_rate,
                self.pause.as_secs_f64() * 1e3,
                self.used
            ))
    }
}

/// A program that passes its packets, which then go up.
pub(super) fn upward() -> Result<Program, BenchError> {
    Ok(Program::new("upward", assemble("r0 = 2\n exit")?, []))
}

/// The usual deadlines: 20 ms for an answer, a second for any. Packets of a tenth of a second may be up at
/// once, which is a setting (`packets`).
fn limits() -> Limits {
    Limits { packets: 32_768, ..Limits::default() }
}

/// Installs a program for all packets that uses the rest of the budget. Returns a description of its use.
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

/// A program of exactly this many cycles and loads of 4 bytes of state.
fn filler(cycles: u64, loads: u64) -> Result<Program, BenchError> {
    let mut text = format!(
        "r7 = *(u32 *)(r1 + 12)\n r8 = *(u32 *)(r1 + 16)\n r1 = {}\n call lw_flow_state\n r6 = r0\n",
        (loads * 4).max(4)
    );
    for load in 0..loads {
        text += &format!("r3 = *(u32 *)(r6 + {})\n r7 += r3\n", load * 4);
    }
    // Three above, an addition for each load, which itself is a transfer, and five at the end.
    for at in 0..cycles.saturating_sub(3 + loads + 5) {
        text += if at % 2 == 0 { "r7 += r8\n" } else { "r8 ^= r7\n" };
    }
    text += "r7 ^= r8\n r0 = 2\n if r7 != 0x12345677 goto out\n r0 = 1\n out: exit";
    Ok(Program::new("suite", assemble(&text)?, []))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_used_up() {
        let mut rig = Rig::new(Admission { budget: Budget::VRP, ..Admission::default() }).unwrap();
        rig.install(upward().unwrap(), FrameSpec::UDP.flow(), None).unwrap();
        let used = fill(&mut rig).unwrap();
        assert_eq!(used, "240 of 240 cycles, 24 of 24 4-byte transfers, 96 of 96 bytes of state");
        assert!(rig.install(upward().unwrap(), Key::All, None).is_err());
    }
}
