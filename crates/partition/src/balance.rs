//! Spreads clusters over machines: greedy growth, then passes of moves (Fiduccia and Mattheyses).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most passes, and most moves of each.
const MOST_PASSES: usize = 10;
const MOST_MOVES: usize = 200;

/// What is to be spread. Work is in picoseconds of processor time a second.
pub(crate) struct Problem {
    /// By machine: its cores.
    pub(crate) cores: Vec<u64>,
    /// By machine and cluster: work.
    pub(crate) work: Vec<Vec<u128>>,
    pub(crate) edges: Vec<Edge>,
    /// By cluster: the machine where it must be.
    pub(crate) fixed: Vec<Option<usize>>,
}

/// A cable between two clusters.
pub(crate) struct Edge {
    pub(crate) clusters: [usize; 2],
    /// By machine: the work of a tunnel's end for what the first cluster sends and receives, and the second.
    pub(crate) tunnels: Vec<[u128; 2]>,
    /// Pairs of machines, the lower first, between which it can't be cut.
    pub(crate) refused: Vec<(usize, usize)>,
}

/// The state of a search.
struct Search<'p> {
    problem: &'p Problem,
    /// By cluster: its edges.
    at: Vec<Vec<usize>>,
    machines: Vec<usize>,
    /// By machine: work.
    loads: Vec<i128>,
    violations: usize,
}

/// The machine of each cluster. An edge is cut between machines that refuse it if no better place was found.
pub(crate) fn balance(problem: &Problem) -> Vec<usize> {
    let mut search = Search::grown(problem);
    for _ in 0..MOST_PASSES {
        if !search.pass() {
            break;
        }
    }
    search.machines
}

impl Problem {
    fn clusters(&self) -> usize {
        self.fixed.len()
    }

    /// Work of a cluster for comparisons; a cluster without work still counts.
    fn weight(&self, machine: usize, cluster: usize) -> u128 {
        self.work[machine][cluster] + 1
    }

    fn edges_at(&self) -> Vec<Vec<usize>> {
        let mut at = vec![Vec::new(); self.clusters()];
        for (number, edge) in self.edges.iter().enumerate() {
            edge.clusters.iter().for_each(|cluster| at[*cluster].push(number));
        }
        at
    }

    /// Machines of all clusters, grown one after the other from their heaviest or fixed cluster along the
    /// busiest edges, until each has its share.
    fn grow(&self, at: &[Vec<usize>]) -> Vec<usize> {
        let total: u128 = (0..self.clusters()).map(|cluster| self.weight(0, cluster)).sum();
        let all_cores: u64 = self.cores.iter().sum();
        let mut machines: Vec<Option<usize>> = self.fixed.clone();
        let mut by_weight: Vec<usize> = (0..self.clusters()).collect();
        by_weight.sort_by_key(|&cluster| (Reverse(self.weight(0, cluster)), cluster));
        for machine in 0..self.cores.len() {
            let share = total * u128::from(self.cores[machine]) / u128::from(all_cores.max(1));
            let mut load = 0;
            let mut pull = vec![0u128; self.clusters()];
            let mut heap = BinaryHeap::new();
            let mut taken: Vec<usize> =
                (0..self.clusters()).filter(|cluster| self.fixed[*cluster] == Some(machine)).collect();
            if taken.is_empty() {
                taken.extend(by_weight.iter().copied().find(|cluster| machines[*cluster].is_none()));
            }
            while let Some(cluster) = taken.pop() {
                machines[cluster] = Some(machine);
                load += self.weight(machine, cluster);
                for &edge in &at[cluster] {
                    let Edge { clusters, tunnels, .. } = &self.edges[edge];
                    let next = clusters[usize::from(clusters[0] == cluster)];
                    if machines[next].is_none() {
                        pull[next] += tunnels[machine][0] + tunnels[machine][1] + 1;
                        heap.push((pull[next], Reverse(next)));
                    }
                }
                if !taken.is_empty() {
                    continue;
                }
                while let Some((known, Reverse(next))) = heap.pop() {
                    if machines[next].is_some() || known != pull[next] {
                        continue;
                    }
                    // The last one may exceed the share by half of itself.
                    if load + self.weight(machine, next) / 2 <= share {
                        taken.push(next);
                        break;
                    }
                }
            }
        }
        let mut loads: Vec<u128> = vec![0; self.cores.len()];
        for (cluster, machine) in machines.iter().enumerate() {
            if let Some(machine) = machine {
                loads[*machine] += self.weight(*machine, cluster);
            }
        }
        for cluster in by_weight {
            if machines[cluster].is_none() {
                let least =
                    (0..loads.len()).min_by_key(|&machine| loads[machine] / u128::from(self.cores[machine]));
                let machine = least.unwrap_or(0);
                loads[machine] += self.weight(machine, cluster);
                machines[cluster] = Some(machine);
            }
        }
        machines.into_iter().map(|machine| machine.unwrap_or(0)).collect()
    }
}

impl<'p> Search<'p> {
    fn grown(problem: &'p Problem) -> Self {
        let at = problem.edges_at();
        let machines = problem.grow(&at);
        let mut search = Self { problem, at, machines, loads: vec![0; problem.cores.len()], violations: 0 };
        for cluster in 0..problem.clusters() {
            let machine = search.machines[cluster];
            search.loads[machine] += problem.weight(machine, cluster) as i128;
        }
        for edge in 0..problem.edges.len() {
            search.count(edge, 1);
        }
        search
    }

    /// Adds the tunnel of an edge to the loads, or takes it away.
    fn count(&mut self, edge: usize, sign: i128) {
        let Edge { clusters, tunnels, refused } = &self.problem.edges[edge];
        let [one, other] = clusters.map(|cluster| self.machines[cluster]);
        if one == other {
            return;
        }
        self.loads[one] += sign * tunnels[one][0] as i128;
        self.loads[other] += sign * tunnels[other][1] as i128;
        if refused.contains(&(one.min(other), one.max(other))) {
            self.violations = self.violations.wrapping_add_signed(sign as isize);
        }
    }

    fn move_to(&mut self, cluster: usize, machine: usize) {
        let edges = std::mem::take(&mut self.at[cluster]);
        edges.iter().for_each(|edge| self.count(*edge, -1));
        let before = std::mem::replace(&mut self.machines[cluster], machine);
        self.loads[before] -= self.problem.weight(before, cluster) as i128;
        self.loads[machine] += self.problem.weight(machine, cluster) as i128;
        edges.iter().for_each(|edge| self.count(*edge, 1));
        self.at[cluster] = edges;
    }

    /// Cuts where none may be, then the sum of the squares of the loads, which is least if they are even and
    /// tunnels carry little.
    fn cost(&self) -> (usize, u128) {
        let squares = self.loads.iter().zip(&self.problem.cores).map(|(load, cores)| {
            // Nanoseconds, so that the square fits.
            let load = (load.unsigned_abs() / 1000).min(1 << 60);
            load * load / u128::from(*cores)
        });
        (self.violations, squares.fold(0, u128::saturating_add))
    }

    /// Moves each cluster at most once, the best move first even if it is for the worse, and keeps the best
    /// state on the way. Whether it is better than before.
    fn pass(&mut self) -> bool {
        let clusters = self.problem.clusters();
        let mut locked: Vec<bool> = self.problem.fixed.iter().map(Option::is_some).collect();
        let start = self.cost();
        let mut best = (start, 0);
        let mut moves: Vec<(usize, usize)> = Vec::new();
        while moves.len() < MOST_MOVES {
            let mut chosen = None;
            for cluster in (0..clusters).filter(|cluster| !locked[*cluster]) {
                let before = self.machines[cluster];
                for machine in (0..self.loads.len()).filter(|machine| *machine != before) {
                    self.move_to(cluster, machine);
                    let key = (self.cost(), cluster, machine);
                    self.move_to(cluster, before);
                    if chosen.is_none_or(|known| key < known) {
                        chosen = Some(key);
                    }
                }
            }
            let Some((cost, cluster, machine)) = chosen else { break };
            moves.push((cluster, self.machines[cluster]));
            self.move_to(cluster, machine);
            locked[cluster] = true;
            if cost < best.0 {
                best = (cost, moves.len());
            }
        }
        for (cluster, machine) in moves.drain(best.1..).rev() {
            self.move_to(cluster, machine);
        }
        best.0 < start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edge(one: usize, other: usize, tunnel: u128, machines: usize) -> Edge {
        Edge { clusters: [one, other], tunnels: vec![[tunnel, tunnel]; machines], refused: Vec::new() }
    }

    fn problem(weights: &[u128], edges: Vec<Edge>, machines: usize) -> Problem {
        let work = vec![weights.iter().map(|weight| weight * 1_000_000).collect(); machines];
        Problem { cores: vec![1; machines], work, edges, fixed: vec![None; weights.len()] }
    }

    /// Two groups of three with much traffic inside, and a thin cable between them.
    #[test]
    fn busy_cables_stay_whole() {
        let busy = [(0, 2), (2, 4), (0, 4), (1, 3), (3, 5), (1, 5)];
        let mut edges: Vec<Edge> = busy.iter().map(|&(one, other)| edge(one, other, 50_000_000, 2)).collect();
        edges.push(edge(4, 5, 1_000_000, 2));
        let found = balance(&problem(&[100; 6], edges, 2));
        assert_eq!(found[0], found[2]);
        assert_eq!(found[0], found[4]);
        assert_eq!(found[1], found[3]);
        assert_eq!(found[1], found[5]);
        assert_ne!(found[0], found[1]);
    }

    #[test]
    fn work_is_spread_by_cores_and_fixed_clusters_stay() {
        let mut problem = problem(&[100; 8], Vec::new(), 2);
        problem.cores = vec![3, 1];
        problem.fixed[0] = Some(1);
        let found = balance(&problem);
        assert_eq!(found[0], 1);
        assert_eq!(found.iter().filter(|machine| **machine == 0).count(), 6, "{found:?}");
    }

    #[test]
    fn no_cable_is_cut_where_the_network_is_too_slow() {
        let mut edges: Vec<Edge> = (0..5).map(|one| edge(one, one + 1, 0, 3)).collect();
        // The middle one can be cut between any machines, the others between the first two only.
        for edge in edges.iter_mut().enumerate().filter(|(at, _)| *at != 2).map(|(_, edge)| edge) {
            edge.refused = vec![(0, 2), (1, 2)];
        }
        let problem = problem(&[100; 6], edges, 3);
        let found = balance(&problem);
        for edge in &problem.edges {
            let [one, other] = edge.clusters.map(|cluster| found[cluster]);
            assert!(!edge.refused.contains(&(one.min(other), one.max(other))), "{found:?}");
        }
        assert_eq!(found.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{found:?}");
    }

    proptest! {
        /// Loads and violations that are kept up to date are those of the result.
        #[test]
        fn moves_are_accounted_for(
            weights in prop::collection::vec(0u128..1000, 1..12),
            pairs in prop::collection::vec((0usize..12, 0usize..12, 0u128..9_000_000), 0..20),
        ) {
            let many = weights.len();
            let pairs = pairs.into_iter().map(|(one, other, tunnel)| (one % many, other % many, tunnel));
            let mut edges: Vec<Edge> = pairs
                .filter(|(one, other, _)| one != other)
                .map(|(one, other, tunnel)| edge(one, other, tunnel, 3))
                .collect();
            edges.iter_mut().step_by(2).for_each(|edge| edge.refused = vec![(0, 1)]);
            let problem = problem(&weights, edges, 3);
            let mut search = Search::grown(&problem);
            search.pass();
            let mut fresh = Search { machines: search.machines.clone(), ..Search::grown(&problem) };
            fresh.loads = vec![0; 3];
            fresh.violations = 0;
            for cluster in 0..many {
                fresh.loads[fresh.machines[cluster]] += problem.weight(0, cluster) as i128;
            }
            (0..problem.edges.len()).for_each(|edge| fresh.count(edge, 1));
            prop_assert_eq!(&fresh.loads, &search.loads);
            prop_assert_eq!(fresh.violations, search.violations);
        }
    }
}
