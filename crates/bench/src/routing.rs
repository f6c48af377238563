//! A router alone on one core: minimal IP, the cost of programs, and whether admission's promises hold.

use crate::rig::{FRAME, Frame, FrameSpec, PORTS, Rig, destination, in_turns};
use crate::straight::straight;
use crate::{BenchError, Sample, Settings};
use crate::{calibrate, installing};
use longwire_block::Dice;
use longwire_packet::BATCH;
use longwire_program::Resource;
use longwire_report::Row;
use longwire_router::{Admission, Budget, Forwarder, Installation, Key, RouterPrices};
use std::hint::black_box;
use std::time::Instant;

const PREFIXES: u32 = 1_000_000;
const QUICK_PREFIXES: u32 = 20_000;
/// Packets of one pass.
const PACKETS: usize = 1 << 20;
const QUICK_PACKETS: usize = 1 << 14;
/// Number of destinations that fit the route cache.
const KNOWN: u32 = 1000;
const BATCHES: usize = 20_000;
const QUICK_BATCHES: usize = 200;
/// Flows with their own program and state: together more than the caches of a core hold.
const FLOWS: u16 = 2048;
const QUICK_FLOWS: u16 = 32;

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let mut rows = forwarding(settings)?;
    rows.extend(added(settings)?);
    rows.push(made(settings)?);
    rows.extend(installing::rows(settings)?);
    rows.extend(promised(settings)?);
    Ok(rows)
}

/// Minimal IP, memory to memory.
fn forwarding(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    settings.next("router: a million prefixes")?;
    let mut rig = Rig::new(Admission::default())?;
    let prefixes = if settings.quick { QUICK_PREFIXES } else { PREFIXES };
    rig.add_routes(prefixes)?;
    let packets = if settings.quick { QUICK_PACKETS } else { PACKETS };
    let mut rows = Vec::new();
    for (what, among, target) in
        [("random destinations", prefixes, 8e6), ("1000 destinations: route cache hits", KNOWN, 12e6)]
    {
        let name = format!("router: minimal IP, 64 B, {PORTS} ports, {what}");
        let frames: Vec<Frame> = (0..packets as u32)
            .map(|n| FrameSpec::UDP.to(destination(n.wrapping_mul(7919) % among)))
            .collect();
        let (before, mut passed) = (rig.router.stats(), 0);
        let rates: Sample = settings.repeat(8, &name, || {
            let begin = Instant::now();
            passed += pass(&mut rig, &frames);
            Ok(frames.len() as f64 / begin.elapsed().as_secs_f64())
        })?;
        let after = rig.router.stats();
        let all = (rates.values().len() * frames.len()) as u64;
        let hits = (after.cache_hits - before.cache_hits) as f64 * 100.0 / all as f64;
        let row = rates.at_least(&name, "pps", target);
        let row = if passed == all { row } else { row.judged(false).note("packets were lost") };
        rows.push(
            row.extra("cache_hits_percent", hits)
                .note(format!("{hits:.1} % of the route cache's searches are hits")),
        );
    }
    Ok(rows)
}

/// Passes every frame once, from memory through the router and back. Returns the number sent.
fn pass(rig: &mut Rig, frames: &[Frame]) -> u64 {
    let before = rig.tally().forwarded;
    let mut sent = [0; FRAME];
    for chunk in frames.chunks(BATCH) {
        let batch = rig.take_in(chunk.iter().map(|frame| (0, frame)));
        rig.forward(&batch);
        rig.give_out(&batch, |_, frame| {
            sent.copy_from_slice(frame);
            black_box(&sent);
        });
    }
    rig.tally().forwarded - before
}

/// Additional time per packet of an empty program and of one with 60 instructions.
fn added(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let frames = vec![(0, FrameSpec::UDP.frame()); BATCH];
    let batches = if settings.quick { QUICK_BATCHES } else { BATCHES };
    let mut samples = [Vec::new(), Vec::new()];
    let names = ["router: added by an empty program", "router: added by a program of 60 instructions"];
    for _ in 0..settings.runs(5) {
        settings.next("router: programs")?;
        let rig = || Rig::new(Admission::default());
        let [mut plain, mut empty, mut sixty] = [rig()?, rig()?, rig()?];
        empty.install(straight(2)?, Key::All, None)?;
        sixty.install(straight(60)?, Key::All, None)?;
        let mut rigs = [(&mut plain, &frames[..]), (&mut empty, &frames[..]), (&mut sixty, &frames[..])];
        let costs = in_turns(&mut rigs, batches, || settings.go_on())?;
        for (sample, with) in samples.iter_mut().zip(&costs[1..]) {
            sample.push(with.median() - costs[0].median());
        }
    }
    let rows = samples.into_iter().zip(names).zip([4.0, 15.0]);
    let judged = |((sample, name), most)| Sample::from_iter(sample).median_at_most(name, "ns", most);
    Ok(rows.map(judged).collect())
}

/// Time of verification and compilation.
fn made(settings: &Settings<'_>) -> Result<Row, BenchError> {
    let name = "router: verifying and compiling a program of 500 instructions";
    let times: Sample = settings.repeat(11, name, || {
        let program = straight(500)?;
        let begin = Instant::now();
        let forwarder = Forwarder::prepare(program, Installation::default(), &RouterPrices::default(), 1)?;
        let time = begin.elapsed().as_nanos() as f64;
        if !forwarder.is_compiled() {
            return Err(BenchError::not_here("programs are not compiled on this machine"));
        }
        Ok(time)
    })?;
    Ok(times.at_most(name, "ns", 5e6))
}

/// Programs with a single path, so that each packet takes the worst case, at calibrated prices: many flows
/// with their own program and state, in random order, so that states and code are not in the near caches. The
/// computed time of a packet is held if 99 of 100 batches take no longer.
fn promised(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let prices = calibrate::prices(settings)?;
    let flows = if settings.quick { QUICK_FLOWS } else { FLOWS };
    let mut rows = Vec::new();
    for (what, program) in calibrate::one_way_programs()? {
        let name = format!("router: promised time held, {what}");
        settings.next(&name)?;
        let admission = Admission { budget: Budget::default(), prices: prices.clone() };
        let mut rig = Rig::new(admission)?;
        let spec = |flow: u16| FrameSpec { ports: [1024 + flow, 53], ..FrameSpec::UDP };
        // One table with all of them, built step by step: each is verified and compiled separately.
        for flow in 0..flows {
            rig.install(program.clone(), spec(flow).flow(), None)?;
        }
        let promise = rig.router.forwarders().need().amount(Resource::Time) as f64 / 1e3;
        let mut dice = Dice::named(1, "bench/promised");
        let mut costs = Vec::new();
        for _ in 0..if settings.quick { QUICK_BATCHES } else { BATCHES / 10 } {
            settings.go_on()?;
            let frames: Vec<_> =
                (0..BATCH).map(|_| (0, spec(dice.below(flows.into()) as u16).frame())).collect();
            costs.push(rig.time_batch(&frames).as_nanos() as f64 / BATCH as f64);
        }
        let costs: Sample = costs.into_iter().collect();
        let row = Row::new(name, "ns").expected(promise).measured(costs.quantile(0.99)).at_most();
        rows.push(row.extra("median_ns", costs.median()).note(format!(
            "p99 of {} batches, median {:.0} ns; {:.2} Mpps are promised; {flows} flows with a program and a \
             state each",
            costs.values().len(),
            costs.median(),
            1e3 / promise
        )));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_program::{Item, verify};

    #[test]
    fn programs_have_as_many_instructions_as_they_say() {
        for instructions in [2, 60, 500] {
            let most = *verify(straight(instructions).unwrap()).unwrap().most();
            assert_eq!(most[Item::Instruction] as usize, instructions);
        }
    }

    #[test]
    fn passes_lose_nothing() {
        let mut rig = Rig::new(Admission::default()).unwrap();
        rig.add_routes(1000).unwrap();
        let frames: Vec<_> = (0..1000).map(|n| FrameSpec::UDP.to(destination(n))).collect();
        assert_eq!(pass(&mut rig, &frames), 1000);
    }
}
