//! Table 4 and sections 3.6 and 3.7: packet rates of the levels above, and the time left for each packet.

use super::clock;
use crate::Settings;
use crate::book::{Book, paper};
use longwire_bench::guest::{PacketWork, turns_of};
use longwire_bench::punt::{Level, up_and_back};
use longwire_bench::{BenchError, Sample};
use longwire_punt::WaitMode;
use longwire_report::{Row, Scalar};
use std::time::Duration;

const TIME: Duration = Duration::from_millis(300);
const QUICK: Duration = Duration::from_millis(30);
const RUNS: usize = 3;
/// Delays are doubled up to this one.
const LONGEST: u64 = 65_536;
/// A delay that keeps this share of the rate is treated as free.
const SAME: f64 = 0.95;

/// A level and its packets.
struct Case {
    name: &'static str,
    level: Level,
    /// Bytes of a frame without FCS.
    len: usize,
    body: bool,
    /// The paper's packets per second, and remaining cycles.
    rate: Scalar,
    spare: Option<u64>,
}

fn cases() -> [Case; 5] {
    let case = |name, level, len, body, rate, spare| Case { name, level, len, body, rate, spare };
    let (polling, woken) = (Level::Slow(WaitMode::Polling), Level::Slow(WaitMode::Woken));
    [
        case("section 3.6: slow path, polling, 64 bytes", polling, 60, false, 526_000.into(), Some(0)),
        case(
            "section 3.6: slow path, woken, 64 bytes",
            woken,
            60,
            false,
            "significantly slower".into(),
            None,
        ),
        case("table 4: control level, 64 bytes", Level::Control, 60, false, 534_000.into(), Some(500)),
        case("table 4: control level, 1500 bytes, header only", Level::Control, 1496, false, "".into(), None),
        case(
            "table 4: control level, 1500 bytes, body on demand",
            Level::Control,
            1496,
            true,
            43_600.into(),
            Some(800),
        ),
    ]
}

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    for case in cases() {
        let row = paper(Row::new(case.name, "pps"), case.rate.clone());
        book.row(row, |row| {
            let rates = sample(settings, &case, 0)?;
            let ns = 1e9 / rates.most();
            let note = format!("{ns:.1} ns a packet, up and back; the best of short times");
            Ok(row
                .measured(rates.most())
                .extra("ns_per_packet", ns)
                .extra("median", rates.median())
                .note(note))
        });
        let Some(cycles) = case.spare else { continue };
        let row = paper(Row::new(format!("{}, spare cycles", case.name), "cycles"), cycles);
        book.row(row, |row| {
            let hertz = clock()?;
            let spare = spare(settings, &case)?;
            let cycles = (spare as f64 * hertz / 1e9).round();
            Ok(row.measured(cycles).extra("spare_ns", spare).note(format!(
                "the longest delay of those tried, each twice the one before, with which the rate stays \
                 above 95 %: {spare} ns, at {:.2} GHz",
                hertz / 1e9
            )))
        });
    }
}

fn sample(settings: &Settings<'_>, case: &Case, delay: u64) -> Result<Sample, BenchError> {
    settings.require_real_time("speed")?;
    let turns = if delay == 0 { 0 } else { turns_of(Duration::from_nanos(delay)).max(1) };
    let work = PacketWork { turns, body: case.body, pass: false };
    let time = settings.choose(TIME, QUICK);
    let run = |_| {
        settings.go_on()?;
        up_and_back(case.level, work, case.len, time)
    };
    (0..settings.choose(RUNS, 1)).map(run).collect()
}

/// The longest delay per packet that does not slow the level down, in nanoseconds.
fn spare(settings: &Settings<'_>, case: &Case) -> Result<u64, BenchError> {
    let base = sample(settings, case, 0)?.most();
    let mut longest = 0;
    let mut delay = 1;
    while delay <= LONGEST && sample(settings, case, delay)?.most() >= SAME * base {
        longest = delay;
        delay *= 2;
    }
    Ok(longest)
}
