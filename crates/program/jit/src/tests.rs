//! Behaviour of compiled programs in case of errors, and with wrong facts.

use crate::{
    Arrival, CompileError, CompiledProgram, Halted, KnownAccesses, MOST_TURNS, Session, Visit, VisitProgress,
    compile, compile_unverified,
};
use longwire_packet::{Checksum, Handle, Pool};
use longwire_program::{
    Access, Code, Context, Effects, Environment, Fact, Fault, Instruction, Machine, MapKind, MapSpec, Maps,
    Operand, Packet, Program, ProgramState, Region, Register, Size, Stack, Stopped, assemble, verify,
};
use std::sync::Arc;

/// Draws numbers, or panics.
struct Dice(Option<u32>);

impl Environment for Dice {
    fn random(&mut self) -> u32 {
        self.0.expect("there are no dice")
    }
}

struct Bench {
    buffer: Vec<u8>,
    stack: Stack,
    state: ProgramState,
    dice: Dice,
}

impl Bench {
    fn new() -> Self {
        Self {
            buffer: vec![7; 128],
            stack: Stack::trusting(),
            state: ProgramState::new(16),
            dice: Dice(Some(4)),
        }
    }

    /// Runs it on a packet of 60 bytes.
    fn run(&mut self, compiled: &CompiledProgram, maps: &Maps) -> Result<u64, Halted> {
        compiled.run(&mut Machine {
            context: Context::default(),
            packet: Packet::new(&mut self.buffer, 32..92),
            stack: &mut self.stack,
            state: &self.state,
            maps,
            environment: &mut self.dice,
            effects: Effects::default(),
        })
    }
}

/// A packet from this port.
fn packet(pool: &mut Pool, bytes: &[u8], port: u16) -> Handle {
    let handle = pool.insert(bytes).unwrap();
    pool.meta_mut(handle).in_port = port;
    handle
}

fn no_maps() -> Arc<Maps> {
    Arc::new(Maps::new(&[], 1, 0).unwrap())
}

fn program(text: &str) -> Program {
    Program::new("p", assemble(text).unwrap(), [])
}

fn verified(text: &str, maps: &Arc<Maps>) -> CompiledProgram {
    compile(&verify(program(text)).unwrap(), Arc::clone(maps)).unwrap()
}

#[test]
fn panics_end_the_program_and_nothing_else() {
    let maps = no_maps();
    let text = "r6 = 5\n call get_prandom_u32\n r0 += r6\n exit";
    let (compiled, mut bench) = (verified(text, &maps), Bench::new());
    assert_eq!(bench.run(&compiled, &maps), Ok(9));
    bench.dice = Dice(None);
    assert_eq!(bench.run(&compiled, &maps), Err(Halted::Panicked { slot: 1 }));
    let nested = verified("call f\n exit\n f: call get_prandom_u32\n exit", &maps);
    assert_eq!(bench.run(&nested, &maps), Err(Halted::Panicked { slot: 2 }));
    bench.dice = Dice(Some(1));
    assert_eq!((bench.run(&compiled, &maps), bench.run(&nested, &maps)), (Ok(6), Ok(1)));
}

#[test]
fn a_session_serves_packet_after_packet_whatever_became_of_the_one_before() {
    let (maps, state) = (no_maps(), ProgramState::new(8));
    let length = verified("call xdp_get_buff_len\n r6 = r0\n call ktime_get_ns\n r0 += r6\n exit", &maps);
    let draw = verified("call get_prandom_u32\n r6 = r0\n r1 = 1\n call lw_mark\n r0 = r6\n exit", &maps);
    let moving = verified("r2 = 0\n call xdp_adjust_tail\n exit", &maps);
    assert!(draw.alone(&state).is_none() && moving.helped(&state).is_none(), "what they need is not there");
    let (length, draw) = (length.alone(&state).unwrap(), draw.helped(&state).unwrap());
    let (mut stack, mut frame) = (Stack::trusting(), [0; 64]);
    let mut session = Session::new(&mut stack, Context::default());
    let panicked = Err(Halted::Panicked { slot: 0 });
    for (bytes, now, dice, drawn) in
        [(60, 7, Some(4), Ok(4)), (20, 8, None, panicked), (64, 9, Some(1), Ok(1))]
    {
        let arrival = Arrival { now, ..Arrival::default() };
        let mut shown = session.show(arrival, &mut frame[..bytes]);
        assert_eq!(shown.run(&length), Ok(bytes as u64 + now));
        assert_eq!(shown.run_helped(&draw, &mut Dice(dice)).0, drawn);
        assert_eq!(shown.run(&length), Ok(bytes as u64 + now));
    }
}

/// Each packet of a pool is processed in place, with its own port, and reported if it is not quiet.
#[test]
fn packet_after_packet_is_met() {
    let maps = no_maps();
    let text = "r2 = *(u32 *)(r1 + 0)\n r3 = *(u32 *)(r1 + 4)\n r4 = *(u32 *)(r1 + 12)\n r0 = 0\n r5 = r2\n \
        r5 += 1\n if r5 > r3 goto out\n \
                r0 = *(u8 *)(r2 + 0)\n *(u8 *)(r2 + 0) = r4\n out: exit";
    let compiled = verified(text, &maps);
    let state = ProgramState::new(0);
    let alone = compiled.alone(&state).unwrap();
    let mut stack = Stack::trusting();
    let mut session = Session::new(&mut stack, Context::default());
    let mut pool = Pool::new(1 << 20).unwrap();
    let [first, quiet, third, empty, long] =
        [(&[3][..], 11), (&[2, 2], 12), (&[5; 64], 13), (&[], 14), (&[6], 15)]
            .map(|(bytes, port)| packet(&mut pool, bytes, port));
    let beyond = Handle((1 << 20) / 64);
    pool.meta_mut(long).len = 1 << 20;
    let packets = [
        first,
        quiet,
        third,
        empty,
        // Incomplete ones.
        long,
        beyond,
        Handle::NONE,
        // And some repeated ones.
        first,
        third,
    ];
    let mut visits = [Visit::NONE; 64];
    let visited = session.bind(alone).run(&mut pool, &packets, &mut visits, 2);
    let returned: Vec<_> =
        (0..9).filter(|at| visited.loud >> at & 1 == 1).map(|at| visits[at].returned()).collect();
    assert_eq!(visited, VisitProgress { loud: 0b1_1111_1101, count: 9 });
    assert_eq!(returned, [Some(3), Some(5), Some(0), None, None, None, Some(11), Some(13)]);
    assert_eq!([first, quiet, third].map(|handle| pool.data(handle)[0]), [11, 12, 13]);
    assert_eq!(session.bind(alone).run(&mut pool, &[], &mut visits, 2), VisitProgress { loud: 0, count: 0 });
    let all = VisitProgress { loud: 0, count: 64 };
    assert_eq!(session.bind(alone).run(&mut pool, &[quiet; 64], &mut visits, 12), all);
}

/// Packets that can't be passed as they are stay untouched, and so do those after them.
#[test]
fn trains_and_open_checksums_are_not_met() {
    let maps = no_maps();
    let text = "r0 = *(u64 *)(r10 - 8)\n r0 += 1\n *(u64 *)(r10 - 8) = r0\n exit";
    let code = assemble(&format!("*(u64 *)(r10 - 8) = 1\n {text}")).unwrap();
    let compiled = compile(&verify(Program::new("p", code, [])).unwrap(), Arc::clone(&maps)).unwrap();
    let state = ProgramState::new(0);
    let mut stack = Stack::trusting();
    let mut session = Session::new(&mut stack, Context::default());
    let mut pool = Pool::new(1 << 20).unwrap();
    let [single, train, open] = [1, 2, 3].map(|port| packet(&mut pool, &[0; 60], port));
    pool.meta_mut(train).segments = 2;
    pool.meta_mut(open).checksum = Checksum::Partial as u8;
    for (packets, loud, count) in [
        ([single, single, train, single], 3, 2),
        ([open, single, single, single], 0, 0),
        ([single, single, single, open], 7, 3),
        ([single; 4], 15, 4),
    ] {
        let alone = compiled.alone(&state).unwrap();
        let visited = session.bind(alone).run(&mut pool, &packets, &mut [Visit::NONE; 4], 1);
        assert_eq!(visited, VisitProgress { loud, count });
    }
}

/// Port and time, and the context's other fields, are those of each packet, wherever the program reads them.
#[test]
fn each_packet_has_its_own_context() {
    let maps = no_maps();
    let field = |at: u32| format!("r0 = *(u32 *)(r1 + {at})\n exit");
    let called = "r6 = r1\n call f\n exit\n f: r0 = *(u32 *)(r1 + 12)\n exit".to_owned();
    let (now, length) = ("call ktime_get_ns\n exit".to_owned(), "call xdp_get_buff_len\n exit".to_owned());
    for (text, first, second) in [
        (field(12), 11, 22),
        (field(16), 7, 7),
        (field(20), 8, 8),
        (called, 11, 22),
        (now, 1000, 2000),
        (length, 60, 70),
    ] {
        let (compiled, state, mut stack) = (verified(&text, &maps), ProgramState::new(0), Stack::trusting());
        let context = Context { queue: 7, egress: 8, ..Context::default() };
        let mut pool = Pool::new(1 << 20).unwrap();
        let packets = [(60, 11, 1000), (70, 22, 2000)].map(|(len, port, now)| {
            let handle = packet(&mut pool, &vec![0; len], port);
            pool.meta_mut(handle).arrival = now;
            handle
        });
        let mut visits = [Visit::NONE; 2];
        let mut session = Session::new(&mut stack, context);
        session.bind(compiled.alone(&state).unwrap()).run(&mut pool, &packets, &mut visits, u64::MAX);
        assert_eq!(visits.map(|visit| visit.returned()), [Some(first), Some(second)], "{text}");
    }
}

/// A wrongly verified program is stopped at the packets where it fails, and only there.
#[test]
fn one_packet_ends_nothing_but_itself() {
    let maps = no_maps();
    let (mut stack, state) = (Stack::trusting(), ProgramState::new(0));
    let load = Instruction::Load { size: Size::Byte, dst: Register::R0, base: Register::R2, offset: 3 };
    let start = Instruction::LoadWide { dst: Register::R2, value: Region::Packet.address(0) };
    let program = Program::new("p", Code::new(vec![start, load, Instruction::Exit]).unwrap(), []);
    let access = Some(Access { region: Some(Region::Packet), place: None });
    let facts = [Fact::default(), Fact { access, ..Fact::default() }, Fact::default()];
    let compiled =
        CompiledProgram::new(&program, KnownAccesses::Facts(&facts), (0, 0), Arc::clone(&maps)).unwrap();
    let alone = compiled.alone(&state).unwrap();
    let mut pool = Pool::new(1 << 20).unwrap();
    let packets: [Handle; 64] = std::array::from_fn(|at| packet(&mut pool, &[9; 8][..at % 8], 0));
    let mut visits = [Visit::NONE; 64];
    let mut session = Session::new(&mut stack, Context::default());
    let bits = session.bind(alone).run(&mut pool, &packets, &mut visits, 9).loud;
    assert_eq!(bits, 0x0f0f_0f0f_0f0f_0f0f);
    assert!(visits.iter().enumerate().all(|(at, visit)| bits >> at & 1 == 0 || visit.returned().is_none()));
}

/// Unproven accesses to a packet of every length up to 16 bytes, at every offset and one before it.
#[test]
fn accesses_end_where_the_packet_does() {
    let maps = no_maps();
    let (mut stack, state) = (Stack::trusting(), ProgramState::new(0));
    let mut pool = Pool::new(1 << 20).unwrap();
    for size in [Size::Byte, Size::Half, Size::Word, Size::Double] {
        for place in -1..=16 {
            let load = Instruction::Load { size, dst: Register::R0, base: Register::R2, offset: place };
            let start = Instruction::LoadWide { dst: Register::R2, value: Region::Packet.address(0) };
            let program = Program::new("p", Code::new(vec![start, load, Instruction::Exit]).unwrap(), []);
            let access = Some(Access { region: Some(Region::Packet), place: None });
            let facts = [Fact::default(), Fact { access, ..Fact::default() }, Fact::default()];
            let compiled =
                CompiledProgram::new(&program, KnownAccesses::Facts(&facts), (0, 0), Arc::clone(&maps))
                    .unwrap();
            let alone = compiled.alone(&state).unwrap();
            for length in 0..=16 {
                let mut session = Session::new(&mut stack, Context::default());
                let got = session.show(Arrival::default(), &mut [0; 16][..length]).run(&alone);
                let packets = [packet(&mut pool, &[0; 16][..length], 0)];
                let visited = session.bind(alone).run(&mut pool, &packets, &mut [Visit::NONE], 0);
                assert_eq!(visited.loud == 0, got.is_ok());
                pool.free(packets[0]);
                let within = place >= 0 && place as usize + size.bytes() <= length;
                assert_eq!(got.is_ok(), within, "{size:?} at {place} of {length}: {got:?}");
            }
        }
    }
}

#[test]
fn maps_and_state_are_those_it_was_made_for() {
    let (maps, others) = (no_maps(), no_maps());
    let mut bench = Bench::new();
    assert_eq!(bench.run(&verified("r0 = 2\n exit", &maps), &others), Err(Halted::OtherMaps));
    let count = verified("r1 = 24\n call lw_flow_state\n *(u64 *)(r0 + 16) = 3\n r0 = 2\n exit", &maps);
    assert_eq!(bench.run(&count, &maps), Err(Halted::StateSize { needed: 24 }));
    bench.state = ProgramState::new(24);
    assert_eq!(bench.run(&count, &maps), Ok(2));
    assert_eq!(bench.state.get()[16], 3);
}

#[test]
fn what_is_stopped_is_named() {
    let maps = no_maps();
    for (text, slot, fault) in [
        ("r0 = 1", 1, Fault::End),
        ("r0 = 0x1 ll\n call 9999\n exit", 2, Fault::Helper(9999)),
        ("call kernel 3\n exit", 0, Fault::Kernel),
        ("r1 = 0\n r2 = 0\n call map_lookup_elem\n exit", 2, Fault::Argument(1)),
        (
            "call f\n exit\n f: r0 = *(u8 *)(r10 + 512)\n exit",
            2,
            Fault::OutOfBounds { address: 0x3_0000_1000, size: 1 },
        ),
        ("r0 = *(u64 *)(r1 + 0)\n exit", 0, Fault::OutOfBounds { address: 0x1_0000_0000, size: 8 }),
    ] {
        let compiled = compile_unverified(&program(text), &[], Arc::clone(&maps)).unwrap();
        let got = Bench::new().run(&compiled, &maps);
        assert_eq!(got, Err(Halted::Stopped(Stopped { slot, fault })), "{text}");
    }
}

/// Up to the limit, then no more: by jumping back, running into the head from above, and in a called
/// function.
#[test]
fn loops_end_whatever_they_do() {
    let maps = no_maps();
    for (text, slot) in [
        ("a: goto a", 0),
        ("r0 = 0\n a: r0 += 1\n if r0 != 0 goto a\n exit", 2),
        ("r0 = 0\n goto b\n a: r0 = *(u32 *)(r1 + 12)\n b: r2 = 0\n if r2 == 0 goto a\n exit", 2),
        ("a: call f\n goto a\n f: b: goto b", 2),
    ] {
        let compiled = compile_unverified(&program(text), &[], Arc::clone(&maps)).unwrap();
        let stopped = Stopped { slot, fault: Fault::Budget };
        let (mut bench, turns) = (Bench::new(), MOST_TURNS);
        assert_eq!(bench.run(&compiled, &maps), Err(Halted::Stopped(stopped)), "{text}");
        // Repeated: the limit applies to each packet.
        assert_eq!(bench.run(&compiled, &maps), Err(Halted::Stopped(stopped)), "{text}");
        let rounds = |limit: u64| format!("r0 = 0\n r1 = {limit} ll\n a: r0 += 1\n if r0 < r1 goto a\n exit");
        let longest = compile_unverified(&program(&rounds(turns + 1)), &[], Arc::clone(&maps)).unwrap();
        assert_eq!(bench.run(&longest, &maps), Ok(turns + 1));
        let longer = compile_unverified(&program(&rounds(turns + 2)), &[], Arc::clone(&maps)).unwrap();
        assert!(bench.run(&longer, &maps).is_err());
    }
    // Wrong facts, too.
    let facts = [Fact::default(); 1];
    let compiled =
        CompiledProgram::new(&program("a: goto a"), KnownAccesses::Facts(&facts), (0, 7), Arc::clone(&maps))
            .unwrap();
    let stopped = Stopped { slot: 0, fault: Fault::Budget };
    assert_eq!(Bench::new().run(&compiled, &maps), Err(Halted::Stopped(stopped)));
}

/// The generator keeps what both halves of this program compute, and every tail call has a frame of its own.
#[test]
fn programs_that_would_exhaust_the_stack_are_not_compiled() {
    let half = format!("r2 = r6\n {}", "r2 *= 3\n r8 ^= r2\n *(u64 *)(r10 - 8) = r8\n ".repeat(1200));
    let begin = format!("r9 = r1\n r6 = *(u32 *)(r1 + 12)\n r8 = 0\n {half}{half}");
    let again = "r1 = r9\n r2 = map[0] ll\n r3 = 0\n call tail_call\n";
    let initial = Box::new([1u8, 0, 0, 0]);
    let spec = MapSpec { initial, ..MapSpec::new("jumps", MapKind::ProgArray, 4, 4, 1) };
    let maps = Arc::new(Maps::new(std::slice::from_ref(&spec), 1, 0).unwrap());
    let compiled = |end: &str, programs: &[(u32, usize)]| {
        let code = assemble(&format!("{begin}{end} r0 = 2\n exit")).unwrap();
        let program = Program::new("test", code.with_programs(programs.iter().copied()), [spec.clone()]);
        compile(&verify(program).unwrap(), Arc::clone(&maps))
    };
    assert!(compiled("", &[]).is_ok());
    assert!(matches!(compiled(again, &[(1, 0)]), Err(CompileError::Stack(_))));
}

#[test]
fn workers_run_the_same_code_at_once() {
    let maps = no_maps();
    let text = "r1 = 8\n call lw_flow_state\n r2 = 1\n lock *(u64 *)(r0 + 0) += r2\n r0 = 2\n exit";
    let (compiled, state) = (verified(text, &maps), ProgramState::new(8));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (mut buffer, mut stack) = ([0; 64], Stack::trusting());
                for _ in 0..1000 {
                    let mut machine = Machine {
                        context: Context::default(),
                        packet: Packet::new(&mut buffer, 0..64),
                        stack: &mut stack,
                        state: &state,
                        maps: &maps,
                        environment: &mut Dice(None),
                        effects: Effects::default(),
                    };
                    assert_eq!(compiled.run(&mut machine), Ok(2));
                }
            });
        }
    });
    assert_eq!(state.get(), 4000u64.to_le_bytes());
}

/// Whatever the facts say, and wherever the address points, a store changes only packet, stack, state and
/// values.
#[test]
fn wrong_facts_open_nothing() {
    let regions = [
        None,
        Some(Region::Context),
        Some(Region::Packet),
        Some(Region::Stack),
        Some(Region::State),
        Some(Region::Map(0)),
        Some(Region::Map(1)),
        Some(Region::Map(200)),
        Some(Region::Handle(0)),
    ];
    let spec =
        |read_only, value_size| MapSpec { read_only, ..MapSpec::new("m", MapKind::Array, 4, value_size, 1) };
    let specs = [spec(false, 8), spec(true, 8)];
    let addresses = regions.into_iter().flatten().flat_map(|region| {
        [0, 1, 7, 8, 28, 32, 91, 92, 4090, 4096, u32::MAX].map(|place| region.address(place))
    });
    let (mut ended, mut stopped) = (0, 0);
    for address in addresses.chain([0, u64::MAX, u64::MAX - 3]) {
        let size = [Size::Byte, Size::Half, Size::Word, Size::Double][address.count_ones() as usize % 4];
        let store =
            Instruction::Store { size, base: Register::R2, offset: 1, source: Operand::Immediate(-1) };
        let value = address.wrapping_sub(1);
        let code = vec![Instruction::LoadWide { dst: Register::R2, value }, store, Instruction::Exit];
        let program = Program::new("lies", Code::new(code).unwrap(), specs.clone());
        for region in regions {
            for place in [None, Some(0), Some(4092), Some(u32::MAX)] {
                let fact = Fact { access: Some(Access { region, place }), ..Fact::default() };
                let maps = Arc::new(Maps::new(&specs, 1, 0).unwrap());
                let facts = [Fact::default(), fact, Fact::default()];
                let compiled =
                    CompiledProgram::new(&program, KnownAccesses::Facts(&facts), (16, 0), Arc::clone(&maps))
                        .unwrap();
                let mut bench = Bench::new();
                match bench.run(&compiled, &maps) {
                    Ok(_) => ended += 1,
                    Err(Halted::Stopped(_)) => stopped += 1,
                    Err(other) => panic!("{other}"),
                }
                let outside = bench.buffer[..32].iter().chain(&bench.buffer[92..]);
                assert!(outside.copied().all(|byte| byte == 7), "{address:#x} {region:?} {place:?}");
                assert_eq!(maps.all()[1].values().load(0, Size::Double), 0);
            }
        }
    }
    assert!(ended > 100 && stopped > 1000, "{ended} {stopped}");
}
