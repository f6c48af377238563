//! The verifier: safety of programs that run on packets, and their worst-case cost.
//!
//! An accepted program never causes a [`Fault`](crate::Fault), whatever the packet, and ends after a known
//! number of instructions. A forward pass computes the possible values of each register and stack byte; each
//! instruction is visited once, or once in each round of a loop. A backward pass adds up costs.
//!
//! - `structure`: functions, order, reachability; `loops`: loops;
//! - `bits`, `scalar`, `refine`: knowledge about numbers, and what branches add to it;
//! - `value`, `stack`, `state`: knowledge about registers, stack and packet, and inclusion of states;
//! - `record`: records of rings that must be released;
//! - `explore`: the forward pass; `step`, `branch`, `access`, `call`: effects of instructions on a state;
//!   `rounds`: callbacks;
//! - `cost`, `cycles`: costs of instructions; `path`: the backward pass, which adds them up;
//! - `error`: errors.
//!
//! Addresses are numbers made of a region and an offset, so storing or returning one reveals nothing: they
//! may be written to maps, state and packets, and are numbers when loaded from there. On the stack they stay
//! addresses.

mod access;
mod bits;
mod branch;
mod call;
mod cost;
mod cycles;
mod error;
mod explore;
mod loops;
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

pub use error::{Rejected, Rejection};

use crate::memory::Region;
use crate::{Counts, Helper, Program};
use explore::{Exploration, Explorer};
use structure::Structure;

/// Most visits of instructions with a state, counting each round of a loop, and what takes as long as visits:
/// a hostile program is refused within seconds.
const MAX_STEPS: usize = 400_000;

/// Most nested loops in a function.
const MAX_NESTED: usize = 8;

/// Maximum distance of an address from its origin in bytes, so that addresses of one region never get into
/// another.
const FURTHEST: i64 = 1 << 29;

/// A verified program. Only the verifier creates these.
#[derive(Debug)]
pub struct VerifiedProgram {
    program: Program,
    structure: Structure,
    explored: Exploration,
    most: Counts,
}

/// Facts about an instruction in all executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fact {
    /// Whether it is reachable.
    pub reached: bool,
    /// For a branch: whether it may fall through.
    pub falls: bool,
    /// For a branch: whether it may be taken.
    pub jumps: bool,
    /// For a load, store or atomic operation: its access, proven to be in bounds, aligned where required, and
    /// initialized where that matters.
    pub access: Option<Access>,
    /// For a helper call: its arguments.
    pub call: Option<Call>,
}

/// The access of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The region. None if it depends on the path, so that the address decides; it is then never the context.
    pub region: Option<Region>,
    /// Offset in the context, stack or state, if constant.
    pub place: Option<u32>,
}

/// The arguments of a helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The helper.
    pub helper: Helper,
    /// The map, if there is one and it is always the same.
    pub map: Option<u16>,
    /// Most bytes that it sums, hashes or copies.
    pub bytes: u32,
    /// The callback.
    pub callback: Option<Callback>,
}

/// A callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callback {
    /// Its first instruction.
    pub entry: usize,
    /// Most rounds.
    pub rounds: u32,
}

/// The most expensive path through a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorstPath {
    /// Its price, in the unit of the price list.
    pub price: u64,
    /// Its counts.
    pub counts: Counts,
    /// Its instructions in order, those of called functions after the call, those of a loop in every round;
    /// at most a million. Perhaps no packet takes it, because its conditions may exclude each other.
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
/// The first instruction at fault, its error, and the fix.
pub fn verify(program: Program) -> Result<VerifiedProgram, Box<Rejected>> {
    let structure =
        Structure::new(&program.code).map_err(|(index, fault)| Rejected::new(&program, index, fault))?;
    let explored = Explorer::explore(&program, &structure)?;
    let mut verified = VerifiedProgram { structure, explored, most: Counts::NONE, program };
    verified.most = verified.maximum();
    // Counts end there: it may be more.
    let beyond = verified.most.iter().find(|&(_, count)| count == u32::MAX);
    match beyond {
        Some((item, _)) => {
            Err(Rejected::new(&verified.program, verified.most_rounds(), Rejection::TooLong { item }))
        }
        None => Ok(verified),
    }
}

impl VerifiedProgram {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Facts about each instruction.
    pub fn facts(&self) -> &[Fact] {
        &self.explored.facts
    }

    /// Bytes of state that it uses: the minimum for its installation.
    pub fn state_size(&self) -> u32 {
        self.explored.state_size
    }

    /// Minimum number of links for its installation: one more than the highest number that it certainly
    /// names. Numbers that depend on packets may be higher.
    pub fn links(&self) -> u32 {
        self.explored.links
    }

    /// Number of stack frames that it needs.
    pub fn frames(&self) -> usize {
        self.structure.functions.iter().map(|body| body.frames).max().unwrap_or(1)
    }

    /// Maximum cost of an instruction, without a function that it may call.
    pub fn cost(&self, instruction: usize) -> Option<&Counts> {
        self.explored.costs.get(instruction)
    }

    /// Maximum count of each operation per packet. No run exceeds any of them; none need reach all of them.
    pub fn most(&self) -> &Counts {
        &self.most
    }

    /// The first of the calls with the most rounds of a callback; without one, the first instruction.
    fn most_rounds(&self) -> usize {
        let callback = |fact: &Fact| fact.call.and_then(|call| call.callback);
        let rounds = |&at: &usize| callback(&self.facts()[at]).map_or(0, |callback| callback.rounds);
        (0..self.facts().len()).rev().max_by_key(rounds).unwrap_or(0)
    }
}
