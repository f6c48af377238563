//! Parser of a filter's text: rules, one per line, `ACTION if EXPRESSION`.

use super::policer::Allowance;
use longwire_expression::{Expression, ExpressionError, code_point, quoted};
use longwire_units::{Bytes, Rate, UnitError};
use std::str::FromStr;
use thiserror::Error;

/// Most rules of a filter.
pub const MAX_RULES: usize = 1024;
/// Most links that a filter can steer to.
pub const MAX_TARGETS: usize = 256;

const ACTIONS: &str = "drop, pass, band N, mark, dscp N, steer LINK or police RATE [burst SIZE]";

/// A filter's rules, in order.
///
/// Blank lines and lines that begin with `#` are skipped; a rule without `if` applies to every packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSet {
    pub(super) rules: Box<[Rule]>,
    pub(super) allowances: Box<[Allowance]>,
    /// Whether a condition reads packets' marks.
    pub(super) reads_mark: bool,
    targets: Box<[Box<str>]>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub condition: Option<Expression>,
    pub action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Drop,
    Pass,
    Band(u8),
    Mark,
    Dscp(u8),
    /// Which of the set's targets.
    Steer(u16),
    /// Which of the set's allowances.
    Police(u16),
}

/// A rule that can't be parsed. Rules and columns are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleError {
    /// There are too many rules.
    #[error("there are more than {MAX_RULES} rules; join conditions with \"or\"")]
    TooMany,
    /// Unknown action.
    #[error(
        "rule {rule}, column 1: found {found}: no such action; write {ACTIONS}, then \"if\" and a condition"
    )]
    Action {
        /// Which rule.
        rule: usize,
        /// The text in the action's place, in quotes, or `nothing`.
        found: String,
    },
    /// The action's value can't be read.
    #[error("rule {rule}, column {column}: found {found}; write {wanted}")]
    Value {
        /// Which rule.
        rule: usize,
        /// Where the value begins.
        column: usize,
        /// The text given, in quotes, or `nothing`.
        found: String,
        /// The fix.
        wanted: &'static str,
    },
    /// The rate or burst of `police` can't be read.
    #[error("rule {rule}, column {column}: {source}")]
    Unit {
        /// Which rule.
        rule: usize,
        /// Where the value begins.
        column: usize,
        /// The reason.
        source: UnitError,
    },
    /// The condition can't be read.
    #[error("rule {rule}, {source}")]
    Condition {
        /// Which rule.
        rule: usize,
        /// The reason; its column counts from the start of the rule.
        source: ExpressionError,
    },
}

impl RuleSet {
    /// The links that packets are steered to, each once, in the order in which rules first name them:
    /// [`longwire_block::Effects::steer`] is an index into this list.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = &str> {
        self.targets.iter().map(|target| &**target)
    }
}

impl FromStr for RuleSet {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut reader = Reader::default();
        let mut rules = Vec::new();
        for (index, line) in lines.enumerate() {
            if index == MAX_RULES {
                return Err(RuleError::TooMany);
            }
            reader.rule = index + 1;
            rules.push(reader.rule(line)?);
        }
        let Reader { allowances, targets, .. } = reader;
        let reads_mark =
            rules.iter().any(|rule: &Rule| rule.condition.as_ref().is_some_and(Expression::reads_mark));
        let (rules, allowances, targets) = (rules.into(), allowances.into(), targets.into());
        Ok(Self { rules, allowances, reads_mark, targets })
    }
}

/// State of the parser.
#[derive(Default)]
struct Reader {
    /// Number of the rule being read.
    rule: usize,
    allowances: Vec<Allowance>,
    targets: Vec<Box<str>>,
}

/// A part of a rule with its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub text: &'a str,
    start: usize,
    line: &'a str,
}

impl Reader {
    fn rule(&mut self, line: &str) -> Result<Rule, RuleError> {
        let whole = Piece::line(line);
        let (before, condition) = match whole.divided("if") {
            Some((before, behind)) => (before, Some(behind)),
            None => (whole, None),
        };
        let action = self.action(before)?;
        let condition = condition.map(|condition| self.condition(condition)).transpose()?;
        Ok(Rule { condition, action })
    }

    fn condition(&self, piece: Piece<'_>) -> Result<Expression, RuleError> {
        let failed = |source: ExpressionError| {
            let column = source.column + piece.column() - 1;
            RuleError::Condition { rule: self.rule, source: ExpressionError { column, ..source } }
        };
        let condition = Expression::parse(piece.text).map_err(failed)?;
        if condition.as_str().is_empty() {
            return Err(self.value(piece, "a condition such as \"udp port 53\" behind \"if\""));
        }
        Ok(condition)
    }

    fn action(&mut self, piece: Piece<'_>) -> Result<Action, RuleError> {
        let (word, rest) = piece.first_word();
        let alone = |action| match rest.text {
            "" => Ok(action),
            _ => Err(self.value(rest, "\"if\" and a condition there")),
        };
        match word {
            "drop" => alone(Action::Drop),
            "pass" => alone(Action::Pass),
            "mark" if rest.text.starts_with(|c: char| c.is_ascii_digit()) => Err(self.value(
                rest,
                "\"mark\" alone, for congestion; the number that a packet bears is set by programs",
            )),
            "mark" => alone(Action::Mark),
            "band" => match number(rest.text) {
                Some(band) => Ok(Action::Band(band)),
                None => Err(self.value(rest, "the number of a band from 0 to 255")),
            },
            "dscp" => match code_point(rest.text) {
                Some(dscp) => Ok(Action::Dscp(dscp)),
                None => Err(self.value(rest, "a code point from 0 to 63, or a name such as ef, af11, cs6")),
            },
            "steer" => self.steer(rest),
            "police" => self.police(rest),
            _ => Err(RuleError::Action { rule: self.rule, found: shown(word) }),
        }
    }

    fn steer(&mut self, name: Piece<'_>) -> Result<Action, RuleError> {
        if name.text.is_empty() {
            return Err(self.value(name, "the name of a link"));
        }
        let known = self.targets.iter().position(|target| **target == *name.text);
        let number = known.unwrap_or(self.targets.len());
        if number == MAX_TARGETS {
            return Err(self.value(name, "one of the 256 links before: that many a filter can steer to"));
        }
        if known.is_none() {
            self.targets.push(name.text.into());
        }
        Ok(Action::Steer(number as u16))
    }

    fn police(&mut self, piece: Piece<'_>) -> Result<Action, RuleError> {
        let (rate, burst) = match piece.divided("burst") {
            Some((rate, burst)) => (rate, Some(burst)),
            None => (piece, None),
        };
        let unit =
            |piece: Piece<'_>, source| RuleError::Unit { rule: self.rule, column: piece.column(), source };
        let parsed: Rate = rate.text.parse().map_err(|source| unit(rate, source))?;
        let burst = match burst {
            None => Allowance::default_burst(parsed),
            Some(piece) => {
                let burst: Bytes = piece.text.parse().map_err(|source| unit(piece, source))?;
                if !(Allowance::MIN_BURST..=Allowance::MAX_BURST).contains(&burst) {
                    return Err(self.value(piece, "a burst from 64 B to 1 GB"));
                }
                burst
            }
        };
        self.allowances.push(Allowance { rate: parsed, burst });
        Ok(Action::Police((self.allowances.len() - 1) as u16))
    }

    fn value(&self, piece: Piece<'_>, wanted: &'static str) -> RuleError {
        RuleError::Value { rule: self.rule, column: piece.column(), found: shown(piece.text), wanted }
    }
}

impl<'a> Piece<'a> {
    /// All of a line.
    pub fn line(line: &'a str) -> Self {
        Self { text: line, start: 0, line }
    }

    /// The part between two offsets, without surrounding spaces.
    pub fn part(self, from: usize, to: usize) -> Self {
        let text = &self.text[from..to];
        let start = self.start + from + (text.len() - text.trim_start().len());
        Self { text: text.trim(), start, ..self }
    }

    /// The parts before and after the first separate `word`.
    pub fn divided(self, word: &str) -> Option<(Self, Self)> {
        let mut words = self.text.split_whitespace();
        let found = words.find(|found| *found == word)?;
        // The word is a slice of the text, so its position follows from the addresses.
        let at = found.as_ptr() as usize - self.text.as_ptr() as usize;
        Some((self.part(0, at), self.part(at + word.len(), self.text.len())))
    }

    pub fn first_word(self) -> (&'a str, Self) {
        let len = self.text.find(char::is_whitespace).unwrap_or(self.text.len());
        (&self.text[..len], self.part(len, self.text.len()))
    }

    /// Its column, counted from 1 in characters.
    pub fn column(self) -> usize {
        self.line.get(..self.start).unwrap_or(self.line).chars().count() + 1
    }
}

fn number(text: &str) -> Option<u8> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// A found text for error messages.
pub(crate) fn shown(found: &str) -> String {
    if found.is_empty() { "nothing".into() } else { quoted(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> RuleSet {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn reads_every_action() {
        let set = rules(
            "drop if udp\n\n  pass\n# nothing\nband 255 if tcp\nmark\ndscp ef if ip\ndscp 63\n\
             steer b if arp\n\
             steer a\nsteer b\npolice 10 Mbit/s if udp\npolice 1 Mbit/s burst 64 KiB if tcp",
        );
        let actions: Vec<_> = set.rules.iter().map(|rule| rule.action).collect();
        use Action::{Band, Drop, Dscp, Mark, Pass, Police, Steer};
        assert_eq!(
            actions,
            [
                Drop,
                Pass,
                Band(255),
                Mark,
                Dscp(46),
                Dscp(63),
                Steer(0),
                Steer(1),
                Steer(0),
                Police(0),
                Police(1),
            ]
        );
        assert_eq!(set.targets().collect::<Vec<_>>(), ["b", "a"]);
        let allowance = |rate, burst| Allowance { rate: Rate(rate), burst: Bytes(burst) };
        assert_eq!(*set.allowances, [allowance(10_000_000, 15_180), allowance(1_000_000, 65_536)]);
        let conditions: Vec<_> =
            set.rules.iter().map(|rule| rule.condition.as_ref().map(Expression::as_str)).collect();
        assert_eq!(conditions[..4], [Some("udp"), None, Some("tcp"), None]);
    }

    #[test]
    fn errors_name_rule_and_column() {
        let table = [
            (
                "drop if udp\nreject if tcp",
                "rule 2, column 1: found \"reject\": no such action; write drop, pass",
            ),
            ("if udp", "rule 1, column 1: found nothing: no such action"),
            ("drop udp", "rule 1, column 6: found \"udp\"; write \"if\""),
            ("drop if", "rule 1, column 8: found nothing; write a condition"),
            ("band 256 if udp", "rule 1, column 6: found \"256\"; write the number of a band from 0 to 255"),
            ("band if udp", "rule 1, column 5: found nothing; write the number"),
            ("dscp 64", "rule 1, column 6: found \"64\"; write a code point"),
            ("steer  if udp", "write the name of a link"),
            (
                "pass\n  drop   if tcp prot 80",
                "rule 2, column 15: found \"prot\": no such word is known; did you mean \"port\"?",
            ),
            ("police 10 Mbitt if udp", "rule 1, column 8: "),
            ("police 1 Mbit/s burst 1 KB", "rule 1, column 23: "),
            (
                "police 1 Mbit/s burst 63 B",
                "rule 1, column 23: found \"63 B\"; write a burst from 64 B to 1 GB",
            ),
            ("police if udp", "rule 1, column 7: "),
            ("mark 5 if udp", "rule 1, column 6: found \"5\"; write \"mark\" alone, for congestion"),
            (
                "drop if mark",
                "rule 1, column 13: found the end: it is not the value that is wanted here; write a mark \
                 such as 5",
            ),
        ];
        for (text, wanted) in table {
            let error = text.parse::<RuleSet>().expect_err(text).to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert_eq!("drop\n".repeat(MAX_RULES + 1).parse::<RuleSet>(), Err(RuleError::TooMany));
        let many: String = (0..=MAX_TARGETS).map(|n| format!("steer link{n}\n")).collect();
        assert!(many.parse::<RuleSet>().unwrap_err().to_string().starts_with("rule 257, column 7: "));
    }
}
