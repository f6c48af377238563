//! Branches of `if`s that the script alone determines.

use super::lines::CommandCondition;

/// Position in an `if`, and what is known about it: a script is assumed to start without arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Branch {
    /// Whether this is a condition, before its first command.
    reads: bool,
    first: bool,
    /// Whether the condition holds, and whether a previous one did.
    test: Option<bool>,
    earlier: Option<bool>,
    /// Whether the commands are executed.
    carried: Option<bool>,
}

impl Branch {
    /// A block that begins with a condition, or with commands that may be executed.
    pub(super) fn new(reads: bool) -> Self {
        Self { reads, first: true, test: None, earlier: Some(false), carried: None }
    }

    /// Whether the commands belong to a condition.
    pub(super) fn reads(&self) -> bool {
        self.reads
    }

    /// Whether the commands are executed, if known.
    pub(super) fn carried(&self) -> Option<bool> {
        self.carried
    }

    /// Records the result of a command of the condition.
    pub(super) fn read(&mut self, joined: CommandCondition, holds: Option<bool>) {
        self.test = if self.first && joined == CommandCondition::Not { holds } else { None };
        self.first = false;
    }

    /// `then`.
    pub(super) fn begin(&mut self) {
        self.reads = false;
        self.carried = match (self.earlier, self.test) {
            (Some(true), _) | (_, Some(false)) => Some(false),
            (Some(false), Some(true)) => Some(true),
            _ => None,
        };
    }

    /// `elif`, with a condition, or `else`.
    pub(super) fn end(&mut self, reads: bool) {
        self.earlier = match (self.earlier, self.test) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        };
        self.carried = if reads { None } else { self.earlier.map(|earlier| !earlier) };
        (self.reads, self.first, self.test) = (reads, true, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `if A; then …; elif B; then …; else …; fi`, and what is known of A and B.
    #[test]
    fn one_branch_at_most() {
        let (yes, no) = (Some(true), Some(false));
        for (tests, wanted) in [
            ([yes, yes], [yes, no, no]),
            ([yes, None], [yes, no, no]),
            ([no, yes], [no, yes, no]),
            ([no, no], [no, no, yes]),
            ([no, None], [no, None, None]),
            ([None, yes], [None, None, no]),
            ([None, no], [None, no, None]),
            ([None, None], [None, None, None]),
        ] {
            let mut branch = Branch::new(true);
            let mut carried = Vec::new();
            branch.read(CommandCondition::Not, tests[0]);
            assert!(branch.reads() && branch.carried().is_none());
            branch.begin();
            carried.push(branch.carried());
            branch.end(true);
            branch.read(CommandCondition::Not, tests[1]);
            branch.begin();
            carried.push(branch.carried());
            branch.end(false);
            carried.push(branch.carried());
            assert_eq!(carried, wanted, "{tests:?}");
        }
        let mut branch = Branch::new(true);
        branch.read(CommandCondition::Not, yes);
        branch.read(CommandCondition::And, yes);
        branch.begin();
        assert_eq!(branch.carried(), None, "two conditions");
    }
}
