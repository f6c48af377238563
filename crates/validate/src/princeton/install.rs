//! Section 4.5: programs are installed and removed while packets flow: duration, pauses, and losses.

use super::blocks::{Kind, program};
use crate::Settings;
use crate::book::{Book, once, paper};
use longwire_bench::engine::dropped;
use longwire_bench::punctual::Punctual;
use longwire_bench::rig::FrameSpec;
use longwire_bench::world::settle_beside;
use longwire_bench::{BenchError, Sample, apart, receiving_by, stop_after};
use longwire_clock::monotonic;
use longwire_engine::Remote;
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_report::Row;
use longwire_router::{Forwarder, Installation, Router};
use longwire_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of installations and removals.
const TIMES: usize = 400;
const QUICK: usize = 20;
/// Limit of the 99th percentile of pauses, in nanoseconds.
const PAUSE: u64 = 50_000;
/// Blocks of both kinds: 10 instructions with prologue and epilogue, and nearly the 650 slots of the paper's
/// store.
const SMALL: (Kind, usize) = (Kind::Memory, 0);
const LARGE: (Kind, usize) = (Kind::Both, 53);

const SCENARIO: &str = r#"
[engine]
wait = "spin"
cpus = [0]
pool = "64 MiB"

[[port]]
name = "a"
driver = "memory"

[[port]]
name = "b"
driver = "memory"

[[router]]
name = "r"
ports = [
    { port = "a", mac = "02:00:00:00:ff:00", addresses = "10.0.0.1/24" },
    { port = "b", mac = "02:00:00:00:ff:01", addresses = "10.0.1.1/24" },
]
neighbours = [{ address = "10.0.1.9", mac = "02:00:00:00:00:01" }]
"#;

/// Results of a run.
struct Results {
    /// Nanoseconds until a program runs: verifying, compiling and installing it.
    small: Sample,
    large: Sample,
    /// Nanoseconds of the worker for exchanging the table of programs between two batches.
    exchange: Sample,
    /// Longest times between two polls of the port, around each installation and removal.
    pauses: Sample,
    /// Longest times between two polls without an installation.
    quiet: Sample,
    taken: u64,
    lost: u64,
    books: bool,
}

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    let mut results = None;
    let mut with = |row: Row, book: &mut Book<'_>, say: &dyn Fn(Row, &Results) -> Row| {
        book.row(row, |row| Ok(say(row, once(&mut results, || run(settings))?)));
    };
    let time = |row: Row, sample: &Sample| {
        row.measured(sample.median()).extra("most_ns", sample.most()).note(format!(
            "verified, compiled and in its place; at most {:.2} ms. On the asking thread: packets go on \
             meanwhile",
            sample.most() / 1e6
        ))
    };
    // 800 and 80 000 cycles of a processor of 200 MHz (sections 2.2 and 4.5).
    let row = paper(Row::new("install: a small program while packets flow", "ns"), 4000);
    with(row, book, &|row, results| time(row, &results.small));
    let row = paper(Row::new("install: a program of 646 instructions while packets flow", "ns"), 400_000);
    with(row, book, &|row, results| time(row, &results.large));
    // The paper writes instructions one by one while the engine stands: 800 cycles for ten.
    let row = Row::new("install: exchange of the programs, for which the router's packets wait", "ns");
    with(paper(row, 4000), book, &|row, results| {
        row.measured(results.exchange.median()).extra("most_ns", results.exchange.most()).note(format!(
            "a pointer, between two batches, of whatever program; at most {:.2} us",
            results.exchange.most() / 1e3
        ))
    });
    let row = Row::new("install: pause of the path, 99 of 100", "ns");
    with(paper(row, "the engine is stopped").expected(PAUSE), book, &|row, results| {
        paused(row, &results.pauses, &results.quiet)
    });
    let row = Row::new("install: packets lost", "packets").expected(0);
    with(row, book, &|row, results| {
        row.measured(results.lost)
            .judged(results.lost == 0 && results.books && results.taken > 0)
            .note(format!("of {} that were forwarded meanwhile", results.taken))
    });
}

/// The 99th percentile of pauses, without a verdict if the machine's own pauses exceed the limit.
fn paused(row: Row, pauses: &Sample, quiet: &Sample) -> Row {
    let p99 = pauses.quantile(0.99);
    let told = |sample: &Sample| {
        let [median, p99, most] = [sample.median(), sample.quantile(0.99), sample.most()].map(|ns| ns / 1e3);
        format!("median {median:.1}, p99 {p99:.1} and most {most:.1} µs")
    };
    let row = row.measured(p99).extra("median_ns", pauses.median()).note(format!(
        "longest times between two looks at a port: {} around changes; {} where nothing changed: the \
         machine's own",
        told(pauses),
        told(quiet)
    ));
    if quiet.quantile(0.99) > PAUSE as f64 && p99 > PAUSE as f64 {
        return row.note("no verdict: this machine pauses for longer by itself");
    }
    row.at_most()
}

fn run(settings: &Settings<'_>) -> Result<Results, BenchError> {
    settings.require_real_time("speed")?;
    let plan = longwire_scenario::parse("validate", SCENARIO)?;
    let blast =
        |name, plan| Blast::new(name, plan).map_err(|error| BenchError::failed("making a source", error));
    let source = BlastPlan {
        frame_bytes: 60,
        pairs: vec![(FrameSpec::host(0), FrameSpec::host(1))],
        macs: ([2, 0, 0, 0, 0xff, 0], [2, 0, 0, 0, 0, 0]),
        count: u64::MAX,
        ..BlastPlan::sink()
    };
    let (watch, mut last) = (Arc::new(PollTimes::default()), None::<Nanos>);
    let noted = Arc::clone(&watch);
    let source = Box::new(Punctual::new(blast("a", source)?));
    let watched = receiving_by(source, move |port, pool, now, batch| {
        let here = monotonic();
        if let Some(last) = last.replace(here) {
            noted.longest.fetch_max(here.since(last).0, Ordering::Relaxed);
        }
        noted.looks.fetch_add(1, Ordering::Release);
        port.receive(pool, now, batch)
    });
    let sink = blast("b", BlastPlan { count: 0, ..BlastPlan::sink() })?;
    let built = longwire_assemble::build(&plan, vec![watched, Box::new(sink)], |_| None)?;
    let router =
        built.routers.first().copied().ok_or_else(|| BenchError::failed("finding a router", "none"))?;
    let run = built.setup.start();
    let changing = Changing { remote: run.remote(), router, watch: &watch };
    // The worker has the first processor: the requesting thread, which compiles, must not disturb it.
    let measured = apart(|| {
        settle_beside();
        changing.measure(settings)
    });
    let ([small, large, exchange, pauses, quiet], report) = stop_after(run, measured)?;
    Ok(Results {
        small,
        large,
        exchange,
        pauses,
        quiet,
        taken: report.flow.taken,
        lost: dropped(&report),
        books: report.is_conserved(),
    })
}

struct Changing<'a> {
    remote: Remote,
    router: longwire_engine::NodeRef,
    watch: &'a PollTimes,
}

impl Changing<'_> {
    /// Times of installing a small and a large program, of exchanges, and pauses with and without them.
    fn measure(&self, settings: &Settings<'_>) -> Result<[Sample; 5], BenchError> {
        settings.pause(Duration::from_millis(50))?;
        let [mut small, mut large, mut exchanges, mut pauses, mut quiet] = [const { Vec::new() }; 5];
        for _ in 0..settings.choose(TIMES, QUICK) {
            settings.go_on()?;
            for (kind, times) in [(SMALL, &mut small), (LARGE, &mut large)] {
                let begin = monotonic();
                let [gap, exchange] = self.change(Some(kind))?;
                times.push(monotonic().since(begin).0 as f64);
                exchanges.push(exchange);
                pauses.extend([gap, self.change(None)?[0]]);
            }
            self.watch.longest.store(0, Ordering::Relaxed);
            self.watch.wait()?;
            quiet.push(self.watch.longest.load(Ordering::Relaxed) as f64);
        }
        Ok([small, large, exchanges, pauses, quiet].map(Sample::from_iter))
    }

    /// Installs a program, or removes the last one. Returns the longest time between two polls of the
    /// worker's port meanwhile, and the time of the exchange.
    fn change(&self, program_of: Option<(Kind, usize)>) -> Result<[f64; 2], BenchError> {
        let before = self.remote.at_node(self.router, |router: &mut Router, _| router.forwarders())?;
        let table = match program_of {
            Some((kind, blocks)) => {
                let prices = &before.admission().prices;
                let prepared =
                    Forwarder::prepare(program(kind, blocks)?, Installation::default(), prices, 1)?;
                before.with(prepared)?.1
            }
            None => {
                let last = before.all().last().and_then(|last| before.without(last.fid()));
                last.ok_or_else(|| BenchError::failed("removing a program", "there is none"))?
            }
        };
        self.watch.longest.store(0, Ordering::Relaxed);
        let made_from = Arc::clone(&before);
        let swap = move |router: &mut Router, _: Nanos| {
            let begin = monotonic();
            let replaced = router.replace_forwarders(&made_from, table);
            (replaced, monotonic().since(begin))
        };
        let (swapped, exchange) = self.remote.at_node(self.router, swap)?;
        self.watch.wait()?;
        let gap = self.watch.longest.load(Ordering::Relaxed);
        swapped.map_err(|_| BenchError::failed("replacing programs", "somebody else did"))?;
        Ok([gap, exchange.0].map(|ns| ns as f64))
    }
}

/// The worker's number of polls of the source's port, and the longest time between two.
#[derive(Default)]
struct PollTimes {
    looks: AtomicU64,
    longest: AtomicU64,
}

impl PollTimes {
    /// Waits until the worker has polled its port twice more, which completes the interval around the
    /// previous action.
    fn wait(&self) -> Result<(), BenchError> {
        let looks = || self.looks.load(Ordering::Acquire);
        let (from, begin) = (looks(), monotonic());
        while looks() < from + 2 {
            if monotonic().since(begin) > Nanos::from_secs(20) {
                return Err(BenchError::failed("waiting for the worker", "it does not look at its port"));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_pause_fails_unless_the_machine_has_it_anyway() {
        let of = |ns: f64| Sample::from_iter([1e3; 98].into_iter().chain([ns; 4]));
        let judged = |pauses, quiet| {
            let row = Row::new("pause", "ns").expected(PAUSE);
            paused(row, &of(pauses), &of(quiet)).pass
        };
        assert_eq!((judged(49e3, 1e3), judged(51e3, 1e3)), (Some(true), Some(false)));
        assert_eq!((judged(51e3, 60e3), judged(49e3, 60e3)), (None, Some(true)));
    }
}
