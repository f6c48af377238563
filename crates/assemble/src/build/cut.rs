//! Cuts a weighted graph into parts of about equal weight, with light edges between them.
//!
//! One half grows from a seed along heavy edges (Karypis and Kumar, "A fast and high quality multilevel
//! scheme for partitioning irregular graphs", 1998, section 3.2) and is refined by moves of single vertices
//! (Fiduccia and Mattheyses, "A linear-time heuristic for improving network partitions", 1982). Halves are
//! cut again until there are enough parts. Equal choices are decided by the vertices' numbers, and no step
//! takes longer than the edges and a logarithm, because scenarios have a million links.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most passes of moves over a half, and most seeds from which it grows.
const MOST_PASSES: usize = 8;
const MOST_SEEDS: usize = 8;
/// Edges that all trials of a cut together may look at, roughly; one is made in any case.
const MOST_EDGES: usize = 1 << 21;
/// Moves of a pass that may follow without an improvement, in addition to a part of all.
const MOST_IN_VAIN: usize = 100;
/// A part may have more than its share of the weight by this fraction of the whole.
const SLACK: u64 = 50;

/// Vertices with weights, and edges between them.
pub(super) struct Graph {
    weights: Vec<u64>,
    /// By vertex: where its edges begin; then their number.
    begins: Vec<usize>,
    edges: Vec<(u32, i64)>,
}

/// The side of a vertex that is not being cut.
const OUTSIDE: u8 = 2;

impl Graph {
    /// A graph of these vertices. Edges between the same vertices add up; loops do nothing.
    pub fn new(weights: Vec<u64>, edges: &[(u32, u32, u64)]) -> Self {
        let joins = || edges.iter().filter(|(one, other, _)| one != other);
        let mut begins = vec![0; weights.len() + 1];
        for &(one, other, _) in joins() {
            begins[one as usize] += 1;
            begins[other as usize] += 1;
        }
        let mut sum = 0;
        for begin in &mut begins {
            sum += *begin;
            *begin = sum;
        }
        // Filled from behind, each begin moves to the front of its edges.
        let mut all = vec![(0, 0); sum];
        for &(one, other, weight) in joins() {
            for (from, to) in [(one, other), (other, one)] {
                begins[from as usize] -= 1;
                all[begins[from as usize]] = (to, weight as i64);
            }
        }
        Self { weights, begins, edges: all }
    }

    fn around(&self, vertex: u32) -> &[(u32, i64)] {
        &self.edges[self.begins[vertex as usize]..self.begins[vertex as usize + 1]]
    }

    /// The part of each vertex, of `count`.
    pub fn parts(&self, count: u32) -> Vec<u32> {
        let vertices = self.weights.len() as u32;
        let mut parts = vec![0; vertices as usize];
        let mut sides = vec![OUTSIDE; vertices as usize];
        let mut left = vec![((0..vertices).collect::<Vec<u32>>(), 0, count)];
        while let Some((members, first, count)) = left.pop() {
            if count < 2 {
                members.iter().for_each(|&vertex| parts[vertex as usize] = first);
                continue;
            }
            let half = count / 2;
            Halves::cut(self, &members, (half, count), &mut sides);
            let (one, other): (Vec<u32>, _) =
                members.iter().partition(|&&vertex| sides[vertex as usize] == 0);
            members.iter().for_each(|&vertex| sides[vertex as usize] = OUTSIDE);
            left.push((one, first, half));
            left.push((other, first + half, count - half));
        }
        parts
    }
}

/// How far a cut is from what is wanted: weight beyond a side's share, then the weight of its edges.
type Cost = (u64, i64);

/// Some vertices of a graph, on two sides.
struct Halves<'g> {
    graph: &'g Graph,
    members: &'g [u32],
    /// By vertex: its side.
    sides: &'g mut Vec<u8>,
    /// By vertex: by how much its move to the other side would lighten the cut.
    gains: Vec<i64>,
    loads: [u64; 2],
    shares: [u64; 2],
    slack: u64,
    /// Weight of the edges between the sides.
    cut: i64,
}

impl<'g> Halves<'g> {
    /// Puts each of the members on a side: `half` of `count` parts on the first.
    fn cut(graph: &'g Graph, members: &'g [u32], (half, count): (u32, u32), sides: &'g mut Vec<u8>) {
        let total: u64 = members.iter().map(|&vertex| graph.weights[vertex as usize]).sum();
        let share = (u128::from(total) * u128::from(half) / u128::from(count)) as u64;
        let edges: usize = members.iter().map(|&vertex| graph.around(vertex).len()).sum();
        let gains = vec![0; graph.weights.len()];
        let (shares, slack) = ([share, total - share], total / SLACK);
        let mut halves = Self { graph, members, sides, gains, loads: [0; 2], shares, slack, cut: 0 };
        let seeds = (MOST_EDGES / (edges + members.len()).max(1)).clamp(1, MOST_SEEDS).min(members.len());
        let mut best: Option<(Cost, Vec<u8>)> = None;
        for seed in 0..seeds {
            halves.grow(seed * members.len() / seeds);
            for _ in 0..MOST_PASSES {
                if !halves.pass() {
                    break;
                }
            }
            let cost = halves.cost();
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, members.iter().map(|&vertex| halves.sides[vertex as usize]).collect()));
            }
        }
        for (&vertex, side) in members.iter().zip(best.map(|(_, found)| found).unwrap_or_default()) {
            halves.sides[vertex as usize] = side;
        }
    }

    fn weight(&self, vertex: u32) -> u64 {
        self.graph.weights[vertex as usize]
    }

    fn cost(&self) -> Cost {
        let over = |side: usize| self.loads[side].saturating_sub(self.shares[side] + self.slack);
        (over(0).max(over(1)), self.cut)
    }

    /// Moves a vertex to the other side, and calls `each` for its neighbours, whose gains have changed.
    fn flip(&mut self, vertex: u32, mut each: impl FnMut(u32, u8, i64)) {
        let (at, weight) = (vertex as usize, self.weight(vertex));
        let from = self.sides[at];
        self.loads[usize::from(from)] -= weight;
        self.loads[usize::from(1 - from)] += weight;
        self.cut -= self.gains[at];
        self.gains[at] = -self.gains[at];
        self.sides[at] = 1 - from;
        for &(next, weight) in self.graph.around(vertex) {
            let side = self.sides[next as usize];
            if side != OUTSIDE {
                self.gains[next as usize] += if side == from { 2 * weight } else { -2 * weight };
                each(next, side, self.gains[next as usize]);
            }
        }
    }

    /// Grows the first side from the member at `seed`, the closest vertex first.
    fn grow(&mut self, seed: usize) {
        self.members.iter().for_each(|&vertex| self.sides[vertex as usize] = 1);
        self.cut = 0;
        for &vertex in self.members {
            let inside = |next: &&(u32, i64)| self.sides[next.0 as usize] != OUTSIDE;
            let around: i64 = self.graph.around(vertex).iter().filter(inside).map(|(_, weight)| weight).sum();
            self.gains[vertex as usize] = -around;
        }
        let total: u64 = self.members.iter().map(|&vertex| self.weight(vertex)).sum();
        self.loads = [0, total];
        let (before, after) = self.members.split_at(seed);
        let mut others = after.iter().chain(before);
        // Of equally close ones the first that came close, so that the side becomes compact.
        let (mut closest, mut count) = (BinaryHeap::new(), 0u32);
        while self.loads[0] < self.shares[0] {
            let vertex = match closest.pop() {
                Some((gain, _, vertex)) => {
                    if self.sides[vertex as usize] != 1 || self.gains[vertex as usize] != gain {
                        continue;
                    }
                    vertex
                }
                None => match others.next() {
                    Some(&vertex) if self.sides[vertex as usize] == 1 => vertex,
                    Some(_) => continue,
                    None => return,
                },
            };
            // The last one may exceed the share by half of itself.
            if self.loads[0] + self.weight(vertex) / 2 <= self.shares[0] {
                self.flip(vertex, |next, side, gain| {
                    if side == 1 {
                        count += 1;
                        closest.push((gain, Reverse(count), next));
                    }
                });
            }
        }
    }

    /// Moves each vertex at most once, the best move first even if it is for the worse, and keeps the best
    /// state on the way. Whether it is better than before.
    fn pass(&mut self) -> bool {
        let start = self.cost();
        let (mut best, mut moves) = ((start, 0), Vec::new());
        let mut moved = vec![false; self.graph.weights.len()];
        let mut movable: [BinaryHeap<(i64, Reverse<u32>)>; 2] = [const { BinaryHeap::new() }; 2];
        for &vertex in self.members {
            let side = usize::from(self.sides[vertex as usize]);
            movable[side].push((self.gains[vertex as usize], Reverse(vertex)));
        }
        let in_vain = MOST_IN_VAIN + self.members.len() / 20;
        while moves.len() - best.1 < in_vain
            && let Some(vertex) = self.best_move(&mut movable, &moved)
        {
            moved[vertex as usize] = true;
            moves.push(vertex);
            self.flip(vertex, |next, side, gain| {
                if !moved[next as usize] {
                    movable[usize::from(side)].push((gain, Reverse(next)));
                }
            });
            if self.cost() < best.0 {
                best = (self.cost(), moves.len());
            }
        }
        for vertex in moves.drain(best.1..).rev() {
            self.flip(vertex, |_, _, _| ());
        }
        best.0 < start
    }

    /// The vertex whose move lightens the cut most, among those whose new side can take them: it may have too
    /// much by that vertex.
    fn best_move(&self, movable: &mut [BinaryHeap<(i64, Reverse<u32>)>; 2], moved: &[bool]) -> Option<u32> {
        let mut firsts = [None; 2];
        for from in 0..2 {
            while let Some(&(gain, Reverse(vertex))) = movable[from].peek() {
                let at = vertex as usize;
                let known = !moved[at] && usize::from(self.sides[at]) == from && self.gains[at] == gain;
                let (to, weight) = (1 - from, self.weight(vertex));
                if known && self.loads[to] + weight <= self.shares[to] + self.slack.max(weight) {
                    firsts[from] = Some((gain, Reverse(vertex)));
                    break;
                }
                movable[from].pop();
            }
        }
        let [one, other] = firsts;
        let from = usize::from(other > one);
        let (_, Reverse(vertex)) = firsts[from]?;
        movable[from].pop();
        Some(vertex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Weight of the edges between parts, and each part's weight.
    fn judge(weights: &[u64], edges: &[(u32, u32, u64)], parts: &[u32], count: u32) -> (u64, Vec<u64>) {
        let crossing = edges.iter().filter(|(one, other, _)| parts[*one as usize] != parts[*other as usize]);
        let mut loads = vec![0; count as usize];
        weights.iter().zip(parts).for_each(|(weight, part)| loads[*part as usize] += weight);
        (crossing.map(|edge| edge.2).sum(), loads)
    }

    /// A grid of `width` columns and `height` rows, of which the vertices are numbered in an order of their
    /// own.
    fn grid(width: u32, height: u32) -> Vec<(u32, u32, u64)> {
        let all = width * height;
        // 7 and the number of vertices have no common divisor in these tests.
        let number = |x: u32, y: u32| (y * width + x) * 7 % all;
        let right = (0..height).flat_map(|y| (1..width).map(move |x| (number(x - 1, y), number(x, y), 1)));
        let down = (1..height).flat_map(|y| (0..width).map(move |x| (number(x, y - 1), number(x, y), 1)));
        right.chain(down).collect()
    }

    #[test]
    fn a_grid_is_cut_across() {
        let edges = grid(30, 8);
        let weights = vec![1; 240];
        for (count, least) in [(2, 8), (3, 16), (4, 24)] {
            let parts = Graph::new(weights.clone(), &edges).parts(count);
            let (cut, loads) = judge(&weights, &edges, &parts, count);
            let even = 240 / u64::from(count);
            assert!(loads.iter().all(|load| load.abs_diff(even) <= even / 10), "{loads:?}");
            assert!(cut <= least + least / 2, "{count} parts: {cut}");
        }
    }

    #[test]
    fn heavy_edges_stay_whole() {
        // Pairs with much between them, in a ring.
        let edges: Vec<_> =
            (0..20).map(|at| (at, (at + 1) % 20, if at % 2 == 0 { 100 } else { 1 })).collect();
        let weights = vec![5; 20];
        let parts = Graph::new(weights.clone(), &edges).parts(2);
        assert_eq!(judge(&weights, &edges, &parts, 2), (2, vec![50, 50]));
    }

    #[test]
    fn a_heavy_vertex_has_its_part_for_itself() {
        let edges: Vec<_> = (1..=10).map(|at| (0, at, 1)).collect();
        let mut weights = vec![1; 11];
        weights[0] = 10;
        let parts = Graph::new(weights.clone(), &edges).parts(2);
        assert_eq!(judge(&weights, &edges, &parts, 2), (10, vec![10, 10]));
    }

    proptest! {
        /// The cut that is kept up to date is that of the result, and all parts exist if the weights allow.
        #[test]
        fn moves_are_accounted_for(
            weights in prop::collection::vec(1u64..50, 2..40),
            pairs in prop::collection::vec((0u32..40, 0u32..40, 0u64..100), 0..120),
        ) {
            let many = weights.len() as u32;
            let edges: Vec<_> =
                pairs.iter().map(|&(one, other, weight)| (one % many, other % many, weight)).collect();
            let graph = Graph::new(weights.clone(), &edges);
            let members: Vec<u32> = (0..many).collect();
            let mut sides = vec![OUTSIDE; weights.len()];
            let total: u64 = weights.iter().sum();
            let mut halves = Halves {
                graph: &graph,
                members: &members,
                sides: &mut sides,
                gains: vec![0; weights.len()],
                loads: [0; 2],
                shares: [total / 2, total - total / 2],
                slack: total / SLACK,
                cut: 0,
            };
            halves.grow(0);
            let grown = halves.cost();
            while halves.pass() {}
            prop_assert!(halves.cost() <= grown);
            let (cost, loads, cut) = (halves.cost(), halves.loads, halves.cut);
            let parts: Vec<u32> = sides.iter().map(|side| u32::from(*side)).collect();
            let (fresh, fresh_loads) = judge(&weights, &edges, &parts, 2);
            prop_assert_eq!((cut as u64, loads.to_vec()), (fresh, fresh_loads));
            // Not further from even than the heaviest vertex.
            prop_assert!(cost.0 <= weights.iter().copied().max().unwrap_or(0), "{:?}", loads);
        }
    }
}
