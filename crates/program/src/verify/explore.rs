//! Follows a program on all its paths.
//!
//! Instructions are visited in an order in which predecessors come first. Each is visited once, with all
//! states that the paths to it have left: a state included in another one is dropped, and if too many remain,
//! they are joined.
//!
//! A loop is followed round by round when its head is visited, until no path leads back to the head: the
//! states that leave it are then complete. States of different rounds are never compared within the loop, so
//! that a loop that can't be followed to its end is refused.

use super::cycles::cycles;
use super::error::{At, Rejected, Rejection, Result};
use super::loops::Loop;
use super::scalar::Scalar;
use super::state::{Flow, Knowledge};
use super::structure::Structure;
use super::value::{Id, MapOrigin, Names, Repeat};
use super::{Access, Callback, Fact, MAX_STEPS};
use crate::memory::{MAX_MAPS, Region};
use crate::{Arithmetic, Counts, Helper, Instruction, Item, MapSpec, Program, Register};
use std::collections::{BTreeMap, BTreeSet};

/// Most states of an instruction.
const MAX_STATES: usize = 64;

/// Most states at a loop's exit: there is at least one for each round, because counters in the loop
/// correspond to offsets in the packet.
const MAX_EXITS: usize = 2048;

/// Most values in waiting states ([`Knowledge::size`]), so that those of a hostile program take at most about
/// a hundred megabytes.
const MAX_WAITING: usize = 1 << 20;

/// Number of values that are copied in the time of a visit. States of ordinary programs have fewer.
const COPIED: usize = 256;

/// Number of skipped instructions that cost as much as a visit.
const PASSED: usize = 16;

/// A program being followed.
pub struct Explorer<'p> {
    pub(super) program: &'p Program,
    pub(super) structure: &'p Structure,
    found: Exploration,
    /// Cost of the current instruction in the current state.
    pub(super) cost: Counts,
    last: Id,
    steps: usize,
    /// Size of the states that wait, or that later ones are compared with.
    pub(super) waiting: usize,
    pub(super) names: Names,
    /// The loops being followed, with their rounds.
    following: Vec<(usize, u32)>,
    /// Targets of tail calls that were not followed yet.
    unfollowed: Vec<usize>,
}

/// A function being followed.
struct FunctionWalk {
    start: usize,
    /// For each instruction, the waiting states.
    pending: Vec<Vec<Knowledge>>,
    exits: Vec<Knowledge>,
}

/// For each tail call the first instructions of its possible targets.
pub type TailCalls = BTreeMap<usize, BTreeSet<usize>>;

/// The results.
#[derive(Debug)]
pub struct Exploration {
    pub facts: Vec<Fact>,
    /// Maximum cost of each instruction, without what it calls.
    pub costs: Vec<Counts>,
    pub state_size: u32,
    pub links: u32,
    /// For each loop, the most visits of its head per entry.
    pub rounds: Vec<u32>,
    pub tail_calls: TailCalls,
}

impl<'p> Explorer<'p> {
    pub fn explore(program: &'p Program, structure: &'p Structure) -> Result<Exploration, Box<Rejected>> {
        let mut explorer = Self::new(program, structure);
        let mut followed = BTreeSet::new();
        while let Some(start) = explorer.unfollowed.pop() {
            if followed.insert(start) {
                let done = explorer.run(structure.function_at(start), vec![Knowledge::new()]);
                done.map_err(|(at, fault)| Rejected::new(program, at, fault))?;
            }
        }
        Ok(explorer.found)
    }

    fn new(program: &'p Program, structure: &'p Structure) -> Self {
        let count = program.code.len();
        let found = Exploration {
            facts: vec![Fact::default(); count],
            costs: vec![Counts::NONE; count],
            state_size: 0,
            links: 0,
            rounds: vec![0; structure.loops.all.len()],
            tail_calls: TailCalls::new(),
        };
        Self {
            program,
            structure,
            found,
            cost: Counts::NONE,
            last: 0,
            steps: 0,
            waiting: 0,
            names: Names::default(),
            following: Vec::new(),
            unfollowed: vec![0],
        }
    }

    /// Follows a function from these states. Returns the states at its return.
    pub fn run(&mut self, function: usize, states: Vec<Knowledge>) -> Result<Vec<Knowledge>, At> {
        let body = &self.structure.functions[function];
        let mut walk = FunctionWalk {
            start: body.range.start,
            pending: vec![Vec::new(); body.range.len()],
            exits: Vec::new(),
        };
        self.waiting += Knowledge::total_size(&states);
        walk.pending[0] = states;
        self.follow(&mut walk, &body.order, None)?;
        Ok(walk.exits)
    }

    /// Follows these instructions, of the whole function or `within` a loop.
    fn follow(&mut self, walk: &mut FunctionWalk, order: &[usize], within: Option<usize>) -> Result<(), At> {
        let loops = &self.structure.loops;
        self.steps += order.len() / PASSED;
        for &index in order {
            if walk.pending[index - walk.start].is_empty() {
                continue;
            }
            match loops.headed(index) {
                // Those of inner loops are followed with their heads, so nothing waits for them any more.
                Some(inner) if within != Some(inner) => self.go_round(walk, inner)?,
                _ => self.pass(walk, index).map_err(|(at, fault)| self.blamed(at, fault))?,
            }
        }
        Ok(())
    }

    /// Follows a loop round by round from the states that wait for its head, until none returns there.
    fn go_round(&mut self, walk: &mut FunctionWalk, number: usize) -> Result<(), At> {
        let Loop { head, back, members, .. } = &self.structure.loops.all[number];
        let place = head - walk.start;
        self.following.push((number, 0));
        let (mut rounds, mut before) = (0u32, Vec::<Knowledge>::new());
        while !walk.pending[place].is_empty() {
            rounds += 1;
            if let Some(last) = self.following.last_mut() {
                last.1 = rounds;
            }
            if rounds.is_power_of_two() {
                self.waiting -= Knowledge::total_size(&before);
                before.clone_from(&walk.pending[place]);
                self.waiting += Knowledge::total_size(&before);
            }
            self.follow(walk, members, Some(number))?;
            // A repeated state can repeat forever.
            let (after, names) = (&walk.pending[place], &mut self.names);
            let mut again = |state: &Knowledge| after.iter().any(|later| later.contains(state, names));
            if before.iter().all(&mut again) {
                return Err((*back, Rejection::Endless { to: self.program.code.slot(*head) }));
            }
        }
        self.waiting -= Knowledge::total_size(&before);
        self.following.pop();
        self.found.rounds[number] = self.found.rounds[number].max(rounds);
        Ok(())
    }

    /// If loops made the program too complex, the error names the one with the most rounds.
    fn blamed(&self, at: usize, fault: Rejection) -> At {
        // The innermost one of those with equally many.
        let longest = self.following.iter().max_by_key(|&&(_, rounds)| rounds);
        match (&fault, longest) {
            (Rejection::TooComplex, Some(&(number, rounds))) => {
                let Loop { head, back, .. } = self.structure.loops.all[number];
                (back, Rejection::Unbounded { to: self.program.code.slot(head), rounds })
            }
            _ => (at, fault),
        }
    }

    /// Visits an instruction with all its waiting states.
    fn pass(&mut self, walk: &mut FunctionWalk, index: usize) -> Result<(), At> {
        let states = std::mem::take(&mut walk.pending[index - walk.start]);
        self.waiting -= Knowledge::total_size(&states);
        let target = self.target(index);
        let (mut entering, mut repeated) = (Vec::new(), Vec::<(Repeat, Vec<Knowledge>)>::new());
        for mut state in states {
            match self.look(index, &mut state).map_err(|fault| (index, fault))? {
                Flow::Next => self.arrive(walk, index + 1, state),
                Flow::Jump => self.arrive(walk, target, state),
                Flow::Branch { falls, jumps } => {
                    self.found.facts[index].falls |= falls;
                    self.found.facts[index].jumps |= jumps.is_some();
                    if let Some(jumps) = jumps {
                        self.arrive(walk, target, *jumps);
                    }
                    if falls {
                        self.arrive(walk, index + 1, state);
                    }
                }
                Flow::Enter => {
                    state.keep(self.structure.live[index]);
                    state.enter();
                    self.add(&mut entering, state);
                }
                Flow::Repeat(repeat) => {
                    state.keep(self.structure.live[index + 1] & Register::SAVED_BITS);
                    let place = repeated.iter().position(|(other, _)| *other == repeat);
                    let place = place.unwrap_or(repeated.len());
                    if place == repeated.len() {
                        repeated.push((repeat, Vec::new()));
                    }
                    self.add(&mut repeated[place].1, state);
                }
                Flow::Exit => {
                    state.keep(Register::R0.bit());
                    self.add(&mut walk.exits, state);
                }
            }
        }
        for state in self.enter(index, entering)? {
            self.arrive(walk, index + 1, state);
        }
        for (repeat, states) in repeated {
            for state in self.repeat(index, repeat, states)? {
                self.arrive(walk, index + 1, state);
            }
        }
        Ok(())
    }

    /// Follows a called function. Returns the states after its return.
    fn enter(&mut self, index: usize, states: Vec<Knowledge>) -> Result<Vec<Knowledge>, At> {
        let Some(target) = self.program.code.target(index).filter(|_| !states.is_empty()) else {
            return Ok(Vec::new());
        };
        let mut returned = self.run(self.structure.function_at(target), states)?;
        returned.iter_mut().for_each(Knowledge::leave);
        Ok(returned)
    }

    fn look(&mut self, index: usize, state: &mut Knowledge) -> Result<Flow> {
        self.steps += 1 + state.size() / COPIED + self.names.visits();
        if self.steps > MAX_STEPS || self.waiting > MAX_WAITING {
            return Err(Rejection::TooComplex);
        }
        self.found.facts[index].reached = true;
        self.cost = Counts::NONE;
        self.cost[Item::Instruction] = 1;
        self.cost[Item::Cycle] = cycles(&self.program.code.instructions()[index], state);
        self.cost[Item::Division] = u32::from(divides(&self.program.code.instructions()[index]));
        self.check_locked(index, state)?;
        let flow = self.step(index, state)?;
        self.found.costs[index] = self.found.costs[index].most(&self.cost);
        Ok(flow)
    }

    /// A state reaches an instruction.
    fn arrive(&mut self, walk: &mut FunctionWalk, index: usize, mut state: Knowledge) {
        let states = &mut walk.pending[index - walk.start];
        if self.structure.merges[index] {
            state.keep(self.structure.live[index]);
            if self.structure.loops.headed(index).is_some() {
                state.forget_unnamed();
            }
            let room = if self.structure.exits[index] { MAX_EXITS } else { 0 };
            self.waiting -= Knowledge::total_size(states);
            self.add_within(room, states, state);
            self.waiting += Knowledge::total_size(states);
        } else {
            self.waiting += state.size();
            states.push(state);
        }
    }

    /// Adds a state to others of the same instruction, removing redundant ones.
    pub fn add(&mut self, states: &mut Vec<Knowledge>, state: Knowledge) {
        self.add_within(0, states, state);
    }

    /// As [`Explorer::add`], with at least `room` states before they are joined.
    fn add_within(&mut self, room: usize, states: &mut Vec<Knowledge>, mut state: Knowledge) {
        self.compare(states.len().saturating_sub(MAX_STATES));
        let names = &mut self.names;
        for kept in states.iter_mut() {
            if kept.contains(&state, names) {
                kept.absorb(&state, names);
                return;
            }
        }
        states.retain(|kept| {
            let included = state.contains(kept, names);
            if included {
                state.absorb(kept, names);
            }
            !included
        });
        let most = (MAX_STEPS / 4 / self.program.code.len()).clamp(2, MAX_STATES);
        if states.len() >= most.max(room) {
            // All are compared once more.
            self.steps += states.len() * (state.size() / COPIED) / 2;
            if let Some(nearest) = nearest(states, &state) {
                state = states.remove(nearest).join(&state, || {
                    self.last += 1;
                    self.last
                });
            }
        }
        states.push(state);
    }

    /// Target of an instruction.
    pub fn target(&self, index: usize) -> usize {
        self.program.code.target(index).unwrap_or(index)
    }

    /// Counts comparisons of states, or what is as quick, which take time as visits do.
    pub fn compare(&mut self, pairs: usize) {
        self.steps += pairs / PASSED;
    }

    /// Declaration of a map.
    pub fn spec(&self, map: MapOrigin) -> Result<&'p MapSpec> {
        match map {
            MapOrigin::Map(map) => self.map(u32::from(map)),
            MapOrigin::Inner(outer) => {
                let inner = self.map(u32::from(outer))?.inner.as_ref();
                inner.map(|inner| &*inner.spec).ok_or(Rejection::NoMap(u32::from(outer)))
            }
        }
    }

    pub fn map(&self, map: u32) -> Result<&'p MapSpec> {
        let spec = self.program.maps.get(map as usize).filter(|_| (map as usize) < MAX_MAPS);
        spec.ok_or(Rejection::NoMap(map))
    }

    /// A new name.
    pub fn fresh(&mut self) -> Id {
        self.last += 1;
        self.last
    }

    /// Records the access of an instruction. The context is never mixed with other memory.
    pub fn note_access(&mut self, index: usize, region: Option<Region>, place: Option<u32>) -> Result<()> {
        let fact = &mut self.found.facts[index];
        let now = Access { region, place };
        fact.access = Some(match fact.access {
            None => now,
            Some(before) if before.region == now.region => {
                Access { place: before.place.filter(|_| before.place == place), ..now }
            }
            Some(before) if region == Some(Region::Context) || before.region == Some(Region::Context) => {
                return Err(Rejection::ContextOrNot);
            }
            Some(_) => Access { region: None, place: None },
        });
        Ok(())
    }

    pub fn note_call(&mut self, index: usize, helper: Helper, map: Option<u16>, bytes: u32) {
        let fact = &mut self.found.facts[index];
        let now = super::Call { helper, map, bytes, callback: None };
        fact.call = Some(match fact.call {
            None => now,
            Some(before) => super::Call {
                map: before.map.filter(|_| before.map == map),
                bytes: before.bytes.max(bytes),
                callback: before.callback,
                ..now
            },
        });
    }

    /// Records a possible target of a tail call, by its number in a map.
    pub fn note_tail_call(&mut self, index: usize, number: u32, map: &MapSpec) -> Result<()> {
        let start = self.program.code.program(number);
        let start = start.ok_or_else(|| Rejection::NoProgram { map: map.name.clone(), number })?;
        if self.found.tail_calls.entry(index).or_default().insert(start) {
            // The worst case is summed over each of them, for every number of tail calls.
            self.steps += 1;
            self.unfollowed.push(start);
        }
        Ok(())
    }

    /// Records the callback of a helper.
    pub fn note_callback(&mut self, index: usize, helper: Helper, now: Callback) -> Result<()> {
        let Some(call) = &mut self.found.facts[index].call else { return Ok(()) };
        let before = call.callback.unwrap_or(now);
        if before.entry != now.entry {
            return Err(Rejection::Callbacks { helper });
        }
        call.callback = Some(Callback { rounds: before.rounds.max(now.rounds), ..now });
        Ok(())
    }

    /// Records that the program uses this many bytes of its state.
    pub fn note_state(&mut self, bytes: u32) {
        self.found.state_size = self.found.state_size.max(bytes);
    }

    /// Records a link number named by the program; its lower half counts.
    pub fn note_link(&mut self, number: Scalar) {
        let least = if number.max <= u64::from(u32::MAX) { number.min as u32 } else { 0 };
        self.found.links = self.found.links.max(least.saturating_add(1));
    }
}

/// The best state for joining with another: the last of those with the fewest differences in kind. None if
/// none can be joined.
fn nearest(states: &[Knowledge], state: &Knowledge) -> Option<usize> {
    let mut best = None;
    let joins = |kept: &Knowledge| kept.locked == state.locked && kept.has_records_like(state);
    for (place, kept) in states.iter().enumerate().rev().filter(|(_, kept)| joins(kept)) {
        let most = best.map_or(usize::MAX, |(_, differences)| differences);
        match kept.differences(state, most) {
            0 => return Some(place),
            differences if differences < most => best = Some((place, differences)),
            _ => {}
        }
    }
    best.map(|(place, _)| place)
}

/// Whether it is a division.
const fn divides(instruction: &Instruction) -> bool {
    use Arithmetic::{Div, Mod, SignedDiv, SignedMod};
    matches!(instruction, Instruction::Arithmetic { operation: Div | SignedDiv | Mod | SignedMod, .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble;

    /// Each round creates an origin in the packet, from which the address is then counted. Old ones are
    /// useless.
    #[test]
    fn a_loop_remembers_no_more_the_longer_it_is() {
        let code = "r8 = *(u32 *)(r1 + 0)\n r6 = 0\n again: call get_prandom_u32\n r0 &= 1\n r8 += r0\n r6 \
            += 1\n \
            if r6 < 200 goto again\n r0 = 0\n exit";
        let program = Program::new("far", assemble(code).unwrap(), []);
        let structure = Structure::new(&program.code).unwrap();
        let mut explorer = Explorer::new(&program, &structure);
        let Ok(exits) = explorer.run(0, vec![Knowledge::new()]) else { panic!("it is refused") };
        assert_eq!(explorer.found.rounds, [200]);
        // The packet's beginning, and the origins of this round and the previous one.
        assert!(exits.iter().all(|state| state.places() <= 3), "{:?}", exits[0].places());
    }
}
