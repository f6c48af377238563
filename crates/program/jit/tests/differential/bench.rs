//! Runs programs both ways and compares all results.

use longwire_jit::{Arrival, CompiledProgram, Halted, Session, Visit, compile, compile_unverified};
use longwire_packet::{Handle, Pool};
use longwire_program::{
    Context, Effects, Environment, Machine, MapKind, Maps, Packet, Program, ProgramState, Region,
    RouteAnswer, RouteQuery, Stack, Stopped, Verdict, interpret, verify,
};
use std::ops::Range;
use std::sync::Arc;

/// Headroom and tailroom.
pub const ROOM: usize = 32;

/// Bytes of state.
pub const STATE: u32 = 64;

/// All results of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Left {
    pub result: Result<u64, Stopped>,
    pub verdict: Option<Verdict>,
    pub effects: Effects,
    pub packet: Range<usize>,
    pub buffer: Vec<u8>,
    pub stack: Vec<u8>,
    pub state: Vec<u8>,
    pub maps: Vec<Vec<u8>>,
}

/// Results of a program on three packets.
#[derive(Debug, PartialEq, Eq)]
struct Visited {
    returned: [Option<u64>; 3],
    bytes: Vec<u8>,
    state: Vec<u8>,
    maps: Vec<Vec<u8>>,
}

/// The environment of a program.
#[derive(Debug, Clone)]
pub struct Bench {
    pub program: Program,
    pub packet: Vec<u8>,
    pub context: Context,
    /// Answers route lookups.
    pub route: fn(&RouteQuery<'_>) -> RouteAnswer,
}

/// Draws increasing numbers, and answers route lookups.
struct Counting(u32, fn(&RouteQuery<'_>) -> RouteAnswer);

impl Environment for Counting {
    fn random(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }

    fn route(&mut self, query: &RouteQuery<'_>) -> RouteAnswer {
        (self.1)(query)
    }
}

impl Bench {
    pub fn new(program: Program, packet: &[u8]) -> Self {
        let context =
            Context { ingress: 3, queue: 0x85, egress: 0, now: 5_000_000_123, worker: 1, mark: 0x9000_0001 };
        Self { program, packet: packet.into(), context, route: |_| RouteAnswer::Disabled }
    }

    pub fn interpreted(&self) -> Left {
        self.interpreted_with(&self.maps())
    }

    /// With the maps of previous runs.
    pub fn interpreted_with(&self, maps: &Arc<Maps>) -> Left {
        self.interpreted_within(maps, 100_000)
    }

    /// For at most this many instructions.
    pub fn interpreted_for(&self, budget: u64) -> Left {
        self.interpreted_within(&self.maps(), budget)
    }

    fn interpreted_within(&self, maps: &Arc<Maps>, budget: u64) -> Left {
        self.left(maps, |machine| {
            interpret(&self.program.code, machine, budget).map(|finished| finished.returned)
        })
    }

    /// Compiled with these hints only.
    pub fn unverified(&self, hints: &[Option<Region>]) -> Left {
        let maps = self.maps();
        let compiled = compile_unverified(&self.program, hints, Arc::clone(&maps)).unwrap();
        let left = self.run(&compiled, &maps);
        self.visit(&compiled, &maps);
        left
    }

    /// Compiled with the verifier's facts, if it accepts the program.
    pub fn verified(&self) -> Option<Left> {
        let verified = verify(self.program.clone()).ok()?;
        let maps = self.maps();
        let compiled = compile(&verified, Arc::clone(&maps)).unwrap();
        let left = self.run(&compiled, &maps);
        self.visit(&compiled, &maps);
        Some(left)
    }

    /// Runs it again, compiled for these maps.
    pub fn run(&self, compiled: &CompiledProgram, maps: &Arc<Maps>) -> Left {
        self.left(maps, |machine| {
            compiled.run(machine).map_err(|halted| match halted {
                Halted::Stopped(stopped) => stopped,
                other => panic!("{other}"),
            })
        })
    }

    /// Runs a program without calls on several packets, one by one and in a loop: the results must be equal.
    fn visit(&self, compiled: &CompiledProgram, maps: &Arc<Maps>) {
        let before: Vec<_> = maps.all().iter().map(|map| values(map)).collect();
        let from = |quiet| {
            maps.all().iter().zip(&before).for_each(|(map, bytes)| map.values().write(0, bytes));
            self.visited(compiled, maps, quiet)
        };
        let Some(singly) = from(None) else { return };
        // None of them is quiet, then those that return what the second one returns.
        assert_eq!(from(Some(u64::MAX)).as_ref(), Some(&singly), "{}", self.program);
        let [_, Some(quiet), _] = singly.returned else { return };
        let mut all_but_quiet = singly;
        let is_loud = |returned: &u64| *returned as u32 != quiet as u32;
        all_but_quiet.returned = all_but_quiet.returned.map(|returned| returned.filter(is_loud));
        assert_eq!(from(Some(u64::from(quiet as u32))), Some(all_but_quiet), "{}", self.program);
    }

    /// On three packets, in a loop with this quiet value, or one by one. None if the program calls helpers.
    fn visited(&self, compiled: &CompiledProgram, maps: &Arc<Maps>, quiet: Option<u64>) -> Option<Visited> {
        let (mut stack, state) = (Stack::trusting(), ProgramState::new(STATE));
        let alone = compiled.alone(&state)?;
        let mut pool = Pool::new(1 << 20).unwrap();
        let handles: [Handle; 3] = std::array::from_fn(|at| {
            let handle = pool.insert(&self.packet).unwrap();
            let meta = pool.meta_mut(handle);
            (meta.in_port, meta.arrival) =
                ((self.context.ingress as u16).wrapping_add(at as u16), self.context.now + at as u64);
            handle
        });
        let mut session = Session::new(&mut stack, self.context);
        let returned = if let Some(quiet) = quiet {
            let mut visits = [Visit::NONE; 3];
            let visited = session.bind(alone).run(&mut pool, &handles, &mut visits, quiet);
            assert_eq!(visited.count, 3);
            std::array::from_fn(|at| visits[at].returned().filter(|_| visited.loud >> at & 1 == 1))
        } else {
            handles.map(|handle| {
                let (meta, frame) = pool.parts_mut(handle);
                let (ingress, now) = (meta.in_port.into(), meta.arrival);
                session.show(Arrival { ingress, now, mark: self.context.mark }, frame).run(&alone).ok()
            })
        };
        // Including all bytes between and after the packets.
        let end = (handles.map(|handle| handle.0).into_iter().max().unwrap() as usize + 2) * 64;
        let bytes = pool.bytes_mut()[..end + self.packet.len()].to_vec();
        let maps = maps.all().iter().map(|map| values(map)).collect();
        Some(Visited { returned, bytes, state: state.get(), maps })
    }

    /// Maps with something in every value of arrays.
    pub fn maps(&self) -> Arc<Maps> {
        let maps = Maps::new(&self.program.maps, 2, 1).unwrap();
        for (number, map) in maps.all().iter().enumerate() {
            let (spec, words) = (map.spec(), map.values());
            // A set lock would be waited for, and missing programs would be tail-called.
            let free = spec.lock.is_none() && spec.inner.is_none() && spec.kind != MapKind::ProgArray;
            if free && spec.kind.is_array() && !spec.read_only && spec.initial.is_empty() {
                let in_value = |i: &usize| i % spec.stride() < spec.value_size as usize;
                (0..words.len())
                    .filter(in_value)
                    .for_each(|i| words.write(i, &[(i * 7 + number * 31 + 1) as u8]));
            }
        }
        Arc::new(maps)
    }

    fn left(&self, maps: &Arc<Maps>, run: impl FnOnce(&mut Machine<'_>) -> Result<u64, Stopped>) -> Left {
        let mut buffer = vec![0xee; ROOM];
        buffer.extend(&self.packet);
        buffer.extend([0xee; ROOM]);
        let data = ROOM..ROOM + self.packet.len();
        let (mut stack, state, mut environment) =
            (Stack::trusting(), ProgramState::new(STATE), Counting(0, self.route));
        stack.bytes_mut().iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
        let mut machine = Machine {
            context: self.context,
            packet: Packet::new(&mut buffer, data),
            stack: &mut stack,
            state: &state,
            maps,
            environment: &mut environment,
            effects: Effects::default(),
        };
        let result = run(&mut machine);
        let (packet, effects) = (machine.packet.range(), machine.effects);
        Left {
            verdict: result.ok().map(|r0| Verdict::new(r0, &effects)),
            result,
            effects,
            packet,
            stack: stack.bytes_mut().to_vec(),
            state: state.get(),
            maps: maps.all().iter().map(|map| values(map)).collect(),
            buffer,
        }
    }
}

/// All memory of a map's values; of a ring the content of its records.
fn values(map: &longwire_program::Map) -> Vec<u8> {
    if map.spec().kind.is_ring() {
        let records = map.peek(usize::MAX, usize::MAX);
        return records.iter().map(|record| format!("{record:?}")).collect::<String>().into_bytes();
    }
    let mut bytes = vec![0; map.values().len()];
    map.values().read(0, &mut bytes);
    bytes
}
