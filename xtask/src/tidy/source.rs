//! A Rust file for the rules: its text, and its code with comments and literals blanked out.

use std::ops::Range;

/// A Rust source file.
pub struct Source {
    /// Its text.
    pub text: String,
    /// Its text with comments, strings and character literals replaced by blanks; lines and columns are the
    /// same.
    pub code: String,
}

/// A function found in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its first and last line, counted from 1.
    pub lines: (usize, usize),
}

impl Source {
    /// Reads a file's text.
    pub fn new(text: String) -> Self {
        let code = blank(&text);
        Self { text, code }
    }

    /// The line, counted from 1, at which the file's tests begin, if any.
    pub fn tests_start(&self) -> Option<usize> {
        let lines: Vec<&str> = self.code.lines().map(str::trim).collect();
        let is_test = |line: &str| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
        let start = (0..lines.len()).find(|&i| {
            let mut rest =
                lines[i..].iter().flat_map(|l| l.split(']').map(str::trim)).filter(|l| !l.is_empty());
            is_test(lines[i]) && rest.find(|l| !l.starts_with('#')).is_some_and(|l| has_word(l, "mod"))
        });
        start.map(|i| i + 1)
    }

    /// All functions with a body, inner ones included.
    pub fn functions(&self) -> Vec<Function> {
        words(&self.code, "fn").filter_map(|range| self.function(range)).collect()
    }

    fn function(&self, keyword: Range<usize>) -> Option<Function> {
        let rest = self.code[keyword.end..].trim_start();
        let name: String = rest.chars().take_while(|&c| c == '$' || is_word(c)).collect();
        if name.is_empty() {
            return None;
        }
        let end = body_end(&self.code, keyword.end)?;
        Some(Function { name, lines: (line_of(&self.code, keyword.start), line_of(&self.code, end)) })
    }
}

/// Positions of the word `word` in `code`, not as part of a longer name.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let begins = word.starts_with(is_word);
    let ends = word.ends_with(is_word);
    code.match_indices(word).map(|(at, _)| at..at + word.len()).filter(move |range| {
        let joined_before = begins && code[..range.start].ends_with(is_word);
        let joined_after = ends && code[range.end..].starts_with(is_word);
        !joined_before && !joined_after
    })
}

/// Whether `code` contains the word `word`, not as part of a longer name.
pub fn has_word(code: &str, word: &str) -> bool {
    words(code, word).next().is_some()
}

/// The line of byte `at`, counted from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The end of the body that follows a function's name, or none if there is no body.
fn body_end(code: &str, from: usize) -> Option<usize> {
    let (mut round, mut curly) = (0_i32, 0_i32);
    for (at, c) in code[from..].char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            ';' if round == 0 && curly == 0 => return None,
            '{' => curly += 1,
            '}' if curly <= 1 => return (curly == 1).then_some(from + at),
            '}' => curly -= 1,
            _ => {}
        }
    }
    None
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Replaces comments and literals by blanks, byte for byte.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let joined = out.chars().next_back().is_some_and(is_word);
        let length = literal(rest, joined);
        if length == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.extend(rest[..length].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
    }
    out
}

/// The length in bytes of the comment or literal at the start of `rest`; 0 if there is none. `joined` means
/// that a name ends just before.
fn literal(rest: &str, joined: bool) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if rest.starts_with('"') {
        return quoted(rest, 1, '"');
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    if joined { 0 } else { raw_string(rest) }
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (1, 2);
    while depth > 0 {
        let open = rest[at..].find("/*");
        let Some(close) = rest[at..].find("*/") else { return rest.len() };
        match open {
            Some(open) if open < close => (depth, at) = (depth + 1, at + open + 2),
            _ => (depth, at) = (depth - 1, at + close + 2),
        }
    }
    at
}

fn quoted(rest: &str, from: usize, end: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest[from..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == end => return from + at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character literal, not a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest[1..].chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => quoted(rest, 1, '\''),
        (Some(c), Some('\'')) => c.len_utf8() + 2,
        _ => 0,
    }
}

fn raw_string(rest: &str) -> usize {
    let after = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let Some(after) = after.strip_prefix('r') else { return 0 };
    let hashes = after.len() - after.trim_start_matches('#').len();
    if !after[hashes..].starts_with('"') {
        return 0;
    }
    let body = rest.len() - after.len() + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new(text.into()).code
    }

    #[test]
    fn comments_and_literals_become_blanks() {
        let blanked = [
            ("a // b\nc", "a     \nc"),
            ("a /* x /* y */ z */ b", "a                   b"),
            (r#"f("a \" b", c)"#, r#"f(        , c)"#),
            (r###"f(r#"a " b"#, c)"###, "f(          , c)"),
            (r#"br"x" y"#, "      y"),
            ("'{' '\\'' '\\u{1f}' x", "                  x"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("\"ä\nb\" c", "   \n   c"),
            ("car\"x\"", "car   "),
            ("r#type", "r#type"),
        ];
        for (text, expected) in blanked {
            assert_eq!(code(text), expected, "{text}");
            assert_eq!(code(text).len(), text.len(), "{text}");
        }
        assert_eq!(code("\"never closed"), " ".repeat(13));
    }

    #[test]
    fn functions_have_first_and_last_lines() {
        let text = "fn a(x: [u8; 4]) -> u8 {\n  if x { \"}\" }\n}\ntrait T { fn b(&self); fn c() {} }\n\
            type F = fn(u8);\n";
        let found = Source::new(text.into()).functions();
        let expected = [("a", (1, 3)), ("c", (4, 4))];
        assert_eq!(found.len(), expected.len());
        for (function, (name, lines)) in found.iter().zip(expected) {
            assert_eq!((function.name.as_str(), function.lines), (name, lines));
        }
    }

    #[test]
    fn tests_start_at_their_module() {
        let start = |text: &str| Source::new(text.into()).tests_start();
        assert_eq!(start("fn a() {}\n#[cfg(test)]\nmod tests {}\n"), Some(2));
        assert_eq!(start("#[cfg(test)]\nuse x;\n\n#[cfg(test)]\n#[path = \"t.rs\"]\nmod tests;\n"), Some(4));
        assert_eq!(start("#[cfg(test)] mod tests {}"), Some(1));
        assert_eq!(start("fn a() {} // #[cfg(test)] mod"), None);
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("unsafe {", "unsafe"));
        assert!(!has_word("forbid(unsafe_code)", "unsafe"));
        assert!(has_word("use rand::Rng", "rand::"));
        assert!(!has_word("fastrand::u8()", "rand::"));
    }
}
