//! The part of a shell that link set-up scripts need: variables, `for`, functions with arguments, and
//! prefixes of commands.
//!
//! The contents of an `if`, a `while`, a `case`, or an uncalled function are treated as executed once, with a
//! note. A branch that the script alone rules out does not change variables that have a value.

mod values;

use super::condition;
use super::lines::{CommandCondition, Line, MOST_COMMANDS, MOST_WORDS, PLAIN_DOLLAR, QUOTED_DOLLAR, marked};
use super::shell_branch::Branch;
use super::{ImportError, Notes, Result};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use values::is_assignment;

/// Most bytes of the words of all commands.
const MOST_BYTES: usize = 8 << 20;
/// Deepest nesting of loops.
const DEEPEST: usize = 20;
/// Words that open a block, and those that precede a command or are alone.
const OPENING: [&str; 4] = ["if", "elif", "while", "until"];
const AROUND: [&str; 11] = ["do", "then", "else", "{", "}", "!", "time", "done", "fi", "esac", ";;"];

/// Shell commands without effect on links, which need no note.
pub(super) const IDLE: [&str; 14] = [
    "true", "false", ":", "[", "[[", "test", "echo", "printf", "exit", "set", "shift", "return", "break",
    "wait",
];

/// Notes on commands in an `if` or a `case`, and in a loop of unknown length.
const ONCE: &str = "its contents are treated as executed once, whatever the condition";
const UNLISTED: &str = "what it loops over is not known here: its contents are treated as executed once";
const UNCALLED: &str = "nothing here calls it: its contents are treated as executed once";
const REPEATED: &str = "it changes the links again and again while it runs; here its commands are taken \
    once, and the last one counts: write its steps as [[at]] events with every = \"…\"";

/// Why a block is open that is executed for each item, and needs no note.
const LOOP: &str = "a loop over a list";

/// The executed commands of a script, with variables replaced. `ours` selects those that get a note if they
/// are in an `if` or the like.
///
/// # Errors
/// If a quote is not closed, or the script is too long.
pub(super) fn run(text: &str, ours: fn(&[String]) -> bool, notes: &mut Notes) -> Result<Vec<Line>> {
    let lines = marked(text)?;
    let mut shell = Shell {
        ours,
        notes,
        values: HashMap::new(),
        given: None,
        called: lines.iter().filter_map(|line| called(line).cloned()).collect(),
        functions: HashMap::new(),
        uncalled: Vec::new(),
        blocks: Vec::new(),
        done: Vec::new(),
        bytes: 0,
        steps: 0,
        ended: None,
    };
    shell.all(&lines, 0)?;
    shell.uncalled()?;
    Ok(shell.done)
}

struct Shell<'n> {
    ours: fn(&[String]) -> bool,
    notes: &'n mut Notes,
    values: HashMap<String, String>,
    /// Arguments of the current function.
    given: Option<Vec<String>>,
    /// Words in command position, the functions so far, and uncalled ones.
    called: HashSet<String>,
    functions: HashMap<String, Rc<[Line]>>,
    uncalled: Vec<(usize, String)>,
    blocks: Vec<Block>,
    done: Vec<Line>,
    bytes: usize,
    steps: usize,
    /// Result of the last command, if known: tests determined by the script itself.
    ended: Option<bool>,
}

/// An open `if`, `for`, `while`, `until` or `case`, or an uncalled function.
struct Block {
    line: usize,
    text: String,
    told: bool,
    /// The note about its commands.
    why: &'static str,
    branch: Branch,
}

impl Shell<'_> {
    fn all(&mut self, lines: &[Line], depth: usize) -> Result<()> {
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            self.steps += 1;
            if self.steps > MOST_COMMANDS || depth > DEEPEST {
                let what =
                    format!("the script executes more than {MOST_COMMANDS} commands, or nests too deeply");
                return Err(ImportError::new(line.number, what, "import a part of it"));
            }
            let open = line.words.iter().take_while(|word| AROUND.contains(&word.as_str())).count();
            match line.words.get(open..).unwrap_or_default() {
                [head, rest @ ..] if head == "function" || head.ends_with("()") => {
                    line.words[..open].iter().for_each(|word| self.around(word));
                    at += self.define(line, (head, rest), &lines[at..]);
                }
                [first, variable, within, rest @ ..] if first == "for" && within == "in" => {
                    line.words[..open].iter().for_each(|word| self.around(word));
                    let items = self.words(line.number, rest)?;
                    let length = loop_length(&lines[at..]);
                    self.repeat((line, variable.as_str()), items, &lines[at..at + length], depth)?;
                    at += length;
                }
                _ => self.command(line, depth)?,
            }
        }
        Ok(())
    }

    /// Executes the body of a `for`, with its `done`, for each item.
    fn repeat(
        &mut self,
        (line, variable): (&Line, &str),
        items: Vec<String>,
        body: &[Line],
        depth: usize,
    ) -> Result<()> {
        let (blocks, done) = (self.blocks.len(), self.done.len());
        // Looking for the end of a loop without items is work, too.
        self.steps += if items.is_empty() { body.len() } else { 0 };
        let is_known = !items.iter().any(|item| item.contains(['$', '`', '{', '*']));
        for item in items {
            self.values.insert(variable.to_owned(), item);
            self.blocks.push(Block {
                line: line.number,
                text: String::new(),
                told: true,
                why: LOOP,
                branch: Branch::new(false),
            });
            self.all(body, depth + 1)?;
            self.blocks.truncate(blocks);
        }
        if !is_known && self.done[done..].iter().any(|line| (self.ours)(&line.words)) {
            self.notes.add(line.number, &plain(&line.text()), UNLISTED);
        }
        Ok(())
    }

    /// A function: `name() {` or `function name {`, and its body. Returns how many of the following lines
    /// belong to it.
    fn define(&mut self, line: &Line, (head, rest): (&String, &[String]), behind: &[Line]) -> usize {
        let (name, rest) = match rest.split_first() {
            Some((name, rest)) if head == "function" => (name, rest),
            _ => (head, rest),
        };
        let name = name.trim_end_matches("()");
        let first = Line { words: rest.to_vec(), ..line.clone() };
        let (length, whole) = body_length(&first, behind);
        if !whole {
            self.steps += length;
            return 0;
        }
        let body: Rc<[Line]> = std::iter::once(&first).chain(&behind[..length]).cloned().collect();
        if !self.called.contains(name) && !self.functions.contains_key(name) {
            self.uncalled.push((line.number, name.to_owned()));
        }
        self.functions.insert(name.to_owned(), body);
        length
    }

    /// Executes the uncalled functions: their commands usually run at the end.
    fn uncalled(&mut self) -> Result<()> {
        self.blocks.clear();
        let mut at = 0;
        while let Some((number, name)) = self.uncalled.get(at).cloned() {
            at += 1;
            if let Some(body) = self.functions.get(&name).filter(|_| !self.called.contains(&name)).cloned() {
                self.open(number, &format!("{name}()"), UNCALLED);
                self.all(&body, 1)?;
                self.blocks.clear();
            }
        }
        Ok(())
    }

    /// Executes a function with these arguments.
    fn call(&mut self, body: &[Line], arguments: &[String], depth: usize) -> Result<()> {
        let before = self.given.replace(arguments.to_vec());
        let blocks = self.blocks.len();
        self.all(body, depth + 1)?;
        self.blocks.truncate(blocks);
        self.given = before;
        Ok(())
    }

    fn command(&mut self, line: &Line, depth: usize) -> Result<()> {
        let mut words = &line.words[..];
        let mut negated = false;
        let in_case = self.blocks.last().is_some_and(|block| block.text.starts_with("case "));
        while let Some((first, rest)) = words.split_first() {
            match first.as_str() {
                // The value and the patterns of a case are not commands.
                "case" => {
                    self.open(line.number, &line.text(), ONCE);
                    return Ok(());
                }
                "if" | "while" | "until" => {
                    let why = if first == "if" { ONCE } else { REPEATED };
                    self.open(line.number, &line.text(), why);
                }
                // Without a list: in arithmetic, or over the script's arguments.
                "for" => {
                    self.open(line.number, &line.text(), UNLISTED);
                    return Ok(());
                }
                "elif" => self.at_branch(|branch| branch.end(true)),
                "!" => negated = !negated,
                word if AROUND.contains(&word) => self.around(word),
                _ => break,
            }
            words = rest;
        }
        let Some(words) = self.executed(line, words, negated)? else { return Ok(()) };
        let words = self.assigned(words);
        if let Some(body) = words.first().and_then(|name| self.functions.get(name)).cloned() {
            self.called.insert(words[0].clone());
            return self.call(&body, &words[1..], depth);
        }
        if let (Some("shift"), Some(given)) = (words.first().map(String::as_str), &mut self.given) {
            let count = words.get(1).and_then(|count| count.parse().ok()).unwrap_or(1);
            given.drain(..given.len().min(count));
            return Ok(());
        }
        let ours = (self.ours)(&words);
        if words.is_empty() || (in_case && words.len() == 1 && !ours) {
            return Ok(());
        }
        if ours {
            for block in self.blocks.iter_mut().filter(|block| !block.told) {
                block.told = true;
                self.notes.add(block.line, &block.text, block.why);
            }
        }
        self.done.push(Line {
            number: line.number,
            words,
            maybe: self.blocks.iter().any(|block| block.why != LOOP),
            joined: line.joined,
        });
        Ok(())
    }

    /// The words of a command with variables replaced, unless it is known not to be executed: `[ -z "" ] ||
    /// …`.
    fn executed(&mut self, line: &Line, words: &[String], negated: bool) -> Result<Option<Vec<String>>> {
        let before = std::mem::take(&mut self.ended);
        match (line.joined, before) {
            (CommandCondition::And, Some(false)) | (CommandCondition::Or, Some(true)) => {
                self.ended = before;
                return Ok(None);
            }
            // A command let through by a test is assumed to succeed.
            (CommandCondition::And | CommandCondition::Or, Some(_)) => self.ended = Some(true),
            _ => {}
        }
        let words = self.words(line.number, words)?;
        let is_test = condition::is_test(&words);
        let holds = condition::holds(&words).filter(|_| is_test).map(|holds| holds != negated);
        match self.blocks.last_mut().filter(|block| block.branch.reads()) {
            Some(block) => block.branch.read(line.joined, holds),
            None if is_test => self.ended = holds,
            None => {}
        }
        Ok(Some(words))
    }

    fn open(&mut self, line: usize, text: &str, why: &'static str) {
        let branch = Branch::new(text.starts_with("if"));
        self.blocks.push(Block { line, text: plain(text), told: false, why, branch });
    }

    /// Handles a word that precedes a command, or is alone.
    fn around(&mut self, word: &str) {
        match word {
            "fi" | "done" | "esac" => {
                self.blocks.pop();
            }
            "then" => self.at_branch(Branch::begin),
            "else" => self.at_branch(|branch| branch.end(false)),
            _ => {}
        }
    }

    fn at_branch(&mut self, change: impl FnOnce(&mut Branch)) {
        if let Some(block) = self.blocks.last_mut() {
            change(&mut block.branch);
        }
    }

    /// Assigns a variable. In a branch that is ruled out it keeps an existing value; if that is unknown, a
    /// note is made.
    fn give(&mut self, name: &str, value: &str) {
        if self.values.get(name).is_some_and(|own| own != value) {
            if self.blocks.iter().any(|block| block.branch.carried() == Some(false)) {
                return;
            }
            let mut doubtful = self.blocks.iter_mut().filter(|block| block.branch.carried().is_none());
            if let Some(block) = doubtful.find(|block| block.why == ONCE && !block.told) {
                block.told = true;
                self.notes.add(block.line, &block.text, block.why);
            }
        }
        self.values.insert(name.into(), value.into());
    }

    /// Consumes leading assignments: `A=1 B=2 command`, `export A=1`, `A+=2`.
    fn assigned(&mut self, words: Vec<String>) -> Vec<String> {
        let declares = ["export", "local", "readonly", "declare"];
        let mut rest = words.into_iter().peekable();
        rest.next_if(|word| declares.contains(&word.as_str()));
        while let Some(word) = rest.next_if(|word| is_assignment(word)) {
            let Some((name, value)) = word.split_once('=') else { continue };
            match name.strip_suffix('+') {
                Some(name) => {
                    let whole = self.values.get(name).cloned().unwrap_or_default() + value;
                    self.bytes += whole.len();
                    self.give(name, &whole);
                }
                None => self.give(name, value),
            }
        }
        rest.collect()
    }

    /// Words with variables replaced; unquoted values are split into words.
    fn words(&mut self, line: usize, words: &[String]) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for word in words {
            // Assigned values are not split.
            let assigned = is_assignment(word);
            match (&self.given, word.strip_prefix(QUOTED_DOLLAR)) {
                // Each argument is a separate word.
                (Some(given), Some("@")) => {
                    self.bytes += given.iter().map(|argument| argument.len() + 1).sum::<usize>();
                    all.extend_from_slice(given);
                }
                _ => self.expand(word, assigned, &mut all),
            }
            self.bytes += word.len() + 1;
            if self.bytes > MOST_BYTES || all.len() > MOST_WORDS {
                return Err(ImportError::new(line, "the script makes too much text", "import a part of it"));
            }
        }
        Ok(all)
    }
}

/// The text of a command, as it was written.
fn plain(text: &str) -> String {
    text.replace([PLAIN_DOLLAR, QUOTED_DOLLAR], "$")
}

/// The word of a line in command position.
fn called(line: &Line) -> Option<&String> {
    line.words.iter().find(|word| !AROUND.contains(&word.as_str()) && !OPENING.contains(&word.as_str()))
}

/// Number of lines after the first in the body of a function, and whether it is in braces.
fn body_length(first: &Line, behind: &[Line]) -> (usize, bool) {
    let (mut depth, mut opened) = (0, false);
    for (at, line) in std::iter::once(first).chain(behind).enumerate() {
        let around = line.words.iter().take_while(|word| AROUND.contains(&word.as_str()));
        for word in around {
            opened |= word == "{";
            depth += i32::from(word == "{") - i32::from(word == "}");
        }
        if depth == 0 && !line.words.is_empty() {
            return (at, opened);
        }
    }
    (behind.len(), false)
}

/// Number of lines in the body of a loop, with its `done`.
fn loop_length(lines: &[Line]) -> usize {
    let mut depth = 1;
    for (at, line) in lines.iter().enumerate() {
        let mut words = line.words.iter().map(String::as_str);
        let first = words.find(|word| *word == "done" || !AROUND.contains(word)).unwrap_or_default();
        depth += i32::from(["for", "while", "until"].contains(&first)) - i32::from(first == "done");
        if depth == 0 {
            return at + 1;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(script: &str) -> (Vec<String>, Vec<String>) {
        let mut notes = Notes::default();
        let ours = |words: &[String]| words.first().is_some_and(|word| word == "tc");
        let lines = run(script, ours, &mut notes).unwrap();
        let texts = lines.iter().map(|line| format!("{} {}", line.number, line.words.join("|"))).collect();
        (texts, notes.list.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn variables() {
        let table = [
            ("A=eth0; tc $A ${A} \"$A\" '$A'", "1 tc|eth0|eth0|eth0|$A"),
            ("O=\"delay 10ms\"\ntc $O \"$O\" x$O", "2 tc|delay|10ms|delay 10ms|xdelay|10ms"),
            ("A=20 B=3\ntc ${A}ms $((A * 2))ms $(( $A / ${B} ))ms", "2 tc|20ms|40ms|6ms"),
            ("tc ${A:-eth1} ${2:-x} $1 ${B} $(date) $((A + 1))", "1 tc|eth1|x|$1|${B}|$(date)|$((A + 1))"),
            ("export A=1 B=2\nlocal C=\"$A $B\"\nC2=$C tc $C", "3 tc|1|2"),
            ("A=\ntc $A x ${A:-y} $", "2 tc|x|y|$"),
            ("A='delay 1ms'\nA+=\" loss 1%\"\ntc $A", "3 tc|delay|1ms|loss|1%"),
            ("A=a-b\ntc ${A%-*} ${X:-${Y:-5}} ${A:-${Y}} ${X:-${A:+6}}", "2 tc|${A%-*}|5|a-b|6"),
            ("tc ${R:=9} $R \"${S=8}\" $S", "1 tc|9|9|8|8"),
            ("tc $(($1 * 2)) $(( $B + 1 ))", "1 tc|$(($1 * 2))|$(( $B + 1 ))"),
        ];
        for (script, expected) in table {
            assert_eq!(ran(script), (vec![expected.to_owned()], vec![]), "{script}");
        }
    }

    #[test]
    fn loops_and_conditions() {
        let script = "if [ -z \"$X\" ]; then\n  echo x\nelse tc a; fi\n\
            for d in eth0 eth1; do\n  for r in 1 2; do tc $d $r; done\ndone\ntc z";
        let (lines, notes) = ran(script);
        let wanted = [
            "1 [|-z|$X|]",
            "2 echo|x",
            "3 tc|a",
            "5 tc|eth0|1",
            "5 tc|eth0|2",
            "5 tc|eth1|1",
            "5 tc|eth1|2",
            "7 tc|z",
        ];
        assert_eq!(lines, wanted);
        assert_eq!(
            notes,
            ["line 1: if [ -z $X ]: its contents are treated as executed once, whatever the condition"]
        );
        assert_eq!(ran("for x in 1; do tc $x").0, ["1 tc|1"]);
        let (lines, notes) = ran("while true; do\n  tc a; sleep 5; tc b; sleep 5\ndone");
        assert_eq!(lines, ["1 true", "2 tc|a", "2 sleep|5", "2 tc|b", "2 sleep|5"]);
        assert!(
            notes.len() == 1
                && notes[0].starts_with("line 1: while true: it changes the links again and again"),
            "{notes:?}"
        );
    }

    /// The `done` of a `for` closes no other block.
    #[test]
    fn loops_in_branches() {
        let script = "x=1\nif [ -n \"$1\" ]; then for i in a b; do y; done; x=2; fi\ntc $x";
        assert_eq!(ran(script).0, ["2 [|-n|$1|]", "2 y", "2 y", "3 tc|1"]);
        let script = "if x; then\n  for i in 1 2; do tc $i; done\n  tc c\nfi\nfor i in 1 2; do tc $i; done";
        let lines = run(script, |_| true, &mut Notes::default()).unwrap();
        let maybe: Vec<bool> = lines.iter().map(|line| line.maybe).collect();
        assert_eq!(maybe, [true, true, true, true, false, false]);
    }

    #[test]
    fn loops_over_what_is_not_known() {
        for (script, lines, note) in [
            ("for i in {1..3}; do tc $i; done", vec!["1 tc|{1..3}"], "line 1: for i in {1..3}: what it"),
            (
                "for ((i=0; i<3; i++)); do tc $i; done\ntc z",
                vec!["1 i", "1 i++", "1 tc|0", "2 tc|z"],
                "line 1: for: what it loops over is not known here",
            ),
        ] {
            let (found, notes) = ran(script);
            assert_eq!(found, lines, "{script}");
            assert!(notes.len() == 1 && notes[0].starts_with(note), "{notes:?}");
        }
        assert!(ran("for i in {1..3}; do x $i; done").1.is_empty());
    }

    /// Quotes of a default are removed, except single ones in double quotes; tests determined without
    /// arguments hold.
    #[test]
    fn defaults_and_tests() {
        for (script, wanted) in [
            ("tc ${BW:-'1Mbit/s'} ${D:-\"10 ms\"} ${X:-a'b'c}", vec!["tc|1Mbit/s|10|ms|abc"]),
            ("A=5\ntc ${X:-'$A'} ${X:-\"$A\"} \"${X:-'q'}\"", vec!["tc|$A|5|'q'"]),
            ("x=1\n[ ! -z $1 ] && x=$1\ntc $x", vec!["[|!|-z|$1|]", "tc|1"]),
            ("x=1\n[ -z $1 ] || x=2\ntc $x", vec!["[|-z|$1|]", "tc|1"]),
            ("[ -z \"$1\" ] && tc a || tc b", vec!["[|-z|$1|]", "tc|a"]),
            ("f() {\n [ -n \"$1\" ] && tc $1\n}\nf 7\nf", vec!["[|-n|7|]", "tc|7", "[|-n||]"]),
            ("[ -f x ] && tc a || tc b", vec!["[|-f|x|]", "tc|a", "tc|b"]),
            ("a && tc a", vec!["a", "tc|a"]),
            ("x=1\nif [ ! -z $1 ]; then x=$1; fi\ntc $x", vec!["[|!|-z|$1|]", "tc|1"]),
            ("if [ -z \"$1\" ]; then x=1; else x=2; fi\ntc $x", vec!["[|-z|$1|]", "tc|1"]),
            (
                "if [ $# -gt 1 ]; then x=1; elif [ a = a ]; then x=2; else x=3; fi\ntc $x",
                vec!["[|$#|-gt|1|]", "[|a|=|a|]", "tc|2"],
            ),
            // A ruled-out branch sets variables without a value, and its commands are used.
            ("if [ \"$1\" = up ]; then x=1; tc $x; fi", vec!["[|$1|=|up|]", "tc|1"]),
            // What can't be decided counts.
            ("x=1\nif [ -f y ]; then x=2; fi\ntc $x", vec!["[|-f|y|]", "tc|2"]),
            ("x=1\nif [ -z $1 ] && y; then x=2; fi\ntc $x", vec!["[|-z|$1|]", "y", "tc|2"]),
            (
                "x=1\nif ! [ -z $1 ]; then x=2; fi\n! [ $# -eq 0 ] && x=3\ntc $x",
                vec!["[|-z|$1|]", "[|$#|-eq|0|]", "tc|1"],
            ),
            ("[ a = a ] && [ -f y ] && tc a || tc b", vec!["[|a|=|a|]", "[|-f|y|]", "tc|a", "tc|b"]),
            ("x=1\nif y; then [ -z $1 ] || x=2; fi\ntc $x", vec!["y", "[|-z|$1|]", "tc|1"]),
        ] {
            let done = ran(script).0;
            let words: Vec<&str> = done.iter().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
            assert_eq!(words, wanted, "{script}");
        }
        // An uncertain value is noted, unless it is determined.
        assert_eq!(ran("x=1\nif [ -f y ]; then x=2; fi\ntc $x").1.len(), 1);
        assert!(ran("x=1\nif [ -n $1 ]; then x=2; fi\ntc $x").1.is_empty());
    }

    #[test]
    fn functions() {
        let table: [(&str, &[&str]); 12] = [
            ("f() { tc $1 \"$2\"; }\nf a 'b c'; f d", &["1 tc|a|b c", "1 tc|d|"]),
            (
                "f () {\n  local r=$1 d=${2:-5ms}\n  tc $r $d $#\n}\nf 1mbit\nf 2mbit 7ms",
                &["3 tc|1mbit|5ms|1", "3 tc|2mbit|7ms|2"],
            ),
            ("function f { tc -s \"$@\"; }\nf 'a b' c", &["1 tc|-s|a b|c"]),
            ("f() { tc $*; }\nf 'a b' c", &["1 tc|a|b|c"]),
            (
                "D=9\nf() { tc ${1:+plr $1} ${2:-$D}; }\nf 5; f; f \"\" 7",
                &["2 tc|plr|5|9", "2 tc|9", "2 tc|7"],
            ),
            ("f() { x=$1; shift; tc $x $1 $((2 * $2)) $((${2}0)); }\nf a b 3", &["1 tc|a|b|6|30"]),
            ("g() { tc $1; }\nf() { g $2; tc $1; }\nf a b", &["1 tc|b", "2 tc|a"]),
            (
                "f() { if true; then tc $1; fi; }\nfor x in 1 2; do f $x; done\ntc z",
                &["1 true", "1 tc|1", "1 true", "1 tc|2", "3 tc|z"],
            ),
            ("f() { tc a; }\nf() { tc b; }\nf", &["2 tc|b"]),
            ("case $1 in\n  f) f ;;\n  g|h) f x ;;\nesac\nf() { tc a; }", &["3 f|x"]),
            ("f() { tc a; }\ncase $1 in\n  f) f ;;\n  g|f) f ;;\nesac", &["1 tc|a", "1 tc|a"]),
            ("f()\n( tc a )\ntc $1 $@", &["2 tc|a", "3 tc|$1|$@"]),
        ];
        for (script, wanted) in table {
            assert_eq!(ran(script).0, wanted, "{script}");
        }
        let (lines, notes) = ran("stop() {\n  tc a\n}\ntc b");
        assert_eq!(lines, ["4 tc|b", "2 tc|a"]);
        assert_eq!(
            notes,
            ["line 1: stop(): nothing here calls it: its contents are treated as executed once"]
        );
        // Called functions may be defined later, and a variable may name one.
        let (lines, notes) = ran("f() { g x; }\ng() { tc $1; }\nh() { tc y; }\nc=h; $c");
        assert_eq!(lines, ["3 tc|y", "2 tc|x"]);
        assert_eq!(notes.len(), 1, "{notes:?}");
        let mut notes = Notes::default();
        let maybe = run("tc a; if x; then tc b; fi; tc c\nf() { tc d; }", |_| true, &mut notes).unwrap();
        assert_eq!(maybe.iter().map(|line| line.maybe).collect::<Vec<_>>(), [false, true, true, false, true]);
    }

    #[test]
    fn too_much_is_refused() {
        let mut notes = Notes::default();
        let doubled = format!("A=xxxxxxxx\n{}tc $A", "A=$A$A\n".repeat(60));
        assert!(run(&doubled, |_| false, &mut notes).unwrap_err().what.contains("too much text"));
        let loops = "for a in 1 2 3 4 5 6 7 8 9 10; do\n".repeat(6) + "x\n" + &"done\n".repeat(6);
        assert!(run(&loops, |_| false, &mut notes).unwrap_err().what.contains("executes more"));
        // Looking for the end of a body is work.
        let open = "f() {\n".repeat(2000);
        assert!(run(&open, |_| false, &mut notes).unwrap_err().what.contains("executes more"));
        let items = "1 ".repeat(200);
        let empty = format!("for a in {items}; do for b in; do\n{}done; done", "x\n".repeat(1000));
        assert!(run(&empty, |_| false, &mut notes).unwrap_err().what.contains("executes more"));
        // A sum is short, with the values in it.
        let sum = format!("A='1{}'\ntc $((A + A))", " ".repeat(1500));
        assert_eq!(ran(&sum).0, ["2 tc|$((A + A))"]);
        assert_eq!(ran(&sum.replace("A + A", "A + 1")).0, ["2 tc|2"]);
        let deep = "for a in 1; do\n".repeat(50);
        assert!(run(&deep, |_| false, &mut notes).unwrap_err().what.contains("nests"));
        assert!(run("f() { f; }\nf", |_| false, &mut notes).unwrap_err().what.contains("nests"));
    }
}
