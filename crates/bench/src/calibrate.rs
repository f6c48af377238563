//! Measures the prices that admission uses on this machine. Programs do each item more and less often, in a
//! router; everything outside the packet is a cache miss.

use crate::latency::latency;
use crate::rig::{FRAME, Frame, FrameSpec, Rig, in_turns};
use crate::{BenchError, Sample, Settings};
use longwire_packet::BATCH;
use longwire_program::{Item, MapKind, MapSpec, Prices, Program, assemble};
use longwire_router::{Admission, Key, RouterPrices};
use std::borrow::Cow;

/// The lower and the higher number of repetitions.
const FEW: usize = 8;
const MANY: usize = 72;
const BATCHES: usize = 3_000;
const QUICK: usize = 60;
/// More than any cache.
const FAR: usize = 256 << 20;
const QUICK_FAR: usize = 16 << 20;
const PREFIXES: u32 = 1_000_000;
const QUICK_PREFIXES: u32 = 10_000;
/// Cache lines touched by a hash map search, besides the value: two buckets of 16 words, and the key. An
/// update touches two more.
const SEARCHED: u64 = 5;
const CHANGED: u64 = 7;

/// Two unpredictable numbers.
const NUMBERS: &str = "r9 = r1\n r0 = 2\n r7 = *(u32 *)(r1 + 12)\n r8 = *(u32 *)(r1 + 16)\n";
/// 64 bytes of stack.
const STACK: &str = "r3 = 0\n *(u64 *)(r10 - 64) = r3\n *(u64 *)(r10 - 56) = r3\n *(u64 *)(r10 - 48) = r3\n \
    *(u64 *)(r10 - 40) = r3\n \
    *(u64 *)(r10 - 32) = r3\n *(u64 *)(r10 - 24) = r3\n *(u64 *)(r10 - 16) = r3\n *(u64 *)(r10 - 8) = r3\n";
/// 54 bytes of the packet, from r6 on.
const PACKET: &str =
    "r6 = *(u32 *)(r1 + 0)\n r2 = *(u32 *)(r1 + 4)\n r3 = r6\n r3 += 54\n if r3 > r2 goto out\n";
/// All of the largest state.
const LINES: &str = "r1 = 4096\n call lw_flow_state\n r6 = r0\n";
const STATE: &str = "r1 = 64\n call lw_flow_state\n r6 = r0\n";
const KEY: &str = "r3 = 0\n *(u64 *)(r10 - 16) = r3\n *(u64 *)(r10 - 8) = r3\n";
/// Writes the value of that key, which a hash map then contains.
const WRITE: &str =
    "r3 = r10\n r3 += -16\n r2 = r10\n r2 += -8\n r1 = map[0] ll\n r4 = 0\n call map_update_elem\n";
const FOUND: &str = "r2 = r10\n r2 += -8\n r1 = map[0] ll\n call map_lookup_elem\n if r0 == 0 goto out\n";
/// Uses all results, so that nothing is optimised away.
const END: &str = "r7 ^= r8\n r0 = 2\n if r7 != 0x12345677 goto out\n r0 = 1\n out: exit";

/// An operation and its setup.
struct Probe {
    /// Setup in addition to [`NUMBERS`].
    before: &'static [&'static str],
    /// The operation; `#` is replaced by the repetition's number.
    block: Cow<'static, str>,
    map: Option<MapKind>,
}

const fn probe(before: &'static [&'static str], block: &'static str) -> Probe {
    Probe { before, block: Cow::Borrowed(block), map: None }
}

/// Instructions, by what they do. The most expensive one sets the price of all.
const INSTRUCTIONS: [(&str, Probe); 4] = [
    ("instruction: sums", probe(&[], "r7 += r8\n r8 ^= r7\n")),
    ("instruction: products", probe(&[], "r7 *= r8\n r8 += r7\n")),
    ("instruction: the stack", probe(&[], "*(u64 *)(r10 - 8) = r7\n r7 = *(u64 *)(r10 - 8)\n")),
    ("instruction: branches", probe(&[], "if r7 == 0x4711# goto b#\n r8 += r7\n b#: r7 += r8\n")),
];

/// The prices of a machine, in picoseconds.
///
/// # Errors
/// If the bench is stopped, or memory is lacking.
pub fn prices(settings: &Settings<'_>) -> Result<RouterPrices, BenchError> {
    let mut own = 0.0f64;
    for (what, probe) in &INSTRUCTIONS {
        own = own.max(each(settings, what, probe)? / probe.instructions());
    }
    settings.next("a cache miss")?;
    let miss = latency(if settings.quick { QUICK_FAR } else { FAR });
    let mut list = Prices::NONE.with(Item::Instruction, picoseconds(own));
    for (item, times, probe) in simple() {
        let cost = each(settings, item.name(), &probe)? - probe.instructions() * own;
        let misses = match item {
            Item::HashLookup => SEARCHED,
            Item::HashUpdate => CHANGED,
            _ => 0,
        };
        list = list.with(item, picoseconds(cost / times + misses as f64 * miss));
    }
    for (item, byte, [short, long], bytes) in sized() {
        let [less, more] = [each(settings, item.name(), &short)?, each(settings, item.name(), &long)?];
        let per_byte = ((more - less) / f64::from(bytes[1] - bytes[0])).max(0.0);
        let base = less - short.instructions() * own - f64::from(bytes[0]) * per_byte;
        list = list.with(item, picoseconds(base)).with(byte, picoseconds(per_byte));
    }
    let (lookup, update) = (list.price(Item::HashLookup), list.price(Item::ArrayUpdate));
    let list = list
        .with(Item::StateLine, picoseconds(miss))
        .with(Item::MapLine, picoseconds(miss))
        .with(Item::PortLookup, lookup)
        // Both take one atomic exchange and write one line. A ring without a reader can't be measured.
        .with(Item::Record, update);
    let [classify, forward] = router(settings)?;
    Ok(RouterPrices { items: list, classify: picoseconds(classify), forward: picoseconds(forward) })
}

/// Programs that do one thing often and have a single path, which is their worst case, by what they do.
///
/// # Errors
/// Never: the programs are constant.
pub(crate) fn one_way_programs() -> Result<Vec<(&'static str, Program)>, BenchError> {
    const TIMES: usize = 24;
    let long = sized().into_iter().map(|(item, _, [_, long], _)| (item.name(), long));
    let simple = simple().into_iter().map(|(item, _, probe)| (item.name(), probe));
    let lines = probe(&[LINES], "r3 = *(u64 *)(r6 + #)\n r7 += r3\n");
    let all = INSTRUCTIONS.into_iter().chain(simple).chain(long);
    let mut programs: Vec<_> =
        all.map(|(name, probe)| Ok((name, probe.program(TIMES)?))).collect::<Result<_, BenchError>>()?;
    // Numbers a cache line apart.
    programs.push((Item::StateLine.name(), lines.spread(TIMES, 64)?));
    Ok(programs)
}

/// Whole picoseconds, at least 0.
fn picoseconds(ns: f64) -> u64 {
    (ns.max(0.0) * 1e3).ceil() as u64
}

/// Items, their number in a block, and the block.
fn simple() -> Vec<(Item, f64, Probe)> {
    let with = |map, probe: Probe| Probe { map: Some(map), ..probe };
    let access = "r3 = *(u64 *)(r6 + 0)\n r7 += r3\n *(u64 *)(r6 + 0) = r7\n";
    let search = "r2 = r10\n r2 += -8\n r1 = map[0] ll\n call map_lookup_elem\n if r0 == 0 goto out\n r3 = \
        *(u64 *)(r0 + 0)\n r7 += r3\n";
    vec![
        (Item::Division, 1.0, probe(&["r8 |= 3\n r6 = 0x7fffffffffffffff ll\n"], "r7 |= r6\n r7 /= r8\n")),
        (Item::PacketLoad, 1.0, probe(&[PACKET], "r3 = *(u8 *)(r6 + 43)\n r7 += r3\n")),
        (Item::PacketStore, 1.0, probe(&[PACKET], "*(u8 *)(r6 + 43) = r7\n r7 += r8\n")),
        (Item::StateAccess, 2.0, probe(&[STATE], access)),
        (Item::MapAccess, 2.0, with(MapKind::Array, probe(&[KEY, FOUND, "r6 = r0\n"], access))),
        (Item::Atomic, 1.0, probe(&[STATE], "lock *(u64 *)(r6 + 0) += r7\n")),
        (Item::ArrayLookup, 1.0, with(MapKind::Array, probe(&[KEY, WRITE], search))),
        (Item::HashLookup, 1.0, with(MapKind::Hash, probe(&[KEY, WRITE], search))),
        (Item::ArrayUpdate, 1.0, with(MapKind::Array, probe(&[KEY], WRITE))),
        (Item::HashUpdate, 1.0, with(MapKind::Hash, probe(&[KEY], WRITE))),
        (Item::Call, 1.0, probe(&[], "call ktime_get_ns\n")),
        (Item::Random, 1.0, probe(&[], "call get_prandom_u32\n")),
        (Item::Adjust, 1.0, probe(&[], "r1 = r9\n r2 = 0\n call xdp_adjust_head\n")),
    ]
}

/// Items with a cost per byte: a short and a long block, and their bytes.
fn sized() -> Vec<(Item, Item, [Probe; 2], [u32; 2])> {
    let checksum = "r1 = 0\n r2 = 0\n r3 = r10\n r3 += -64\n r4 = @\n r5 = 0\n call csum_diff\n";
    let hash = "r1 = r10\n r1 += -64\n r2 = @\n r3 = 0\n call lw_hash\n";
    let copy = "r1 = r9\n r2 = 0\n r3 = r10\n r3 += -64\n r4 = @\n call xdp_load_bytes\n";
    let of = |item, byte, block: &str, bytes: [u32; 2]| {
        let blocks = bytes.map(|bytes| block.replace('@', &bytes.to_string()));
        (item, byte, blocks.map(|block| Probe { block: block.into(), ..probe(&[STACK], "") }), bytes)
    };
    vec![
        of(Item::Checksum, Item::SummedByte, checksum, [4, 64]),
        of(Item::Hash, Item::HashedByte, hash, [8, 64]),
        of(Item::Copy, Item::CopiedByte, copy, [4, 52]),
    ]
}

impl Probe {
    fn instructions(&self) -> f64 {
        self.block.lines().filter(|line| !line.trim().is_empty()).count() as f64
    }

    /// A program with this many repetitions.
    fn program(&self, times: usize) -> Result<Program, BenchError> {
        self.spread(times, 1)
    }

    /// As [`Probe::program`], with numbers that are multiples of `step`.
    fn spread(&self, times: usize, step: usize) -> Result<Program, BenchError> {
        let blocks = (0..times).map(|at| self.block.replace('#', &(at * step).to_string()));
        let text = NUMBERS.to_owned() + &self.before.concat() + &blocks.collect::<String>() + END;
        let map = self.map.map(|kind| MapSpec::new("values", kind, 4, 8, 16));
        Ok(Program::new("probe", assemble(&text)?, map.into_iter().collect::<Vec<_>>()))
    }

    fn install(&self, times: usize) -> Result<Rig, BenchError> {
        let mut rig = Rig::new(Admission::default())?;
        rig.install(self.program(times)?, Key::All, None)?;
        Ok(rig)
    }
}

fn batches(settings: &Settings<'_>) -> usize {
    if settings.quick { QUICK } else { BATCHES }
}

/// Nanoseconds of a block: the additional cost of a repetition.
fn each(settings: &Settings<'_>, what: &str, probe: &Probe) -> Result<f64, BenchError> {
    settings.next(what)?;
    let (mut few, mut many) = (probe.install(FEW)?, probe.install(MANY)?);
    let frames = vec![(0, FrameSpec::UDP.frame()); BATCH];
    let mut rigs = [(&mut few, &frames[..]), (&mut many, &frames[..])];
    let costs = in_turns(&mut rigs, batches(settings), || settings.go_on())?;
    let [few, many] = [&costs[0], &costs[1]].map(Sample::median);
    Ok((many - few) / (MANY - FEW) as f64)
}

/// Nanoseconds of classifying a packet, and of forwarding it by a table beyond all caches.
fn router(settings: &Settings<'_>) -> Result<[f64; 2], BenchError> {
    settings.next("classifying and forwarding")?;
    let mut rig = Rig::new(Admission::default())?;
    rig.add_routes(if settings.quick { QUICK_PREFIXES } else { PREFIXES })?;
    // Headers with a wrong checksum are parsed like all others, and go no further.
    let mut broken: Frame = [0; FRAME];
    broken.copy_from_slice(&FrameSpec::UDP.frame());
    broken[24] ^= 0x10;
    let broken = vec![(0, broken); BATCH];
    let (mut classified, mut forwarded) = (Vec::new(), Vec::new());
    for batch in 0..batches(settings) {
        settings.go_on()?;
        let first = (batch * BATCH) as u32;
        let far: Vec<_> = (first..first + BATCH as u32)
            .map(|n| (0, FrameSpec::UDP.to(crate::rig::destination(n))))
            .collect();
        let of_each = |spent: std::time::Duration| spent.as_nanos() as f64 / BATCH as f64;
        classified.push(of_each(rig.time_batch(&broken)));
        forwarded.push(of_each(rig.time_batch(&far)));
    }
    let [classified, all] = [classified, forwarded].map(|costs| Sample::from_iter(costs).median());
    Ok([classified, (all - classified).max(0.0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_program::verify;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn probes_are_programs_that_do_what_they_are_for() {
        let all = simple()
            .into_iter()
            .map(|(item, times, probe)| (item, times as u32, probe))
            .chain(sized().into_iter().flat_map(|(item, _, probes, _)| probes.map(|probe| (item, 1, probe))));
        for (item, times, probe) in all {
            let most =
                |times| *verify(probe.program(times).unwrap()).unwrap_or_else(|why| panic!("{why}")).most();
            let (few, many) = (most(FEW), most(MANY));
            let more = (MANY - FEW) as u32;
            assert_eq!(many[item] - few[item], times * more, "{}", item.name());
            let instructions = many[Item::Instruction] - few[Item::Instruction];
            assert_eq!(f64::from(instructions), probe.instructions() * f64::from(more), "{}", item.name());
        }
        for (_, probe) in &INSTRUCTIONS {
            verify(probe.program(MANY).unwrap()).unwrap_or_else(|why| panic!("{why}"));
        }
    }

    #[test]
    fn a_machine_has_prices() {
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        let prices = prices(&settings).unwrap();
        assert!(prices.items.price(Item::StateLine) > 0 && prices.classify > 0);
        assert!(prices.items.price(Item::HashLookup) >= SEARCHED * prices.items.price(Item::StateLine));
    }
}
