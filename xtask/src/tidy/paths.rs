//! Paths by which a file refers to items of its own crate, in `use` declarations and in code.

use super::source::{Source, line_of};

/// A path in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The module to which it is relative, from the crate's root.
    pub from: Vec<String>,
    /// Its segments after `crate`, `self` and `super`.
    pub words: Vec<String>,
    /// Whether it begins with a name that may be local, imported or another crate.
    pub is_bare: bool,
    /// As written.
    pub text: String,
    /// Its line, counted from 1.
    pub line: usize,
}

/// Names used in a file, without its tests.
#[derive(Debug, Default)]
pub struct UsedNames {
    /// Names imported by `use` declarations, with their paths.
    pub imports: Vec<(String, Path)>,
    /// Glob imports.
    pub globs: Vec<Path>,
    /// Paths in code.
    pub paths: Vec<Path>,
    /// Modules for tests only: `#[cfg(test)] mod NAME;`.
    pub tests: Vec<String>,
}

/// Reads the names used in the file of `module`.
pub fn read(module: &[String], text: &str) -> UsedNames {
    let mut code = Source::new(text.to_owned()).code;
    let mut named = UsedNames::default();
    for attribute in ["#[cfg(test)]", "#[cfg(all(test"] {
        while let Some(start) = code.find(attribute) {
            let end = item_end(&code, start);
            named.tests.extend(declared_module(&code[start..end]));
            let blank: String = code[start..end].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
            code.replace_range(start..end, &blank);
        }
    }
    let mut reader = Reader { code: &code, tokens: tokens(&code), at: 0, named, scopes: Vec::new() };
    reader.read(module);
    reader.named
}

/// The name in `mod NAME;` at the end of an item.
fn declared_module(item: &str) -> Option<String> {
    let (_, name) = item.strip_suffix(';')?.rsplit_once("mod ")?;
    Some(name.trim().to_owned())
}

/// The end of the item to which an attribute at `start` belongs.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0_i32;
    let mut is_use = false;
    let mut word = String::new();
    for (at, c) in code[start..].char_indices() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        is_use |= depth == 0 && word == "use";
        word.clear();
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' => depth -= 1,
            '}' if depth == 0 => return start + at,
            '}' => {
                depth -= 1;
                if depth == 0 && !is_use {
                    return start + at + 1;
                }
            }
            ';' if depth == 0 => return start + at + 1,
            _ => {}
        }
    }
    code.len()
}

/// A word or symbol of the code.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Token<'c> {
    text: &'c str,
    at: usize,
}

impl Token<'_> {
    fn is_word(self) -> bool {
        self.text.starts_with(|c: char| c == '_' || c.is_alphabetic())
    }
}

/// Words, `::`, and every other character by itself.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut chars = code.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut end = at + c.len_utf8();
        if c == '_' || c.is_alphanumeric() {
            while let Some((next, c)) = chars.next_if(|&(_, c)| c == '_' || c.is_alphanumeric()) {
                end = next + c.len_utf8();
            }
        } else if c == ':' && chars.next_if(|&(_, c)| c == ':').is_some() {
            end += 1;
        }
        if !c.is_whitespace() {
            tokens.push(Token { text: &code[at..end], at });
        }
    }
    tokens
}

struct Reader<'c> {
    code: &'c str,
    tokens: Vec<Token<'c>>,
    at: usize,
    named: UsedNames,
    /// The enclosing inline modules, each with the depth of braces outside it.
    scopes: Vec<(String, usize)>,
}

impl<'c> Reader<'c> {
    fn read(&mut self, module: &[String]) {
        let mut depth = 0_usize;
        while let Some(token) = self.token(0) {
            let (before, next) = (self.at.checked_sub(1).map_or("", |at| self.tokens[at].text), self.text(1));
            match token.text {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    self.scopes.pop_if(|(_, outside)| *outside == depth);
                }
                "mod" if self.text(2) == "{" => self.scopes.push((next.to_owned(), depth)),
                "use" if next != "<" => {
                    self.at += 1;
                    self.tree(&self.here(module), &mut Vec::new());
                }
                _ if token.is_word() && next == "::" && before != "::" && before != "." => {
                    let words = self.words();
                    let path = self.path(&self.here(module), &words, token.at);
                    self.named.paths.extend(path);
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// The module at the current position.
    fn here(&self, module: &[String]) -> Vec<String> {
        module.iter().chain(self.scopes.iter().map(|(name, _)| name)).cloned().collect()
    }

    /// The segments of a path.
    fn words(&mut self) -> Vec<&'c str> {
        let mut words = vec![self.text(0)];
        while self.text(1) == "::" && self.token(2).is_some_and(Token::is_word) {
            self.at += 2;
            words.push(self.text(0));
        }
        words
    }

    /// Reads a tree of a `use` declaration, up to the symbol that ends it.
    fn tree(&mut self, here: &[String], before: &mut Vec<&'c str>) {
        let length = before.len();
        let at = self.token(0).map_or(0, |token| token.at);
        loop {
            match self.text(0) {
                "::" => {}
                "{" => {
                    while !matches!(self.text(0), "}" | "") {
                        self.at += 1;
                        self.tree(here, before);
                    }
                    self.at += 1;
                    break before.truncate(length);
                }
                "," | ";" | "}" | "" => {
                    if before.len() > length {
                        self.import(here, before, at);
                    }
                    break before.truncate(length);
                }
                word => before.push(word),
            }
            self.at += 1;
        }
    }

    fn import(&mut self, here: &[String], words: &[&str], at: usize) {
        let (words, name) = match words {
            [words @ .., "as", name] => (words, *name),
            [words @ .., "*"] => return self.named.globs.extend(self.path(here, words, at)),
            words => (words, words.last().copied().unwrap_or_default()),
        };
        // `use a::{self}` is `use a`.
        let (words, name) = match words {
            [path @ .., "self"] if !path.is_empty() => {
                (path, if name == "self" { path[path.len() - 1] } else { name })
            }
            path => (path, name),
        };
        self.named.imports.extend(self.path(here, words, at).map(|path| (name.to_owned(), path)));
    }

    /// The path of these segments in the module `here`.
    fn path(&self, here: &[String], words: &[&str], at: usize) -> Option<Path> {
        let mut from = here.to_vec();
        let mut rest = words;
        match *words.first()? {
            "crate" => (from, rest) = (Vec::new(), &words[1..]),
            "self" => rest = &words[1..],
            _ => {}
        }
        while let ["super", more @ ..] = rest {
            from.pop();
            rest = more;
        }
        let (is_bare, text) = (rest.len() == words.len(), words.join("::"));
        let words: Vec<String> = rest.iter().map(|word| (*word).to_owned()).collect();
        Some(Path { from, words, is_bare, text, line: line_of(self.code, at) })
    }

    fn token(&self, ahead: usize) -> Option<Token<'c>> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn text(&self, ahead: usize) -> &'c str {
        self.token(ahead).map_or("", |token| token.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str) -> Vec<String> {
        name.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn trees_of_use_declarations_are_read() {
        let text = "use crate::{b, c::{self, d as e, f::*}};\n\
                    pub(crate) use super::{\n    g::h,\n    i,\n};\nuse j::k;\n";
        let named = read(&module("a/x"), text);
        let each = |(name, path): &(String, Path)| {
            (name.clone(), path.from.join("/"), path.words.join("/"), path.line, path.is_bare)
        };
        let import = |name: &str, from: &str, words: &str, line, is_bare| {
            (name.to_owned(), from.to_owned(), words.to_owned(), line, is_bare)
        };
        assert_eq!(
            named.imports.iter().map(each).collect::<Vec<_>>(),
            [
                import("b", "", "b", 1, false),
                import("c", "", "c", 1, false),
                import("e", "", "c/d", 1, false),
                import("h", "a", "g/h", 3, false),
                import("i", "a", "i", 4, false),
                import("k", "a/x", "j/k", 6, true),
            ]
        );
        assert_eq!(named.globs.iter().map(|glob| glob.text.as_str()).collect::<Vec<_>>(), ["crate::c::f"]);
    }

    #[test]
    fn paths_of_the_code_are_read_where_they_begin() {
        let text = "fn f<T>(x: crate::b::C) -> impl Fn() + use<T> {\n    x.iter::<u8>();\n\
                    super::super::g();\n    self::h::<T>()\n}\n";
        let named = read(&module("a/x/y"), text);
        let each = |path: &Path| (path.text.clone(), path.from.join("/"));
        let path = |text: &str, from: &str| (text.to_owned(), from.to_owned());
        assert_eq!(
            named.paths.iter().map(each).collect::<Vec<_>>(),
            [path("crate::b::C", ""), path("super::super::g", "a"), path("self::h", "a/x/y")]
        );
        assert!(named.imports.is_empty());
    }
}
