//! Table 5: the forwarders' requirements, by the paper, by the verifier, and in execution.

use super::budget::{TABLE_5, shipped};
use super::{clock, verified};
use crate::Settings;
use crate::book::{Book, paper, paper_if};
use longwire_bench::rig::{Frame, FrameSpec, Rig, destination, in_turns};
use longwire_bench::{BenchError, Sample};
use longwire_packet::BATCH;
use longwire_program::{
    Context, Effects, Environment, Finished, Item, Machine, Maps, Packet, Prices, Program, ProgramState,
    Stack, interpret,
};
use longwire_report::Row;
use longwire_router::{Admission, Key};
use longwire_wire::checksum::change;

/// Batches of each of two alternating routers.
const BATCHES: usize = 20_000;
const QUICK: usize = 200;

/// A forwarder, and packets for which it does its work.
struct Case {
    name: &'static str,
    spec: FrameSpec,
    /// Its state, as written by its control half.
    state: Vec<u8>,
    per_flow: bool,
}

/// A TCP ACK segment.
const SEGMENT: FrameSpec = FrameSpec { protocol: 6, flags: 0x10, ports: [1024, 80], ..FrameSpec::UDP };

/// The eight: those of table 5, and two that the paper describes without numbers.
fn cases() -> Vec<Case> {
    let words = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let ports = [5000u16.to_be_bytes(), 8080u16.to_be_bytes()].concat();
    // From 10.0.0.1:5000 to the host behind port 2, port 8080.
    let ends = [&[10, 0, 0, 1, 10, 0, 2, 9][..], &ports].concat();
    let added = [500, 7u32.wrapping_neg()];
    let frame = SEGMENT.frame();
    let old = &frame[26..38];
    let new = [&ends[..], added.map(u32::to_be_bytes).as_flattened()].concat();
    let sums = [change(old, &new), change(&old[..8], &new[..8])].map(u16::to_be_bytes).concat();
    let splice = [&ends[..], &words(&added), &sums, &[0; 4]].concat();
    let next_hop = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0xff, 1][..], &words(&[1 + 1])].concat();
    let case = |name, spec, state, per_flow| Case { name, spec, state, per_flow };
    vec![
        case("tcp-splicer", SEGMENT, splice, true),
        // All layers pass.
        case("wavelet", FrameSpec::UDP, words(&[255, 0]), true),
        case("ack-monitor", SEGMENT, words(&[0, 0, 0]), true),
        case("syn-monitor", FrameSpec { flags: 2, ..SEGMENT }, words(&[0]), false),
        // Five ranges, none of which contains the packets' port.
        case("port-filter", FrameSpec::UDP, words(&[1000 << 16 | 9; 5]), false),
        case("minimal-ip", FrameSpec::UDP, next_hop, true),
        case("performance-monitor", SEGMENT, words(&[7]), false),
        case("detector", SEGMENT, Vec::new(), false),
    ]
}

impl Case {
    fn program(&self) -> Result<Program, BenchError> {
        shipped(self.name)
    }

    fn key(&self) -> Key {
        if self.per_flow { self.spec.flow() } else { Key::All }
    }

    /// The interpreter's result for one packet.
    fn interpreted(&self) -> Result<Finished, BenchError> {
        interpreted(&self.program()?, &self.state, &self.spec, &mut self.spec.frame())
    }
}

/// The interpreter's result for a packet as described by `spec`, with this state.
pub(super) fn interpreted(
    program: &Program,
    written: &[u8],
    spec: &FrameSpec,
    frame: &mut [u8],
) -> Result<Finished, BenchError> {
    let maps = Maps::new(&program.maps, 1, 1).map_err(|error| BenchError::failed("making maps", error))?;
    let state = ProgramState::new(written.len() as u32);
    if !state.set(written) {
        return Err(BenchError::failed("writing the state", "it has another size"));
    }
    let mut stack = Stack::trusting();
    let len = frame.len();
    let mut machine = Machine {
        context: Context { ingress: spec.from.into(), queue: 0, egress: 0, now: 0, worker: 0, mark: 0 },
        packet: Packet::new(frame, 0..len),
        stack: &mut stack,
        state: &state,
        maps: &maps,
        environment: &mut Same,
        effects: Effects::default(),
    };
    interpret(&program.code, &mut machine, 1 << 20)
        .map_err(|stopped| BenchError::failed("running a forwarder", stopped))
}

/// Always draws the same number: none of the eight draws any.
struct Same;

impl Environment for Same {
    fn random(&mut self) -> u32 {
        4
    }
}

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    for case in cases() {
        let known = TABLE_5.iter().find(|line| line.name == case.name);
        let row = Row::new(format!("table 5: {}, bytes of state", case.name), "bytes");
        book.row(paper_if(row, known.map(|line| line.bytes)), |row| {
            let verified = verified(case.program()?)?;
            let most = verified.most();
            Ok(row.measured(most[Item::StateByte]).note(format!(
                "at most, read and written; {} transfers of 4 bytes, and {} of maps, {} hashes",
                most[Item::StateTransfer],
                most[Item::MapTransfer],
                most.hashes()
            )))
        });
        let row = Row::new(format!("table 5: {}, register operations", case.name), "cycles");
        book.row(paper_if(row, known.map(|line| line.operations)), |row| {
            let cycles = verified(case.program()?)?.worst_path(&Prices::VRP_CYCLES).price;
            Ok(row.measured(cycles).note("at most, as admission to the profile vrp counts them"))
        });
        book.row(Row::new(format!("table 5: {}, instructions", case.name), ""), |row| {
            let bound = u64::from(verified(case.program()?)?.most()[Item::Instruction]);
            let Finished { instructions, returned } = case.interpreted()?;
            let registers = known.map_or_else(String::new, |line| {
                format!("; the paper's needs {} registers, eBPF has eleven", line.registers)
            });
            Ok(row.extra("bound", bound).extra("returned",
                returned).measured(instructions).judged(instructions <= bound).note(format!(
                "of a packet it works on, told by the interpreter; the verifier's bound is {bound}{registers}"
            )))
        });
        let row = Row::new(format!("table 5: {}, time", case.name), "ns");
        book.row(row, |row| {
            let mut with = Rig::new(Admission::default())?;
            case.install(&mut with)?;
            let frames = vec![(case.spec.from, case.spec.frame()); BATCH];
            Ok(timed(row, &beside_plain(settings, &mut with, &frames)?))
        });
    }
    expensive(book);
}

impl Case {
    /// Installs it with its state.
    fn install(&self, rig: &mut Rig) -> Result<(), BenchError> {
        let fid = rig.install(self.program()?, self.key(), None)?;
        if self.state.is_empty() || rig.router.set_data(fid, &self.state) {
            return Ok(());
        }
        Err(BenchError::failed("writing the state", "it has another size"))
    }
}

/// A packet's time in a router without programs, and in this one.
fn beside_plain(
    settings: &Settings<'_>,
    with: &mut Rig,
    frames: &[(u16, Frame)],
) -> Result<[Sample; 2], BenchError> {
    settings.require_real_time("speed")?;
    let plain_frames = vec![(0, FrameSpec::UDP.frame()); BATCH];
    let mut plain = Rig::new(Admission::default())?;
    let batches = settings.choose(BATCHES, QUICK);
    let costs = in_turns(&mut [(&mut plain, &plain_frames), (with, frames)], batches, || settings.go_on())?;
    costs.try_into().map_err(|_| BenchError::failed("timing two routers", "there are others"))
}

/// Additional time per packet, by the medians.
fn timed(row: Row, [plain, with]: &[Sample; 2]) -> Row {
    let (plain, with) = (plain.median(), with.median());
    row.measured(with - plain).extra("with_ns", with).extra("without_ns", plain).note(format!(
        "added to a packet's {plain:.1} ns in a router that has no programs, looking for the flow and \
         classifying again included"
    ))
}

/// The work that the paper calls too expensive for its MicroEngines, in cycles of an unnamed clock; ours are
/// this machine's.
fn expensive(book: &mut Book<'_>) {
    let settings = book.settings;
    let row = paper(Row::new("table 5: full IP, a packet with options", "cycles"), 660);
    book.row(row, |row| {
        settings.require_real_time("speed")?;
        let mut rig = Rig::new(Admission::default())?;
        // As many as allowed: 64 at once and a thousand a second, so a second passes between two batches.
        let frames = vec![(0, FrameSpec { options: true, ..FrameSpec::UDP }.frame()); BATCH];
        let mut costs = Vec::new();
        for second in 0..settings.choose(2000, QUICK as u64) {
            rig.tick(longwire_units::Nanos::from_secs(2 + second));
            costs.push(rig.time_batch(&frames).as_nanos() as f64 / BATCH as f64);
        }
        settings.go_on()?;
        let (tally, cost) = (rig.tally(), Sample::from_iter(costs));
        let hertz = clock()?;
        let note = format!(
            "{:.1} ns at {:.2} GHz; the paper says \"at least\", and not of which processor; {} packets, {} \
             forwarded",
            cost.median(),
            hertz / 1e9,
            tally.offered,
            tally.forwarded
        );
        let row = row.measured((cost.median() * hertz / 1e9).round()).extra("ns", cost.median());
        Ok(row.judged(tally.forwarded == tally.offered).note(note))
    });
    let row = paper(Row::new("table 5: prefix match", "cycles"), 236);
    book.row(row, |row| {
        settings.require_real_time("speed")?;
        let prefixes = settings.choose(1_000_000, 20_000);
        let mut far = Rig::new(Admission::default())?;
        far.add_routes(prefixes)?;
        // More destinations than the route cache holds, so that every lookup misses.
        let frames: Vec<_> = (0..1 << 16).map(|n| (0, FrameSpec::UDP.to(destination(n)))).collect();
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for chunk in frames.chunks(BATCH) {
            unknown.push(far.time_batch(chunk).as_nanos() as f64 / BATCH as f64);
            known.push(far.time_batch(chunk).as_nanos() as f64 / BATCH as f64);
        }
        settings.go_on()?;
        let [known, unknown] = [known, unknown].map(|costs| Sample::from_iter(costs).median());
        let hertz = clock()?;
        let ns = unknown - known;
        Ok(row.measured((ns * hertz / 1e9).round()).extra("ns", ns).note(format!(
            "{ns:.1} ns at {:.2} GHz; the paper's are an average, and it does not say of which processor; \
             {prefixes} prefixes: {unknown:.1} ns for a destination that the route cache does not know, \
             {known:.1} ns for one that it knows",
            hertz / 1e9
        )))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_does_its_work_on_its_packets() {
        for case in cases() {
            let mut rig = Rig::new(Admission::default()).unwrap();
            case.install(&mut rig).unwrap();
            let frames = vec![(case.spec.from, case.spec.frame()); 3];
            rig.time_batch(&frames);
            let stats = rig.router.forwarders().all()[0].stats();
            assert_eq!((stats.packets, rig.tally().forwarded), (3, 3), "{}", case.name);
            let instructions = case.interpreted().unwrap().instructions;
            // More than the instructions of a packet that needs no work.
            assert!(instructions > 12, "{}: {instructions}", case.name);
        }
    }
}
