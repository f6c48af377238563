//! Runs programs in both ways and compares all that they leave behind.

use longwire_jit::{Compiled, Halted, compile, compile_unverified};
use longwire_program::{
    Context, Effects, Environment, Machine, Maps, Packet, Program, Region, Stack, State, Stopped, Verdict,
    interpret, verify,
};
use std::ops::Range;
use std::sync::Arc;

/// Room before and behind the packet.
pub const ROOM: usize = 32;

/// Bytes of state.
pub const STATE: u32 = 64;

/// All that a run leaves behind.
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

/// What a program is run on.
#[derive(Debug, Clone)]
pub struct Bench {
    pub program: Program,
    pub packet: Vec<u8>,
    pub context: Context,
}

/// Counts up, so that every draw is another number.
struct Counting(u32);

impl Environment for Counting {
    fn random(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }
}

impl Bench {
    pub fn new(program: Program, packet: &[u8]) -> Self {
        let context = Context { ingress: 3, queue: 0x85, now: 5_000_000_123, worker: 1, mark: 0x9000_0001 };
        Self { program, packet: packet.into(), context }
    }

    pub fn interpreted(&self) -> Left {
        self.interpreted_with(&self.maps())
    }

    /// With maps that others were run with before.
    pub fn interpreted_with(&self, maps: &Arc<Maps>) -> Left {
        self.left(maps, |machine| {
            interpret(&self.program.code, machine, 100_000).map(|finished| finished.returned)
        })
    }

    /// Compiled with nothing but these hints.
    pub fn unverified(&self, hints: &[Option<Region>]) -> Left {
        let maps = self.maps();
        let compiled = compile_unverified(&self.program, hints, Arc::clone(&maps)).unwrap();
        self.run(&compiled, &maps)
    }

    /// Compiled with what the verifier knows, if it lets the program in.
    pub fn verified(&self) -> Option<Left> {
        let verified = verify(self.program.clone()).ok()?;
        let maps = self.maps();
        let compiled = compile(&verified, Arc::clone(&maps)).unwrap();
        Some(self.run(&compiled, &maps))
    }

    /// Runs it once more, compiled for these maps.
    pub fn run(&self, compiled: &Compiled, maps: &Arc<Maps>) -> Left {
        self.left(maps, |machine| {
            compiled.run(machine).map_err(|halted| match halted {
                Halted::Stopped(stopped) => stopped,
                other => panic!("{other}"),
            })
        })
    }

    /// Maps with something in every value of arrays.
    pub fn maps(&self) -> Arc<Maps> {
        let maps = Maps::new(&self.program.maps, 2, 1).unwrap();
        for (number, map) in maps.all().iter().enumerate() {
            let (spec, words) = (map.spec(), map.values());
            if spec.kind.is_array() && !spec.read_only && spec.initial.is_empty() {
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
        let (mut stack, state, mut environment) = (Stack::trusting(), State::new(STATE), Counting(0));
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
            maps: maps.all().iter().map(values).collect(),
            buffer,
        }
    }
}

/// All memory of a map's values.
fn values(map: &longwire_program::Map) -> Vec<u8> {
    let mut bytes = vec![0; map.values().len()];
    map.values().read(0, &mut bytes);
    bytes
}
