//! Packets a second through the levels above: a worker's side that does nothing else, and a process or service that sends all back.

use crate::world::settle_beside;
use crate::{BenchError, Sample, Settings};
use longwire_block::{OUTBOX, Outbox};
use longwire_packet::{BATCH, Handle, Pool};
use longwire_punt::client::{Control, Hello};
use longwire_punt::{
    Admission, Capacity, Class, FairTime, Limits, Listener, Made, Punt, Punted, Refused, SeatId, Service,
    Slow, Verdict, Waiting,
};
use longwire_report::Row;
use longwire_units::Nanos;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Tells a process of this program that it is to echo, and where.
const ECHO: &str = "LONGWIRE_BENCH_ECHO";
const NAME: &str = "echo";
/// 64 bytes with FCS.
const FRAME: usize = 60;
/// More than anyone can do.
const RATE: u64 = 100_000_000;
/// Promised packets a second of a native process.
const TARGET: f64 = 3e6;
const SCRIPT: &str = include_str!("../../punt/examples/control.py");

/// Plays the control process of a bench, if this process was started as that. False if it was not.
pub fn play_control_process() -> bool {
    let Some(path) = std::env::var_os(ECHO) else { return false };
    settle_beside();
    let hello = Hello { name: NAME.into(), packets: RATE, cycles: 0, share: 1 };
    // It ends when the bench closes its socket; whatever else goes wrong, the bench sees that it is gone.
    let _ = Control::connect(Path::new(&path), &hello).map(|mut control| control.echo());
    true
}

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let native = || {
        let program = std::env::current_exe()
            .map_err(|source| BenchError::System { doing: "finding this program", source })?;
        Ok::<_, BenchError>(Command::new(program))
    };
    let mut rows = Vec::new();
    let name = "punt: control level, native process, 64 B, up and back";
    let rates = sample(settings, name, |time| {
        let mut above = Above::control()?;
        let mut command = native()?;
        command.env(ECHO, above.socket());
        above.measure(Some(command), FRAME, time)
    })?;
    rows.push(rates.at_least(name, "pps", TARGET).note(format!("{:.1} ns a packet", 1e9 / rates.most())));
    let name = "punt: control level, native process, 1500 B, up and back";
    let rates = sample(settings, name, |time| {
        let mut above = Above::control()?;
        let mut command = native()?;
        command.env(ECHO, above.socket());
        above.measure(Some(command), 1496, time)
    })?;
    rows.push(rates.shown(name, "pps"));
    rows.push(python(settings)?);
    for (what, waiting) in [("polling", Waiting::Polling), ("woken", Waiting::Woken)] {
        let name = format!("punt: slow path, {what}, 64 B, up and back");
        let rates = sample(settings, &name, |time| Above::service(waiting)?.measure(None, FRAME, time))?;
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
            .arg(above.socket())
            .args([NAME, &RATE.to_string()])
            .stdout(Stdio::null());
        above.measure(Some(command), FRAME, time)
    })?;
    Ok(rates.shown(name, "pps"))
}

/// What a packet costs for which there is no room: what a flood of exceptional packets costs regular ones.
fn refusals(settings: &Settings<'_>) -> Result<Row, BenchError> {
    const COUNT: u32 = 1_000_000;
    let name = "punt: a packet for which there is no room";
    let mut costs = Vec::new();
    for _ in 0..settings.runs(11) {
        settings.next(name)?;
        let above = &mut Above::control()?;
        let mut control = above.joined()?;
        while above.punt.offer(&above.pool, above.free[0], above.seat, &Class::default())
            != Err(Refused::Full)
        {}
        let begin = Instant::now();
        for _ in 0..COUNT {
            std::hint::black_box(
                above.punt.offer(&above.pool, above.free[0], above.seat, &Class::default()).is_err(),
            );
        }
        costs.push(begin.elapsed().as_nanos() as f64 / f64::from(COUNT));
        control.flush();
    }
    Ok(costs.into_iter().collect::<Sample>().at_most(name, "ns", 10.0))
}

fn sample(
    settings: &Settings<'_>,
    name: &str,
    mut run: impl FnMut(Duration) -> Result<f64, BenchError>,
) -> Result<Sample, BenchError> {
    (0..settings.runs(7))
        .map(|_| {
            settings.next(name)?;
            run(settings.time(Duration::from_millis(500)))
        })
        .collect()
}

/// The worker's side.
struct Above {
    punt: Punt,
    seat: SeatId,
    pool: Pool,
    out: Outbox,
    passed: Vec<Handle>,
    free: Vec<Handle>,
    begin: Instant,
    back: u64,
    /// Who is above, ended when this is.
    listener: Option<Listener>,
    slow: Option<Slow>,
}

struct Echo;

impl Service for Echo {
    fn handle(&mut self, packet: &mut Punted<'_>, _made: &mut Made) -> Verdict {
        Verdict::Send { port: packet.facts().in_port, band: None }
    }
}

impl Above {
    fn control() -> Result<Self, BenchError> {
        let mut punt = Punt::new(vec![0]);
        let seat = punt.add_control(NAME, patient());
        let admission = Admission::new(Capacity { packets: RATE, cycles: u64::MAX });
        let listener = Listener::open(&socket(), &mut punt, admission)?;
        Ok(Self { listener: Some(listener), ..Self::with(punt, seat)? })
    }

    fn service(waiting: Waiting) -> Result<Self, BenchError> {
        let mut punt = Punt::new(vec![0]);
        let seat = punt.add_service(NAME, patient());
        let services: Vec<(SeatId, Box<dyn Service>)> = vec![(seat, Box::new(Echo))];
        let slow = Slow::start(&mut punt, services, Box::new(FairTime::new(&[1])), waiting);
        let slow = slow.map_err(|source| BenchError::System { doing: "starting the slow path", source })?;
        Ok(Self { slow: Some(slow), ..Self::with(punt, seat)? })
    }

    fn with(punt: Punt, seat: SeatId) -> Result<Self, BenchError> {
        let mut pool = Pool::new(8 << 20)?;
        let free = (0..2048).filter_map(|_| pool.insert(&[0x55; FRAME])).collect();
        let (out, passed) = (Outbox::default(), Vec::with_capacity(OUTBOX));
        Ok(Self {
            punt,
            seat,
            pool,
            out,
            passed,
            free,
            begin: Instant::now(),
            back: 0,
            listener: None,
            slow: None,
        })
    }

    fn socket(&self) -> PathBuf {
        self.listener.as_ref().map(|listener| listener.path().to_path_buf()).unwrap_or_default()
    }

    /// A control process within this one, that does nothing.
    fn joined(&mut self) -> Result<Control, BenchError> {
        let hello = Hello { name: NAME.into(), packets: RATE, cycles: 0, share: 1 };
        let control = Control::connect(&self.socket(), &hello)
            .map_err(|error| BenchError::NotHere(error.to_string()))?;
        self.await_guest(None)?;
        Ok(control)
    }

    fn await_guest(&mut self, mut child: Option<&mut Child>) -> Result<(), BenchError> {
        let begin = Instant::now();
        while !self.punt.is_taken(self.seat) {
            let has_ended = child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
            if has_ended || begin.elapsed() > Duration::from_secs(20) {
                return Err(BenchError::NotHere("the process above does not come".into()));
            }
            self.turn();
        }
        Ok(())
    }

    /// Packets a second, up and back, with this process above if one is to be started.
    fn measure(&mut self, command: Option<Command>, len: usize, time: Duration) -> Result<f64, BenchError> {
        for handle in std::mem::take(&mut self.free) {
            self.pool.free(handle);
        }
        self.free = (0..2048).filter_map(|_| self.pool.insert(&vec![0x55; len])).collect();
        let child = command.map(|mut command| command.spawn()).transpose();
        let mut child = child.map_err(|source| BenchError::System { doing: "starting a process", source })?;
        let rate = self.await_guest(child.as_mut()).map(|()| self.rate(time));
        (self.listener, self.slow) = (None, None);
        if let Some(mut child) = child {
            // It ends by itself, unless it hangs.
            let _ = child.kill();
            let _ = child.wait();
        }
        let counts = self.punt.counts(self.seat);
        match rate {
            Ok(_) if counts.faults + counts.cut > 0 => Err(BenchError::NotHere(format!(
                "{} answers were wrong, {} times cut off",
                counts.faults, counts.cut
            ))),
            rate => rate,
        }
    }

    /// The best of many short times, on the first processor. On a shared machine both sides run at once only now and then; that is what
    /// a time must be short for, and it is long enough for many times the packets that are up at once.
    fn rate(&mut self, time: Duration) -> f64 {
        const SHORT: Duration = Duration::from_millis(5);
        let mut best = 0.0f64;
        let mut run = || {
            longwire_engine::clock::settle_thread(Some(0));
            let end = Instant::now() + time;
            while Instant::now() < end {
                let (begin, before) = (Instant::now(), self.back);
                while begin.elapsed() < SHORT {
                    (0..16).for_each(|_| self.turn());
                }
                best = best.max((self.back - before) as f64 / begin.elapsed().as_secs_f64());
            }
        };
        // A thread of its own, because what comes after this bench is not to be tied to a processor.
        std::thread::scope(|scope| scope.spawn(&mut run).join().expect("nothing in it panics"));
        best
    }

    /// A batch up, and what has come back.
    fn turn(&mut self) {
        let now = Nanos(self.begin.elapsed().as_nanos() as u64);
        for _ in 0..BATCH {
            let Some(&handle) = self.free.last() else { break };
            self.pool.meta_mut(handle).arrival = now.0;
            if self.punt.offer(&self.pool, handle, self.seat, &Class::default()).is_err() {
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

/// Nobody is cut off for being slow: what is measured is how slow.
fn patient() -> Limits {
    let minute = Nanos::from_secs(60);
    Limits { answer_within: minute, patience: minute, ..Limits::default() }
}

/// A path of its own for each listener: tests of this file run side by side.
fn socket() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("longwire-bench-{}-{count}.sock", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_service_and_refusals_can_be_measured() {
        let rate =
            Above::service(Waiting::Woken).unwrap().measure(None, FRAME, Duration::from_millis(5)).unwrap();
        assert!(rate > 0.0);
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        let row = refusals(&settings).unwrap();
        assert!(row.measured.is_some(), "{row:?}");
    }

    #[test]
    fn python_can_be_measured_where_there_is_one() {
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        assert!(python(&settings).unwrap().measured.is_some());
    }
}
