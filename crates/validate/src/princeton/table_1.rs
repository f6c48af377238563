//! Table 1 and figure 7: queue disciplines between input and output workers, and how the stages scale.

use super::queue::{Buffers, Guard, Queue, Ready};
use super::stage::{BURST, Choice, Input, Output, PORTS, PRIORITIES};
use super::together::{Burst, Rates, rates};
use crate::Settings;
use crate::book::{Book, paper, paper_if};
use crate::plot::{Plot, Style};
use longwire_bench::{BenchError, joined, processors, require_two_processors};
use longwire_report::Row;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Buffers of an input worker: the paper's 8192 for 16 contexts are 512 each, whose packets are sent at once.
/// Here a worker may be preempted for milliseconds.
const BUFFERS: usize = 1 << 14;
const ENTRIES: usize = 1 << 14;
/// Packets per burst at a given rate: as many as the paper's FIFO holds.
const TOGETHER: u64 = 16;
const TIME: Duration = Duration::from_millis(400);
const QUICK: Duration = Duration::from_millis(20);

/// Distribution of input workers over queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// No two use the same one at the same time.
    Apart,
    /// All use one.
    Together,
}

pub(super) fn rows(book: &mut Book<'_>) {
    let inputs = [
        ("input: private queues (I.1)", Some(3.75e6), Guard::Private, Spread::Apart),
        ("input: protected queues, no contention (I.2)", Some(3.47e6), Guard::Lock, Spread::Apart),
        ("input: protected queues, all to one (I.3)", Some(1.67e6), Guard::Lock, Spread::Together),
        ("input: all to one queue, test-until-acquired lock", None, Guard::TestAndSet, Spread::Together),
    ];
    let mut points = vec![Vec::new(); 2];
    for (place, (name, known, guard, spread)) in inputs.into_iter().enumerate() {
        let points = &mut points;
        row(book, name, known, |settings| {
            if spread == Spread::Together {
                require_two_processors("one processor alone has nobody to contend with")?;
            }
            let rates = input(settings, processors(), guard, spread)?;
            points[0].extend(known.map(|known| (place as f64 + 1.0, known / 1e6)));
            points[1].push((place as f64 + 1.0, rates.median / 1e6));
            Ok(rates)
        });
    }
    let outputs = [
        ("output: one queue, batched (O.1)", 3.78e6, Choice::Batched),
        ("output: one queue, unbatched (O.2)", 3.41e6, Choice::Unbatched),
        ("output: 16 queues with readiness bits (O.3)", 3.29e6, Choice::Indirect),
    ];
    for (place, (name, known, choice)) in outputs.into_iter().enumerate() {
        let points = &mut points;
        row(book, name, Some(known), |settings| {
            let rates = output(settings, processors(), choice)?;
            points[0].push((place as f64 + 5.0, known / 1e6));
            points[1].push((place as f64 + 5.0, rates.median / 1e6));
            Ok(rates)
        });
    }
    system(book);
    let [known, ours] = points.try_into().unwrap_or_default();
    let plot = Plot::new("Table 1: queue disciplines", "I.1, I.2, I.3, test-and-set; O.1, O.2, O.3", "Mpps");
    book.plot(plot.with("the paper, 24 contexts", Style::Bars, known).with("Longwire", Style::Bars, ours));
    scaling(book);
}

fn row(
    book: &mut Book<'_>,
    name: &str,
    known: Option<f64>,
    measure: impl FnOnce(&Settings<'_>) -> Result<Rates, BenchError>,
) {
    let settings = book.settings;
    let row = Row::new(format!("table 1: {name}"), "pps");
    book.row(paper_if(row, known), |row| {
        let rates = measure(settings)?;
        let note = format!(
            "{} workers, the median of their bursts; best {:.2} Mpps",
            processors(),
            rates.best / 1e6
        );
        Ok(row.measured(rates.median).extra("best", rates.best).note(note))
    });
}

/// Input workers alone: nobody removes their entries, and they wrap around.
fn input(settings: &Settings<'_>, workers: usize, guard: Guard, spread: Spread) -> Result<Rates, BenchError> {
    // Each has its own set of queues if they are apart, as private ones are; otherwise one set for all.
    let sets = if spread == Spread::Apart { workers } else { 1 };
    let queues: Vec<Vec<Queue>> =
        (0..sets).map(|_| (0..PORTS).map(|_| Queue::new(ENTRIES)).collect()).collect();
    let buffers: Vec<Buffers> = (0..workers).map(|_| Buffers::new(BUFFERS)).collect();
    let every: Vec<u32> = (0..PORTS as u32).collect();
    let ports = if spread == Spread::Apart { &every[..] } else { &every[..1] };
    let bursts = (0..workers).map(|worker| -> Burst<'_> {
        let set = &queues[worker % sets];
        let mut input = Input::new(worker, ports, &buffers[worker], (set, None), guard);
        Box::new(move || {
            input.run(BURST);
            (BURST, None)
        })
    });
    rates(settings, bursts.collect(), settings.choose(TIME, QUICK))
}

/// Output workers alone: a queue is filled before each burst, untimed.
fn output(settings: &Settings<'_>, workers: usize, choice: Choice) -> Result<Rates, BenchError> {
    let many = if choice == Choice::Indirect { PRIORITIES } else { 1 };
    let buffers: Vec<[Buffers; 1]> = (0..workers).map(|_| [Buffers::new(BUFFERS)]).collect();
    let queues: Vec<Vec<Queue>> =
        (0..workers).map(|_| (0..many).map(|_| Queue::new(ENTRIES)).collect()).collect();
    let bits: Vec<[Ready; 1]> = (0..workers).map(|_| [Ready::default()]).collect();
    let bursts = (0..workers).map(|worker| -> Burst<'_> {
        let ready = (many > 1).then_some(&bits[worker]);
        let bits = ready.map(|bits| &bits[..]);
        let mut input = Input::new(0, &[0], &buffers[worker][0], (&queues[worker], bits), Guard::Private);
        let mut output = Output::new(choice, &buffers[worker], &queues[worker], ready.map(|bits| &bits[0]));
        Box::new(move || {
            input.run(BURST);
            let started = Instant::now();
            let mut left = BURST;
            while left > 0 {
                left -= output.run(left).min(left);
            }
            (BURST, Some(started.elapsed()))
        })
    });
    rates(settings, bursts.collect(), settings.choose(TIME, QUICK))
}

/// I.2 and O.1 in parallel, each on its own processor: at full speed, and at the paper's rate, where none may
/// be lost.
fn system(book: &mut Book<'_>) {
    let settings = book.settings;
    let two = || {
        settings.require_real_time("speed")?;
        require_two_processors("it needs two processors")
    };
    let books = |row: Row, end: &End| {
        let row = row.extra("packets", end.put).extra("late", end.late);
        row.extra("overwritten", end.overwritten).note(format!(
            "one input and one output worker; of {} packets {} were sent, {} lost as late: {} whose \
             buffers and {} whose places in the queue had been used again",
            end.put,
            end.sent,
            end.lost(),
            end.late,
            end.overwritten
        ))
    };
    let row = paper(Row::new("table 1: whole system, I.2 and O.1", "pps"), 3.47e6);
    book.row(row, |row| {
        two()?;
        let end = run_system(settings, settings.choose(TIME, QUICK), None)?;
        let row = row.measured(end.sent as f64 / end.seconds);
        // An unlimited input may outrun the output: losses are not judged here, only conservation.
        let row = if end.is_conserved() { row } else { row.judged(false).note("packets are missing") };
        Ok(books(row, &end))
    });
    let row = paper(Row::new("table 1: whole system, offered the paper's 3.47 Mpps, lost", "packets"), 0);
    book.row(row.expected(0), |row| {
        two()?;
        let end = run_system(settings, settings.choose(TIME, QUICK), Some(RATE))?;
        let offered = end.put as f64 / end.seconds;
        let row = row.measured(end.lost()).judged(end.keeps(RATE)).extra("offered_pps", offered);
        Ok(books(row, &end).note(format!("{:.2} Mpps were offered", offered / 1e6)))
    });
}

/// Packets per second of the paper's whole system.
const RATE: f64 = 3.47e6;

struct End {
    put: u64,
    sent: u64,
    late: u64,
    overwritten: u64,
    seconds: f64,
}

impl End {
    const fn lost(&self) -> u64 {
        self.late + self.overwritten
    }

    const fn is_conserved(&self) -> bool {
        self.put == self.sent + self.lost()
    }

    /// Whether packets arrived at this rate, within 1 %, and none was lost.
    fn keeps(&self, rate: f64) -> bool {
        self.is_conserved() && self.lost() == 0 && self.put as f64 >= 0.99 * rate * self.seconds
    }
}

/// At a rate by the clock, or at full speed without one.
fn run_system(settings: &Settings<'_>, time: Duration, rate: Option<f64>) -> Result<End, BenchError> {
    let buffers = [Buffers::new(BUFFERS)];
    let queues = [Queue::new(ENTRIES)];
    let (stop, put) = (AtomicBool::new(false), AtomicU64::new(u64::MAX));
    let (counts, seconds) = std::thread::scope(|scope| {
        scope.spawn(|| {
            longwire_engine::clock::settle_thread(Some(0));
            let mut input = Input::new(0, &[0], &buffers[0], (&queues, None), Guard::Lock);
            let (mut count, begin) = (0, Instant::now());
            while !stop.load(Ordering::Relaxed) {
                let due = rate.map_or(u64::MAX, |rate| (begin.elapsed().as_secs_f64() * rate) as u64);
                let burst = due.saturating_sub(count).min(if rate.is_some() { TOGETHER } else { BURST });
                input.run(burst);
                count += burst;
            }
            put.store(count, Ordering::Release);
        });
        let working = scope.spawn(|| {
            longwire_engine::clock::settle_thread(Some(1));
            let mut output = Output::new(Choice::Batched, &buffers, &queues, None);
            let started = Instant::now();
            while output.met() < put.load(Ordering::Acquire) {
                output.run(BURST);
            }
            (output.counts, started.elapsed().as_secs_f64())
        });
        // An error is reported below, when the workers have ended.
        let _ = settings.pause(time);
        stop.store(true, Ordering::Relaxed);
        joined(working)
    });
    settings.go_on()?;
    let put = put.load(Ordering::Acquire);
    Ok(End { put, sent: counts.sent, late: counts.late, overwritten: counts.overwritten, seconds })
}

/// Figure 7: each stage alone on one or more processors.
fn scaling(book: &mut Book<'_>) {
    let settings = book.settings;
    let mut curves = [Vec::new(), Vec::new()];
    for workers in 1..=processors() {
        for (curve, stage) in curves.iter_mut().zip(["output (O.1)", "input (I.2)"]) {
            let known = if stage.starts_with('o') { "linear" } else { "level from 16 contexts on" };
            let name = format!("fig 7: {stage}, {workers} workers");
            book.row(paper(Row::new(name, "pps"), known), |row| {
                let rates = if stage.starts_with('o') {
                    output(settings, workers, Choice::Batched)?
                } else {
                    input(settings, workers, Guard::Lock, Spread::Apart)?
                };
                curve.push((workers as f64, rates.median / 1e6));
                Ok(row.measured(rates.median).extra("best", rates.best))
            });
        }
    }
    let [output, input] = curves;
    let plot = Plot::new("Figure 7: stages by themselves", "workers", "Mpps");
    book.plot(plot.with("output", Style::Line, output).with("input", Style::Line, input));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Driver;

    #[test]
    fn what_loses_packets_or_is_too_slow_fails() {
        let all = End { put: 1000, sent: 1000, late: 0, overwritten: 0, seconds: 1.0 };
        assert!(all.keeps(1000.0) && all.keeps(1010.0) && !all.keeps(1100.0));
        assert!(!End { sent: 999, late: 1, ..all }.keeps(1000.0));
        assert!(!End { sent: 999, overwritten: 1, ..all }.keeps(1000.0));
        assert!(!End { sent: 999, ..all }.keeps(1000.0));
    }

    #[test]
    fn every_packet_of_the_whole_system_is_accounted_for() {
        let settings = Settings {
            driver: Driver::AfPacket,
            simulate: false,
            quick: true,
            full: false,
            seed: 1,
            only: &[],
            list: false,
            say: &|_| (),
            stop: &AtomicBool::new(false),
        };
        let end = run_system(&settings, Duration::from_millis(500), None).unwrap();
        assert!(end.is_conserved() && end.put > 0);
        let end = run_system(&settings, Duration::from_millis(5), Some(1e5)).unwrap();
        assert!(end.is_conserved());
        for rates in [
            input(&settings, 2, Guard::TestAndSet, Spread::Together).unwrap(),
            output(&settings, 1, Choice::Indirect).unwrap(),
        ] {
            assert!(rates.median > 0.0 && rates.best >= rates.median, "{rates:?}");
        }
    }
}
