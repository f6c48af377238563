//! Violations of the project's rules.

use std::fmt;

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the workspace's folder.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The rule, abbreviated.
    pub rule: &'static str,
    /// The fix.
    pub fix: String,
}

impl Finding {
    pub fn new(file: &str, line: usize, rule: &'static str, fix: impl Into<String>) -> Self {
        Self { file: file.into(), line, rule, fix: fix.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.file, self.line, self.rule, self.fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_place_rule_and_fix() {
        let finding = Finding::new("a/b.rs", 7, "no clocks", "take the time as an argument");
        assert_eq!(finding.to_string(), "a/b.rs:7: no clocks; take the time as an argument");
    }
}
