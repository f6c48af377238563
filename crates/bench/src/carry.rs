//! Runs of one kind of packet through one part of Longwire, each in its own process, for `cargo xtask
//! instructions`.
//!
//! A run ends, with the process, when its source has sent the given number of packets. The difference between
//! two lengths excludes everything done once; packets still inside at the end are as many in both.

use crate::engine::{Case, setup};
use crate::rig::{Frame, FrameSpec, Rig, destination};
use crate::straight::straight;
use crate::world::Driver;
use crate::{BenchError, blocks, carry_ports, engine, receiving_by};
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_link::LinkConfig;
use longwire_packet::{BATCH, Batch, Gso, Pool, Train};
use longwire_router::{Admission, Key};
use longwire_units::Nanos;
use std::hint::black_box;
use std::time::Duration;

/// Number of links in the row `many`.
const MANY: u32 = 100_000;
/// Prefixes of the routers, and destinations: more and fewer than the route cache holds.
const PREFIXES: u32 = 20_000;
const KNOWN: u32 = 1000;
/// Bytes of a train segment's payload, and of the headers before it.
const PAYLOAD: usize = 1448;
const HEADERS: usize = 66;
/// Segments of a train.
const SEGMENTS: usize = 44;

/// The part under test.
enum Subject {
    Engine(Case),
    Trains(Case),
    /// Number of destinations, and instruction count of a program for all packets.
    Router(u32, Option<usize>),
    /// Between two ports of this driver.
    Ports(Driver),
}

/// All rows by name.
///
/// # Errors
/// If a link's settings are invalid.
fn rows() -> Result<Vec<(String, Subject)>, BenchError> {
    let empty = LinkConfig::default();
    let dice = empty.clone().with_text("loss", "0 %")?;
    let rate = empty.clone().with_text("rate", "100 Gbit/s")?;
    let delay = empty.clone().with_text("delay", "10 ms")?;
    let busy = dice.clone().with_text("rate", "100 Gbit/s")?.with_text("delay", "10 ms")?;
    let case = |config: &LinkConfig| Case::new(config, Duration::ZERO);
    let mut rows = vec![
        ("plain".into(), Subject::Engine(case(&dice))),
        ("busy".into(), Subject::Engine(case(&busy))),
        (
            "many".into(),
            Subject::Engine(Case { links: MANY, shuffled: true, pool_bytes: 1 << 30, ..case(&busy) }),
        ),
        ("bridge".into(), Subject::Engine(Case { beside: true, ..case(&dice) })),
        ("train of 44 segments".into(), Subject::Trains(case(&busy))),
        ("link without blocks".into(), Subject::Engine(case(&empty))),
        ("link with a delay".into(), Subject::Engine(case(&delay))),
        ("link with a rate".into(), Subject::Engine(case(&rate))),
        ("minimal IP, cached".into(), Subject::Router(KNOWN, None)),
        ("minimal IP, not cached".into(), Subject::Router(u32::MAX, None)),
        ("minimal IP, an empty program".into(), Subject::Router(KNOWN, Some(2))),
        ("minimal IP, a program of 60 instructions".into(), Subject::Router(KNOWN, Some(60))),
    ];
    rows.extend(Driver::ALL.map(|driver| (format!("port {}", driver.name()), Subject::Ports(driver))));
    rows.extend(blocks::cases()?.into_iter().map(|(name, case)| (name, Subject::Engine(case))));
    Ok(rows)
}

/// The names of all rows, in order.
///
/// # Errors
/// If a link's settings are invalid.
pub fn names() -> Result<Vec<String>, BenchError> {
    Ok(rows()?.into_iter().map(|(name, _)| name).collect())
}

/// Carries at least `packets` packets or trains through the row `name`, and exits.
///
/// # Errors
/// If there is no such row, memory is lacking, or this machine lacks something the row needs
/// ([`BenchError::NotHere`]).
pub fn carry(name: &str, packets: u64) -> Result<std::convert::Infallible, BenchError> {
    let found = rows()?.into_iter().find(|(other, _)| other == name);
    let (_, subject) =
        found.ok_or_else(|| BenchError::NotHere(format!("nothing to carry is called {name}")))?;
    match subject {
        Subject::Engine(case) => {
            // Before counting starts, each link has had a packet.
            let left = packets + u64::from(case.links);
            through_engine(&case, |port| ending(port, left))
        }
        Subject::Trains(case) => through_engine(&case, |_| ending(Box::new(Trains::new()), packets)),
        Subject::Router(destinations, program) => through_router(destinations, program, packets),
        Subject::Ports(driver) => {
            carry_ports::run(driver, packets)?;
            std::process::exit(0);
        }
    }
}

fn through_engine(
    case: &Case,
    wrap: impl FnOnce(Box<dyn Port>) -> Box<dyn Port>,
) -> Result<std::convert::Infallible, BenchError> {
    let (setup, _) = setup(case, wrap)?;
    let _run = setup.start();
    loop {
        std::thread::park();
    }
}

fn through_router(
    destinations: u32,
    program: Option<usize>,
    packets: u64,
) -> Result<std::convert::Infallible, BenchError> {
    let mut rig = Rig::new(Admission::default())?;
    rig.add_routes(PREFIXES)?;
    if let Some(instructions) = program {
        rig.install(straight(instructions)?, Key::All, None)?;
    }
    let to = |n: u32| FrameSpec::UDP.to(destination(n.wrapping_mul(7919) % destinations));
    let frames: Vec<Frame> = (0..PREFIXES).map(to).collect();
    let mut left = packets;
    loop {
        for chunk in frames.chunks(BATCH) {
            let batch = rig.take_in(chunk.iter().map(|frame| (0, frame)));
            rig.forward(&batch);
            rig.give_out(&batch, |_, frame| {
                black_box(frame);
            });
            left = left.saturating_sub(chunk.len() as u64);
            if left == 0 {
                std::process::exit(0);
            }
        }
    }
}

/// A source that exits the process after this many packets.
fn ending(source: Box<dyn Port>, mut left: u64) -> Box<dyn Port> {
    receiving_by(source, move |source, pool, now, batch| {
        if left == 0 {
            std::process::exit(0);
        }
        source.receive(pool, now, batch)?;
        left = left.saturating_sub(batch.len() as u64);
        Ok(())
    })
}

/// A source of trains of full segments of one TCP connection, which takes a case's first link.
struct Trains {
    frame: Vec<u8>,
}

impl Trains {
    fn new() -> Self {
        let spec = FrameSpec { protocol: 6, ..FrameSpec::UDP };
        let mut frame = spec.frame().to_vec();
        frame.resize(HEADERS + SEGMENTS * PAYLOAD, 0);
        engine::address(&mut frame);
        let total = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        // A header of eight words: timestamps after two bytes of padding, as in bulk connections.
        frame[46] = 0x80;
        frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
        Self { frame }
    }
}

impl Port for Trains {
    fn name(&self) -> &str {
        "trains"
    }

    fn describe(&self) -> String {
        format!("trains of {SEGMENTS} segments")
    }

    fn stamp(&self) -> Stamp {
        Stamp::Poll
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        let Some(handle) = pool.insert(&self.frame) else { return Ok(()) };
        let meta = pool.meta_mut(handle);
        meta.arrival = now.0;
        meta.set_train(Train {
            gso: Gso::TcpV4 as u8,
            segments: SEGMENTS as u16,
            gso_size: PAYLOAD as u16,
            header_len: HEADERS as u16,
        });
        meta.set_open_checksum(34, 16);
        batch.push(handle);
        Ok(())
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        batch.as_slice().iter().for_each(|&handle| pool.free(handle));
        Ok(())
    }

    fn stats(&self) -> PortStats {
        PortStats::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_each_there_once() {
        let mut names = names().unwrap();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(matches!(carry("nothing", 1), Err(BenchError::NotHere(_))));
    }

    #[test]
    fn trains_are_what_a_wire_would_carry() {
        let mut pool = Pool::new(8 << 20).unwrap();
        let mut batch = Batch::new();
        Trains::new().receive(&mut pool, Nanos(5), &mut batch).unwrap();
        let handle = batch.as_slice()[0];
        let last = longwire_wire::segment(&mut pool, handle, SEGMENTS as u16 - 1, 1).unwrap();
        assert_eq!(pool.data(last).len(), HEADERS + PAYLOAD);
        assert_eq!(pool.meta(handle).segment_bytes() as usize, SEGMENTS * (HEADERS + PAYLOAD));
    }
}
