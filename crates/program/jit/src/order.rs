//! The functions of a program, and for each an order of instructions in which predecessors come first, except
//! for backward jumps of loops.

use crate::CompileError;
use longwire_program::memory::MAX_FRAMES;
use longwire_program::{Code, Helper, Instruction};
use std::collections::{BTreeMap, BTreeSet};

/// A function of a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Body {
    /// Its first instruction.
    pub entry: usize,
    /// Its reachable instructions. The index after the program's last instruction means running off its end.
    pub order: Vec<usize>,
    /// Whether functions of the program, or helpers, call it; not needed for the program itself and targets
    /// of tail calls.
    pub is_called: bool,
    /// Whether it is the target of tail calls.
    pub goes_on: bool,
    /// Backward jumps: target and source. There is one in every cycle.
    pub back: BTreeSet<(usize, usize)>,
}

impl Body {
    /// Whether this instruction is the target of a backward jump.
    pub fn is_head(&self, index: usize) -> bool {
        self.back.range((index, 0)..=(index, usize::MAX)).next().is_some()
    }

    /// All targets of backward jumps.
    pub fn heads(&self) -> BTreeSet<usize> {
        self.back.iter().map(|&(head, _)| head).collect()
    }
}

/// Most instructions of all functions together: each is compiled once for every function that reaches it, and
/// a tail call has a comparison for each program.
const MAX_INSTRUCTIONS: usize = 2 * Code::MAX_SLOTS;

/// The program itself, then the functions that it calls, and the targets of tail calls with theirs.
pub fn bodies(code: &Code) -> Result<Vec<Body>, CompileError> {
    let mut marks = vec![0; code.len() + 1];
    let (mut bodies, mut places) = (Vec::new(), BTreeMap::new());
    let programs: BTreeSet<usize> = code.programs().map(|(_, start)| start).collect();
    let mut wanted: Vec<usize> = programs.iter().rev().copied().chain([0]).collect();
    let (mut called, mut total, comparisons) = (BTreeSet::new(), 0, code.programs().count());
    while let Some(entry) = wanted.pop() {
        if places.contains_key(&entry) {
            continue;
        }
        let (order, back) = order(code, &mut marks, bodies.len() + 1, entry);
        total += order.len() + comparisons * order.iter().filter(|&&index| is_tail_call(code, index)).count();
        if total > MAX_INSTRUCTIONS {
            return Err(CompileError::TooLarge(MAX_INSTRUCTIONS));
        }
        called.extend(callees(code, &order));
        wanted.extend(callees(code, &order));
        places.insert(entry, bodies.len());
        let goes_on = programs.contains(&entry);
        bodies.push(Body { entry, order, back, is_called: false, goes_on });
    }
    bodies.iter_mut().for_each(|body| body.is_called = called.contains(&body.entry));
    let mut heights = vec![0; bodies.len()];
    for first in programs.iter().chain(&[0]) {
        measure(code, &bodies, &places, &mut heights, (places[first], 1))?;
    }
    Ok(bodies)
}

fn is_tail_call(code: &Code, index: usize) -> bool {
    let tail_call = Instruction::Call { helper: Helper::TailCall.number() };
    code.instructions().get(index) == Some(&tail_call)
}

fn callees<'a>(code: &'a Code, order: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
    let called = |&&i: &&usize| code.instructions().get(i).is_some_and(Instruction::names_function);
    order.iter().filter(called).filter_map(|&i| code.target(i))
}

/// Computes the frames that a function needs; `depth` of them are in use when it runs, including its own. A
/// recursive function exceeds the limit, so this terminates.
fn measure(
    code: &Code,
    bodies: &[Body],
    places: &BTreeMap<usize, usize>,
    heights: &mut [usize],
    (body, depth): (usize, usize),
) -> Result<(), CompileError> {
    let too_deep = CompileError::Depth { slot: code.slot(bodies[body].entry) };
    if depth > MAX_FRAMES {
        return Err(too_deep);
    }
    if heights[body] == 0 {
        let mut height = 1;
        for callee in callees(code, &bodies[body].order).filter_map(|entry| places.get(&entry)) {
            measure(code, bodies, places, heights, (*callee, depth + 1))?;
            height = height.max(1 + heights[*callee]);
        }
        heights[body] = height;
    }
    if depth - 1 + heights[body] > MAX_FRAMES { Err(too_deep) } else { Ok(()) }
}

/// The order of function `number`, counted from 1, and its backward jumps, by a depth-first walk. The mark of
/// an instruction is 2n - 1 while it is on the current path through function n, and 2n when it is done.
fn order(
    code: &Code,
    marks: &mut [usize],
    number: usize,
    entry: usize,
) -> (Vec<usize>, BTreeSet<(usize, usize)>) {
    let (on_path, done) = (2 * number - 1, 2 * number);
    let (mut order, mut path, mut back) = (Vec::new(), vec![(entry, 0)], BTreeSet::new());
    marks[entry] = on_path;
    while let Some((index, looked)) = path.pop() {
        // The jump target first.
        let Some(&next) = code.successors(index).iter().rev().nth(looked) else {
            marks[index] = done;
            order.push(index);
            continue;
        };
        path.push((index, looked + 1));
        let Some(next) = next else { continue };
        if marks[next] == on_path {
            back.insert((next, index));
        } else if marks[next] != done {
            marks[next] = on_path;
            path.push((next, 0));
        }
    }
    order.reverse();
    (order, back)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_program::assemble;

    fn orders(text: &str) -> Result<Vec<Vec<usize>>, CompileError> {
        Ok(bodies(&assemble(text).unwrap())?.into_iter().map(|body| body.order).collect())
    }

    #[test]
    fn nothing_comes_before_what_leads_to_it() {
        // 0 leads to 3 or 1; 1 to 4, which leads back to 2, which ends; 3 ends.
        let text = "if r1 > 1 goto d\n goto e\n c: exit\n d: exit\n e: goto c";
        assert_eq!(orders(text).unwrap(), [[0, 1, 4, 2, 3]]);
    }

    #[test]
    fn functions_are_found_where_they_are_called() {
        let text = "call f\n exit\n call g\n f: exit\n g: r0 = 1";
        assert_eq!(orders(text).unwrap(), [vec![0, 1], vec![3]]);
        assert_eq!(orders("call f\n exit\n f: r0 = 1").unwrap(), [vec![0, 1], vec![2, 3]]);
    }

    #[test]
    fn loops_are_found_where_they_lead_back() {
        // Into the middle, to itself, and twice to one target.
        let text = "goto b\n a: r0 = 1\n b: r1 = 1\n if r1 > 2 goto a\n c: if r1 > 3 goto c\n if r1 > 4 goto \
            b\n exit";
        let bodies = bodies(&assemble(text).unwrap()).unwrap();
        assert_eq!(bodies[0].order.len(), 7);
        assert_eq!(bodies[0].back, BTreeSet::from([(2, 1), (4, 4), (2, 5)]));
    }

    #[test]
    fn tail_calls_are_as_long_as_there_are_programs() {
        let code = assemble(&format!("{} exit", "call tail_call\n ".repeat(400))).unwrap();
        let of = |programs| bodies(&code.clone().with_programs((1..=programs).map(|number| (number, 0))));
        assert!(of(300).is_ok());
        assert!(matches!(of(400), Err(CompileError::TooLarge(_))));
    }

    #[test]
    fn deep_calls_are_refused() {
        let refused = |text: &str| orders(text).unwrap_err().to_string();
        assert!(refused("a: call a\n exit").contains("calls too deeply, or itself"));
        let chain = |calls: usize| {
            let functions: String = (0..calls).map(|i| format!("f{i}: call f{}\n exit\n", i + 1)).collect();
            orders(&format!("{functions} f{calls}: exit"))
        };
        assert_eq!(chain(7).unwrap().len(), 8);
        assert!(matches!(chain(8), Err(CompileError::Depth { .. })));
    }
}
