//! Tables 2 and 3: the cost of a packet of 64 bytes in each stage, and of memory accesses.

use super::callgrind::{CallgrindCounts, STAGE, counted};
use super::clock;
use super::queue::{Buffers, Guard, Queue};
use super::stage::{BURST, Choice, Input, Output};
use super::together::{Burst, rates};
use crate::Settings;
use crate::book::{Book, paper};
use longwire_bench::rig::{FrameSpec, Rig};
use longwire_bench::{BenchError, latency};
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
        let mut per_packet = || -> Result<PerPacket, BenchError> {
            match counted {
                Some(counted) => Ok(counted),
                None => Ok(*counted.insert(PerPacket::of(settings, stage)?)),
            }
        };
        let row = Row::new(format!("table 2: {}, instructions of a packet", stage.name()), "");
        let row = stage.operations().map_or(row.clone(), |known| paper(row, known));
        book.row(row, |row| {
            let note = "counted by valgrind's callgrind, as a difference of two runs";
            Ok(row.measured(per_packet()?.instructions.round()).note(note))
        });
        for (what, known) in ["read", "write"].into_iter().zip(stage.transfers()) {
            let name = format!("table 2: {}, memory operations of a packet, {what}", stage.name());
            let row = Row::new(name, "");
            let row = known.map_or(row.clone(), |known| paper(row, known));
            book.row(row, |row| {
                let counted = per_packet()?;
                let count = if what == "read" { counted.reads } else { counted.writes };
                Ok(row.measured(count.round()).note(
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
    for (what, known, bytes) in [("16 kB", 16, 16 << 10), ("256 kB", 22, 256 << 10), ("64 MB", 52, 64 << 20)]
    {
        let place = if known == 16 {
            "Scratch"
        } else if known == 22 {
            "SRAM"
        } else {
            "DRAM"
        };
        let name = format!("table 3: a read from {what} of memory (the paper's {place})");
        book.row(paper(Row::new(name, "cycles"), known), |row| {
            settings.require_real_time("speed")?;
            settings.go_on()?;
            let ns = latency::latency(bytes);
            Ok(row
                .measured((ns * clock()? / 1e9).round())
                .extra("ns", ns)
                .note(format!("{ns:.1} ns, each read waiting for the one before")))
        });
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

/// Counts per packet.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PerPacket {
    instructions: f64,
    reads: f64,
    writes: f64,
}

impl PerPacket {
    fn less(self, other: Self) -> Self {
        Self {
            instructions: self.instructions - other.instructions,
            reads: self.reads - other.reads,
            writes: self.writes - other.writes,
        }
    }

    /// Of the stage alone: the output stage's packets come from the input stage, which is subtracted.
    fn of(settings: &Settings<'_>, stage: Stage) -> Result<Self, BenchError> {
        let all = Self::counted(settings, stage)?;
        if stage != Stage::Output {
            return Ok(all);
        }
        Ok(all.less(Self::counted(settings, Stage::Input)?))
    }

    /// The difference between more and fewer packets.
    fn counted(settings: &Settings<'_>, stage: Stage) -> Result<Self, BenchError> {
        const BURSTS: [usize; 2] = [5, 25];
        let count = |bursts| {
            settings.go_on()?;
            counted(&format!("{} {bursts}", stage as usize), &["--cache-sim=yes"])
        };
        let [few, many] = [count(BURSTS[0])?, count(BURSTS[1])?];
        let packets = ((BURSTS[1] - BURSTS[0]) as u64 * BURST) as f64;
        let each = |of: fn(&CallgrindCounts) -> u64| of(&many).saturating_sub(of(&few)) as f64 / packets;
        Ok(Self {
            instructions: each(|counted| counted.instructions),
            reads: each(|counted| counted.reads),
            writes: each(|counted| counted.writes),
        })
    }
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
