//! Rules of pf that lead to dummynet pipes.

use super::ipfw::{Rule, Table, address, direction};
use super::lines::{Line, commands};
use super::quantity::whole;
use super::{Notes, Result};

impl Table {
    /// A pf rule, as in macOS and FreeBSD with dnctl: `dummynet in … from A to B pipe 1`, `match out … dnpipe
    /// 1`.
    pub(super) fn of_pf(&mut self, line: &Line, depth: usize, notes: &mut Notes) -> Result<()> {
        let holds_one = |word: &&String| {
            word.contains(char::is_whitespace) && (word.contains("dummynet ") || word.contains("dnpipe "))
        };
        if let Some(inner) = line.words.iter().find(holds_one).filter(|_| depth == 0) {
            for mut inner in commands(inner)? {
                inner.number = line.number;
                self.of_pf(&inner, depth + 1, notes)?;
            }
            return Ok(());
        }
        let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
        let at = |wanted: &str| words.iter().position(|word| *word == wanted);
        let pipe = at("dnpipe").or_else(|| at("dummynet").and_then(|_| at("pipe").or_else(|| at("queue"))));
        let number = pipe.and_then(|at| words.get(at + 1)).and_then(|number| whole(number));
        let (Some(pipe), Some(number)) = (pipe, number) else {
            notes.add(line.number, &line.text(), "it is neither a pipe nor a rule of ipfw");
            return Ok(());
        };
        let mut end = |word: &str| {
            let at = at(word)? + 1;
            address(line, words.get(at..=at)?, notes)
        };
        let (from, to) = (end("from"), end("to"));
        let conditions = ["proto", "port", "on", "inet", "inet6"];
        if words.iter().any(|word| conditions.contains(word)) {
            notes.add(line.number, &line.text(), "protocols, ports and interfaces are ignored here");
        }
        let queue = (words[pipe] == "queue").then_some(number);
        // The last rule that matches decides, or the first quick one.
        let number_of_rule = self.rules.len() as u64;
        let is_quick = words[..pipe].contains(&"quick");
        let place = if is_quick { number_of_rule } else { u64::MAX - number_of_rule };
        self.lead(Rule {
            line: line.number,
            text: line.text(),
            place,
            number,
            queue,
            from,
            to,
            direction: direction(&words[..pipe]),
        });
        Ok(())
    }
}
