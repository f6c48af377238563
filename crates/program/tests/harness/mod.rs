//! Runs programs on a packet, fully checked.

use longwire_program::{
    Code, Context, Effects, Environment, Machine, Maps, Packet, ProgramState, Stack, Stopped, Verdict,
    interpret,
};

/// Headroom and tailroom.
pub const ROOM: usize = 32;

/// A program's environment.
pub struct Bench {
    pub buffer: Vec<u8>,
    pub maps: Maps,
    pub state: ProgramState,
    pub context: Context,
    pub stack: Stack,
    pub budget: u64,
}

/// Results of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub returned: u64,
    pub instructions: u64,
    pub effects: Effects,
    pub packet: Vec<u8>,
    pub verdict: Verdict,
}

/// Draws increasing numbers.
struct Counting(u32);

impl Environment for Counting {
    fn random(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }
}

impl Bench {
    /// With this packet and these maps.
    pub fn new(packet: &[u8], maps: Maps) -> Self {
        let mut buffer = vec![0xee; ROOM];
        buffer.extend(packet);
        buffer.extend([0xee; ROOM]);
        let context =
            Context { ingress: 3, queue: 0x85, egress: 0, now: 5_000_000_123, worker: 1, mark: 0x9000_0001 };
        Self { buffer, maps, state: ProgramState::new(64), context, stack: Stack::checked(), budget: 1000 }
    }

    pub fn run(&mut self, code: &Code) -> Result<Ran, Stopped> {
        let data = ROOM..self.buffer.len() - ROOM;
        let mut environment = Counting(0);
        let mut machine = Machine {
            context: self.context,
            packet: Packet::new(&mut self.buffer, data),
            stack: &mut self.stack,
            state: &self.state,
            maps: &self.maps,
            environment: &mut environment,
            effects: Effects::default(),
        };
        let finished = interpret(code, &mut machine, self.budget)?;
        Ok(Ran {
            returned: finished.returned,
            instructions: finished.instructions,
            effects: machine.effects,
            packet: machine.packet.bytes().to_vec(),
            verdict: Verdict::new(finished.returned, &machine.effects),
        })
    }
}
