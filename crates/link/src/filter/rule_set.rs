//! Parser of a filter's text: rules, one per line, `ACTION if EXPRESSION`.

use super::policer::Allowance;
use crate::piece::{LineError, Piece, shown};
use longwire_expression::{Expression, code_point};
use longwire_units::Rate;
use std::str::FromStr;

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

impl RuleSet {
    /// The links that packets are steered to, each once, in the order in which rules first name them:
    /// [`longwire_block::Effects::steer`] is an index into this list.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = &str> {
        self.targets.iter().map(|target| &**target)
    }
}

impl FromStr for RuleSet {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Self, LineError> {
        let mut reader = Reader::default();
        let mut rules: Vec<Rule> = Vec::new();
        for line in Piece::lines(text, "rule") {
            if rules.len() == MAX_RULES {
                let what = format!("there are more than {MAX_RULES} rules; join conditions with \"or\"");
                return Err(LineError::Whole(what));
            }
            let (before, condition) = line.divided("if");
            let action = reader.action(before)?;
            rules.push(Rule { action, condition: condition.map(Piece::condition).transpose()? });
        }
        let reads_mark = rules.iter().any(|rule| rule.condition.as_ref().is_some_and(Expression::reads_mark));
        let Reader { allowances, targets } = reader;
        let (rules, allowances, targets) = (rules.into(), allowances.into(), targets.into());
        Ok(Self { rules, allowances, reads_mark, targets })
    }
}

/// State of the parser.
#[derive(Default)]
struct Reader {
    allowances: Vec<Allowance>,
    targets: Vec<Box<str>>,
}

impl Reader {
    fn action(&mut self, piece: Piece<'_>) -> Result<Action, LineError> {
        let (word, rest) = piece.first_word();
        let alone = |action| match rest.text {
            "" => Ok(action),
            _ => Err(rest.found("write \"if\" and a condition there")),
        };
        match word {
            "drop" => alone(Action::Drop),
            "pass" => alone(Action::Pass),
            "mark" if rest.text.starts_with(|c: char| c.is_ascii_digit()) => Err(rest.found(
                "write \"mark\" alone, for congestion; the number that a packet bears is set by programs",
            )),
            "mark" => alone(Action::Mark),
            "band" => match number(rest.text) {
                Some(band) => Ok(Action::Band(band)),
                None => Err(rest.found("write the number of a band from 0 to 255")),
            },
            "dscp" => match code_point(rest.text) {
                Some(dscp) => Ok(Action::Dscp(dscp)),
                None => Err(rest.found("write a code point from 0 to 63, or a name such as ef, af11, cs6")),
            },
            "steer" => self.steer(rest),
            "police" => self.police(rest),
            _ => Err(piece.wrong(format!(
                "found {}: no such action; write {ACTIONS}, then \"if\" and a condition",
                shown(word)
            ))),
        }
    }

    fn steer(&mut self, name: Piece<'_>) -> Result<Action, LineError> {
        if name.text.is_empty() {
            return Err(name.found("write the name of a link"));
        }
        let known = self.targets.iter().position(|target| **target == *name.text);
        let number = known.unwrap_or(self.targets.len());
        if number == MAX_TARGETS {
            return Err(name.found("write one of the 256 links before: that many a filter can steer to"));
        }
        if known.is_none() {
            self.targets.push(name.text.into());
        }
        Ok(Action::Steer(number as u16))
    }

    fn police(&mut self, piece: Piece<'_>) -> Result<Action, LineError> {
        let (rate, piece) = piece.divided("burst");
        let rate: Rate = rate.parse()?;
        let burst = piece.map_or(Ok(Allowance::default_burst(rate)), Piece::parse)?;
        if let Some(piece) = piece
            && !(Allowance::MIN_BURST..=Allowance::MAX_BURST).contains(&burst)
        {
            return Err(piece.found("write a burst from 64 B to 1 GB"));
        }
        self.allowances.push(Allowance { rate, burst });
        Ok(Action::Police((self.allowances.len() - 1) as u16))
    }
}

fn number(text: &str) -> Option<u8> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
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
        let allowance = |rate, burst| Allowance { rate: Rate(rate), burst: longwire_units::Bytes(burst) };
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
        let many = "drop\n".repeat(MAX_RULES + 1).parse::<RuleSet>().unwrap_err().to_string();
        assert_eq!(many, "there are more than 1024 rules; join conditions with \"or\"");
        let many: String = (0..=MAX_TARGETS).map(|n| format!("steer link{n}\n")).collect();
        assert!(many.parse::<RuleSet>().unwrap_err().to_string().starts_with("rule 257, column 7: "));
    }
}
