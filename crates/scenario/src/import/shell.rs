//! As much of a shell as scripts need that set up links: variables, `for`, and the words around other commands.
//!
//! What stands in an `if`, a `while`, a `case` or a function is taken as carried out once, and that is said.

use super::lines::{Line, MOST_COMMANDS, MOST_WORDS, PLAIN_DOLLAR, QUOTED_DOLLAR, marked};
use super::{ImportError, Notes, tcl_value};
use std::collections::HashMap;

/// Most bytes that the words of all commands may have.
const MOST_BYTES: usize = 8 << 20;
/// Deepest nesting of loops.
const DEEPEST: usize = 20;
/// Words that stand before a command, or alone.
const AROUND: [&str; 11] = ["do", "then", "else", "{", "}", "!", "time", "done", "fi", "esac", ";;"];

/// What is said of commands in an `if` or a `case`, and in a loop whose end is not known.
const ONCE: &str = "what stands in it is taken as carried out once, whatever the condition";
const REPEATED: &str = "it changes the links again and again while it runs; here its commands are taken once, and the last one counts: \
                        write its steps as [[at]] events with every = \"…\"";

/// The commands that a script carries out, with the values of its variables. `ours` tells those for which it is said that
/// they stand in an `if` or the like.
///
/// # Errors
/// If a quote is not closed, or the script is too long.
pub(super) fn run(
    text: &str,
    ours: fn(&[String]) -> bool,
    notes: &mut Notes,
) -> Result<Vec<Line>, ImportError> {
    let lines = marked(text)?;
    let mut shell = Shell {
        ours,
        notes,
        values: HashMap::new(),
        blocks: Vec::new(),
        done: Vec::new(),
        bytes: 0,
        steps: 0,
    };
    shell.all(&lines, 0)?;
    Ok(shell.done)
}

struct Shell<'n> {
    ours: fn(&[String]) -> bool,
    notes: &'n mut Notes,
    values: HashMap<String, String>,
    blocks: Vec<Block>,
    done: Vec<Line>,
    bytes: usize,
    steps: usize,
}

/// An `if`, `while`, `until` or `case` that is open.
struct Block {
    line: usize,
    text: String,
    told: bool,
    /// Whether it is a loop.
    repeats: bool,
}

impl Shell<'_> {
    fn all(&mut self, lines: &[Line], depth: usize) -> Result<(), ImportError> {
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            self.steps += 1;
            if self.steps > MOST_COMMANDS || depth > DEEPEST {
                let what =
                    format!("the script carries out more than {MOST_COMMANDS} commands, or nests too deeply");
                return Err(ImportError::new(line.number, what, "import a part of it"));
            }
            let open = line.words.iter().take_while(|word| AROUND.contains(&word.as_str())).count();
            match line.words.get(open..).unwrap_or_default() {
                [first, variable, within, rest @ ..] if first == "for" && within == "in" => {
                    let items = self.words(line.number, rest)?;
                    let length = loop_length(&lines[at..]);
                    let body = &lines[at..at + length];
                    for item in items {
                        self.values.insert(variable.clone(), item);
                        self.all(body, depth + 1)?;
                    }
                    at += length;
                }
                _ => self.command(line)?,
            }
        }
        Ok(())
    }

    fn command(&mut self, line: &Line) -> Result<(), ImportError> {
        let mut words = &line.words[..];
        let in_case = self.blocks.last().is_some_and(|block| block.text.starts_with("case "));
        while let Some((first, rest)) = words.split_first() {
            match first.as_str() {
                // What a case looks at, and its patterns, are no commands.
                "case" => {
                    self.open(line, false);
                    return Ok(());
                }
                "if" | "while" | "until" => self.open(line, first != "if"),
                "fi" | "done" | "esac" => {
                    self.blocks.pop();
                }
                "elif" => {}
                word if AROUND.contains(&word) => {}
                _ => break,
            }
            words = rest;
        }
        let words = self.words(line.number, words)?;
        let words = self.assigned(words);
        let ours = (self.ours)(&words);
        if words.is_empty() || (in_case && words.len() == 1 && !ours) {
            return Ok(());
        }
        if ours {
            for block in self.blocks.iter_mut().filter(|block| !block.told) {
                block.told = true;
                let why = if block.repeats { REPEATED } else { ONCE };
                self.notes.add(block.line, &block.text, why);
            }
        }
        self.done.push(Line { number: line.number, words });
        Ok(())
    }

    fn open(&mut self, line: &Line, repeats: bool) {
        let text = line.text().replace([PLAIN_DOLLAR, QUOTED_DOLLAR], "$");
        self.blocks.push(Block { line: line.number, text, told: false, repeats });
    }

    /// Takes assignments off the front: `A=1 B=2 command`, `export A=1`.
    fn assigned(&mut self, words: Vec<String>) -> Vec<String> {
        let declares = ["export", "local", "readonly", "declare"];
        let mut rest = words.into_iter().peekable();
        rest.next_if(|word| declares.contains(&word.as_str()));
        let assigns = |word: &String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
        while let Some(word) = rest.next_if(assigns) {
            if let Some((name, value)) = word.split_once('=') {
                self.values.insert(name.into(), value.into());
            }
        }
        rest.collect()
    }

    /// Words with the values of variables in them; what is not in quotes is split into words.
    fn words(&mut self, line: usize, words: &[String]) -> Result<Vec<String>, ImportError> {
        let mut all = Vec::new();
        for word in words {
            // What is assigned is not split.
            let assigned = word.split_once('=').is_some_and(|(name, _)| is_name(name));
            self.expand(word, assigned, &mut all);
            self.bytes += word.len() + 1;
            if self.bytes > MOST_BYTES || all.len() > MOST_WORDS {
                return Err(ImportError::new(line, "the script makes too much text", "import a part of it"));
            }
        }
        Ok(all)
    }

    fn expand(&mut self, word: &str, whole: bool, all: &mut Vec<String>) {
        let (mut text, mut rest, mut given) = (String::new(), word, !word.starts_with('$'));
        while let Some(at) = rest.find(['$', PLAIN_DOLLAR, QUOTED_DOLLAR]) {
            text += &rest[..at];
            let dollar = rest[at..].chars().next().unwrap_or('$');
            rest = &rest[at + dollar.len_utf8()..];
            if dollar == PLAIN_DOLLAR {
                text.push('$');
                continue;
            }
            let (value, length) = self.value(rest);
            let Some(value) = value else {
                given = true;
                text.push('$');
                text += &rest[..length];
                rest = &rest[length..];
                continue;
            };
            rest = &rest[length..];
            self.bytes += value.len();
            if self.bytes > MOST_BYTES {
                return;
            }
            if dollar == QUOTED_DOLLAR || whole {
                given = true;
                text += &value;
                continue;
            }
            let mut parts = value.split_whitespace().peekable();
            while let Some(part) = parts.next() {
                text += part;
                given = true;
                if parts.peek().is_some() {
                    all.push(std::mem::take(&mut text));
                }
            }
        }
        text += rest;
        if given || !text.is_empty() {
            all.push(text);
        }
    }

    /// What stands for the text behind a dollar, if that is known, and how much of the text it is.
    fn value(&self, text: &str) -> (Option<String>, usize) {
        let inner = |open: &str, close: &str| {
            let rest = text.strip_prefix(open)?;
            let end = rest.find(close)?;
            Some((&rest[..end], open.len() + end + close.len()))
        };
        if let Some((sum, length)) = inner("((", "))") {
            return (tcl_value::evaluate(&self.names_replaced(sum)).ok(), length);
        }
        if let Some((_, length)) = inner("(", ")") {
            return (None, length);
        }
        if let Some((name, length)) = inner("{", "}") {
            let parts =
                name.split_once(":-").or_else(|| name.split_once(":=")).or_else(|| name.split_once('-'));
            let (name, default) = parts.map_or((name, None), |(name, default)| (name, Some(default)));
            let value = self.values.get(name).filter(|value| !value.is_empty() || default.is_none());
            return (value.cloned().or(default.map(str::to_owned)), length);
        }
        let length = text.find(|c: char| !in_name(c)).unwrap_or(text.len());
        (self.values.get(&text[..length]).cloned(), length)
    }

    /// A sum in which names stand for their values, with or without a dollar.
    fn names_replaced(&self, sum: &str) -> String {
        let mut plain = String::new();
        let mut rest = sum;
        while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
            plain += rest[..at].trim_end_matches(['$', '{', PLAIN_DOLLAR, QUOTED_DOLLAR]);
            let length = rest[at..].find(|c: char| !in_name(c)).unwrap_or(rest.len() - at);
            let name = &rest[at..at + length];
            plain += self.values.get(name).map_or(name, String::as_str);
            rest = rest[at + length..].trim_start_matches('}');
        }
        plain + rest
    }
}

/// How many lines the body of a loop has, with its `done`.
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

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(in_name)
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
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
        ];
        for (script, expected) in table {
            assert_eq!(ran(script), (vec![expected.to_owned()], vec![]), "{script}");
        }
    }

    #[test]
    fn loops_and_conditions() {
        let script = "if [ -z \"$X\" ]; then\n  echo x\nelse tc a; fi\nfor d in eth0 eth1; do\n  for r in 1 2; do tc $d $r; done\ndone\ntc z";
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
            ["line 1: if [ -z $X ]: what stands in it is taken as carried out once, whatever the condition"]
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

    #[test]
    fn much_is_refused() {
        let mut notes = Notes::default();
        let doubled = format!("A=xxxxxxxx\n{}tc $A", "A=$A$A\n".repeat(60));
        assert!(run(&doubled, |_| false, &mut notes).unwrap_err().what.contains("too much text"));
        let loops = "for a in 1 2 3 4 5 6 7 8 9 10; do\n".repeat(6) + "x\n" + &"done\n".repeat(6);
        assert!(run(&loops, |_| false, &mut notes).unwrap_err().what.contains("carries out more"));
        let deep = "for a in 1; do\n".repeat(50);
        assert!(run(&deep, |_| false, &mut notes).unwrap_err().what.contains("nests"));
    }
}
