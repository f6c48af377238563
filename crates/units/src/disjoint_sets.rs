//! Union-find.

/// Disjoint sets of the numbers below a count. A set is named by its lowest member.
pub struct DisjointSets(Vec<usize>);

impl DisjointSets {
    /// Each of `count` numbers in a set of its own.
    pub fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// The lowest member of the set of `member`. Halves the path there, so that later searches are shorter.
    pub fn find(&mut self, mut member: usize) -> usize {
        while self.0[member] != member {
            self.0[member] = self.0[self.0[member]];
            member = self.0[member];
        }
        member
    }

    /// Unites the sets of `one` and `other`. Returns whether they were two.
    pub fn union(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other)] = one.min(other);
        one != other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_united_and_named_by_their_lowest_member() {
        let mut sets = DisjointSets::new(6);
        assert!(sets.union(5, 3) && sets.union(4, 1) && sets.union(3, 4));
        assert!(!sets.union(1, 5) && !sets.union(2, 2));
        let names: Vec<usize> = (0..6).map(|member| sets.find(member)).collect();
        assert_eq!(names, [0, 1, 2, 1, 1, 1]);
    }
}
