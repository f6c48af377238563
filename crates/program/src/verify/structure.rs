//! The structure of a program: functions, order of instructions, calls, live registers.

use super::error::{At, Rejection};
use super::loops::Loops;
use crate::memory::MAX_FRAMES;
use crate::{Code, Helper, Instruction, Register};
use std::ops::Range;

/// Edges: source and target.
pub type Ways = Vec<(usize, usize)>;

/// Knowledge about a program without its data.
#[derive(Debug)]
pub struct Structure {
    /// In the order of their first instructions. The first is the program.
    pub functions: Vec<Body>,
    /// For each instruction, the live registers before it.
    pub live: Vec<u16>,
    /// For each instruction, whether it has several predecessors, and whether one of them leaves a loop.
    pub merges: Vec<bool>,
    pub exits: Vec<bool>,
    pub loops: Loops,
}

/// A function.
#[derive(Debug)]
pub struct Body {
    pub range: Range<usize>,
    /// Its instructions in an order in which predecessors come first, except for backward jumps of loops.
    pub order: Vec<usize>,
    /// Most frames that it needs, including what it calls.
    pub frames: usize,
}

impl Structure {
    /// Analyses a program's jumps and calls.
    pub fn new(code: &Code) -> Result<Self, At> {
        let entries = code.entries();
        let ends = entries.iter().skip(1).copied().chain([code.len()]);
        let mut functions = Vec::with_capacity(entries.len());
        let mut loops = Loops::none(code.len());
        for (&start, end) in entries.iter().zip(ends) {
            let (order, back) = order(code, &(start..end))?;
            loops.find(code, &(start..end), &order, &back)?;
            functions.push(Body { range: start..end, order, frames: 0 });
        }
        let mut structure = Self {
            functions,
            live: vec![0; code.len()],
            merges: vec![false; code.len()],
            exits: vec![false; code.len()],
            loops,
        };
        structure.count_frames(code)?;
        if let Some(unused) = structure.functions.iter().find(|body| body.frames == 0) {
            return Err((unused.range.start, Rejection::Unreachable));
        }
        structure.look_back(code);
        Ok(structure)
    }

    /// The number of the function that begins at this instruction.
    pub fn function_at(&self, entry: usize) -> usize {
        self.functions.partition_point(|body| body.range.start < entry)
    }

    /// Follows calls from the program, and from targets of tail calls.
    fn count_frames(&mut self, code: &Code) -> Result<(), At> {
        let calls_of = |body: &Body| -> Vec<(usize, usize)> {
            // A callback is called by a helper, with a frame below this one's.
            let local = |&i: &usize| code.instructions()[i].names_function();
            let callee = |i: usize| code.target(i).map(|target| (i, self.function_at(target)));
            body.range.clone().filter(local).filter_map(callee).collect()
        };
        let calls: Vec<_> = self.functions.iter().map(calls_of).collect();
        let programs = code.programs().map(|(_, start)| self.function_at(start));
        for program in programs.chain([0]).collect::<Vec<_>>() {
            self.count_frames_of(program, &calls)?;
        }
        Ok(())
    }

    /// Follows calls from a function.
    fn count_frames_of(&mut self, first: usize, calls: &[Vec<(usize, usize)>]) -> Result<(), At> {
        // The functions on the current path, and the number of their calls done.
        let mut path = vec![(first, 0)];
        while let Some(&(function, done)) = path.last() {
            if let Some(&(instruction, callee)) = calls[function].get(done) {
                if path.iter().any(|&(on_path, _)| on_path == callee) {
                    return Err((instruction, Rejection::Recursion));
                }
                if path.len() >= MAX_FRAMES {
                    return Err((instruction, Rejection::TooDeep));
                }
                let last = path.len() - 1;
                path[last].1 += 1;
                let known = self.functions[callee].frames;
                if known == 0 {
                    path.push((callee, 0));
                } else if path.len() + known > MAX_FRAMES {
                    return Err((instruction, Rejection::TooDeep));
                }
                continue;
            }
            let below = calls[function].iter().map(|&(_, callee)| self.functions[callee].frames).max();
            self.functions[function].frames = 1 + below.unwrap_or(0);
            path.pop();
        }
        Ok(())
    }

    /// Computes live registers, and where paths meet: those that leave a loop may have taken different
    /// numbers of rounds.
    fn look_back(&mut self, code: &Code) {
        for body in &self.functions {
            let mut reached = vec![false; body.range.len()];
            for &index in &body.order {
                for next in code.successors(index).into_iter().flatten() {
                    self.exits[next] |= self.loops.leaves(index, next);
                    self.merges[next] |= reached[next - body.range.start] || self.exits[next];
                    reached[next - body.range.start] = true;
                }
            }
            // Reads in a loop are known at its end after its beginning was analysed.
            let mut changed = true;
            while changed {
                changed = false;
                for &index in body.order.iter().rev() {
                    let instruction = &code.instructions()[index];
                    let following = code.successors(index).into_iter().flatten();
                    let after = following.fold(0, |after, next| after | self.live[next]);
                    let live = reads(instruction) | after & !writes(instruction);
                    changed |= live != self.live[index] && !self.loops.all.is_empty();
                    self.live[index] = live;
                }
            }
        }
    }
}

fn reads(instruction: &Instruction) -> u16 {
    match instruction {
        Instruction::CallLocal { .. } | Instruction::CallKernel { .. } => Register::ARGUMENT_BITS,
        Instruction::Call { helper } => {
            let wanted = Helper::from_number(*helper).map_or(5, |h| h.signature().arguments.len());
            Register::ARGUMENT_BITS & ((2 << wanted) - 1)
        }
        other => other.reads(),
    }
}

fn writes(instruction: &Instruction) -> u16 {
    match instruction {
        Instruction::CallLocal { .. } | Instruction::CallKernel { .. } | Instruction::Call { .. } => {
            Register::ARGUMENT_BITS | Register::R0.bit()
        }
        other => other.writes().map_or(0, Register::bit),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    OnPath,
    Done,
}

/// The instructions of a function, by a depth-first walk, in an order in which predecessors come first except
/// for backward edges; and these edges.
fn order(code: &Code, range: &Range<usize>) -> Result<(Vec<usize>, Ways), At> {
    let mut marks = vec![Mark::New; range.len()];
    marks[0] = Mark::OnPath;
    // The path: instructions, and the number of their successors done.
    let mut path = vec![(range.start, 0)];
    let (mut done, mut back) = (Vec::with_capacity(range.len()), Vec::new());
    while let Some((index, looked)) = path.pop() {
        let Some(&next) = code.successors(index).get(looked) else {
            marks[index - range.start] = Mark::Done;
            done.push(index);
            continue;
        };
        path.push((index, looked + 1));
        let Some(next) = next else { continue };
        if !range.contains(&next) {
            let leaves = Rejection::Leaves { to: code.slot(next) };
            return Err((index, if looked == 0 { Rejection::RunsOff } else { leaves }));
        }
        let mark = &mut marks[next - range.start];
        match *mark {
            Mark::New => {
                *mark = Mark::OnPath;
                path.push((next, 0));
            }
            Mark::OnPath => back.push((index, next)),
            Mark::Done => {}
        }
    }
    if let Some(unseen) = marks.iter().position(|&mark| mark == Mark::New) {
        return Err((range.start + unseen, Rejection::Unreachable));
    }
    done.reverse();
    Ok((done, back))
}
