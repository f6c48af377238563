//! Clusters: what can't be separated.

use crate::graph::{Graph, Join};
use longwire_units::DisjointSets;
use std::collections::{HashMap, VecDeque};

/// Vertices that must be on one machine, by cluster.
pub(crate) struct Clusters {
    /// By number of the vertex.
    pub(crate) of_vertex: Vec<Option<usize>>,
    /// How many there are.
    pub(crate) count: usize,
}

impl Clusters {
    /// The clusters of the graph, numbered in the order of their first vertices.
    pub(crate) fn of(graph: &Graph<'_>) -> Self {
        let mut sets = DisjointSets::new(graph.size());
        for Join { vertices: [one, other], .. } in &graph.joins {
            sets.union(*one, *other);
        }
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut of_vertex = vec![None; graph.size()];
        for (vertex, ..) in graph.vertices() {
            let next = numbers.len();
            of_vertex[vertex] = Some(*numbers.entry(sets.find(vertex)).or_insert(next));
        }
        Self { of_vertex, count: numbers.len() }
    }
}

/// The joins that hold two vertices of a cluster together: the fewest.
pub(crate) fn chain<'g>(graph: &'g Graph<'_>, from: usize, to: usize) -> Vec<&'g Join> {
    let mut at: HashMap<usize, Vec<&Join>> = HashMap::new();
    for join in &graph.joins {
        join.vertices.iter().for_each(|vertex| at.entry(*vertex).or_default().push(join));
    }
    let mut before: HashMap<usize, (usize, &Join)> = HashMap::new();
    let mut waiting = VecDeque::from([from]);
    while let Some(vertex) = waiting.pop_front() {
        for join in at.get(&vertex).into_iter().flatten() {
            let next = join.vertices[usize::from(join.vertices[0] == vertex)];
            if next != from && !before.contains_key(&next) {
                before.insert(next, (vertex, join));
                waiting.push_back(next);
            }
        }
    }
    let mut joins = Vec::new();
    let mut vertex = to;
    while let Some((previous, join)) = before.get(&vertex) {
        joins.push(*join);
        vertex = *previous;
    }
    joins.reverse();
    joins
}
