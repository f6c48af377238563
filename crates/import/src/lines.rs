//! Splits command lines as a shell does: quotes, comments, continuation lines, redirections.

use super::{ImportError, Result};
use std::iter::Peekable;
use std::str::Chars;

/// Most commands of one text.
pub(super) const MOST_COMMANDS: usize = 100_000;
/// Most words of one command.
pub(super) const MOST_WORDS: usize = 10_000;

/// A dollar in single quotes or after a backslash, which is literal.
pub(super) const PLAIN_DOLLAR: char = '\u{e000}';
/// A dollar in double quotes, whose value is not split into words.
pub(super) const QUOTED_DOLLAR: char = '\u{e001}';

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Its first line, from 1.
    pub(super) number: usize,
    /// Its words, without quotes. The head of a function is one word, `name()`.
    pub(super) words: Vec<String>,
    /// Whether it may not be executed, because it is in an `if` or the like.
    pub(super) maybe: bool,
    /// The operator between it and the previous command.
    pub(super) joined: CommandCondition,
}

/// Dependence of a command's execution on the result of the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum CommandCondition {
    #[default]
    Not,
    /// `&&`
    And,
    /// `||`
    Or,
}

impl Line {
    /// The command as one text, for notes.
    pub(super) fn text(&self) -> String {
        self.words.join(" ")
    }
}

/// The commands of a text, without empty ones.
///
/// # Errors
/// If a quote or an expression is not closed, or the text is too long.
pub(super) fn commands(text: &str) -> Result<Vec<Line>> {
    let mut all = marked(text)?;
    for word in all.iter_mut().flat_map(|line| &mut line.words) {
        if word.contains([PLAIN_DOLLAR, QUOTED_DOLLAR]) {
            *word = word.replace([PLAIN_DOLLAR, QUOTED_DOLLAR], "$");
        }
    }
    Ok(all)
}

/// The commands of a text, with dollars marked by their quoting.
///
/// # Errors
/// If a quote or an expression is not closed, or the text is too long.
pub(super) fn marked(text: &str) -> Result<Vec<Line>> {
    read(text, true)
}

/// The commands of a text. Here-documents are not looked for in their own text.
fn read(text: &str, has_documents: bool) -> Result<Vec<Line>> {
    let mut reader = Reader {
        chars: text.chars().peekable(),
        all: Vec::new(),
        line: 1,
        started: 1,
        words: Vec::new(),
        word: None,
        redirected: false,
        parentheses: 0,
        cases: 0,
        alternatives: 0,
        joined: CommandCondition::Not,
        has_documents,
        is_document: false,
        documents: Vec::new(),
    };
    while let Some(c) = reader.next() {
        reader.take(c)?;
    }
    reader.end_command()?;
    Ok(reader.all)
}

struct Reader<'t> {
    chars: Peekable<Chars<'t>>,
    all: Vec<Line>,
    line: usize,
    started: usize,
    words: Vec<String>,
    word: Option<String>,
    /// Whether the next word is the file of a redirection.
    redirected: bool,
    /// Open parentheses and `case`s.
    parentheses: usize,
    cases: usize,
    /// Number of last commands that end with a bar: in a `case` they may be patterns.
    alternatives: usize,
    /// The operator before the next command.
    joined: CommandCondition,
    /// Whether here-documents are looked for, and whether the redirected word is the end of one.
    has_documents: bool,
    is_document: bool,
    /// The ends of the documents that begin in the next line.
    documents: Vec<String>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn take(&mut self, c: char) -> Result<()> {
        match c {
            '\\' => self.escaped(),
            '\'' | '"' => self.quoted(c)?,
            '$' | '`' => self.substituted(c, '$')?,
            '#' if self.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
            '<' | '>' => {
                // The number before it is a file descriptor.
                self.word.take_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
                self.end_word()?;
                let mut operator = String::from(c);
                operator.extend(std::iter::from_fn(|| self.chars.next_if(|c| "<>&-".contains(*c))));
                self.redirected = true;
                self.is_document = self.has_documents && ["<<", "<<-"].contains(&&*operator);
            }
            '&' if self.chars.peek() == Some(&'>') => self.end_word()?,
            '(' if self.heads_function() => {
                self.next();
                self.end_word()?;
                let name = self.words.pop().unwrap_or_default();
                self.words = vec![name + "()"];
                self.end_command()?;
            }
            '(' => {
                self.parentheses += 1;
                self.end_command()?;
            }
            ')' if self.parentheses == 0 => self.end_pattern()?,
            ')' => {
                self.parentheses -= 1;
                self.end_command()?;
            }
            '|' => {
                let before =
                    if self.words.is_empty() && self.word.is_none() { 0 } else { self.alternatives + 1 };
                self.end_command()?;
                self.alternatives = before;
                if self.chars.peek() == Some(&'|') {
                    self.joined = CommandCondition::Or;
                }
            }
            '&' if self.chars.peek() == Some(&'&') => {
                self.end_command()?;
                self.joined = CommandCondition::And;
            }
            '\n' => {
                self.end_command()?;
                for end in std::mem::take(&mut self.documents) {
                    self.document(&end)?;
                }
            }
            ';' | '&' => self.end_command()?,
            c if c.is_whitespace() => self.end_word()?,
            c => self.push(c),
        }
        Ok(())
    }

    /// Whether a parenthesis is that of `name()`, or of `function name()`.
    fn heads_function(&mut self) -> bool {
        let good = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
        let mut words: Vec<&str> = self.words.iter().chain(&self.word).map(String::as_str).collect();
        if words.first() == Some(&"function") {
            words.remove(0);
        }
        let named = matches!(words[..], [name] if name.chars().all(good));
        named && self.chars.peek() == Some(&')')
    }

    /// The end of a `case` pattern: it and the alternatives before it are not commands.
    fn end_pattern(&mut self) -> Result<()> {
        self.end_word()?;
        let begins = |words: &[String]| {
            let case = words.iter().position(|word| word == "case")?;
            Some(case + words[case..].iter().position(|word| word == "in")? + 1)
        };
        if let Some(end) = begins(&self.words) {
            self.words.truncate(end);
        } else if self.cases > 0 {
            self.words.clear();
            for _ in 0..self.alternatives {
                match self.all.last_mut().and_then(|line| Some((begins(&line.words)?, line))) {
                    Some((end, line)) => line.words.truncate(end),
                    None => {
                        self.all.pop();
                    }
                }
            }
        }
        self.end_command()
    }

    fn push(&mut self, c: char) {
        if self.word.is_none() && self.words.is_empty() {
            self.started = self.line;
        }
        self.word.get_or_insert_default().push(c);
    }

    fn escaped(&mut self) {
        let windows = self.chars.peek() == Some(&'\r') && self.chars.clone().nth(1) == Some('\n');
        if windows {
            self.next();
        }
        match self.next() {
            // The line goes on.
            Some('\n') | None => {}
            Some('$') => self.push(PLAIN_DOLLAR),
            Some(c) => self.push(c),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<()> {
        let opened = self.line;
        if self.words.is_empty() && self.word.is_none() {
            self.started = self.line;
        }
        self.word.get_or_insert_default();
        while let Some(c) = self.next() {
            match c {
                c if c == quote => return Ok(()),
                '$' | '`' if quote == '"' => self.substituted(c, QUOTED_DOLLAR)?,
                '$' => self.push(PLAIN_DOLLAR),
                '\\' if quote == '"' && self.chars.peek().is_some_and(|c| "\\\"$`\n".contains(*c)) => {
                    self.escaped();
                }
                c => self.push(c),
            }
        }
        Err(ImportError::new(opened, format!("a {quote} is not closed"), "close the quote"))
    }

    /// A dollar with its expression, or a command in backquotes.
    fn substituted(&mut self, c: char, dollar: char) -> Result<()> {
        let opened = self.line;
        let unclosed = |open: char| {
            ImportError::new(opened, format!("a {open} is not closed"), "close it, or put it in quotes")
        };
        self.push(if c == '$' { dollar } else { c });
        if c == '`' {
            while let Some(c) = self.next() {
                self.push(c);
                if c == '`' {
                    return Ok(());
                }
            }
            return Err(unclosed('`'));
        }
        let (open, close) = match self.chars.peek() {
            Some('(') => ('(', ')'),
            Some('{') => ('{', '}'),
            _ => return Ok(()),
        };
        let (mut depth, mut quote) = (0, None);
        while let Some(c) = self.next() {
            self.push(c);
            match c {
                // In a command, quoted parentheses are literal.
                '\\' if open == '(' && quote != Some('\'') => {
                    if let Some(c) = self.next() {
                        self.push(c);
                    }
                }
                '\'' | '"' if open == '(' && quote.is_none() => quote = Some(c),
                c if quote == Some(c) => quote = None,
                c if quote.is_none() => depth += i32::from(c == open) - i32::from(c == close),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(unclosed(open))
    }

    fn end_word(&mut self) -> Result<()> {
        if let Some(word) = self.word.take() {
            if std::mem::take(&mut self.redirected) {
                if std::mem::take(&mut self.is_document) {
                    self.documents.push(word);
                }
                return Ok(());
            }
            if self.words.len() == MOST_WORDS {
                let what = format!("the command has more than {MOST_WORDS} words");
                return Err(ImportError::new(self.started, what, "write several commands"));
            }
            self.words.push(word);
        }
        Ok(())
    }

    fn end_command(&mut self) -> Result<()> {
        self.end_word()?;
        self.redirected = false;
        self.alternatives = 0;
        if !self.words.is_empty() {
            self.cases += usize::from(self.words.iter().any(|word| word == "case"));
            self.cases -= usize::from(self.cases > 0 && self.words[0] == "esac");
            let words = std::mem::take(&mut self.words);
            let joined = std::mem::take(&mut self.joined);
            self.put(Line { number: self.started, words, maybe: false, joined })?;
        }
        Ok(())
    }

    fn put(&mut self, line: Line) -> Result<()> {
        let count = self.all.len() + 1;
        ImportError::if_above(count, MOST_COMMANDS, self.line, "commands", "import a part of them")?;
        self.all.push(line);
        Ok(())
    }

    /// Reads a here-document up to the line `end`. It has commands, for `tc -batch -`, or is a text, whose
    /// quotes open nothing behind it.
    fn document(&mut self, end: &str) -> Result<()> {
        let (mut ahead, mut text, mut lines) = (self.chars.clone(), String::new(), 0);
        loop {
            if ahead.peek().is_none() {
                // No document, as in ((1 << 2)).
                self.has_documents = false;
                return Ok(());
            }
            let line: String = ahead.by_ref().take_while(|c| *c != '\n').collect();
            lines += 1;
            if line.trim_start_matches('\t').trim_end_matches('\r') == end {
                break;
            }
            text += &line;
            text.push('\n');
        }
        let before = self.line - 1;
        self.chars = ahead;
        self.line += lines;
        match read(&text, false) {
            Ok(lines) => {
                lines.into_iter().try_for_each(|line| self.put(Line { number: before + line.number, ..line }))
            }
            Err(error) if error.what.ends_with("is not closed") => Ok(()),
            Err(error) => Err(ImportError { line: before + error.line, ..error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(usize, String)> {
        commands(text).unwrap().iter().map(|line| (line.number, line.words.join("|"))).collect()
    }

    #[test]
    fn splits_as_a_shell_does() {
        let text = "#!/bin/sh\n\ntc qdisc \\\n  add 'a b'\"c\"d # end\nx;y z\n\\#w";
        let expected = [(3, "tc|qdisc|add|a bcd"), (5, "x"), (5, "y|z"), (6, "#w")];
        assert_eq!(split(text), expected.map(|(line, text)| (line, text.to_owned())));
        assert_eq!(commands("a\n'b").unwrap_err().to_string(), "line 2: a ' is not closed; close the quote");
    }

    /// An open expression is an error, as in a shell: it must not swallow the commands that follow.
    #[test]
    fn expressions_are_closed() {
        for (text, wanted) in [
            ("a\nb=$(c\nd", "line 2: a ( is not closed"),
            ("a ${b\nc", "line 1: a { is not closed"),
            ("a\n\n`b\nc", "line 3: a ` is not closed"),
            ("a \"$(b\"", "line 1: a ( is not closed"),
        ] {
            let error = commands(text).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{text}: {error}");
        }
        let closed = split("a $(b '(' \")\" \\') c\nd");
        assert_eq!(closed, [(1, "a|$(b '(' \")\" \\')|c".to_owned()), (2, "d".to_owned())]);
    }

    /// A text between commands may have an apostrophe; a batch of tc is commands.
    #[test]
    fn documents_end_with_their_line() {
        let text = "cat <<-'END'\n\tDon't\n\tEND\ntc -b - <<E | cat\na $b\nc d\nE\ne \"it's\"\n\
            ((1 << 2))\nf <<G\ng";
        let expected = [
            (1, "cat"),
            (4, "tc|-b|-"),
            (4, "cat"),
            (5, "a|$b"),
            (6, "c|d"),
            (8, "e|it's"),
            (9, "1"),
            (10, "f"),
            (11, "g"),
        ];
        assert_eq!(split(text), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn operators_part_commands_and_redirections_are_left_out() {
        let table = [
            ("a && b || c | d & e", vec!["a", "b", "c", "d", "e"]),
            ("(a b) 2>/dev/null >x", vec!["a|b"]),
            ("a 2>&1 b &>/dev/null c << EOF d", vec!["a|b|c|d"]),
            ("a\\\r\nb \\\n c\r\nd", vec!["ab|c", "d"]),
            ("f() { a; }", vec!["f()", "{|a", "}"]),
            ("function g-1 () { a; }", vec!["g-1()", "{|a", "}"]),
            ("case $x in a|b) c;; *) d | e;; esac; f)", vec!["case|$x|in", "c", "d", "e", "esac", "f"]),
            ("x=() y (a) b", vec!["x=", "y", "a", "b"]),
            ("x=$(a; b) `c; d` $((1 + 2))", vec!["x=$(a; b)|`c; d`|$((1 + 2))"]),
            ("\"$x a\" '$x' \\$x ${y:-a b}", vec!["$x a|$x|$x|${y:-a b}"]),
        ];
        for (text, expected) in table {
            let found: Vec<String> = split(text).into_iter().map(|(_, words)| words).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
