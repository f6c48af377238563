//! The part of Tcl that ns scripts need: words, quotes, braces, variables and arrays, nested commands, `set`,
//! `incr`, `expr`, `for`, `foreach`, `while`, `if`, lists, procedures.
//!
//! All other commands are passed to [`Host::call`]. The work of a script is limited.

mod lists;

pub(super) use lists::items;

use super::tcl_value;
use super::{ImportError, Result};
use lists::listed;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Most commands that a script may execute.
const MOST_COMMANDS: usize = 200_000;
/// Most bytes of all variables' values, and of a command's words.
const MOST_BYTES: usize = 8 << 20;
/// Deepest nesting of commands.
const DEEPEST: usize = 40;

/// Implementation of commands outside Tcl.
pub(super) trait Host {
    /// Executes a command and returns its result.
    fn call(&mut self, line: usize, words: &[String]) -> Result<String>;
    /// Called when a variable was assigned.
    fn named(&mut self, value: &str, variable: &str);
    /// An expression draws random numbers.
    fn drew(&mut self, line: usize, text: &str);

    /// Called when a procedure with these words failed before its end.
    fn broke_off(&mut self, line: usize, words: &[String], error: &ImportError);
}

/// An interpreter of a script.
pub(super) struct Tcl<'h, H> {
    pub(super) host: &'h mut H,
    variables: HashMap<String, String>,
    procedures: HashMap<String, Rc<Procedure>>,
    /// Variables of the active procedures, the innermost last.
    scopes: Vec<Scope>,
    /// The return value of the procedure, once set.
    returned: Option<String>,
    commands: usize,
    bytes: usize,
    depth: usize,
}

/// A procedure: its parameters with their defaults, and its body.
struct Procedure {
    parameters: Vec<(String, Option<String>)>,
    body: String,
    line: usize,
}

/// The variables of a procedure: local ones, and names of global ones.
#[derive(Default)]
struct Scope {
    own: HashMap<String, String>,
    global: HashSet<String>,
}

/// Where a text is read.
struct Cursor<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        self.line += usize::from(c == '\n');
        Some(c)
    }
}

impl<'h, H: Host> Tcl<'h, H> {
    pub(super) fn new(host: &'h mut H) -> Self {
        // As if the script were called without arguments.
        let given = [("argc", "0"), ("argv", ""), ("argv0", "ns")];
        let variables = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let (procedures, scopes) = (HashMap::new(), Vec::new());
        Self { host, variables, procedures, scopes, returned: None, commands: 0, bytes: 0, depth: 0 }
    }

    /// The variables that contain this name: local or global ones.
    fn among(&mut self, name: &str) -> &mut HashMap<String, String> {
        let base = name.split('(').next().unwrap_or(name);
        match self.scopes.last_mut().filter(|scope| !scope.global.contains(base) && !base.starts_with("::")) {
            Some(scope) => &mut scope.own,
            None => &mut self.variables,
        }
    }

    fn known(&mut self, name: &str) -> Option<String> {
        self.among(name).get(name.trim_start_matches("::")).cloned()
    }

    fn give(&mut self, name: &str, value: String) {
        self.among(name).insert(name.trim_start_matches("::").to_owned(), value);
    }

    /// Executes a procedure. An error ends it, with a note.
    fn call(&mut self, line: usize, procedure: &Procedure, words: &[String]) -> Result<String> {
        let mut scope = Scope::default();
        for (at, (name, default)) in procedure.parameters.iter().enumerate() {
            let value = if name == "args" && at + 1 == procedure.parameters.len() {
                let rest = words.get(at + 1..).unwrap_or_default();
                Some(rest.iter().map(|word| listed(word)).collect::<Vec<_>>().join(" "))
            } else {
                words.get(at + 1).cloned().or_else(|| default.clone())
            };
            let what = format!("{} lacks the argument \"{name}\"", words[0]);
            let missing = || ImportError::new(line, what, "give it, as its proc says");
            scope.own.insert(name.clone(), value.ok_or_else(missing)?);
        }
        let depth = self.depth;
        self.scopes.push(scope);
        let done = self.run(&procedure.body, procedure.line);
        self.scopes.pop();
        self.depth = depth;
        let returned = self.returned.take();
        match done {
            Err(error) if self.commands <= MOST_COMMANDS && self.bytes <= MOST_BYTES => {
                self.host.broke_off(line, words, &error);
                Ok(String::new())
            }
            done => done.map(|last| returned.unwrap_or(last)),
        }
    }

    /// Executes a script that begins in this line.
    ///
    /// # Errors
    /// An error in it, or an exceeded limit.
    pub(super) fn run(&mut self, text: &str, line: usize) -> Result<String> {
        let mut cursor = Cursor { text, at: 0, line };
        self.script(&mut cursor, None)
    }

    /// Executes commands up to `end`, which is consumed, or to the end of the text.
    fn script(&mut self, cursor: &mut Cursor<'_>, end: Option<char>) -> Result<String> {
        self.deepen(cursor.line)?;
        let mut result = String::new();
        loop {
            let line = cursor.line;
            let (words, ended) = self.words(cursor, end)?;
            if !words.is_empty() {
                result = self.command(line, &words)?;
            }
            if ended || (end.is_none() && self.returned.is_some()) {
                self.depth -= 1;
                return Ok(result);
            }
        }
    }

    /// Begins a nested command or index.
    fn deepen(&mut self, line: usize) -> Result<()> {
        self.depth += 1;
        let (is_flat, fix) = (self.depth <= DEEPEST, "write it in several steps");
        ImportError::unless(is_flat, line, "commands are nested too deeply", fix)
    }

    /// The words of the next command, and whether the script ends after it.
    fn words(&mut self, cursor: &mut Cursor<'_>, end: Option<char>) -> Result<(Vec<String>, bool)> {
        let mut words = Vec::new();
        loop {
            let (count, start) = (words.len(), cursor.at);
            match cursor.peek() {
                None if end.is_none() => return Ok((words, true)),
                None => return Err(ImportError::new(cursor.line, "a [ is not closed", "close it with ]")),
                Some(c) if Some(c) == end => {
                    cursor.next();
                    return Ok((words, true));
                }
                Some('\n' | ';') => {
                    cursor.next();
                    if !words.is_empty() {
                        return Ok((words, false));
                    }
                }
                Some('\\') if cursor.text[cursor.at..].starts_with("\\\n") => {
                    cursor.next();
                    cursor.next();
                }
                Some(c) if c.is_whitespace() => {
                    cursor.next();
                }
                // Tcl only has comments where a command begins; scripts also have them after one.
                Some('#') => {
                    while cursor.peek().is_some_and(|c| c != '\n') {
                        cursor.next();
                    }
                }
                Some('{') => words.push(self.braced(cursor)?),
                Some('"') => {
                    cursor.next();
                    words.push(self.word(cursor, |c| c == '"')?);
                    if cursor.next().is_none() {
                        return Err(ImportError::new(cursor.line, "a \" is not closed", "close the quote"));
                    }
                }
                Some(_) => {
                    words.push(self.word(cursor, |c| c.is_whitespace() || c == ';' || Some(c) == end)?);
                }
            }
            // Comments and spaces are work, too, where they are read again and again.
            let read = cursor.at - start;
            self.spend(cursor.line, words.get(count).map_or(read, |word: &String| word.len().max(read)))?;
        }
    }

    /// The literal text between braces.
    fn braced(&mut self, cursor: &mut Cursor<'_>) -> Result<String> {
        let line = cursor.line;
        cursor.next();
        let (start, mut open) = (cursor.at, 1);
        while let Some(c) = cursor.next() {
            match c {
                '\\' => {
                    cursor.next();
                }
                '{' => open += 1,
                '}' => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Ok(cursor.text[start..cursor.at - 1].to_owned());
            }
        }
        Err(ImportError::new(line, "a { is not closed", "close it with }"))
    }

    /// A word up to a terminating character, with variables and nested commands replaced.
    fn word(&mut self, cursor: &mut Cursor<'_>, ends: impl Fn(char) -> bool) -> Result<String> {
        let mut word = String::new();
        while let Some(c) = cursor.peek() {
            if ends(c) {
                break;
            }
            cursor.next();
            match c {
                '$' => word += &self.variable(cursor)?,
                '[' => word += &self.script(cursor, Some(']'))?,
                '\\' => match cursor.next() {
                    Some('\n') => word.push(' '),
                    Some('n') => word.push('\n'),
                    Some('t') => word.push('\t'),
                    other => word.extend(other),
                },
                c => word.push(c),
            }
            self.spend(cursor.line, 1)?;
        }
        Ok(word)
    }

    /// The value of the variable whose name follows a dollar.
    fn variable(&mut self, cursor: &mut Cursor<'_>) -> Result<String> {
        let line = cursor.line;
        if cursor.peek() == Some('{') {
            let name = self.braced(cursor)?;
            return self.value(line, &name);
        }
        let mut name = String::new();
        while let Some(c) = cursor.peek().filter(|c| c.is_ascii_alphanumeric() || "_:".contains(*c)) {
            name.push(c);
            cursor.next();
        }
        if name.is_empty() {
            return Ok("$".into());
        }
        if cursor.peek() == Some('(') {
            cursor.next();
            self.deepen(line)?;
            let index = self.word(cursor, |c| c == ')')?;
            self.depth -= 1;
            cursor.next();
            name = format!("{name}({index})");
        }
        self.value(line, &name)
    }

    fn value(&mut self, line: usize, name: &str) -> Result<String> {
        let Some(value) = self.known(name) else {
            let what = format!("there is no variable \"{name}\"");
            return Err(ImportError::new(line, what, format!("set {name} before it is used")));
        };
        self.spend(line, value.len())?;
        Ok(value)
    }

    /// Counts the work of a script.
    fn spend(&mut self, line: usize, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        let is_short = self.bytes <= MOST_BYTES;
        ImportError::unless(is_short, line, "the script makes too much text", "import a smaller one")
    }

    fn command(&mut self, line: usize, words: &[String]) -> Result<String> {
        self.commands += 1;
        if self.commands > MOST_COMMANDS {
            let what = format!("the script executes more than {MOST_COMMANDS} commands");
            return Err(ImportError::new(line, what, "make its loops shorter"));
        }
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        match &texts[..] {
            ["set", name] => self.value(line, name),
            ["set", name, value] => {
                self.give(name, (*value).into());
                self.host.named(value, name);
                Ok((*value).into())
            }
            ["incr", name, by @ ..] => {
                let by = by.first().copied().unwrap_or("1");
                let now = self.known(name).unwrap_or_else(|| "0".into());
                let sum =
                    tcl_value::evaluate(&format!("({now}) + ({by})")).map_err(|why| wrong(line, &why))?;
                self.give(name, sum.clone());
                Ok(sum)
            }
            ["expr", rest @ ..] => self.expression(line, &rest.join(" ")),
            ["for", start, test, next, body] => {
                self.run(start, line)?;
                self.repeat(line, test, body, next)
            }
            ["while", test, body] => self.repeat(line, test, body, ""),
            ["foreach", name, list, body] => {
                for item in items(list) {
                    self.give(name, item);
                    self.run(body, line)?;
                    if self.returned.is_some() {
                        break;
                    }
                }
                Ok(String::new())
            }
            ["if", rest @ ..] => self.choose(line, rest),
            ["puts" | "flush" | "exit" | "unset", ..] => Ok(String::new()),
            ["global", names @ ..] => {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.global.extend(names.iter().map(|name| (*name).to_owned()));
                }
                Ok(String::new())
            }
            ["proc", name, parameters, body] => {
                let parameter = |text: String| {
                    let parts = items(&text);
                    (parts.first().cloned().unwrap_or_default(), parts.get(1).cloned())
                };
                let parameters = items(parameters).into_iter().map(parameter).collect();
                let procedure = Procedure { parameters, body: (*body).into(), line };
                self.procedures.insert((*name).into(), Rc::new(procedure));
                Ok(String::new())
            }
            ["return", value @ ..] if !self.scopes.is_empty() => {
                let value = value.first().copied().unwrap_or_default().to_owned();
                self.returned = Some(value.clone());
                Ok(value)
            }
            ["info", "exists", name] => Ok(u8::from(self.known(name).is_some()).to_string()),
            ["eval", rest @ ..] => self.run(&rest.join(" "), line),
            _ => self.of_lists(line, words),
        }
    }

    /// Commands for lists and texts, procedures, and commands outside Tcl.
    fn of_lists(&mut self, line: usize, words: &[String]) -> Result<String> {
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        match &texts[..] {
            ["list", rest @ ..] => Ok(rest.iter().map(|word| listed(word)).collect::<Vec<_>>().join(" ")),
            ["llength", list] => Ok(items(list).len().to_string()),
            ["lindex", list, index] => {
                let items = items(list);
                let at = if *index == "end" { items.len().checked_sub(1) } else { index.parse().ok() };
                Ok(at.and_then(|at| items.get(at).cloned()).unwrap_or_default())
            }
            ["lappend", name, rest @ ..] => {
                let mut value = self.known(name).unwrap_or_default();
                for word in rest {
                    if !value.is_empty() {
                        value.push(' ');
                    }
                    value += &listed(word);
                }
                self.spend(line, value.len())?;
                self.give(name, value.clone());
                Ok(value)
            }
            ["append", name, rest @ ..] => {
                let value = self.known(name).unwrap_or_default() + &rest.concat();
                self.spend(line, value.len())?;
                self.give(name, value.clone());
                Ok(value)
            }
            [name, ..] => match self.procedures.get(*name).cloned() {
                Some(procedure) => self.call(line, &procedure, words),
                None => self.host.call(line, words),
            },
            [] => Ok(String::new()),
        }
    }

    fn repeat(&mut self, line: usize, test: &str, body: &str, next: &str) -> Result<String> {
        while self.holds(line, test)? {
            self.commands += 1;
            if self.commands > MOST_COMMANDS {
                let what = format!("the loop goes on for more than {MOST_COMMANDS} commands");
                return Err(ImportError::new(line, what, "make it shorter"));
            }
            self.run(body, line)?;
            if self.returned.is_some() {
                break;
            }
            self.run(next, line)?;
        }
        Ok(String::new())
    }

    /// `if TEST ?then? BODY ?elseif TEST BODY? ?else? BODY`.
    fn choose(&mut self, line: usize, mut rest: &[&str]) -> Result<String> {
        loop {
            let [test, tail @ ..] = rest else { return Ok(String::new()) };
            let tail = if tail.first() == Some(&"then") { &tail[1..] } else { tail };
            let [body, tail @ ..] = tail else {
                return Err(ImportError::new(line, "an if has no body", "write if {$i > 1} { … }"));
            };
            if self.holds(line, test)? {
                return self.run(body, line);
            }
            match tail {
                ["elseif", more @ ..] => rest = more,
                ["else", body, ..] | [body] => return self.run(body, line),
                _ => return Ok(String::new()),
            }
        }
    }

    fn holds(&mut self, line: usize, test: &str) -> Result<bool> {
        Ok(!["0", "0.0", "false", "no"].contains(&self.expression(line, test)?.as_str()))
    }

    /// The value of an expression, whose variables and nested commands are replaced first.
    fn expression(&mut self, line: usize, text: &str) -> Result<String> {
        let mut cursor = Cursor { text, at: 0, line };
        let text = self.word(&mut cursor, |_| false)?;
        if tcl_value::draws(&text) {
            self.host.drew(line, &text);
        }
        tcl_value::evaluate(&text).map_err(|why| wrong(line, &why))
    }
}

fn wrong(line: usize, why: &str) -> ImportError {
    ImportError::new(line, why, "write numbers, + - * / %, comparisons and parentheses")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records its calls.
    #[derive(Default)]
    struct Log(Vec<String>);

    impl Host for Log {
        fn call(&mut self, line: usize, words: &[String]) -> Result<String, ImportError> {
            self.0.push(format!("{line}: {}", words.join("|")));
            Ok(format!("r{}", self.0.len()))
        }

        fn named(&mut self, value: &str, variable: &str) {
            if value.starts_with('r') {
                self.0.push(format!("{variable} = {value}"));
            }
        }

        fn drew(&mut self, line: usize, _: &str) {
            self.0.push(format!("{line}: drew"));
        }

        fn broke_off(&mut self, line: usize, words: &[String], error: &ImportError) {
            self.0.push(format!("{line}: {} broke off: {error}", words[0]));
        }
    }

    fn calls(script: &str) -> Vec<String> {
        let mut log = Log::default();
        Tcl::new(&mut log).run(script, 1).unwrap();
        log.0
    }

    fn error(script: &str) -> String {
        Tcl::new(&mut Log::default()).run(script, 1).unwrap_err().to_string()
    }

    #[test]
    fn words_and_substitution() {
        let script = "set a 5 ;# five\nset n [make node] # a comment\n\
            link $a \"x $n\" {$a [b]} \\\n  ${n} end\nset b($a) 7\nput $b(5) $b($a)";
        let expected = ["2: make|node", "n = r1", "3: link|5|x r1|$a [b]|r1|end", "6: put|7|7"];
        assert_eq!(calls(script), expected);
    }

    #[test]
    fn loops_and_choices() {
        let script = "for {set i 0} {$i < 3} {incr i} { set x [expr $i * 2 + 1]; go $x }\n\
            foreach w {a {b c}} { go $w }\n\
                      if {$i == 3 && $x >= 5} { go yes } else { go no }\n\
                      if {$i > 3} {go no} elseif {1} {go third}\n\
                      lappend l a \"b c\"\nforeach w $l { go $w }";
        let wanted = ["go|1", "go|3", "go|5", "go|a", "go|b c", "go|yes", "go|third", "go|a", "go|b c"];
        let calls: Vec<_> =
            calls(script).iter().map(|call| call.split_once(": ").unwrap().1.to_owned()).collect();
        assert_eq!(calls, wanted);
    }

    #[test]
    fn procedures_have_their_own_variables() {
        let script = "set n 7\nset g 1\nproc make {a {b 2} args} \
            {\n  global g\n  set n [expr $a + $b + $g]\n  incr g\n\
                      if {$n > 9} { return big }\n  for {set i 0} {1} {incr i} { if {$i == 2} { return \
                      $n$args } }\n  go never\n}\n\
                      go [make 1] $g\ngo [make 1 3 x {y z}] $n $g\ngo [make 9]\n\
                      go $argc [info exists n] [info exists m]\n\
                      proc bad {} { go a; go $nowhere; go b }\nbad\nproc deep {} { deep }\ndeep";
        let wanted = ["go|4|2", "go|6x {y z}|7|3", "go|big", "go|0|1|0", "go|a"];
        let calls = calls(script);
        let plain: Vec<_> = calls.iter().map(|call| call.split_once(": ").unwrap().1.to_owned()).collect();
        assert_eq!(plain[..5], wanted);
        assert_eq!(
            plain[5],
            "bad broke off: line 15: there is no variable \"nowhere\"; set nowhere before it is used"
        );
        assert!(plain[6].starts_with("deep broke off: ") && plain[6].contains("too deeply"), "{}", plain[6]);
    }

    #[test]
    fn errors_have_lines_and_ends() {
        for (script, part) in [
            ("a\nb $x", "line 2: there is no variable \"x\""),
            ("a [b", "a [ is not closed"),
            ("a\n\n{b", "line 3: a { is not closed"),
            ("a \"b", "a \" is not closed"),
            ("while {1} {}", "more than 200000"),
            ("expr 1 +", "ends too early"),
            ("set a xxxxxxxxxx; while {1} {append a $a}", "too much text"),
        ] {
            assert!(error(script).contains(part), "{script}: {}", error(script));
        }
        assert!(error(&"[".repeat(1000)).contains("too deeply"));
        assert!(error(&"$a(".repeat(100_000)).contains("too deeply"));
        // The spaces, comments and semicolons of a body count each time: without one kind it is short enough.
        let (spaces, semicolons) = (" ".repeat(65), ";".repeat(65));
        let body = format!("{spaces}\n#{spaces}\n{semicolons}");
        assert!(error(&format!("for {{set i 0}} {{$i < 50000}} {{incr i}} {{{body}}}")).contains("too much"));
        assert_eq!(calls(&format!("go {} {}", "x".repeat(1 << 20), " ".repeat(100))).len(), 1);
    }
}
