//! Lines of commands as a shell splits them: quotes, comments, lines that go on after a backslash.

use super::ImportError;

/// Most commands of one text.
const MOST_COMMANDS: usize = 100_000;
/// Most words of one command.
const MOST_WORDS: usize = 10_000;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Where it begins, from 1.
    pub(super) number: usize,
    /// Its words, without quotes.
    pub(super) words: Vec<String>,
}

impl Line {
    /// The command as one text, for notes.
    pub(super) fn text(&self) -> String {
        self.words.join(" ")
    }
}

/// The commands of a text. Those that hold nothing are left out.
///
/// # Errors
/// If a quote is not closed, or there is too much.
pub(super) fn commands(text: &str) -> Result<Vec<Line>, ImportError> {
    let mut all = Vec::new();
    let mut reader = Reader { line: 1, started: 1, words: Vec::new(), word: None };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'\n') => {
                chars.next();
                reader.line += 1;
                reader.end_word()?;
            }
            '\\' => reader.word.get_or_insert_default().extend(chars.next()),
            '\'' | '"' => reader.quoted(c, &mut chars)?,
            '#' if reader.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '\n' | ';' => {
                reader.end_command(&mut all)?;
                reader.line += usize::from(c == '\n');
            }
            c if c.is_whitespace() => reader.end_word()?,
            c => reader.word.get_or_insert_default().push(c),
        }
    }
    reader.end_command(&mut all)?;
    Ok(all)
}

struct Reader {
    line: usize,
    started: usize,
    words: Vec<String>,
    word: Option<String>,
}

impl Reader {
    fn quoted(&mut self, quote: char, chars: &mut impl Iterator<Item = char>) -> Result<(), ImportError> {
        let opened = self.line;
        let word = self.word.get_or_insert_default();
        for c in chars.by_ref() {
            if c == quote {
                return Ok(());
            }
            self.line += usize::from(c == '\n');
            word.push(c);
        }
        Err(ImportError::new(opened, format!("a {quote} is not closed"), "close the quote"))
    }

    fn end_word(&mut self) -> Result<(), ImportError> {
        if let Some(word) = self.word.take() {
            if self.words.is_empty() {
                self.started = self.line;
            }
            if self.words.len() == MOST_WORDS {
                let what = format!("the command has more than {MOST_WORDS} words");
                return Err(ImportError::new(self.started, what, "write several commands"));
            }
            self.words.push(word);
        }
        Ok(())
    }

    fn end_command(&mut self, all: &mut Vec<Line>) -> Result<(), ImportError> {
        self.end_word()?;
        if !self.words.is_empty() {
            if all.len() == MOST_COMMANDS {
                let what = format!("there are more than {MOST_COMMANDS} commands");
                return Err(ImportError::new(self.line, what, "import a part of them"));
            }
            all.push(Line { number: self.started, words: std::mem::take(&mut self.words) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_as_a_shell_does() {
        let text = "#!/bin/sh\n\ntc qdisc \\\n  add 'a b'\"c\"d # end\nx;y z\n\\#w";
        let lines: Vec<_> = commands(text).unwrap().iter().map(|l| (l.number, l.words.join("|"))).collect();
        let expected = [(3, "tc|qdisc|add|a bcd"), (5, "x"), (5, "y|z"), (6, "#w")];
        assert_eq!(lines, expected.map(|(line, text)| (line, text.to_owned())));
        assert_eq!(commands("a\n'b").unwrap_err().to_string(), "line 2: a ' is not closed; close the quote");
    }
}
