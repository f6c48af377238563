//! Rules for single files: sizes, names, and banned words.

use super::source::{Source, has_word, words};
use super::{File, Finding};

/// Most lines of a file before its tests.
const FILE_LINES: usize = 500;
/// Most lines of a function.
const FUNCTION_LINES: usize = 70;
/// Crates that receive the time and their dice.
const BLOCK_CRATES: &[&str] = &["units", "packet", "wire", "block", "sched", "link", "router"];
/// Crates that may hold `unsafe`, by their folders.
const UNSAFE_CRATES: &[&str] = &["packet", "port", "lab", "engine", "program/jit", "punt"];
/// Module names that do not describe their contents.
const DRAWERS: &[&str] = &["utils", "util", "common", "misc", "helpers", "helper"];

/// A word banned in code.
struct Banned {
    rule: &'static str,
    words: &'static [&'static str],
    fix: &'static str,
}

const EVERYWHERE: Banned = Banned {
    rule: "nothing unfinished",
    words: &["todo!", "unimplemented!", "#[ignore", "allow(dead_code)", "expect(dead_code)"],
    fix: "finish it or take it out",
};
const IN_BLOCKS: Banned = Banned {
    rule: "blocks are told the time and given their dice",
    words: &["Instant::now", "SystemTime::now", "clock_gettime", "thread_rng", "rand::", "getrandom"],
    fix: "take the time or the dice as an argument",
};
const IN_TESTS: Banned = Banned {
    rule: "no sleeps in tests",
    words: &["thread::sleep", "time::sleep"],
    fix: "wait for the event itself, with a bound",
};
const UNSAFE: Banned = Banned {
    rule: "unsafe only in packet, port, lab, engine, jit and punt",
    words: &["unsafe"],
    fix: "move it to one of these crates, or do without",
};

/// Rules for every text file.
pub fn check_text(file: &File, findings: &mut Vec<Finding>) {
    // Written in two parts, so that this file does not break its own rule.
    let places =
        [concat!("/ho", "me/"), concat!("/Us", "ers/"), concat!("/ro", "ot/"), concat!("/wo", "rk/")];
    let outside = concat!("../sh", "ared");
    for (index, line) in file.text.lines().enumerate() {
        if line.contains(outside) || places.iter().any(|place| begins_path(line, place)) {
            let fix = "name it relative to this repository";
            findings.push(Finding::new(&file.path, index + 1, "no paths of one machine", fix));
        }
        if has_word(line, concat!("FIX", "ME")) {
            findings.push(Finding::new(&file.path, index + 1, EVERYWHERE.rule, EVERYWHERE.fix));
        }
    }
}

/// Rules for Rust files.
pub fn check_rust(file: &File, findings: &mut Vec<Finding>) {
    let source = Source::new(file.text.clone());
    let krate = file.path.strip_prefix("crates/").and_then(|p| p.split('/').next()).unwrap_or("");
    let all_tests = file.path.split('/').any(|part| part == "tests" || part == "tests.rs");
    let tests_start = if all_tests { Some(1) } else { source.tests_start() };

    let mut banned = vec![(&EVERYWHERE, 1)];
    if BLOCK_CRATES.contains(&krate) {
        banned.push((&IN_BLOCKS, 1));
    }
    let below = |folder: &&str| file.path.starts_with(&format!("crates/{folder}/"));
    if !UNSAFE_CRATES.iter().any(below) {
        banned.push((&UNSAFE, 1));
    }
    banned.extend(tests_start.map(|line| (&IN_TESTS, line)));
    for (index, line) in source.code.lines().enumerate() {
        for (ban, from) in &banned {
            if index + 1 >= *from && ban.words.iter().any(|word| has_word(line, word)) {
                findings.push(Finding::new(&file.path, index + 1, ban.rule, ban.fix));
            }
        }
        check_names(file, line, index + 1, findings);
    }
    check_sizes(file, &source, tests_start, findings);
    check_module_path(file, findings);
}

fn check_names(file: &File, line: &str, number: usize, findings: &mut Vec<Finding>) {
    for word in words(line, "fn") {
        let public = has_word(&line[..word.start], "pub");
        let name = line[word.end..].trim_start();
        if public && name.starts_with("get_") {
            findings.push(Finding::new(&file.path, number, "no get_ in names", "name what is returned"));
        }
    }
    for word in words(line, "mod") {
        let name = line[word.end..].trim_start().split(|c: char| c != '_' && !c.is_alphanumeric()).next();
        if name.is_some_and(|n| DRAWERS.contains(&n)) {
            findings.push(drawer(file, number));
        }
    }
}

fn check_sizes(file: &File, source: &Source, tests_start: Option<usize>, findings: &mut Vec<Finding>) {
    let lines = tests_start.map_or(source.text.lines().count(), |start| start - 1);
    if lines > FILE_LINES {
        let fix = format!("{lines} lines before the tests: split it by what it does");
        findings.push(Finding::new(&file.path, FILE_LINES + 1, "a file has at most 500 lines", fix));
    }
    for function in source.functions() {
        let (first, last) = function.lines;
        let length = last - first + 1;
        if length > FUNCTION_LINES {
            let fix = format!("{} has {length}: split it", function.name);
            findings.push(Finding::new(&file.path, first, "a function has at most 70 lines", fix));
        }
    }
}

fn check_module_path(file: &File, findings: &mut Vec<Finding>) {
    let parts = file.path.strip_suffix(".rs").unwrap_or(&file.path).split('/');
    if parts.into_iter().any(|part| DRAWERS.contains(&part)) {
        findings.push(drawer(file, 1));
    }
}

fn drawer(file: &File, line: usize) -> Finding {
    Finding::new(&file.path, line, "no drawers", "name the module after what is in it")
}

/// Whether `line` has a path that begins with `place`, and not in the middle of a longer one.
fn begins_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || "._-/}>)".contains(c)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let (mut findings, file) = (Vec::new(), file(path, text));
        check_text(&file, &mut findings);
        check_rust(&file, &mut findings);
        findings.into_iter().map(|f| (f.line, f.rule)).collect()
    }

    #[test]
    fn unfinished_code_is_found_in_code_only() {
        let text = "// todo! in words\nfn a() { todo!() }\nconst A: &str = \"unimplemented!\";\n\
            #[ignore = \"slow\"]\n";
        assert_eq!(rules("crates/cli/src/a.rs", text), [(2, EVERYWHERE.rule), (4, EVERYWHERE.rule)]);
        let text = concat!("// FIX", "ME: later\n#[allow(dead_code)]\n");
        assert_eq!(rules("crates/cli/src/a.rs", text), [(1, EVERYWHERE.rule), (2, EVERYWHERE.rule)]);
    }

    #[test]
    fn clocks_and_generators_are_banned_in_block_crates() {
        let text = "fn a() -> Instant { Instant::now() }\nuse rand::Rng;\n";
        assert_eq!(rules("crates/link/src/a.rs", text), [(1, IN_BLOCKS.rule), (2, IN_BLOCKS.rule)]);
        assert_eq!(rules("crates/engine/src/a.rs", text), []);
    }

    #[test]
    fn unsafe_has_its_crates() {
        let text = "#![forbid(unsafe_code)]\nfn a() { unsafe { b() } }\n";
        assert_eq!(rules("crates/cli/src/a.rs", text), [(2, UNSAFE.rule)]);
        assert_eq!(rules("xtask/src/a.rs", text), [(2, UNSAFE.rule)]);
        assert_eq!(rules("crates/port/src/a.rs", text), []);
        assert_eq!(rules("crates/program/src/a.rs", text), [(2, UNSAFE.rule)]);
        assert_eq!(rules("crates/program/jit/src/a.rs", text), []);
    }

    #[test]
    fn tests_do_not_sleep() {
        let text =
            "fn a() { thread::sleep(x) }\n#[cfg(test)]\nmod tests {\n  fn b() { std::thread::sleep(x) }\n}\n";
        assert_eq!(rules("crates/cli/src/a.rs", text), [(4, IN_TESTS.rule)]);
        let text = "async fn b() { tokio::time::sleep(x).await }\n";
        assert_eq!(rules("crates/cli/tests/a.rs", text), [(1, IN_TESTS.rule)]);
    }

    #[test]
    fn names_say_what_things_are() {
        let text = "pub fn get_a() {}\nfn get_b() {}\npub(crate) const fn get_c() {}\nmod helpers;\n";
        let names = "no get_ in names";
        assert_eq!(rules("crates/cli/src/a.rs", text), [(1, names), (3, names), (4, "no drawers")]);
        assert_eq!(rules("crates/cli/src/common/a.rs", ""), [(1, "no drawers")]);
        assert_eq!(rules("crates/cli/src/commons.rs", ""), []);
    }

    #[test]
    fn sizes_are_bounded() {
        let body = "    a();\n";
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", body.repeat(lines - 2));
        assert_eq!(rules("crates/cli/src/a.rs", &function(70)), []);
        assert_eq!(rules("crates/cli/src/a.rs", &function(71)), [(1, "a function has at most 70 lines")]);
        let blank = |lines| "//\n".repeat(lines);
        assert_eq!(rules("crates/cli/src/a.rs", &blank(501)), [(501, "a file has at most 500 lines")]);
        let with_tests = blank(500) + "#[cfg(test)]\nmod tests {\n" + &blank(100) + "}\n";
        assert_eq!(rules("crates/cli/src/a.rs", &with_tests), []);
        assert_eq!(rules("crates/cli/tests/a.rs", &blank(501)), []);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let rule = "no paths of one machine";
        let found = |text: &str| rules("crates/cli/src/a.rs", text);
        assert_eq!(found(concat!("// see /ho", "me/ann/x\n")), [(1, rule)]);
        assert_eq!(found(concat!("// \"/wo", "rk/x\"\n// frame/wo", "rk/x\n")), [(1, rule)]);
        assert_eq!(found(concat!("// ../sh", "ared/x\n")), [(1, rule)]);
    }
}
