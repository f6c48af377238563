//! The verifier: what no program may do that runs on packets, and what a program costs at worst.
//!
//! A program that it lets in never meets a [`Fault`](crate::Fault), whatever the packet, and ends after a
//! known number of instructions. One pass goes forward over the instructions and knows what each register and
//! each byte of the stack may be; each instruction is looked at once, or once in each round of a loop. One
//! goes backward and adds up costs.
//!
//! - `structure`: functions, order, what is unreachable; `loops`: which instructions are in one;
//! - `bits`, `scalar`, `refine`: what is known of numbers, and what branches teach;
//! - `value`, `stack`, `state`: what is known of registers, the stack and the packet, and when one state
//!   includes another;
//! - `open`, `record`: records of rings that have to be given back;
//! - `explore`: the pass forward; `step`, `branch`, `access`, `call`: what instructions do to a state;
//!   `rounds`: functions that helpers call again and again;
//! - `cost`, `cycles`, `path`: the pass backward, and what it adds up;
//! - `flow`: where a program goes on; `limits`: how far it is followed;
//! - `error`: what can be wrong.
//!
//! Addresses are numbers of a region and a place, so a program that stores or returns one gives nothing away:
//! addresses may be written to maps, state and packets, and are numbers when they are loaded from there. On
//! the stack they stay what they are.

mod access;
mod bits;
mod branch;
mod call;
mod cost;
mod cycles;
mod error;
mod explore;
mod flow;
mod limits;
mod loops;
mod open;
mod path;
mod record;
mod refine;
mod rounds;
mod scalar;
mod stack;
mod state;
mod step;
mod structure;
mod value;

pub use cost::{Counts, Item, Prices};
pub use error::{Rejected, Rejection};

use crate::memory::Region;
use crate::{Helper, Program};
use explore::{Explorer, TailCalls};
use path::Graph;
use structure::Structure;

/// A program that was verified. Nothing else makes one.
#[derive(Debug)]
pub struct Verified {
    program: Program,
    structure: Structure,
    facts: Box<[Fact]>,
    costs: Box<[Counts]>,
    most: Counts,
    rounds: Box<[u32]>,
    tail_calls: TailCalls,
    state_size: u32,
    links: u32,
}

/// What holds of an instruction whenever it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fact {
    /// Whether it ever runs.
    pub reached: bool,
    /// Of a branch: whether it is ever not taken.
    pub falls: bool,
    /// Of a branch: whether it is ever taken.
    pub jumps: bool,
    /// Of a load, a store or an atomic operation: what it accesses, all of it proven to be there, aligned
    /// where it has to be, and written before where that matters.
    pub access: Option<Access>,
    /// Of a helper's call: what it is given.
    pub call: Option<Call>,
}

/// What an instruction accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The region. None if that depends on the path, so that the address has to tell; it is then never the
    /// context.
    pub region: Option<Region>,
    /// The place in the context, the stack or the state, if it is always the same.
    pub place: Option<u32>,
}

/// What a helper is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The helper.
    pub helper: Helper,
    /// The map, if it takes one and that is always the same.
    pub map: Option<u16>,
    /// How many bytes it sums, hashes or copies at most.
    pub bytes: u32,
    /// The function that it calls.
    pub callback: Option<Callback>,
}

/// A function of the program that a helper calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callback {
    /// Its first instruction.
    pub entry: usize,
    /// How often it is called at most.
    pub rounds: u32,
}

/// The path through a program that costs most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorstPath {
    /// What it costs, in the unit of the price list.
    pub price: u64,
    /// What happens on it.
    pub counts: Counts,
    /// Its instructions in order, those of called functions after the call, those of a loop as often as it
    /// goes round; at most a million. Perhaps no packet takes it: the conditions on it may exclude each
    /// other.
    pub path: Vec<usize>,
}

/// Verifies a program.
///
/// ```
/// use longwire_program::{Program, assemble, verify};
///
/// let code = assemble("r0 = *(u32 *)(r1 + 0)\n r0 = *(u8 *)(r0 + 0)\n exit").unwrap();
/// let rejected = verify(Program::new("peek", code, [])).unwrap_err();
/// assert_eq!(
///     rejected.to_string(),
///     "program peek, instruction 1 (r0 = *(u8 *)(r0 + 0)): the packet may end before byte 1 beyond r0, \
///      of which 0 are known to be there; compare with data_end first"
/// );
/// ```
///
/// # Errors
/// Names the first instruction at fault, what is wrong with it, and the fix.
pub fn verify(program: Program) -> Result<Verified, Box<Rejected>> {
    let structure =
        Structure::new(&program.code).map_err(|(index, fault)| Rejected::new(&program, index, fault))?;
    let explored = Explorer::explore(&program, &structure)?;
    let (facts, costs) = (explored.facts.into_boxed_slice(), explored.costs.into_boxed_slice());
    let rounds = explored.rounds.into_boxed_slice();
    let (state_size, links, tail_calls) = (explored.state_size, explored.links, explored.tail_calls);
    let most = Counts::NONE;
    let mut verified =
        Verified { structure, facts, costs, most, rounds, tail_calls, state_size, links, program };
    verified.most = verified.graph().most();
    Ok(verified)
}

impl Verified {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What is known of each instruction.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// How many bytes of state it uses: it must be installed with that many at least.
    pub fn state_size(&self) -> u32 {
        self.state_size
    }

    /// How many links it must be given at least: one more than the highest number that it surely names
    /// somewhere. Numbers that only packets tell may be higher.
    pub fn links(&self) -> u32 {
        self.links
    }

    /// How many stack frames it needs.
    pub fn frames(&self) -> usize {
        self.structure.functions().iter().map(|body| body.frames).max().unwrap_or(1)
    }

    /// What an instruction costs at most, without the function that it may call.
    pub fn cost(&self, instruction: usize) -> Option<&Counts> {
        self.costs.get(instruction)
    }

    /// The most that each item can happen for one packet. No run exceeds any of these; none need reach them
    /// all.
    pub fn most(&self) -> &Counts {
        &self.most
    }

    /// The most that a packet can cost at these prices, and how.
    pub fn worst_path(&self, prices: &Prices) -> WorstPath {
        self.graph().worst_path(prices)
    }

    fn graph(&self) -> Graph<'_> {
        let Self { program, structure, facts, costs, rounds, tail_calls, .. } = self;
        Graph { code: &program.code, structure, facts, costs, rounds, tail_calls }
    }
}
