//! Tables 2 and 3: the cost of a packet of 64 bytes in each stage, and of memory accesses.

use super::callgrind::{CallgrindCounts, STAGE, counted_between};
use super::queue::{Buffers, Guard, Queue};
use super::stage::{BURST, Choice, Input, Output};
use super::together::{Burst, rates};
use super::{clock, memory_read};
use crate::Settings;
use crate::book::{Book, once, paper, paper_if};
use longwire_bench::BenchError;
use longwire_bench::rig::{FrameSpec, Rig};
use longwire_packet::BATCH;
use longwire_report::Row;
use longwire_router::Admission;
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_millis(300);
const QUICK: Duration = Duration::from_millis(20);
const RING: usize = 1 << 13;

/// A stage, alone on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// I.2, without contention.
    Input,
    /// O.1.
    Output,
    /// Longwire's router, with copies from memory to packets and back.
    Router,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Router];

    const fn name(self) -> &'static str {
        match self {
            Self::Input => "input (I.2)",
            Self::Output => "output (O.1)",
            Self::Router => "Longwire's router, memory to memory",
        }
    }

    const fn operations(self) -> Option<u64> {
        match self {
            Self::Input => Some(171),
            Self::Output => Some(109),
            Self::Router => None,
        }
    }

    /// The paper's reads and writes.
    const fn transfers(self) -> [Option<&'static str>; 2] {
        match self {
            Self::Input => [Some("0 DRAM, 2 SRAM, 2 Scratch"), Some("2 DRAM, 1 SRAM, 4 Scratch")],
            Self::Output => [Some("2 DRAM, 0 SRAM, 2 Scratch"), Some("0 DRAM, 1 SRAM, 2 Scratch")],
            Self::Router => [None, None],
        }
    }

    /// Runs it in bursts, each of which is timed without its preparation.
    fn with<R>(self, act: impl FnOnce(Burst<'_>) -> R) -> Result<R, BenchError> {
        if self == Self::Router {
            let mut rig = Rig::new(Admission::default())?;
            let frames = vec![(0, FrameSpec::UDP.frame()); BATCH];
            return Ok(act(Box::new(move || {
                for _ in 0..BURST / BATCH as u64 {
                    let batch = rig.take_in(frames.iter().map(|(port, frame)| (*port, frame)));
                    rig.forward(&batch);
                    rig.give_out(&batch, |_, frame| {
                        std::hint::black_box(frame);
                    });
                }
                (BURST, None)
            })));
        }
        let (buffers, queues) = ([Buffers::new(RING)], [Queue::new(RING)]);
        let mut input = Input::new(0, &[0], &buffers[0], (&queues, None), Guard::Lock);
        let mut output = Output::new(Choice::Batched, &buffers, &queues, None);
        Ok(act(Box::new(move || {
            input.run(BURST);
            if self == Self::Input {
                return (BURST, None);
            }
            let started = Instant::now();
            let mut left = BURST;
            while left > 0 {
                left -= output.run(left).min(left);
            }
            (BURST, Some(started.elapsed()))
        })))
    }
}

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    for stage in Stage::ALL {
        let mut counted = None;
        let mut of_stage = || once(&mut counted, || counts(settings, stage)).copied();
        let row = Row::new(format!("table 2: {}, instructions of a packet", stage.name()), "");
        book.row(paper_if(row, stage.operations()), |row| {
            let note = "counted by valgrind's callgrind, as a difference of two runs";
            Ok(row.measured(per_packet(of_stage()?.instructions)).note(note))
        });
        for (what, known) in ["read", "write"].into_iter().zip(stage.transfers()) {
            let name = format!("table 2: {}, memory operations of a packet, {what}", stage.name());
            book.row(paper_if(Row::new(name, ""), known), |row| {
                let counted = of_stage()?;
                let count = if what == "read" { counted.reads } else { counted.writes };
                Ok(row.measured(per_packet(count)).note(
                    "instructions that read or write memory of any kind and up to 32 bytes, the stack's and \
                     the FIFO's among them, counted by callgrind; the paper's are transfers of 32 bytes to \
                     or from DRAM and of 4 to or from SRAM and Scratch, beside which its FIFO and registers \
                     are free",
                ))
            });
        }
    }
    for stage in Stage::ALL {
        let row = Row::new(format!("table 2: {}, cycles of a packet", stage.name()), "cycles");
        let row = if stage == Stage::Router { paper(row, 710) } else { row };
        book.row(row, |row| {
            let time = settings.choose(TIME, QUICK);
            let rates = stage.with(|burst| rates(settings, vec![burst], time))??;
            let (ns, hertz) = (1e9 / rates.median, clock()?);
            Ok(row
                .measured((ns * hertz / 1e9).round())
                .extra("ns_per_packet", ns)
                .note(format!("{ns:.1} ns at {:.2} GHz, memory included", hertz / 1e9)))
        });
    }
    for (what, place, known, bytes) in [
        ("16 kB", "Scratch", 16, 16 << 10),
        ("256 kB", "SRAM", 22, 256 << 10),
        ("64 MB", "DRAM", 52, 64 << 20),
    ] {
        let name = format!("table 3: a read from {what} of memory (the paper's {place})");
        book.row(paper(Row::new(name, "cycles"), known), |row| memory_read(settings, row, bytes));
    }
}

/// Runs a stage if this process was started for that; returns false otherwise.
pub fn play_stage() -> bool {
    let Ok(text) = std::env::var(STAGE) else { return false };
    let mut words = text.split(' ');
    if text.starts_with("flood ") {
        super::floods::play(words.skip(1));
        return true;
    }
    let number = |word: Option<&str>| word.and_then(|word| word.parse::<usize>().ok());
    let (stage, bursts) = (number(words.next()), number(words.next()));
    let Some(stage) = stage.and_then(|stage| Stage::ALL.get(stage)) else { return true };
    // The parent sees from the numbers if this failed.
    let _ = stage.with(|mut burst| {
        for _ in 0..bursts.unwrap_or(0) {
            burst();
        }
    });
    true
}

/// Bursts of the shorter and of the longer run.
const BURSTS: [u64; 2] = [5, 25];

/// Counts of the stage alone, over the bursts between both numbers: the output stage's packets come from the
/// input stage, which is subtracted.
fn counts(settings: &Settings<'_>, stage: Stage) -> Result<CallgrindCounts, BenchError> {
    let count = |stage: Stage| {
        let text = |bursts| format!("{} {bursts}", stage as usize);
        counted_between(settings, &["--cache-sim=yes"], BURSTS, text)
    };
    let all = count(stage)?;
    if stage == Stage::Output { Ok(all.less(count(Stage::Input)?)) } else { Ok(all) }
}

/// Such a count of each packet.
fn per_packet(count: u64) -> f64 {
    (count as f64 / ((BURSTS[1] - BURSTS[0]) * BURST) as f64).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_run_in_bursts() {
        for stage in Stage::ALL {
            assert_eq!(stage.with(|mut burst| burst().0).unwrap(), BURST);
        }
    }
}
