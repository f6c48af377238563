//! Packets per second through the levels above: the worker's side alone, with a process or service that
//! returns all packets.

use crate::guest::{Guest, NAME, PacketWork, RATE, spin};
use crate::{BenchError, Sample, Settings, apart};
use longwire_block::{OUTBOX, Outbox};
use longwire_packet::{BATCH, Handle, Pool};
use longwire_punt::client::{Control, Hello};
use longwire_punt::{
    AttachmentId, Class, Limits, OfferError, Punt, PuntedPacket, Service, ServiceOutput, ServiceThread,
    Turns, Verdict, WaitMode,
};
use longwire_report::Row;
use longwire_units::Nanos;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// 64 bytes with FCS.
const FRAME: usize = 60;
/// Required packets per second of a native process.
const TARGET: f64 = 3e6;
/// How long the other side may take to come, and to return a first packet.
const PATIENCE: Duration = Duration::from_secs(20);
const SCRIPT: &str = include_str!("../../punt/examples/control.py");

/// A level above the data path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A service on a thread.
    Slow(WaitMode),
    /// A control process: another instance of this program.
    Control,
}

/// Packets per second, of this length without FCS, up to a level and back: the best of many short periods
/// within `time`.
///
/// # Errors
/// If the level is not available, or failed.
pub fn up_and_back(level: Level, work: PacketWork, len: usize, time: Duration) -> Result<f64, BenchError> {
    match level {
        Level::Slow(waiting) => Above::service(waiting, work)?.measure(len, time),
        Level::Control => {
            let mut above = Above::control()?;
            above.guest()?.start(work)?;
            above.measure(len, time)
        }
    }
}

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    let name = "punt: control level, native process, 64 B, up and back";
    let rates =
        sample(settings, name, |time| up_and_back(Level::Control, PacketWork::default(), FRAME, time))?;
    rows.push(rates.at_least(name, "pps", TARGET).note(format!("{:.1} ns a packet", 1e9 / rates.most())));
    let name = "punt: control level, native process, 1500 B, up and back";
    let rates =
        sample(settings, name, |time| up_and_back(Level::Control, PacketWork::default(), 1496, time))?;
    rows.push(rates.shown(name, "pps"));
    rows.push(python(settings)?);
    for (what, waiting) in [("polling", WaitMode::Polling), ("woken", WaitMode::Woken)] {
        let name = format!("punt: slow path, {what}, 64 B, up and back");
        let rates = sample(settings, &name, |time| {
            up_and_back(Level::Slow(waiting), PacketWork::default(), FRAME, time)
        })?;
        rows.push(rates.shown(&name, "pps"));
    }
    rows.push(refusals(settings)?);
    Ok(rows)
}

fn python(settings: &Settings<'_>) -> Result<Row, BenchError> {
    let name = "punt: control level, Python process, 64 B, up and back";
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok(Settings::could_not(name, &BenchError::NotHere("there is no python3".into())));
    }
    let rates = sample(settings, name, |time| {
        let mut above = Above::control()?;
        let mut command = Command::new("python3");
        command
            .args(["-c", SCRIPT])
            .arg(above.guest()?.socket())
            .args([NAME, &RATE.to_string()])
            .stdout(Stdio::null());
        above.guest()?.start_as(command)?;
        above.measure(FRAME, time)
    })?;
    Ok(rates.shown(name, "pps"))
}

/// Cost of a packet that finds no room: the cost of a flood of exceptional packets to regular ones.
fn refusals(settings: &Settings<'_>) -> Result<Row, BenchError> {
    const COUNT: u32 = 1_000_000;
    let name = "punt: a packet for which there is no room";
    let costs: Sample = settings.repeat(11, name, || {
        let above = &mut Above::control()?;
        let mut control = above.joined()?;
        while above.punt.offer(&above.pool, above.free[0], above.attachment, &Class::default())
            != Err(OfferError::Full)
        {}
        let begin = Instant::now();
        for _ in 0..COUNT {
            std::hint::black_box(
                above.punt.offer(&above.pool, above.free[0], above.attachment, &Class::default()).is_err(),
            );
        }
        let cost = begin.elapsed().as_nanos() as f64 / f64::from(COUNT);
        control.flush();
        Ok(cost)
    })?;
    Ok(costs.at_most(name, "ns", 10.0))
}

fn sample(
    settings: &Settings<'_>,
    name: &str,
    mut run: impl FnMut(Duration) -> Result<f64, BenchError>,
) -> Result<Sample, BenchError> {
    settings.repeat(7, name, || run(settings.time(Duration::from_millis(500))))
}

/// The worker's side.
struct Above {
    punt: Punt,
    attachment: AttachmentId,
    pool: Pool,
    out: Outbox,
    passed: Vec<Handle>,
    free: Vec<Handle>,
    begin: Instant,
    back: u64,
    /// The process above, ended when this is dropped.
    guest: Option<Guest>,
    slow: Option<ServiceThread>,
}

struct Echo(PacketWork);

impl Service for Echo {
    fn handle(&mut self, packet: &mut PuntedPacket<'_>, _made: &mut ServiceOutput) -> Verdict {
        spin(self.0.turns);
        self.0.verdict(packet.facts().in_port)
    }
}

impl Above {
    fn control() -> Result<Self, BenchError> {
        let mut punt = Punt::new(vec![0]);
        let (guest, attachment) = Guest::expected(&mut punt, patient())?;
        Ok(Self { guest: Some(guest), ..Self::with(punt, attachment)? })
    }

    fn service(waiting: WaitMode, work: PacketWork) -> Result<Self, BenchError> {
        let mut punt = Punt::new(vec![0]);
        let attachment = punt.add_service(NAME, patient()).unwrap_or(AttachmentId::slow(0));
        let turns = Turns::new("sfq").map_err(BenchError::not_here)?;
        let slow = ServiceThread::start(punt.service_sender(), turns, waiting).and_then(|mut slow| {
            slow.attach(attachment, &patient(), Box::new(Echo(work)))?;
            Ok(slow)
        });
        let slow = slow.map_err(BenchError::system("starting the slow path"))?;
        Ok(Self { slow: Some(slow), ..Self::with(punt, attachment)? })
    }

    fn with(punt: Punt, attachment: AttachmentId) -> Result<Self, BenchError> {
        let mut pool = Pool::new(8 << 20)?;
        let free = (0..2048).filter_map(|_| pool.insert(&[0x55; FRAME])).collect();
        let (out, passed) = (Outbox::default(), Vec::with_capacity(OUTBOX));
        Ok(Self {
            punt,
            attachment,
            pool,
            out,
            passed,
            free,
            begin: Instant::now(),
            back: 0,
            guest: None,
            slow: None,
        })
    }

    fn guest(&mut self) -> Result<&mut Guest, BenchError> {
        self.guest.as_mut().ok_or_else(|| BenchError::NotHere("nobody is expected above".into()))
    }

    /// An idle control process within this one.
    fn joined(&mut self) -> Result<Control, BenchError> {
        let hello = Hello { name: NAME.into(), packets: RATE, cycles: 0, share: 1 };
        let control =
            Control::connect(&self.guest()?.socket(), &hello).map_err(|error| failed(error.to_string()))?;
        self.await_guest()?;
        Ok(control)
    }

    fn await_guest(&mut self) -> Result<(), BenchError> {
        let begin = Instant::now();
        while !self.punt.is_taken(self.attachment) {
            let has_ended = self.guest.as_mut().is_some_and(Guest::has_ended);
            if has_ended || begin.elapsed() > PATIENCE {
                return Err(failed("it does not come".into()));
            }
            self.turn();
        }
        Ok(())
    }

    /// Packets per second, up and back.
    fn measure(&mut self, len: usize, time: Duration) -> Result<f64, BenchError> {
        for handle in std::mem::take(&mut self.free) {
            self.pool.free(handle);
        }
        self.free = (0..2048).filter_map(|_| self.pool.insert(&vec![0x55; len])).collect();
        let rate = self.await_guest().and_then(|()| self.rate(time));
        (self.guest, self.slow) = (None, None);
        let counts = self.punt.counts(self.attachment);
        match rate {
            Ok(_) if counts.faults + counts.cut > 0 => {
                Err(failed(format!("{} answers were wrong, {} times cut off", counts.faults, counts.cut)))
            }
            rate => rate,
        }
    }

    /// The best of many short periods, on the first processor. On a shared machine both sides rarely run at
    /// once, so a period must be short; but it covers many times the packets that are up at once. The other
    /// side may need longer than `time` to return the first packet.
    fn rate(&mut self, time: Duration) -> Result<f64, BenchError> {
        const SHORT: Duration = Duration::from_millis(5);
        let started = Instant::now();
        let mut best = 0.0f64;
        // A separate thread, so that later benches are not pinned.
        apart(|| {
            longwire_engine::clock::settle_thread(Some(0));
            while started.elapsed() < time || (best == 0.0 && started.elapsed() < PATIENCE) {
                let (begin, before) = (Instant::now(), self.back);
                while begin.elapsed() < SHORT {
                    (0..16).for_each(|_| self.turn());
                }
                best = best.max((self.back - before) as f64 / begin.elapsed().as_secs_f64());
            }
        });
        if best > 0.0 { Ok(best) } else { Err(BenchError::Silent(PATIENCE)) }
    }

    /// Sends a batch up, and takes returned packets.
    fn turn(&mut self) {
        let now = Nanos(self.begin.elapsed().as_nanos() as u64);
        for _ in 0..BATCH {
            let Some(&handle) = self.free.last() else { break };
            self.pool.meta_mut(handle).arrival = now.0;
            if self.punt.offer(&self.pool, handle, self.attachment, &Class::default()).is_err() {
                break;
            }
            self.free.pop();
        }
        self.punt.flush(now);
        self.punt.collect(&mut self.pool, now, &mut self.out, &mut self.passed);
        self.back += self.out.packets().len() as u64;
        self.free.extend(self.out.packets().iter().map(|&(handle, _)| handle));
        self.free.append(&mut self.passed);
        self.out.clear();
    }
}

/// The error of a process or service above that does not do its work, which no machine lacks.
fn failed(reason: String) -> BenchError {
    BenchError::Tool { command: "the level above".into(), reason }
}

/// Limits that disconnect nobody for being slow: slowness is what is measured.
fn patient() -> Limits {
    let minute = Nanos::from_secs(60);
    Limits { answer_within: minute, patience: minute, ..Limits::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_service_and_refusals_can_be_measured() {
        // Even in no time at all: the first packet back is waited for.
        let rate =
            up_and_back(Level::Slow(WaitMode::Woken), PacketWork::default(), FRAME, Duration::ZERO).unwrap();
        assert!(rate > 0.0);
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        let row = refusals(&settings).unwrap();
        assert!(row.measured.is_some(), "{row:?}");
    }

    #[test]
    fn a_process_that_does_not_join_has_failed() {
        let mut above = Above::control().unwrap();
        above.guest().unwrap().start_as(Command::new("true")).unwrap();
        let error = above.measure(FRAME, Duration::ZERO).unwrap_err();
        assert_eq!(Settings::could_not("punt", &error).pass, Some(false), "{error}");
    }

    #[test]
    fn python_can_be_measured_where_there_is_one() {
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        assert!(python(&settings).unwrap().measured.is_some());
    }
}
