//! Figures 9 and 10: forwarding rate with increasing work per packet: programs of n blocks, installed in a
//! router for all packets, with and without contention for one output queue.

use super::queue::{Buffers, Entry, Frame, Guard, Queue};
use super::stage::BURST;
use super::together::{Burst, Rates, rates};
use crate::Settings;
use crate::book::{Book, paper};
use crate::plot::{Plot, Style};
use longwire_bench::rig::{FrameSpec, PORTS, Rig};
use longwire_bench::{BenchError, processors, require_two_processors};
use longwire_packet::BATCH;
use longwire_program::{Program, assemble};
use longwire_report::Row;
use longwire_router::{Admission, Key};
use std::fmt::Write as _;
use std::time::Duration;

const TIME: Duration = Duration::from_millis(250);
const QUICK: Duration = Duration::from_millis(10);
/// Numbers of blocks.
const COUNTS: [usize; 6] = [0, 4, 8, 16, 32, 64];
/// The paper's budget for a packet at 1 Mpps, in blocks of both kinds (section 4.2).
const LEFT: u64 = 32;
const BUFFERS: usize = 1 << 12;

/// Kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// 10 operations on registers.
    Registers,
    /// One load of 4 bytes of state, each from another cache line, and an addition that uses it.
    Memory,
    /// Both.
    Both,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Registers, Self::Memory, Self::Both];

    const fn name(self) -> &'static str {
        match self {
            Self::Registers => "10 register operations",
            Self::Memory => "a 4-byte memory access",
            Self::Both => "10 register operations and a memory access",
        }
    }
}

/// A program of this many blocks, at most 64. The results are used, and unpredictable.
///
/// # Errors
/// Never: the program is constant.
pub(super) fn program(kind: Kind, blocks: usize) -> Result<Program, BenchError> {
    const LINE: usize = 64;
    let mut text = "r7 = *(u32 *)(r1 + 12)\n r8 = *(u32 *)(r1 + 16)\n".to_owned();
    if kind != Kind::Registers && blocks > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "r1 = {}\n call lw_flow_state\n r6 = r0", blocks * LINE);
    }
    for block in 0..blocks {
        if kind != Kind::Memory {
            text += &"r7 += r8\n r8 ^= r7\n".repeat(5);
        }
        if kind != Kind::Registers {
            let _ = writeln!(text, "r3 = *(u32 *)(r6 + {})\n r7 += r3", block * LINE);
        }
    }
    text += "r7 ^= r8\n r0 = 2\n if r7 != 0x12345677 goto out\n r0 = 1\n out: exit";
    Ok(Program::new("blocks", assemble(&text)?, []))
}

pub(super) fn rows(book: &mut Book<'_>) {
    let mut apart = Vec::new();
    for (figure, together) in [("fig 9", false), ("fig 10", true)] {
        let mut curves = Vec::new();
        for kind in Kind::ALL {
            let mut curve = Vec::new();
            for blocks in COUNTS {
                curve.extend(point(book, figure, together, (kind, blocks)));
            }
            curves.push((kind, curve));
        }
        if !together {
            left(book, &curves[2].1);
            apart.clone_from(&curves[2].1);
        }
        plot(book, together, curves, &apart);
    }
}

fn point(
    book: &mut Book<'_>,
    figure: &str,
    together: bool,
    (kind, blocks): (Kind, usize),
) -> Option<(f64, f64)> {
    let settings = book.settings;
    let queue = if together { "all to one queue" } else { "no contention" };
    let name = format!("{figure}: {queue}, {blocks} blocks of {}", kind.name());
    let rate = book.number(Row::new(name, "pps"), |row| {
        if together {
            require_two_processors("one processor alone has nobody to contend with")?;
        }
        let rates = input(settings, together, kind, blocks)?;
        let ns = processors() as f64 * 1e9 / rates.median;
        let note = format!("{} workers, {ns:.1} ns a packet in each", processors());
        Ok(row.measured(rates.median).extra("best", rates.best).extra("ns_per_packet", ns).note(note))
    })?;
    Some((blocks as f64, rate / 1e6))
}

/// Input workers, each with its own router and the program: frames into packets, the router, and out to a
/// queue.
fn input(settings: &Settings<'_>, together: bool, kind: Kind, blocks: usize) -> Result<Rates, BenchError> {
    let workers = processors();
    let queues: Vec<Queue> = (0..workers).map(|_| Queue::new(BUFFERS)).collect();
    let buffers: Vec<Buffers> = (0..workers).map(|_| Buffers::new(BUFFERS)).collect();
    let mut bursts: Vec<Burst<'_>> = Vec::new();
    for worker in 0..workers {
        let mut rig = Rig::new(Admission::default())?;
        if blocks > 0 {
            rig.install(program(kind, blocks)?, Key::All, None)?;
        }
        let frames: Vec<_> = (0..BATCH as u16)
            .map(|at| {
                (at % PORTS, FrameSpec { from: at % PORTS, to: (at + 1) % PORTS, ..FrameSpec::UDP }.frame())
            })
            .collect();
        let queue = &queues[if together { 0 } else { worker }];
        let buffers = &buffers[worker];
        let mut next = 0;
        bursts.push(Box::new(move || {
            for _ in 0..BURST / BATCH as u64 {
                let batch = rig.take_in(frames.iter().map(|(port, frame)| (*port, frame)));
                rig.forward(&batch);
                rig.give_out(&batch, |_, frame| {
                    buffers.write(next, &words(frame));
                    queue.put(Guard::Lock, &mut 0, Entry::new(worker, next));
                    next += 1;
                });
            }
            (BURST, None)
        }));
    }
    rates(settings, bursts, settings.choose(TIME, QUICK))
}

/// The first 64 bytes of a frame, or fewer.
fn words(frame: &[u8]) -> Frame {
    let mut bytes = [0; 64];
    let len = frame.len().min(64);
    bytes[..len].copy_from_slice(&frame[..len]);
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

/// Number of blocks of both kinds that fit a packet at 1 Mpps, by the line through the smallest and largest
/// measured numbers.
fn left(book: &mut Book<'_>, points: &[(f64, f64)]) {
    let row = paper(Row::new("fig 9: blocks of both that 1 Mpps leaves", "blocks"), LEFT);
    book.row(row.expected(LEFT), |row| {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Err(BenchError::not_here("the rows that it follows from were not run"));
        };
        let Some(blocks) = at_one_mpps(*first, *last) else {
            return Err(BenchError::not_here("the rows that it follows from do not differ"));
        };
        Ok(row.measured(blocks.floor()).at_least().note(format!(
            "by the line through the times of {} and {} blocks; of all workers together",
            first.0, last.0
        )))
    });
}

/// Where the line through a packet's times at two points, in Mpps, reaches a microsecond; at least 0.
fn at_one_mpps((x1, rate1): (f64, f64), (x2, rate2): (f64, f64)) -> Option<f64> {
    let (time1, time2) = (1.0 / rate1, 1.0 / rate2);
    let each = (time2 - time1) / (x2 - x1);
    (each > 0.0 && each.is_finite()).then(|| (x1 + (1.0 - time1) / each).max(0.0))
}

fn plot(book: &mut Book<'_>, together: bool, curves: Vec<(Kind, Vec<(f64, f64)>)>, apart: &[(f64, f64)]) {
    let title = if together { "Figure 10: all to one queue" } else { "Figure 9: no contention" };
    let mut plot = Plot::new(title, "blocks", "Mpps");
    for (kind, points) in curves {
        plot = plot.with(kind.name(), Style::Line, points);
    }
    if together {
        plot = plot.with("both, without contention", Style::Reference, apart.to_vec());
    } else {
        plot = plot.with("the paper: 32 blocks of both", Style::Reference, vec![(0.0, 1.0), (32.0, 1.0)]);
    }
    book.plot(plot);
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_program::{Item, verify};

    #[test]
    fn a_block_is_what_it_is_called() {
        let most = |kind, blocks| *verify(program(kind, blocks).unwrap()).unwrap().most();
        let none = most(Kind::Both, 0)[Item::Instruction];
        let instructions = |kind| most(kind, 64)[Item::Instruction] - none;
        assert_eq!(instructions(Kind::Registers), 640);
        // Three more for the state's address.
        assert_eq!((instructions(Kind::Memory), instructions(Kind::Both)), (128 + 3, 768 + 3));
        let both = most(Kind::Both, 64);
        assert_eq!((both[Item::StateTransfer], both[Item::StateByte], both[Item::StateLine]), (64, 256, 64));
        assert_eq!(most(Kind::Registers, 64)[Item::StateByte], 0);
    }

    #[test]
    fn what_is_left_at_a_rate_by_hand() {
        // 200 ns with none and 840 with 64 are 10 ns a block: 80 blocks in a microsecond.
        let blocks = at_one_mpps((0.0, 5.0), (64.0, 1.0 / 0.84)).unwrap();
        assert!((blocks - 80.0).abs() < 1e-6);
        assert_eq!(at_one_mpps((0.0, 0.5), (64.0, 0.25)), Some(0.0));
        assert_eq!(at_one_mpps((0.0, 5.0), (64.0, 5.0)), None);
    }
}
